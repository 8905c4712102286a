package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/arena"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/topology"
	"refbox/tui/view"
)

// heat is one recording and the playhead over it. The screens that show the
// heat (overview, seat, evidence) share it: moving in time moves all of them.
type heat struct {
	rec      *recording.Recording
	changed  <-chan struct{}
	stop     context.CancelFunc // ends the follower
	manifest *arena.Manifest
	foreign  bool // not recorded by refbox: without actions and consoles
	desk     Desk

	play    playback.Playhead
	wall    time.Time // of the latest advance
	now     uint64    // what is shown
	index   int       // events folded into world
	world   *world.World
	full    *world.World // of everything read, once a recording is complete
	fullLen int
	seat    int // the chosen one, by its place in world.Seats

	headMS uint64    // the head as last read, and when it was first seen:
	headAt time.Time // between two events a live clock goes on

	reels    map[reelKey]*reel // nil for a console that was not there
	machines map[string][]string
	layouts  map[layoutKey]topology.Layout
	facts    map[string]*facts // by territory, of world
	consoles consoles
	attached *attachment // the one that takes the keys

	chair      *chair // of whoever watches, when they play a seat; nil for none
	sitDown    func() // ends the wait for it; nil when nothing is waited for
	sitTrouble string // why there is none
	ahead      []byte // typed while it is waited for

	ctx       context.Context  // of what is read beside the screen
	report    recording.Report // as of reportOf, read at reportAt
	reportOf  reportKey
	reportAt  time.Time
	verifying bool
	told      map[string]*recording.Activity // by territory
	reported  *arena.Visualization           // of a report without a manifest
	spells    map[string][]spell             // of a conquest, by territory

	ghost    *ghost // runs behind; nil for none
	words    string // that were searched for last
	stopFind func()
	restarts int // of the log, when world was folded

	after []string // what is to be said of it since it has ended
}

type layoutKey struct {
	w, h int
	fog  string // what is hidden: fogKey
}

// openHeat shows a recording: a live one at its head, another from its start.
func openHeat(ctx context.Context, rec *recording.Recording, desk Desk, now time.Time) *heat {
	ctx, stop := context.WithCancel(ctx)
	h := &heat{
		rec: rec, manifest: rec.Manifest(), foreign: !rec.Live(), desk: desk, stop: stop, ctx: ctx,
		reels: map[reelKey]*reel{}, layouts: map[layoutKey]topology.Layout{},
		changed: rec.Follow(ctx),
	}
	if rec.Live() {
		h.play = h.play.Follow()
	} else {
		h.play = h.play.Play(now, h.head(now))
	}
	h.advance(now)
	return h
}

// release lets everything go, and waits for what runs.
func (h *heat) release() {
	h.stopFinding()
	h.attached, h.chair = nil, nil
	h.consoles.close()
	h.stop()
	for range h.changed { // the follower has ended when its channel is closed
	}
	h.rec.Close()
	for _, r := range h.reels {
		if r != nil {
			r.cast.Close()
		}
	}
}

// head is how far the heat has come. A live clock goes on between two events,
// but never further than the referee's next tick must bring one.
func (h *heat) head(now time.Time) playback.Head {
	ms := h.rec.Head()
	live := h.rec.Live()
	if live && h.headMS == ms && h.world != nil && h.world.MatchState == world.Running && h.world.Pause == nil {
		ms += uint64(min(max(now.Sub(h.headAt), 0), maxAhead) / time.Millisecond)
	}
	return playback.Head{MS: ms, Live: live}
}

