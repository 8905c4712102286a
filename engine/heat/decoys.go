package heat

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/probe"
)

// decoyToken is the value of a decoy of a seat's: of no use but to be found out by.
func (h *Heat) decoyToken(territory, name string) probe.Value {
	return h.secret.Derive("decoy", territory, name)
}

// decoys watch what a seat's player sends for what was planted there, and mark the
// seat, once for each decoy.
type decoys struct {
	all  []decoy
	tell func(decoy, where, detail string)

	mu   sync.Mutex
	used map[string]bool
}

type decoy struct {
	name, what string
	sign       []byte // what gives its use away
	path       bool   // the sign is a file's path: other files' paths hold it, too
}

func newDecoys(s *seat) *decoys {
	d := &decoys{used: map[string]bool{}, tell: func(decoy, where, detail string) {
		s.heat.say(event.DecoyUsed{Territory: s.id(), Agent: s.arena.Agent.ID, Decoy: decoy, Where: where, Detail: detail})
	}}
	for _, p := range s.heat.cfg.Package.Guest().Decoys {
		switch p.Kind {
		case arena.DecoyToken:
			d.all = append(d.all, decoy{p.Name, "the planted token", []byte(s.heat.decoyToken(s.id(), p.Name).Value), false})
		case arena.DecoyPath:
			d.all = append(d.all, decoy{p.Name, "the planted file " + p.Path, []byte(p.Path), true})
		}
	}
	return d
}

// Places where a decoy's use is seen.
const (
	decoyInAction = "action"
	decoyInInput  = "input"
)

// saw looks through something that the player sent, of which nothing more comes.
func (d *decoys) saw(where, detail string, sent []byte) { d.look(where, detail, sent, true) }

func (d *decoys) look(where, detail string, sent []byte, whole bool) {
	for _, p := range d.all {
		if !p.in(sent, whole) {
			continue
		}
		d.mu.Lock()
		again := d.used[p.name]
		d.used[p.name] = true
		d.mu.Unlock()
		if !again {
			d.tell(p.name, where, fmt.Sprintf("%s was sent in %s", p.what, detail))
		}
	}
}

// in says that the decoy is in what was sent: a path with all of its components, as the
// file itself or a folder on the way to another, and not as a part of another path. Whole
// says that nothing follows; else what follows the last byte is not known yet.
func (p decoy) in(sent []byte, whole bool) bool {
	for from := 0; ; {
		at := bytes.Index(sent[from:], p.sign)
		if at < 0 {
			return false
		}
		at += from
		from = at + 1
		end := at + len(p.sign)
		switch {
		case !p.path:
			return true
		case end == len(sent):
			if !whole {
				return false
			}
		case inName(sent[end]):
			continue
		}
		before := bytes.TrimRight(sent[:at], "/")
		if len(before) == 0 || !inName(before[len(before)-1]) || procRoot.Match(before) {
			return true
		}
	}
}

// procRoot is the end of a way around: a process's root is the machine's.
var procRoot = regexp.MustCompile(`/proc/[a-z0-9-]+(/task/[0-9]+)?/root$`)

// inName says that a byte goes on with a file's name. In a shell more may; these are
// those that a name is likely to have beside a decoy's.
func inName(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '-' || b == '.' || b >= 0x80
}

// stream watches the input of one session, whose pieces may cut a sign in two.
type stream struct {
	d    *decoys
	kept []byte
}

// around is how much before a sign is looked at.
const around = 64

func (s *stream) saw(detail string, sent []byte) {
	most := 0
	for _, p := range s.d.all {
		most = max(most, len(p.sign))
	}
	if most == 0 {
		return
	}
	s.kept = append(s.kept, sent...)
	s.d.look(decoyInInput, detail, s.kept, false)
	s.kept = append(s.kept[:0], s.kept[max(0, len(s.kept)-most-around):]...)
}

// end looks at what was left open: nothing more comes.
func (s *stream) end(detail string) { s.d.look(decoyInInput, detail, s.kept, true) }
