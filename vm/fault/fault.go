// Package fault hurts machines on purpose, and proves that it did.
//
// It hides how each kind of fault is injected, what is looked at to see whether
// it bit, and how it is undone. What it guarantees:
//
//   - A fault counts only once a witness has seen its effect: something other
//     than what injected it. The witness is asked before, too: a target that
//     already looks hurt, or cannot be seen well, is refused (ErrUnfit) and left
//     alone.
//   - One that did not bite is an error (ErrNoEffect), and what it may have left
//     is undone.
//   - One that was cleared has been seen to be gone; a failed clean-up is an
//     outcome of its own (ErrNotCleared), never silence.
//   - Each step leaves a Receipt, which says what root in the guest could forge
//     of it.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"refbox/vm"
)

// Kind is a kind of fault.
type Kind string

// The kinds.
const (
	ProcessKill    Kind = "process-kill"
	ServiceStop    Kind = "service-stop"
	PowerCut       Kind = "power-cut"
	HardReset      Kind = "hard-reset"
	CleanReboot    Kind = "clean-reboot"
	Freeze         Kind = "freeze"
	LinkDown       Kind = "link-down"
	OneWay         Kind = "one-way-partition"
	SlowLink       Kind = "slow-link"
	DiskStall      Kind = "disk-stall"
	DiskError      Kind = "disk-write-error"
	DiskFull       Kind = "disk-full"
	ClockJump      Kind = "clock-jump"
	MemoryPressure Kind = "memory-pressure"

	// These run a procedure that an arena declares: what they do is the arena's own.
	Switchover      Kind = "switchover"
	BadWrite        Kind = "bad-write"
	ConnectionReset Kind = "connection-reset"
)

// Procedures are the kinds that run a procedure in a guest. Only an arena's schedule
// has them.
func Procedures() []Kind { return []Kind{Switchover, BadWrite, ConnectionReset} }

// Kinds are all kinds that any machine can have, in the order in which they are
// offered.
func Kinds() []Kind {
	return []Kind{ProcessKill, ServiceStop, PowerCut, HardReset, CleanReboot, Freeze, LinkDown, OneWay, SlowLink,
		DiskStall, DiskError, DiskFull, ClockJump, MemoryPressure}
}

// Fault is one fault, before it is injected.
type Fault struct {
	Kind    Kind   `json:"kind"`
	Machine string `json:"machine"` // the target

	// Unit is the service of ProcessKill and ServiceStop.
	Unit string `json:"unit,omitempty"`
	// Port is a forwarded port on which the unit, and nothing else, listens: it
	// makes the host the witness. Without one systemd in the guest is.
	Port int `json:"port,omitempty"`

	// Link and Peer, another end of it, are those of the faults of a link. OneWay
	// loses what Machine sends Peer, SlowLink hurts both directions.
	Link string `json:"link,omitempty"`
	Peer string `json:"peer,omitempty"`
	// DelayMS and LossPercent are SlowLink's, for each direction.
	DelayMS     int `json:"delay_ms,omitempty"`
	LossPercent int `json:"loss_percent,omitempty"`

	JumpMS int64 `json:"jump_ms,omitempty"` // ClockJump's, forward or back
	MiB    int   `json:"mib,omitempty"`     // MemoryPressure's: how much is taken

	// PIDFile names the process that ProcessKill kills, by its first line, where it is
	// another than the unit's main process.
	PIDFile string `json:"pid_file,omitempty"`
	// Procedure is a program in the guest, of the kinds of Procedures. It is run with
	// "inject", and to undo what lasts with "clear", and must end by itself.
	Procedure string `json:"procedure,omitempty"`
	// Path is asked for on Port of each machine that forwards that: how Switchover and
	// BadWrite are seen from the host.
	Path string `json:"path,omitempty"`
}

// Lasts says that a fault of the kind is there until it is undone. One that is not
// has happened, and all there is to do is to see the machine well again.
func (k Kind) Lasts() bool {
	return k != ProcessKill && k != HardReset && k != CleanReboot && k != Switchover && k != ConnectionReset
}

// Boots says that a machine's boot ends by it, and with that what is connected there.
func (k Kind) Boots() bool { return k == PowerCut || k == HardReset || k == CleanReboot }

