package heat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/engine/agent"
	"refbox/engine/event"
	"refbox/engine/referee"
	"refbox/engine/text"
	"refbox/engine/world"
)

// abortGrace is what players get to end in when a heat is aborted.
const abortGrace = 3 * time.Second

// players are the running players.
type players struct {
	heat   *Heat
	cancel context.CancelCauseFunc
	ends   chan playerEnd // of those that have not been taken out
	left   map[*seat]bool
	live   sync.WaitGroup

	mu      sync.Mutex
	frozen  bool // results are the drain's
	playing int  // of those that began
	sound   bool // one of them ended by itself otherwise than by its harness
}

type playerEnd struct {
	seat   *seat
	result agent.Result
}

// startPlayers lets the players play until they are told to stop, as they are when
// the limit has passed, wherever a referee put it. Deadline is where it stands now.
func (h *Heat) startPlayers(ctx context.Context, deadline time.Time, expired <-chan struct{}) *players {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &players{heat: h, cancel: cancel, ends: make(chan playerEnd, len(h.seats)), left: map[*seat]bool{}}
	for _, s := range h.seats {
		if s.failed == nil {
			p.left[s] = true
			p.playing++
			s.playing.Store(true)
		}
	}
	for _, s := range h.seats {
		if s.failed != nil {
			continue
		}
		ctx, stop := context.WithCancelCause(ctx)
		s.stopPlayer.Store(&stop)
		p.live.Go(func() {
			defer stop(nil)
			r := s.play(ctx, deadline)
			p.mu.Lock()
			frozen := p.frozen
			out := errors.Is(context.Cause(ctx), errEliminated)
			if out {
				r.Status, r.Summary = agent.Failed, context.Cause(ctx).Error()
			}
			if !frozen && (out || ctx.Err() == nil) {
				s.finished(r) // before the outcome: it has its own clock
				src := s.charged(r)
				p.sound = p.sound || (src != "harness" && src != "provider")
				p.playing--
				switch {
				case p.playing > 0:
				case p.sound:
					h.contest().PlayersEnded()
				default:
					h.stop(ended{author: "refbox", reason: "no contest: no player could play, all their harnesses failed"})
				}
			}
			p.mu.Unlock()
			p.ends <- playerEnd{s, r}
		})
	}
	p.live.Go(func() {
		select {
		case <-expired:
			p.stop(agent.ErrFrozen)
		case <-ctx.Done():
		}
	})
	return p
}

// play lets the seat's player play. What goes wrong is the result's.
func (s *seat) play(ctx context.Context, deadline time.Time) agent.Result {
	dir := s.recordDir()
	login := s.gateway.Login()
	login.PasswordFile, login.KeyFile = filepath.Join(s.dir, "password"), filepath.Join(s.dir, "id_ed25519")
	for file, data := range map[string][]byte{login.PasswordFile: []byte(s.password + "\n"), login.KeyFile: s.login} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return agent.Result{Status: agent.HarnessError, Summary: err.Error()}
		}
	}
	a := s.arena.Agent
	may, ok := s.heat.cfg.Budgets[a.ID]
	if !ok {
		may = agent.Budget{ResourceUnits: a.Budget.ResourceUnits, MaxCostMicroUSD: a.Budget.MaxCostMicroUSD}
	}
	r, err := agent.Run(ctx, s.player, agent.Seat{Territory: s.id(), Agent: a.ID, Model: a.Model, ReasoningEffort: a.ReasoningEffort,
		Budget: may, Login: login, Brief: filepath.Join(dir, "brief.md"), Deadline: deadline, Movable: true, Dir: dir, Room: s.budget.take, Private: s.dir,
		Await: s.heat.watch.goOn, Drain: s.heat.cfg.Package.Manifest.Drain(), Terminal: s.gateway.Terminal}, s)
	s.hostile.saw(inResult, r.Hostile())
	if err != nil {
		r.Summary = strings.TrimSpace(r.Summary + "\n" + err.Error())
	}
	return r
}

// finished logs how a player ended.
func (s *seat) finished(r agent.Result) {
	if !s.playing.CompareAndSwap(true, false) {
		return
	}
	if s.heat.cfg.Package.Manifest.Build != nil {
		s.Usage(r.Usage)
	} else {
		defer s.Usage(r.Usage) // in a conquest what it cost comes after its end
	}
	if l := r.Limit; l != nil {
		s.heat.say(event.LimitReached{Agent: s.arena.Agent.ID, Limit: l.Limit, Detail: l.Detail})
	}
	end := r.Event(s.arena.Agent.ID)
	if f, ok := end.(event.AgentFinished); ok {
		f.Source = s.charged(r)
		end = f
	}
	s.heat.say(end)
}

// charged is who is charged with how a player ended. One that fails while a fault is on
// its seat, or of an action that one came or went in, is not: as with the referee's own
// checks, whoever put the fault there is.
func (s *seat) charged(r agent.Result) string {
	source := r.Status.Source()
	state := s.heat.World().Seat(s.id())
	if state == nil || r.Status != agent.Failed && r.Status != agent.HarnessError {
		return source
	}
	since := s.heat.clock()
	if last, ok := state.Actions.Last(); ok {
		since = last.StartMS
	}
	for _, f := range state.Faults.All() {
		switch {
		case f.State == world.FaultNotInjected, !f.On() && *f.EndedMS < since:
		case f.Author == "arena":
			return "arena"
		default:
			return "controller"
		}
	}
	return source
}

