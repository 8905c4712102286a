package season

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// drawSeed is D1, of a draw.
func (a *auditor) drawSeed() {
	d := a.docs.Draw
	e := d.Entropy
	if e == nil && a.rules.Name == Refbox.Name {
		e = &Entropy{}
	}
	if e != nil {
		if len(e.Nonces) > 0 || a.rules.Name == Refbox.Name {
			if err := e.Check(d.SeasonID, d.Week); err != nil {
				a.broken("D1", "draw", err.Error(), "nonces that open their commitments", e.Nonces)
			}
		}
		if want := Seed(d.SeasonID, d.Week, e); want != d.DrawSeed {
			a.broken("D1", "draw", "the draw seed is not season, week, salt and nonces", want, d.DrawSeed)
		}
		if a.out.Checks.Breaks("D1") > 0 {
			return
		}
		if n := len(e.Nonces); n > 0 {
			a.holds("D1", "the draw seed is season, week, salt and the nonces of %d contributors, each as committed to", n)
			a.missing("D5", "that all commitments were public before the first nonce was", "a witness of when they were published")
			return
		}
		a.holds("D1", "the draw seed is season, week and salt")
	} else if a.plainSeed(d.SeasonID, d.Week, d.DrawSeed, "draw") {
		a.holds("D1", "the draw seed is season, week and salt")
	}
	a.note("D5", "draw", "the label%s was chosen by the operator and is the draw's only entropy: many could have been tried until one pleased",
		map[bool]string{true: "", false: " and its salt"}[d.DrawSeed == Seed(d.SeasonID, d.Week, nil)])
}

// plainSeed holds a seed against season/week[/salt].
func (a *auditor) plainSeed(id, week, seed, where string) bool {
	want := Seed(id, week, nil)
	salt, salted := strings.CutPrefix(seed, want+"/")
	if seed == want || salted && salt != "" {
		return true
	}
	a.broken("D1", where, "the draw seed is not season/week[/salt]", want+"[/salt]", seed)
	return false
}

// entrants is D2.
func (a *auditor) entrants() {
	d := a.docs.Draw
	if err := checkFleet(d.Fleet); err != nil {
		a.broken("D2", "draw", "the fleet: "+err.Error(), "3 or more entrants with safe, unique ids", len(d.Fleet))
		return
	}
	if d.EligiblePool == nil {
		a.missing("D2", "there is no eligible pool: all of the fleet enter, in the manifest's order", "the season manifest, which lists the fleet")
		return
	}
	if len(d.Fleet) > len(d.EligiblePool) || len(d.EligiblePool) > maxEntrants {
		a.broken("D2", "draw", "more entrants than the pool has", len(d.EligiblePool), len(d.Fleet))
		return
	}
	if want := sample(d.DrawSeed, d.EligiblePool, len(d.Fleet)); !slices.Equal(want, d.Fleet) {
		a.broken("D2", "draw", "the sample of entrants", want, d.Fleet)
		return
	}
	a.holds("D2", "the %d entrants are the lot's from the pool of %d", len(d.Fleet), len(d.EligiblePool))
}

// shape is D3.
func (a *auditor) shape() {
	d := a.docs.Draw
	if len(d.Arenas) == 0 {
		a.broken("D3", "draw", "there is no arena", "at least 1", 0)
		return
	}
	for i, x := range d.Arenas {
		if len(x.Territories) != d.HeatSize {
			a.broken("D3", fmt.Sprintf("arenas[%d]", i), "as many territories as a heat has seats", d.HeatSize, len(x.Territories))
		}
		if t := slices.Sorted(slices.Values(x.Territories)); len(slices.Compact(t)) != len(x.Territories) {
			a.broken("D3", fmt.Sprintf("arenas[%d]", i), "territories are there twice", "distinct territories", x.Territories)
		}
	}
	if a.out.Checks.Breaks("D3") > 0 {
		return
	}
	shape, arenas, first, err := bracket(d)
	if err != nil {
		a.broken("D3", "draw", err.Error(), "a bracket", len(d.Fleet))
		return
	}
	for _, p := range []struct {
		name      string
		want, got any
	}{{"shape", shape, d.Shape}, {"round_arenas", arenas, d.RoundArenas}, {"first_round", first, d.FirstRound}} {
		if !reflect.DeepEqual(p.want, p.got) {
			a.broken("D3", "draw", p.name, p.want, p.got)
		}
	}
	if a.out.Checks.Breaks("D3") == 0 {
		a.holds("D3", "bracket, arenas, seats and byes of the first round follow from the seed")
	}
}

