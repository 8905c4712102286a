package probe

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Secret is a heat's secret seed. Whatever must not be memorised or guessed is
// derived from it; players never see it before the heat is over.
type Secret [32]byte

// NewSecret makes a seed.
func NewSecret() Secret {
	var s Secret
	rand.Read(s[:])
	return s
}

// String is the seed in hex.
func (s Secret) String() string { return hex.EncodeToString(s[:]) }

// SHA256 is the hash of the seed, in hex: published at a heat's start, so that
// the value published at its end can be checked.
func (s Secret) SHA256() string {
	h := sha256.Sum256(s[:])
	return hex.EncodeToString(h[:])
}

// Value is an opaque id and an opaque value. Both are URL-safe: a-z 0-9 -.
type Value struct{ ID, Value string }

// Derive makes a value that depends on every one of the names and on the seed.
func (s Secret) Derive(names ...string) Value {
	sum := hex.EncodeToString(s.sum(names))
	return Value{ID: sum[:6] + "-" + sum[6:14], Value: sum[16:24] + "-" + sum[24:40]}
}

func (s Secret) sum(names []string) []byte {
	m := hmac.New(sha256.New, s[:])
	for _, n := range names {
		m.Write([]byte(strconv.Itoa(len(n))))
		m.Write([]byte{':'})
		m.Write([]byte(n))
	}
	return m.Sum(nil)
}

// Draw is a number in [from, to] that depends on every one of the names and on the
// seed.
func (s Secret) Draw(from, to uint64, names ...string) uint64 {
	if to <= from {
		return from
	}
	var n uint64
	for _, b := range s.sum(append([]string{"draw"}, names...))[:7] { // few enough that the last number can be counted too
		n = n<<8 | uint64(b)
	}
	return from + n%(to-from+1)
}

// Seat is the value of that name for a seat, the same during the whole heat.
func (s Secret) Seat(territory, name string) Value {
	return s.Derive("seat", territory, name)
}

// Fresh is the value of that name in one attempt.
func (s Secret) Fresh(territory, milestone string, attempt uint64, name string) Value {
	return s.Derive("fresh", territory, milestone, strconv.FormatUint(attempt, 10), name)
}
