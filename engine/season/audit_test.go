package season

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"refbox/engine/internal/shared"
)

func documents(t *testing.T, paths ...string) Documents {
	t.Helper()
	var docs Documents
	for i, p := range paths {
		file := shared.Shared(t, strings.Split(p, "/")...)
		var err error
		if i == 0 {
			docs, err = ReadFile(file)
		} else {
			err = docs.With(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return docs
}

// verdicts are a report's, by code: the worst, and the texts.
func (a *Audit) verdicts(code string) (list []Verdict, texts string) {
	for _, c := range a.Checks {
		if c.Code == code {
			list = append(list, c.Verdict)
			texts += string(c.Verdict) + ": " + c.Where + ": " + c.Text + "\n"
		}
	}
	return list, texts
}

// TestPublishedWeeks audits with the verdicts of the seasons reference, sections
// 1.12 and 1.13.
func TestPublishedWeeks(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		wants map[string][]string // what a code says
	}{
		{"infra-weekly", []string{"seasons/infra-weekly_20260911.draw.json", "seasons/infra-weekly_20260911.week.json"}, map[string][]string{
			"D1": {"holds"}, "D3": {"holds"}, "D4": {"holds"}, "W1": {"holds"},
			"W2": {"holds: : round 1 was", "holds: : round 2 was seated by the stream of rounds"},
			"W3": {"note: : wildcards fit the early rule alone", "would have chosen qwen"},
			"W4": {"holds", "failure_source arena"}, "W7": {"holds: : sums", "reached_round is 3"},
			"W6": {"holds", "note: round 2, heat 1: was replayed although luna was durable (at 51058 ms); it won again"},
			"W8": {"never read the variation seed"}, "P1": {"not checkable"}, "D5": {"is the draw's only entropy"},
		}},
		{"opencode-cup", []string{"seasons/opencode-cup_20260913.draw.json", "seasons/opencode-cup_20260913.week.json"}, map[string][]string{
			"D1": {"holds"}, "D3": {"holds"}, "D4": {"holds"}, "W1": {"holds"}, "W2": {"round 2 was seated by the stream of rounds"},
			"W3": {"note: round 1: the wildcard qwen was won by lot among 4 equals", "fit the lottery alone"},
			"W6": {"holds"}, "W7": {"holds"},
		}},
		{"seed 002", []string{"seeds/week.json"}, map[string][]string{
			"D1": {"holds"}, "D3": {"not checkable"}, "D4": {"not checkable"}, "W1": {"holds"},
			"W2": {"round 2 was seated by the stream of rounds"},
			"W3": {"note: round 1: the wildcard gemini was won by lot among 4 equals at 5 points", "fit the lottery alone"},
			"W4": {"failure_source arena"}, "W5": {"holds"}, "W6": {"holds"}, "W7": {"holds: : sums", "reached_round is 3"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := documents(t, c.files...).Check(Sources{})
			for code, texts := range c.wants {
				_, said := a.verdicts(code)
				for _, want := range texts {
					if !strings.Contains(said, want) {
						t.Errorf("%s does not say %q:\n%s", code, want, said)
					}
				}
			}
			for _, k := range a.Checks {
				if k.Verdict == Broken {
					t.Errorf("broken: %+v", k)
				}
			}
			if c.name == "opencode-cup" {
				if _, said := a.verdicts("W6"); strings.Contains(said, "replay erased") || strings.Contains(said, "was replayed") {
					t.Errorf("a replay that was not: %s", said)
				}
			}
		})
	}
}

// leaf is one changed field of a document.
type leaf struct{ path, pattern, from, to string }

// mutations calls try for every field of a document, changed in each of several
// ways, one at a time; the document is as before afterwards.
func mutations(v reflect.Value, path, pattern string, try func(leaf)) {
	set := func(to reflect.Value) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		if reflect.DeepEqual(was.Interface(), to.Interface()) {
			return
		}
		v.Set(to)
		try(leaf{path, pattern, shown(was.Interface()), shown(to.Interface())})
		v.Set(was)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			sep := "."
			if path == "" {
				sep = ""
			}
			mutations(v.Field(i), path+sep+name, pattern+sep+name, try)
		}
	case reflect.Pointer:
		if v.IsNil() {
			some := reflect.New(v.Type().Elem())
			if some.Elem().Kind() == reflect.String {
				some.Elem().SetString("x")
			}
			if some.Elem().Kind() != reflect.Struct {
				set(some)
			}
			return
		}
		set(reflect.Zero(v.Type()))
		was := v.Elem().Interface()
		mutations(v.Elem(), path, pattern, try)
		v.Elem().Set(reflect.ValueOf(was))
	case reflect.Slice:
		for i := range v.Len() {
			mutations(v.Index(i), fmt.Sprintf("%s[%d]", path, i), pattern+"[]", try)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			was := v.MapIndex(k)
			v.SetMapIndex(k, reflect.ValueOf(was.String()+"x"))
			try(leaf{path + "." + k.String(), pattern + ".*", was.String(), was.String() + "x"})
			v.SetMapIndex(k, was)
		}
	case reflect.String:
		s := v.String()
		set(reflect.ValueOf(s + "x"))
		for _, o := range []string{Durable, Incomplete, Failed, Forfeit} {
			if slices.Contains([]string{Durable, Incomplete, Failed, Forfeit}, s) {
				set(reflect.ValueOf(o))
			}
		}
	case reflect.Int, reflect.Int64:
		for _, d := range []int64{1, -1, 1000} {
			to := reflect.New(v.Type()).Elem()
			to.SetInt(v.Int() + d)
			set(to)
		}
	case reflect.Bool:
		set(reflect.ValueOf(!v.Bool()))
	}
}

// caught says whether an audit finds a change out, or says that nothing could.
func caught(a *Audit, doc string, l leaf) bool {
	for _, c := range a.Checks {
		if c.Verdict == Broken {
			return true
		}
		if c.Verdict == Unchecked && slices.ContainsFunc(c.Fields, func(f string) bool {
			return f == doc+": "+l.pattern || strings.HasSuffix(f, ".*") && strings.HasPrefix(doc+": "+l.pattern, strings.TrimSuffix(f, "*"))
		}) {
			return true
		}
	}
	return false
}

// changes tries every single change of both documents.
func changes(t *testing.T, name string, docs Documents, src Sources) {
	t.Helper()
	tried, bound := 0, 0
	try := func(doc string) func(leaf) {
		return func(l leaf) {
			now := docs
			if docs.Draw != nil {
				data, err := docs.Draw.JSON()
				if err != nil {
					t.Fatal(err)
				}
				if now.Digest, err = Digest(data); err != nil {
					t.Fatal(err)
				}
			}
			tried++
			a := now.Check(src)
			if !caught(a, doc, l) {
				t.Errorf("%s: %s %s: %s → %s is neither caught nor listed", name, doc, l.path, l.from, l.to)
			} else if a.Count(Broken) > 0 {
				bound++
			}
		}
	}
	if docs.Draw != nil {
		mutations(reflect.ValueOf(docs.Draw).Elem(), "", "", try("draw"))
	}
	if docs.Week != nil {
		mutations(reflect.ValueOf(docs.Week).Elem(), "", "", try("week"))
	}
	t.Logf("%s: %d changes, %d break a check, the others are listed as not checkable", name, tried, bound)
	if a := docs.Check(src); a.Count(Broken) > 0 {
		t.Fatalf("%s: the documents were not restored: %+v", name, a.Checks)
	}
}

func TestEveryChangeIsCaughtOrListed(t *testing.T) {
	for _, name := range published {
		draw, week := "seasons/"+name+".draw.json", "seasons/"+name+".week.json"
		changes(t, name+" draw and week", documents(t, draw, week), Sources{})
		changes(t, name+" draw", documents(t, draw), Sources{})
		changes(t, name+" week", documents(t, week), Sources{})
		docs := documents(t, draw, week)
		journals := map[string]Heat{}
		for _, r := range publishedWeek(t, name).Rounds {
			for _, h := range r.Heats {
				journals[HeatName(r.Round, h.Heat)] = h
			}
		}
		changes(t, name+" with journals", docs, Sources{Journals: journals})
	}
	changes(t, "seed 002", documents(t, "seeds/week.json"), Sources{})
}

// An arena that was changed after a week was run does not break the week; one that
// was changed before does.
func TestAnArenaChangesLater(t *testing.T) {
	name := published[0]
	docs := documents(t, "seasons/"+name+".draw.json", "seasons/"+name+".week.json")
	src := Sources{Key: func(Arena) (string, map[string]string, error) { return "other", nil, nil }}
	if list, said := docs.Check(src).verdicts("P1"); slices.Contains(list, Broken) || !strings.Contains(said, "has changed since the week was run") {
		t.Errorf("%s", said)
	}
	running := *docs.Week
	running.Completed = false
	docs.Week = &running
	if list, said := docs.Check(src).verdicts("P1"); !slices.Contains(list, Broken) {
		t.Errorf("%s", said)
	}
}

// TestHostileDocuments changes bytes at random: whatever still parses is audited
// and shown, without a panic and within bounds.
func TestHostileDocuments(t *testing.T) {
	var seeds [][]byte
	for _, name := range published {
		seeds = append(seeds, read(t, "seasons", name+".draw.json"), read(t, "seasons", name+".week.json"))
	}
	parsed, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		docs := Documents{}
		for _, k := range rapid.SliceOfN(rapid.IntRange(0, len(seeds)-1), 1, 2).Draw(t, "documents") {
			data := bytes.Clone(seeds[k])
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
				switch rapid.IntRange(0, 2).Draw(t, "how") {
				case 0:
					data[at] = rapid.SampledFrom([]byte(`0123456789"{}[],-e`)).Draw(t, "byte")
				case 1: // a key that is no longer known: its value is gone
					if q := bytes.IndexByte(data[at:], '"'); q >= 0 && at+q+1 < len(data) {
						data[at+q+1] = 'x'
					}
				case 2: // a list that is empty now
					if from := bytes.IndexByte(data[at:], '['); from >= 0 {
						if to := bytes.IndexByte(data[at+from:], ']'); to > 0 {
							data = slices.Delete(data, at+from+1, at+from+to)
						}
					}
				}
			}
			tried++
			if err := docs.add(data); err == nil {
				parsed++
			}
		}
		if docs.Draw == nil && docs.Week == nil {
			return
		}
		docs.View(func(string) bool { return true })
		for _, c := range docs.Check(Sources{}).Checks {
			if c.Verdict == Broken && c.Text == "" {
				t.Fatalf("a break that says nothing: %+v", c)
			}
		}
	})
	if parsed*10 < tried {
		t.Errorf("of %d documents only %d parsed: the test no longer tests", tried, parsed)
	}
}
