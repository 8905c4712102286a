package probe

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"refbox/vm"
)

// What root in a guest could forge of the referee's helper there: all of it.
// Root owns the helper, the files and the network that it looks at.
const insideForgeable = "everything: root in the guest owns the helper that answers and what it looks at"

// insideWait bounds one question to the guest's helper, which answers in
// milliseconds unless it is dead or stopped.
const insideWait = 10 * time.Second

// Guest is the inside of one of the seat's machines, in one attempt.
type Guest struct {
	a *Attempt
	m vm.Machine
}

// Guest is the inside of a machine; "" is the first.
func (a *Attempt) Guest(machine string) (Guest, error) {
	i, err := a.Seat.machine(machine)
	if err != nil {
		return Guest{}, err
	}
	return Guest{a: a, m: a.Seat.c.Machines[i]}, nil
}

func (g Guest) ask(ctx context.Context, verb string, req map[string]any, wait time.Duration, do func(context.Context, vm.Guest) (map[string]any, error)) error {
	r := Record{Call: "guest." + verb, Forgeable: insideForgeable, Request: req}
	return g.a.call(ctx, r, g.m, func(ctx context.Context) (map[string]any, error) {
		ctx, cancel := context.WithTimeout(ctx, g.a.Seat.slow(wait))
		defer cancel()
		return do(ctx, g.m.Guest())
	})
}

// Read returns a file, at most limit bytes of it; ok is false when there is none.
func (g Guest) Read(ctx context.Context, path string, limit int) (data []byte, ok bool, err error) {
	limit = min(max(limit, 1), maxBody)
	err = g.ask(ctx, "read", map[string]any{"path": path}, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		b, err := v.ReadFile(ctx, path, limit)
		if errors.Is(err, fs.ErrNotExist) {
			return map[string]any{"exists": false}, nil
		}
		data, ok = b, err == nil
		g.a.look(b)
		return map[string]any{"exists": true, "text": bounded(string(b), maxShown), "bytes": len(b)}, err
	})
	return data, ok, err
}

// Exists tells whether there is a file, or a symbolic link, of that path.
func (g Guest) Exists(ctx context.Context, path string) (ok bool, err error) {
	err = g.ask(ctx, "exists", map[string]any{"path": path}, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		_, err := v.Stat(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			return map[string]any{"exists": false}, nil
		}
		ok = err == nil
		return map[string]any{"exists": ok}, err
	})
	return ok, err
}

// Write replaces a file.
func (g Guest) Write(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	req := map[string]any{"path": path, "text": bounded(string(data), maxShown), "bytes": len(data)}
	return g.ask(ctx, "write", req, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		return nil, v.WriteFile(ctx, path, data, mode)
	})
}

// Remove removes a file.
func (g Guest) Remove(ctx context.Context, path string) error {
	return g.ask(ctx, "remove", map[string]any{"path": path}, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		return nil, v.Remove(ctx, path)
	})
}

// Unit is the state of a systemd unit.
func (g Guest) Unit(ctx context.Context, name string) (u vm.Unit, err error) {
	err = g.ask(ctx, "unit", map[string]any{"unit": name}, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		u, err = v.Unit(ctx, name)
		return map[string]any{"load": bounded(u.LoadState, 64), "active": bounded(u.ActiveState, 64), "sub": bounded(u.SubState, 64),
			"file": bounded(u.UnitFileState, 64), "pid": u.MainPID, "restarts": u.Restarts}, err
	})
	return u, err
}

// systemctlActions are those that a verifier may use: each ends by itself.
var systemctlActions = []string{"start", "stop", "restart", "try-restart", "enable", "disable", "mask", "unmask",
	"reset-failed", "kill", "is-active", "is-enabled", "is-failed", "daemon-reload"}

// Systemctl runs systemctl in the guest. Unit may be "" for daemon-reload.
func (g Guest) Systemctl(ctx context.Context, action, unit string) (vm.RunResult, error) {
	if !slices.Contains(systemctlActions, action) {
		return vm.RunResult{}, failure(Broken, "systemctl: no action %q; there are %v", action, systemctlActions)
	}
	if !strings.HasPrefix(action, "is-") {
		g.a.disrupted = true
		defer g.a.Seat.disturb(settleTime)()
	}
	argv := []string{"systemctl", "--no-ask-password", action}
	if unit != "" {
		argv = append(argv, "--", unit)
	}
	return g.run(ctx, "systemctl", argv, nil, 30*time.Second)
}

// Run runs argv in the guest, as root, without a shell.
func (g Guest) Run(ctx context.Context, argv []string, stdin []byte, timeout time.Duration) (vm.RunResult, error) {
	if len(argv) == 0 {
		return vm.RunResult{}, failure(Broken, "run: no command")
	}
	if argv[0] == "systemctl" {
		g.a.disrupted = true
		defer g.a.Seat.disturb(settleTime)()
	}
	return g.run(ctx, "run", argv, stdin, timeout)
}

func (g Guest) run(ctx context.Context, verb string, argv []string, stdin []byte, timeout time.Duration) (res vm.RunResult, err error) {
	shown := make([]string, len(argv))
	for i, s := range argv {
		shown[i] = bounded(s, maxShown)
	}
	req := map[string]any{"argv": shown}
	err = g.ask(ctx, verb, req, timeout, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		res, err = v.Run(ctx, argv, stdin)
		res.Stdout, res.Stderr = res.Stdout[:min(len(res.Stdout), maxBody)], res.Stderr[:min(len(res.Stderr), maxBody)]
		g.a.look(res.Stdout)
		g.a.look(res.Stderr)
		return map[string]any{"exit": res.Exit, "stdout": bounded(string(res.Stdout), maxShown), "stderr": bounded(string(res.Stderr), maxShown)}, err
	})
	return res, err
}

// maxListeners bounds what a guest can make us remember.
const maxListeners = 256

// Listeners are the guest's listening TCP sockets.
func (g Guest) Listeners(ctx context.Context) (ls []vm.Listener, err error) {
	err = g.ask(ctx, "listeners", nil, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		ls, err = v.Listeners(ctx)
		ls = ls[:min(len(ls), maxListeners)]
		ports := make([]int, 0, len(ls))
		for _, l := range ls {
			ports = append(ports, l.Port)
		}
		return map[string]any{"ports": ports}, err
	})
	return ls, err
}

// HTTP asks from inside the guest.
func (g Guest) HTTP(ctx context.Context, method, url string, body []byte, timeout time.Duration) (rep Reply, err error) {
	timeout = g.a.Seat.slow(timeout)
	err = g.ask(ctx, "http", httpRequest(method, url, body, nil), timeout+insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		r, err := v.HTTP(ctx, vm.HTTPRequest{Method: method, URL: url, Body: body, Timeout: timeout})
		if err != nil {
			return nil, err
		}
		rep = Reply{Status: r.Status, Body: r.Body[:min(len(r.Body), maxBody)], Error: bounded(r.Err, 64)}
		g.a.look(rep.Body)
		return httpResponse(rep), nil
	})
	return rep, err
}

// Sync flushes the guest's file systems.
func (g Guest) Sync(ctx context.Context) error {
	return g.ask(ctx, "sync", nil, insideWait, func(ctx context.Context, v vm.Guest) (map[string]any, error) {
		return nil, v.Sync(ctx)
	})
}
