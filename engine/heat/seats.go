package heat

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/agent"
	"refbox/engine/arena"
	"refbox/engine/canary"
	"refbox/engine/event"
	"refbox/engine/probe"
	"refbox/engine/text"
	"refbox/vm"
)

const (
	startTime     = 2 * time.Minute  // of a seat's machines, before emulation's factor
	setupTime     = 30 * time.Second // of a seat's own set-up
	preflightTime = 30 * time.Second
)

// seat is one seat of the heat: its machines, its door and its player.
type seat struct {
	heat    *Heat
	arena   arena.Seat
	adapter string // as recorded, e.g. "script:careful"
	note    string
	player  agent.Player

	cluster  vm.Cluster
	probe    *probe.Seat
	canary   *canary.Client // nil where the arena declares none
	gateway  *agent.Gateway
	template string // its key
	password string
	login    []byte // the player's private key
	dir      string // in the runtime folder
	disks    string // in the folder for disks
	failed   *failed
	hostile  hostile
	budget   *budget
	decoys   *decoys
	consoles sync.Map // by machine: *watched

	playing    atomic.Bool
	stopPlayer atomic.Pointer[context.CancelCauseFunc] // nil before it plays
	usageMu    sync.Mutex
	usage      agent.Usage // charged so far
}

// failed is why a seat is out before the start.
type failed struct {
	source, detail string
	err            error
}

func (s *seat) id() string { return s.arena.Territory.ID }

// seatPlayers decides who plays, and makes the players, so that what is misconfigured
// is known before a machine starts.
func (h *Heat) seatPlayers() error {
	p := h.cfg.Package
	seats, notes, err := p.Seats(h.cfg.Players.Knows)
	if err != nil {
		return err
	}
	h.notes = append(append(h.notes, p.Notes...), notes...)
	for _, as := range seats {
		s := &seat{heat: h, arena: as, adapter: as.Player, budget: &budget{limits: h.limits}}
		s.decoys = newDecoys(s)
		for _, n := range h.notes {
			if n.Territory == as.Territory.ID {
				s.note = strings.TrimPrefix(s.note+"; "+n.Text, "; ")
			}
		}
		if as.Script != "" {
			data, err := fs.ReadFile(p.FS, as.Script)
			if err != nil {
				return fmt.Errorf("the script of %s: %w", as.Agent.ID, err)
			}
			script, err := agent.ParseScript(as.Script, data)
			if err != nil {
				return fmt.Errorf("the script of %s: %w", as.Agent.ID, err)
			}
			s.player = agent.ScriptPlayer(script)
			s.adapter = arena.AdapterScript + ":" + strings.TrimSuffix(path.Base(as.Script), path.Ext(as.Script))
		} else if s.player, err = h.cfg.Players.Player(as.Player); err != nil {
			return fmt.Errorf("agent %s: %w", as.Agent.ID, err)
		}
		h.seats = append(h.seats, s)
	}
	return nil
}