// Undoes says that a fault of the kind, as it comes or as it goes, ends one of the other
// kind that is on the same machine: a boot ends what is in memory only, and starts what
// was stopped; a boot and a thaw put the clock right.
func (k Kind) Undoes(other Kind) bool {
	switch other {
	case ClockJump:
		return k == Freeze || k == DiskError || k.Boots()
	case ServiceStop, MemoryPressure:
		return k == DiskError || k.Boots()
	}
	return false
}

// Param is the error of one parameter of a fault: that it is missing, out of bounds,
// or none of its kind's.
type Param struct {
	Kind Kind
	Name string // as in JSON
	Want string // "" when the kind has none
}

func (e *Param) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("fault %s has no %s", e.Kind, e.Name)
	}
	return fmt.Sprintf("fault %s: %s: want %s", e.Kind, e.Name, e.Want)
}

// ParamsOf are the parameters that a kind has beside its machine, in their order.
// Optional ones, all but one of them at most, are apart.
func ParamsOf(k Kind) (must, may []string) {
	for _, p := range (Fault{Kind: k}).params() {
		if slices.Contains(p.kinds, k) {
			if p.optional {
				may = append(may, p.name)
			} else {
				must = append(must, p.name)
			}
		}
	}
	return must, may
}

type param struct {
	name     string
	set, fit bool
	kinds    []Kind
	optional bool
	want     string
}

var pathForm = regexp.MustCompile(`^/[A-Za-z0-9@:_./-]{1,200}$`)

func (f Fault) params() []param {
	return []param{
		{"unit", f.Unit != "", vm.CheckWants([]string{f.Unit}) == nil, []Kind{ProcessKill, ServiceStop}, false, "the name of a unit, such as db.service"},
		{"pid_file", f.PIDFile != "", pathForm.MatchString(f.PIDFile), []Kind{ProcessKill}, true, "the absolute path of a file in the guest"},
		{"procedure", f.Procedure != "", pathForm.MatchString(f.Procedure), Procedures(), false, "the absolute path of a program in the guest"},
		{"port", f.Port != 0, f.Port > 0 && f.Port < 65536, append([]Kind{ProcessKill, ServiceStop}, Procedures()...), !slices.Contains(Procedures(), f.Kind), "1 to 65535"},
		{"path", f.Path != "", pathForm.MatchString(f.Path), []Kind{Switchover, BadWrite}, false, "a path such as /state"},
		{"link", f.Link != "", true, []Kind{LinkDown, OneWay, SlowLink}, false, "a link of the cluster"},
		{"peer", f.Peer != "", f.Peer != f.Machine, []Kind{LinkDown, OneWay, SlowLink}, false, "another machine on the link"},
		{"delay_ms", f.DelayMS != 0, f.DelayMS >= 50 && f.DelayMS <= 2000, []Kind{SlowLink}, true, "50 to 2000"},
		{"loss_percent", f.LossPercent != 0, f.LossPercent >= 10 && f.LossPercent <= 90, []Kind{SlowLink}, true, "10 to 90"},
		{"jump_ms", f.JumpMS != 0, max(f.JumpMS, -f.JumpMS) >= 5_000 && max(f.JumpMS, -f.JumpMS) <= 400*24*3_600_000, []Kind{ClockJump}, false, "5000 or more, forward or back, and at most 400 days"},
		{"mib", f.MiB != 0, f.MiB >= 16 && f.MiB <= 32<<10, []Kind{MemoryPressure}, false, "16 to 32768"},
	}
}

// Check refuses a fault that lacks a parameter or has one out of bounds or of
// another kind: the error is then a *Param.
func (f Fault) Check() error {
	if _, ok := methods[f.Kind]; !ok {
		return fmt.Errorf("fault %.40q: want one of %v", string(f.Kind), append(Kinds(), Procedures()...))
	}
	if f.Machine == "" {
		return fmt.Errorf("fault %s: it names no machine", f.Kind)
	}
	for _, p := range f.params() {
		switch mine := slices.Contains(p.kinds, f.Kind); {
		case p.set && !mine:
			return &Param{Kind: f.Kind, Name: p.name}
		case p.set && !p.fit, mine && !p.set && !p.optional:
			return &Param{f.Kind, p.name, p.want}
		}
	}
	if f.Kind == SlowLink && f.DelayMS == 0 && f.LossPercent == 0 {
		return &Param{f.Kind, "delay_ms", "50 to 2000: delay_ms, loss_percent or both"}
	}
	return nil
}

