package qemu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm"
)

const greeting = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": []}}` + "\r\n"

// fakeQMP plays QEMU's side: it greets, accepts the capabilities, and then
// answers each command by serve's lines.
func fakeQMP(t *testing.T, serve func(id uint64, command string) string) (*net.UnixConn, net.Conn) {
	t.Helper()
	ours, f, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Add(1)
	t.Cleanup(func() { theirs.Close(); ours.Close(); done.Wait() })
	go func() {
		defer done.Done()
		if _, err := theirs.Write([]byte(greeting)); err != nil {
			return
		}
		sc := bufio.NewScanner(theirs)
		for sc.Scan() {
			var m struct {
				Execute string
				ID      uint64
			}
			if json.Unmarshal(sc.Bytes(), &m) != nil {
				return
			}
			answer := fmt.Sprintf(`{"return": {}, "id": %d}`, m.ID)
			if m.Execute != "qmp_capabilities" {
				answer = serve(m.ID, m.Execute)
			}
			if _, err := theirs.Write([]byte(answer + "\r\n")); err != nil {
				return
			}
		}
	}()
	return ours, theirs
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestQMPConversation(t *testing.T) {
	conn, _ := fakeQMP(t, func(id uint64, command string) string {
		switch command {
		case "query-status":
			return fmt.Sprintf(`{"event": "STOP", "data": {"n": 1}}`+"\r\n"+`{"return": {"status": "running"}, "id": %d}`, id)
		default:
			return fmt.Sprintf(`{"error": {"class": "CommandNotFound", "desc": "no %s"}, "id": %d}`, command, id)
		}
	})
	var events []string
	c, err := dialQMP(within(t), conn, func(e qmpEvent) { events = append(events, e.Name+string(e.Data)) })
	if err != nil {
		t.Fatal(err)
	}
	var st struct{ Status string }
	if err := c.run(within(t), "query-status", nil, &st); err != nil || st.Status != "running" {
		t.Fatalf("query-status: %+v, %v", st, err)
	}
	var q *qmpError
	if err := c.run(within(t), "frobnicate", nil, nil); !errors.As(err, &q) || q.Class != "CommandNotFound" || q.Command != "frobnicate" {
		t.Fatalf("declined command: %v", err)
	}
	c.close()
	if got := strings.Join(events, " "); got != `STOP{"n": 1}` {
		t.Fatalf("events %q", got)
	}
	if err := c.run(within(t), "query-status", nil, nil); !errors.Is(err, vm.ErrTransport) {
		t.Fatalf("after close: %v, want ErrTransport", err)
	}
}

func TestQMPManyAtOnce(t *testing.T) {
	conn, _ := fakeQMP(t, func(id uint64, command string) string {
		return fmt.Sprintf(`{"return": %q, "id": %d}`, command, id)
	})
	c, err := dialQMP(within(t), conn, func(qmpEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var got string
			want := fmt.Sprint("c", i)
			if err := c.run(within(t), want, nil, &got); err != nil || got != want {
				t.Errorf("%s: got %q, %v", want, got, err)
			}
		})
	}
	wg.Wait()
}

func TestQMPHostile(t *testing.T) {
	for name, line := range map[string]string{
		"not JSON":        "hello",
		"no known form":   `{"surprise": 1}`,
		"second greeting": greeting,
		"too long":        `{"event": "` + strings.Repeat("x", maxQMPLine) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := fakeQMP(t, func(uint64, string) string { return line })
			c, err := dialQMP(within(t), conn, func(qmpEvent) {})
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			if err := c.run(within(t), "x", nil, nil); !errors.Is(err, vm.ErrTransport) {
				t.Fatalf("got %v, want ErrTransport", err)
			}
		})
	}
}

func TestQMPNoAnswer(t *testing.T) {
	conn, _ := fakeQMP(t, func(uint64, string) string { return `{"return": {}, "id": 999}` })
	c, err := dialQMP(within(t), conn, func(qmpEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := c.run(ctx, "x", nil, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want Canceled", err)
	}
}

// A file handed over with a command arrives as a descriptor of the same file.
func TestQMPPassesFile(t *testing.T) {
	ours, f, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	got := make(chan string, 1)
	go func() {
		peer := theirs.(*net.UnixConn)
		peer.Write([]byte(greeting))
		buf, oob := make([]byte, 4096), make([]byte, 128)
		answered := 0
		for {
			n, m, _, _, err := peer.ReadMsgUnix(buf, oob)
			if err != nil {
				return
			}
			for range bytes.Count(buf[:n], []byte("\n")) {
				answered++
				fmt.Fprintf(peer, `{"return": {}, "id": %d}`+"\n", answered)
			}
			if m > 0 {
				scm, _ := unix.ParseSocketControlMessage(oob[:m])
				fds, _ := unix.ParseUnixRights(&scm[0])
				g := os.NewFile(uintptr(fds[0]), "got")
				b := make([]byte, 16)
				k, _ := g.ReadAt(b, 0)
				g.Close()
				got <- string(b[:k])
			}
		}
	}()
	c, err := dialQMP(within(t), ours, func(qmpEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	file, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.WriteString("the state")
	if err := c.run(within(t), "getfd", map[string]string{"fdname": "st"}, nil, file); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "the state" {
		t.Fatalf("received file says %q", s)
	}
}

func FuzzQMP(f *testing.F) {
	f.Add([]byte(greeting + `{"return": {}, "id": 1}` + "\n"))
	f.Add([]byte(`{"event":"X"}` + "\n" + `{"error":{},"id":1}`))
	f.Fuzz(func(t *testing.T, wire []byte) {
		ours, file, err := socketPair()
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		go func() { theirs.Write(wire); theirs.Close() }()
		if c, err := dialQMP(within(t), ours, func(qmpEvent) {}); err == nil {
			c.close()
		}
	})
}
