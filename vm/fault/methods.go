package fault

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"refbox/vm"
)

// method is how one kind is done.
type method struct {
	words  Words
	byPort string // the witness when the fault names a port
	told   string // what of that only the guest tells, and root could forge
	boots  bool   // its undoing takes a boot
	inject func(context.Context, *scene) error
	undo   func(context.Context, *scene) error
	fit    sight // before; nil is well
	bitten sight
	well   sight // after
}

const (
	forgedAgent = "a replaced agent or systemd in the guest could say so of itself"
	forgedKill  = "that the process is another, or gone: a replaced agent or systemd in the guest could say so; not the connection's end"
	forgedPing  = "a replaced ping, or a packet filter, in either guest could show the same"
	forgedPort  = "altered services in the guests could answer the same"
	forgedFile  = "a replaced agent or kernel in the guest could say so of itself"
)

var methods map[Kind]method

func init() { // init breaks the cycle methods → sights → Describe → methods
	methods = map[Kind]method{
		ProcessKill: {
			words: Words{Does: "kills the main process of a service (SIGKILL)", Witness: "systemd in the guest: the main process is another, or none",
				Undo: "starts the service, unless systemd already has", Forgeable: forgedAgent},
			byPort: "the host: a connection to the service, open since before, is ended; systemd: the main process is another, or none",
			told:   forgedKill,
			fit:    serves, inject: killUnit, bitten: killed, undo: startUnit, well: serves,
		},
		ServiceStop: {
			words: Words{Does: "stops a service (systemctl stop)", Witness: "systemd in the guest: the unit is inactive, its process gone",
				Undo: "starts the service", Forgeable: forgedAgent},
			byPort: "the host: the service's port keeps no connection",
			fit:    serves, inject: stopUnit, bitten: stopped, undo: startUnit, well: serves,
		},
		PowerCut: {
			words: Words{Does: "cuts the power: what was written and not flushed is lost", Witness: "the host: the SSH port refuses; after it: another boot says hello",
				Undo: "powers it on again"},
			boots: true, fit: remember,
			inject: onMachine(vm.Machine.PowerCut),
			bitten: func(ctx context.Context, s *scene) (string, bool, error) { return refuses(ctx, s.machine, 22) },
			undo:   ifPower(vm.PowerOff, vm.Machine.PowerOnAgain),
			well:   backAgain,
		},
		HardReset: {
			words: Words{Does: "presses the reset button: nothing is synced", Witness: "the guest: another boot says hello",
				Undo: "nothing to undo: waits until it answers again", Forgeable: "the boot's id; not that QEMU saw the reset"},
			boots: true, fit: remember,
			inject: onMachine(vm.Machine.Reset),
			bitten: newBoot, undo: nothing, well: answers,
		},
		CleanReboot: {
			words: Words{Does: "has the guest reboot as by systemctl reboot", Witness: "QEMU: the machine was reset; the guest: another boot says hello",
				Undo: "nothing to undo: waits until it answers again", Forgeable: "the boot's id; not that QEMU saw the reset"},
			boots: true, fit: remember,
			inject: func(ctx context.Context, s *scene) error { return s.machine.Reboot(ctx) },
			bitten: newBoot, undo: nothing, well: answers,
		},
		Freeze: {
			words: Words{Does: "freezes the machine: no instruction runs", Witness: "the guest: its agent, which answered, is silent for 3 s",
				Undo: "thaws it and puts its clock right", Forgeable: "the silence, by killing the agent"},
			fit:    remember,
			inject: onMachine(vm.Machine.Pause),
			bitten: func(ctx context.Context, s *scene) (string, bool, error) {
				if h, err := hello(ctx, s.machine); err == nil {
					return fmt.Sprintf("its agent answers, up %.1f s", h.Uptime.Seconds()), false, nil
				} else if !errors.Is(err, vm.ErrGuestLost) || ctx.Err() != nil {
					return "", false, err
				}
				return fmt.Sprintf("its agent is silent for %v", silence), true, nil
			},
			undo: ifPower(vm.PowerPaused, vm.Machine.Resume),
			well: answers,
		},
		LinkDown: {
			words: Words{Does: "pulls the machine's cable on a private link", Witness: "the peer: its pings are not answered",
				Undo: "puts the cable back", Forgeable: forgedPing},
			inject: func(ctx context.Context, s *scene) error { return s.link.Plug(ctx, s.machine.Name(), false) },
			undo:   func(ctx context.Context, s *scene) error { return s.link.Plug(ctx, s.machine.Name(), true) },
			bitten: measured(pings(2, "0.2"), pinged.String, func(_ *scene, p pinged) bool { return p.got == 0 }),
			well:   measured(pings(2, "0.2"), pinged.String, func(_ *scene, p pinged) bool { return p.got == p.sent }),
		},
		OneWay: {
			words: Words{Does: "loses what the machine sends its peer, and nothing of what the peer sends", Witness: "both kernels' counts of received frames, while each pings the other",
				Undo: "loses nothing any more", Forgeable: forgedPing},
			inject: func(_ context.Context, s *scene) error {
				return s.link.Impair(s.machine.Name(), s.peer.Name(), vm.Impairment{Drop: true})
			},
			undo: func(_ context.Context, s *scene) error {
				return s.link.Impair(s.machine.Name(), s.peer.Name(), vm.Impairment{})
			},
			bitten: measured(bothWays, frames.String, func(_ *scene, f frames) bool { return f.there == 0 && f.back > 0 }),
			well:   measured(bothWays, frames.String, func(_ *scene, f frames) bool { return f.there > 0 && f.back > 0 }),
		},
		SlowLink: {
			words: Words{Does: "delays frames between the machine and its peer, or loses some, both ways", Witness: "the peer: how many of its pings are answered, and how fast",
				Undo: "delays and loses nothing any more", Forgeable: forgedPing},
			inject: func(_ context.Context, s *scene) error {
				return s.impairBoth(vm.Impairment{Delay: time.Duration(s.fault.DelayMS) * time.Millisecond, Loss: float64(s.fault.LossPercent) / 100})
			},
			undo:   func(_ context.Context, s *scene) error { return s.impairBoth(vm.Impairment{}) },
			bitten: measured(pings(20, "0.05"), pinged.String, (*scene).slow),
			well: measured(pings(10, "0.05"), pinged.String, func(s *scene, p pinged) bool {
				delay := time.Duration(s.fault.DelayMS) * time.Millisecond
				return p.got == p.sent && (delay == 0 || p.rtt < delay)
			}),
		},
		DiskStall: {
			words: Words{Does: "holds up all that the machine asks of its disk", Witness: "the guest: a durable write is not done within 4 s",
				Undo: "lets the disk go on", Forgeable: forgedFile},
			inject: func(ctx context.Context, s *scene) error { return s.machine.Disk().Stall(ctx, true) },
			undo:   func(ctx context.Context, s *scene) error { return s.machine.Disk().Stall(ctx, false) },
			bitten: func(ctx context.Context, s *scene) (string, bool, error) {
				err := s.writes(ctx)
				if !errors.Is(err, vm.ErrGuestLost) {
					return "a durable write is done", false, err
				}
				// The write hangs; a guest that hangs would look the same.
				if _, err := hello(ctx, s.machine); err != nil {
					return "", false, err
				}
				return fmt.Sprintf("a durable write is not done within %v, and the agent answers", stallTime), true, nil
			},
			well: writesWell,
		},
		DiskError: {
			words: Words{Does: "answers the machine's writes to its disk with an I/O error", Witness: "the guest: a durable write fails",
				Undo: "mends the disk, and resets the machine if its file system has given up", Forgeable: forgedFile},
			boots:  true,
			inject: func(ctx context.Context, s *scene) error { return s.machine.Disk().FailWrites(ctx, true) },
			undo: func(ctx context.Context, s *scene) error {
				if err := s.machine.Disk().FailWrites(ctx, false); err != nil {
					return err
				}
				if s.writes(ctx) == nil {
					return nil
				}
				return s.machine.Reset(ctx)
			},
			bitten: func(ctx context.Context, s *scene) (string, bool, error) {
				err := s.writes(ctx)
				if err == nil || errors.Is(err, vm.ErrGuestLost) || errors.Is(err, vm.ErrTransport) {
					return "a durable write is done", false, err
				}
				return err.Error(), says(err, "input/output error", "read-only file system"), nil
			},
			well: writesWell,
		},
		DiskFull: {
			words: Words{Does: "fills the machine's file system to the last block", Witness: "the guest: a write of 64 KiB fails for want of space",
				Undo: "removes what fills it", Forgeable: forgedFile},
			inject: fill,
			undo:   func(ctx context.Context, s *scene) error { return s.machine.Guest().Remove(ctx, fillFile) },
			bitten: func(ctx context.Context, s *scene) (string, bool, error) {
				err := s.writes(ctx)
				if err == nil {
					return "a write is done", false, nil
				}
				return err.Error(), says(err, "no space left"), nil
			},
			well: writesWell,
		},
		ClockJump: {
			words: Words{Does: "sets the machine's clock forward or back", Witness: "the guest: what its date says, against the host's clock",
				Undo: "sets it to the host's", Forgeable: forgedFile},
			inject: func(ctx context.Context, s *scene) error {
				return s.machine.SetClock(ctx, time.Duration(s.fault.JumpMS)*time.Millisecond)
			},
			undo: func(ctx context.Context, s *scene) error { return s.machine.SetClock(ctx, 0) },
			bitten: measured(offset, clockSaw, func(s *scene, off time.Duration) bool {
				jump := time.Duration(s.fault.JumpMS) * time.Millisecond
				return (off - jump).Abs() < jump.Abs()/4
			}),
			well: measured(offset, clockSaw, func(_ *scene, off time.Duration) bool { return off.Abs() < time.Second }),
		},
		Switchover: {
			words: Words{Does: "has the arena's procedure hand the service over from one machine to another, as planned", Witness: "the host: of the machines' ports one gives 200, and it is another's than before",
				Undo: "nothing to undo: waits until one of them serves", Forgeable: forgedPort},
			fit: leads, inject: procedure("inject"), bitten: handedOver, undo: nothing, well: led,
		},
		BadWrite: {
			words: Words{Does: "has the arena's procedure make a bad change through the front door", Witness: "the host: every copy gives the same, and not what it gave before",
				Undo: "has the arena's procedure repair it from what was kept", Forgeable: forgedPort},
			fit: agree, inject: procedure("inject"), bitten: changed, undo: procedure("clear"), well: asBefore,
		},
		ConnectionReset: {
			words: Words{Does: "has the arena's procedure end every client's connection", Witness: "the host: a connection to the service, open since before, is ended, and a new one is kept",
				Undo: "nothing to undo: waits until the port keeps a connection"},
			fit: keeps, inject: procedure("inject"), bitten: wasReset, undo: nothing, well: keepsAny,
		},
		MemoryPressure: {
			words: Words{Does: "takes memory that the machine cannot reclaim", Witness: "the guest's kernel: how much is available",
				Undo: "gives it back", Forgeable: forgedFile},
			fit: measured(available, memorySaw, func(s *scene, mib int) bool {
				s.mem = mib
				return mib > s.fault.MiB
			}),
			inject: func(ctx context.Context, s *scene) error {
				return run(ctx, s.machine, "fallocate", "-l", strconv.Itoa(s.fault.MiB<<20), hogFile)
			},
			undo:   func(ctx context.Context, s *scene) error { return s.machine.Guest().Remove(ctx, hogFile) },
			bitten: measured(available, memorySaw, func(s *scene, mib int) bool { return s.mem-mib >= s.fault.MiB*3/4 }),
			well:   measured(available, memorySaw, func(s *scene, mib int) bool { return s.mem-mib < s.fault.MiB/4 }),
		},
	}
}

