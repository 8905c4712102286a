package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ErrNoDesk says that no heat runs behind a socket.
var ErrNoDesk = errors.New("no heat is running there")

// Dial reaches a desk that another process serves. The error Is ErrNoDesk when
// nobody answers.
func Dial(socket string) (Desk, error) {
	c := client{socket}
	ctx, cancel := context.WithTimeout(context.Background(), lineTime)
	defer cancel()
	if err := c.do(ctx, request{Op: "ping"}); err != nil {
		return nil, err
	}
	return c, nil
}

// client calls a desk in another process; each call is a connection.
type client struct{ socket string }

func (c client) End(ctx context.Context, author, reason string) error {
	return c.do(ctx, request{Op: "end", Author: author, Text: reason})
}

func (c client) Note(ctx context.Context, author, text string) error {
	return c.do(ctx, request{Op: "note", Author: author, Text: text})
}

func (c client) Rule(ctx context.Context, author string, r Ruling) error {
	q := request{Op: "rule", Author: author, Text: r.Reason, Territory: r.Territory, Milestone: r.Milestone,
		Action: r.Action, ByMS: r.By.Milliseconds(), Target: r.Target}
	if r.Fault != (Fault{}) {
		q.Fault = &r.Fault
	}
	return c.do(ctx, q)
}

func (c client) Attach(ctx context.Context, author, territory, machine string) (io.ReadWriteCloser, error) {
	conn, in, granted, err := c.call(ctx, request{Op: "attach", Author: author, Territory: territory, Machine: machine})
	if err != nil {
		return nil, err
	}
	return &console{UnixConn: conn, in: in, login: Login{granted.User, granted.Password}}, nil
}

func (c client) Sit(ctx context.Context, author, territory, machine string, size Size) (Terminal, error) {
	conn, in, _, err := c.call(ctx, request{Op: "sit", Author: author, Territory: territory, Machine: machine, Size: size})
	if err != nil {
		return nil, err
	}
	return &terminal{console: console{UnixConn: conn, in: in}}, nil
}

func (c client) do(ctx context.Context, r request) error {
	conn, _, _, err := c.call(ctx, r)
	if err != nil {
		return err
	}
	return conn.Close()
}

// call sends a request and reads its answer. The context bounds the call alone.
func (c client) call(ctx context.Context, r request) (*net.UnixConn, *bufio.Reader, response, error) {
	var d net.Dialer
	dialled, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		if refused(err) {
			err = ErrNoDesk
		}
		return nil, nil, response{}, fmt.Errorf("reach the referee's desk at %s: %w", c.socket, err)
	}
	conn := dialled.(*net.UnixConn)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	in := bufio.NewReaderSize(conn, maxRequest)
	var answer response
	if err = writeLine(conn, r); err == nil {
		err = readLine(in, &answer)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = fmt.Errorf("the referee's desk at %s: %w", c.socket, err)
	case !answer.OK:
		err = errors.New(answer.Error)
	default:
		return conn, in, answer, nil
	}
	conn.Close()
	return nil, nil, response{}, err
}

// console is a machine's console in another process.
type console struct {
	*net.UnixConn
	in    *bufio.Reader
	login Login
}

// Login implements LoginAt.
func (c *console) Login() Login { return c.login }

func (c *console) Read(p []byte) (int, error) { return c.in.Read(p) }

// Close detaches, and returns when the desk has recorded that, as it does when
// the desk is in this process.
func (c *console) Close() error {
	if err := c.CloseWrite(); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(lineTime))
		_, _ = io.Copy(io.Discard, c.UnixConn)
	}
	return c.UnixConn.Close()
}
