package tui

import (
	"strconv"
	"strings"
	"time"

	"refbox/engine/world"
	"refbox/tui/canvas"
	"refbox/tui/view"
)

// clockShort is view.Clock without tenths.
func clockShort(ms uint64) string {
	short, _, _ := strings.Cut(view.Clock(ms), ".")
	return short
}

// speedName is a playing speed as ×1/4, ×1, ×16: fractions in letters that any terminal has.
func speedName(speed float64) string {
	switch speed {
	case 0.25:
		return "×1/4"
	case 0.5:
		return "×1/2"
	}
	return "×" + strconv.FormatFloat(speed, 'g', 4, 64)
}

func rungSign(s world.RungState) view.Sign {
	switch s {
	case world.RungPassed:
		return view.NewSign('✓', "passed", canvas.Ok)
	case world.RungVerifying:
		return view.NewSign('◐', "verifying", canvas.Accent)
	case world.RungFailing:
		return view.NewSign('✗', "failing", canvas.Bad)
	case world.RungRevoked:
		return view.NewSign('↶', "revoked", canvas.Bad)
	case world.RungVoid:
		return view.NewSign('⊘', "void", canvas.Warn)
	case world.RungPending:
		return view.NewSign('○', "pending", canvas.Text)
	}
	return view.NewSign('·', "locked", canvas.Dim)
}

func outcomeWord(o world.Outcome) string {
	switch o {
	case world.OutcomeWon:
		return "won"
	case world.OutcomeDeadHeat:
		return "dead heat"
	case world.OutcomeDurable:
		return "durable"
	case world.OutcomeOutraced:
		return "outraced"
	case world.OutcomeIncomplete:
		return "incomplete"
	case world.OutcomeUnavailable:
		return "unavailable"
	case world.OutcomeEliminated:
		return "eliminated"
	case world.OutcomeStanding:
		return "standing"
	case world.OutcomeAborted:
		return "aborted"
	case world.OutcomeVoided:
		return "voided"
	}
	return ""
}

// seatColor tells seats apart beside their numbers.
func seatColor(i int) canvas.Color {
	return []canvas.Color{canvas.Seat1, canvas.Seat2, canvas.Seat3, canvas.Seat4}[i%4]
}

// age is a wall-clock time as a person reads it in a list.
func age(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	t, now = t.Local(), now.Local()
	if now.Year() == t.Year() && now.YearDay() == t.YearDay() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02")
}
