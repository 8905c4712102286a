package probe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"refbox/engine/internal/pause"
	"refbox/vm"
)

const (
	maxSource   = 64 << 10
	maxSteps    = 500_000 // some tenths of a second of pure computing
	loadTimeout = 5 * time.Second
	maxAttacks  = 16
)

// program is a verifier written in Starlark. Its globals are frozen, so that one
// program serves all seats.
type program struct {
	name    string
	sha     string
	verify  starlark.Callable
	before  starlark.Callable
	holds   starlark.Callable
	boot    *attack
	attacks []*attack
}

// attack is what attack(words, run, undo) and boot_attack give.
type attack struct {
	words     string
	run, undo starlark.Callable
	boot      bool     // made by boot_attack
	wants     []string // of a boot
	ports     []int
	cut       bool
}

func (a *attack) String() string        { return "attack(" + syntax.Quote(a.words, false) + ")" }
func (a *attack) Type() string          { return "attack" }
func (a *attack) Freeze()               { a.run.Freeze(); a.undo.Freeze() }
func (a *attack) Truth() starlark.Bool  { return true }
func (a *attack) Hash() (uint32, error) { return 0, errors.New("an attack is not hashable") }

// loadStarlark compiles a verifier and looks for its functions. Errors name file
// and line.
func loadStarlark(name string, src []byte) (Verifier, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("%s: larger than %d KiB", name, maxSource>>10)
	}
	sum := sha256.Sum256(src)
	p := &program{name: name, sha: hex.EncodeToString(sum[:])}
	globals := predeclared()
	file, err := (&syntax.FileOptions{}).Parse(name, src, 0)
	if err == nil {
		err = rewrite(file)
	}
	if err != nil {
		return nil, fmt.Errorf("verifier does not compile: %w", err)
	}
	prog, err := starlark.FileProgram(file, globals.Has)
	if err != nil {
		return nil, fmt.Errorf("verifier does not compile: %w", err)
	}
	if prog.NumLoads() > 0 {
		_, pos := prog.Load(0)
		return nil, fmt.Errorf("%s: a verifier is one file; load is not available", pos)
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	thread, stop := newThread(ctx, name)
	defer stop()
	defs, err := prog.Init(thread, globals)
	if err != nil {
		return nil, fmt.Errorf("verifier does not load: %s", trace(err))
	}
	defs.Freeze()
	if p.verify, err = function(defs, "verify"); err == nil && p.verify == nil {
		err = errors.New("defines no verify(seat)")
	}
	if err == nil {
		p.before, err = function(defs, "before")
	}
	if err == nil {
		p.holds, err = function(defs, "holds")
	}
	if v, ok := defs["boot"]; ok && err == nil {
		if p.boot, ok = v.(*attack); !ok || !p.boot.boot {
			err = fmt.Errorf("boot is a %s, not boot_attack(words, wants, run, undo)", v.Type())
		}
	}
	if err == nil {
		p.attacks, err = attacksOf(defs["attacks"])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func function(defs starlark.StringDict, name string) (starlark.Callable, error) {
	v, ok := defs[name]
	if !ok {
		return nil, nil
	}
	f, ok := v.(*starlark.Function)
	if !ok || f.NumParams() != 1 {
		return nil, fmt.Errorf("%s must be a function of one parameter, the seat", name)
	}
	return f, nil
}

func attacksOf(v starlark.Value) ([]*attack, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.(*starlark.List)
	if !ok || list.Len() > maxAttacks {
		return nil, fmt.Errorf("attacks must be a list of at most %d", maxAttacks)
	}
	var out []*attack
	for i := range list.Len() {
		a, ok := list.Index(i).(*attack)
		if !ok || a.boot {
			return nil, fmt.Errorf("attacks[%d] is a %s, not attack(words, run, undo)", i, list.Index(i).Type())
		}
		out = append(out, a)
	}
	return out, nil
}

// newThread makes a thread that stops with ctx and after too many steps. Stop
// waits for nothing and must be called.
func newThread(ctx context.Context, name string) (t *starlark.Thread, stop func()) {
	t = &starlark.Thread{Name: name, Print: func(*starlark.Thread, string) {}}
	t.SetMaxExecutionSteps(maxSteps)
	left := maxMemory
	t.SetLocal(localBudget, &left)
	done := context.AfterFunc(ctx, func() { t.Cancel("out of time") })
	return t, func() { done() }
}

func (p *program) SHA256() string { return p.sha }

func (p *program) Attacks() []string {
	words := make([]string, len(p.attacks))
	for i, a := range p.attacks {
		words[i] = a.words
	}
	return words
}

func (p *program) Boot() *Boot {
	if p.boot == nil {
		return nil
	}
	call := func(f starlark.Callable) func(context.Context, *Attempt) error {
		return func(ctx context.Context, a *Attempt) error {
			_, err := p.run(ctx, a, f)
			return err
		}
	}
	return &Boot{Words: p.boot.words, Wants: p.boot.wants, Ports: p.boot.ports, Cut: p.boot.cut, Run: call(p.boot.run), Undo: call(p.boot.undo)}
}

func (p *program) Before(ctx context.Context, a *Attempt) error {
	if p.before == nil {
		return nil
	}
	_, err := p.run(ctx, a, p.before)
	return err
}

func (p *program) Holds(ctx context.Context, a *Attempt) error {
	if p.holds == nil {
		return nil
	}
	v, err := p.run(ctx, a, p.holds)
	if err == nil && v == starlark.False {
		a.refuse("it does not hold")
		return failure(Contract, "it does not hold")
	}
	return err
}

func (p *program) Attack(ctx context.Context, a *Attempt, i int) error {
	a.disrupted = true
	_, err := p.run(ctx, a, p.attacks[i].run)
	return err
}

func (p *program) Undo(ctx context.Context, a *Attempt, i int) error {
	_, err := p.run(ctx, a, p.attacks[i].undo)
	return err
}

func (p *program) Verify(ctx context.Context, a *Attempt) (json.RawMessage, error) {
	v, err := p.run(ctx, a, p.verify)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, failure(Broken, "%s: verify returned a %s, not the evidence, a dict", p.name, v.Type())
	}
	b, err := toJSON(d)
	if err != nil {
		return nil, failure(Broken, "%s: evidence: %v", p.name, err)
	}
	return b, nil
}

// run calls one of the file's functions with the seat. Its error is a Failure,
// or wraps ErrGone, or is ctx's.
func (p *program) run(ctx context.Context, a *Attempt, f starlark.Callable) (v starlark.Value, err error) {
	thread, stop := newThread(ctx, p.name)
	defer stop()
	thread.SetLocal(localRun, &running{ctx: ctx, a: a})
	v, err = starlark.Call(thread, f, starlark.Tuple{seatValue(a)}, nil)
	if err == nil {
		return v, nil
	}
	var fail *Failure
	switch {
	case errors.As(err, &fail):
		return nil, fail
	case errors.Is(err, ErrGone), unknown(err):
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, failure(Broken, "%s", trace(err))
}

// trace is an error with the place in the file where it came from.
func trace(err error) string {
	var e *starlark.EvalError
	if !errors.As(err, &e) {
		return err.Error()
	}
	for i := range e.CallStack {
		if pos := e.CallStack.At(i).Pos; pos.Line > 0 && !strings.HasPrefix(pos.Filename(), "<") {
			return fmt.Sprintf("%s: %s", pos, e.Msg)
		}
	}
	return e.Msg
}

// localRun is the thread-local under which a call finds its attempt.
const localRun = "run"

type running struct {
	ctx context.Context
	a   *Attempt
}

func runOf(t *starlark.Thread) (*running, error) {
	if r, ok := t.Local(localRun).(*running); ok {
		return r, nil
	}
	return nil, errors.New("not available while the file is loaded")
}

func predeclared() starlark.StringDict {
	globals := starlark.StringDict{
		"require":     starlark.NewBuiltin("require", require),
		"fail":        starlark.NewBuiltin("fail", fail),
		"eventually":  starlark.NewBuiltin("eventually", eventually),
		"attack":      starlark.NewBuiltin("attack", newAttack),
		"boot_attack": starlark.NewBuiltin("boot_attack", newBootAttack),
		"struct":      starlark.NewBuiltin("struct", starlarkstruct.Make),
		"json":        starjson.Module,
	}
	maps.Copy(globals, guards())
	return globals
}

func require(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	var cond starlark.Value
	var reason string
	var final bool
	if err := starlark.UnpackArgs(b.Name(), args, kw, "cond", &cond, "reason", &reason, "final?", &final); err != nil {
		return nil, err
	}
	if cond.Truth() {
		return starlark.None, nil
	}
	return nil, refuse(t, reason, final)
}

func fail(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	var reason string
	var final bool
	if err := starlark.UnpackArgs(b.Name(), args, kw, "reason", &reason, "final?", &final); err != nil {
		return nil, err
	}
	return nil, refuse(t, reason, final)
}

func refuse(t *starlark.Thread, reason string, final bool) error {
	f := failure(Contract, "%s", reason)
	f.Final = final
	if r, err := runOf(t); err == nil {
		r.a.refuse(f.Reason)
	}
	return f
}

func eventually(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	var fn starlark.Callable
	timeout, every := seconds(5*time.Second), seconds(100*time.Millisecond)
	if err := starlark.UnpackArgs(b.Name(), args, kw, "fn", &fn, "timeout?", &timeout, "every?", &every); err != nil {
		return nil, err
	}
	r, err := runOf(t)
	if err != nil {
		return nil, err
	}
	limit := r.a.Seat.slow(time.Duration(timeout))
	try := func() (starlark.Value, error) {
		v, err := starlark.Call(t, fn, nil, nil)
		if err == nil && v == starlark.False {
			err = refuse(t, "not so within "+time.Duration(timeout).String(), false)
		}
		return v, err
	}
	if p := r.a.Seat.replay; p != nil {
		var v starlark.Value
		err := p.eventually(limit, time.Duration(every), func() (err error) {
			v, err = try()
			return err
		})
		if err != nil {
			return nil, err
		}
		return v, nil
	}
	deadline := time.Now().Add(limit)
	for {
		v, err := try()
		if err == nil {
			return v, nil
		}
		var f *Failure
		// What a verifier did wrong, a machine that is gone and what is lost for
		// good do not mend with time.
		if !errors.As(err, &f) || f.Category == Broken || f.Final || !time.Now().Before(deadline) {
			return nil, err
		}
		if !pause.For(r.ctx, max(time.Duration(every), 10*time.Millisecond)) {
			return nil, r.ctx.Err()
		}
	}
}

func newAttack(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	a := new(attack)
	if err := starlark.UnpackArgs(b.Name(), args, kw, "words", &a.words, "run", &a.run, "undo", &a.undo); err != nil {
		return nil, err
	}
	if a.words = bounded(a.words, 200); a.words == "" {
		return nil, errors.New("attack: words are empty")
	}
	return a, nil
}

func newBootAttack(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
	a := &attack{boot: true}
	var wants, ports *starlark.List
	if err := starlark.UnpackArgs(b.Name(), args, kw, "words", &a.words, "wants", &wants, "run", &a.run, "undo", &a.undo, "ports??", &ports, "cut?", &a.cut); err != nil {
		return nil, err
	}
	if a.words = bounded(a.words, 200); a.words == "" {
		return nil, errors.New("boot_attack: words are empty")
	}
	for i := range wants.Len() {
		unit, _ := starlark.AsString(wants.Index(i))
		a.wants = append(a.wants, unit)
	}
	if err := vm.CheckWants(a.wants); err != nil {
		return nil, fmt.Errorf("boot_attack: wants: %w", err)
	}
	if a.cut && len(a.wants) > 0 {
		return nil, errors.New("boot_attack: wants: a boot after a power cut wants no units")
	}
	if !a.cut && len(a.wants) == 0 {
		return nil, errors.New("boot_attack: wants: name 1 to 8 units")
	}
	if ports != nil {
		for i := range min(ports.Len(), maxRequests) {
			port, err := starlark.AsInt32(ports.Index(i))
			if err != nil || port < 1 || port > 65535 {
				return nil, fmt.Errorf("boot_attack: ports: %s is none", ports.Index(i))
			}
			a.ports = append(a.ports, port)
		}
	}
	return a, nil
}

// seconds unpacks an int or a float of seconds.
type seconds time.Duration

func (s *seconds) Unpack(v starlark.Value) error {
	f, ok := starlark.AsFloat(v)
	if !ok || !(f >= 0 && f <= 3600) {
		return fmt.Errorf("want seconds from 0 to 3600, got %s", v.Type())
	}
	*s = seconds(f * float64(time.Second))
	return nil
}
