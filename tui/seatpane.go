package tui

import (
	"fmt"
	"slices"
	"strings"

	"refbox/engine/text"
	"refbox/engine/why"
	"refbox/engine/world"
	"refbox/tui/canvas"
)

// seatParts are the rows that a seat's pane gives to its parts, topmost first.
// Zero leaves a part out. They add up to the pane's inner height, dividers
// included.
type seatParts struct{ topology, ladder, actions, console, story int }

// splitSeat shares h inner rows. The ladder with its blocker is never left out:
// it answers who leads and why. What is left goes to the topology first, then to
// actions and console alike; a recording that has neither, as the reference's,
// shows the seat's story instead. A list of rungs stands in for a topology that
// is not there, and takes no more rows than it has.
func splitSeat(h int, topology bool, rungs int, story bool) seatParts {
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
	if story {
		begin(&p.story, 1)
	} else {
		begin(&p.actions, 1)
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
	outline, line := focusOutline(focused)
	inner := frameNoted(c, r, outline, h.seatTitle(i), h.seatNote(seat), line)
	rungs := len(h.about(seat.ID).rungs)
	p := splitSeat(inner.H, h.hasTopology(), rungs, h.foreign)
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
		h.drawActions(part(p.actions, "actions", countNote(seat.Actions.Len())), seat, 0, -1)
	}
	if p.console > 0 {
		in := part(p.console, "console", consoleNote(seat))
		h.drawConsole(in.Sub(canvas.Rect{X: 1, W: inner.W - 2, H: p.console}), seat, "", 0)
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
	return outcomeWord(h.about(seat.ID).outcome)
}

// pointsOf are a rung's points; "" where they are not known: without a manifest
// only a pass tells them.
func (h *heat) pointsOf(r world.Rung) string {
	if h.manifest == nil && r.State != world.RungPassed {
		return ""
	}
	return fmt.Sprint(r.Points)
}

// drawLadder draws the rungs with the points, and below them what blocks the
// next one.
func (h *heat) drawLadder(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	if rows == 0 {
		return
	}
	rungs := h.about(seat.ID).rungs
	if len(rungs) == 0 && conquest(seat) {
		h.drawSurvival(c, seat)
		return
	}
	total := uint64(0)
	for _, r := range rungs {
		total += r.Points
	}
	score := fmt.Sprintf("%d/%d", seat.Points, total)
	if h.manifest == nil {
		score = fmt.Sprint(seat.Points)
	}
	right := c.PutRight(w-1, 0, w-2, score, canvas.Fg(canvas.Title).With(canvas.Bold))
	x := 1
	for i, r := range rungs {
		m := rungMark(r.State)
		label := string(m.shape) + h.pointsOf(r)
		more := 0
		if i < len(rungs)-1 {
			more = 2 // room to say that there are more
		}
		if x+text.Width(label)+more > right-1 {
			c.Put(x, 0, "…", canvas.Fg(canvas.Dim))
			break
		}
		st := m.style
		if r.State == world.RungPassed || r.State == world.RungFailing {
			st = st.With(canvas.Bold)
		}
		x = c.Put(x, 0, label, st) + 1
	}
	if rows > 1 {
		h.drawBlocker(c.Sub(canvas.Rect{X: 1, Y: 1, W: w - 2, H: rows - 1}), seat)
	}
}

// conquest says that the seat is one of a conquest: what counts is survival.
func conquest(s *world.Seat) bool {
	return s.CompetitorState == "" && (s.LastHealth != nil || s.State != "" && s.State != "provisioning")
}

// drawSurvival shows how a seat of a conquest stands.
func (h *heat) drawSurvival(c canvas.Canvas, seat *world.Seat) {
	w, _ := c.Size()
	mark, st := '✓', canvas.Fg(canvas.Ok)
	switch seat.State {
	case "healthy":
	case "eliminated":
		mark, st = '✗', canvas.Fg(canvas.Bad)
	default:
		mark, st = '◐', canvas.Fg(canvas.Warn)
	}
	right := c.PutRight(w-1, 0, w/2, fmt.Sprintf("%d resources", seat.Resources), canvas.Fg(canvas.Title).With(canvas.Bold))
	c.PutFit(1, 0, right-2, fmt.Sprintf("%c %s", mark, seat.State), st)
	line := fmt.Sprintf("%d good probes", seat.UptimeTicks)
	if seat.DegradedMS > 0 {
		line += ", degraded for " + span(seat.DegradedMS)
	}
	switch health := seat.LastHealth; {
	case seat.EliminationDetail != nil:
		line, st = *seat.EliminationDetail, canvas.Fg(canvas.Bad)
	case health != nil && !health.Healthy:
		line, st = firstLine(health.Detail), canvas.Fg(canvas.Bad)
	default:
		st = canvas.Fg(canvas.Text)
	}
	c.PutFit(1, 1, w-2, line, st)
}

// drawRungList lists the milestones with their names, where there is room but no
// picture of the arena.
func (h *heat) drawRungList(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	rungs := h.about(seat.ID).rungs
	if len(rungs) == 0 {
		c.PutFit(1, 0, w-2, "this recording shows no topology", canvas.Fg(canvas.Dim))
		return
	}
	names := rungNames(rungs, w)
	for y := 0; y < rows && y < len(rungs); y++ {
		h.drawRung(c, y, names, rungs[y])
	}
}

// rungNames is the width of the column of names, in w columns.
func rungNames(rungs []world.Rung, w int) int {
	n := 0
	for _, r := range rungs {
		n = max(n, text.Width(r.ID))
	}
	return min(n, w*3/5)
}

// drawRung draws a milestone's row: state, name, points, when or why not.
func (h *heat) drawRung(c canvas.Canvas, y, names int, r world.Rung) {
	w, _ := c.Size()
	m := rungMark(r.State)
	c.Set(1, y, m.shape, m.style.With(canvas.Bold))
	c.PutFit(3, y, names, r.ID, canvas.Fg(canvas.Text))
	c.PutRight(3+names+4, y, 3, h.pointsOf(r), canvas.Fg(canvas.Dim))
	room := w - 1 - (3 + names + 6)
	c.PutFit(3+names+6, y, room, h.rungDetail(r, room < 16), m.style)
}

// rungDetail is a rung's story in a line, or in a word.
func (h *heat) rungDetail(r world.Rung, brief bool) string {
	m := r.Milestone
	word := rungMark(r.State).word
	if m == nil {
		return word
	}
	tries := ""
	if m.Attempts > 1 {
		tries = fmt.Sprintf(" after %d attempts", m.Attempts)
	}
	switch {
	case !brief:
	case r.State == world.RungPassed:
		return clockShort(m.PassedMS)
	case r.State == world.RungFailing:
		return fmt.Sprintf("×%d", m.Failures)
	case r.State == world.RungVerifying:
		return span(h.now - min(h.now, m.StartedMS))
	}
	switch r.State {
	case world.RungPassed:
		return "passed " + clock(m.PassedMS) + tries
	case world.RungRevoked:
		return word
	case world.RungFailing:
		return fmt.Sprintf("%s ×%d: %s", word, m.Failures, firstLine(m.Failure.Detail))
	case world.RungVerifying:
		return "verifying " + span(h.now-min(h.now, m.StartedMS))
	}
	return word
}

// drawBlocker says what keeps the seat: the referee's attack, the run of equal
// failures folded to one line, or what is being verified. The note is the
// number, the words wrap into the rows that there are.
func (h *heat) drawBlocker(c canvas.Canvas, seat *world.Seat) {
	w, rows := c.Size()
	line, note, st := h.blocker(seat)
	room := w
	if note != "" {
		room = c.PutRight(w, 0, w, note, canvas.Fg(canvas.Dim)) - 1
	}
	if rows < 2 || text.Width(line) <= room {
		c.PutFit(0, 0, room, line, st)
		return
	}
	first := text.Wrap(line, max(1, room))[0]
	c.Put(0, 0, first, st)
	rest := text.Wrap(strings.TrimSpace(strings.TrimPrefix(line, first)), w)
	for y := 1; y < rows && y <= len(rest); y++ {
		l := rest[y-1]
		if y == rows-1 && y < len(rest) {
			l += text.Ellipsis
		}
		c.PutFit(0, y, w, l, st)
	}
}

func (h *heat) blocker(seat *world.Seat) (line, note string, st canvas.Style) {
	about := h.about(seat.ID)
	attacks := seat.RunningAttacks()
	over := h.world.Over()
	switch {
	case seat.Unavailable != nil:
		return "unavailable: " + seat.Unavailable.Detail, clock(seat.Unavailable.MS), canvas.Fg(canvas.Bad)
	case seat.DurableAtMS != nil:
		at := *seat.DurableAtMS
		if seat.Durable != nil {
			at = seat.Durable.At
		}
		return "durable", clock(at), canvas.Fg(canvas.Ok)
	case len(attacks) > 0 && !over:
		a := attacks[len(attacks)-1]
		return "attack: " + a.Attack, span(h.now - min(h.now, a.StartMS)), canvas.Fg(canvas.Warn)
	case about.blocked:
		b := about.blocker
		note = span(b.For(h.world))
		if b.Count > 1 {
			note = fmt.Sprintf("×%d %s", b.Count, note)
		}
		return b.Milestone + ": " + firstLine(b.Detail), note, canvas.Fg(canvas.Bad)
	}
	for _, r := range about.rungs {
		switch {
		case over && r.State != world.RungPassed:
			return r.ID + ": not reached", "", canvas.Fg(canvas.Dim)
		case r.State == world.RungVerifying && r.Milestone != nil:
			return "verifying " + r.ID, span(h.now - min(h.now, r.Milestone.StartedMS)), canvas.Fg(canvas.Accent)
		}
	}
	for _, r := range about.rungs {
		if r.State == world.RungPending || r.State == world.RungRevoked {
			return "next " + r.ID, "", canvas.Fg(canvas.Dim)
		}
	}
	return "", "", canvas.Fg(canvas.Dim)
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
		selected(c, y)
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
