package tui

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/arena"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/keymap"
	"refbox/tui/plain"
	"refbox/tui/topology"
)

// heat is one recording and the playhead over it. The screens that show the
// heat (overview, seat, evidence) share it: moving in time moves all of them.
type heat struct {
	rec      *recording.Recording
	changed  <-chan struct{}
	stop     context.CancelFunc // ends the follower
	manifest *arena.Manifest
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

	reels    map[reelKey]*reel
	layouts  map[layoutKey]topology.Layout
	attached *attachment
	words    string // that were searched for last
}

type layoutKey struct{ w, h int }

// openHeat shows a recording: a live one at its head, another from its start.
func openHeat(ctx context.Context, rec *recording.Recording, desk Desk, now time.Time) *heat {
	ctx, stop := context.WithCancel(ctx)
	h := &heat{
		rec: rec, manifest: rec.Manifest(), desk: desk, stop: stop,
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

func (h *heat) close() {
	h.detach()
	h.stop()
	h.rec.Close()
}

// head is how far the heat has come. A live clock goes on between two events,
// but never further than the referee's next tick must bring one.
func (h *heat) head(now time.Time) playback.Head {
	ms := h.rec.Head()
	live := h.rec.Live()
	if live && h.headMS == ms && h.world != nil && h.world.MatchState == world.Running && h.world.Pause == nil {
		ms += uint64(min(max(now.Sub(h.headAt), 0), 3*time.Second) / time.Millisecond)
	}
	return playback.Head{MS: ms, Live: live}
}

// advance reads what is new and folds to the playhead.
func (h *heat) advance(now time.Time) time.Duration {
	h.wall = now
	if _, err := h.rec.Refresh(); err == nil && h.manifest == nil {
		h.manifest = h.rec.Manifest()
	}
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
	if h.world == nil || n != h.index {
		h.index, h.world = n, h.rec.World(n)
	}
	if !head.Live && h.rec.Complete() && h.fullLen != h.rec.Len() {
		h.fullLen = h.rec.Len()
		h.full = h.rec.World(h.fullLen)
	}
	h.seat = max(0, min(h.seat, len(h.world.Seats())-1))
	switch state := h.play.State(now, head); {
	case !h.rec.Complete():
		return frameTime
	case state == playback.Playing && h.play.Speed() > 2:
		return frameTime
	case state == playback.Playing, state == playback.Following && head.Live && !h.world.Over():
		return slowFrame
	}
	return 0
}

// end is where the time line ends: the recording's end, or for a live heat a
// round number that leaves room to grow.
func (h *heat) end() uint64 {
	ms := max(h.rec.Head(), h.now)
	if !h.rec.Live() {
		return max(ms, 1)
	}
	limit := ^uint64(0)
	if h.manifest != nil {
		limit = uint64(h.manifest.Duration() / time.Millisecond)
	}
	for _, s := range []uint64{30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200} {
		if s*1000 > ms+ms/10 {
			return max(min(s*1000, limit), ms)
		}
	}
	return max(ms, 1)
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
	return "paused"
}

func (h *heat) feed() <-chan struct{} { return h.changed }

// crumbs name the heat.
func (h *heat) crumbs() []string {
	name := h.rec.Name()
	if h.manifest != nil && h.manifest.Arena.ID != "" && h.manifest.Arena.ID != name {
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
	case h.world.MatchState == world.Aborted:
		state, st = "■ ABORTED", canvas.Fg(canvas.Bad)
	case h.rec.Live() && h.world.Pause != nil:
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
	x := c.Put(0, 0, state, st)
	at := clock(h.now)
	if h.manifest != nil {
		at += " / " + clockShort(uint64(h.manifest.Duration()/time.Millisecond))
	}
	x = c.Put(x+2, 0, at, canvas.Fg(canvas.Title).With(canvas.Bold))
	lead := h.lead()
	seats := fmt.Sprintf("%d seats", len(h.world.Seats()))
	for _, s := range []string{lead, seats} {
		if s != "" && x+3+len(s) <= w {
			x = c.Put(x+3, 0, s, canvas.Fg(canvas.Title))
		} else if s == lead && s != "" && w-x-3 > 12 {
			x = c.PutFit(x+3, 0, w-x-3, s, canvas.Fg(canvas.Title))
		}
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

// moveInTime handles the keys that move the playhead; false for any other.
func (h *heat) moveInTime(m *model, a keymap.Action) bool {
	now := m.cfg.Clock()
	head := h.head(now)
	switch a {
	case keymap.PlayPause:
		if head.Live && h.play.State(now, head) == playback.Following {
			h.play = h.play.Pause(now, head)
			break
		}
		h.play = h.play.Toggle(now, head)
	case keymap.EventBack:
		h.step(now, -1)
	case keymap.EventNext:
		h.step(now, 1)
	case keymap.Back5:
		h.play = h.play.Skip(now, head, -5000)
	case keymap.Next5:
		h.play = h.play.Skip(now, head, 5000)
	case keymap.BackTenth:
		h.play = h.play.Skip(now, head, -int64(head.MS/10))
	case keymap.NextTenth:
		h.play = h.play.Skip(now, head, int64(head.MS/10))
	case keymap.MarkBack:
		h.step(now, -1, recording.ClassMilestone)
	case keymap.MarkNext:
		h.step(now, 1, recording.ClassMilestone)
	case keymap.ActionBack:
		h.step(now, -1, recording.ClassAction)
	case keymap.ActionNext:
		h.step(now, 1, recording.ClassAction)
	case keymap.Slower:
		h.play = h.play.Slower(now, head)
	case keymap.Faster:
		h.play = h.play.Faster(now, head)
	case keymap.Normal:
		h.play = h.play.Normal(now, head)
	case keymap.Idle:
		h.toggleIdle(now, head)
	case keymap.Start:
		h.play = h.play.Pause(now, head).Seek(now, head, 0)
	case keymap.End:
		h.play = h.play.Follow()
	case keymap.Command:
		m.ask(":", nil, h.goTo)
	case keymap.Find:
		m.ask("/", nil, func(m *model, words string) tea.Cmd {
			h.words = strings.ToLower(words)
			h.find(m, 1)
			return nil
		})
	case keymap.FindNext:
		h.find(m, 1)
	case keymap.FindPrev:
		h.find(m, -1)
	default:
		return false
	}
	return true
}

// idleLimit is the longest that a stretch without events lasts when idle time
// is cut.
const idleLimit = 1500

func (h *heat) toggleIdle(now time.Time, head playback.Head) {
	if h.play.Compressed() {
		h.play = h.play.Compress(now, head, nil)
		return
	}
	h.play = h.play.Compress(now, head, playback.NewIdle(idleLimit, h.rec.Len(), h.rec.MS))
}

// step moves to the event before or after the playhead, of the given classes.
// Stepping is exact: the world shown is the fold up to and with that event.
func (h *heat) step(now time.Time, dir int, classes ...recording.Class) {
	head := h.head(now)
	i := h.index - 1 // the last event that is shown
	to := h.rec.Step(i, dir, classes...)
	if to < 0 {
		if dir < 0 {
			h.play = h.play.Pause(now, head).Seek(now, head, 0)
		}
		return
	}
	h.play = h.play.Pause(now, head).Pin(to+1, h.rec.MS(to))
}

// findAtATime bounds how many events one search looks at, so that a search
// through a long log does not hold up the screen; n goes on from there.
const findAtATime = 200_000

// find moves to the next event (dir 1) or the previous one (-1) whose line has
// the words that were searched for.
func (h *heat) find(m *model, dir int) {
	if h.words == "" {
		return
	}
	now := m.cfg.Clock()
	head := h.head(now)
	i := h.index - 1
	for range findAtATime {
		if i += dir; i < 0 || i >= h.rec.Len() {
			m.say("no further event with " + h.words)
			return
		}
		e, err := h.rec.Event(i)
		if err == nil && strings.Contains(strings.ToLower(plain.Line(e)), h.words) {
			h.play = h.play.Pause(now, head).Pin(i+1, h.rec.MS(i))
			m.say(plain.Line(e))
			return
		}
	}
	h.play = h.play.Pause(now, head).Pin(i+1, h.rec.MS(i))
	m.say("not in the last 200000 events; n looks further")
}

// goTo runs what was typed after ":".
func (h *heat) goTo(m *model, value string) tea.Cmd {
	now := m.cfg.Clock()
	head := h.head(now)
	switch value {
	case "":
		return nil
	case "end":
		h.play = h.play.Follow()
		return nil
	case "start":
		value = "0"
	}
	ms, err := playback.Parse(value, head)
	if err != nil {
		m.say(err.Error())
		return nil
	}
	h.play = h.play.Seek(now, head, ms)
	return nil
}

// attachment is a person at a machine's console.
type attachment struct {
	territory, machine string
	conn               io.ReadWriteCloser
	done               chan struct{} // closed when the reader has ended
}

func (h *heat) detach() {
	if h.attached == nil {
		return
	}
	h.attached.conn.Close()
	<-h.attached.done
	h.attached = nil
}

// attach joins the console of a seat's machine. What it prints is shown from the
// recording, like everything; the stream itself is only drained.
func (h *heat) attach(m *model, territory, machine string) tea.Cmd {
	if h.desk.Desk == nil {
		m.say("this heat is not live here: there is no console to attach to")
		return nil
	}
	ctx, desk := m.ctx, h.desk
	return safe(func() tea.Msg {
		conn, err := desk.Attach(ctx, desk.Author, territory, machine)
		if err != nil {
			return doneMsg{err: fmt.Errorf("attach to %s: %w", territory, err)}
		}
		a := &attachment{territory: territory, machine: machine, conn: conn, done: make(chan struct{})}
		go func() {
			defer close(a.done)
			io.Copy(io.Discard, conn) //nolint:errcheck // the end of the console, however it comes, is the end of draining
		}()
		return doneMsg{then: func(m *model) tea.Cmd {
			h.detach()
			h.attached = a
			h.play = h.play.Follow()
			key, _ := m.cfg.Keys.Hint(keymap.Detach)
			m.say("attached to " + territory + "'s console; " + key + " leaves")
			return m.tick()
		}}
	})
}

// type sends a key to the console that is attached.
func (h *heat) typeKey(m *model, k tea.KeyMsg) tea.Cmd {
	b := keyBytes(k)
	conn := h.attached.conn
	if len(b) == 0 {
		return nil
	}
	return safe(func() tea.Msg {
		if _, err := conn.Write(b); err != nil {
			return doneMsg{err: fmt.Errorf("the console is gone: %w", err), then: func(*model) tea.Cmd { h.detach(); return nil }}
		}
		return nil
	})
}

// keyBytes are what a terminal sends for a key.
func keyBytes(k tea.KeyMsg) []byte {
	var b []byte
	if k.Alt {
		b = append(b, 0x1b)
	}
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		return append(b, string(k.Runes)...)
	case tea.KeyUp:
		return append(b, "\x1b[A"...)
	case tea.KeyDown:
		return append(b, "\x1b[B"...)
	case tea.KeyRight:
		return append(b, "\x1b[C"...)
	case tea.KeyLeft:
		return append(b, "\x1b[D"...)
	case tea.KeyHome:
		return append(b, "\x1b[H"...)
	case tea.KeyEnd:
		return append(b, "\x1b[F"...)
	case tea.KeyDelete:
		return append(b, "\x1b[3~"...)
	case tea.KeyPgUp:
		return append(b, "\x1b[5~"...)
	case tea.KeyPgDown:
		return append(b, "\x1b[6~"...)
	case tea.KeyShiftTab:
		return append(b, "\x1b[Z"...)
	}
	// Bubble Tea numbers control keys as ASCII does.
	if k.Type >= 0 && k.Type <= 31 || k.Type == 127 {
		return append(b, byte(k.Type))
	}
	return nil
}

// askToLeave asks whether a live heat ends or goes on without its screen.
func (h *heat) askToLeave(m *model) bool {
	if !h.desk.Owned || !h.rec.Live() || h.world.Over() {
		return false
	}
	m.dialog = &dialog{
		title: "The heat is live",
		lines: []string{"Leaving the screen need not end the race."},
		answers: []answer{
			{"e", "end the heat now", func(m *model) tea.Cmd { m.choice.EndHeat = true; return tea.Quit }},
			{"l", "leave it running; refbox watch " + h.rec.Path(), func(*model) tea.Cmd { return tea.Quit }},
			{"esc", "stay", nil},
		},
	}
	return true
}
