package canary

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a record store whose answers can be bent, one request at a time, on raw
// connections: net/http's server cannot cut one in the middle.
type service struct {
	net.Listener
	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	records map[string]string
	conns   int
	// bend answers in the service's place, if it returns true.
	bend func(s *service, c net.Conn, method, id, body string) bool
}

func serve(t *testing.T) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Listener: l, stop: make(chan struct{}), records: map[string]string{}}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { defer c.Close(); s.answer(c) })
		}
	})
	t.Cleanup(func() { l.Close(); close(s.stop); s.wg.Wait() })
	return s
}

func (s *service) answer(c net.Conn) {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	id := strings.TrimPrefix(req.URL.Path, "/records/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns++
	if s.bend != nil && s.bend(s, c, req.Method, id, string(body)) {
		return
	}
	switch value, ok := s.records[id]; {
	case req.Method == "PUT":
		s.records[id] = string(body)
		say(c, 204, "")
	case ok:
		say(c, 200, value)
	default:
		say(c, 404, "no such record")
	}
}

func say(c net.Conn, status int, body string) {
	fmt.Fprintf(c, "HTTP/1.0 %d x\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

func record(n uint64) Record { return Record{ID: fmt.Sprint("id-", n), Value: fmt.Sprint("value-", n)} }

// client writes n times to addr, then stops.
func client(t *testing.T, addr string, n uint64, known *Record) (*Client, []Sample) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began := time.Now()
	var out []Sample
	c := New(Config{Addr: addr, Path: "/records/{id}", Known: known, Every: time.Millisecond, Wait: 150 * time.Millisecond,
		Record: func(i uint64) Record {
			if i == n {
				cancel()
			}
			return record(i)
		},
		Clock: func() uint64 { return uint64(time.Since(began).Milliseconds()) },
		Say:   func(s ...Sample) { out = append(out, s...) }})
	c.Run(ctx)
	if got := uint64(len(c.log.Writes)); got != n {
		t.Fatalf("%d writes, want %d", got, n)
	}
	return c, out
}

// How each end of a write is classed.
func TestOutcomes(t *testing.T) {
	status := func(n int) func(*service, net.Conn, string, string, string) bool {
		return func(_ *service, c net.Conn, _, _, _ string) bool { say(c, n, ""); return true }
	}
	for name, c := range map[string]struct {
		bend func(*service, net.Conn, string, string, string) bool
		want Outcome
	}{
		"204": {nil, Acknowledged}, "200": {status(200), Acknowledged}, "201": {status(201), Acknowledged},
		"202, no promise": {status(202), Indeterminate},
		"302":             {status(302), Failed}, "404": {status(404), Failed}, "409": {status(409), Failed},
		"500": {status(500), Indeterminate}, "501": {status(501), Failed},
		"502": {status(502), Indeterminate}, "503": {status(503), Failed}, "504": {status(504), Indeterminate},
		"cut after the request": {func(*service, net.Conn, string, string, string) bool { return true }, Indeterminate},
		"cut within the answer": {func(_ *service, c net.Conn, _, _, _ string) bool { io.WriteString(c, "HTTP/1.0 20"); return true }, Indeterminate},
		"done, then cut":        {func(s *service, _ net.Conn, _, id, body string) bool { s.records[id] = body; return true }, Indeterminate},
		"reset":                 {func(_ *service, c net.Conn, _, _, _ string) bool { c.(*net.TCPConn).SetLinger(0); return true }, Indeterminate},
		"no HTTP":               {func(_ *service, c net.Conn, _, _, _ string) bool { io.WriteString(c, "SSH-2.0-x\r\n"); return true }, Indeterminate},
		"endless header": {func(_ *service, c net.Conn, _, _, _ string) bool {
			io.WriteString(c, "HTTP/1.0 204 "+strings.Repeat("x", 1<<20))
			return true
		}, Indeterminate},
		"silent": {func(s *service, c net.Conn, _, _, _ string) bool { io.Copy(io.Discard, c); return true }, Indeterminate},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.bend = c.bend
			cl, _ := client(t, s.Addr().String(), 1, nil)
			if w := cl.log.Writes[0]; w.Outcome != c.want {
				t.Errorf("%+v, want %s", w, c.want)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		cl, _ := client(t, l.Addr().String(), 1, nil)
		if w := cl.log.Writes[0]; w.Outcome != Failed {
			t.Errorf("%+v, want failed", w)
		}
	})
}

// A service that acknowledges, and then has lost it.
func TestLoss(t *testing.T) {
	s := serve(t)
	cl, out := client(t, s.Addr().String(), 20, nil)
	s.mu.Lock()
	delete(s.records, "id-20")
	delete(s.records, "id-19")
	s.records["id-18"] = "another"
	conns := s.conns
	s.mu.Unlock()
	m := cl.ReadBack(t.Context(), time.Second)
	if m.Writes != 20 || m.Acknowledged != 20 || m.Lost != 3 || m.Unread != 0 || len(m.Outages) != 0 {
		t.Errorf("%+v", m)
	}
	if want := cl.log.Writes[19].DoneMS - cl.log.Writes[16].DoneMS; m.LossMS != want {
		t.Errorf("a loss of %d ms, want %d", m.LossMS, want)
	}
	if conns != 20+1+19/readEvery || s.conns-conns != 20+3 {
		t.Errorf("%d requests, then %d", conns, s.conns-conns)
	}
	if last := out[len(out)-1]; last.Acknowledged != 20 || last.Write != 20 {
		t.Errorf("the last sample: %+v", last)
	}
}

// What is gone at the first look and there at the second was never lost: a proxy on its
// way from one server to another.
func TestSecondLook(t *testing.T) {
	s := serve(t)
	cl, _ := client(t, s.Addr().String(), 10, nil)
	looks := map[string]int{}
	s.bend = func(_ *service, c net.Conn, _, id, _ string) bool {
		if looks[id]++; looks[id] == 1 {
			say(c, 404, "")
		}
		return looks[id] == 1
	}
	if m := cl.ReadBack(t.Context(), time.Second); m.Lost != 0 || m.Unread != 0 {
		t.Errorf("%+v", m)
	}
}

// What is not answered is unread, not lost, and does not hold up the end.
func TestUnread(t *testing.T) {
	s := serve(t)
	cl, _ := client(t, s.Addr().String(), 10, nil)
	s.bend = func(_ *service, c net.Conn, _, _, _ string) bool { say(c, 502, ""); return true }
	if m := cl.ReadBack(t.Context(), 300*time.Millisecond); m.Lost != 0 || m.Unread != 10 || m.LossMS != 0 {
		t.Errorf("%+v", m)
	}
	// One that answers only the first look has lost nothing for certain.
	s.bend = func(_ *service, c net.Conn, _, _, _ string) bool {
		s.conns++
		say(c, map[bool]int{true: 404, false: 502}[s.conns < 5], "")
		return true
	}
	s.conns = 0
	if m := cl.ReadBack(t.Context(), 300*time.Millisecond); m.Lost != 0 || m.Unread != 10 {
		t.Errorf("%+v", m)
	}
}

// A service that is down, serves reads first and writes later.
func TestRecovery(t *testing.T) {
	s := serve(t)
	known := Record{"old", "from before"}
	s.records["old"] = known.Value
	puts := 0
	s.bend = func(_ *service, c net.Conn, method, _, _ string) bool {
		if method == "PUT" {
			puts++
		}
		switch {
		case puts <= 5:
			say(c, 502, "")
		case puts <= 9 && method == "PUT":
			say(c, 503, "")
		default:
			return false
		}
		return true
	}
	cl, out := client(t, s.Addr().String(), 20, &known)
	m := cl.ReadBack(t.Context(), time.Second)
	o, ok := m.First()
	if !ok || len(m.Outages) != 1 || o.ReadMS == nil || o.AckMS == nil || *o.ReadMS > *o.AckMS || o.SteadyMS != nil {
		t.Fatalf("%+v", m.Outages)
	}
	if m.Indeterminate != 5 || m.Failed != 4 || m.Acknowledged != 11 || m.Lost+m.Unread+m.Phantoms != 0 {
		t.Errorf("%+v", m)
	}
	var kinds []Outcome
	for _, x := range out {
		if len(kinds) == 0 || kinds[len(kinds)-1] != x.Outcome {
			kinds = append(kinds, x.Outcome)
		}
	}
	if fmt.Sprint(kinds) != "[indeterminate failed acknowledged]" {
		t.Errorf("%v", kinds)
	}
}

// While it is held nothing is asked, and nothing counts as an outage.
func TestHold(t *testing.T) {
	s := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ten := make(chan struct{})
	var once sync.Once
	c := New(Config{Addr: s.Addr().String(), Path: "/records/{id}", Every: time.Millisecond, Wait: 5 * time.Second, Clock: func() uint64 { return 0 },
		Record: func(n uint64) Record {
			if n%10 == 0 {
				once.Do(func() { close(ten) })
			}
			return record(n)
		}, Say: func(...Sample) {}})
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	<-ten
	c.Hold()
	s.mu.Lock()
	before := s.conns
	s.bend = func(*service, net.Conn, string, string, string) bool { return true } // a frozen machine
	s.mu.Unlock()
	time.Sleep(30 * time.Millisecond) // in which a client that is not held writes
	s.mu.Lock()
	if s.conns != before {
		t.Errorf("%d requests while held", s.conns-before)
	}
	s.bend = nil
	ten = make(chan struct{})
	once = sync.Once{}
	s.mu.Unlock()
	c.Release()
	<-ten
	cancel()
	<-done
	if m := c.ReadBack(t.Context(), time.Second); m.Acknowledged != m.Writes || m.Writes < 11 || m.Lost != 0 {
		t.Errorf("%+v", m)
	}
	// Held for good, it still ends.
	c = New(c.cfg)
	c.Hold()
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	c.Run(ctx)
}
