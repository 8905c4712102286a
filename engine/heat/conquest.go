package heat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/referee"
	"refbox/engine/text"
	"refbox/vm"
)

// contest is what decides a heat: a build race or a conquest.
type contest interface {
	Run(context.Context) (referee.Outcome, error)
	Expired() <-chan struct{}
	Nudge(territory string)
	PlayersEnded()
	Unavailable(territory, source, detail string)
	Hold(context.Context) error
	Release()
	Extend(by time.Duration) error
	Order(ctx context.Context, territory string, o referee.Order) error
}

var _, _ contest = (*referee.Race)(nil), (*referee.Conquest)(nil)

// running is the heat's contest; nil before it can be ruled about.
func (h *Heat) contest() contest {
	if c := h.race.Load(); c != nil {
		return *c
	}
	return nil
}

// healthTime bounds one probe of a territory's service, before emulation's factor.
const healthTime = 3 * time.Second

// maxHealthBody is how much of an answer is compared.
const maxHealthBody = 64 << 10

// errEliminated ends a player whose territory is lost.
var errEliminated = errors.New("its territory was eliminated")

// newConquest makes the conquest between the seats that have started.
func (h *Heat) newConquest() (*referee.Conquest, error) {
	m := h.cfg.Package.Manifest
	rules := referee.ConquestRules{Duration: m.Duration(), Tick: m.Tick(), PerTick: m.Rules.HealthyResourcesPerTick, Settles: h.cfg.Thorough}
	var all []referee.Territory
	for _, s := range h.seats {
		if s.failed != nil {
			continue
		}
		probe, err := s.health()
		if err != nil {
			return nil, err
		}
		health := s.arena.Territory.Service.Health
		all = append(all, referee.Territory{ID: s.id(), Resources: s.arena.Agent.Budget.ResourceUnits,
			Holding: referee.Holding{Failures: health.ConsecutiveFailures, Recovery: time.Duration(health.RecoveryWindowSeconds) * time.Second},
			Probe:   probe, Lost: s.lost, Eliminated: s.eliminate})
	}
	return referee.NewConquest(rules, all, h, h.clock), nil
}

// lost tells how the host failed one of the seat's machines.
func (s *seat) lost() error {
	for _, m := range s.cluster.Machines() {
		if err := m.Err(); err != nil {
			return fmt.Errorf("machine %s: the host failed it: %w", m.Name(), err)
		}
	}
	return nil
}

// eliminate ends the seat's player and switches its machines off.
func (s *seat) eliminate(detail string) {
	if stop := s.stopPlayer.Load(); stop != nil {
		(*stop)(fmt.Errorf("%w: %s", errEliminated, detail))
	}
	s.gateway.Close()
	ctx, cancel := context.WithTimeout(context.Background(), switchOff)
	defer cancel()
	for _, m := range s.cluster.Machines() {
		if err := m.PowerCut(ctx); err != nil && !errors.Is(err, vm.ErrPower) {
			s.heat.say(event.InfrastructureFailure{Component: "machine " + m.Name(), Source: "controller",
				Detail: "it could not be switched off: " + text.Line(err.Error())})
		}
	}
}

// health makes a probe of the seat's service.
func (s *seat) health() (func(context.Context) referee.Health, error) {
	service := s.arena.Territory.Service
	addr, err := s.cluster.Machines()[0].Addr(int(service.Port))
	if err != nil {
		return nil, fmt.Errorf("the service of %s: %w", s.id(), err)
	}
	most := time.Duration(float64(healthTime) * s.heat.slow)
	return func(ctx context.Context) referee.Health {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		began := time.Now()
		code, body, err := vm.Get(ctx, addr, service.Path, maxHealthBody)
		h := referee.Health{LatencyMS: uint64(time.Since(began).Milliseconds())}
		if err != nil {
			h.Detail = text.Line(plainly(err).Error())
			h.Bad = h.Detail
			return h
		}
		status := uint16(code)
		h.Status, h.Detail = &status, clip(text.Line(body))
		h.Bad = unwell(service, status, body)
		return h
	}, nil
}

// unwell says what is wrong with an answer; "" for nothing.
func unwell(service arena.Service, status uint16, body string) string {
	switch {
	case status != service.ExpectedStatus:
		return clip(text.Line(fmt.Sprintf("status %d, not %d: %s", status, service.ExpectedStatus, body)))
	case body != service.ExpectedBody:
		return clip(text.Line(fmt.Sprintf("%q, not %q", clip(body), service.ExpectedBody)))
	}
	return ""
}

// clip leaves whole characters: what is said to the log is what the log gives back.
func clip(s string) string { return text.Truncate(s, 300, "") }

// plainly is a transport error without the address, which is this host's and another one
// in each heat.
func plainly(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed without an answer")
	case errors.As(err, &op):
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	_, rest, ok := strings.Cut(err.Error(), "\": ")
	if ok {
		return errors.New(rest)
	}
	return err
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// awaitHealth waits until the seat's service is as the arena says: a conquest begins
// with healthy territories.
func (s *seat) awaitHealth(ctx context.Context) error {
	probe, err := s.health()
	if err != nil {
		return err
	}
	for {
		h := probe(ctx)
		if h.Bad == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its service is not healthy: %s", h.Bad)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
