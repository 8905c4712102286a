package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"

	"refbox/vm/sim/internal/memfs"
)

// onCall rewrites the builtins that would look at the host.
func (p *Process) onCall(ctx context.Context, args []string) ([]string, error) {
	inner := args
	for len(inner) > 1 && (inner[0] == "builtin" || inner[0] == "command") {
		if inner[0] == "command" && strings.HasPrefix(inner[1], "-") {
			break
		}
		inner = inner[1:]
	}
	switch inner[0] {
	case "source", ".":
		if len(inner) > 1 {
			at := inner[1]
			if !strings.HasPrefix(at, "/") {
				at = path.Join(interp.HandlerCtx(ctx).Dir, at)
			}
			return append([]string{"source", noPath + at}, inner[2:]...), nil
		}
	case "pwd":
		if len(inner) > 1 {
			return append([]string{"/usr/bin/pwd"}, inner[1:]...), nil
		}
	case "type", "command":
		if len(inner) > 1 && (inner[0] == "type" || strings.HasPrefix(inner[1], "-")) {
			return append([]string{askPrefix + inner[0]}, inner[1:]...), nil
		}
	case "kill":
		return append([]string{"/usr/bin/kill"}, inner[1:]...), nil
	}
	return args, nil
}

func (p *Process) onExec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	child, err := p.child(ctx, hc, args)
	if err != nil {
		fmt.Fprintf(hc.Stderr, "%s: %v\n", args[0], err)
		return interp.ExitStatus(126)
	}
	if which, ok := strings.CutPrefix(args[0], askPrefix); ok {
		code := child.whatIs(which, args[1:])
		child.finish(code)
		return exitStatus(code)
	}
	code := -1
	if at, missing := child.lookPath(args[0]); missing == 0 && slices.Contains(shellTools, path.Base(at)) {
		if data, _ := p.b.fs.ReadFile(at); strings.TrimSpace(string(data)) == toolMagic+path.Base(at) {
			child.finish(0)
			return hc.Builtin(ctx, append([]string{path.Base(at)}, args[1:]...))
		}
	}
	if code < 0 {
		code = p.b.execute(child)
	}
	child.finish(code)
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	return exitStatus(code)
}

func exitStatus(code int) error {
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(uint8(code))
}

// child is a process that a shell starts.
func (p *Process) child(ctx context.Context, hc interp.HandlerContext, args []string) (*Process, error) {
	env := map[string]string{}
	hc.Env.Each(func(name string, v expand.Variable) bool {
		if v.Exported && v.Set && v.Kind == expand.String {
			env[name] = v.Str
		} else if name == "PATH" || !v.Set {
			delete(env, name)
		}
		return true
	})
	if v := hc.Env.Get("PATH"); v.IsSet() {
		env["PATH"] = v.String()
	}
	var in *os.File
	if f, ok := hc.Stdin.(*os.File); ok {
		in = f
	}
	return p.b.newProcess(ctx, processSpec{args: args, dir: hc.Dir, env: env, stdin: in, out: hc.Stdout, err: hc.Stderr, parent: p})
}

func (p *Process) guestPath(ctx context.Context, name string) string {
	if !strings.HasPrefix(name, "/") {
		name = path.Join(interp.HandlerCtx(ctx).Dir, name)
	}
	return name
}

func (p *Process) onOpen(ctx context.Context, name string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	name = p.guestPath(ctx, strings.TrimPrefix(name, noPath))
	f, err := p.b.open(name, flag, perm)
	if err != nil {
		return nil, asPathError(name, err)
	}
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		return f, nil
	}
	// The interpreter wants an *os.File for standard input, else it leaks.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, asPathError(name, err)
	}
	if !p.b.tasks.run(func() {
		stop := context.AfterFunc(p.b.ctx, func() { w.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
		_, _ = io.Copy(w, f)
		w.Close()
	}) {
		w.Close()
	}
	return r, nil
}

func asPathError(name string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe
	}
	return &fs.PathError{Op: "open", Path: name, Err: err}
}

func (p *Process) onReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	list, err := p.b.fs.ReadDir(p.guestPath(ctx, name))
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, len(list))
	for i, in := range list {
		entries[i] = in
	}
	return entries, nil
}

func (p *Process) onStat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	var st memfs.Info
	var err error
	if follow {
		st, err = p.b.fs.Stat(p.guestPath(ctx, name))
	} else {
		st, err = p.b.fs.Lstat(p.guestPath(ctx, name))
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (p *Process) onAccess(ctx context.Context, name string, mode interp.AccessMode) error {
	st, err := p.b.fs.Stat(p.guestPath(ctx, name))
	if err != nil {
		return err
	}
	if mode&interp.AccessExec != 0 && !st.IsDir() && st.Mode()&0o111 == 0 {
		return &fs.PathError{Op: "access", Path: name, Err: syscall.EACCES}
	}
	return nil
}

// syncWriter makes a writer safe for background commands.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
