package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"refbox/vm"
)

// ErrAnswer is what the agent itself reported of a request that it could not
// carry out.
var ErrAnswer = errors.New("the guest reported")

const (
	maxText   = 512 // of an error text from the guest
	maxOutput = 1 << 20
	maxSocks  = 4096
	chunk     = 1 << 20 // of a stream of files
)

func finish(verb string, o outcome, out any) error {
	if o.err != nil {
		return fmt.Errorf("guest %s: %w", verb, o.err)
	}
	if o.reply.Kind != "" || o.reply.Error != "" {
		text := strings.ToValidUTF8(o.reply.Error, "�")
		if len(text) > maxText {
			text = text[:maxText] + "…"
		}
		return fmt.Errorf("guest %s: %w", verb, answer{kind: o.reply.Kind, text: text})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(o.reply.OK, out); err != nil {
		return fmt.Errorf("guest %s: %w: its answer does not decode", verb, vm.ErrGuestLost)
	}
	return nil
}

// answer is an error that the agent reported. The text is the guest's: quoted,
// so that nothing in it reaches a terminal as a control sequence.
type answer struct{ kind, text string }

func (a answer) Error() string { return fmt.Sprintf("the guest reported %q", a.text) }

func (a answer) Is(target error) bool {
	switch target {
	case ErrAnswer:
		return true
	case fs.ErrNotExist:
		return a.kind == "not-exist"
	case fs.ErrExist:
		return a.kind == "exist"
	case fs.ErrPermission:
		return a.kind == "permission"
	}
	return false
}

var _ vm.Guest = (*Client)(nil)

// Hello asks the agent anew, so it also proves that the agent answers.
func (c *Client) Hello(ctx context.Context) (vm.Hello, error) {
	var h helloWire
	if err := c.call(ctx, "ping", nil, &h); err != nil {
		return vm.Hello{}, err
	}
	return h.hello(), nil
}

// Run implements vm.Guest. When ctx ends first the command and what it started
// in its session are killed.
func (c *Client) Run(ctx context.Context, argv []string, stdin []byte) (vm.RunResult, error) {
	if len(argv) == 0 {
		return vm.RunResult{}, errors.New("guest run: no command")
	}
	args := struct {
		Argv  []string `json:"argv"`
		Stdin []byte   `json:"stdin,omitempty"`
	}{argv, stdin}
	var out struct {
		Exit   int    `json:"exit"`
		Stdout []byte `json:"stdout"`
		Stderr []byte `json:"stderr"`
	}
	if err := c.call(ctx, "run", args, &out); err != nil {
		return vm.RunResult{}, err
	}
	return vm.RunResult{Exit: out.Exit, Stdout: clip(out.Stdout, maxOutput), Stderr: clip(out.Stderr, maxOutput)}, nil
}

func clip(b []byte, n int) []byte {
	if len(b) > n {
		return b[:n]
	}
	return b
}

type pathArgs struct {
	Path  string `json:"path"`
	Limit int    `json:"limit,omitempty"`
}

// ReadFile implements vm.Guest; limit is at most 1 MiB. Only regular files are
// read.
func (c *Client) ReadFile(ctx context.Context, path string, limit int) ([]byte, error) {
	if limit < 0 || limit > maxOutput {
		limit = maxOutput
	}
	var out struct {
		Data []byte `json:"data"`
	}
	if err := c.call(ctx, "read", pathArgs{path, limit}, &out); err != nil {
		return nil, err
	}
	return clip(out.Data, limit), nil
}

// WriteFile implements vm.Guest.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	return c.call(ctx, "write", struct {
		Path string      `json:"path"`
		Data []byte      `json:"data"`
		Mode fs.FileMode `json:"mode"`
	}{path, data, mode.Perm()}, nil)
}

// Remove implements vm.Guest.
func (c *Client) Remove(ctx context.Context, path string) error {
	return c.call(ctx, "remove", pathArgs{Path: path}, nil)
}

// Stat implements vm.Guest.
func (c *Client) Stat(ctx context.Context, path string) (vm.FileStat, error) {
	var out struct {
		Size   int64  `json:"size"`
		Mode   uint32 `json:"mode"` // as in struct stat
		ModNS  int64  `json:"mtime_ns"`
		Target string `json:"target"`
	}
	if err := c.call(ctx, "stat", pathArgs{Path: path}, &out); err != nil {
		return vm.FileStat{}, err
	}
	return vm.FileStat{Size: out.Size, Mode: unixMode(out.Mode), Mod: time.Unix(0, out.ModNS), Target: out.Target}, nil
}

