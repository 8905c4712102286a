package probe

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"refbox/engine/internal/pause"
	"refbox/vm"
)

// Reply is what a request got. Error is "" when there was a response.
type Reply struct {
	Status int
	Body   []byte // at most 64 KiB
	Error  string // closed, timeout, malformed, refused, reset
	Took   time.Duration
}

const (
	outsideForgeable = "what is answered: root runs the service; that it is answered on this port was seen from outside"
	portForgeable    = "the state between two looks: root may open or close the port at any time"
)

// Request is what is asked of a seat from outside.
type Request struct {
	Machine string // "": the first
	Port    int    // 0: the public service's
	Method  string
	Path    string
	Body    []byte
	Timeout time.Duration
	After   time.Duration // waited before it is sent
}

// HTTP asks the seat from outside.
func (a *Attempt) HTTP(ctx context.Context, q Request) (Reply, error) {
	replies, err := a.HTTPs(ctx, []Request{q})
	return replies[0], err
}

// maxRequests bounds what is asked at once.
const maxRequests = 64

// HTTPs asks several things of the seat at the same time, and records them in
// their order. The error is that of the first that failed.
func (a *Attempt) HTTPs(ctx context.Context, qs []Request) ([]Reply, error) {
	replies, recs, errs := make([]Reply, len(qs)), make([]Record, len(qs)), make([]error, len(qs))
	if len(qs) > maxRequests {
		return replies, failure(Broken, "http: at most %d requests at once", maxRequests)
	}
	for i, q := range qs {
		if !strings.HasPrefix(q.Path, "/") {
			return replies, failure(Broken, "http: path %q does not begin with /", q.Path)
		}
		if _, err := a.Seat.machine(q.Machine); err != nil {
			return replies, err
		}
		if q.Port == 0 {
			qs[i].Port = a.Seat.c.ServicePort
		}
	}
	one := func(i int) {
		if a.Seat.replay == nil && qs[i].After > 0 {
			pause.For(ctx, qs[i].After)
		}
		replies[i], recs[i], errs[i] = a.Seat.http(ctx, qs[i])
		if a.Seat.replay == nil { // else it is what was recorded, like the rest of the answer
			replies[i].Took = time.Duration(recs[i].TookMS) * time.Millisecond
		}
	}
	var wg sync.WaitGroup
	for i := 1; i < len(qs) && a.Seat.replay == nil; i++ {
		wg.Go(func() { one(i) })
	}
	one(0)
	for i := 1; i < len(qs) && a.Seat.replay != nil; i++ {
		one(i) // in the order of the records
	}
	wg.Wait()
	for i, r := range recs {
		a.look(replies[i].Body)
		a.Note(r)
	}
	for _, err := range errs {
		if err != nil {
			return replies, err
		}
	}
	return replies, nil
}

func (s *Seat) http(ctx context.Context, q Request) (rep Reply, r Record, err error) {
	i, err := s.machine(q.Machine)
	if err != nil {
		return rep, r, err
	}
	m := s.c.Machines[i]
	r = Record{Call: "http", Outside: true, Forgeable: outsideForgeable,
		Request: httpRequest(q.Method, q.Path, q.Body, map[string]any{"port": q.Port})}
	r, err = s.call(ctx, r, m, func(ctx context.Context) (map[string]any, error) {
		if s.replay != nil {
			var err error
			rep, err = s.replay.reply("http", m.Name(), httpRequest(q.Method, q.Path, q.Body, map[string]any{"port": q.Port}))
			return httpResponse(rep), err
		}
		addr, err := m.Addr(q.Port)
		if err != nil {
			return nil, failure(Broken, "http: port %d of %s is not forwarded: %v", q.Port, m.Name(), err)
		}
		tctx, cancel := context.WithTimeout(ctx, s.slow(q.Timeout))
		defer cancel()
		rep, err = ask(tctx, addr, q.Method, q.Path, q.Body)
		if ctx.Err() != nil {
			return nil, ctx.Err() // not the service's silence
		}
		if err != nil {
			return nil, s.outsideError(m, err)
		}
		return httpResponse(rep), nil
	})
	return rep, r, err
}

// maxHeader bounds a response's header, and what chunking adds to its body.
const maxHeader = 16 << 10

