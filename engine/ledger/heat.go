package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/engine/text"
)

// Offer is evidence of a heat, judged, before anybody kept it.
type Offer struct {
	Evidence Evidence `json:"evidence"`
	Verdict  Verdict  `json:"verdict"`
}

// Judged is what a heat has to offer to a ledger.
type Judged struct {
	Heat   string  `json:"heat"`
	Arena  string  `json:"arena"`
	Offers []Offer `json:"offers"`
	// Notes say what the arena declares of which the heat shows nothing.
	Notes []string `json:"notes,omitempty"`
	// Emulated: the machines had no hardware help.
	Emulated bool `json:"emulated,omitempty"`
}

// Review is who looks at a heat's evidence.
type Review struct {
	By  string // never the player that is judged
	Fix string // what was mended since the scenario was contradicted; "" for nothing
}

// JudgeHeat makes evidence of a recorded heat, one for each seat and each fault
// that its arena says exercises a scenario of the model, and judges it. The heat is
// read to its end; nothing is written.
func (t Terms) JudgeHeat(ctx context.Context, rec *recording.Recording, by Review) (Judged, error) {
	j := Judged{Heat: rec.Path(), Arena: rec.Arena(), Offers: []Offer{}}
	if err := rec.Load(ctx); err != nil {
		return j, err
	}
	if from := rec.World(rec.Len()).BranchedFrom(); from != "" {
		j.Notes = append(j.Notes, "the heat was "+from+", on machines that another player had already repaired in part: it is no evidence")
		return j, nil
	}
	m := rec.Manifest()
	if m == nil || len(m.Exercises) == 0 {
		j.Notes = append(j.Notes, "the arena declares no scenario that it exercises ([[exercises]] in its manifest): nothing is inferred from its name")
		return j, nil
	}
	rep, err := rec.Verify(ctx)
	if err != nil {
		return j, err
	}
	h, err := listen(rec)
	if err != nil {
		return j, err
	}
	match := rec.Match()
	j.Emulated = match != nil && match.Machines["accel"] == "tcg"
	t = t.TermsOf(ctx, rec)
	for _, x := range m.Exercises {
		if t.Model.Scenario(x.Scenario) == nil {
			j.Notes = append(j.Notes, fmt.Sprintf("the model has no scenario %s, which the arena exercises by %s", x.Scenario, x.Fault))
			continue
		}
		shown := 0
		for _, id := range h.order {
			s := h.seats[id]
			for n, f := range s.matching(x) {
				if err := ctx.Err(); err != nil {
					return j, err
				}
				e := t.evidence(rec, h, s, x, f, by)
				e.ID = fmt.Sprintf("%s/%s/%s", short(h.head), s.id, x.Scenario)
				if x.Fault != arena.StartsBroken {
					e.ID += fmt.Sprintf("/%s-%d", x.Fault, n+1)
				}
				e.NegativeControl = t.control(&e)
				v := t.Judge(&e)
				distrust(&v, rep)
				j.Offers = append(j.Offers, Offer{e, v})
				shown++
			}
		}
		if err := ctx.Err(); err != nil {
			return j, err // what could not be read in time refused nothing
		}
		if shown == 0 {
			j.Notes = append(j.Notes, fmt.Sprintf("%s: no seat had the fault %s in this heat", x.Scenario, x.Fault))
		}
	}
	return j, nil
}

// distrust refuses evidence of a recording that does not hold, or that was never
// closed.
func distrust(v *Verdict, rep recording.Report) {
	why := ""
	switch {
	case rep.Breaks() > 0:
		why = "the recording does not hold: refbox verify says what is broken"
	case !rep.Chained || !rep.Sealed:
		why = "the recording is not chained and sealed: it was not closed properly, or another program wrote it"
	default:
		return
	}
	for i := range v.Gates {
		if g := &v.Gates[i]; g.Code == Integrity && g.Pass {
			g.Pass, g.Text = false, why
		}
	}
	v.Outcome, v.Why = Inconclusive, nil
}

