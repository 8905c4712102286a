package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"refbox/engine/export/exporttest"
)

// After the screen of a heat the terminal tells in plain text who won, why, where the
// recording is, and the command that replays it.
func TestSummaryAfterTheScreen(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := exporttest.Small(t)
	s := b.show(100, 30, "replay", dir)
	s.shows("help")
	s.press("q")
	s.leaves(0, 10*time.Second)
	for _, words := range []string{"1. failover-one", "heat      finished: first durable deployment", "recording " + dir, "replay    refbox replay " + dir} {
		s.shows(words)
	}
}

// The mouse stays the terminal's unless the configuration says otherwise; a key that
// was moved does what it was moved to.
func TestConfiguredScreen(t *testing.T) {
	t.Parallel()
	mouse := regexp.MustCompile(`\x1b\[\?100[0236]h`)
	dir := exporttest.Small(t)
	b := newBox(t)
	s := b.show(100, 30, "replay", dir)
	s.shows("help")
	s.press("q")
	s.leaves(0, 10*time.Second)
	if m := mouse.Find(s.output()); m != nil {
		t.Errorf("the mouse is taken by default: %q", m)
	}
	config := "mouse = true\ntheme = \"high-contrast\"\n[keys]\nleave = \"F9\"\nwhy = \"Z\"\n"
	if err := os.WriteFile(b.path("config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	b.env["REFBOX_CONFIG"] = b.path("config.toml")
	s = b.show(200, 60, "replay", dir)
	s.shows("F9 leave")
	s.walk("q", "?")
	s.shows("keys and legend")
	s.shows("Z the events and the evidence behind an outcome")
	s.walk("\x1b", "Z")
	s.shows("why")
	s.walk("\x1b[20~", "\x1b[20~") // F9
	s.leaves(0, 10*time.Second)
	if !mouse.Match(s.output()) {
		t.Error("the mouse was configured, and is not taken")
	}
}

// A screen reader gets lines: nothing that moves the cursor, each event said once.
func TestScreenReader(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env["REFBOX_SCREEN_READER"] = "1"
	s := b.show(100, 30, "replay", exporttest.Small(t))
	s.leaves(0, 10*time.Second)
	out := s.output()
	if i := bytes.IndexByte(out, '\x1b'); i >= 0 {
		t.Errorf("an escape sequence: %.40q", out[i:])
	}
	for _, words := range []string{"PASSED fence", "WINS: first durable deployment", "refbox replay"} {
		if strings.Count(string(out), words) != 1 {
			t.Errorf("%q is not said once:\n%s", words, out)
		}
	}
}