// ask makes one request on a connection of its own: one kept over a restart of
// the service would show the old process, and its death as a failure of the new
// one. It is not net/http's client, which logs what a hostile server sends
// before it was asked. An error is about the way to the machine.
func ask(ctx context.Context, addr, method, path string, body []byte) (Reply, error) {
	req, err := http.NewRequest(method, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return Reply{}, failure(Broken, "http: %v", err)
	}
	req.Close = true
	c, err := vm.Dial(ctx, addr)
	if err != nil {
		if isTimeout(err) {
			return Reply{Error: "timeout"}, nil
		}
		if errors.Is(err, syscall.ECONNRESET) {
			return Reply{Error: "closed"}, nil // accepted, and reset before we had looked
		}
		return Reply{}, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// A server may answer and close before it has read everything, so a failed
	// write alone says nothing.
	werr := req.Write(c)
	in := &io.LimitedReader{R: c, N: maxHeader}
	r := bufio.NewReader(in)
	for range 4 { // interim answers, then the one
		res, err := http.ReadResponse(r, req)
		if err != nil {
			if in.N <= 0 {
				return Reply{Error: "malformed"}, nil
			}
			return Reply{Error: errorWord(errors.Join(werr, err))}, nil
		}
		if res.StatusCode < 200 {
			continue
		}
		in.N = maxBody + maxHeader
		b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
		if err != nil {
			return Reply{Error: errorWord(err)}, nil
		}
		return Reply{Status: res.StatusCode, Body: b}, nil
	}
	return Reply{Error: "malformed"}, nil
}

func errorWord(err error) string {
	switch {
	case isTimeout(err):
		return "timeout"
	case isClosed(err):
		return "closed"
	}
	return "malformed"
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		(errors.As(err, &n) && n.Timeout())
}

// isClosed: with QEMU's user network a port nobody listens on is accepted, then
// reset (recordings reference, section 5.4).
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// outsideError says what an error on the way to a forward means: the forward is
// ours, so it is the way to the machine that failed.
func (s *Seat) outsideError(m vm.Machine, err error) error {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	if g := s.gone(m); g != nil {
		return g
	}
	return fmt.Errorf("%w: %v", vm.ErrTransport, err)
}

// portWait is how long an answer to a look at a port is awaited. A closed port
// answers at once.
const portWait = 500 * time.Millisecond

// Port looks at a port from outside: "open", "closed" or "silent". PostgreSQL speaks
// only when it is spoken to in its own words.
func (a *Attempt) Port(ctx context.Context, machine string, port int, postgres bool) (string, error) {
	i, err := a.Seat.machine(machine)
	if err != nil {
		return "", err
	}
	m := a.Seat.c.Machines[i]
	state := ""
	request, words := map[string]any{"port": port}, anyWords
	if postgres {
		request["postgres"], words = true, postgresWords
	}
	r := Record{Call: "port", Outside: true, Forgeable: portForgeable, Request: request}
	err = a.call(ctx, r, m, func(ctx context.Context) (map[string]any, error) {
		if p := a.Seat.replay; p != nil {
			r, err := p.take("port", m.Name(), request)
			state = said(r, "state")
			return map[string]any{"state": state}, err
		}
		addr, err := m.Addr(port)
		if err != nil {
			return nil, failure(Broken, "port: port %d of %s is not forwarded: %v", port, m.Name(), err)
		}
		if state, err = lookAtPort(ctx, addr, words, a.Seat.slow(portWait)); err != nil {
			if err = a.Seat.outsideError(m, err); errors.Is(err, vm.ErrTransport) && isOff(ctx, m) {
				state, err = "closed", nil
			}
		}
		return map[string]any{"state": state}, err
	})
	return state, err
}

// What is said to a port: whatever listens is likely to answer; or PostgreSQL's request
// for an encrypted connection, which it answers with one byte (its manual, 55.2).
const (
	anyWords      = "HEAD / HTTP/1.0\r\n\r\n"
	postgresWords = "\x00\x00\x00\x08\x04\xd2\x16\x2f"
)

// lookAtPort asks for something, since a forward accepts for every port: only
// what comes back tells the guest's own answer.
func lookAtPort(ctx context.Context, addr, words string, wait time.Duration) (string, error) {
	c, err := vm.Dial(ctx, addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return "closed", nil // accepted, and reset before we had looked
	}
	if err != nil {
		return "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.SetDeadline(time.Now().Add(wait))
	if _, err := io.WriteString(c, words); err != nil {
		return "closed", nil
	}
	var b [1]byte
	_, err = c.Read(b[:])
	switch {
	case err == nil:
		return "open", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case isTimeout(err):
		return "silent", nil
	}
	return "closed", nil
}

// Power is read from outside the guest.
func (a *Attempt) Power(ctx context.Context, machine string) (vm.Power, error) {
	i, err := a.Seat.machine(machine)
	if err != nil {
		return "", err
	}
	m := a.Seat.c.Machines[i]
	var p vm.Power
	err = a.call(ctx, Record{Call: "power", Outside: true}, m, func(ctx context.Context) (map[string]any, error) {
		p, err = m.Power(ctx)
		return map[string]any{"power": p}, err
	})
	return p, err
}

// SetClock sets the guest's wall clock ahead of the host's, or behind.
func (a *Attempt) SetClock(ctx context.Context, machine string, ahead time.Duration) error {
	i, err := a.Seat.machine(machine)
	if err != nil {
		return err
	}
	m := a.Seat.c.Machines[i]
	r := Record{Call: "set_clock", Forgeable: insideForgeable, Request: map[string]any{"ahead_s": int(ahead.Seconds())}}
	return a.call(ctx, r, m, func(ctx context.Context) (map[string]any, error) {
		return nil, m.SetClock(ctx, ahead)
	})
}

// ConsoleContains looks for text in what the serial console printed last.
func (a *Attempt) ConsoleContains(ctx context.Context, machine, text string) (bool, error) {
	i, err := a.Seat.machine(machine)
	if err != nil {
		return false, err
	}
	found := a.Seat.consoles[i].contains(text)
	r := Record{Call: "console", Outside: true, Forgeable: "root can print anything on its console",
		Request: map[string]any{"contains": bounded(text, maxShown)}}
	err = a.call(ctx, r, a.Seat.c.Machines[i], func(context.Context) (map[string]any, error) {
		if p := a.Seat.replay; p != nil {
			r, err := p.take("console", a.Seat.c.Machines[i].Name(), map[string]any{"contains": bounded(text, maxShown)})
			found = r.Response["found"] == true
			return map[string]any{"found": found}, err
		}
		return map[string]any{"found": found}, nil
	})
	return found, err
}

func httpRequest(method, url string, body []byte, more map[string]any) map[string]any {
	if more == nil {
		more = map[string]any{}
	}
	more["method"], more["url"] = method, bounded(url, maxShown)
	if len(body) > 0 {
		more["body"] = bounded(string(body), maxShown)
	}
	return more
}

func httpResponse(r Reply) map[string]any {
	if r.Error != "" {
		return map[string]any{"error": r.Error}
	}
	return map[string]any{"status": r.Status, "body": bounded(string(r.Body), maxShown), "bytes": len(r.Body)}
}
