package term

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
)

// TestAgainstTmux compares screens with tmux's, an emulator that many people have used
// for many years. Left out is what tmux is known to do in its own way: a backspace
// after the last column, VS16, tabs forward by CSI I; capture-pane does not show line
// drawing as such.
func TestAgainstTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed")
	}
	pieces := []string{"plain text ", "[  OK  ] Started", "\r\n", "\r\n", "\r\n", "\x1b[31;1m", "\x1b[m", "e\u0301", "\t", "\x1b[H", "\x1b[3;7H", "\x1b[5;12H",
		"\rz\x1b[7b", "\x1bM", "\x1bD", "\x1bE",
		"\x1b[K", "\x1b[J", "\x1b[S", "\x1b[2A", "\x1b[B", "\x1b[3C", "\x1b[4D", "\x1b[10G", "\x1b[4d", "\x1b]0;t\x07", "\r"}
	// tmux keeps the cursor of 1049 apart from that of DECSC; xterm and this package do not.
	either := [][]string{{"\x1b7", "\x1b8"}, {"\x1b[?1049hALT\x1b[?1049l"}}
	// What an edit through the middle of a wide rune leaves is its own choice too.
	halves := [][]string{{"カナ", "ｶﾅ漢"}, {"\x1b[4hINS\x1b[4l", "\x1b[5@", "\x1b[2P", "\x1b[3X", "\x1b[1K", "\x1b[1J"}}
	// tmux inserts and deletes lines outside the scroll region, where others do nothing.
	lines := [][]string{{"\x1b[2;5r", "\x1b[r"}, {"\x1b[2L", "\x1b[M"}}
	const w, h, rounds = 30, 8, 40
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sock := filepath.Join(dir, "s")
	run := func(args ...string) string {
		cmd := exec.CommandContext(ctx, tmux, append([]string{"-f", "/dev/null", "-u", "-S", sock}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// One pane shows one file after the other, and says through wait-for that it has.
	next := filepath.Join(dir, "next")
	script := "stty raw -echo; while :; do " + tmux + " -S " + sock + " wait-for go; printf '\\033c\\033[?7h'; cat " + next + "; " + tmux + " -S " + sock + " wait-for -S done; done"
	run("new-session", "-d", "-x", "30", "-y", "8", script)
	defer run("kill-server")
	run("set-option", "-g", "status", "off")
	run("resize-window", "-x", "30", "-y", "8")
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		var data strings.Builder
		pieces := append(pieces[:len(pieces):len(pieces)], either[seed%2]...)
		pieces = append(pieces, halves[seed/2%2]...)
		pieces = append(pieces, lines[seed/4%2]...)
		for range 40 {
			data.WriteString(pieces[r.IntN(len(pieces))])
		}
		if err := os.WriteFile(next, []byte(data.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		run("wait-for", "-S", "go")
		run("wait-for", "done")
		term := New(w, h)
		term.Write([]byte(data.String()))
		want := strings.TrimRight(term.String(), "\n ")
		// tmux reads the pane's bytes after cat has written them: ask until it has.
		var got string
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
			rows := strings.Split(run("capture-pane", "-p"), "\n")
			for i := range rows {
				rows[i] = strings.TrimRight(rows[i], " ")
			}
			if got = norm.NFC.String(strings.TrimRight(strings.Join(rows, "\n"), "\n ")); got == want {
				break
			}
		}
		if got != want {
			t.Errorf("seed %d: %q\n--- tmux\n%s\n--- ours\n%s", seed, data.String(), got, want)
		}
	}
}
