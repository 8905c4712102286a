package heat

import (
	"bytes"
	"fmt"
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
}

func newDecoys(s *seat) *decoys {
	d := &decoys{used: map[string]bool{}, tell: func(decoy, where, detail string) {
		s.heat.say(event.DecoyUsed{Territory: s.id(), Agent: s.arena.Agent.ID, Decoy: decoy, Where: where, Detail: detail})
	}}
	for _, p := range s.heat.cfg.Package.Guest().Decoys {
		switch p.Kind {
		case arena.DecoyToken:
			d.all = append(d.all, decoy{p.Name, "the planted token", []byte(s.heat.decoyToken(s.id(), p.Name).Value)})
		case arena.DecoyPath:
			d.all = append(d.all, decoy{p.Name, "the planted file " + p.Path, []byte(p.Path)})
		}
	}
	return d
}

// Places where a decoy's use is seen.
const (
	decoyInAction = "action"
	decoyInInput  = "input"
)

// saw looks through something that the player sent.
func (d *decoys) saw(where, detail string, sent []byte) {
	for _, p := range d.all {
		if !bytes.Contains(sent, p.sign) {
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

// stream watches the input of one session, whose pieces may cut a sign in two.
type stream struct {
	d    *decoys
	kept []byte
}

func (s *stream) saw(detail string, sent []byte) {
	most := 0
	for _, p := range s.d.all {
		most = max(most, len(p.sign))
	}
	if most == 0 {
		return
	}
	s.kept = append(s.kept, sent...)
	s.d.saw(decoyInInput, detail, s.kept)
	s.kept = append(s.kept[:0], s.kept[max(0, len(s.kept)-most+1):]...)
}
