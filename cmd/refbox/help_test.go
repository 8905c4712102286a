package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func testRoot() *cobra.Command { return newRoot(&app{in: os.Stdin, out: io.Discard, err: io.Discard}) }

// Every command says in a line what it is for, and shows how it is called: with the
// command itself, and with flags that it has.
func TestEveryCommandHasAnExample(t *testing.T) {
	root := testRoot()
	n := 0
	for c := range commands(root) {
		n++
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q is not what it does in a line", c.CommandPath(), c.Short)
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example of itself: %q", c.CommandPath(), c.Example)
		}
		for line := range strings.Lines(c.Example) {
			if !strings.HasPrefix(line, "  ") || strings.Contains(line, "\t") {
				t.Errorf("%s: the example %q is not indented by two blanks", c.CommandPath(), line)
			}
			_, call, found := strings.Cut(line, "refbox ")
			if !found {
				continue
			}
			words := strings.Fields(call)
			shown, _, err := root.Find(words)
			if err != nil {
				t.Errorf("%s: the example %q: %v", c.CommandPath(), line, err)
				continue
			}
			for _, w := range words {
				if flag, ok := strings.CutPrefix(w, "--"); ok {
					flag, _, _ = strings.Cut(flag, "=")
					if shown.Flags().Lookup(flag) == nil {
						t.Errorf("%s: the example %q has the flag --%s, %s has not", c.CommandPath(), line, flag, shown.CommandPath())
					}
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d commands", n)
	}
}

func TestCompletionTables(t *testing.T) {
	root := testRoot()
	for path := range arguments() {
		c, _, err := root.Find(strings.Fields(path))
		if err != nil || c.CommandPath() != "refbox "+path {
			t.Errorf("no command %q", path)
		}
	}
	for path, flags := range flags() {
		for name := range flags {
			if path == "" {
				continue
			}
			if c, _, err := root.Find(strings.Fields(path)); err != nil || c.Flags().Lookup(name) == nil {
				t.Errorf("%q has no flag --%s", path, name)
			}
		}
	}
}

// There is a page for each command, and none of what is indented in a help text is
// filled into lines.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if err := writeManual(testRoot(), dir); err != nil {
		t.Fatal(err)
	}
	for c := range commands(testRoot()) {
		if c.Name() == "help" {
			continue // it has none, as it is in every page
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		plain := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\\`, `\`).Replace(string(page))
		for line := range strings.Lines(c.Long) {
			if line = strings.TrimRight(line, " \n"); strings.HasPrefix(line, "  ") && !strings.Contains(plain, line+"\n") {
				t.Errorf("%s: the line %q is not in its page as it is", c.CommandPath(), line)
			}
		}
	}
}
