package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// transcriptOf writes a small Claude Code session.
func transcriptOf(b *box) string {
	b.t.Helper()
	var s strings.Builder
	line := func(i int, kind, message string) {
		fmt.Fprintf(&s, `{"type":%q,"uuid":"u%d","parentUuid":null,"sessionId":"s","version":"2.0","timestamp":"2026-01-02T10:00:%02dZ","message":%s}`+"\n", kind, i, i, message)
	}
	line(1, "user", `{"role":"user","content":"repair it"}`)
	line(2, "assistant", `{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"systemctl mask old.service"}}]}`)
	line(3, "user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"masked \u001b]0;title\u0007it"}]}`)
	line(4, "assistant", `{"id":"m2","role":"assistant","content":[{"type":"text","text":"It is repaired."}]}`)
	path := b.path("session.jsonl")
	if err := os.WriteFile(path, []byte(s.String()), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func TestStepOnTheScreen(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	// An editor that keeps what it was given, and the mode of the file.
	editor, seen := b.path("editor"), b.path("seen")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nstat -c %a \"$1\" >"+seen+"\ncat \"$1\" >>"+seen+"\necho \"$1\" >"+seen+".name\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.env["EDITOR"], b.env["TMPDIR"] = editor, b.path("")
	s := b.show(120, 34, "step", transcriptOf(b), "--at", "1")
	s.shows("#1 lifecycle · Bash")
	s.shows("unit masked old.service")
	s.press("v")
	limit := time.After(20 * time.Second)
	for name := ""; name == ""; { // until the editor has run, and its copy is gone
		select {
		case <-limit:
			t.Fatalf("the editor does not run, or its copy stays:\n%s", s.text())
		case <-time.After(20 * time.Millisecond):
		}
		if data, err := os.ReadFile(seen + ".name"); err == nil {
			if _, err := os.Stat(filepath.Dir(strings.TrimSpace(string(data)))); os.IsNotExist(err) {
				name = string(data)
			}
		}
	}
	data, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); !strings.HasPrefix(text, "600\n") || !strings.Contains(text, "systemctl mask old.service") || strings.Contains(text, "\x1b") {
		t.Errorf("the editor got %q", text)
	}
	s.shows("#1 lifecycle · Bash")
	s.press("G")
	s.shows("It is repaired.")
	s.press("/")
	s.press("masked\r")
	s.shows("#1 lifecycle")
	s.press("q")
	s.leaves(0, 10*time.Second)
}

func TestStepWithoutAScreen(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	path := transcriptOf(b)
	for words, args := range map[string][]string{"systemctl mask old.service": {"step", path}, `"tool":"Bash"`: {"step", path, "--json", "--at", "1"}} {
		p := b.run(time.Minute, args...)
		p.says(0)
		if out := p.output.String(); !strings.Contains(out, words) || strings.Contains(out, "\x1b") {
			t.Errorf("refbox %v prints %q", args, out)
		}
	}
	b.run(time.Minute, "step", path, "--at", "9").says(1, "has no step 9")
	b.run(time.Minute, "step", path, "--at", "-3").says(2, "--at takes a step's number")
	b.run(time.Minute, "step", b.path("absent")).says(1, "no such file")
	odd := b.path("odd.txt")
	if err := os.WriteFile(odd, []byte("only words"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(time.Minute, "step", odd).says(1, "not a transcript of a known format")
}
