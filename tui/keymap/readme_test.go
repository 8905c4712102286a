package keymap

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the README's table of keys")

// The README's table is the key map's, whatever anybody edits.
func TestReadmeHasTheKeys(t *testing.T) {
	const file, begin, end = "../../README.md", "<!-- keys -->\n", "<!-- /keys -->"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the keys", file)
	}
	want := Default().Markdown()
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the README's keys are stale: go test ./tui/keymap -update")
	}
}
