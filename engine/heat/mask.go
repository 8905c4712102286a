package heat

import "bytes"

// mask hides a seat's password in a stream, wherever the stream is cut: a person
// who types it where the terminal echoes it must not leave it in the recording.
type mask struct {
	secret []byte
	held   []byte // the end of what came, when the secret may begin there
}

// pass returns what may be kept of the stream so far. It may share p's memory.
func (m *mask) pass(p []byte) []byte {
	if len(m.secret) == 0 {
		return p
	}
	if len(m.held) > 0 {
		p = append(m.held, p...)
		m.held = nil
	}
	if bytes.Contains(p, m.secret) {
		p = bytes.ReplaceAll(p, m.secret, bytes.Repeat([]byte{'*'}, len(m.secret)))
	}
	for n := min(len(m.secret)-1, len(p)); n > 0; n-- {
		if bytes.HasSuffix(p, m.secret[:n]) {
			m.held = append([]byte(nil), p[len(p)-n:]...)
			return p[:len(p)-n]
		}
	}
	return p
}

// rest is what is held when the stream has ended.
func (m *mask) rest() []byte {
	p := m.held
	m.held = nil
	return p
}
