package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is the far end of a served disk.
type client struct {
	net.Conn
	served chan error
	size   int64
}

func serve(t testing.TB, d *Disk) *client {
	t.Helper()
	near, far := net.Pipe()
	c := &client{Conn: far, served: make(chan error, 1)}
	go func() { c.served <- d.Serve(near) }()
	far.SetDeadline(time.Now().Add(time.Minute))
	hello := make([]byte, 18)
	must(t, read(far, hello))
	be := binary.BigEndian
	_, err := far.Write(be.AppendUint32(nil, 3))
	must(t, err)
	option := func(n uint32) []byte {
		b := be.AppendUint64(nil, magicOption)
		_, err := far.Write(be.AppendUint32(be.AppendUint32(b, n), 0))
		must(t, err)
		head := make([]byte, 20)
		must(t, read(far, head))
		data := make([]byte, be.Uint32(head[16:]))
		must(t, read(far, data))
		return append(head[12:16], data...)
	}
	if got := be.Uint32(option(8)); got != repUnsupported {
		t.Fatalf("an unknown option is answered %x", got)
	}
	info := option(optGo)
	c.size = int64(be.Uint64(info[6:]))
	must(t, read(far, make([]byte, 20))) // the acknowledgement
	return c
}

// serveSocket serves the first client that comes; served receives how that ended.
func serveSocket(t *testing.T, d *Disk) (socket string, served <-chan error) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = d.Serve(c)
		}
		ended <- err
	}()
	return socket, ended
}

func read(r io.Reader, b []byte) error { _, err := io.ReadFull(r, b); return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *client) ask(cmd, flags uint16, off int64, n int, data []byte) (uint32, []byte, error) {
	be := binary.BigEndian
	b := be.AppendUint16(be.AppendUint16(be.AppendUint32(nil, magicRequest), flags), cmd)
	b = be.AppendUint32(be.AppendUint64(be.AppendUint64(b, 7), uint64(off)), uint32(n))
	if _, err := c.Write(append(b, data...)); err != nil {
		return 0, nil, err
	}
	head := make([]byte, 16)
	if err := read(c, head); err != nil {
		return 0, nil, err
	}
	if code := be.Uint32(head[4:]); code != 0 || cmd != cmdRead {
		return code, nil, nil
	}
	got := make([]byte, n)
	return 0, got, read(c, got)
}

// A disk behaves as memory does; after a cut it is as it was at the last flush,
// after any other end as it was at the end.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		const size = 8 * block
		f, err := os.CreateTemp(dir, "disk")
		must(t, err)
		f.Close()
		defer os.Remove(f.Name())
		d, err := Open(f.Name(), size)
		must(t, err)
		c := serve(t, d)
		if c.size != size {
			rt.Fatalf("size %d", c.size)
		}
		now, safe := make([]byte, size), make([]byte, size)
		for range rapid.IntRange(1, 30).Draw(rt, "requests") {
			off := rapid.IntRange(0, size-1).Draw(rt, "off")
			n := rapid.IntRange(1, size-off).Draw(rt, "n")
			flags := rapid.SampledFrom([]uint16{0, 0, flagFUA}).Draw(rt, "flags")
			cmd := rapid.SampledFrom([]uint16{cmdRead, cmdWrite, cmdWrite, cmdZeroes, cmdTrim, cmdFlush}).Draw(rt, "cmd")
			var data []byte
			if cmd == cmdWrite {
				data = bytes.Repeat([]byte{rapid.Byte().Draw(rt, "byte")}, n)
			}
			code, got, err := c.ask(cmd, flags, int64(off), n, data)
			if err != nil || code != 0 {
				rt.Fatalf("%d, %v", code, err)
			}
			switch cmd {
			case cmdRead:
				if !bytes.Equal(got, now[off:off+n]) {
					rt.Fatalf("read %d at %d: not what was written", n, off)
				}
			case cmdWrite:
				copy(now[off:], data)
			case cmdZeroes:
				clear(now[off : off+n])
			case cmdTrim:
				if from, to := (off+block-1)/block*block, (off+n)/block*block; from < to {
					clear(now[from:to])
				}
			}
			if cmd == cmdFlush || flags == flagFUA && cmd != cmdRead {
				copy(safe, now)
			}
		}
		want := now
		if rapid.Bool().Draw(rt, "cut") {
			want = safe
			d.Cut()
			if changed := !bytes.Equal(now, safe); changed && d.Lost() == 0 {
				rt.Fatal("a cut that lost something counts nothing")
			}
		}
		c.Close()
		must(t, <-c.served)
		got, err := os.ReadFile(f.Name())
		must(t, err)
		if got = append(got, make([]byte, size-len(got))...); !bytes.Equal(got, want) {
			rt.Fatal("the file is not what the disk was to leave")
		}
	})
}

func newDisk(t testing.TB, size int64) (*Disk, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disk")
	must(t, os.WriteFile(name, nil, 0o600))
	d, err := Open(name, size)
	must(t, err)
	return d, name
}

