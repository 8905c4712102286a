package vm_test

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"refbox/vm"
)

// listener is a port whose queue takes one connection, and one that is being taken.
func listener(t *testing.T) (fd int, addr string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fd)
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "listener")
	l, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fd, l.Addr().String()
}

// A queue that has room again is found at once, not when the kernel asks again.
func TestDialFindsRoom(t *testing.T) {
	fd, addr := listener(t)
	var queued []net.Conn
	for { // until the queue is full
		c, err := net.DialTimeout("tcp", addr, 50*time.Millisecond)
		if err != nil {
			break
		}
		queued = append(queued, c)
	}
	defer func() {
		for _, c := range queued {
			c.Close()
		}
	}()
	if len(queued) == 0 {
		t.Fatal("the queue was full from the start")
	}
	room := time.AfterFunc(100*time.Millisecond, func() {
		if n, _, err := unix.Accept(fd); err == nil {
			unix.Close(n)
		}
	})
	defer room.Stop()
	began := time.Now()
	c, err := vm.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("connected after %v, before there was room", took)
	} else {
		t.Logf("connected %v after there was room", took-100*time.Millisecond)
	}
}

func TestDialEnds(t *testing.T) {
	fd, addr := listener(t)
	for range 8 {
		if c, err := net.DialTimeout("tcp", addr, 50*time.Millisecond); err == nil {
			defer c.Close()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
	defer cancel()
	var timeout net.Error
	if c, err := vm.Dial(ctx, addr); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a queue without room: %v, %v", c, err)
	}
	unix.Close(fd)
	if c, err := vm.Dial(t.Context(), addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port of nobody's: %v, %v", c, err)
	}
}