func nothing(context.Context, *scene) error { return nil }

func onMachine(do func(vm.Machine, context.Context) error) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error { return do(s.machine, ctx) }
}

// ifPower does it to a machine in that state: in another one somebody already has.
func ifPower(in vm.Power, do func(vm.Machine, context.Context) error) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		p, err := s.machine.Power(ctx)
		if err != nil || p != in {
			return err
		}
		return do(s.machine, ctx)
	}
}

// measured is the sight of a figure: what it says, and whether it is what is awaited.
func measured[T any](measure func(context.Context, *scene) (T, error), say func(T) string, awaited func(*scene, T) bool) sight {
	return func(ctx context.Context, s *scene) (string, bool, error) {
		v, err := measure(ctx, s)
		if err != nil {
			return "", false, err
		}
		return say(v), awaited(s, v), nil
	}
}

// says tells whether an error has one of the texts of the C library.
func says(err error, texts ...string) bool {
	low := strings.ToLower(err.Error())
	for _, t := range texts {
		if strings.Contains(low, t) {
			return true
		}
	}
	return false
}

func writesWell(ctx context.Context, s *scene) (string, bool, error) {
	if err := s.writes(ctx); err != nil {
		return "", false, err
	}
	return "a durable write is done", true, nil
}

// backAgain is the sight of a machine that is up, in another boot if its power was
// seen to be cut.
func backAgain(ctx context.Context, s *scene) (string, bool, error) {
	if saw, ok, err := newBoot(ctx, s); s.bit && (!ok || err != nil) {
		return saw, ok, err
	}
	return answers(ctx, s)
}

