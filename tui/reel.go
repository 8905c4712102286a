package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/term"
	"refbox/tui/topology"
)

// reelKey is a machine's console, or the recorded session of that path.
type reelKey struct{ territory, machine, session string }

// A reel keeps a copy of the emulator every so many bytes, so that going back
// in time costs little, and forgets the oldest copies beyond a bound.
const (
	reelKeyBytes  = 64 << 10
	reelKeyframes = 64
	reelChunk     = 256 // frames that are read at a time
)

// reel plays a recorded console or session through a terminal emulator to the playhead.
type reel struct {
	cast   *recording.Cast
	screen *term.Term
	next   int // the first frame that is not on the screen
	bytes  int // since the last keyframe
	keys   []keyframe
	broken string // why there is nothing to show
}

type keyframe struct {
	next   int
	screen *term.Term
}

// reel opens a machine's console once; nil until its record exists.
func (h *heat) reel(territory, machine string) *reel {
	if machine == "" {
		machine = h.firstMachine(territory)
	}
	if machine == "" {
		return nil
	}
	return h.openReel(reelKey{territory: territory, machine: machine})
}

func (h *heat) openReel(key reelKey) *reel {
	if r, known := h.reels[key]; known {
		return r
	}
	var cast *recording.Cast
	var err error
	if key.session != "" {
		cast, err = h.rec.Session(key.session)
	} else {
		cast, err = h.rec.Console(key.territory, key.machine)
	}
	if err != nil {
		h.reels[key] = nil // until something happens
		return nil
	}
	w, rows := cast.Size()
	r := &reel{cast: cast, screen: term.New(w, rows)}
	r.keys = []keyframe{{0, r.screen.Clone()}}
	h.reels[key] = r
	return r
}

// lookAgain forgets which consoles were not there.
func (h *heat) lookAgain() {
	if !h.rec.Live() {
		return // nothing comes any more
	}
	for key, r := range h.reels {
		if r == nil {
			delete(h.reels, key)
		}
	}
	h.machines = nil
}

// machinesOf are the machines of a seat whose consoles were recorded.
func (h *heat) machinesOf(territory string) []string {
	ms, known := h.machines[territory]
	if !known {
		if ms = h.rec.Machines(territory); h.machines == nil {
			h.machines = map[string][]string{}
		}
		h.machines[territory] = ms
	}
	return ms
}

func (h *heat) firstMachine(territory string) string {
	if s := h.world.Seat(territory); s != nil && s.Prepared != nil && len(s.Prepared.Machines) > 0 {
		return s.Prepared.Machines[0]
	}
	if ms := h.machinesOf(territory); len(ms) > 0 {
		return ms[0]
	}
	return ""
}

// seek brings the screen to the given clock; an error leaves what was shown.
func (r *reel) seek(ms uint64, all bool) {
	if _, err := r.cast.Refresh(); err != nil {
		r.broken = fmt.Sprintf("console record: %v", err)
	}
	to := r.cast.IndexAt(ms)
	if all {
		to = r.cast.Len()
	}
	if to < r.next {
		i := len(r.keys) - 1
		for i > 0 && r.keys[i].next > to {
			i--
		}
		r.keys = r.keys[:i+1]
		r.screen, r.next, r.bytes = r.keys[i].screen.Clone(), r.keys[i].next, 0
	}
	for r.next < to {
		frames, err := r.cast.Frames(r.next, min(to, r.next+reelChunk))
		if err != nil || len(frames) == 0 {
			return
		}
		for _, f := range frames {
			switch f.Kind {
			case 'o':
				r.screen.Write(f.Data) //nolint:errcheck // an emulator takes everything
				r.bytes += len(f.Data)
			case 'r':
				var w, h int
				if _, err := fmt.Sscanf(string(f.Data), "%dx%d", &w, &h); err == nil && w > 0 && h > 0 && w <= 1000 && h <= 1000 {
					r.screen.Resize(w, h)
				}
			}
			r.next++
			if r.bytes >= reelKeyBytes {
				r.bytes = 0
				r.keys = append(r.keys, keyframe{r.next, r.screen.Clone()})
				if len(r.keys) > reelKeyframes {
					r.keys = append(r.keys[:1], r.keys[2:]...) // the first is where everything begins
				}
			}
		}
	}
}

// look is what may be looked at of a seat beside its ladder: a machine's console, or
// the recorded terminal of the player's program or of a session.
type look struct {
	title string
	reelKey
}

// sessionsBack bounds how far back a seat's sessions are looked for.
const sessionsBack = 500

// looksOf are the consoles of a seat's machines, and of its terminals the newest that
// began before the playhead: that of the player's own program, and a session's.
func (h *heat) looksOf(seat *world.Seat) (out []look) {
	for _, m := range h.machinesOf(seat.ID) {
		out = append(out, look{"console " + m, reelKey{territory: seat.ID, machine: m}})
	}
	for _, channel := range []struct{ is, title string }{{"terminal", "program"}, {"shell", "session"}} {
		n := seat.Actions.Len()
		for i := n - 1; i >= max(0, n-sessionsBack); i-- {
			if a := seat.Actions.At(i); a.Channel == channel.is && a.Session != "" {
				title := channel.title
				if a.Command != "" {
					title += " " + oneCommand(a.Command)
				}
				out = append(out, look{title, reelKey{territory: seat.ID, session: a.Session}})
				break
			}
		}
	}
	return out
}

