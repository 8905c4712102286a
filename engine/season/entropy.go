package season

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"refbox/engine/text"
)

// Entropy is what the organiser could not choose alone. Contributors commit to
// nonces for one season and week, all commitments are made public, then the nonces
// are, and the draw seed ends with their digest. Whoever contributed a nonce and
// saw the others' commitments before showing it knows that nobody chose the draw.
//
// What it does not do: whoever shows a nonce last can see the draw first and
// withhold it. A draw without a committed nonce is refused, so withholding stops
// the draw in public instead of changing it.
type Entropy struct {
	Salt   string         `json:"salt"` // the organiser's; "" for none
	Nonces []Contribution `json:"nonces"`
}

// Contribution is one contributor's.
type Contribution struct {
	Contributor string `json:"contributor"`
	Commitment  string `json:"commitment"`
	Nonce       string `json:"nonce"` // 64 hex digits; "" in a list of commitments
}

// leastContributors is how many it takes so that none of them is alone.
const leastContributors = 2

var hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// NewSecret is 32 random bytes as 64 lower-case hex digits: a nonce, or a week's
// variation seed.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Commit is the commitment to a nonce. It binds the season, the week and the
// contributor, so that neither the label nor another's nonce can be exchanged
// once nonces are known.
func Commit(seasonID, week, contributor, nonce string) string {
	return hexSum(strings.Join([]string{"refbox season nonce 1", seasonID, week, contributor, nonce}, "\n"))
}

// CommitSeed is the commitment to a variation seed: over its hex text, not over
// the bytes that it stands for (seasons reference, section 1.11).
func CommitSeed(seed string) string { return hexSum(strings.TrimSpace(seed)) }

func hexSum[T string | []byte](text T) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Check holds every nonce against its commitment. The error names all that is
// wrong.
func (e *Entropy) Check(seasonID, week string) error {
	var wrong []string
	seen := map[string]bool{}
	for _, c := range e.Nonces {
		switch {
		case !Safe(c.Contributor):
			wrong = append(wrong, fmt.Sprintf("contributor %q may only have A-Z a-z 0-9 . _ -", text.Line(c.Contributor)))
		case seen[c.Contributor]:
			wrong = append(wrong, c.Contributor+" is there twice")
		case !hex64.MatchString(c.Nonce):
			wrong = append(wrong, c.Contributor+" has not shown a nonce of 64 hex digits; a draw needs every committed one")
		case Commit(seasonID, week, c.Contributor, c.Nonce) != c.Commitment:
			wrong = append(wrong, fmt.Sprintf("the nonce of %s is not the one committed to for %s/%s: its commitment is %s, not %s",
				c.Contributor, seasonID, week, Commit(seasonID, week, c.Contributor, c.Nonce), text.Line(c.Commitment)))
		}
		seen[c.Contributor] = true
	}
	if len(e.Nonces) < leastContributors {
		wrong = append(wrong, fmt.Sprintf("%s: too few: with less than %d the draw could be chosen alone", text.Count(len(e.Nonces), "contributor"), leastContributors))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("entropy: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// digest is what the draw seed ends with.
func (e *Entropy) digest() string {
	list := slices.Clone(e.Nonces)
	slices.SortFunc(list, func(a, b Contribution) int { return strings.Compare(a.Contributor, b.Contributor) })
	lines := []string{"refbox season entropy 1"}
	for _, c := range list {
		lines = append(lines, c.Contributor+" "+c.Nonce)
	}
	return hexSum(strings.Join(lines, "\n"))
}

// Seed is the draw seed: season/week, the salt when there is one, and the digest
// of the nonces when there are any. A nil Entropy is no salt and no nonces.
func Seed(seasonID, week string, e *Entropy) string {
	seed := seasonID + "/" + week
	if e == nil {
		return seed
	}
	if e.Salt != "" {
		seed += "/" + e.Salt
	}
	if len(e.Nonces) > 0 {
		seed += "/" + e.digest()
	}
	return seed
}
