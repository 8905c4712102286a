package agent

import (
	"encoding/binary"
	"fmt"
)

// sftpWatch reads file names from what an SFTP client sends (protocol 3, which
// OpenSSH speaks). It looks at a request's first bytes only and skips data.
type sftpWatch struct {
	buf  []byte // of the current packet: length, type, id and as much as is wanted
	skip uint64 // bytes of the current packet that are not wanted
	seen []string
	more int  // file operations that did not fit seen
	lost bool // a packet made no sense; nothing after it is read

	hostile string // what in a name would have driven a terminal
}

const (
	sftpWant  = 4 << 10 // of a packet
	sftpNames = 40
)

// SFTP request types that name a file.
var sftpVerbs = map[byte]string{
	3: "open", 9: "setstat", 11: "list", 13: "remove", 14: "mkdir", 15: "rmdir", 18: "rename", 20: "symlink",
}

func (w *sftpWatch) write(p []byte) {
	for len(p) > 0 && !w.lost {
		if w.skip > 0 {
			n := min(w.skip, uint64(len(p)))
			w.skip -= n
			p = p[n:]
			continue
		}
		need := 5 // length and type
		if len(w.buf) >= 5 {
			need = w.wanted()
		}
		n := min(need-len(w.buf), len(p))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		if len(w.buf) == 5 {
			if size := binary.BigEndian.Uint32(w.buf); size == 0 || size > 1<<20 {
				w.lost = true
				return
			}
		}
		if len(w.buf) >= 5 && len(w.buf) == w.wanted() {
			w.packet()
			w.skip = uint64(binary.BigEndian.Uint32(w.buf)) + 4 - uint64(len(w.buf))
			w.buf = w.buf[:0]
		}
	}
}

// wanted is how many bytes of the packet in buf are looked at.
func (w *sftpWatch) wanted() int {
	if sftpVerbs[w.buf[4]] == "" {
		return 5
	}
	return int(min(uint64(binary.BigEndian.Uint32(w.buf))+4, sftpWant))
}

func (w *sftpWatch) packet() {
	verb := sftpVerbs[w.buf[4]]
	if verb == "" || len(w.buf) < 9 {
		return
	}
	rest := w.buf[9:]
	name, rest, ok := sftpString(rest)
	if !ok {
		return
	}
	w.look(name)
	op := verb + " " + line(name)
	switch w.buf[4] {
	case 3:
		if len(rest) >= 4 && binary.BigEndian.Uint32(rest)&0x2 != 0 {
			op = "write " + line(name)
		} else {
			op = "read " + line(name)
		}
	case 18, 20:
		if to, _, ok := sftpString(rest); ok {
			w.look(to)
			op += " " + line(to)
		}
	}
	if len(w.seen) < sftpNames {
		w.seen = append(w.seen, op)
	} else {
		w.more++
	}
}

func (w *sftpWatch) look(name string) {
	if w.hostile == "" {
		w.hostile = drives(name)
	}
}

func sftpString(p []byte) (s string, rest []byte, ok bool) {
	if len(p) < 4 {
		return "", nil, false
	}
	n := binary.BigEndian.Uint32(p)
	if uint64(n) > uint64(len(p)-4) {
		return "", nil, false
	}
	return string(p[4 : 4+n]), p[4+n:], true
}

// String lists the operations, one a line.
func (w *sftpWatch) String() string {
	var out string
	for _, op := range w.seen {
		out += op + "\n"
	}
	if w.more > 0 {
		out += fmt.Sprintf("and %d more\n", w.more)
	}
	return excerptOf(out)
}
