package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"refbox/engine/control"
	"refbox/engine/playback"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/engine/world"
)

func newDesk(a *app) *cobra.Command {
	var reason string
	var lasts time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "desk DIR [ACTION [WHAT IT NEEDS]]",
		Short: "Referee a heat that another process runs",
		Long: `Acts on a running heat as its referee. Every action is an event in the heat's log,
with its author and its reason, and is seen in replay and in refbox why; nothing is
ever deleted. An action that no longer applies, since another referee was quicker,
says so and changes nothing. Without an action it says how the heat stands. A fault of
which only the kind is given is explained, and not injected.

Actions:
` + deskActions(),
		Example: "  refbox desk ./heat pause --reason \"the arena's clock is wrong\"\n" +
			"  refbox desk ./heat extend 5m --reason \"the pause took long\"\n" +
			"  refbox desk ./heat revoke failover-two reads-restored --reason \"read from a cache\"\n" +
			"  refbox desk ./heat fault power-cut\n" +
			"  refbox desk ./heat fault service-stop failover-one host unit=failover-proxy.service --for 20s --reason drill\n" +
			"  refbox desk ./heat clear service-stop failover-one --reason \"long enough\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 12 {
				return usageError("%s takes a heat's folder, and perhaps an action with what it needs\ntry: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args[0] = locate(args[0])
			if len(args) == 1 {
				return deskState(cmd.Context(), a, args[0], asJSON)
			}
			r, err := rulingOf(args[1:], reason, lasts)
			if err != nil {
				return usageError("%w\ntry: %s --help", err, cmd.CommandPath())
			}
			if r.Action == control.InjectFault && r.Territory == "" {
				tellFault(a, r.Fault)
				return nil
			}
			return rule(cmd.Context(), a, args[0], r, asJSON)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why: it goes into the log; the text of a note")
	c.Flags().DurationVar(&lasts, "for", 0, "how long a fault lasts; without it until it is cleared")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// usageOf is an action with what it needs.
func usageOf(d control.Description) string {
	s := string(d.Action)
	switch d.Action {
	case control.InjectFault:
		return s + " KIND SEAT MACHINE [NAME=VALUE …]"
	case control.ClearFault:
		return s + " KIND SEAT [TARGET]"
	}
	if d.Seat {
		s += " SEAT"
	}
	if d.Milestone {
		s += " MILESTONE"
	}
	if d.Time {
		s += " TIME"
	}
	return s
}

func deskActions() string {
	var b strings.Builder
	for _, d := range control.Actions() {
		indent := "\n" + strings.Repeat(" ", 27)
		usage := fmt.Sprintf("  %-24s ", usageOf(d))
		if len(usage) > 27 {
			usage = strings.TrimRight(usage, " ") + indent
		}
		fmt.Fprintf(&b, "%s%s\n", usage, strings.Join(text.Wrap(d.Does, 56), indent))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// rulingOf is what the words of a command line rule.
func rulingOf(args []string, reason string, lasts time.Duration) (control.Ruling, error) {
	r := control.Ruling{Action: control.Action(args[0]), Reason: reason}
	d, ok := control.Describe(r.Action)
	if !ok {
		var names []string
		for _, d := range control.Actions() {
			names = append(names, string(d.Action))
		}
		return r, fmt.Errorf("unknown action %q: there are %s", args[0], strings.Join(names, ", "))
	}
	if d.Fault {
		return faultOf(r, args[1:], lasts)
	}
	if lasts != 0 {
		return r, errors.New("--for is for a fault")
	}
	var into []*string
	if d.Seat {
		into = append(into, &r.Territory)
	}
	if d.Milestone {
		into = append(into, &r.Milestone)
	}
	var by string
	if d.Time {
		into = append(into, &by)
	}
	if len(args)-1 != len(into) {
		return r, fmt.Errorf("it is: %s --reason TEXT", usageOf(d))
	}
	for i, p := range into {
		*p = args[i+1]
	}
	if d.Time {
		t, err := time.ParseDuration(by)
		if err != nil {
			return r, fmt.Errorf("%q is no length of time; say for example 5m or 90s", by)
		}
		r.By = t
	}
	return r, r.Check()
}

// ruled is what came of a ruling.
type ruled struct {
	Action    control.Action `json:"action"`
	Territory string         `json:"territory,omitempty"`
	Milestone string         `json:"milestone,omitempty"`
	Fault     *control.Fault `json:"fault,omitempty"`
	Author    string         `json:"author"`
	Reason    string         `json:"reason"`
	Done      bool           `json:"done"`
	Error     string         `json:"error,omitempty"` // why it was refused
}

// waitTold is after how long a ruling that waits for the checks under way says so.
const waitTold = time.Second

func rule(ctx context.Context, a *app, dir string, r control.Ruling, asJSON bool) error {
	desk, err := control.Dial(deskSocket(dir))
	if errors.Is(err, control.ErrNoDesk) {
		err = noDesk(ctx, dir)
	}
	if err == nil {
		if r.Action == control.InjectFault && !asJSON {
			tellFault(a, r.Fault)
		}
		told := time.AfterFunc(waitTold, func() {
			if r.Fault.Kind != "" {
				fmt.Fprintln(a.err, "waiting for the checks under way to end, and for the witness …")
				return
			}
			fmt.Fprintln(a.err, "waiting for the checks under way to end …")
		})
		err = control.Do(ctx, desk, author(), r)
		told.Stop()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out := ruled{Action: r.Action, Territory: r.Territory, Milestone: r.Milestone, Author: author(), Reason: r.Reason, Done: err == nil}
	if r.Fault.Kind != "" {
		out.Fault = &r.Fault
	}
	switch {
	case err != nil && asJSON:
		out.Error = err.Error()
		if werr := writeJSON(a.out, out); werr != nil {
			return werr
		}
		return exitError{code: exitBroken}
	case err != nil:
		return brokenError(err)
	case asJSON:
		return writeJSON(a.out, out)
	}
	if r.Fault.Kind != "" {
		_, err = fmt.Fprintf(a.out, "done: %s\n", faultDone(ctx, dir, r))
		return err
	}
	what := strings.Join(slices.DeleteFunc([]string{string(r.Action), r.Territory, r.Milestone}, func(s string) bool { return s == "" }), " ")
	_, err = fmt.Fprintf(a.out, "done: %s\n", text.Line(what))
	return err
}

// noDesk says why a heat has no desk.
func noDesk(ctx context.Context, dir string) error {
	rec, err := loadRecording(ctx, dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	if rec.World(rec.Len()).Over() {
		return fmt.Errorf("the heat in %s is over: its recording is closed, and no ruling can be added to it", text.Line(dir))
	}
	return fmt.Errorf("no process runs the heat in %s any more: there is nothing to referee", text.Line(dir))
}

// deskStanding is how a heat stands, for its referee.
type deskStanding struct {
	State      string       `json:"state"`
	Paused     *pauseLine   `json:"paused"`
	ElapsedMS  uint64       `json:"elapsed_ms"`
	LimitMS    *uint64      `json:"limit_ms"`
	ExtendedMS uint64       `json:"extended_ms"`
	PausedMS   uint64       `json:"paused_ms"`
	Voided     bool         `json:"voided"`
	Faults     []faultLine  `json:"faults"`
	Rulings    []rulingLine `json:"rulings"`
	Notes      []noteLine   `json:"notes"`
}

type pauseLine struct {
	SinceMS uint64 `json:"since_ms"`
	Author  string `json:"author"`
	Reason  string `json:"reason"`
}

type rulingLine struct {
	MS        uint64 `json:"elapsed_ms"`
	Event     int    `json:"event"`
	Ruling    string `json:"ruling"`
	Territory string `json:"territory,omitempty"`
	Milestone string `json:"milestone,omitempty"`
	Author    string `json:"author"`
	Reason    string `json:"reason"`
}

type noteLine struct {
	MS     uint64 `json:"elapsed_ms"`
	Event  int    `json:"event"`
	Author string `json:"author"`
	Text   string `json:"text"`
}

func deskState(ctx context.Context, a *app, dir string, asJSON bool) error {
	rec, err := loadRecording(ctx, dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	s := deskStandingOf(rec)
	if asJSON {
		return writeJSON(a.out, s)
	}
	state := s.State
	if s.Voided {
		state += ", voided"
	}
	clock := playback.Format(s.ElapsedMS)
	if s.LimitMS != nil {
		clock += " of " + playback.Format(*s.LimitMS)
	}
	fmt.Fprintf(a.out, "%s at %s\n", state, clock)
	if p := s.Paused; p != nil {
		fmt.Fprintf(a.out, "paused by %s: %s\n", p.Author, p.Reason)
	}
	if s.ExtendedMS > 0 {
		fmt.Fprintf(a.out, "the limit was put off by %v\n", time.Duration(s.ExtendedMS)*time.Millisecond)
	}
	for _, f := range s.Faults {
		fmt.Fprintf(a.out, "  %s  %s on %s: %s\n", playback.Format(f.InjectedMS), f.Author, f.Territory, text.Line(f.Words))
	}
	for _, r := range s.Rulings {
		about := strings.TrimSpace(strings.ReplaceAll(r.Ruling, "_", " ") + " " + strings.TrimSpace(r.Territory+" "+r.Milestone))
		fmt.Fprintf(a.out, "  %s  %s ruled %s: %s\n", playback.Format(r.MS), r.Author, about, r.Reason)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(a.out, "  %s  %s notes: %s\n", playback.Format(n.MS), n.Author, n.Text)
	}
	return nil
}

func deskStandingOf(rec *recording.Recording) deskStanding {
	w := rec.World(rec.Len())
	s := deskStanding{State: w.MatchState, ElapsedMS: w.ElapsedMS, ExtendedMS: w.ExtendedMS, PausedMS: w.PausedMS, Voided: w.Voided != nil,
		Faults: faultLines(rec), Rulings: []rulingLine{}, Notes: []noteLine{}}
	if m := rec.Manifest(); m != nil {
		limit := uint64(m.Duration().Milliseconds()) + w.ExtendedMS
		s.LimitMS = &limit
	}
	if p := w.Pause; p != nil {
		s.Paused = &pauseLine{p.SinceMS, p.Author, p.Reason}
		if w.MatchState == world.Running {
			s.State = "paused"
		}
	}
	for _, r := range w.Rulings.All() {
		s.Rulings = append(s.Rulings, rulingLine{r.MS, r.Index, r.Ruling, r.Territory, r.Milestone, r.Author, r.Reason})
	}
	for _, n := range w.Notes.All() {
		s.Notes = append(s.Notes, noteLine{n.MS, n.Index, n.Author, n.Text})
	}
	return s
}
