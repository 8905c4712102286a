package tui

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/viewtest"
)

func decode64(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// poison sets every string of a body that is not a name to the hostile text, and
// names to hostile names.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(viewtest.Hostile)
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.String {
			s := viewtest.Hostile
			v.Set(reflect.ValueOf(&s))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			s := reflect.MakeSlice(v.Type(), 2, 2)
			for i := range 2 {
				poison(s.Index(i))
			}
			v.Set(s)
		}
	case reflect.Uint64:
		v.SetUint(3)
	}
}

func TestHostileStringsEverywhere(t *testing.T) {
	m := demoArena()
	m.Arena.DisplayName = viewtest.Hostile
	for i := range m.Build.Milestones {
		m.Build.Milestones[i].DisplayName = viewtest.Hostile
	}
	for i := range m.Visualization.Nodes {
		m.Visualization.Nodes[i].DisplayName = viewtest.Hostile
	}
	for i := range m.Visualization.Links {
		m.Visualization.Links[i].Label = ptr(viewtest.Hostile)
	}
	x := startTape(t, m)
	x.begin()
	bodies := []event.Body{
		event.HeatPrepared{}, event.TerritoryRegistered{}, event.AgentStarted{}, event.CompetitorStateChanged{}, event.MilestoneEvaluationStarted{},
		event.MilestonePassed{}, event.MilestoneFailed{}, event.MilestoneRevoked{}, event.AgentActionStarted{}, event.AgentActionFinished{},
		event.AttackStarted{}, event.AttackFinished{}, event.FaultInjected{}, event.FaultFailed{}, event.LimitReached{}, event.SeatUnavailable{},
		event.HeatPaused{}, event.HeatResumed{}, event.ConsoleAttached{}, event.ConsoleDetached{}, event.RefereeRuling{}, event.OperatorNote{},
		event.HostileOutput{}, event.HealthObserved{}, event.TerritoryStateChanged{}, event.ResourcesChanged{}, event.TerritoryEliminated{},
		event.InfrastructureFailure{}, event.AgentFinished{}, event.AgentInterrupted{}, event.AgentTerminated{}, event.AgentOutraced{}, event.UsageCharged{},
	}
	for _, b := range bodies {
		for _, seat := range []string{viewtest.Hostile, demoSeats[0]} { // a seat of its own, and texts on one that is known
			v := reflect.New(reflect.TypeOf(b)).Elem()
			poison(v)
			for name, value := range map[string]string{"Territory": seat, "Milestone": "reads-restored", "Agent": "agent-one"} {
				if f := v.FieldByName(name); f.IsValid() && seat != viewtest.Hostile {
					f.SetString(value)
				}
			}
			if body, ok := v.Interface().(event.Body); ok {
				x.add(2000, body)
			}
		}
	}
	x.add(2100, event.MatchFinished{Winner: ptr(viewtest.Hostile), Reason: viewtest.Hostile, DeadHeat: []string{viewtest.Hostile, viewtest.Hostile}})
	for range 30 {
		x.console(demoSeats[0], viewtest.Hostile+"\r\n")
		x.console(viewtest.Hostile, viewtest.Hostile)
	}
	// A probe record of which every string is hostile.
	name := x.evidence(viewtest.Hostile, viewtest.Hostile, 1, viewtest.Hostile, viewtest.Hostile, 200)
	x.add(2100, event.MilestoneFailed{Territory: demoSeats[1], Milestone: "reads-restored", Category: viewtest.Hostile, Detail: viewtest.Hostile, Attempt: 9, Record: name})
	x.add(2100, event.MilestoneFailed{Territory: demoSeats[2], Milestone: "reads-restored", Category: viewtest.Hostile, Detail: viewtest.Hostile, Attempt: 9, Record: "../../etc/" + viewtest.Hostile})
	if err := x.w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []canvas.Output{{Profile: canvas.TrueColor, Theme: canvas.Dark(), Paint: true}, {Profile: canvas.ANSI256, Theme: canvas.Light(), ASCII: true}} {
		d := watchOf(t, x.dir, 120, 34, o, Desk{})
		look := func(where string) {
			t.Helper()
			for _, size := range [][2]int{{41, 13}, {120, 34}} {
				d.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				viewtest.Fits(t, d.m.View(), size[0], size[1])
				viewtest.OnlySGR(t, where, d.m.View())
			}
		}
		d.press("G")
		look("overview")
		for i := range len(d.heat().world.Seats()) {
			where := fmt.Sprintf("seat %d", i)
			d.press("enter")
			look(where)
			d.press("tab", "k", "enter")
			look(where + " actions")
			d.press("y", "esc", "tab")
			look(where + " console")
			d.press("tab", "enter", "g", "G", "k")
			look(where + " evidence")
			d.press("tab", "pgdown")
			look(where + " record")
			d.press("esc", "w", "j")
			look(where + " why")
			d.press("esc", "esc", "tab")
		}
		for range 80 {
			d.press(",")
		}
		look("earlier")
		d.press("i")
		d.until("it is checked", func() bool { return !d.heat().verifying })
		for range 6 {
			look("integrity")
			d.press("pgdown")
		}
		d.press("esc")
		d.press("/", "界")
		d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(viewtest.Hostile), Paste: true})
		look("prompt")
		d.press("enter")
		look("found")
		d.until("found", func() bool { return !strings.HasPrefix(d.m.notice, "looking") })
		look("found")
		for rest := d.out.String(); rest != ""; { // copies
			i := strings.Index(rest, "\x07")
			if i < 0 || !strings.HasPrefix(rest, "\x1b]52;c;") {
				t.Fatalf("what was copied is not whole: %q", rest)
			}
			if copied := decode64(t, rest[len("\x1b]52;c;"):i]); text.Block(copied) != copied {
				t.Fatalf("copied unsanitised: %q", copied)
			}
			rest = rest[i+1:]
		}
	}
}