// unixMode turns st_mode into Go's.
func unixMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	for _, bit := range []struct {
		unix uint32
		mode fs.FileMode
	}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}} {
		if m&bit.unix != 0 {
			mode |= bit.mode
		}
	}
	switch m & 0o170000 {
	case 0o040000:
		mode |= fs.ModeDir
	case 0o120000:
		mode |= fs.ModeSymlink
	case 0o020000:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		mode |= fs.ModeDevice
	case 0o010000:
		mode |= fs.ModeNamedPipe
	case 0o140000:
		mode |= fs.ModeSocket
	}
	return mode
}

// Listeners implements vm.Guest.
func (c *Client) Listeners(ctx context.Context) ([]vm.Listener, error) {
	var out []struct {
		IP      string `json:"ip"`
		Port    int    `json:"port"`
		Process string `json:"process"`
		PID     int    `json:"pid"`
	}
	if err := c.call(ctx, "listeners", nil, &out); err != nil {
		return nil, err
	}
	if len(out) > maxSocks {
		out = out[:maxSocks]
	}
	ls := make([]vm.Listener, len(out))
	for i, o := range out {
		ls[i] = vm.Listener{IP: o.IP, Port: o.Port, Process: o.Process, PID: o.PID}
	}
	return ls, nil
}

// Unit implements vm.Guest.
func (c *Client) Unit(ctx context.Context, name string) (vm.Unit, error) {
	var out struct {
		LoadState     string `json:"load"`
		ActiveState   string `json:"active"`
		SubState      string `json:"sub"`
		UnitFileState string `json:"file"`
		MainPID       int    `json:"pid"`
		Restarts      int    `json:"restarts"`
	}
	if err := c.call(ctx, "unit", map[string]string{"name": name}, &out); err != nil {
		return vm.Unit{}, err
	}
	return vm.Unit(out), nil
}

// HTTP implements vm.Guest. The timeout is at most a minute, and 10 s when none
// is given.
func (c *Client) HTTP(ctx context.Context, r vm.HTTPRequest) (vm.HTTPResult, error) {
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	args := struct {
		Method  string  `json:"method"`
		URL     string  `json:"url"`
		Body    []byte  `json:"body,omitempty"`
		Timeout float64 `json:"timeout"`
	}{r.Method, r.URL, r.Body, min(timeout, time.Minute).Seconds()}
	var out struct {
		Status int    `json:"status"`
		Body   []byte `json:"body"`
		Err    string `json:"err"`
	}
	if err := c.call(ctx, "http", args, &out); err != nil {
		return vm.HTTPResult{}, err
	}
	if len(out.Err) > maxText {
		out.Err = out.Err[:maxText]
	}
	return vm.HTTPResult{Status: out.Status, Body: clip(out.Body, maxOutput), Err: out.Err}, nil
}

// Sync implements vm.Guest.
func (c *Client) Sync(ctx context.Context) error { return c.call(ctx, "sync", nil, nil) }

// Untar unpacks a tar stream into a directory of the guest, as root, and syncs. The
// stream travels in pieces, so its size is bounded by the guest's disk alone.
func (c *Client) Untar(ctx context.Context, dir string, r io.Reader) error {
	var open struct {
		Handle int `json:"handle"`
	}
	if err := c.call(ctx, "untar-open", pathArgs{Path: dir}, &open); err != nil {
		return err
	}
	type piece struct {
		Handle int    `json:"handle"`
		Data   []byte `json:"data,omitempty"`
		Abort  bool   `json:"abort,omitempty"`
	}
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := c.call(ctx, "untar-data", piece{Handle: open.Handle, Data: buf[:n]}, nil); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return c.call(ctx, "untar-close", piece{Handle: open.Handle}, nil)
		}
		if err != nil {
			_ = c.call(ctx, "untar-close", piece{Handle: open.Handle, Abort: true}, nil) // err is the news
			return fmt.Errorf("guest untar: %w", err)
		}
	}
}

// Grow grows the root file system to its disk's size, online; it never shrinks.
func (c *Client) Grow(ctx context.Context) error { return c.call(ctx, "grow", nil, nil) }

// Settle readies the guest for its state to be saved: loads what the agent's
// verbs will need, syncs, and drops caches so that the saved memory is small.
func (c *Client) Settle(ctx context.Context) error { return c.call(ctx, "settle", nil, nil) }

// Reboot asks the guest's init for a clean reboot and returns when it was asked.
func (c *Client) Reboot(ctx context.Context) error {
	return c.call(ctx, "power", map[string]string{"how": "reboot"}, nil)
}

// PowerOff asks the guest's init for a clean power-off and returns when it was
// asked.
func (c *Client) PowerOff(ctx context.Context) error {
	return c.call(ctx, "power", map[string]string{"how": "poweroff"}, nil)
}