// serves is the sight of a unit that runs, and, with a port, keeps a connection
// there: that is kept, to see it end.
func serves(ctx context.Context, s *scene) (string, bool, error) {
	u, err := s.machine.Guest().Unit(ctx, s.fault.Unit)
	if err != nil || u.ActiveState != "active" || u.MainPID <= 1 {
		return unitSaw(u), false, err
	}
	s.pid = u.MainPID
	if s.fault.PIDFile != "" {
		if s.pid, err = s.filePID(ctx); err != nil {
			return unitSaw(u), false, err
		}
	}
	if s.fault.Port == 0 {
		return unitSaw(u), true, nil
	}
	conn, saw, err := held(ctx, s.machine, s.fault.Port)
	if conn == nil {
		return saw, false, err
	}
	s.close()
	s.conn = conn
	return saw, true, nil
}

// unitSaw quotes: the words are the guest's.
func unitSaw(u vm.Unit) string {
	return fmt.Sprintf("unit %.20q, main process %d", u.ActiveState, u.MainPID)
}

func killUnit(ctx context.Context, s *scene) error {
	return run(ctx, s.machine, "kill", "-9", strconv.Itoa(s.pid))
}

func stopUnit(ctx context.Context, s *scene) error {
	return run(ctx, s.machine, "systemctl", "stop", s.fault.Unit)
}