// Target is what is hurt, in words: the machine, and what of it.
func (f Fault) Target() string {
	switch {
	case f.PIDFile != "":
		return f.Machine + "/" + path.Base(f.PIDFile)
	case f.Unit != "":
		return f.Machine + "/" + f.Unit
	case f.Procedure != "":
		return f.Machine + "/" + path.Base(f.Procedure)
	case f.Kind == OneWay:
		return f.Machine + "→" + f.Peer
	case f.Link != "":
		return f.Machine + "/" + f.Link
	}
	return f.Machine
}

// Params are the parameters beside kind and machine, as one JSON object.
func (f Fault) Params() json.RawMessage {
	var all map[string]any
	b, _ := json.Marshal(f) // plain data always encodes
	_ = json.Unmarshal(b, &all)
	delete(all, "kind")
	delete(all, "machine")
	b, _ = json.Marshal(all)
	return b
}

// Words say of a kind, before it is injected, what it does and what will be
// proved.
type Words struct {
	Does      string
	Witness   string // who confirms it, and by what
	Undo      string
	Forgeable string // what root in the guest could forge of the witness; "" nothing
}

// Describe returns a kind's words; none for what is no kind.
func (f Fault) Describe() Words {
	m, ok := methods[f.Kind]
	if !ok {
		return Words{}
	}
	w := m.words
	if f.Port != 0 && m.byPort != "" {
		w.Witness, w.Forgeable = m.byPort, m.told
	}
	if f.PIDFile != "" {
		w.Does = "kills the process of its unit that a file names (SIGKILL)"
		w.Witness = "the guest: /proc has the process no more"
		if f.Port != 0 {
			w.Witness = "the host: a connection to the service, open since before, is ended; " + w.Witness
		}
	}
	return w
}

// Receipt is the proof of one step.
type Receipt struct {
	Step      string `json:"step"` // "inject" or "clear"
	Confirmed bool   `json:"confirmed"`
	Witness   string `json:"witness"`              // who was asked
	Saw       string `json:"saw"`                  // what it said last
	Before    string `json:"before,omitempty"`     // what it said before the step
	Forgeable string `json:"forgeable,omitempty"`  // by root in the guest
	TookMS    int64  `json:"took_ms"`              // from the step to the sight
	LostBytes *int64 `json:"lost_bytes,omitempty"` // PowerCut: written by the guest, not flushed, and gone
}

// Errors that callers tell apart with errors.Is.
var (
	// ErrUnfit: the target is not in a state in which the fault could be seen to
	// bite. Nothing was done.
	ErrUnfit = errors.New("the target is not fit for the fault")
	// ErrNoEffect: the fault was injected and its witness saw nothing of it.
	ErrNoEffect = errors.New("the fault did not bite")
	// ErrNotCleared: the fault, or a part of it, may still be there.
	ErrNotCleared = errors.New("the fault could not be cleared")
)

