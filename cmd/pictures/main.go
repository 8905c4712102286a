// Command pictures draws real screens of refbox: it runs the program in a terminal of
// its own, presses keys, and writes what is shown then as SVG. The README's pictures
// are made by it; any other screen can be looked at in the same way:
//
//	go run ./cmd/pictures                                 those of the README, into assets/pictures
//	go run ./cmd/pictures -size 80x24 -into DIR           the same at another size
//	go run ./cmd/pictures -into DIR NAME KEYS COMMAND...  one more: refbox COMMAND, keys separated by blanks
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/creack/pty"

	"refbox/tui/export"
	"refbox/tui/term"
)

// picture is a screen, and the way to it.
type picture struct {
	name string
	args []string
	keys []string
	env  []string
}

// readme are the pictures that the README shows.
var readme = []picture{
	{name: "heat", args: []string{"replay", "recordings/primary-failover"}, keys: []string{"space", ":", "1m32s", "enter"}},
	{name: "evidence", args: []string{"replay", "recordings/primary-failover"}, keys: []string{"space", "G", "enter", "j", "j", "j", "enter"}},
	{name: "why", args: []string{"replay", "recordings/primary-failover"}, keys: []string{"space", "G", "w"}, env: []string{"REFBOX_THEME=light"}},
	{name: "register", args: []string{"register", "show"}, keys: []string{"j", "l", "l"}},
}

var named = map[string]string{
	"space": " ", "enter": "\r", "esc": "\x1b", "tab": "\t", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
	"ctrl-c": "\x03", "ctrl-]": "\x1d",
}

func main() {
	size := flag.String("size", "120x34", "columns and rows")
	into := flag.String("into", "assets/pictures", "the folder")
	flag.Parse()
	if err := run(*size, *into, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(size, into string, args []string) error {
	var w, h int
	if n, err := fmt.Sscanf(size, "%dx%d", &w, &h); n != 2 || err != nil || w < 20 || h < 5 || w > 500 || h > 200 {
		return fmt.Errorf("-size %q is not like 120x34", size)
	}
	all := readme
	if len(args) > 0 {
		if len(args) < 2 {
			return errors.New("a picture takes a name, keys and a command")
		}
		all = []picture{{name: args[0], keys: strings.Fields(args[1]), args: args[2:]}}
	}
	dir, err := os.MkdirTemp("", "refbox-pictures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/refbox").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, p := range all {
		svg, err := p.take(program, dir, w, h)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		path := filepath.Join(into, p.name+".svg")
		if err := os.WriteFile(path, svg, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s  %d bytes\n", path, len(svg))
	}
	return nil
}

// take runs the program and draws its screen once the keys were pressed.
func (p picture) take(program, home string, w, h int) ([]byte, error) {
	cmd := exec.Command(program, p.args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "NO_COLOR=", "COLORFGBG=",
		"HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
	cmd.Env = append(cmd.Env, p.env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)})
	if err != nil {
		return nil, err
	}
	screen := term.New(w, h)
	chunks := make(chan []byte)
	go func() {
		defer close(chunks)
		for {
			buf := make([]byte, 64<<10)
			n, err := tty.Read(buf)
			if n > 0 {
				chunks <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		cmd.Process.Kill() //nolint:errcheck // fails when it has ended
		tty.Close()
		for range chunks {
		}
		cmd.Wait() //nolint:errcheck // it was killed
	}()
	// settle takes what the program writes until it has drawn a screen, and is at rest or,
	// since a replay plays on, has had its time.
	settle := func(drawn bool, limit time.Duration) error {
		late := time.After(limit)
		for {
			select {
			case b, open := <-chunks:
				if !open {
					return errors.New("the program has ended:\n" + screen.String())
				}
				screen.Write(b)
				if !drawn && strings.Contains(screen.String(), "help") {
					return nil
				}
			case <-time.After(400 * time.Millisecond):
				if drawn {
					return nil
				}
			case <-late:
				if drawn {
					return nil
				}
				return errors.New("no screen is drawn:\n" + screen.String())
			}
		}
	}
	if err := settle(false, 30*time.Second); err != nil {
		return nil, err
	}
	for _, k := range p.keys {
		if name, ok := named[k]; ok {
			k = name
		}
		if _, err := tty.WriteString(k); err != nil {
			return nil, err
		}
		if err := settle(true, 3*time.Second); err != nil {
			return nil, err
		}
	}
	ground := export.DarkGround
	for _, e := range append(os.Environ(), p.env...) {
		if e == "REFBOX_THEME=light" {
			ground = export.LightGround
		}
	}
	var b bytes.Buffer
	err = export.Screen(&b, screen, w, h, ground)
	return b.Bytes(), err
}