func TestFaults(t *testing.T) {
	d, _ := newDisk(t, 1<<20)
	c := serve(t, d)
	d.FailWrites(true)
	for _, cmd := range []uint16{cmdFlush, cmdZeroes, cmdTrim} {
		if code, _, err := c.ask(cmd, 0, 0, block, nil); err != nil || code != uint32(unix.EIO) {
			t.Errorf("request %d of a broken disk: %d, %v", cmd, code, err)
		}
	}
	if code, _, err := c.ask(cmdRead, 0, 0, block, nil); err != nil || code != 0 {
		t.Errorf("reading a broken disk: %d, %v", code, err)
	}
	d.FailWrites(false)
	d.Stall(true)
	answered := make(chan uint32)
	go func() {
		code, _, _ := c.ask(cmdFlush, 0, 0, 0, nil)
		answered <- code
	}()
	select {
	case <-answered:
		t.Error("a stalled disk answers")
	case <-time.After(50 * time.Millisecond):
	}
	d.Stall(false)
	if code := <-answered; code != 0 {
		t.Errorf("after the stall: %d", code)
	}
	for _, r := range []struct{ off, n int64 }{{1 << 20, 1}, {-1, 1}, {0, 1<<20 + 1}, {1<<63 - 1, 2}} {
		if code, _, err := c.ask(cmdRead, 0, r.off, int(r.n), nil); err != nil || code != uint32(unix.EINVAL) {
			t.Errorf("reading %d at %d: %d, %v", r.n, r.off, code, err)
		}
	}
	c.Close()
	must(t, <-c.served)
}

// A host whose own disk is full is not taken for the guest's fault, nor is the guest
// told of it: nothing is answered any more, and whoever owns the disk hears why.
func TestHostIsFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this host lacks /dev/full: ", err)
	}
	for _, tt := range []struct {
		name string
		cmd  uint16
	}{{"flush", cmdFlush}, {"write through", cmdWrite}} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Open("/dev/full", 1<<20)
			must(t, err)
			c := serve(t, d)
			data := bytes.Repeat([]byte{1}, block)
			if code, _, err := c.ask(cmdWrite, 0, 0, block, data); err != nil || code != 0 {
				t.Fatalf("what the cache can take: %d, %v", code, err)
			}
			if d.Err() != nil {
				t.Fatal("failed before the host was asked: ", d.Err())
			}
			answered := make(chan error, 1)
			go func() {
				if tt.cmd == cmdFlush {
					data = nil
				}
				_, _, err := c.ask(tt.cmd, flagFUA, 0, len(data), data)
				answered <- err
			}()
			<-d.Failed()
			if !errors.Is(d.Err(), unix.ENOSPC) {
				t.Errorf("why: %v", d.Err())
			}
			c.Close()
			if err := <-answered; err == nil {
				t.Error("the guest was answered")
			}
			if err := <-c.served; !errors.Is(err, unix.ENOSPC) {
				t.Errorf("serving ended with %v", err)
			}
		})
	}
}

// A full cache keeps what it must and takes no more memory.
func TestFullCache(t *testing.T) {
	d, name := newDisk(t, 2*MaxCached)
	c := serve(t, d)
	data := bytes.Repeat([]byte{1}, 1<<20)
	for off := int64(0); off <= MaxCached; off += int64(len(data)) {
		if code, _, err := c.ask(cmdWrite, 0, off, len(data), data); err != nil || code != 0 {
			t.Fatal(code, err)
		}
		d.mu.Lock()
		n := len(d.cache)
		d.mu.Unlock()
		if n > MaxCached/block {
			t.Fatalf("%d blocks are cached", n)
		}
	}
	d.Cut()
	c.Close()
	must(t, <-c.served)
	if st, err := os.Stat(name); err != nil || st.Size() != MaxCached || d.Lost() != 1<<20 {
		t.Errorf("the file has %d bytes, %d are lost, %v", st.Size(), d.Lost(), err)
	}
}

// QEMU's own client agrees on the protocol.
func TestQEMU(t *testing.T) {
	tool, err := exec.LookPath("qemu-io")
	if err != nil {
		t.Skip("this host lacks qemu-io (package qemu-utils)")
	}
	d, name := newDisk(t, 1<<20)
	socket, served := serveSocket(t, d)
	out, err := exec.Command(tool, "-f", "raw", "nbd+unix:///?socket="+socket,
		"-c", "write -P 7 4096 8192", "-c", "flush", "-c", "write -z 4096 4096", "-c", "discard 0 4096", "-c", "read -P 0 4096 4096", "-c", "read -P 7 8192 4096").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("failed")) {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, <-served)
	got, err := os.ReadFile(name)
	must(t, err)
	if want := append(make([]byte, 8192), bytes.Repeat([]byte{7}, 4096)...); !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes", len(got))
	}
}

func FuzzServe(f *testing.F) {
	be := binary.BigEndian
	f.Add([]byte{0, 0, 0, 3})
	opt := be.AppendUint32(be.AppendUint32(be.AppendUint64([]byte{0, 0, 0, 3}, magicOption), optGo), 0)
	f.Add(append(opt, be.AppendUint32(be.AppendUint64(make([]byte, 16), 1<<62), 1<<31)...))
	f.Fuzz(func(t *testing.T, wire []byte) {
		d, _ := newDisk(t, 1<<16)
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- d.Serve(near) }()
		go io.Copy(io.Discard, far)
		far.Write(wire)
		far.Close()
		if err := <-served; err != nil && len(fmt.Sprint(err)) > 500 {
			t.Error(err)
		}
	})
}
