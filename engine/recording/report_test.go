package recording

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"refbox/engine/internal/shared"
)

// reportOf makes the reference's match-report.json of a recording: events with
// their keys sorted and the doubled one resolved, the world with the newer key.
func reportOf(t testing.TB, dir string) []byte {
	t.Helper()
	read := func(name string) any {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	log, err := os.ReadFile(filepath.Join(dir, eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	var events []any
	for _, l := range splitLines(log) {
		var e map[string]any
		d := json.NewDecoder(bytes.NewReader(l))
		d.UseNumber()
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	world := read(worldFile).(map[string]any)
	for _, a := range world["agents"].(map[string]any) {
		a.(map[string]any)["cost_complete"] = nil
	}
	out, err := json.MarshalIndent(map[string]any{
		"schema_version": 1, "analyses": map[string]any{"../evil": map[string]any{}, "some-agent": map[string]any{"x": 1}},
		"match": map[string]any{"name": "n", "slug": "s", "listed": true, "fog_of_war": false}, "events": events,
		"provenance": read(matchFile), "visualization": nil, "world": world,
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What the folder of a heat gives, its report alone gives too.
func TestReportAlone(t *testing.T) {
	for _, dir := range shared.Recordings(t) {
		whole, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), filepath.Base(dir))
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		data := reportOf(t, dir)
		write(t, filepath.Join(name, reportFile), string(data))
		for _, path := range []string{name, filepath.Join(name, reportFile)} {
			r, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if r.Name() != filepath.Base(dir) || r.Len() != whole.Len() || r.Head() != whole.Head() || r.Arena() == "" && whole.match != nil {
				t.Fatalf("%s: %d events, head %d, arena %q", r.Name(), r.Len(), r.Head(), r.Arena())
			}
			if got, want := worldText(t, r.World(r.Len())), worldText(t, whole.World(whole.Len())); got != want {
				t.Fatalf("%s: the fold differs:\n%s\n%s", r.Name(), got, want)
			}
			report, err := r.Verify(t.Context())
			if err != nil || report.Breaks() > 0 {
				t.Fatalf("%s: %v %+v", r.Name(), err, report)
			}
			if codes(report)["from_report"] != 1 {
				t.Fatalf("%s: does not say where it is from: %+v", r.Name(), report.Findings)
			}
			// A walk gives what is there, so that a bundle holds the report itself.
			if entries := r.source().list("."); len(entries) != 1 || entries[0].Name() != reportFile {
				t.Fatalf("%v", entries)
			}
			if a, err := r.File("some-agent-analysis.json"); err != nil || !strings.Contains(string(a), "1") {
				t.Fatalf("%q %v", a, err)
			}
			r.Close()
		}
		whole.Close()
		list, err := List(filepath.Dir(name))
		if err != nil || len(list) != 1 || list[0].State != "finished" || list[0].Badge != "notes" {
			t.Fatalf("%+v %v", list, err)
		}
		tree := fstest.MapFS{reportFile: {Data: data}}
		r, err := OpenTree(tree, "x.zip")
		if err != nil || r.Len() != list[0].Integrity.Events {
			t.Fatal(err)
		}
		r.Close()
	}
}

func codes(r Report) map[string]int {
	out := map[string]int{}
	for _, f := range r.Findings {
		out[f.Code]++
	}
	return out
}

// A changed world of a report is a break; a cut or damaged report is read as far
// as it goes.
func TestDamagedReports(t *testing.T) {
	good := string(reportOf(t, shared.Shared(t, "recordings", "oracle-smoke-2-round-002")))
	try := func(data string) (*Recording, Report) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, reportFile), data)
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		report, err := r.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r, report
	}
	if _, rep := try(strings.Replace(good, `"milestone_points": 100`, `"milestone_points": 99`, 1)); codes(rep)["world_differs"] != 1 {
		t.Fatalf("a changed world is not found: %+v", rep.Findings)
	}
	half := strings.Index(good, `"elapsed_ms": 2`)
	if r, rep := try(good[:half]); r.Len() != 10 || codes(rep)["torn_report"] != 1 || rep.Stopped == "" {
		t.Fatalf("%d events: %+v", r.Len(), rep)
	}
	if r, rep := try(good[:half] + "}}}" + good[half:]); r.Len() != 10 || codes(rep)["broken_report"] != 1 {
		t.Fatalf("%d events: %+v", r.Len(), rep)
	}
	for _, s := range []string{"", "[]", "nonsense", `{"events":{}}`, `{"events":null}`, `{"events":[1,"x",null]}`, strings.Repeat(`{"a":`, 20000), `{"world":[],"provenance":3}`} {
		if r, rep := try(s); r.Len() != 0 || len(rep.Findings) == 0 || rep.Badge() == "ok" {
			t.Errorf("%.20q: %+v", s, rep)
		}
	}
}

// The reference makes folders and publishes them flat: an agent's files are found
// either way, and not where a hostile id points.
func TestNestedArtifacts(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, eventsFile), line(0, 0, `"kind":"agent_started","agent":"a","territory":"t","model":"m"`)+
		line(1, 0, `"kind":"agent_started","agent":"../x","territory":"u","model":"m"`))
	write(t, filepath.Join(dir, "agents", "a", "result.json"), "{}")
	write(t, filepath.Join(dir, "x", "result.json"), "{}")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, file, err := r.Artifact("t", "result.json"); err != nil || file != "agents/a/result.json" {
		t.Fatalf("%q %v", file, err)
	}
	if _, file, err := r.Artifact("u", "result.json"); err == nil {
		t.Fatalf("found %q", file)
	}
}
