package tui

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/branch"
	"refbox/engine/fleet"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui/view"
)

// Branch is a heat to race on from a saved state.
type Branch struct {
	Point branch.Point
	// Player takes the seat: "human", a script of the arena's, or the path of a script
	// or of a fleet file.
	Player string
}

// branch asks whether to race on from the chosen seat's last saved state, and who does.
func (h *heat) branch(m *model) tea.Cmd {
	seat := h.chosen()
	switch {
	case m.cfg.Branch == nil:
		m.say("no heat is started from this screen; refbox branch races on from a recorded one")
		return nil
	case seat == nil:
		return nil
	case h.rec.Live():
		m.say("this heat is live; one branches from a heat that has ended")
		return nil
	}
	find, rec, id, n := m.cfg.Branch, h.rec, seat.ID, h.index
	return safe(func() tea.Msg { // it reads the arena's package
		p, err := find(rec, id, n)
		return doneMsg{then: func(m *model) tea.Cmd {
			if m.shows(h) {
				m.dialog = branchDialog(rec, id, p, err)
				m.dirty = true
			}
			return nil
		}}
	})
}

// branchDialog offers the state, or says why there is none.
func branchDialog(rec *recording.Recording, seat string, p branch.Point, err error) *dialog {
	if err != nil {
		return &dialog{title: "Branch from " + seat, lines: []string{text.Line(err.Error())}, answers: []answer{{"esc", "back", nil}}}
	}
	race := func(player string) func(m *model) tea.Cmd {
		return func(m *model) tea.Cmd {
			m.choice.Branch = &Branch{Point: p, Player: player}
			return tea.Quit
		}
	}
	o := p.Origin
	return &dialog{
		title: "Branch from " + seat,
		lines: []string{
			fmt.Sprintf("%s, as %s left its machines at %s, when %s had passed. They boot from the disks of that instant.",
				text.Line(p.State.Arena), seat, view.Clock(o.AtMS), o.Milestone),
			"Inherited, for no points: " + strings.Join(p.Passed, ", ") + ".",
			"The heat is recorded as a child of " + rec.Name() + ".",
		},
		answers: []answer{
			{"enter", "start; you take the seat", race(fleet.Human)},
			{"a", "another player: a script of the arena's, or a file", func(m *model) tea.Cmd {
				m.ask("player ", nil, func(m *model, value string) tea.Cmd {
					if value == "" {
						return nil
					}
					return race(value)(m)
				})
				m.prompt.hint = "careful, ./mine.sh, fleet.toml"
				return nil
			}},
			{"esc", "leave", nil},
		},
	}
}
