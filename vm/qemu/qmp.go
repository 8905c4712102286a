package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"refbox/vm"
)

// maxQMPLine bounds one message of QEMU's. The longest real one that we ask
// for is a few KiB; a QEMU that a guest has taken over could send anything.
const maxQMPLine = 1 << 20

// qmpEvent is one asynchronous message.
type qmpEvent struct {
	Name string
	Data json.RawMessage
}

// qmpClient speaks QMP over a connected Unix socket. Commands may be sent from
// any goroutine and are answered in order. When the connection ends, for any
// reason, done is closed and every call returns an error that Is
// vm.ErrTransport.
type qmpClient struct {
	conn *net.UnixConn
	// onEvent is called from the reading goroutine, in order; it must not block
	// and must not execute commands.
	onEvent func(qmpEvent)
	done    chan struct{}

	mu      sync.Mutex
	nextID  uint64
	waiting map[uint64]chan qmpReply
	err     error
}

type qmpReply struct {
	result json.RawMessage
	err    error
}

// qmpError is what QEMU answers to a command that it understood and declined.
type qmpError struct {
	Command, Class, Desc string
}

func (e *qmpError) Error() string {
	return fmt.Sprintf("QEMU declined %s: %s", e.Command, e.Desc)
}

// dialQMP takes over conn, reads the greeting and leaves negotiation mode.
func dialQMP(ctx context.Context, conn *net.UnixConn, onEvent func(qmpEvent)) (*qmpClient, error) {
	c := &qmpClient{conn: conn, onEvent: onEvent, done: make(chan struct{}), waiting: map[uint64]chan qmpReply{}}
	greeted := make(chan struct{})
	go c.read(greeted)
	select {
	case <-greeted:
	case <-c.done:
		return nil, c.failure()
	case <-ctx.Done():
		c.close()
		return nil, fmt.Errorf("waiting for QEMU's greeting: %w", context.Cause(ctx))
	}
	if err := c.run(ctx, "qmp_capabilities", nil, nil); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// close ends the connection and waits for the reading goroutine.
func (c *qmpClient) close() {
	c.conn.Close()
	<-c.done
}

func (c *qmpClient) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// run executes a command and decodes its return value into out, which may be
// nil. With a file it is handed over along with the command (for getfd).
func (c *qmpClient) run(ctx context.Context, command string, args any, out any, file ...*os.File) error {
	reply := make(chan qmpReply, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.nextID++
	id := c.nextID
	msg, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        uint64 `json:"id"`
	}{command, args, id})
	if err != nil {
		c.mu.Unlock()
		return fmt.Errorf("encoding %s: %w", command, err)
	}
	c.waiting[id] = reply
	// Written under the lock: commands are small and QEMU reads them in its
	// main loop, and a message must not be torn by another.
	err = c.send(append(msg, '\n'), file)
	if err != nil {
		delete(c.waiting, id)
	}
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("sending %s to QEMU: %w: %w", command, vm.ErrTransport, err)
	}
	select {
	case r := <-reply:
		if r.err != nil {
			if q, ok := r.err.(*qmpError); ok {
				q.Command = command
			}
			return r.err
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(r.result, out); err != nil {
			return fmt.Errorf("decoding QEMU's answer to %s: %w", command, err)
		}
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		return fmt.Errorf("waiting for QEMU to answer %s: %w", command, context.Cause(ctx))
	}
}

func (c *qmpClient) send(msg []byte, file []*os.File) error {
	if len(file) == 0 {
		_, err := c.conn.Write(msg)
		return err
	}
	n, _, err := c.conn.WriteMsgUnix(msg, unix.UnixRights(int(file[0].Fd())), nil)
	if err == nil && n < len(msg) {
		_, err = c.conn.Write(msg[n:])
	}
	return err
}

func (c *qmpClient) read(greeted chan struct{}) {
	err := c.readAll(greeted)
	c.conn.Close()
	c.mu.Lock()
	c.err = fmt.Errorf("QMP: %w: %w", vm.ErrTransport, err)
	waiting := c.waiting
	c.waiting = map[uint64]chan qmpReply{}
	c.mu.Unlock()
	for _, w := range waiting {
		w <- qmpReply{err: c.err}
	}
	close(c.done)
}

func (c *qmpClient) readAll(greeted chan struct{}) error {
	sc := bufio.NewScanner(c.conn)
	sc.Buffer(make([]byte, 0, 16<<10), maxQMPLine)
	first := true
	for sc.Scan() {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var m struct {
			QMP    json.RawMessage `json:"QMP"`
			Event  string          `json:"event"`
			Data   json.RawMessage `json:"data"`
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Class string `json:"class"`
				Desc  string `json:"desc"`
			} `json:"error"`
			ID *uint64 `json:"id"`
		}
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			return fmt.Errorf("QEMU sent what is not QMP: %w", err)
		}
		switch {
		case m.Event != "":
			c.onEvent(qmpEvent{Name: m.Event, Data: m.Data})
		case m.QMP != nil && first:
			first = false
			close(greeted)
		case m.ID != nil && (m.Return != nil || m.Error != nil):
			r := qmpReply{result: m.Return}
			if m.Error != nil {
				r = qmpReply{err: &qmpError{Class: m.Error.Class, Desc: m.Error.Desc}}
			}
			c.mu.Lock()
			w := c.waiting[*m.ID]
			delete(c.waiting, *m.ID)
			c.mu.Unlock()
			if w != nil {
				w <- r
			}
		default:
			return errors.New("QEMU sent a message of no known form")
		}
	}
	if err := sc.Err(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return io.EOF
}

// socketPair returns a connected pair of Unix sockets: ours as a connection,
// the other as a file to hand to a child. Nothing of it has a name in the file
// system, so nobody else can connect and nothing can be left behind.
func socketPair() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock() // no child is to have it between the two calls
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "socketpair"), os.NewFile(uintptr(fds[1]), "socketpair")
	c, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("making a socket pair: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}
