package control

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// What a person at a terminal sends through a socket is in frames: a byte for the
// kind, two for the length, and so many bytes. What the terminal prints comes back
// as it is.
const (
	frameKeys = 'k' // what is typed
	frameSize = 's' // columns and rows, two bytes each
	maxFrame  = 1<<16 - 1
)

// terminal is a terminal whose desk is in another process.
type terminal struct {
	console
	mu sync.Mutex // a frame is written in one piece
}

func (t *terminal) frame(kind byte, p []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	head := binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(p)))
	_, err := t.UnixConn.Write(append(head, p...))
	return err
}

// Write types.
func (t *terminal) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		k := min(len(p), maxFrame)
		if err = t.frame(frameKeys, p[:k]); err == nil {
			n, p = n+k, p[k:]
		}
	}
	return n, err
}

// Resize implements Terminal.
func (t *terminal) Resize(s Size) error {
	s = s.bounded()
	b := binary.BigEndian.AppendUint16(nil, uint16(s.Cols))
	return t.frame(frameSize, binary.BigEndian.AppendUint16(b, uint16(s.Rows)))
}

// bounded is a size that fits into a frame.
func (s Size) bounded() Size {
	return Size{min(max(s.Cols, 1), 1<<12), min(max(s.Rows, 1), 1<<12)}
}

// sit answers a call for a terminal.
func sit(ctx context.Context, conn *net.UnixConn, in *bufio.Reader, desk Desk, r request) {
	// The caller may go while the machine is still waited for.
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() { // ends when the caller sends something, or is gone
		defer close(gone)
		if _, err := in.Peek(1); err != nil {
			cancel()
		}
	}()
	t, err := desk.Sit(opening, r.Author, r.Territory, r.Machine, r.Size.bounded())
	if err != nil {
		_ = writeLine(conn, answer(err))
		conn.Close()
		<-gone
		return
	}
	if err := writeLine(conn, answer(nil)); err != nil {
		t.Close()
		conn.Close()
		<-gone
		return
	}
	var typing sync.WaitGroup
	typing.Go(func() {
		<-gone
		_ = typeFrames(t, in)
		t.Close() // the caller has left: this ends the reading below
	})
	_, _ = io.Copy(conn, t)
	t.Close()
	conn.Close()
	typing.Wait()
}

// typeFrames types what comes in frames, until they end.
func typeFrames(t Terminal, in io.Reader) error {
	buf := make([]byte, maxFrame)
	for {
		var head [3]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		p := buf[:binary.BigEndian.Uint16(head[1:])]
		if _, err := io.ReadFull(in, p); err != nil {
			return err
		}
		switch {
		case head[0] == frameKeys:
			if _, err := t.Write(p); err != nil {
				return err
			}
		case head[0] == frameSize && len(p) == 4:
			s := Size{int(binary.BigEndian.Uint16(p)), int(binary.BigEndian.Uint16(p[2:]))}
			if err := t.Resize(s.bounded()); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a frame of the unknown kind %q", head[0])
		}
	}
}
