package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"refbox/assets"
)

// The register's screen in a real terminal: it opens, follows the file, says what
// is wrong with it, and leaves the terminal as it was.
func TestRegisterScreen(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file, text := b.path("mine.toml"), string(assets.Register())
	save := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(text)
	s := b.show(120, 34, "register", "show", file)
	s.shows("refbox ▸ register ▸ mine.toml")
	s.shows("matrix: today")
	s.shows("✗ 12 gaps")
	save(strings.Replace(text, `status = "planned"`, `status = "running"`, 1))
	s.shows("✗ 10 gaps")
	save(text[:len(text)/2])
	s.shows("the last good one is shown: mine.toml:")
	save(text)
	s.shows("✗ 12 gaps")
	s.press("P")
	s.shows("matrix: planned")
	s.press("/")
	s.shows("stores:")
	s.press("mail\r")
	s.shows("store 1 of 1")
	s.press("W")
	s.shows("[x] nothing: the register as it is")
	s.press("j\r")
	s.shows("WHAT IF 1")
	s.press("?")
	s.shows("what if: run a copy, lose a node, cut")
	s.press(" ")
	s.press("\x03")
	s.leaves(0, 10*time.Second)

	s = b.show(80, 24, "register", "show")
	s.shows("register ▸ example")
	s.press("q")
	s.leaves(0, 10*time.Second)
	save("x")
	s = b.show(80, 24, "register", "show", file)
	s.leaves(1, 10*time.Second)
	s.shows("mine.toml:1:")
}

// The lobby offers the registers of the data folder, and the example.
func TestLobbyOpensRegisters(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	dir := b.path("data") + "/refbox/registers"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"mine.toml": string(assets.Register()), "bad.toml": "x", "notes.txt": "x"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := b.show(120, 40)
	s.shows("Registers")
	s.shows("a register of yours")
	if strings.Contains(s.text(), "notes.txt") {
		t.Errorf("notes are no register:\n%s", s.text())
	}
	s.press("/mine\r")
	s.shows("filter: mine")
	s.press("\r")
	s.shows("register ▸ mine.toml")
	s.shows("matrix: today")
	s.press("q")
	s.shows("filter: mine")
	s.press("/bad.toml\r")
	s.shows("filter: bad.toml")
	s.press("\r")
	s.shows("bad.toml:1:")
	s.press("\x03")
	s.leaves(0, 10*time.Second)
}
