package heat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"refbox/engine/arena"
	"refbox/engine/control"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/vm/fault"
	"refbox/vm/sim"
)

// fort is what the territories of the test's conquest run: it says what stands in a file,
// and lets anyone change that, unless another file is there.
func fort(ctx context.Context, p *sim.Process) error {
	return p.Serve(ctx, ":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			if _, err := p.ReadFile("/etc/fort/shut"); err == nil {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			body, _ := io.ReadAll(r.Body)
			p.WriteFile("/var/lib/fort/flag", body, 0o644) //nolint:errcheck // the flag tells
		}
		flag, _ := p.ReadFile("/var/lib/fort/flag")
		w.Write(flag) //nolint:errcheck // the client has left
	}))
}

// conquered is a package of three territories, with a link between them or without.
func conquered(t *testing.T, linked bool, scripts map[string]string) *arena.Package {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "forts")
	if _, err := arena.Init(dir); err != nil {
		t.Fatal(err)
	}
	p, err := arena.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Manifest
	m.Arena.Mode, m.Build, m.Players, m.Cheats, m.Visualization, m.Canary = arena.Conquest, nil, nil, nil, nil, nil
	m.Rules = arena.Rules{DurationSeconds: 6, TickMS: 100, HealthyResourcesPerTick: 1, MinimumTerritories: 2}
	m.Heat = &arena.Heat{DrainSeconds: 5}
	m.Guest = &arena.Guest{Setup: []string{"/opt/fort/setup"}}
	m.Territories, m.Agents = nil, nil
	link := arena.SeatLink{Name: "moat"}
	for _, id := range []string{"west", "east", "north"} {
		script := "players/" + id + ".sh"
		link.Territories = append(link.Territories, id)
		m.Territories = append(m.Territories, arena.Territory{ID: id, Class: m.Classes[0].ID, Service: arena.Service{Port: 8080, Path: "/", ExpectedStatus: 200, ExpectedBody: "ours",
			Health: arena.Health{PollIntervalMS: 100, ConsecutiveFailures: 3, RecoveryWindowSeconds: 1}}})
		m.Agents = append(m.Agents, arena.Agent{ID: id + "-agent", Territory: id, Adapter: arena.AdapterScript, Script: &script, Model: "scripted",
			ReasoningEffort: "default", Budget: arena.Budget{ResourceUnits: 900}})
		write(t, filepath.Join(dir, script), scripts[id])
		os.MkdirAll(filepath.Join(dir, "instructions"), 0o755) //nolint:errcheck // write tells
		write(t, filepath.Join(dir, "instructions", id+".md"), "Hold "+id+".\n")
	}
	if linked {
		m.Network.Links = []arena.SeatLink{link}
	}
	for file, text := range map[string]string{
		"setup":   "#!/bin/sh\nset -eu\nmkdir -p /var/lib/fort /etc/fort\nprintf ours >/var/lib/fort/flag\nsystemctl daemon-reload\nsystemctl enable --now fort.service\n",
		"fort.py": "#!/usr/bin/python3\n",
	} {
		os.MkdirAll(filepath.Join(dir, "guest/opt/fort"), 0o755) //nolint:errcheck // write tells
		write(t, filepath.Join(dir, "guest/opt/fort", file), text)
	}
	write(t, filepath.Join(dir, "guest/usr/lib/systemd/system/fort.service"), "[Service]\nExecStart=/opt/fort/fort.py\nRestart=always\nRestartSec=1\n\n[Install]\nWantedBy=multi-user.target\n")
	data, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "arena.json"), string(data))
	if err := os.Remove(filepath.Join(dir, "arena.toml")); err != nil {
		t.Fatal(err)
	}
	if p, err = arena.Load(dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func forts() *sim.Driver {
	return sim.New(sim.Config{Programs: map[string]sim.Program{"/opt/fort/fort.py": fort}})
}

func conquest(t *testing.T, p *arena.Package) (*recording.Recording, Result) {
	t.Helper()
	f := race(t, forts(), p)
	report, err := f.rec.Verify(t.Context())
	if err != nil || report.Breaks() > 0 {
		t.Errorf("the recording does not verify: %v %v", report, err)
	}
	return f.rec, f.Result
}

const (
	shutGate = "mkdir -p /etc/fort\ntouch /etc/fort/shut\n"
	raid     = "curl -sS -m 2 -X PUT --data-binary theirs http://%s:8080/\n"
)

// TestConquest: one attacks over the link and shuts its own gate; one is open and falls;
// one is open, falls, and is mended in time.
func TestConquest(t *testing.T) {
	rec, res := conquest(t, conquered(t, true, map[string]string{
		"west":  shutGate + "---\n# pause 0.3s\n" + fmt.Sprintf(raid, "east") + fmt.Sprintf(raid, "north"),
		"east":  "# pause 60s\ntrue\n",
		"north": "# pause 1.2s\n" + shutGate + "printf ours >/var/lib/fort/flag\n",
	}))
	w := rec.World(rec.Len())
	if res.Outcome.Winner != "west" || res.Outcome.Reason != "match timer expired" || res.Aborted {
		t.Fatalf("%+v\n%s", res.Outcome, logOf(res.Dir))
	}
	east, north, west := w.Seat("east"), w.Seat("north"), w.Seat("west")
	if east.State != "eliminated" || *east.EliminationSource != "player" || !strings.Contains(*east.EliminationDetail, `"theirs", not "ours"`) {
		t.Errorf("east: %s, %v", east.State, east.EliminationDetail)
	}
	if north.State != "healthy" || north.DegradedMS == 0 || west.DegradedMS != 0 || west.UptimeTicks <= north.UptimeTicks || west.Resources != 899+west.UptimeTicks {
		t.Errorf("north %+v, west %+v", north, west)
	}
	if a := w.Agent("east-agent"); a.Successful == nil || *a.Successful || *a.TerminalState != "failed" || !strings.Contains(*a.TerminalNote, "eliminated") {
		t.Errorf("the player of the lost territory: %+v", a)
	}
	if got := world.OutcomeOf(w, "east"); got != world.OutcomeEliminated {
		t.Errorf("east: %s", got)
	}
	// As recorded: nothing of a build race, the opening block, no machine by another name.
	var kinds []string
	for _, e := range eventsOf(t, rec) {
		if len(kinds) < 11 {
			kinds = append(kinds, e.Body.Kind())
		}
		switch b := e.Body.(type) {
		case event.CompetitorStateChanged, event.MilestoneEvaluationStarted, event.AgentOutraced:
			t.Errorf("a build race's: %+v", b)
		}
	}
	want := strings.Fields("heat_prepared match_state_changed" + strings.Repeat(" territory_state_changed", 3) + strings.Repeat(" territory_registered", 3) + strings.Repeat(" agent_started", 3))
	if !slices.Equal(kinds, want) {
		t.Errorf("%v", kinds)
	}
	charged := of(t, rec, func(b event.ResourcesChanged) bool { return b.Reason == "agent inference" })
	if len(charged) != 3 || charged[0].Delta != -1 {
		t.Errorf("charged: %+v", charged)
	}
	if brief, err := os.ReadFile(filepath.Join(res.Dir, "seats/west/brief.md")); err != nil || !strings.Contains(string(brief), "only one territory is left") {
		t.Errorf("%s %v", brief, err)
	}
}

func eventsOf(t *testing.T, rec *recording.Recording) (out []event.Event) {
	t.Helper()
	err := rec.Events(0, rec.Len(), func(_ int, e event.Event) bool { out = append(out, e); return true })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConquestWithoutALink: nobody reaches another, by name or by address.
func TestConquestWithoutALink(t *testing.T) {
	p := conquered(t, false, map[string]string{
		"west":  fmt.Sprintf(raid, "east") + fmt.Sprintf(raid, "10.88.0.11") + "true\n",
		"east":  "true\n",
		"north": "true\n",
	})
	p.Manifest.Rules.DurationSeconds = 2
	rec, res := conquest(t, p)
	if res.Outcome.Winner != "" || rec.World(rec.Len()).Seat("east").State != "healthy" {
		t.Errorf("%+v", res.Outcome)
	}
}

// TestConquestLastStanding: a heat ends when one is left, and what falls is switched off.
func TestConquestLastStanding(t *testing.T) {
	start := time.Now()
	p := conquered(t, true, map[string]string{
		"west":  shutGate + "---\n" + fmt.Sprintf(raid, "east"),
		"east":  "# pause 60s\ntrue\n",
		"north": "systemctl stop fort.service\n",
	})
	p.Manifest.Rules.DurationSeconds = 60
	rec, res := conquest(t, p)
	if res.Outcome.Winner != "west" || res.Outcome.Reason != "last territory standing" || time.Since(start) > 40*time.Second {
		t.Errorf("%+v after %v", res.Outcome, time.Since(start))
	}
	if n := rec.World(rec.Len()).Seat("north"); n.State != "eliminated" || !strings.Contains(*n.EliminationDetail, "connection") {
		t.Errorf("%+v", n)
	}
}

// TestConquestIsPaused: a pause takes nothing from anybody, a referee rules who is out, and
// faults are for races.
func TestConquestIsPaused(t *testing.T) {
	p := conquered(t, true, map[string]string{"west": "true\n", "east": "true\n", "north": "# pause 60s\ntrue\n"})
	p.Manifest.Rules.DurationSeconds = 4
	h := New(Config{Package: p, Driver: forts(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	type ended struct {
		res Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := h.Run(t.Context())
		done <- ended{res, err}
	}()
	rule := func(r control.Ruling) error {
		for {
			err := h.Rule(t.Context(), "ref", r)
			if !errors.Is(err, errNotRunning) {
				return err
			}
			time.Sleep(20 * time.Millisecond) // the heat is being prepared: nothing tells a desk that it opens
		}
	}
	if err := rule(control.Ruling{Action: control.Pause, Reason: "look"}); err != nil {
		t.Fatal(err)
	}
	at, ticks := h.clock(), h.World().Seat("west").UptimeTicks
	time.Sleep(1500 * time.Millisecond) // longer than the recovery window
	if now := h.clock(); now != at || h.World().Seat("west").UptimeTicks != ticks {
		t.Errorf("the clock went from %d to %d", at, now)
	}
	if err := rule(control.Ruling{Action: control.Resume, Reason: "go on"}); err != nil {
		t.Fatal(err)
	}
	err := rule(control.Ruling{Action: control.InjectFault, Territory: "west", Reason: "try", Fault: fault.Fault{Kind: fault.Freeze, Machine: "west"}})
	if err == nil || !strings.Contains(err.Error(), "conquest") {
		t.Errorf("a fault: %v", err)
	}
	if err := rule(control.Ruling{Action: control.Unavailable, Territory: "north", Reason: "left"}); err != nil {
		t.Error(err)
	}
	e := <-done
	if e.err != nil {
		t.Fatal(e.err)
	}
	rec := open(t, e.res.Dir)
	w := rec.World(rec.Len())
	if n := w.Seat("north"); n.State != "eliminated" || *n.EliminationSource != "controller" || w.Seat("west").DegradedMS != 0 || e.res.Outcome.Reason != "match timer expired" {
		t.Errorf("%+v %+v", e.res.Outcome, n)
	}
}

// TestConquestBeginsHealthy: a territory that is not healthy at the start is the arena's
// failure; the others hold what is theirs.
func TestConquestBeginsHealthy(t *testing.T) {
	p := conquered(t, true, map[string]string{"west": "true\n", "east": "true\n", "north": "true\n"})
	p.Manifest.Rules.DurationSeconds = 2
	p.Manifest.Territories[2].Service.ExpectedBody = "never"
	h := New(Config{Package: p, Driver: forts(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t)})
	h.untilHealthy = time.Second
	res, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, res.Dir)
	n := rec.World(rec.Len()).Seat("north")
	if n.State != "eliminated" || *n.EliminationSource != "arena" || n.Unavailable == nil || !strings.Contains(n.Unavailable.Detail, `not "never"`) {
		t.Errorf("%+v", n)
	}
}

// What is said to the log is what the log gives back, wherever it was cut.
func TestClipLeavesWholeCharacters(t *testing.T) {
	for _, c := range []string{"é", "火", "🔥", "e\u0301", "a"} {
		for n := range 4 {
			got := clip(text.Line(strings.Repeat("x", 296+n) + strings.Repeat(c, 40)))
			if got != text.Line(got) || !utf8.ValidString(got) || len(got) > 1000 || !strings.Contains(got, "xxx") {
				t.Errorf("%s, %d: %q", c, n, got)
			}
		}
	}
}