// stop tells the players to stop.
func (p *players) stop(cause error) {
	p.mu.Lock()
	p.frozen = true
	p.mu.Unlock()
	p.cancel(cause)
}

// wait collects players until all have ended, or for at most d, of which no more
// than abortGrace is left once ctx has ended. Each is told of every one.
func (p *players) wait(ctx context.Context, d time.Duration, each ...func(playerEnd)) {
	done := ctx.Done()
	if ctx.Err() != nil {
		done, d = nil, min(d, abortGrace)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for len(p.left) > 0 {
		select {
		case e := <-p.ends:
			delete(p.left, e.seat)
			for _, f := range each {
				f(e)
			}
		case <-done:
			done = nil
			timer.Reset(abortGrace)
		case <-timer.C:
			return
		}
	}
	p.live.Wait()
}

// drain collects what players leave after the freeze.
func (h *Heat) drain(ctx context.Context, p *players, out referee.Outcome) error {
	p.stop(agent.ErrFrozen)
	pending := 0
	for s := range p.left {
		if s.playing.Load() {
			pending++
		}
	}
	limit := h.cfg.Package.Manifest.Drain()
	h.say(event.PostMatchDrainStarted{TimeoutMS: uint64(limit.Milliseconds()), PendingAgents: uint64(pending)})
	durable := map[string]bool{}
	for _, s := range out.Seats {
		durable[s.Territory] = s.State == "durable"
	}
	conquest := h.cfg.Package.Manifest.Build == nil
	outraced := "the heat ended without a winner; build ended at the frozen clock"
	switch {
	case out.Winner != "":
		outraced = out.Winner + " reached durable first; build ended at the frozen clock"
	case len(out.DeadHeat) > 0:
		outraced = strings.Join(out.DeadHeat, " and ") + " reached durable in a dead heat; build ended at the frozen clock"
	}
	captured := 0
	p.wait(ctx, limit, func(e playerEnd) {
		if !e.seat.playing.Load() {
			return // ended before the freeze
		}
		captured++
		agentID, won := e.seat.arena.Agent.ID, durable[e.seat.id()]
		switch e.result.Status {
		case agent.Interrupted, agent.TimedOut: // cut by the freeze
			e.seat.Usage(e.result.Usage)
			e.seat.playing.Store(false)
			switch {
			case conquest:
				h.say(event.AgentInterrupted{Agent: agentID, Source: "arena", Detail: "the heat was over: " + out.Reason})
			case won:
				h.say(event.AgentInterrupted{Agent: agentID, Source: "arena", Detail: "the heat was over: the seat was durable"})
			default:
				h.say(event.AgentOutraced{Agent: agentID, Reason: outraced})
			}
		default:
			e.seat.finished(e.result)
			if e.result.Status == agent.Completed && !won && !conquest {
				h.say(event.AgentOutraced{Agent: agentID, Reason: outraced})
			}
		}
	})
	// Without a door nothing of a player reaches a machine any more.
	h.closeDoors()
	var late []string
	for s := range p.left {
		if s.playing.CompareAndSwap(true, false) {
			late = append(late, s.arena.Agent.ID)
		}
	}
	slices.Sort(late)
	for _, id := range late {
		h.say(event.AgentTerminated{Agent: id, Reason: "post-match drain deadline expired"})
	}
	p.wait(ctx, abortGrace)
	h.readBack(ctx, limit)
	h.say(event.PostMatchDrainFinished{CapturedAgents: uint64(captured), TerminatedAgents: uint64(len(late))})
	if len(p.left) > 0 {
		return fmt.Errorf("%s did not end when they were told to", text.Count(len(p.left), "player"))
	}
	return context.Cause(ctx)
}

// Usage charges what a player used since it last said so. What is unknown is
// charged as that, once for each time that the player went on with it.
func (s *seat) Usage(u agent.Usage) {
	s.usageMu.Lock()
	defer s.usageMu.Unlock()
	last := s.usage
	e := event.UsageCharged{Agent: s.arena.Agent.ID, ResourceUnits: u.ResourceUnits - min(u.ResourceUnits, last.ResourceUnits),
		InputTokens: delta(u.InputTokens, last.InputTokens), OutputTokens: delta(u.OutputTokens, last.OutputTokens),
		CostMicroUSD: delta(u.CostMicroUSD, last.CostMicroUSD)}
	if e.ResourceUnits == 0 && zero(e.InputTokens) && zero(e.OutputTokens) && zero(e.CostMicroUSD) && zero(delta(u.Rounds, last.Rounds)) {
		return
	}
	s.usage = last.Most(u)
	if err := s.heat.rec.Artifact(s.id(), "usage.json", u); err != nil {
		slog.Warn("usage was not recorded", "territory", s.id(), "error", err)
	}
	s.heat.say(e)
	if c, ok := s.heat.contest().(*referee.Conquest); ok {
		c.Charge(s.id(), e.ResourceUnits)
	}
}

// Note is a player's remark about itself. It decides nothing, so it is in its
// result and not in the referee's log.
func (s *seat) Note(string) {}

func delta(now, last *uint64) *uint64 {
	if now == nil {
		return nil
	}
	d := *now
	if last != nil {
		d -= min(d, *last)
	}
	return &d
}

func zero(p *uint64) bool { return p == nil || *p == 0 }
