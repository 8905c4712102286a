package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"refbox/engine/text"
	"refbox/vm"
)

// Insufficient says why records do not suffice to answer a verifier.
type Insufficient struct {
	Reason string
	Spent  bool // what it asked was recorded, but not so often
	// Partly: an answer was recorded, but only its first KiB, or not as it was.
	Partly bool
}

func (e *Insufficient) Error() string { return e.Reason }

// ErrCutOff says that the recorded attempt was cut off here.
var ErrCutOff = errors.New("the attempt was cut off here")

// Replay answers the probes of an attempt from the records of one, so that its
// verifier, or a newer one, can be run over them without a machine.
//
// A question is answered by the oldest record of the same call with the same
// request that has not been used. What was recorded before something changed the
// seat (a restart, a write, a reboot) is no answer after it, nor the reverse. A
// question without an answer ends the run with Insufficient, and so does an answer
// that was cut when it was recorded.
type Replay struct {
	seat    *Seat
	records map[string][]Record // by key, unused ones
	left    int                 // unused ones
	epoch   int                 // changes so far
	clock   uint64              // end of the latest answer
	gaveUp  bool
}

// ReplayConfig is what a seat was.
type ReplayConfig struct {
	Territory   string
	ServicePort int
	Machines    []string
	Secret      Secret
	Slow        float64
	Records     []Record
	// GaveUp: the attempt did not pass, so the last of its questions had come to
	// nothing.
	GaveUp bool
}

// NewReplay makes a seat whose probes are answered from records.
func NewReplay(c ReplayConfig) *Replay {
	p := &Replay{records: map[string][]Record{}, left: len(c.Records), gaveUp: c.GaveUp}
	epoch := 0
	for _, r := range c.Records {
		k := key(epoch, r)
		p.records[k] = append(p.records[k], r)
		if changes(r) {
			epoch++
		}
	}
	if len(c.Records) > 0 {
		p.clock = c.Records[0].AtMS
	}
	if len(c.Machines) == 0 {
		c.Machines = []string{"host"}
	}
	p.seat = &Seat{replay: p, c: Config{Territory: c.Territory, ServicePort: c.ServicePort, Secret: c.Secret, Slow: max(1, c.Slow),
		Clock: func() uint64 { return p.clock }}}
	for _, name := range c.Machines {
		p.seat.c.Machines = append(p.seat.c.Machines, replayed{name: name, p: p})
		p.seat.consoles = append(p.seat.consoles, &tail{})
	}
	return p
}

// Attempt begins an attempt that is answered from the records.
func (p *Replay) Attempt(milestone string, number uint64, previous map[string]json.RawMessage) *Attempt {
	return p.seat.Attempt(milestone, number, previous)
}

// Left is how many records nobody asked for.
func (p *Replay) Left() int { return p.left }

// key is what a record answers, and when.
func key(epoch int, r Record) string {
	request, err := json.Marshal(r.Request)
	if err != nil || len(r.Request) == 0 {
		request = nil
	}
	return fmt.Sprintf("%d %s %s %s", epoch, r.Call, r.Machine, request)
}

// changes tells whether what was recorded may change what the seat answers.
func changes(r Record) bool {
	switch r.Call {
	case "reboot", "set_clock", "exec", "guest.run", "guest.write", "guest.remove":
		return true
	case "guest.systemctl":
		argv, _ := r.Request["argv"].([]any)
		words, _ := r.Request["argv"].([]string)
		action := ""
		if len(argv) > 2 {
			action, _ = argv[2].(string)
		} else if len(words) > 2 {
			action = words[2]
		}
		return !strings.HasPrefix(action, "is-")
	case "http", "guest.http":
		method, _ := r.Request["method"].(string)
		return method != "GET" && method != "HEAD"
	}
	return false
}

// take answers a question, with the recorded failure if it had one.
func (p *Replay) take(call, machine string, request map[string]any) (Record, error) {
	ask := Record{Call: call, Machine: machine, Request: request}
	k := key(p.epoch, ask)
	list := p.records[k]
	if len(list) == 0 {
		return Record{}, p.unanswered(ask)
	}
	r := list[0]
	p.records[k] = list[1:]
	p.left--
	p.clock = max(p.clock, r.AtMS+r.TookMS)
	if changes(r) {
		p.epoch++
	}
	said, _ := r.Response["error"].(string)
	switch {
	case r.Error == "":
		return r, nil
	case r.Error == Timeout && strings.Contains(said, ErrGone.Error()):
		return r, fmt.Errorf("machine %s: %w", machine, ErrGone)
	case r.Error == Timeout:
		return r, ErrCutOff
	}
	return r, &Failure{Category: r.Error, Source: r.Error.Charged(), Reason: said}
}