func startUnit(ctx context.Context, s *scene) error {
	return run(ctx, s.machine, "systemctl", "start", s.fault.Unit)
}

func killed(ctx context.Context, s *scene) (string, bool, error) {
	if s.conn != nil && !ended(s.conn, time.Second) {
		return "the connection stays", false, nil
	}
	if s.fault.PIDFile != "" {
		gone, err := s.gone(ctx)
		saw := fmt.Sprintf("process %d is there", s.pid)
		if gone {
			saw = fmt.Sprintf("process %d is gone", s.pid)
		}
		if s.conn != nil {
			saw = "the connection is ended; " + saw
		}
		return saw, gone, err
	}
	u, err := s.machine.Guest().Unit(ctx, s.fault.Unit)
	saw := unitSaw(u)
	if s.conn != nil {
		// Alone it could be a service that ends idle connections.
		saw = "the connection is ended; " + saw
	}
	return saw, u.MainPID != s.pid, err
}

func stopped(ctx context.Context, s *scene) (string, bool, error) {
	if s.fault.Port != 0 {
		return refuses(ctx, s.machine, s.fault.Port)
	}
	u, err := s.machine.Guest().Unit(ctx, s.fault.Unit)
	return unitSaw(u), u.ActiveState == "inactive" && u.MainPID == 0, err
}

