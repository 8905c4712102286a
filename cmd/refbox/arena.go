package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/text"
)

func newArena(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "arena",
		Short:   "The arenas that can be raced",
		Example: "  refbox arena list\n  refbox arena validate ./my-arena",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("arena takes a command: list, init, validate, test\ntry: refbox arena --help")
		},
	}
	var asJSON bool
	list := &cobra.Command{
		Use:     "list",
		Short:   "List the bundled arenas",
		Example: "  refbox arena list",
		Args:    exactArgs(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return listArenas(a, asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list, newArenaInit(a), newArenaValidate(a), newArenaTest(a))
	return c
}

func listArenas(a *app, asJSON bool) error {
	type row struct {
		ID         string `json:"id"`
		Name       string `json:"display_name"`
		Mode       string `json:"mode"`
		Seats      int    `json:"seats"`
		Milestones int    `json:"milestones"`
		Points     uint64 `json:"points"`
		Seconds    uint64 `json:"duration_seconds"`
	}
	rows := []row{}
	for _, id := range arena.Bundled() {
		p, err := arena.Load(id)
		if err != nil {
			return err
		}
		m := p.Manifest
		rows = append(rows, row{id, m.Arena.DisplayName, m.Arena.Mode, len(m.Territories), len(m.Milestones()), m.Points(), m.Rules.DurationSeconds})
	}
	if asJSON {
		return writeJSON(a.out, rows)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ARENA\tNAME\tSEATS\tMILESTONES\tPOINTS\tLIMIT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%dm%02ds\n", r.ID, text.Line(r.Name), r.Seats, r.Milestones, r.Points, r.Seconds/60, r.Seconds%60)
	}
	return w.Flush()
}

// writeJSON prints v as every --json does: indented, one document, a newline.
func writeJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