// evidence is what the heat shows of one fault at one seat.
func (t Terms) evidence(rec *recording.Recording, h *hearing, s *seat, x arena.Exercise, f fault, by Review) Evidence {
	match := rec.Match()
	e := Evidence{Scenario: x.Scenario, Arena: rec.Arena(), Territory: s.id, Heat: rec.Path(), Agent: s.agent, Recorder: "unknown",
		Reviewer: text.Line(by.By), Fix: text.Line(by.Fix), Artifacts: map[string]string{},
		Target: Target{Policy: t.Policy.SHA256(), Release: t.Model.Release}}
	if match != nil {
		if match.Ours() {
			e.Recorder = strings.TrimSpace(Recorder + " " + match.ControllerVersion)
		}
		e.Target.Arena = match.ManifestSHA256
		if h.driver == "qemu" {
			e.Target.Image = match.Machines["image"]
		}
		if match.StartedAt != nil {
			e.Day = match.StartedAt.UTC().Format(time.DateOnly)
		}
	}
	e.Target.Digest = e.Target.Sum()
	brief, briefFile, _ := rec.Artifact(s.id, "brief.md") // of foreign heats there is none
	for _, name := range append([]string{"match.json", "arena.json", "events.jsonl", "world.json", briefFile}, f.records(s, x)...) {
		if sum, err := t.Digest(name); err == nil {
			e.Artifacts[name] = sum
		}
	}

	end := h.end
	if next := s.after(f); next != nil {
		end = min(end, next.injected)
	}
	e.Fault = Fault{Kind: x.Fault, Target: f.target, Injector: f.author, Params: f.params, ConfirmedBy: f.witness, Saw: f.saw, Forgeable: f.forgeable,
		AnnouncedToAgent: x.Announced || x.Fault == arena.StartsBroken || told(string(brief), x)}
	e.Fault.Untouched = f.forgeable != "" && match != nil && match.Ours() && (s.entered == nil || *s.entered > f.confirmed)
	e.Told, e.Watched = s.told(x.To, f.confirmed, end), s.told(x.SingleWriter, f.confirmed, end)
	e.Clock = Clock{InjectedMS: f.injected, ConfirmedMS: f.confirmed, EndMS: end, BaselineMS: s.healthySince(f.injected)}
	gap, back := s.outage(f, end)
	e.Probe = s.counts(h.interval, f, end)
	e.Probe.GapMS = gap
	e.Clock.RestoredMS = back
	until := end
	if back != nil {
		until = *back
	}
	e.Clock.PausedMS = h.paused(f.injected, until)
	e.BaselineHealthy = x.Fault != arena.StartsBroken && s.healthy(f) && (x.From == nil || s.holds(*x.From, 0, f.injected))
	e.ExpectedServiceMet = s.expected(x, f, back, end)
	e.MaxWritableHistories = s.histories(x, f, end)
	e.LossWithinDeclaredRisk = e.Probe.Lost == 0
	if r := t.Policy.Rule(x.Scenario); r != nil && e.Probe.LossMS <= r.LossMS && r.LossMS > 0 {
		e.LossWithinDeclaredRisk = true
	}
	e.CoversWholeDomain = covers(x) && h.driver == "qemu"
	return e
}

// told says that a player's brief speaks of the fault, or of the scenario.
func told(brief string, x arena.Exercise) bool {
	said := strings.ToLower(brief)
	for _, what := range []string{x.Fault, x.Scenario} {
		if strings.Contains(said, what) || strings.Contains(said, strings.ReplaceAll(what, "-", " ")) {
			return true
		}
	}
	return false
}

// differs is what is other in kept evidence than in what its heat gives, which was judged
// by the same review; nothing when it is what the recording gives.
func (j *Judged) differs(kept *Evidence) []string {
	at := slices.IndexFunc(j.Offers, func(o Offer) bool { return o.Evidence.ID == kept.ID })
	if at < 0 {
		return []string{"the recording gives no evidence " + kept.ID}
	}
	again := j.Offers[at].Evidence
	again.Heat = kept.Heat // where it lay is not the recording's
	if kept.Target.Policy != again.Target.Policy || kept.Target.Release != again.Target.Release {
		// What the policy of that day made of it cannot be made again.
		again.LossWithinDeclaredRisk, again.NegativeControl = kept.LossWithinDeclaredRisk, kept.NegativeControl
		again.Target.Policy, again.Target.Release = kept.Target.Policy, kept.Target.Release
		again.Target.Digest = again.Target.Sum()
	}
	was, is := flat(kept), flat(&again)
	var out []string
	forget(was, is, "told", "watched")
	wasFault, _ := was["fault"].(map[string]any)
	if isFault, ok := is["fault"].(map[string]any); ok && wasFault != nil {
		forget(wasFault, isFault, "untouched")
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if !reflect.DeepEqual(was[key], is[key]) {
			out = append(out, fmt.Sprintf("%s: the ledger says %s, the recording %s", key, clipped(was[key]), clipped(is[key])))
		}
	}
	for _, g := range j.Offers[at].Verdict.Gates {
		if g.Code == Integrity && !g.Pass {
			out = append(out, g.Text)
		}
	}
	return out
}

// forget drops keys that a ledger of this schema may have been written before, where
// the kept evidence has none of them.
func forget(kept, again map[string]any, added ...string) {
	for _, key := range added {
		if _, ok := kept[key]; !ok {
			delete(again, key)
		}
	}
}

func flat(e *Evidence) map[string]any {
	out := map[string]any{}
	if b, err := json.Marshal(e); err == nil {
		_ = json.Unmarshal(b, &out) // what was encoded decodes
	}
	return out
}

func clipped(v any) string {
	b, _ := json.Marshal(v) // it came from JSON
	return text.Truncate(text.Line(string(b)), 80, "")
}

// fileDigest is the SHA-256, in hex, of a plain file of a heat.
func fileDigest(ctx context.Context, tree fs.FS, name string) (string, error) {
	if tree == nil {
		return "", fmt.Errorf("a log without a folder: %w", fs.ErrNotExist)
	}
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("%.100q leaves the heat's folder", name)
	}
	info, err := fs.Stat(tree, name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no plain file", name)
	}
	f, err := tree.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.CopyN(sum, f, 4<<20); err == io.EOF {
			break
		} else if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func short(sha string) string { return sha[:min(len(sha), 12)] }

func seconds(ms uint64) float64 { return float64(ms) / 1000 }