func (s *scene) impairBoth(i vm.Impairment) error {
	return errors.Join(s.link.Impair(s.machine.Name(), s.peer.Name(), i), s.link.Impair(s.peer.Name(), s.machine.Name(), i))
}

// slow tells whether pings fared as the fault wants it: both directions count.
func (s *scene) slow(p pinged) bool {
	keep := 1 - float64(s.fault.LossPercent)/100
	lost := float64(p.sent-p.got) / float64(max(p.sent, 1))
	if s.fault.LossPercent > 0 && lost < (1-keep*keep)/3 {
		return false
	}
	return s.fault.DelayMS == 0 || p.got > 0 && p.rtt >= time.Duration(s.fault.DelayMS)*2*time.Millisecond*9/10
}

// frames are how many each kernel received: of what the machine sends its peer, and
// of what comes back the other way.
type frames struct{ there, back int }

func (f frames) String() string {
	return fmt.Sprintf("frames received: %d by the peer, %d by the machine", f.there, f.back)
}

// bothWays counts while each machine pings the other.
func bothWays(ctx context.Context, s *scene) (f frames, err error) {
	count := func(from, to vm.Machine) (int, error) {
		before, err := s.received(ctx, to)
		if err != nil {
			return 0, err
		}
		if _, err := s.ping(ctx, from, to, 2, "0.2"); err != nil {
			return 0, err
		}
		after, err := s.received(ctx, to)
		return after - before, err
	}
	if f.there, err = count(s.machine, s.peer); err != nil {
		return f, err
	}
	f.back, err = count(s.peer, s.machine)
	return f, err
}

// fill takes all space there is: large pieces while they fit, then smaller ones.
func fill(ctx context.Context, s *scene) error {
	off := 0
	for size := 1 << 30; size >= 4<<10; {
		r, err := s.machine.Guest().Run(ctx, []string{"fallocate", "-o", strconv.Itoa(off), "-l", strconv.Itoa(size), fillFile}, nil)
		switch {
		case err != nil:
			return err
		case r.Exit == 0:
			off += size
		default:
			size /= 2
		}
		if off > 1<<40 {
			return fmt.Errorf("%d bytes fit, and there is more room", off)
		}
	}
	return nil
}

// offset is the guest's clock less the host's, as date tells it, within half the
// time that date takes.
func offset(ctx context.Context, s *scene) (time.Duration, error) {
	sent := time.Now()
	r, err := s.machine.Guest().Run(ctx, []string{"date", "+%s.%N"}, nil)
	if err != nil {
		return 0, err
	}
	sec, frac, _ := strings.Cut(strings.TrimSpace(string(r.Stdout)), ".")
	unix, err1 := strconv.ParseInt(sec, 10, 64)
	ns, err2 := strconv.ParseInt(frac, 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("date says %q", firstLine(r.Stdout))
	}
	return time.Unix(unix, ns).Sub(sent.Add(time.Since(sent) / 2)), nil
}

func clockSaw(off time.Duration) string {
	return fmt.Sprintf("its clock is %+.3f s off", off.Seconds())
}

func memorySaw(mib int) string { return fmt.Sprintf("%d MiB available", mib) }
