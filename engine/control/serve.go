package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A call is one connection: one line of JSON goes in, one comes back. An attach
// that was granted turns the connection into the console itself, both ways, until
// either side closes. So does a sit, but what the caller sends then is in frames.
type request struct {
	Op        string `json:"op"` // ping, end, note, attach, sit, rule
	Author    string `json:"author,omitempty"`
	Text      string `json:"text,omitempty"` // of a note; the reason of an end or a ruling
	Territory string `json:"territory,omitempty"`
	Machine   string `json:"machine,omitempty"`
	// Of a ruling.
	Action    Action `json:"action,omitempty"`
	Milestone string `json:"milestone,omitempty"`
	ByMS      int64  `json:"by_ms,omitempty"`
	Fault     *Fault `json:"fault,omitempty"`
	Target    string `json:"target,omitempty"`
	// Of a terminal.
	Size Size `json:"size,omitzero"`
}

type response struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	// Of an attach: how to log in at the console.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
}

const (
	maxRequest = 64 << 10 // bytes of a line, either way
	maxCalls   = 64       // at once; more wait
	maxPath    = 107      // bytes of a Unix socket's path
	lineTime   = 10 * time.Second
)

// privatePrefix begins the name of a folder that a socket is made in.
const privatePrefix = ".s"

// Serve offers a desk on a Unix socket of mode 0600 until ctx ends; it then ends
// the calls that run and waits for them. A socket that a dead process left is
// replaced; one that is answered is not, and neither is anything else of that
// name. Serve returns nil when ctx ended it.
func Serve(ctx context.Context, socket string, desk Desk) error {
	l, err := listen(socket)
	if err != nil {
		return err
	}
	defer os.Remove(socket)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	slots := make(chan struct{}, maxCalls)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			l.Close()
			return fmt.Errorf("serve the referee's desk at %s: %w", socket, err)
		}
		calls.Go(func() {
			defer func() { <-slots }()
			serve(ctx, conn.(*net.UnixConn), desk)
		})
	}
}

func listen(socket string) (net.Listener, error) {
	if len(socket) > maxPath {
		return nil, fmt.Errorf("the path of the desk's socket is longer than %d bytes: %s; set XDG_RUNTIME_DIR to a shorter folder", maxPath, socket)
	}
	info, err := os.Lstat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("serve the referee's desk: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("serve the referee's desk: %s is there and is no socket; remove it", socket)
	default:
		if conn, err := net.DialTimeout("unix", socket, lineTime); err == nil {
			conn.Close()
			return nil, fmt.Errorf("another process serves a referee's desk at %s", socket)
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the socket that a dead process left: %w", err)
		}
	}
	// Nobody else may get in between the bind and the chmod, so that happens in
	// a folder of our own.
	dir, err := os.MkdirTemp(filepath.Dir(socket), privatePrefix)
	if err != nil {
		return nil, fmt.Errorf("serve the referee's desk: %w", err)
	}
	defer os.RemoveAll(dir)
	private := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("serve the referee's desk: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(private, 0o600); err == nil {
		err = os.Rename(private, socket)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("serve the referee's desk: %w", err)
	}
	return l, nil
}

// Sweep removes the sockets in a folder that dead processes left: those that
// nobody answers at, and half-made ones.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("sweep the runtime folder: %w", err)
	}
	var problems []error
	for _, e := range entries {
		full := filepath.Join(dir, e.Name())
		switch {
		case e.Type() == fs.ModeSocket:
			conn, err := net.DialTimeout("unix", full, lineTime)
			if err == nil {
				conn.Close()
				continue
			}
			if errors.Is(err, syscall.ECONNREFUSED) {
				problems = append(problems, os.Remove(full))
			}
		case e.IsDir() && strings.HasPrefix(e.Name(), privatePrefix):
			// It lives for the moment between a bind and a rename.
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > lineTime {
				problems = append(problems, os.RemoveAll(full))
			}
		}
	}
	return errors.Join(problems...)
}

// serve answers one call. The call's context ends when the caller goes.
func serve(ctx context.Context, conn *net.UnixConn, desk Desk) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(lineTime))
	in := bufio.NewReaderSize(conn, maxRequest)
	var r request
	if err := readLine(in, &r); err != nil {
		_ = writeLine(conn, response{Error: err.Error()})
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	switch r.Op {
	case "attach":
		attach(ctx, conn, in, desk, r)
		return
	case "sit":
		sit(ctx, conn, in, desk, r)
		return
	}
	gone := make(chan struct{})
	go func() { // ends when the connection is closed
		defer close(gone)
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	var err error
	switch r.Op {
	case "ping":
	case "end":
		err = desk.End(ctx, r.Author, r.Text)
	case "note":
		err = desk.Note(ctx, r.Author, r.Text)
	case "rule":
		ruling := Ruling{Action: r.Action, Territory: r.Territory, Milestone: r.Milestone, Reason: r.Text,
			By: time.Duration(min(max(r.ByMS, 0), MaxExtension.Milliseconds()+1)) * time.Millisecond}
		if ruling.Target = r.Target; r.Fault != nil {
			ruling.Fault = *r.Fault
		}
		if err = ruling.Check(); err == nil {
			err = desk.Rule(ctx, r.Author, ruling)
		}
	default:
		err = fmt.Errorf("the referee's desk knows no %.40q", r.Op)
	}
	_ = writeLine(conn, answer(err))
	conn.Close()
	<-gone
}

func attach(ctx context.Context, conn *net.UnixConn, in *bufio.Reader, desk Desk, r request) {
	console, err := desk.Attach(ctx, r.Author, r.Territory, r.Machine)
	if err != nil {
		_ = writeLine(conn, answer(err))
		return
	}
	granted := answer(nil)
	if l, ok := LoginAt(console); ok {
		granted.User, granted.Password = l.User, l.Password
	}
	if err := writeLine(conn, granted); err != nil {
		console.Close()
		return
	}
	var typing sync.WaitGroup
	typing.Go(func() {
		_, _ = io.Copy(console, in)
		console.Close() // the caller has left: this ends the reading below
	})
	_, _ = io.Copy(conn, console)
	console.Close()
	conn.Close()
	typing.Wait()
}

func answer(err error) response {
	if err == nil {
		return response{OK: true}
	}
	text := err.Error()
	if len(text) > maxRequest/4 {
		text = text[:maxRequest/4]
	}
	return response{Error: text}
}

// readLine reads one line of at most the reader's size.
func readLine(r *bufio.Reader, into any) error {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return fmt.Errorf("the line is longer than %d bytes", maxRequest)
	case errors.Is(err, io.EOF):
		return errors.New("the connection ended before the line did")
	case err != nil:
		return err
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("the line is not what was expected: %w", err)
	}
	return nil
}

func writeLine(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// refused says that nobody answers at a socket.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
