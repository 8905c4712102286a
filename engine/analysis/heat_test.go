package analysis

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/internal/shared"
	"refbox/engine/recording"
)

func ofHeat(t *testing.T, dir string) Heat {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	h, err := OfHeat(context.Background(), rec)
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return h
}

// A heat of ours: what the gateway saw, on the heat's own clock.
func TestOursHowTheyFought(t *testing.T) {
	h := ofHeat(t, filepath.Join("..", "..", "recordings", "primary-failover"))
	if len(h.Seats) != 3 || len(h.Fought) != 3 {
		t.Fatalf("%d seats, %d compared", len(h.Seats), len(h.Fought))
	}
	f := h.Fought[0]
	if f.Seat != "failover-one" || f.Actions != 9 || f.FirstChangeMS == nil || *f.FirstChangeMS/1000 != 22 || f.DiscoveriesBeforeChange != 4 ||
		f.Changes != 3 || f.Errors != 1 || f.Points != 100 || f.TotalMicroUSD != nil || len(f.Milestones) != 6 || !f.Milestones[1].First {
		b, _ := json.Marshal(f)
		t.Errorf("failover-one fought so: %s", b)
	}
	if hasty := h.Fought[2]; hasty.DiscoveriesBeforeChange != 1 || hasty.ValidationsAfterLastChange != 3 || hasty.Milestones[1].PassedMS != nil {
		t.Errorf("failover-three fought so: %+v", hasty)
	}
	for _, s := range h.Seats {
		noJunk(t, s.Territory, s.Analysis)
		if !s.Observed || s.OffsetMS == nil || s.Trouble != "" || s.Analysis.Territory != s.Territory {
			t.Errorf("%+v", s)
		}
	}
}

// Every recording: transcripts of other heats are not judged, the reference's
// verdicts stand beside ours, and there is no junk in any summary.
func TestHeatsOfTheReference(t *testing.T) {
	judged, referred, foreign, cut := 0, 0, 0, 0
	for _, dir := range shared.Recordings(t) {
		h := ofHeat(t, dir)
		for i, s := range h.Seats {
			name := filepath.Base(dir) + "/" + s.Territory
			noJunk(t, name, s.Analysis)
			f := h.Fought[i]
			switch {
			case strings.Contains(s.Trouble, "another match"):
				foreign++
				if len(s.Analysis.Steps) > 0 {
					t.Errorf("%s: another match's actions are judged", name)
				}
			case strings.Contains(s.Trouble, "commands are cut"):
				cut++
			}
			for _, step := range s.Analysis.Steps {
				judged++
				if step.ReferenceKind != "" {
					referred++
				}
			}
			if f.Actions != len(s.Analysis.Steps) || f.FirstChangeMS != nil && (s.OffsetMS == nil || *f.FirstChangeMS < *f.FirstActionMS) {
				t.Errorf("%s: %+v", name, f)
			}
			if len(s.Analysis.Steps) > 0 && s.File == "" {
				t.Errorf("%s: actions from nowhere", name)
			}
		}
	}
	t.Logf("%d actions judged, %d also by the reference; %d transcripts of other matches, %d analyses alone", judged, referred, foreign, cut)
	if judged < 150 || referred < judged/2 || foreign < 2 {
		t.Error("less than there is")
	}
}
