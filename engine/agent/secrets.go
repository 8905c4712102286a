package agent

import (
	"bytes"
	"encoding/json"
)

// Secrets are words that must not be written down: passwords, keys. The zero
// value has none.
type Secrets struct{ words [][]byte }

// shortSecret is below what is taken for a secret: replacing a short word would
// tear ordinary text.
const shortSecret = 6

var redacted = []byte("[secret]")

// NewSecrets takes the words, also as JSON would write them.
func NewSecrets(words ...string) Secrets {
	var s Secrets
	add := func(w []byte) {
		for _, have := range s.words {
			if bytes.Equal(have, w) {
				return
			}
		}
		s.words = append(s.words, w)
	}
	for _, w := range words {
		if len(w) < shortSecret {
			continue
		}
		add([]byte(w))
		if q, err := json.Marshal(w); err == nil {
			add(q[1 : len(q)-1])
		}
	}
	return s
}

// Hide replaces the secrets in p, which is not changed.
func (s Secrets) Hide(p []byte) []byte {
	for _, w := range s.words {
		p = bytes.ReplaceAll(p, w, redacted)
	}
	return p
}

// HideText is Hide for a string.
func (s Secrets) HideText(t string) string {
	if len(s.words) == 0 {
		return t
	}
	return string(s.Hide([]byte(t)))
}

// hider hides secrets in a stream, also those that are torn between two chunks.
type hider struct {
	secrets Secrets
	held    []byte // may be the beginning of a secret
}

// next takes a chunk and returns what can be passed on.
func (h *hider) next(p []byte) []byte {
	if len(h.secrets.words) == 0 {
		return p
	}
	data := h.secrets.Hide(append(h.held, p...))
	keep := 0
	for _, w := range h.secrets.words {
		for n := min(len(w)-1, len(data)); n > keep; n-- {
			if bytes.HasSuffix(data, w[:n]) {
				keep = n
				break
			}
		}
	}
	h.held = append([]byte(nil), data[len(data)-keep:]...)
	return data[:len(data)-keep]
}

// rest returns what was held back at the stream's end.
func (h *hider) rest() []byte {
	p := h.held
	h.held = nil
	return p
}