// digest is D4.
func (a *auditor) digest() {
	w := a.docs.Week
	switch {
	case w == nil: // what that leaves open, unboundDraw says
	case w.DrawDigest == nil && !w.Completed:
		a.broken("D4", "week", "a week that is not complete must carry its draw's digest", "a digest", "none")
	case w.DrawDigest == nil:
		a.note("D4", "week", "there is no draw digest: a completed week may lack it, and then nothing binds it to its draw")
		if a.docs.Draw == nil {
			a.missing("D4", "the draw's digest", "the digest", "week: draw_digest")
		}
	case a.docs.Draw == nil:
		a.missing("D4", "the draw's digest", "draw.json", "week: draw_digest")
	case *w.DrawDigest != a.docs.Digest:
		a.broken("D4", "week", "the digest of the draw", a.docs.Digest, *w.DrawDigest)
	default:
		a.holds("D4", "the week carries its draw's digest %s…", a.docs.Digest[:12])
	}
}

var isoWeek = regexp.MustCompile(`^\d{4}-W\d{2}`)

// grinding is D5, as far as other draws are at hand.
func (a *auditor) grinding() {
	week := isoWeek.FindString(a.out.Week)
	if week == "" {
		a.missing("D5", "whether other draws were made for this week", "an ISO week in the label")
		return
	}
	var same []string
	for _, o := range a.src.Others {
		if isoWeek.FindString(o) == week && o != a.out.Week {
			same = append(same, o)
		}
	}
	if len(same) > 0 {
		a.note("D5", "", "%d other draws of this season for %s lie beside this one: %s. The operator could choose between them",
			len(same), week, shown(strings.Join(same, ", ")))
		return
	}
	a.missing("D5", "whether other draws were made for "+week+": none lies beside this one", "every draw that was made, published or not")
}

// manifest holds the draw against the season's manifest.
func (a *auditor) manifest() {
	d, m := a.docs.Draw, a.src.Manifest
	if m == nil {
		return
	}
	full := d.Fleet
	if d.EligiblePool != nil {
		full = d.EligiblePool
	}
	var arenas []string
	for _, x := range d.Arenas {
		arenas = append(arenas, x.Manifest)
	}
	rules := m.Rules
	if d.Rules.DrawReplays == nil { // older than the rule
		rules.DrawReplays = nil
	}
	before := a.out.Checks.Breaks("D2")
	for _, p := range []struct {
		name      string
		want, got any
	}{{"season_id", m.ID, d.SeasonID}, {"rules", rules, d.Rules}, {"fleet", m.Fleet, full}} {
		if !reflect.DeepEqual(p.want, p.got) {
			a.broken("D2", "draw", p.name+" is not the season manifest's", p.want, p.got)
		}
	}
	for i, x := range arenas {
		if i >= len(m.ArenaNames) || !strings.HasSuffix(x, m.ArenaNames[i]) {
			a.broken("D2", fmt.Sprintf("arenas[%d]", i), "the arenas are not the season manifest's", m.ArenaNames, arenas)
			break
		}
	}
	if len(arenas) < len(m.ArenaNames) {
		a.broken("D2", "draw", "the arenas are not the season manifest's", m.ArenaNames, arenas)
	}
	if d.RuleSet != nil && d.RuleSet.ManifestSHA256 != "" && d.RuleSet.ManifestSHA256 != m.SHA256 {
		a.broken("D2", "draw", "the season manifest is not the one that was drawn from", d.RuleSet.ManifestSHA256, m.SHA256)
	}
	if a.out.Checks.Breaks("D2") == before {
		a.holds("D2", "season, rules, fleet and arenas are the season manifest's")
	}
}

// keysOfAugust are the compatibility keys whose verifiers are known never to read
// the variation seed (seasons reference, section 1.11).
var keysOfAugust = []string{
	"f8704375ceff56dc991f631df655d3b9dc4c260e6ddcc610fbadc81ce4c37983",
	"5d0f84b8f3a41c6de86619b8b62774a45ad3bb859bbfd32ac75218b5f5fd3ef4",
	"8b3407ef885148e02f8174e898a68a34ec93c39a8a61aa6e8ea97a3bb98fb4f7",
	"25e7cdc8e6e8ae1d047df767b89191bb186fc29e47aa9825195330616757e774",
}

