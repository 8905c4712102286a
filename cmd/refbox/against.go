package main

import (
	"context"
	"fmt"
	"strings"

	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
)

// comparison is two recordings on one clock.
type comparison struct {
	Recording string          `json:"recording"`
	Against   string          `json:"against"`
	Lanes     []playback.Lane `json:"lanes"`
}

// replayAgainst shows a recording with another behind it, or prints their splits.
func replayAgainst(ctx context.Context, a *app, dir, other string, lines, asJSON bool) error {
	rec, err := openRecording(dir)
	if err != nil {
		return err
	}
	against, err := loadRecording(ctx, other)
	if err != nil {
		rec.Close()
		return err
	}
	defer against.Close()
	if !lines && !asJSON && canShow(a) {
		return sumUp(ctx, a, dir)(tui.Race(ctx, screenConfig(a), rec, against, a.in, a.out))
	}
	defer rec.Close()
	if err := rec.Load(ctx); err != nil {
		return err
	}
	c := comparison{rec.Name(), against.Name(), playback.Compare(sideOf(rec), sideOf(against))}
	if asJSON {
		return writeJSON(a.out, c)
	}
	return printComparison(a, c)
}

func sideOf(rec *recording.Recording) playback.Side {
	return playback.Side{World: rec.World(rec.Len()), Manifest: rec.Manifest()}
}

func printComparison(a *app, c comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s; a minus is sooner\n", c.Recording, c.Against)
	for _, l := range c.Lanes {
		against := "nobody"
		if l.Against != nil {
			against = who(*l.Against)
		}
		fmt.Fprintf(&b, "\n%s against %s\n", who(l.Seat), against)
		width := 0
		for _, s := range l.Splits {
			width = max(width, text.Width(s.Milestone))
		}
		for _, s := range l.Splits {
			delta := ""
			if d := s.DeltaMS; d != nil {
				delta = fmt.Sprintf("%+.3f s", float64(*d)/1000)
			}
			line := fmt.Sprintf("  %s  %9s  %9s  %12s", text.Pad(s.Milestone, width), instant(s.MS), instant(s.AgainstMS), delta)
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

func who(r playback.Runner) string {
	if r.Model == "" {
		return r.Territory
	}
	return r.Territory + " (" + r.Model + ")"
}

func instant(ms *uint64) string {
	if ms == nil {
		return "-"
	}
	return playback.Format(*ms)
}
