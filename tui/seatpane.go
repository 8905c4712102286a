package tui

import (
	"fmt"
	"strings"

	"refbox/engine/text"
	"refbox/engine/world"
	"refbox/tui/canvas"
)

// seatParts are the rows that a seat's pane gives to its parts, topmost first.
// Zero leaves a part out. They add up to the pane's inner height, dividers
// included.
type seatParts struct{ topology, ladder, actions, console int }

// splitSeat shares h inner rows. The ladder with its blocker is never left out:
// it answers who leads and why. What is left goes to the topology first, then to
// actions and console alike.
func splitSeat(h int) seatParts {
	p := seatParts{ladder: min(2, max(h, 0))}
	rest := h - p.ladder
	const minTopology, minActions, minConsole = 6, 1, 1
	if rest >= minTopology+1 {
		p.topology = minTopology
		rest -= minTopology + 1
	}
	if rest >= minActions+1 {
		p.actions = minActions
		rest -= minActions + 1
	}
	if rest >= minConsole+1 {
		p.console = minConsole
		rest -= minConsole + 1
	}
	for turn := 0; rest > 0; turn++ {
		switch {
		case p.topology > 0 && p.topology < 11 && turn%2 == 0:
			p.topology++
		case p.console > 0 && turn%3 != 0 && p.console < 3*p.actions+2:
			p.console++
		case p.actions > 0 && p.actions < 12:
			p.actions++
		case p.console > 0:
			p.console++
		case p.topology > 0:
			p.topology++
		default:
			p.ladder++
		}
		rest--
	}
	return p
}

// drawSeat draws one seat's column into r: topology, ladder, blocker, actions,
// console. The topology is laid out for width columns, so that seats side by
// side show the same picture.
func (h *heat) drawSeat(c canvas.Canvas, r canvas.Rect, i, width int, focused bool) {
	seat := h.world.Seats()[i]
	outline, line := canvas.Rounded, canvas.Fg(canvas.Border)
	if focused {
		outline, line = canvas.Heavy, canvas.Fg(canvas.Focus)
	}
	inner := frameNoted(c, r, outline, h.seatTitle(i), h.seatNote(seat), line)
	p := splitSeat(inner.H)
	words := canvas.Fg(canvas.Dim)
	y := inner.Y
	if p.topology > 0 {
		h.drawTopology(c.Sub(canvas.Rect{X: inner.X, Y: y, W: inner.W, H: p.topology}), seat, width)
		y += p.topology
		c.Divider(r, y, outline, "", "", line, words)
		y++
	}
	h.drawLadder(c.Sub(canvas.Rect{X: inner.X, Y: y, W: inner.W, H: p.ladder}), seat)
	y += p.ladder
	if p.actions > 0 {
		c.Divider(r, y, outline, "actions", countNote(seat.Actions.Len()), line, words)
		y++
		h.drawActions(c.Sub(canvas.Rect{X: inner.X, Y: y, W: inner.W, H: p.actions}), seat, 0, -1)
		y += p.actions
	}
	if p.console > 0 {
		c.Divider(r, y, outline, "console", consoleNote(seat), line, words)
		y++
		h.drawConsole(c.Sub(canvas.Rect{X: inner.X + 1, Y: y, W: inner.W - 2, H: p.console}), seat, "", 0)
	}
}

// frameNoted draws a pane's frame whose note, being news, is never cut in favour
// of its title.
func frameNoted(c canvas.Canvas, r canvas.Rect, o canvas.Outline, title, note string, line canvas.Style) canvas.Rect {
	if note != "" {
		title = text.Truncate(title, max(4, r.W-text.Width(note)-8), text.Ellipsis)
	}
	return c.Frame(r, o, title, note, line, canvas.Fg(canvas.Title).With(canvas.Bold))
}

func countNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func consoleNote(s *world.Seat) string {
	switch {
	case s.Attached():
		return "operator attached"
	case s.Touched():
		return "touched"
	}
	return ""
}

// seatTitle is "1 failover-one · glm-flash".
func (h *heat) seatTitle(i int) string {
	seat := h.world.Seats()[i]
	title := seat.ID
	if i < 9 {
		title = fmt.Sprintf("%d %s", i+1, title)
	}
	if who := h.player(seat); who != "" {
		title += " · " + who
	}
	return title
}

// player is who plays a seat, as briefly as can be told.
func (h *heat) player(seat *world.Seat) string {
	model := ""
	if a := h.world.Agent(seat.Agent); a != nil {
		model = a.Model
		if cut := strings.LastIndexByte(model, '/'); cut >= 0 {
			model = model[cut+1:]
		}
	}
	if p := seat.Prepared; p != nil && strings.HasPrefix(p.Adapter, "script") {
		// The one who really plays, not the model that the manifest names.
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(p.Adapter, "script:"), "players/"), ".sh") + " (script)"
	}
	if model == "" {
		return seat.Agent
	}
	return model
}

// seatNote is the seat's outcome once there is one, else its rank.
func (h *heat) seatNote(seat *world.Seat) string {
	if seat.Unavailable != nil {
		return "unavailable"
	}
	if o := world.OutcomeOf(h.world, seat.ID); o != world.OutcomeOpen {
		return outcomeWord(o)
	}
	return ""
}

