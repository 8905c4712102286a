package heat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"refbox/engine/agent"
	"refbox/engine/control"
)

// Sit gives a person a terminal at a seat that a person plays.
func (h *Heat) Sit(ctx context.Context, _, territory, machine string, size control.Size) (control.Terminal, error) {
	if !h.enter() {
		return nil, errNotRunning
	}
	i := slices.IndexFunc(h.seats, func(s *seat) bool { return s.id() == territory && s.failed == nil })
	if i < 0 {
		h.desks.Done()
		return nil, fmt.Errorf("no running seat is called %q", words(territory))
	}
	s := h.seats[i]
	if !agent.IsHuman(s.player) {
		h.desks.Done()
		return nil, fmt.Errorf("%s is played by %s: a person's seats are %s", s.id(), s.adapter, h.personsSeats())
	}
	defer h.desks.Done()
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