// unanswered says why there is no answer.
func (p *Replay) unanswered(ask Record) error {
	_, asked := p.records[key(p.epoch, ask)]
	what := question(ask)
	if asked {
		return &Insufficient{what + " was asked less often when it was recorded", true, false}
	}
	for k := range p.records {
		if _, rest, _ := strings.Cut(k, " "); fmt.Sprintf("%d %s", p.epoch, rest) == key(p.epoch, ask) {
			return &Insufficient{what + " was recorded only before or after something else changed the seat", false, false}
		}
	}
	return &Insufficient{what + " was not recorded", false, false}
}

// question is a call in a few words.
func question(r Record) string {
	words := []string{r.Call}
	for _, k := range []string{"method", "url", "path", "unit", "port", "contains", "argv", "wants"} {
		if v, ok := r.Request[k]; ok {
			words = append(words, fmt.Sprint(v))
		}
	}
	return "“" + bounded(strings.Join(words, " "), 200) + "”"
}

// eventually repeats try as the recorded attempt did. Until the records end, or
// the time that it had is over by their clock, a failure is followed by the next
// try; beyond them nobody knows.
func (p *Replay) eventually(timeout, every time.Duration, try func() error) error {
	deadline := p.clock + uint64(timeout.Milliseconds())
	var last error
	for {
		left := p.left
		err := try()
		if err == nil {
			return nil
		}
		var f *Failure
		var spent *Insufficient
		switch {
		case errors.As(err, &spent) && spent.Spent && last != nil:
			if p.left == 0 && p.gaveUp || p.clock+uint64((2*every).Milliseconds()) >= deadline {
				return last
			}
			return &Insufficient{"it would have gone on asking: " + spent.Reason, false, false}
		case !errors.As(err, &f) || f.Category == Broken || p.left == left || p.clock >= deadline:
			return err
		}
		last = err
	}
}

// reboot gives what was recorded of a reboot and of the ports watched meanwhile.
func (p *Replay) reboot(a *Attempt, boot *Boot) (back bool, err error) {
	var errs []error
	for i, m := range p.seat.c.Machines {
		var request map[string]any
		if i == 0 && len(boot.Wants) > 0 {
			request = map[string]any{"wants": boot.Wants}
		}
		if boot.Cut {
			request = cutRequest
		}
		r, err := p.take("reboot", m.Name(), request)
		errs = append(errs, err)
		a.Note(r)
	}
	back = errors.Join(errs...) == nil
	for _, port := range boot.Ports {
		r, err := p.take("watch", p.seat.c.Machines[0].Name(), map[string]any{"port": port})
		if err == nil && r.Refused != "" {
			err = failure(Contract, "%s", r.Refused)
		}
		errs = append(errs, err)
		a.Note(r)
	}
	return back, errors.Join(errs...)
}

// reply is a recorded answer to a request.
func (p *Replay) reply(call, machine string, request map[string]any) (Reply, error) {
	r, err := p.take(call, machine, request)
	if err != nil {
		return Reply{}, err
	}
	took := time.Duration(r.TookMS) * time.Millisecond
	if word := said(r, "error"); word != "" {
		return Reply{Error: word, Took: took}, nil
	}
	body, err := whole(r, "body")
	return Reply{Status: number(r, "status"), Body: []byte(body), Took: took}, err
}

func said(r Record, name string) string {
	s, _ := r.Response[name].(string)
	return s
}

func number(r Record, name string) int {
	switch n := r.Response[name].(type) {
	case float64:
		return int(n)
	case int:
		return n
	}
	return 0
}

// whole is a recorded text, unless it was cut or altered when it was recorded.
func whole(r Record, name string) (string, error) {
	s := said(r, name)
	_, counted := r.Response["bytes"]
	if counted && number(r, "bytes") != len(s) || !counted && len(s) >= maxShown && strings.HasSuffix(s, text.Ellipsis) {
		return "", &Insufficient{"the answer to " + question(r) + " was not kept whole when it was recorded", false, true}
	}
	return s, nil
}