// drawConsole draws the newest lines of a console or session as it was at the
// playhead, or up lines above them, and returns up as far as there are lines.
func (h *heat) drawConsole(c canvas.Canvas, seat *world.Seat, r *reel, up int) int {
	w, _ := c.Size()
	if r == nil {
		c.PutFit(0, 0, w, "no console recorded", canvas.Fg(canvas.Dim))
		return 0
	}
	r.seek(h.now, h.atHead())
	if r.broken != "" {
		c.PutFit(0, 0, w, r.broken, canvas.Fg(canvas.Bad))
		return 0
	}
	return r.screen.Draw(c, up, h.attached != nil && h.attached.territory == seat.ID)
}

// roomyTopology is the width from which a picture can spare its edges.
const roomyTopology = 60

// drawTopology draws the arena's graph with the states that the seat's
// milestones give its nodes, laid out for width columns.
func (h *heat) drawTopology(c canvas.Canvas, seat *world.Seat, width int) {
	_, rows := c.Size()
	w, margin := width, 0
	if w >= roomyTopology { // boxes don't touch the pane's frame
		w, margin = w-2, 1
	}
	if !h.hasTopology() {
		h.drawRungList(c, seat)
		return
	}
	hidden := h.hidden(seat)
	key := layoutKey{w, rows, fogKey(hidden)}
	l, ok := h.layouts[key]
	if !ok {
		if len(h.layouts) > 32 {
			h.layouts = map[layoutKey]topology.Layout{}
		}
		g := veiled(graphOf(*h.picture()), hidden)
		l = topology.Compute(g, w, rows)
		// A column between the picture and the frame, where that costs nothing.
		if margin == 0 && w > 1 {
			if narrow := topology.Compute(g, w-1, rows); narrow.Form == l.Form && narrow.Drawn() == l.Drawn() {
				l = narrow
			}
		}
		h.layouts[key] = l
	}
	topology.Draw(c, canvas.Rect{X: margin, W: w, H: rows}, l, h.nodeStates(seat))
}

// picture is the arena's graph: of the manifest, or of a report without one; nil
// when the recording has none.
func (h *heat) picture() *arena.Visualization {
	if h.manifest != nil && h.manifest.Visualization != nil {
		return h.manifest.Visualization
	}
	return h.reported
}

func (h *heat) hasTopology() bool { return h.picture() != nil && len(h.picture().Nodes) > 0 }

// reportedPicture is the graph that a match-report.json carries, for a heat that
// has no manifest; nil for none.
func reportedPicture(rec *recording.Recording) *arena.Visualization {
	if rec.Manifest() != nil {
		return nil
	}
	data, err := rec.File("match-report.json")
	if err != nil {
		return nil
	}
	var r struct {
		Visualization *arena.Visualization `json:"visualization"`
	}
	if json.Unmarshal(data, &r) != nil || r.Visualization == nil || len(r.Visualization.Nodes) > maxNodes || len(r.Visualization.Links) > maxNodes {
		return nil
	}
	for i := range r.Visualization.Nodes {
		n := &r.Visualization.Nodes[i]
		n.DisplayName = text.Line(n.DisplayName)
	}
	for i := range r.Visualization.Links {
		if l := &r.Visualization.Links[i]; l.Label != nil {
			*l.Label = text.Line(*l.Label)
		}
	}
	return r.Visualization
}

// maxNodes bounds a graph that comes from no manifest, which has its own rules.
const maxNodes = 64

// failureWords are the ones by which a milestone's id tells that it is about
// something that has failed, and stays so.
var failureWords = []string{"failed", "dead", "broken", "lost", "crashed", "down"}

// says is what a node says when its milestone has passed, where a tick alone would
// be read as its health: of failed-primary-preserved "preserved".
func says(milestone *string) string {
	if milestone == nil {
		return ""
	}
	words := strings.Split(*milestone, "-")
	last := len(words) - 1
	if last < 1 || !slices.ContainsFunc(words[:last], func(w string) bool { return slices.Contains(failureWords, w) }) {
		return ""
	}
	return words[last]
}

func graphOf(v arena.Visualization) topology.Graph {
	var g topology.Graph
	for _, n := range v.Nodes {
		g.Nodes = append(g.Nodes, topology.Node{ID: n.ID, Name: n.DisplayName, Kind: topology.NodeKind(n.Kind), X: float64(n.X), Y: float64(n.Y), Says: says(n.Milestone)})
	}
	for _, l := range v.Links {
		label := ""
		if l.Label != nil {
			label = *l.Label
		}
		g.Links = append(g.Links, topology.Link{From: l.From, To: l.To, Kind: topology.LinkKind(l.Kind), Label: label})
	}
	return g
}

// nodeStates are the states of the nodes that a milestone speaks for.
func (h *heat) nodeStates(seat *world.Seat) map[string]topology.State {
	about := h.about(seat.ID)
	if about.nodes != nil {
		return about.nodes
	}
	states := map[string]topology.State{}
	about.nodes = states
	for _, n := range h.picture().Nodes {
		if n.Milestone == nil {
			if st, ok := h.territoryState(n.ID); ok {
				states[n.ID] = st
			}
			continue
		}
		switch about.rung(*n.Milestone).State {
		case world.RungPassed:
			states[n.ID] = topology.Healthy
		case world.RungVerifying:
			states[n.ID] = topology.Verifying
		case world.RungFailing, world.RungRevoked:
			states[n.ID] = topology.Failed
		case world.RungPending, world.RungLocked:
			states[n.ID] = topology.Pending
		default:
			states[n.ID] = topology.Unknown
		}
	}
	for _, id := range h.hurtNodes(seat) {
		states[id] = topology.Hurt
	}
	for id := range h.hidden(seat) {
		states[id] = topology.Unknown
	}
	return states
}