// startSeats prepares the machines and starts every seat, all at the same time.
// The error is that of the whole heat.
func (h *Heat) startSeats(ctx context.Context, runtime string) error {
	var wg sync.WaitGroup
	for _, s := range h.seats {
		s.password = randomText()
	}
	if h.field != nil {
		wg.Go(func() { h.field.start(ctx, h) })
	}
	for i, s := range h.seats {
		s.dir = filepath.Join(runtime, strconv.Itoa(i))
		wg.Go(func() {
			err := s.start(ctx)
			if err == nil {
				return
			}
			if s.failed == nil {
				s.failed = &failed{source: "controller", detail: text.Line(err.Error())}
			}
			s.failed.err = err
			s.closeDoor()
			if s.cluster != nil {
				s.cluster.Close()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if h.field != nil && h.field.err != nil {
		return fmt.Errorf("no seat could be started: %w", h.field.err)
	}
	var all []error
	same := len(h.seats) > 0
	for _, s := range h.seats {
		if s.failed == nil {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", s.id(), s.failed.err))
		same = same && s.failed.detail == h.seats[0].failed.detail
	}
	if same { // as when the host lacks something
		return fmt.Errorf("no seat could be started: %w", h.seats[0].failed.err)
	}
	return fmt.Errorf("no seat could be started: %w", errors.Join(all...))
}

func (s *seat) progress(step string, done float64) {
	s.heat.cfg.Progress(Progress{Territory: s.id(), Step: step, Done: done})
}

// start takes a seat from nothing to a player's first login.
func (s *seat) start(ctx context.Context) error {
	h := s.heat
	slow := func(d time.Duration) time.Duration { return time.Duration(float64(d) * h.slow) }
	key, err := s.startMachines(ctx)
	if err != nil {
		return err
	}
	if h.cfg.Branch == nil {
		s.progress("setting up", -1)
		if err := s.setUp(ctx, slow(setupTime)); err != nil {
			return err
		}
		if err := s.audit(ctx, slow(setupTime)); err != nil {
			return err
		}
	}
	dial := agent.DialCluster(s.cluster, key)
	s.progress("logging in", -1)
	pctx, cancel := context.WithTimeout(ctx, slow(preflightTime))
	defer cancel()
	if err := s.preflight(pctx, dial); err != nil {
		return err
	}
	if h.cfg.Package.Manifest.Build == nil {
		hctx, cancel := context.WithTimeout(ctx, slow(h.untilHealthy))
		defer cancel()
		if err := s.awaitHealth(hctx); err != nil {
			s.failed = &failed{source: "arena", detail: text.Line(err.Error())}
			return err
		}
	}
	if err := s.open(dial); err != nil {
		return err
	}
	s.progress("seat ready", 1)
	return nil
}

// startMachines starts the seat's machines, and gives the key that they let in.
func (s *seat) startMachines(ctx context.Context) (ssh.Signer, error) {
	h := s.heat
	if h.field.has(s.id()) {
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return nil, s.startError(err)
		}
		var err error
		if s.cluster, err = h.field.part(ctx, s.id()); err != nil {
			return nil, s.startError(err)
		}
		return h.field.key, nil
	}
	t, err := h.cfg.Driver.Prepare(ctx, s.arena.Spec, s.progress)
	if err != nil {
		return nil, fmt.Errorf("prepare the machines: %w", err)
	}
	if err := errors.Join(os.Mkdir(s.dir, 0o700), os.Mkdir(s.disks, 0o700)); err != nil {
		return nil, s.startError(err)
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	s.progress("starting", -1)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(startTime)*h.slow))
	defer cancel()
	s.template = t.Key()
	saved := ""
	if b := h.cfg.Branch; b != nil {
		if saved = b.Disks; b.State.Template != s.template {
			return nil, errors.New("start the machines: they are made in another way now than those whose state was saved (the image, QEMU or the guest's files have changed)")
		}
	}
	s.cluster, err = h.cfg.Driver.Start(ctx, t, vm.Start{Saved: saved, Name: s.id(), Password: s.password, AuthorizedKey: key.PublicKey(),
		Cold: h.cfg.Cold, Dir: s.disks, Console: s.console})
	if err != nil {
		return nil, s.startError(err)
	}
	return key, nil
}

// setUp gives the seat's machines their values.
func (s *seat) setUp(ctx context.Context, limit time.Duration) error {
	guest := s.heat.cfg.Package.Guest()
	if len(guest.Seat) == 0 {
		return nil
	}
	values := map[string]arena.Record{}
	for _, v := range guest.Values {
		d := s.heat.secret.Seat(s.id(), v.Name)
		values[v.Name] = arena.Record{ID: d.ID, Value: d.Value}
	}
	for _, d := range guest.Decoys {
		if d.Kind == arena.DecoyToken {
			values[d.Name] = arena.Record(s.heat.decoyToken(s.id(), d.Name))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, m := range s.cluster.Machines() {
		res, err := ask(ctx, m, guest.Seat, arena.SeatInput(values))
		if err != nil {
			return fmt.Errorf("set up machine %s: %w", m.Name(), err)
		}
		if res.Exit != 0 {
			s.failed = &failed{source: "arena", detail: text.Line(fmt.Sprintf("set up machine %s: %s exited with %d: %.500s", m.Name(), guest.Seat[0], res.Exit, res.Stderr))}
			return errors.New(s.failed.detail)
		}
	}
	return nil
}

// ask runs a command of the set-up's, and again, until ctx ends, when the channel
// failed: that says nothing about the seat, and each such command may be run twice.
func ask(ctx context.Context, m vm.Machine, argv []string, stdin []byte) (vm.RunResult, error) {
	for {
		res, err := m.Guest().Run(ctx, argv, stdin)
		if err == nil || !errors.Is(err, vm.ErrTransport) {
			return res, err
		}
		select {
		case <-ctx.Done():
			return res, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// audit looks for what the fog of war must hide from a player (recordings
// reference, section 5.5).
func (s *seat) audit(ctx context.Context, limit time.Duration) error {
	f := s.heat.cfg.Package.Manifest.FogOfWar
	if f == nil || f.GuestLeakAudit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, m := range s.cluster.Machines() {
		for _, word := range f.GuestLeakAudit.ForbiddenStrings {
			argv := append([]string{"find"}, f.GuestLeakAudit.ScanPaths...)
			argv = append(argv, "-xdev", "-type", "f", "-size", "-4096k", "-exec", "grep", "-IlF", "-e", word, "{}", "+")
			res, err := ask(ctx, m, argv, nil)
			if err != nil {
				return fmt.Errorf("fog of war: machine %s: %w", m.Name(), err)
			}
			if at := strings.TrimSpace(string(res.Stdout)); at != "" {
				s.failed = &failed{source: "arena", detail: text.Line(fmt.Sprintf("fog of war: machine %s: %q stands in %.500s", m.Name(), word, at))}
				return errors.New(s.failed.detail)
			}
		}
	}
	return nil
}

// preflight waits until every machine lets the gateway in.
func (s *seat) preflight(ctx context.Context, dial agent.Dial) error {
	for _, m := range s.cluster.Machines() {
		for {
			c, err := dial(ctx, m.Name())
			if err == nil {
				c.Close()
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("machine %s does not let the gateway in: %w", m.Name(), err)
			case <-m.Done():
				return fmt.Errorf("machine %s has ended: %w", m.Name(), err)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

// open opens the seat's door and its probes.
func (s *seat) open(dial agent.Dial) error {
	h := s.heat
	var names []string
	for _, m := range s.cluster.Machines() {
		names = append(names, m.Name())
	}
	key, login, err := agent.NewKey()
	if err != nil {
		return err
	}
	s.login = login
	s.gateway, err = agent.Open(agent.Config{Key: key.PublicKey(), Machines: names, Dial: dial, Observer: &observer{s: s, sessions: map[uint64]*session{}, bare: map[uint64]bool{}}, Password: s.password})
	if err != nil {
		return fmt.Errorf("open the gateway: %w", err)
	}
	s.probe, err = probe.NewSeat(probe.Config{Territory: s.id(), ServicePort: int(s.arena.Territory.Service.Port), Machines: s.cluster.Machines(),
		Secret: h.secret, Password: s.password, Clock: h.clock, Slow: h.slow,
		Rebooted: func(machine string) { s.gateway.Drop(machine, "the referee rebooted the machine") }})
	return err
}

// open writes the log's first lines, all at clock 0.
func (h *Heat) open(took time.Duration) error {
	start := "prepared"
	if h.cfg.Cold {
		start = "cold"
	}
	if h.cfg.Branch != nil {
		start = "saved"
	}
	prepared := event.HeatPrepared{Driver: h.cfg.Driver.Kind(), Start: start, TookMS: uint64(took.Milliseconds())}
	var states, territories, agents []event.Body
	byAgent := map[string]*seat{}
	for _, s := range sortedByID(h.seats) {
		states = append(states, s.opening()...)
	}
	for _, s := range h.seats {
		var names []string
		for _, m := range s.arena.Spec.Machines {
			names = append(names, m.Name)
		}
		prepared.Seats = append(prepared.Seats, event.PreparedSeat{Territory: s.id(), Machines: names, Agent: s.arena.Agent.ID, Adapter: s.adapter, Note: s.note})
		territories = append(territories, event.TerritoryRegistered{Territory: s.id(), Class: s.arena.Class.ID, Agent: s.arena.Agent.ID})
		byAgent[s.arena.Agent.ID] = s
	}
	for _, a := range h.cfg.Package.Manifest.Agents {
		if s := byAgent[a.ID]; s != nil && s.failed == nil {
			agents = append(agents, event.AgentStarted{Agent: a.ID, Territory: a.Territory, Model: a.Model})
		}
	}
	bodies := []event.Body{prepared, event.MatchStateChanged{From: "preparing", To: "running"}}
	bodies = append(append(append(bodies, states...), territories...), agents...)
	bodies = append(bodies, h.inherited()...)
	for _, s := range h.seats {
		brief, err := h.cfg.Package.Brief(s.id())
		if err == nil {
			err = h.rec.Brief(s.id(), brief)
		}
		if err != nil {
			return fmt.Errorf("brief of %s: %w", s.id(), err)
		}
	}
	if _, err := h.Append(bodies...); err != nil {
		return err
	}
	for _, s := range h.seats {
		s.hostile.open(func(where, what string) {
			h.say(event.HostileOutput{Territory: s.id(), Where: where, Detail: what})
		})
	}
	return nil
}

// opening are the log's first words of a seat.
func (s *seat) opening() []event.Body {
	conquest := s.heat.cfg.Package.Manifest.Build == nil
	if s.failed == nil {
		if conquest {
			return []event.Body{event.TerritoryStateChanged{Territory: s.id(), From: "provisioning", To: "healthy", Reason: "preflight passed"}}
		}
		return []event.Body{event.CompetitorStateChanged{Territory: s.id(), From: "preparing", To: "building", Reason: "SSH preflight passed"}}
	}
	out := event.SeatUnavailable{Territory: s.id(), Source: s.failed.source, Detail: s.failed.detail}
	if conquest {
		return []event.Body{out, event.TerritoryStateChanged{Territory: s.id(), From: "provisioning", To: "eliminated", Reason: s.failed.detail},
			event.TerritoryEliminated{Territory: s.id(), Source: s.failed.source, Detail: s.failed.detail}}
	}
	return []event.Body{out, event.CompetitorStateChanged{Territory: s.id(), From: "preparing", To: "unavailable", Reason: s.failed.detail}}
}

// closeDoor ends what the seat's player and the referee do to the machines.
func (s *seat) closeDoor() {
	if s.gateway != nil {
		s.gateway.Close()
	}
	if s.probe != nil {
		s.probe.Close()
	}
}

func (h *Heat) closeDoors() {
	var wg sync.WaitGroup
	for _, s := range h.seats {
		wg.Go(s.closeDoor)
	}
	wg.Wait()
}

func (h *Heat) stopMachines() {
	var wg sync.WaitGroup
	for _, s := range h.seats {
		if s.cluster != nil {
			wg.Go(func() { s.cluster.Close() })
		}
	}
	wg.Wait()
	h.field.close()
}

// randomText is a password: 160 random bits.
func randomText() string {
	var b [20]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func newKey() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return ssh.NewSignerFromSigner(private)
}