// advance reads what is new and folds to the playhead.
func (h *heat) advance(now time.Time) time.Duration {
	h.wall = now
	if _, err := h.rec.Refresh(); err == nil && h.manifest == nil {
		h.manifest = h.rec.Manifest()
	}
	if m := h.rec.Match(); h.foreign && m != nil {
		h.foreign = !m.Ours()
	}
	h.lookAtIntegrity(now)
	if ms := h.rec.Head(); ms != h.headMS {
		h.headMS, h.headAt = ms, now
	}
	head := h.head(now)
	h.now = h.play.At(now, head)
	n := h.rec.IndexAt(h.now)
	if events, ok := h.play.Pinned(); ok {
		n = min(events, h.rec.Len())
	}
	if state := h.play.State(now, head); state == playback.Following || state == playback.Ended {
		n = h.rec.Len()
	}
	if again := h.rec.Restarts(); h.world == nil || n != h.index || again != h.restarts {
		h.index, h.restarts, h.world = n, again, h.rec.World(n)
		h.facts = nil
		h.lookAgain()
	}
	if !head.Live && h.rec.Complete() && h.fullLen != h.rec.Len() {
		h.fullLen = h.rec.Len()
		h.full = h.rec.World(h.fullLen)
	}
	if seats := len(h.world.Seats()); seats > 0 { // before the first is known, the choice waits
		h.seat = max(0, min(h.seat, seats-1))
	}
	switch state := h.play.State(now, head); {
	case !h.rec.Complete():
		return frameTime
	case state == playback.Playing && h.play.Speed() > 2:
		return frameTime
	case state == playback.Playing, state == playback.Following && h.ticks(now):
		return slowFrame
	}
	return 0
}

// ticks says that a live clock goes on by itself until the next event comes.
func (h *heat) ticks(now time.Time) bool {
	return h.rec.Live() && h.world.MatchState == world.Running && h.world.Pause == nil && now.Sub(h.headAt) < maxAhead
}

// maxAhead is how far a live clock goes on between two events: further than the
// referee's next tick, which must bring one.
const maxAhead = 3 * time.Second

// end is where the time line ends: the recording's end, or for a live heat a
// round number that leaves room to grow.
func (h *heat) end() uint64 {
	ms := max(h.rec.Head(), h.now)
	if h.ghost != nil {
		ms = max(ms, h.ghost.end)
	}
	if !h.rec.Live() {
		return max(ms, 1)
	}
	limit := ^uint64(0)
	if h.manifest != nil {
		limit = h.limit()
	}
	for _, s := range []uint64{30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200} {
		if s*1000 > ms+ms/10 {
			return max(min(s*1000, limit), ms)
		}
	}
	return max(ms, 1)
}

// limit is when the heat ends at the latest, where referees put it. There is a
// manifest.
func (h *heat) limit() uint64 {
	return uint64(h.manifest.Duration()/time.Millisecond) + h.world.ExtendedMS
}

// mode is the playhead's state in words.
func (h *heat) mode() string {
	switch h.play.State(h.wall, h.head(h.wall)) {
	case playback.Following:
		if h.rec.Live() {
			return "×1 following"
		}
		return "at the end"
	case playback.Playing:
		s := speedName(h.play.Speed()) + " playing"
		if h.play.Compressed() {
			s += ", idle cut"
		}
		return s
	case playback.Ended:
		return "at the end"
	}
	s := "paused"
	if h.play.Speed() != 1 {
		s += " " + speedName(h.play.Speed())
	}
	if h.play.Compressed() {
		s += ", idle cut"
	}
	return s
}

func (h *heat) feed() <-chan struct{} { return h.changed }

// crumbs name the heat.
func (h *heat) crumbs() []string {
	name := h.rec.Name()
	if h.ghost != nil {
		return []string{name + " against " + h.ghost.name}
	}
	if h.manifest != nil && h.manifest.Arena.ID != "" && !strings.Contains(name, h.manifest.Arena.ID) {
		return []string{h.manifest.Arena.ID, name}
	}
	return []string{name}
}

