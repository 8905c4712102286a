package referee

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/world"
)

// siege is a conquest on the time of a synctest bubble.
type siege struct {
	mu     sync.Mutex
	began  time.Time
	events []event.Event
	gone   []string
}

func (s *siege) clock() uint64 { return uint64(time.Since(s.began).Milliseconds()) }

func (s *siege) Append(bodies ...event.Body) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock()
	for _, b := range bodies {
		s.events = append(s.events, event.Event{Sequence: uint64(len(s.events)), ElapsedMS: at, Body: b})
	}
	return at, nil
}

func (s *siege) Evidence(string, string, uint64, probe.Evidence) (string, string, error) {
	return "", "", nil
}

func (s *siege) World() *world.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	return folded(s.events...)
}

// health is a territory's health at an instant: "" for good, and how long its answer takes.
type health func(ms uint64) (bad string, took time.Duration)

func well(uint64) (string, time.Duration) { return "", 20 * time.Millisecond }

func (s *siege) territory(id string, h health) Territory {
	return Territory{ID: id, Resources: 900, Holding: Holding{Failures: 3, Recovery: 10 * time.Second},
		Probe: func(ctx context.Context) Health {
			bad, took := h(s.clock())
			select {
			case <-time.After(took):
			case <-ctx.Done():
				return Health{Bad: "cut off"}
			}
			ok := uint16(200)
			return Health{Status: &ok, Detail: id + ":ok", Bad: bad}
		},
		Lost: func() error { return nil },
		Eliminated: func(string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.gone = append(s.gone, id)
		}}
}

func (s *siege) start(rules ConquestRules, all ...Territory) *Conquest {
	s.began = time.Now()
	for _, t := range all { // as the heat does
		s.Append(event.TerritoryStateChanged{Territory: t.ID, From: "provisioning", To: "healthy", Reason: "preflight passed"}) //nolint:errcheck // never fails
	}
	return NewConquest(rules, all, s, s.clock)
}

func minute() ConquestRules {
	return ConquestRules{Duration: time.Minute, Tick: time.Second, PerTick: 1}
}

func between(from, to uint64, bad string) health {
	return func(ms uint64) (string, time.Duration) {
		if ms >= from && ms < to {
			return bad, 10 * time.Millisecond
		}
		return "", 10 * time.Millisecond
	}
}

func (s *siege) lines() (out []string) {
	for _, e := range s.events {
		switch b := e.Body.(type) {
		case event.TerritoryStateChanged:
			out = append(out, fmt.Sprintf("%d %s %s", e.ElapsedMS/1000, b.Territory, b.To))
		case event.TerritoryEliminated:
			out = append(out, fmt.Sprintf("%d %s out: %s: %s", e.ElapsedMS/1000, b.Territory, b.Source, b.Detail))
		case event.MatchFinished:
			out = append(out, fmt.Sprintf("%d %s", e.ElapsedMS/1000, b.Reason))
		}
	}
	return out[3:]
}

func TestConquestByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		c := s.start(minute(), s.territory("c", between(20_000, 26_000, "refused")), s.territory("a", well), s.territory("b", between(30_000, 99_000, "status 502")))
		out, err := c.Run(t.Context())
		if err != nil || out.Winner != "a" || out.Reason != "match timer expired" {
			t.Fatalf("%+v %v", out, err)
		}
		want := []string{"22 c degraded", "26 c recovering", "28 c healthy", "32 b degraded", "42 b eliminated",
			"42 b out: player: status 502; not healthy again within 10s", "60 match timer expired"}
		if got := s.lines(); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		var order []string
		for _, x := range out.Seats {
			order = append(order, fmt.Sprintf("%d %s %s", x.Rank, x.Territory, x.State))
		}
		if got := strings.Join(order, ", "); got != "1 a healthy, 2 c healthy, 3 b eliminated" {
			t.Error(got)
		}
		w := s.World()
		// By state, each tick: c was not healthy in six of its sixty.
		if a, c := w.Seat("a"), w.Seat("c"); a.UptimeTicks != 60 || a.Resources != 960 || c.UptimeTicks != 54 || c.Resources != 954 || c.DegradedMS != 6000 {
			t.Errorf("%+v %+v", a, c)
		}
		if !slices.Equal(s.gone, []string{"b"}) {
			t.Errorf("taken out: %v", s.gone)
		}
	})
}

func TestConquestIsOneForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		c := s.start(minute(), s.territory("a", between(5_000, 99_000, "refused")), s.territory("b", well), s.territory("c", between(9_000, 99_000, "refused")))
		out, err := c.Run(t.Context())
		if err != nil || out.Winner != "b" || out.Reason != "last territory standing" || s.clock() != 21_020 {
			t.Fatalf("%+v %v at %d", out, err, s.clock())
		}
	})
}

