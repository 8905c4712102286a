package link_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"refbox/vm/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func plug(t testing.TB, h *link.Hub, name string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	if err := h.Plug(name, near); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	if err := far.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return far
}

func send(t testing.TB, c net.Conn, frame []byte) {
	t.Helper()
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		t.Fatal(err)
	}
}

func recv(t testing.TB, c net.Conn) []byte {
	t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, frame); err != nil {
		t.Fatal(err)
	}
	return frame
}

// Every frame reaches every other port, once, in order, and never its sender.
func TestHubForwards(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := link.New()
		defer h.Close()
		n := rapid.IntRange(2, 5).Draw(rt, "ports")
		var conns []net.Conn
		for i := range n {
			conns = append(conns, plug(t, h, fmt.Sprint(i)))
		}
		for k := range rapid.IntRange(1, 20).Draw(rt, "frames") {
			from := rapid.IntRange(0, n-1).Draw(rt, "from")
			frame := append([]byte{byte(k), byte(from)}, rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(rt, "frame")...)
			send(t, conns[from], frame)
			for i, c := range conns {
				if i != from {
					// The next frame that arrives is this one: an echo of an
					// earlier frame to its sender would show here.
					if got := recv(t, c); !bytes.Equal(got, frame) {
						rt.Fatalf("port %d got % x, want % x", i, got, frame)
					}
				}
			}
		}
	})
}

func TestSlowPortDelaysNobody(t *testing.T) {
	h := link.New()
	defer h.Close()
	a, b := plug(t, h, "a"), plug(t, h, "b")
	plug(t, h, "stuck") // never reads
	for i := range 3000 {
		want := []byte{byte(i), byte(i >> 8)}
		send(t, a, want)
		if got := recv(t, b); !bytes.Equal(got, want) {
			t.Fatalf("frame %d: got %x", i, got)
		}
	}
}

func TestHostileFraming(t *testing.T) {
	for name, head := range map[string][]byte{
		"too long":  {0xff, 0xff, 0xff, 0xff},
		"empty":     {0, 0, 0, 0},
		"just over": binary.BigEndian.AppendUint32(nil, link.MaxFrame+1),
	} {
		t.Run(name, func(t *testing.T) {
			h := link.New()
			defer h.Close()
			a, b, c := plug(t, h, "a"), plug(t, h, "b"), plug(t, h, "c")
			if _, err := a.Write(head); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("the port that broke the framing: %v, want EOF", err)
			}
			send(t, b, []byte("still"))
			if got := recv(t, c); string(got) != "still" {
				t.Fatalf("the others got %q", got)
			}
		})
	}
}

func TestReplacedAndClosed(t *testing.T) {
	h := link.New()
	a := plug(t, h, "a")
	b1 := plug(t, h, "b")
	b2 := plug(t, h, "b")
	if _, err := b1.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("replaced port: %v, want EOF", err)
	}
	send(t, a, []byte("x"))
	if got := recv(t, b2); string(got) != "x" {
		t.Fatalf("new port got %q", got)
	}
	h.Unplug("b")
	h.Unplug("nobody")
	if _, err := b2.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("unplugged port: %v, want EOF", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	if err := h.Plug("late", near); err == nil {
		t.Fatal("plugging into a closed hub succeeded")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("late port: %v, want EOF", err)
	}
}

func FuzzPort(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 'x', 0, 0, 0, 9})
	f.Add([]byte{0xff, 0, 0, 1})
	f.Fuzz(func(t *testing.T, wire []byte) {
		h := link.New()
		a := plug(t, h, "a")
		if _, err := a.Write(wire); err != nil && err != io.ErrClosedPipe {
			t.Fatal(err)
		}
		a.Close()
		h.Close()
	})
}
