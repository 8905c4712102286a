package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages, one for each command",
		Long: `Writes the manual pages, refbox.1 and one for each command, into a folder. They say
what --help says. SOURCE_DATE_EPOCH sets the date in them.`,
		Example: "  refbox man ~/.local/share/man/man1",
		Args:    exactArgs(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeManual(cmd.Root(), args[0]); err != nil {
				return environmentError(fmt.Errorf("write the manual pages: %w", err))
			}
			return nil
		},
	}
}

// writeManual writes the pages of root and all below it.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	for c := range commands(root) {
		c.Long = keptLines(c.Long)
	}
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "refbox " + version, Manual: "refbox"}, dir)
}

// keptLines makes blocks of what is indented, in the Markdown from which a page is
// made: lines that stay lines.
func keptLines(long string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(long) {
		indented := strings.HasPrefix(line, "  ")
		if indented != inside && strings.TrimSpace(line) != "" {
			b.WriteByte('\n')
			inside = indented
		}
		if indented {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
