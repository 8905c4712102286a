package season

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// HeatSeed is the secret seed of one run of an attempt, in hex: derived from the
// week's variation seed, which is revealed when the week is complete, so that
// nobody could choose it and everybody can recompute it (the reference derives
// nothing: seasons reference, section 1.11). Run counts the runs of the attempt
// that were interrupted before; each has values of its own, since players may
// have seen those of the ones before. It does not give the variation seed away.
func HeatSeed(variation, drawDigest string, round, heat, attempt, run int) string {
	mac := hmac.New(sha256.New, []byte(variation))
	fmt.Fprintf(mac, "refbox heat 1\n%s\n%d\n%d\n%d\n%d", drawDigest, round, heat, attempt, run)
	return hex.EncodeToString(mac.Sum(nil))
}

// maxRuns bounds how many interrupted runs of an attempt are told apart.
const maxRuns = 1000

// HeatSeedFits says whether a heat's seed is that of any run of an attempt.
func HeatSeedFits(variation, drawDigest string, round, heat, attempt int, seed string) bool {
	for run := range maxRuns {
		if HeatSeed(variation, drawDigest, round, heat, attempt, run) == seed {
			return true
		}
	}
	return false
}
