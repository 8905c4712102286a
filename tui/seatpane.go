package tui

import (
	"fmt"
	"slices"
	"strings"

	"refbox/engine/text"
	"refbox/engine/why"
	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// seatParts are the rows that a seat's pane gives to its parts, topmost first.
// Zero leaves a part out. They add up to the pane's inner height, dividers
// included.
type seatParts struct{ topology, ladder, actions, console, story int }

// splitSeat shares h inner rows. The ladder with its blocker is never left out:
// it answers who leads and why. What is left goes to the topology first, then to
// actions and console alike; a recording that has neither, as the reference's,
// shows the seat's story instead, below what transcripts tell of actions. A list of rungs stands in for a topology that
// is not there, and takes no more rows than it has.
func splitSeat(h int, topology bool, rungs int, story, actions bool) seatParts {
	p := seatParts{ladder: max(0, min(2, h))}
	rest := h - p.ladder
	grow := func(part *int, to int) {
		if by := min(to-*part, rest); by > 0 {
			*part += by
			rest -= by
		}
	}
	begin := func(part *int, rows int) {
		if rest > rows {
			rest -= rows + 1 // and its divider
			*part = rows
		}
	}
	if topology {
		begin(&p.topology, 6)
	} else if rungs > 0 {
		begin(&p.topology, min(rungs, max(1, h/3)))
	}
	list := p.topology
	if actions {
		begin(&p.actions, 1)
	}
	if story {
		begin(&p.story, 1)
	} else {
		begin(&p.console, 1)
	}
	// Rows for the parts that there are, in rounds: first what makes each useful,
	// then what makes it comfortable.
	for _, to := range []seatParts{
		{topology: 8, actions: 2, console: 2, story: 4},
		{topology: 11, ladder: 3, actions: 4, console: 5, story: 8},
		{topology: 17, actions: 8, console: 12, story: 16},
		{actions: 12, console: h, story: h},
		{topology: h},
		{ladder: h},
	} {
		for _, part := range []struct {
			rows *int
			to   int
		}{{&p.topology, to.topology}, {&p.ladder, to.ladder}, {&p.actions, to.actions}, {&p.console, to.console}, {&p.story, to.story}} {
			if part.rows == &p.topology && !topology {
				part.to = min(part.to, max(list, min(rungs, h/2)))
			}
			if *part.rows > 0 {
				grow(part.rows, part.to)
			}
		}
	}
	return p
}

// drawSeat draws one seat's column into r: topology, ladder, blocker, actions,
// console. The topology is laid out for width columns, so that seats side by
// side show the same picture.
func (h *heat) drawSeat(c canvas.Canvas, r canvas.Rect, i, width int, focused bool) {
	seat := h.world.Seats()[i]
	outline, line := view.Outline(focused)
	inner := frameNoted(c, r, outline, h.seatTitle(i), h.seatNote(seat), line)
	rungs := len(h.about(seat.ID).rungs)
	if rungs > 0 && !h.hasTopology() {
		rungs++ // for the word that there is none
	}
	p := splitSeat(inner.H, h.hasTopology(), rungs, h.foreign, !h.foreign || h.tells())
	y := inner.Y
	part := func(rows int, title, note string) canvas.Canvas {
		if y > inner.Y {
			c.Divider(r, y, outline, title, note, line, canvas.Fg(canvas.Dim))
			y++
		}
		y += rows
		return c.Sub(canvas.Rect{X: inner.X, Y: y - rows, W: inner.W, H: rows})
	}
	if p.topology > 0 {
		h.drawTopology(part(p.topology, "", ""), seat, width)
	}
	h.drawLadder(part(p.ladder, "", ""), seat)
	if p.actions > 0 {
		h.drawActions(part(p.actions, h.actionsTitle(seat), countNote(h.deeds(seat).Len())), seat, 0, -1)
	}
	if p.console > 0 {
		in := part(p.console, "console", consoleNote(seat))
		h.drawConsole(in.Sub(canvas.Rect{X: 1, W: inner.W - 2, H: p.console}), seat, h.reel(seat.ID, ""), 0)
	}
	if p.story > 0 {
		h.drawStory(part(p.story, "story", ""), seat, "")
	}
}

// drawStory tells a seat's story, or a milestone's on it, newest at the bottom.
func (h *heat) drawStory(c canvas.Canvas, seat *world.Seat, milestone string) {
	w, rows := c.Size()
	lines := h.explain(seat.ID).Lines
	if milestone != "" {
		lines = slices.DeleteFunc(slices.Clone(lines), func(l why.Line) bool { return l.Milestone != milestone })
	}
	if len(lines) == 0 {
		c.PutFit(1, 0, w-2, "nothing to tell yet", canvas.Fg(canvas.Dim))
		return
	}
	// From the newest back, for as long as there is room.
	first, used := len(lines), 0
	words := make([][]string, len(lines))
	for ; first > 0; first-- {
		l := lines[first-1]
		t := text.Wrap(l.Text, max(8, w-5-len(clockShort(l.MS))))
		if used += len(t); used > rows && first < len(lines) {
			break
		}
		words[first-1] = t
	}
	y := 0
	for i := first; i < len(lines); i++ {
		shape, st := whyMark(lines[i].Kind)
		x := 2 + c.Put(1, y, clockShort(lines[i].MS), canvas.Fg(canvas.Dim)) - 1
		c.Set(x, y, shape, st)
		for _, t := range words[i] {
			c.Put(x+2, y, t, canvas.Fg(canvas.Text))
			y++
		}
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
		model = modelName(a.Model)
	}
	if p := seat.Prepared; p != nil && strings.HasPrefix(p.Adapter, "script") {
		// The one who really plays, not the model that the manifest names.
		return scriptName(strings.TrimPrefix(p.Adapter, "script:")) + " (script)"
	}
	if model == "" {
		return seat.Agent
	}
	return model
}

// scriptName is a script of an arena's package as a player's name.
func scriptName(path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(path, "players/"), ".sh")
}

// seatNote is the seat's outcome once there is one, else its rank.
func (h *heat) seatNote(seat *world.Seat) string {
	if seat.Unavailable != nil {
		return "unavailable"
	}
	return outcomeWord(h.about(seat.ID).outcome)
}

// modelName is a model without its vendor.
func modelName(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }

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
	case "shell", "terminal":
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
	actions := h.deeds(seat)
	n := actions.Len()
	if n == 0 {
		for y, l := range text.Wrap(h.noActions(seat), max(8, w-2)) {
			c.PutFit(1, y, w-2, l, canvas.Fg(canvas.Dim))
		}
		return
	}
	first := max(0, n-rows-up)
	for y := 0; y < rows && first+y < n; y++ {
		h.drawAction(c, y, actions.At(first+y), first+y == chosen)
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
		view.Choose(c, y)
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
		return view.Span(now-min(now, a.StartMS)) + " …", canvas.Fg(canvas.Accent)
	case toldFailed(a):
		return "error ✗", canvas.Fg(canvas.Bad)
	case a.Exit == nil:
		return "cut ✗", canvas.Fg(canvas.Bad)
	case *a.Exit != 0:
		return fmt.Sprintf("exit %d ✗", *a.Exit), canvas.Fg(canvas.Bad)
	}
	return "✓", canvas.Fg(canvas.Ok)
}
