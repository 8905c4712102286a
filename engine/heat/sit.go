package heat

import (
	"context"
	"fmt"
	"strings"

	"refbox/engine/agent"
	"refbox/engine/control"
)

// Sit gives a person a terminal at a seat that a person plays.
func (h *Heat) Sit(ctx context.Context, _, territory, machine string, size control.Size) (control.Terminal, error) {
	if !h.enter() {
		return nil, errNotRunning
	}
	defer h.desks.Done()
	s, err := h.running(territory)
	if err != nil {
		return nil, err
	}
	if !agent.IsHuman(s.player) {
		return nil, fmt.Errorf("%s is played by %s: a person's seats are %s", s.id(), s.adapter, h.personsSeats())
	}
	t, err := agent.OpenTerminal(ctx, s.gateway.Login(), machine, size.Cols, size.Rows)
	if err != nil {
		return nil, err
	}
	h.desks.Go(t.Wait) // it ends with the seat's gateway, or with Close
	return terminal{t}, nil
}

// personsSeats names the seats that persons play.
func (h *Heat) personsSeats() string {
	var ids []string
	for _, s := range h.seats {
		if agent.IsHuman(s.player) {
			ids = append(ids, s.id())
		}
	}
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}

// terminal is a person's terminal as the desk gives it.
type terminal struct{ *agent.PersonsTerminal }

func (t terminal) Resize(s control.Size) error { return t.PersonsTerminal.Resize(s.Cols, s.Rows) }
