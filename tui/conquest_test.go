package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"refbox/tui/canvas"
)

// A conquest's lanes show where a seat was not well, its pane how it came there.
func TestConquest(t *testing.T) {
	log := []string{
		`{"schema_version":1,"sequence":0,"elapsed_ms":0,"kind":"match_state_changed","from":"preparing","to":"running"}`,
		`{"schema_version":1,"sequence":1,"elapsed_ms":0,"kind":"territory_registered","territory":"north","class":"keep","agent":"a"}`,
		`{"schema_version":1,"sequence":2,"elapsed_ms":0,"kind":"territory_registered","territory":"south","class":"keep","agent":"b"}`,
		`{"schema_version":1,"sequence":3,"elapsed_ms":10,"kind":"territory_state_changed","territory":"north","from":"provisioning","to":"healthy","reason":"preflight passed"}`,
		`{"schema_version":1,"sequence":4,"elapsed_ms":10,"kind":"territory_state_changed","territory":"south","from":"provisioning","to":"healthy","reason":"preflight passed"}`,
		`{"schema_version":1,"sequence":5,"elapsed_ms":900,"kind":"resources_changed","territory":"north","delta":1,"remaining":901,"reason":"healthy tick"}`,
		`{"schema_version":1,"sequence":6,"elapsed_ms":4000,"kind":"territory_state_changed","territory":"south","from":"healthy","to":"degraded","reason":"502 \u001b[2Jfrom the gate"}`,
		`{"schema_version":1,"sequence":7,"elapsed_ms":6000,"kind":"territory_state_changed","territory":"south","from":"degraded","to":"eliminated","reason":"not healthy for 2 s"}`,
		`{"schema_version":1,"sequence":8,"elapsed_ms":6000,"kind":"territory_eliminated","territory":"south","source":"player","detail":"not healthy for 2 s"}`,
		`{"schema_version":1,"sequence":9,"elapsed_ms":10000,"kind":"match_state_changed","from":"running","to":"finished"}`,
		`{"schema_version":1,"sequence":10,"elapsed_ms":10000,"kind":"match_finished","winner":"north","reason":"last one standing"}`,
	}
	dir := filepath.Join(t.TempDir(), "conquest")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(strings.Join(log, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []canvas.Output{plainOutput(), {Profile: canvas.Mono, Theme: canvas.Dark()}} {
		d := replayOf(t, dir, 120, 34, o)
		d.until("the states are read", func() bool { return len(d.heat().spells) == 2 })
		d.goTo("3s")
		lane := func(seat string) string {
			for row := range strings.SplitSeq(d.text(), "\n") {
				if strings.HasPrefix(row[1:], seat) || strings.HasPrefix(strings.TrimPrefix(row, "▸"), seat) {
					return row
				}
			}
			t.Fatalf("no lane of %s:\n%s", seat, d.text())
			return ""
		}
		if strings.ContainsAny(lane("south"), "┄✗") {
			t.Fatalf("not well too early: %s", lane("south"))
		}
		d.goTo("5s")
		if !strings.Contains(lane("south"), "┄") || strings.Contains(lane("south"), "✗") {
			t.Fatalf("not degraded: %s", lane("south"))
		}
		d.goTo("9s")
		if !strings.Contains(lane("south"), "✗") || strings.ContainsAny(lane("north"), "┄✗") || !strings.HasSuffix(strings.TrimSpace(lane("north")), "901") {
			t.Fatalf("%s\n%s", lane("south"), lane("north"))
		}
		d.press("2", "enter")
		d.shows("standing · 2 south")
		d.shows("00:04.0  ◐ degraded  502")
		d.shows("00:06.0  ✗ eliminated  not healthy for 2 s")
		d.shows("story")
	}
	for _, size := range sizes {
		d := replayOf(t, dir, size[0], size[1], plainOutput())
		d.until("the states are read", func() bool { return len(d.heat().spells) == 2 })
		d.goTo("9s")
		d.press("2", "enter")
		d.golden(fmt.Sprintf("conquest-%dx%d", size[0], size[1]))
	}
}
