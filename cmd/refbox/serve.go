package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	gossh "golang.org/x/crypto/ssh"

	"refbox/engine/agent"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
	"refbox/tui/serve"
)

func newServe(a *app) *cobra.Command {
	var (
		listen, referees, watchers string
		most                       int
	)
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Show the lobby, or one heat, to many over SSH",
		Long: `Lets anybody who reaches the port watch, each with a playhead of their own: a heat,
running or recorded, or the lobby with all recordings. Nothing can be changed,
run or copied over it, but for those who come with a key that --referees lists:
in a heat that runs on this host they are its referees.

A heat that runs is shown with its players' consoles and the referee's evidence: a
player that reaches the port sees its rivals. --watchers lets only listed keys in.

It is a process of its own, and a low-priority one: when the host is busy,
spectators lose frames and the heat nothing.`,
		Example: "  refbox serve\n  refbox serve ./heat --listen :2222 --referees ~/.ssh/authorized_keys",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 1 || most > 1000 {
				return usageError("--most is %d; it is between 1 and 1000", most)
			}
			return serveScreens(cmd.Context(), a, append(args, "")[0], listen, referees, watchers, most)
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:2222", "the address to listen on")
	f.StringVar(&referees, "referees", "", "a file of public keys, as authorized_keys, whose owners are referees")
	f.StringVar(&watchers, "watchers", "", "the same of those who may watch; the referees may (default: anybody)")
	f.IntVar(&most, "most", 100, "how many may watch at once")
	return c
}

func serveScreens(ctx context.Context, a *app, dir, listen, referees, watchers string, most int) error {
	var keys, may []gossh.PublicKey
	for file, into := range map[string]*[]gossh.PublicKey{referees: &keys, watchers: &may} {
		if file == "" {
			continue
		}
		var err error
		if *into, err = serve.Keys(file); err != nil {
			return err
		}
	}
	if dir != "" {
		dir = locate(dir)
		rec, err := openRecording(dir)
		if err != nil {
			return err
		}
		rec.Close()
	}
	pem, key, err := serverKey()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return environmentError(fmt.Errorf("%w; --listen names another address", err))
	}
	lower()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "this-host"
		}
	}
	fmt.Fprintf(a.out, "ssh -p %s %s\nhost key %s\n", port, host, gossh.FingerprintSHA256(key))
	var mu sync.Mutex
	return serve.Serve(ctx, serve.Config{Listener: l, HostKey: pem, Referees: keys, Watchers: may, Most: most,
		Show: func(ctx context.Context, c serve.Client) error { return showClient(ctx, a, c, dir) },
		Log: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(a.out, format+"\n", args...)
		}})
}

// showClient is one client's program. It is given nothing that could change this
// host: no stepper, which may open an editor; no registers or seasons; no arenas.
func showClient(ctx context.Context, a *app, c serve.Client, dir string) error {
	cfg := screenConfig(a)
	cfg.Output.Profile, cfg.Output.ASCII = c.Profile, false
	cfg.Branch = nil
	cfg.Transcript, cfg.Sizes, cfg.Mouse = nil, c.Sizes, false
	desk := func(rec *recording.Recording) tui.Desk {
		if !c.Referee || rec.Path() == "" || !rec.Live() {
			return tui.Desk{}
		}
		return tui.Desk{Desk: distant(deskSocket(rec.Path())), Author: c.Name + " (" + c.Key + ")"}
	}
	var err error
	if dir == "" {
		var lib tui.Library
		if lib, err = library(ctx); err != nil {
			return err
		}
		lib.Arenas, lib.Screens, lib.Desk = nil, nil, desk
		_, err = tui.Lobby(ctx, cfg, lib, c, c)
	} else {
		var rec *recording.Recording
		if rec, err = openRecording(dir); err != nil {
			return err
		}
		_, err = tui.Watch(ctx, cfg, rec, desk(rec), c, c)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// serverKey is the key that this host's server is known by, made when there is none.
func serverKey() ([]byte, gossh.PublicKey, error) {
	file := logFile()
	if file == "" {
		return nil, nil, environmentError(errors.New("no folder for the server's key; set XDG_STATE_HOME or HOME"))
	}
	file = filepath.Join(filepath.Dir(file), "serve_ed25519")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, data, err = agent.NewKey(); err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600))
		}
	}
	if err != nil {
		return nil, nil, environmentError(fmt.Errorf("the server's key: %w", err))
	}
	s, err := gossh.ParsePrivateKey(data)
	if err != nil {
		return nil, nil, fmt.Errorf("the server's key %s: %w; remove the file to have one made anew", text.Line(file), err)
	}
	return data, s.PublicKey(), nil
}
