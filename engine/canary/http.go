package canary

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"refbox/vm"
)

// answer is what came of one request.
type answer struct {
	sent   bool // something of it was, or may have been
	status int  // 0 when there was no answer
	body   []byte
}

const (
	maxBody   = 4 << 10 // a record's value is far shorter
	maxHeader = 16 << 10
)

// exchange makes one request on a connection of its own: on one that is kept, what ended
// it would be taken for the end of the next request, and a request that found it closed
// would be sent twice. It ends when ctx does.
func exchange(ctx context.Context, addr, method, path string, body []byte) (a answer) {
	req, err := http.NewRequest(method, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return a
	}
	req.Close = true
	c, err := vm.Dial(ctx, addr)
	if err != nil {
		// A connection that was not made carried nothing; but a timeout is never failure.
		a.sent = timedOut(err)
		return a
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// A server may answer and close before it has read everything, so that a failed write
	// is not the end.
	out := &counted{w: c}
	werr := req.Write(out)
	if a.sent = out.n > 0 || werr != nil && timedOut(werr); !a.sent {
		return a
	}
	in := &io.LimitedReader{R: c, N: maxHeader}
	r := bufio.NewReader(in)
	for range 4 { // interim answers, then the one
		res, err := http.ReadResponse(r, req)
		if err != nil {
			return a
		}
		if res.StatusCode < 200 {
			continue
		}
		in.N = maxBody + maxHeader
		b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
		if err != nil && method == http.MethodGet {
			return a // what is there of a record is none
		}
		a.status, a.body = res.StatusCode, b
		return a
	}
	return a
}

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) ||
		(errors.As(err, &n) && n.Timeout())
}

// counted counts what was handed over.
type counted struct {
	w io.Writer
	n int
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}