// Error is a step that failed. It wraps the cause.
type Error struct {
	Fault   Fault
	Stage   string // inject, confirm, clear: as in the event fault_failed
	Receipt Receipt
	Err     error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("fault %s on %s: %s: %v", e.Fault.Kind, e.Fault.Target(), e.Stage, e.Err)
	if e.Receipt.Saw != "" {
		s += fmt.Sprintf("; %s saw %q", e.Receipt.Witness, e.Receipt.Saw)
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Patience is how long a witness may take to see a step, beside the caller's
// context. A new boot has the whole of that context.
const Patience = 10 * time.Second

// Active is a fault that was injected and confirmed.
type Active struct {
	Fault   Fault
	Receipt Receipt
	scene   *scene
	cleared bool
}

// Inject injects a fault into a machine of the cluster and returns when its
// witness has seen it. The error is an *Error. Nothing of the fault is left, unless
// it Is ErrNotCleared: then the fault comes beside it, not confirmed, for its Clear
// to be tried again.
func Inject(ctx context.Context, c vm.Cluster, f Fault) (*Active, error) {
	fail := func(stage string, r Receipt, err error) (*Active, error) {
		return nil, &Error{Fault: f, Stage: stage, Receipt: r, Err: err}
	}
	if err := f.Check(); err != nil {
		return fail("inject", Receipt{}, errors.Join(ErrUnfit, err))
	}
	m := methods[f.Kind]
	s, err := newScene(c, f)
	if err != nil {
		return fail("inject", Receipt{}, errors.Join(ErrUnfit, err))
	}
	r := s.receipt("inject")
	well := m.well
	if m.fit != nil {
		well = m.fit
	}
	if r.Before, err = s.await(ctx, 3*Patience, well); err != nil { // nothing is at stake yet
		r.Saw = r.Before
		s.close()
		return fail("inject", r, errors.Join(ErrUnfit, err))
	}
	start := time.Now()
	err = m.inject(ctx, s)
	if err != nil {
		err = fmt.Errorf("injecting it: %w", err)
	} else {
		r.Saw, err = s.await(ctx, Patience, m.bitten)
		if err != nil {
			err = errors.Join(ErrNoEffect, err)
		}
	}
	r.TookMS = time.Since(start).Milliseconds()
	if err != nil {
		stage := "inject"
		if errors.Is(err, ErrNoEffect) {
			stage = "confirm"
		}
		// Whatever the caller's context says: what is half there must not stay.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		if _, undo := s.clear(ctx, m); undo != nil {
			_, err := fail(stage, r, errors.Join(err, undo))
			return &Active{Fault: f, Receipt: r, scene: s}, err
		}
		return fail(stage, r, err)
	}
	r.Confirmed, s.bit = true, true
	if f.Kind == PowerCut {
		lost := s.machine.Disk().Lost()
		r.LostBytes = &lost
	}
	return &Active{Fault: f, Receipt: r, scene: s}, nil
}

// undoTime bounds the undoing of what did not bite: a boot under load.
const undoTime = 2 * time.Minute

// Clear undoes the fault and returns when its witness has seen that it is gone. The
// error is an *Error that Is ErrNotCleared; Clear may then be tried again. One that
// was cleared is not cleared twice: the second call returns an error.
func (a *Active) Clear(ctx context.Context) (Receipt, error) {
	if a.cleared {
		return Receipt{}, &Error{Fault: a.Fault, Stage: "clear", Err: errors.New("it was cleared already")}
	}
	r, err := a.scene.clear(ctx, methods[a.Fault.Kind])
	if err != nil {
		return r, &Error{Fault: a.Fault, Stage: "clear", Receipt: r, Err: err}
	}
	a.cleared = true
	return r, nil
}

func (s *scene) receipt(step string) Receipt {
	w := s.fault.Describe()
	return Receipt{Step: step, Witness: w.Witness, Forgeable: w.Forgeable}
}

func (s *scene) clear(ctx context.Context, m method) (Receipt, error) {
	r := s.receipt("clear")
	start := time.Now()
	err := m.undo(ctx, s)
	if err == nil {
		within := 3 * Patience                // a service starts in ten times its time on a busy host
		if m.boots || s.fault.PIDFile != "" { // a supervisor's recovery is its own
			within = undoTime
		}
		r.Saw, err = s.await(ctx, within, m.well)
	}
	r.TookMS = time.Since(start).Milliseconds()
	if err != nil {
		return r, errors.Join(ErrNotCleared, err)
	}
	s.close()
	r.Confirmed = true
	return r, nil
}

// sight is one look of a witness: what it says, and whether it is what is awaited.
type sight func(ctx context.Context, s *scene) (saw string, ok bool, err error)

// await looks until the sight is what is awaited. An error of the last look is
// told with it; before, it may be the fault's own.
func (s *scene) await(ctx context.Context, within time.Duration, look sight) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	// A guest's state announces itself to nobody outside: so look now and then.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last string
	var lastErr error
	for {
		saw, ok, err := look(ctx, s)
		// A look that was cut short has seen nothing: silence and refusal are what
		// some wait for.
		if ctx.Err() == nil {
			if ok && err == nil {
				return saw, nil
			}
			last, lastErr = saw, err
		} else if last == "" {
			lastErr = err
		}
		select {
		case <-tick.C:
		case <-s.machine.Done():
			return last, errors.New("the machine has ended")
		case <-ctx.Done():
			if lastErr != nil {
				return last, fmt.Errorf("not seen within %v: %w", within, lastErr)
			}
			return last, fmt.Errorf("not seen within %v", within)
		}
	}
}

// firstLine bounds what a guest said.
func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line[:min(len(line), 200)]
}
