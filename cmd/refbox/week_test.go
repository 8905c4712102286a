package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The week of the scripted cup that was raced on real machines is sound, its heats'
// recordings included.
func TestRecordedWeek(t *testing.T) {
	cup, err := filepath.Abs("../../recordings/scripted-cup")
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	p := b.run(2*time.Minute, "season", "audit", filepath.Join(cup, "2026-W49"), "--manifest", filepath.Join(cup, "cup.toml"))
	if s := p.output.String(); p.code != 0 || !strings.Contains(s, "holds: 0 breaks") || !strings.Contains(s, "those of 3 recordings") {
		t.Errorf("the audit exits with %d\n%s%s", p.code, s, p.errors)
	}
	for n, heat := range []string{"round-01/heat-01", "round-01/heat-02", "round-02/heat-01"} {
		if v := b.run(time.Minute, "verify", filepath.Join(cup, "2026-W49", heat)); v.code != 0 {
			t.Errorf("heat %d: verify exits with %d\n%s%s", n, v.code, v.output, v.errors)
		}
	}
}