// keys is P1 and P2, of the draw's arenas.
func (a *auditor) keys() {
	d := a.docs.Draw
	for i, x := range d.Arenas {
		where := fmt.Sprintf("arenas[%d] %s", i, x.ID)
		if a.src.Key == nil {
			break
		}
		key, hashes, err := a.src.Key(x)
		switch {
		case err != nil:
			a.out.Checks.Add(Check{Code: "P1", Verdict: Unchecked, Where: where, Text: "the arena's compatibility key", Missing: "the arena: " + shown(err.Error())})
		case key == "":
			a.out.Checks.Add(Check{Code: "P1", Verdict: Unchecked, Where: where, Text: "the arena's compatibility key", Missing: "the arena's package"})
		case key != x.CompatibilityKey && a.bound():
			a.note("P1", where, "the arena here has changed since the week was run: its key is %s… now and was %s…%s", short(key), short(x.CompatibilityKey), Differences(x.Hashes, hashes))
		case key != x.CompatibilityKey:
			a.broken("P1", where, "the arena is not the one that was drawn"+Differences(x.Hashes, hashes), x.CompatibilityKey, key)
		default:
			a.out.Checks.Add(Check{Code: "P1", Verdict: Holds, Where: where, Text: "the arena here has the key that was drawn"})
		}
	}
	if a.src.Key == nil {
		a.missing("P1", "the arenas' compatibility keys", "the arenas' packages")
	}
	if d.RuleSet == nil {
		a.missing("P2", "that the arenas exist at the revision that ran", "a checkout of the project at that revision")
		if !slices.ContainsFunc(d.Arenas, func(x Arena) bool { return !slices.Contains(keysOfAugust, x.CompatibilityKey) }) {
			a.note("W8", "draw", "the arenas' keys are of verifiers that never read the variation seed: its commitment and its reveal bind nothing")
		}
	}
}

// bound says that the week is over and carries the draw's digest: then what was
// drawn cannot be doubted, and an arena that is another one now was changed later.
func (a *auditor) bound() bool {
	w := a.docs.Week
	return w != nil && w.Completed && w.DrawDigest != nil && *w.DrawDigest == a.docs.Digest
}

// Differences says which parts of two sets of hashes differ, as "; changed: …";
// "" when nothing tells.
func Differences(was, is map[string]string) string {
	var changed []string
	for _, name := range sortedKeys(was, is) {
		if len(was) > 0 && was[name] != is[name] {
			changed = append(changed, fmt.Sprintf("%s %s → %s", shown(name), short(was[name]), short(is[name])))
		}
	}
	if len(changed) == 0 {
		return ""
	}
	return "; changed: " + strings.Join(changed, ", ")
}

func short(hash string) string {
	if hash == "" {
		return "none"
	}
	return shown(hash[:min(12, len(hash))])
}

func sortedKeys(maps ...map[string]string) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// unboundDraw names the draw's fields that nothing here binds.
func (a *auditor) unboundDraw() {
	d, w := a.docs.Draw, a.docs.Week
	if w != nil && w.DrawDigest != nil {
		return // every byte is
	}
	f := []string{"season_manifest", "arenas[].arena_id", "arenas[].hashes.*", "rule_set.program"}
	if w == nil {
		f = append(f, "variation_seed_commitment")
	}
	if a.src.Key == nil {
		f = append(f, "arenas[].compatibility_key")
	}
	if a.src.Manifest == nil {
		f = append(f, "arenas[].manifest", "rules.*", "rule_set.season_manifest_sha256", "eligible_pool[].model", "eligible_pool[].adapter", "eligible_pool[].reasoning_effort")
		if d.EligiblePool == nil {
			f = append(f, "fleet[].model", "fleet[].adapter", "fleet[].reasoning_effort")
		}
	}
	if len(d.RoundArenas) > 0 {
		f = append(f, "arenas[].territories[]") // of the arenas that the first round is not played in
	}
	for i := range f {
		f[i] = "draw: " + f[i]
	}
	if w != nil {
		f = append(f, "week: draw_digest")
	}
	a.missing("D4", "the draw's digest, and these fields, which nothing else here binds", "week.json with the digest, or the season manifest and the arenas", f...)
}