// status is the header's middle: live or not, the clock and the limit, who
// leads.
func (h *heat) status(c canvas.Canvas) {
	w, _ := c.Size()
	var state string
	st := canvas.Fg(canvas.Dim)
	switch {
	case h.world.Voided != nil && h.world.Over():
		state, st = "■ VOIDED", canvas.Fg(canvas.Bad)
	case h.world.MatchState == world.Aborted:
		state, st = "■ ABORTED", canvas.Fg(canvas.Bad)
	case h.world.Pause != nil:
		state, st = "‖ PAUSED", canvas.Fg(canvas.Warn)
	case h.rec.Live() && !h.world.Over():
		state, st = "● LIVE", canvas.Fg(canvas.Ok).With(canvas.Bold)
		if h.play.State(h.wall, h.head(h.wall)) != playback.Following {
			state = "● LIVE, behind"
		}
	case h.world.Over():
		state, st = "■ finished", canvas.Fg(canvas.Accent)
	case h.rec.Live():
		state = "● LIVE"
	default:
		state = "▷ replay"
	}
	if w < 25 {
		state = state[:strings.IndexByte(state+" ", ' ')] // the sign alone
	}
	x := c.Put(0, 0, state, st)
	if h.world.Simulated() && w >= 70 { // the lanes' axis says so at any width
		x = c.Put(x+1, 0, "simulated", canvas.Fg(canvas.Warn))
	}
	at := view.Clock(h.now)
	if h.manifest != nil && w >= 50 {
		at += " / " + clockShort(h.limit())
	}
	x = c.Put(x+min(2, w/10), 0, at, canvas.Fg(canvas.Title).With(canvas.Bold))
	// Who leads matters more than how many there are.
	x += 2
	sign, badge, badgeStyle := h.badge()
	lead, room := h.lead(), w-x-2*text.Width(sign)
	if who, won := strings.CutPrefix(lead, "winner "); won && text.Width(lead) > room {
		lead = "★ " + who // a sign gives way to no part of a name
	}
	if lead != "" && room >= min(8, text.Width(lead)) {
		x = c.PutFit(x, 0, room, lead, canvas.Fg(canvas.Title)) + 3
	}
	if text.Width(badge) > w-x {
		badge = sign
	}
	if badge != "" && text.Width(badge) <= w-x {
		x = c.Put(x, 0, badge, badgeStyle) + 3
	}
	if seats := view.Plural(len(h.world.Seats()), "seat"); x+text.Width(seats) <= w {
		c.Put(x, 0, seats, canvas.Fg(canvas.Dim))
	}
}

// lead says who leads, or who won.
func (h *heat) lead() string {
	if h.world.Over() {
		switch {
		case h.world.Winner != nil:
			return "winner " + *h.world.Winner
		case len(h.world.DeadHeat) > 0:
			return "dead heat"
		}
		return "no winner"
	}
	standings := world.Standings(h.world)
	switch first := world.Winner(standings); {
	case len(standings) == 0:
		return ""
	case first == "":
		return "level"
	case standings[0].Points == 0: // a conquest counts otherwise
		return "lead " + first
	default:
		return fmt.Sprintf("lead %s %d", first, standings[0].Points)
	}
}

// chosen is the chosen seat, or nil before any is known.
func (h *heat) chosen() *world.Seat {
	if h.seat < len(h.world.Seats()) {
		return h.world.Seats()[h.seat]
	}
	return nil
}

// askToLeave asks whether a live heat ends or goes on without its screen.
func (h *heat) askToLeave(m *model) bool {
	if !h.desk.Owned || !h.rec.Live() || h.world.Over() {
		return false
	}
	m.dialog = &dialog{
		title:   "The heat is live",
		lines:   []string{"Leaving the screen need not end the race; but its machines belong to this process, which keeps this shell until the heat is over (with --detach it would not). From another shell:"},
		command: "refbox watch " + text.Shell(h.rec.Path()),
		answers: []answer{
			{"e", "end the heat now", func(m *model) tea.Cmd { m.choice.EndHeat = true; return tea.Quit }},
			{"l", "leave the screen, let the heat run to its end in this shell", func(*model) tea.Cmd { return tea.Quit }},
			{"y", "copy the command", func(m *model) tea.Cmd { return m.copyText("refbox watch " + text.Shell(h.rec.Path())) }},
			{"esc", "stay", nil},
		},
	}
	return true
}
