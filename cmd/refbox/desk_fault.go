package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"refbox/engine/control"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
)

// faultOf is what the words behind fault, or clear, rule. Of fault alone with a kind it
// is only told what that is: then the ruling names no seat.
func faultOf(r control.Ruling, args []string, lasts time.Duration) (control.Ruling, error) {
	d, _ := control.Describe(r.Action)
	clears := r.Action == control.ClearFault
	if len(args) == 0 || len(args) == 2 && !clears || len(args) > 3 && clears || len(args) == 1 && clears {
		return r, fmt.Errorf("it is: %s --reason TEXT\nkinds: %s", usageOf(d), kindNames())
	}
	r.By = lasts
	for _, k := range control.FaultKinds() {
		if string(k) == args[0] {
			r.Fault.Kind = k
		}
	}
	switch {
	case r.Fault.Kind == "":
		return r, fmt.Errorf("unknown kind of fault %q: there are %s", args[0], kindNames())
	case len(args) == 1:
		return r, nil
	case clears && lasts != 0:
		return r, fmt.Errorf("a fault is cleared at once: --for is for injecting one")
	case clears:
		r.Territory = args[1]
		if len(args) == 3 {
			r.Target = args[2]
		}
		return r, r.Check()
	}
	r.Territory, r.Fault.Machine = args[1], args[2]
	if err := faultParams(&r.Fault, args[3:]); err != nil {
		return r, err
	}
	return r, r.Check()
}

func kindNames() string {
	var names []string
	for _, k := range control.FaultKinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// faultParams sets parameters that are given as NAME=VALUE.
func faultParams(f *control.Fault, given []string) error {
	set := map[string]any{}
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "kind" || name == "machine" {
			return fmt.Errorf("%q is no parameter: it is NAME=VALUE, for example unit=db.service", g)
		}
		set[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			set[name] = n
		}
	}
	data, err := json.Marshal(set)
	if err != nil {
		return err
	}
	in := json.NewDecoder(strings.NewReader(string(data)))
	in.DisallowUnknownFields()
	if err := in.Decode(f); err != nil {
		return fmt.Errorf("a %s takes %s: %w", f.Kind, paramNames(f.Kind), err)
	}
	return nil
}

// paramNames are a kind's parameters as they are given.
func paramNames(k control.FaultKind) string {
	must, may := control.FaultParams(k)
	var all []string
	for _, p := range must {
		all = append(all, p+"=…")
	}
	for _, p := range may {
		all = append(all, "["+p+"=…]")
	}
	if len(all) == 0 {
		return "no parameters"
	}
	return strings.Join(all, " ")
}

// tellFault says what a fault does, and what will be proved.
func tellFault(a *app, f control.Fault) {
	w := f.Describe()
	fmt.Fprintf(a.out, "%s: %s\n", f.Kind, w.Does)
	if f.Machine == "" {
		fmt.Fprintf(a.out, "  takes   %s\n", paramNames(f.Kind))
	}
	fmt.Fprintf(a.out, "  proved  %s\n  undone  %s\n", w.Witness, w.Undo)
	if w.Forgeable != "" {
		fmt.Fprintf(a.out, "  forgery %s\n", w.Forgeable)
	}
}

// faultDone is what became of the fault that a ruling was about.
func faultDone(ctx context.Context, dir string, r control.Ruling) string {
	rec, err := loadRecording(ctx, dir)
	if err != nil {
		return string(r.Fault.Kind)
	}
	defer rec.Close()
	s := rec.World(rec.Len()).Seat(r.Territory)
	if s == nil {
		return string(r.Fault.Kind)
	}
	for i := s.Faults.Len() - 1; i >= 0; i-- {
		if f := s.Faults.At(i); f.Fault == string(r.Fault.Kind) {
			return r.Territory + ": " + text.Line(f.Words())
		}
	}
	return string(r.Fault.Kind)
}

// faultLine is a fault on a seat, for its referee.
type faultLine struct {
	Territory  string           `json:"territory"`
	Fault      string           `json:"fault"`
	Target     string           `json:"target"`
	State      world.FaultState `json:"state"`
	InjectedMS uint64           `json:"injected_ms"`
	EndedMS    *uint64          `json:"ended_ms"`
	Author     string           `json:"author"`
	Reason     string           `json:"reason"`
	Words      string           `json:"words"`
}

func faultLines(rec *recording.Recording) []faultLine {
	out := []faultLine{}
	for _, s := range rec.World(rec.Len()).Seats() {
		for _, f := range s.Faults.All() {
			out = append(out, faultLine{s.ID, f.Fault, f.Target, f.State, f.InjectedMS, f.EndedMS, f.Author, f.Reason, f.Words()})
		}
	}
	return out
}
