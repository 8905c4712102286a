package main

import (
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"refbox": main})
}

// TestScripts runs the program as a user does. Each script says what it holds.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: ofItsOwn,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// ofItsOwn gives a script folders of its own.
func ofItsOwn(e *testscript.Env) error {
	// Nothing of the user's own folders is read or written.
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"} {
		e.Setenv(name, e.WorkDir+"/"+name)
	}
	// A socket's path is short; the work folder's is not.
	run, err := os.MkdirTemp("", "rb")
	if err != nil {
		return err
	}
	e.Defer(func() { os.RemoveAll(run) })
	e.Setenv("XDG_RUNTIME_DIR", run)
	e.Setenv("TERM", "xterm-256color")
	return nil
}

// exits runs refbox and checks its exit code: exits 3 run primary-failover.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("refbox", args[1:]...)
	got := 0
	if err != nil {
		e, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("refbox %v: %v", args[1:], err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("refbox %v exited %d, want %d", args[1:], got, want)
	}
}
