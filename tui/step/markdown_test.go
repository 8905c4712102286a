package step

import (
	"strings"
	"testing"

	"refbox/tui/canvas"
)

func plainRows(rows [][]canvas.Cell) string {
	var out []string
	for _, r := range rows {
		var b strings.Builder
		for _, c := range r {
			b.WriteRune(max(c.R, ' '))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return strings.Join(out, "\n")
}

// A table stands in columns where it fits. Where it does not, wrapped cells would
// stand under other columns' heads, so each row is a record.
func TestMarkdownTables(t *testing.T) {
	const table = "| what | unit | port |\n|---|---|---|\n| public port | `proxy` | 8080 |\n| replica, for reads | | 8082 |\n"
	for w, want := range map[int]string{
		60: `what               │ unit  │ port
─────────────────────────────────
public port        │ proxy │ 8080
replica, for reads │       │ 8082`,
		24: `▪ public port
  unit proxy
  port 8080
▪ replica, for reads
  port 8082`,
		14: `▪ public port
  unit proxy
  port 8080
▪ replica, for
    reads
  port 8082`,
	} {
		if got := plainRows(Markdown(table, w)); got != want {
			t.Errorf("at %d cells:\n%s\nnot\n%s", w, got, want)
		}
	}
}
