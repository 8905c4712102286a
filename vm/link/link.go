// Package link is a private Ethernet between machines: a hub whose ports are
// stream connections that carry frames as QEMU's "-netdev stream" does, each
// frame behind its length in four big-endian bytes.
//
// What it promises: a frame that enters one port leaves every other port once,
// in order, unless that port is behind by more than its queue; a port that is
// slow, stopped, or hostile delays no other; a port that breaks the framing is
// closed; after Close no goroutine is left.
//
// A link can be made worse than it is, one direction at a time: see Hub.Impair.
package link

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"refbox/vm"
)

// MaxFrame is the largest frame that a port accepts: QEMU's own buffer for
// offloaded packets.
const MaxFrame = 68 << 10

// queueFrames bounds what waits for one port. At the usual frame size it is
// less than a second of a busy link.
const queueFrames = 512

// lateFrames bounds what a port holds back of delayed directions.
const lateFrames = 4096

// Hub connects its ports. The zero value is not usable; call New.
type Hub struct {
	mu     sync.Mutex
	ports  map[string]*port
	ways   map[way]vm.Impairment
	closed bool
	all    sync.WaitGroup
}

type port struct {
	conn net.Conn
	out  chan frame
	gone chan struct{}
	once sync.Once
}

// New returns a hub without ports.
func New() *Hub { return &Hub{ports: map[string]*port{}, ways: map[way]vm.Impairment{}} }

// Plug makes conn the port called name and serves it until the far end closes
// it, it breaks the framing, it is unplugged, or the hub is closed. The hub
// owns conn from here on, also when Plug fails. A port of that name that is
// still plugged in is replaced: its machine was started anew.
func (h *Hub) Plug(name string, conn net.Conn) error {
	p := &port{conn: conn, out: make(chan frame, queueFrames), gone: make(chan struct{})}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return errors.Join(fmt.Errorf("plugging %q in: the link is closed", name), conn.Close())
	}
	old := h.ports[name]
	h.ports[name] = p
	h.all.Add(2)
	h.mu.Unlock()
	if old != nil {
		old.close()
	}
	go func() {
		defer h.all.Done()
		h.read(name, p)
	}()
	go func() {
		defer h.all.Done()
		p.write()
	}()
	return nil
}

// Unplug closes the port called name; one that is not there is no error.
func (h *Hub) Unplug(name string) {
	h.mu.Lock()
	p := h.ports[name]
	delete(h.ports, name)
	h.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// Close closes every port and returns when all have ended.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	ports := h.ports
	h.ports = map[string]*port{}
	h.mu.Unlock()
	for _, p := range ports {
		p.close()
	}
	h.all.Wait()
	return nil
}

func (h *Hub) read(name string, p *port) {
	defer func() {
		h.mu.Lock()
		if h.ports[name] == p {
			delete(h.ports, name)
		}
		h.mu.Unlock()
		p.close()
	}()
	r := bufio.NewReaderSize(p.conn, MaxFrame)
	for {
		wire, err := readFrame(r)
		if err != nil {
			return
		}
		h.forward(name, p, wire)
	}
}

// forward hands one frame, with its length in front, to every port but the one
// it came from. The slice is shared by all receivers and never changed.
func (h *Hub) forward(name string, from *port, wire []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for to, p := range h.ports {
		if p == from {
			continue
		}
		f, ok := pass(h.ways[way{name, to}], wire)
		if !ok {
			continue
		}
		select {
		case p.out <- f:
		default: // behind: an Ethernet drops
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > MaxFrame {
		return nil, fmt.Errorf("frame of %d bytes, at most %d are allowed", n, MaxFrame)
	}
	wire := make([]byte, 4+n)
	copy(wire, head[:])
	_, err := io.ReadFull(r, wire[4:])
	return wire, err
}

// write writes each frame when it is due, of those due at once the first first: a
// delayed direction holds up no other.
func (p *port) write() {
	var late []frame // by due
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if len(late) > 0 {
			timer.Reset(time.Until(late[0].due))
			due = timer.C
		}
		var f frame
		select {
		case <-p.gone:
			return
		case f = <-p.out:
			if !f.due.IsZero() {
				if len(late) < lateFrames {
					at, _ := slices.BinarySearchFunc(late, f, func(a, b frame) int {
						if a.due.After(b.due) {
							return 1
						}
						return -1
					})
					late = slices.Insert(late, at, f)
				}
				continue
			}
		case <-due:
			f, late = late[0], late[1:]
		}
		if _, err := p.conn.Write(f.wire); err != nil {
			p.close()
			return
		}
	}
}

func (p *port) close() {
	p.once.Do(func() {
		close(p.gone)
		p.conn.Close()
	})
}
