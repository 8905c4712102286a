package season

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/internal/plainjson"
	"refbox/engine/text"
)

// Order is what a draw is asked for beside the manifest.
type Order struct {
	Week     string
	Salt     string // the organiser's; "" for none
	Entrants int    // how many of the fleet enter; 0: all
	Secret   string // the variation seed; its commitment is drawn in
	// RuleSet is the one to write into the draw; nil draws by the reference's rules,
	// byte for byte as it would.
	RuleSet *RuleSet
	Nonces  []Contribution // at least two by refbox's rules; by the reference's the label is the only entropy
}

// NewDraw draws a week: pure, the same from the same input always (seasons
// reference, section 1.4).
func NewDraw(m *Manifest, arenas []Arena, o Order) (*Draw, error) {
	switch {
	case !Safe(o.Week):
		return nil, fmt.Errorf("the week's label %q may only have A-Z a-z 0-9 . _ -", text.Line(o.Week))
	case o.Salt != "" && !Safe(o.Salt):
		return nil, fmt.Errorf("the salt may only have A-Z a-z 0-9 . _ -")
	case !hex64.MatchString(o.Secret):
		return nil, fmt.Errorf("the variation seed is not 64 hex digits")
	case len(arenas) == 0:
		return nil, fmt.Errorf("season %s has no arena", m.ID)
	}
	d := &Draw{SchemaVersion: Schema, SeasonID: m.ID, SeasonManifest: m.File, Week: o.Week, Commitment: CommitSeed(o.Secret),
		HeatSize: len(arenas[0].Territories), Rules: m.Rules, Fleet: m.Fleet, Arenas: arenas, RuleSet: o.RuleSet}
	e := &Entropy{Salt: o.Salt, Nonces: o.Nonces}
	if o.RuleSet != nil && o.RuleSet.Name == Refbox.Name || len(o.Nonces) > 0 {
		if err := e.Check(m.ID, o.Week); err != nil {
			return nil, err
		}
		slices.SortFunc(e.Nonces, func(a, b Contribution) int { return strings.Compare(a.Contributor, b.Contributor) })
	}
	if o.RuleSet != nil {
		d.Entropy = e
	}
	d.DrawSeed = Seed(m.ID, o.Week, e)
	for _, a := range arenas {
		if len(a.Territories) != d.HeatSize {
			return nil, fmt.Errorf("arena %s has %d territories, %s has %d; all arenas of a season must have as many",
				a.ID, len(a.Territories), arenas[0].ID, d.HeatSize)
		}
	}
	if o.Entrants != 0 {
		if o.Entrants < 0 || o.Entrants > len(m.Fleet) {
			return nil, fmt.Errorf("%s cannot be drawn from a pool of %d", text.Count(o.Entrants, "entrant"), len(m.Fleet))
		}
		d.EligiblePool = m.Fleet
		d.Fleet = sample(d.DrawSeed, m.Fleet, o.Entrants)
	}
	var err error
	d.Shape, d.RoundArenas, d.FirstRound, err = bracket(d)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// sample picks n entrants of a pool, in the order of the lot.
func sample(seed string, pool []Entrant, n int) []Entrant {
	list := slices.Clone(pool)
	slices.SortFunc(list, func(a, b Entrant) int { return strings.Compare(a.ID, b.ID) })
	shuffle(entrantsStream(seed), list)
	return list[:n]
}

// bracket recomputes what follows from the draw's seed, fleet and arenas.
func bracket(d *Draw) (shape []Stage, arenas []int, first Seating, err error) {
	if shape, err = Shape(len(d.Fleet), d.HeatSize); err != nil {
		return nil, nil, first, err
	}
	s := newStream(d.DrawSeed)
	for range shape {
		arenas = append(arenas, s.below(len(d.Arenas)))
	}
	order := make([]string, len(d.Fleet))
	for i, e := range d.Fleet {
		order[i] = e.ID
	}
	shuffle(s, order)
	return shape, arenas, seat(s, 1, order, d.Arenas[arenas[0]].Territories), nil
}

// JSON is the text of draw.json: the reference's form, two spaces of indentation
// and no final newline.
func (d *Draw) JSON() ([]byte, error) { return plainjson.Indented(d) }

// JSON is the text of week.json.
func (w *Week) JSON() ([]byte, error) { return plainjson.Indented(w) }

// Digest is a draw's: over its bytes without insignificant space. Decoding and
// encoding again would change older draws (section 1.11).
func Digest(draw []byte) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, draw); err != nil {
		return "", err
	}
	return hexSum(b.Bytes()), nil
}