func TestConquestOfEqualsHasNoWinner(t *testing.T) {
	for name, h := range map[string]health{"all well": well, "all lost": between(2_000, 99_000, "refused")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &siege{}
				out, err := s.start(minute(), s.territory("a", h), s.territory("b", h), s.territory("c", h)).Run(t.Context())
				if err != nil || out.Winner != "" || len(out.Seats) != 3 || out.Seats[2].Rank != 1 {
					t.Errorf("%+v %v", out, err)
				}
			})
		})
	}
	t.Run("who fell later has not won", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &siege{}
			late := s.territory("b", between(4_000, 99_000, "refused"))
			late.Holding.Recovery = 8 * time.Second // and falls at the same tick
			out, err := s.start(minute(), s.territory("a", between(2_000, 99_000, "refused")), late).Run(t.Context())
			if err != nil || out.Winner != "" || out.Seats[0].Territory != "b" {
				t.Errorf("%+v %v", out, err)
			}
		})
	})
}

// One that does not answer gains nothing while it does not, and holds up nobody.
func TestConquestWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		c := s.start(minute(), s.territory("a", func(ms uint64) (string, time.Duration) {
			return "no answer in time", 3 * time.Second
		}), s.territory("b", well))
		out, err := c.Run(t.Context())
		if err != nil || out.Winner != "b" {
			t.Fatalf("%+v %v", out, err)
		}
		w := s.World()
		// Asked at 1, 5 and 9, answered by 12; out ten seconds later.
		if b := w.Seat("b"); b.UptimeTicks != s.clock()/1000 {
			t.Errorf("b was seen at %d ticks in %d ms", b.UptimeTicks, s.clock())
		}
		if a := w.Seat("a"); a.State != "eliminated" || a.Resources > 903 {
			t.Errorf("%+v", a)
		}
	})
}

// Every log is in the order of the recorded one, and its fold's standings are the
// outcome.
func TestConquestsOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "territories")
		type spell struct{ from, to uint64 }
		spells := make([]spell, n)
		for i := range spells {
			from := rapid.Uint64Range(0, 60_000).Draw(rt, "from")
			spells[i] = spell{from, from + rapid.Uint64Range(0, 30_000).Draw(rt, "for")}
		}
		charge := rapid.Uint64Range(0, 2000).Draw(rt, "charge")
		synctest.Test(t, func(t *testing.T) {
			s := &siege{}
			var all []Territory
			for i, x := range spells {
				all = append(all, s.territory(string(rune('a'+n-i)), between(x.from, x.to, "refused")))
			}
			c := s.start(minute(), all...)
			time.AfterFunc(5500*time.Millisecond, func() { c.Charge(all[0].ID, charge) })
			out, err := c.Run(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			if last := ordered(s.events[n:]); last != "" {
				rt.Fatal(last)
			}
			left := 0
			for _, x := range out.Seats {
				if x.State != stateEliminated {
					left++
				}
			}
			if w := world.Winner(world.Standings(s.World())); left > 0 && out.Winner != w || left == 0 && out.Winner != "" {
				rt.Fatalf("won by %q, the fold says %q, %d left", out.Winner, w, left)
			}
			if len(s.gone) != n-left {
				rt.Fatalf("%v were taken out, %d are left of %d", s.gone, left, n)
			}
		})
	})
}

// ordered says what is out of order in a conquest's log from its first tick on: each
// tick's probes by id, each followed by its step; then what is gained, by id.
func ordered(events []event.Event) string {
	var at uint64
	probed, gained, stepped := "", "", ""
	for i, e := range events {
		if e.ElapsedMS != at {
			at, probed, gained, stepped = e.ElapsedMS, "", "", ""
		}
		switch b := e.Body.(type) {
		case event.HealthObserved:
			if gained != "" || b.Territory <= probed {
				return fmt.Sprintf("event %d: %s was probed after %q and gains of %q", i, b.Territory, probed, gained)
			}
			probed = b.Territory
		case event.TerritoryStateChanged:
			if b.Territory != probed || gained != "" {
				return fmt.Sprintf("event %d: %s changed after the probe of %q", i, b.Territory, probed)
			}
			stepped = b.Territory
		case event.TerritoryEliminated:
			if b.Territory != stepped {
				return fmt.Sprintf("event %d: %s was eliminated after the step of %q", i, b.Territory, stepped)
			}
		case event.ResourcesChanged:
			if b.Reason == "healthy tick" {
				if b.Territory <= gained {
					return fmt.Sprintf("event %d: %s gained after %q", i, b.Territory, gained)
				}
				gained = b.Territory
			}
		}
	}
	return ""
}

func TestConquestChargesOnlyWhatThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		c := s.start(ConquestRules{Duration: 5 * time.Second, Tick: time.Second, PerTick: 1}, s.territory("a", well), s.territory("b", well))
		time.AfterFunc(1500*time.Millisecond, func() { c.Charge("a", 1); c.Charge("b", 5000) })
		out, err := c.Run(t.Context())
		if err != nil || out.Winner != "a" {
			t.Errorf("%+v %v", out, err)
		}
		if w := s.World(); w.Seat("a").Resources != 904 || w.Seat("b").Resources != 4 {
			t.Errorf("%d %d", w.Seat("a").Resources, w.Seat("b").Resources)
		}
		c.Charge("a", 1) // too late
		if w := s.World(); w.Seat("a").Resources != 904 {
			t.Error("charged after the end")
		}
	})
}

func TestConquestIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		asked := 0
		a := s.territory("a", func(uint64) (string, time.Duration) { asked++; return "", 2 * time.Second })
		c := s.start(minute(), a, s.territory("b", well))
		time.AfterFunc(3100*time.Millisecond, func() {
			if err := c.Hold(t.Context()); err != nil {
				t.Error(err)
			}
			n := asked
			time.Sleep(10 * time.Second)
			if asked != n {
				t.Errorf("asked %d times while held", asked-n)
			}
			if err := c.Extend(time.Minute); err != nil {
				t.Error(err)
			}
			c.Release()
		})
		if _, err := c.Run(t.Context()); err != nil || s.clock() < 120_000 {
			t.Errorf("%v at %d", err, s.clock())
		}
		if err := c.Hold(t.Context()); !errors.Is(err, ErrOver) {
			t.Errorf("held after its end: %v", err)
		}
	})
}

func TestConquestTakesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		host := s.territory("b", well)
		host.Lost = func() error {
			if s.clock() > 7000 {
				return errors.New("its process died")
			}
			return nil
		}
		c := s.start(minute(), s.territory("a", well), host, s.territory("c", well), s.territory("d", well))
		time.AfterFunc(3100*time.Millisecond, func() {
			if err := c.Order(t.Context(), "a", Order{Do: Bench, Author: "ref", Reason: "left its machine"}); err != nil {
				t.Error(err)
			}
			for _, o := range []Order{{Do: Bench}, {Do: Restore}, {Do: Revoke}} {
				if c.Order(t.Context(), "a", o) == nil {
					t.Errorf("%s was done", o.Do)
				}
			}
		})
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]string{"a": "ruled by ref: left its machine", "b": "its process died"} {
			x := s.World().Seat(id)
			if x.State != stateEliminated || *x.EliminationSource != "controller" || *x.EliminationDetail != want || x.Unavailable == nil {
				t.Errorf("%s: %+v", id, x)
			}
		}
	})
}

func TestConquestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		rules := minute()
		rules.Settles = true
		c := s.start(rules, s.territory("a", between(10_000, 14_000, "refused")), s.territory("b", well))
		c.PlayersEnded()
		out, err := c.Run(t.Context())
		if err != nil || !strings.Contains(out.Reason, "nothing changes") || s.clock()/1000 != 6 {
			t.Errorf("%+v %v at %d", out, err, s.clock())
		}
	})
}

// A service that hangs is no calm, though no probe of it has failed yet.
func TestConquestDoesNotSettleOnSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		rules := minute()
		rules.Settles = true
		hangs := func(ms uint64) (string, time.Duration) {
			if ms >= 4_000 {
				return "no answer in time", 8 * time.Second
			}
			return "", 20 * time.Millisecond
		}
		c := s.start(rules, s.territory("a", hangs), s.territory("b", well))
		c.PlayersEnded()
		out, err := c.Run(t.Context())
		if err != nil || out.Winner != "b" || strings.Contains(out.Reason, "nothing changes") {
			t.Errorf("%+v %v at %d", out, err, s.clock())
		}
	})
}

func TestConquestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &siege{}
		ctx, cancel := context.WithCancelCause(t.Context())
		c := s.start(minute(), s.territory("a", well), s.territory("b", func(uint64) (string, time.Duration) { return "", time.Hour }))
		why := errors.New("enough")
		time.AfterFunc(4*time.Second, func() { cancel(why) })
		if _, err := c.Run(ctx); !errors.Is(err, why) || s.clock() != 4000 {
			t.Errorf("%v at %d", err, s.clock())
		}
		for _, e := range s.events {
			if _, over := e.Body.(event.MatchFinished); over {
				t.Error("it has an outcome")
			}
		}
	})
}

// folded is the world after events.
func folded(events ...event.Event) *world.World {
	w := world.New()
	for _, e := range events {
		world.Apply(w, e)
	}
	return w
}