// replayed is a machine that is only remembered.
type replayed struct {
	vm.Machine
	name string
	p    *Replay
}

func (m replayed) Name() string          { return m.name }
func (m replayed) Guest() vm.Guest       { return remembered{m: m} }
func (m replayed) Done() <-chan struct{} { return nil }

func (m replayed) Power(context.Context) (vm.Power, error) {
	r, err := m.p.take("power", m.name, nil)
	return vm.Power(said(r, "power")), err
}

func (m replayed) SetClock(_ context.Context, ahead time.Duration) error {
	_, err := m.p.take("set_clock", m.name, map[string]any{"ahead_s": int(ahead.Seconds())})
	return err
}

// remembered is the inside of such a machine.
type remembered struct{ m replayed }

func (g remembered) ask(verb string, request map[string]any) (Record, error) {
	return g.m.p.take("guest."+verb, g.m.name, request)
}

func (g remembered) Hello(context.Context) (vm.Hello, error) {
	return vm.Hello{}, &Insufficient{"no verifier asks for this", false, false}
}

func (g remembered) Run(_ context.Context, argv []string, _ []byte) (vm.RunResult, error) {
	verb := "run"
	if len(argv) > 1 && argv[0] == "systemctl" && argv[1] == "--no-ask-password" {
		verb = "systemctl"
	}
	shown := make([]string, len(argv))
	for i, s := range argv {
		shown[i] = bounded(s, maxShown)
	}
	r, err := g.ask(verb, map[string]any{"argv": shown})
	if err != nil {
		return vm.RunResult{}, err
	}
	stdout, oerr := whole(r, "stdout")
	stderr, eerr := whole(r, "stderr")
	return vm.RunResult{Exit: number(r, "exit"), Stdout: []byte(stdout), Stderr: []byte(stderr)}, errors.Join(oerr, eerr)
}

func (g remembered) ReadFile(_ context.Context, path string, _ int) ([]byte, error) {
	r, err := g.ask("read", map[string]any{"path": path})
	if err == nil && r.Response["exists"] != true {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	s, err := whole(r, "text")
	return []byte(s), err
}

func (g remembered) WriteFile(_ context.Context, path string, data []byte, _ fs.FileMode) error {
	_, err := g.ask("write", map[string]any{"path": path, "text": bounded(string(data), maxShown), "bytes": len(data)})
	return err
}

func (g remembered) Remove(_ context.Context, path string) error {
	_, err := g.ask("remove", map[string]any{"path": path})
	return err
}

func (g remembered) Stat(_ context.Context, path string) (vm.FileStat, error) {
	r, err := g.ask("exists", map[string]any{"path": path})
	if err == nil && r.Response["exists"] != true {
		err = fs.ErrNotExist
	}
	return vm.FileStat{}, err
}

// Listeners have nothing but their ports: more was not recorded.
func (g remembered) Listeners(context.Context) ([]vm.Listener, error) {
	r, err := g.ask("listeners", nil)
	ports, _ := r.Response["ports"].([]any)
	var out []vm.Listener
	for _, p := range ports {
		if n, ok := p.(float64); ok {
			out = append(out, vm.Listener{Port: int(n)})
		}
	}
	return out, err
}

func (g remembered) Unit(_ context.Context, name string) (vm.Unit, error) {
	r, err := g.ask("unit", map[string]any{"unit": name})
	return vm.Unit{LoadState: said(r, "load"), ActiveState: said(r, "active"), SubState: said(r, "sub"), UnitFileState: said(r, "file"),
		MainPID: number(r, "pid"), Restarts: number(r, "restarts")}, err
}

func (g remembered) HTTP(_ context.Context, q vm.HTTPRequest) (vm.HTTPResult, error) {
	rep, err := g.m.p.reply("guest.http", g.m.name, httpRequest(q.Method, q.URL, q.Body, nil))
	return vm.HTTPResult{Status: rep.Status, Body: rep.Body, Err: rep.Error}, err
}

func (g remembered) Sync(context.Context) error {
	_, err := g.ask("sync", nil)
	return err
}