// drawLadder draws the rungs with the points, and below them what blocks the
// next one.
func (h *heat) drawLadder(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	if rows == 0 {
		return
	}
	rungs := world.Ladder(h.world, h.manifest, seat.ID)
	total := uint64(0)
	for _, r := range rungs {
		total += r.Points
	}
	score := fmt.Sprintf("%d/%d", seat.Points, total)
	if h.manifest == nil {
		score = fmt.Sprintf("%d", seat.Points)
	}
	right := c.PutRight(w-1, 0, w-2, score, canvas.Fg(canvas.Title).With(canvas.Bold))
	x := 1
	for i, r := range rungs {
		m := rungMark(r.State)
		label := fmt.Sprintf("%c%d", m.shape, r.Points)
		if x+text.Width(label) > right-1 {
			c.Put(min(x, right-2), 0, "…", canvas.Fg(canvas.Dim))
			break
		}
		st := m.style
		if r.State == world.RungPassed || r.State == world.RungFailing {
			st = st.With(canvas.Bold)
		}
		x = c.Put(x, 0, label, st)
		if i < len(rungs)-1 {
			x++
		}
	}
	if rows > 1 {
		h.drawBlocker(c.Sub(canvas.Rect{X: 1, Y: 1, W: w - 2, H: rows - 1}), seat)
	}
}

// drawBlocker says what keeps the seat: the referee's attack, the run of equal
// failures folded to one line, or what is being verified.
func (h *heat) drawBlocker(c canvas.Canvas, seat *world.Seat) {
	w, _ := c.Size()
	line, note, st := "", "", canvas.Fg(canvas.Text)
	attacks := seat.RunningAttacks()
	blocker, failing := world.BlockerOf(h.world, h.manifest, seat.ID)
	switch {
	case seat.Unavailable != nil:
		line, st = "unavailable: "+seat.Unavailable.Detail, canvas.Fg(canvas.Bad)
	case seat.DurableAtMS != nil:
		line, note = "durable", clock(*seat.DurableAtMS)
		if seat.Durable != nil && seat.Durable.At != *seat.DurableAtMS {
			note = clock(seat.Durable.At)
		}
		st = canvas.Fg(canvas.Ok)
	case len(attacks) > 0:
		a := attacks[len(attacks)-1]
		line, note, st = "attack: "+a.Attack, span(h.now-min(h.now, a.StartMS)), canvas.Fg(canvas.Warn)
	case failing:
		line = blocker.Milestone + ": " + firstLine(blocker.Detail)
		note = span(blocker.For(h.world))
		if blocker.Count > 1 {
			note = fmt.Sprintf("×%d %s", blocker.Count, note)
		}
		st = canvas.Fg(canvas.Bad)
	default:
		for _, r := range world.Ladder(h.world, h.manifest, seat.ID) {
			if r.State == world.RungVerifying && r.Milestone != nil {
				line, note = r.ID+": verifying", span(h.now-min(h.now, r.Milestone.StartedMS))
				st = canvas.Fg(canvas.Accent)
				break
			}
			if r.State == world.RungPending && line == "" {
				line, st = r.ID+": next", canvas.Fg(canvas.Dim)
			}
		}
	}
	room := w
	if note != "" {
		room = c.PutRight(w, 0, w, note, canvas.Fg(canvas.Dim)) - 1
	}
	c.PutFit(0, 0, room, line, st)
}

func firstLine(s string) string {
	s, _, cut := strings.Cut(strings.TrimSpace(s), "\n")
	if cut {
		s += " " + text.Ellipsis
	}
	return s
}

// channelMark is a shape for how an action reached the guest.
func channelMark(a world.Action) rune {
	switch a.Channel {
	case "shell":
		return '▸'
	case "sftp":
		return '⇅'
	case "forward":
		return '→'
	case "announced":
		return '·'
	}
	return '$'
}

// drawActions lists the seat's actions, the newest at the bottom; up scrolls
// towards older ones and chosen (an index, or -1) is shown as selected.
func (h *heat) drawActions(c canvas.Canvas, seat *world.Seat, up, chosen int) {
	w, rows := c.Size()
	n := seat.Actions.Len()
	if n == 0 {
		c.PutFit(1, 0, w-2, "no action yet", canvas.Fg(canvas.Dim))
		return
	}
	first := max(0, n-rows-up)
	for y := 0; y < rows && first+y < n; y++ {
		h.drawAction(c, y, seat.Actions.At(first+y), first+y == chosen)
	}
}

func (h *heat) drawAction(c canvas.Canvas, y int, a world.Action, chosen bool) {
	w, _ := c.Size()
	c.Put(1, y, clockShort(a.StartMS), canvas.Fg(canvas.Dim))
	x := 2 + len(clockShort(a.StartMS))
	c.Set(x, y, channelMark(a), canvas.Fg(canvas.Accent))
	result, st := actionResult(a, h.now)
	right := c.PutRight(w-1, y, w/2, result, st)
	c.PutFit(x+2, y, right-1-(x+2), oneCommand(a.Command), canvas.Fg(canvas.Text))
	if chosen {
		c.Restyle(canvas.Rect{X: 0, Y: y, W: w, H: 1}, canvas.Style{Fg: canvas.SelectionText, Bg: canvas.Selection})
		c.Set(0, y, '▌', canvas.Style{Fg: canvas.Focus, Bg: canvas.Selection})
	}
}

// oneCommand is a command on one line, without the comments and blank lines a
// script begins with.
func oneCommand(s string) string {
	var lines []string
	for l := range strings.SplitSeq(strings.ReplaceAll(s, "⏎", "\n"), "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "; ")
}

func actionResult(a world.Action, now uint64) (string, canvas.Style) {
	switch {
	case !a.Done:
		return span(now-min(now, a.StartMS)) + " …", canvas.Fg(canvas.Accent)
	case a.Exit == nil:
		return "cut ✗", canvas.Fg(canvas.Bad)
	case *a.Exit != 0:
		return fmt.Sprintf("exit %d ✗", *a.Exit), canvas.Fg(canvas.Bad)
	}
	return "✓", canvas.Fg(canvas.Ok)
}