// What a transcript tells and what a foreign log and its file names hold is
// anybody's.
func TestHostileForeignFolder(t *testing.T) {
	dir := t.TempDir()
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	raw := viewtest.Hostile
	agent := "evil"
	log := fmt.Sprintf(`{"schema_version":1,"sequence":0,"elapsed_ms":0,"kind":"territory_registered","territory":"t","class":"c","agent":%s,%s:1}
{"schema_version":1,"sequence":9,"elapsed_ms":5000,"kind":%s,"x":%s}
%s
{"schema_version":1,"sequence":9,"elapsed_ms":1000,"kind":"usage_charged","agent":%s,"resource_units":0,"input_tokens":1,"output_tokens":2,"cost_microusd":3}
`, quoted(agent), quoted(viewtest.Hostile), quoted(viewtest.Hostile), quoted(viewtest.Hostile), raw, quoted(agent))
	told := fmt.Sprintf(`{"schema_version":2,"usage":{"input_tokens":1,"output_tokens":2},"tool_trace":[{"id":%[1]s,"name":%[1]s,"input":{"command":%[1]s},"output":%[1]s},{"name":%[1]s,"input":{%[1]s:%[1]s}}],
		"timing":{"model_rounds":[{"duration_ms":100,"usage":{"input_tokens":1,"output_tokens":2}}]}}`, quoted(viewtest.Hostile))
	for name, data := range map[string]string{"events.jsonl": log, agent + "-transcript.json": told, agent + "-transcript.live.json": told[:200], "match.json": raw, "arena.json": raw, "world.json": raw} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Skipf("this file system takes no such name: %v", err)
		}
	}
	d := watchOf(t, dir, 120, 34, canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}, Desk{})
	d.until("the transcripts are read", func() bool { return len(d.heat().told) > 0 })
	d.press("G")
	viewtest.OnlySGR(t, "overview", d.m.View())
	if n := d.heat().deeds(d.heat().chosen()).Len(); n == 0 {
		t.Fatalf("the transcript is not told: %+v", d.heat().told["t"])
	}
	d.press("enter", "tab", "k", "k")
	viewtest.OnlySGR(t, "seat", d.m.View())
	d.press("i")
	d.until("it is checked", func() bool { return !d.heat().verifying })
	for range 5 {
		viewtest.OnlySGR(t, "integrity", d.m.View())
		viewtest.Fits(t, d.m.View(), 120, 34)
		d.press("pgdown")
	}
}

// Folder names are hostile too, and so is everything in the lobby's list.
func TestHostileLobby(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.NewReplacer("/", "", "\x00", "").Replace(viewtest.Hostile))
	if err := os.Rename(demoHeat(t), dir); err != nil {
		t.Skipf("this file system takes no such name: %v", err)
	}
	d := lobbyOf(t, 120, 34, canvas.Output{Profile: canvas.TrueColor, Theme: canvas.Dark()}, dir)
	d.press("j")
	viewtest.OnlySGR(t, "lobby", d.m.View())
	d.press("enter")
	d.until("it opens", func() bool { return len(d.m.screens) == 2 })
	viewtest.OnlySGR(t, "heat", d.m.View())
}
