package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/engine/control"
	"refbox/engine/heat"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/tui"
	"refbox/vm"
	"refbox/vm/sim"
)

// runOptions are run's flags.
type runOptions struct {
	output   string
	headless bool
	detach   bool
	yes      bool
	cold     bool
	machines string
	fleet    string
	play     bool      // a person takes a seat
	seat     string    // which; "" for the first
	drill    string    // REGISTER:STORE; "" for none
	bound    *binding  // in its place
	branch   *offshoot // the heat starts from a saved state; nil for one of its own
}

func newRun(a *app) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run ARENA",
		Short: "Run a heat",
		Long: `Runs a heat of an arena: the id of a bundled one (see refbox arena list), a
package's folder, an arena.toml or an arena.json.

Shows it live when standard output is a terminal; prints a line per event
otherwise. What real machines need and this host lacks is offered to be
installed.`,
		Example: "  refbox run primary-failover\n  refbox run ./my-arena --headless --output /tmp/heat",
		Args:    exactArgs(1, "one arena"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.detach {
				return detach(cmd.Context(), a, args[0], o)
			}
			return runHeat(cmd.Context(), a, args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.output, "output", "", "the folder to record into (default: a new one under the data folder)")
	f.BoolVar(&o.headless, "headless", false, "print a line per event instead of the screen")
	f.BoolVar(&o.detach, "detach", false, "run in the background; watch it with refbox watch")
	f.BoolVar(&o.cold, "cold", false, "boot the machines instead of resuming their prepared state")
	machineFlags(c, &o)
	f.StringVar(&o.fleet, "fleet", "", "a file that says who plays at which seat (see refbox fleet)")
	f.StringVar(&o.drill, "drill", "", "say at the end what the heat is to REGISTER:STORE, a drill or a rehearsal (see refbox register drill)")
	return c
}

// outputDir is where a heat is recorded.
func outputDir(o runOptions, id string) (string, error) {
	if o.output != "" {
		return filepath.Abs(o.output)
	}
	base, err := recordingsDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, fmt.Sprintf("%s-%s", id, time.Now().Format("20060102-150405"))), nil
}

// machineFlags are the flags of every command that starts machines.
func machineFlags(c *cobra.Command, o *runOptions) {
	c.Flags().BoolVar(&o.yes, "yes", false, "don't ask before installing what is missing")
	c.Flags().StringVar(&o.machines, "machines", "qemu", "qemu for real machines, sim for simulated ones")
}

// machines makes the driver that a heat's machines come from. Packages are what the
// arena wants in its guests; for several arenas nil: each heat makes what it needs.
func machines(ctx context.Context, a *app, o runOptions, packages []string) (vm.Driver, error) {
	switch o.machines {
	case "qemu":
		return driver(ctx, a, o.yes, packages)
	case "sim":
		return sim.New(simConfig()), nil
	}
	return nil, usageError("--machines is qemu or sim, not %q", o.machines)
}

// runHeat runs one heat to its end, on the screen or in lines.
func runHeat(ctx context.Context, a *app, name string, o runOptions) error {
	cfg := heat.Config{Cold: o.cold, Version: version, States: statesHere()}
	if b := o.branch; b != nil {
		cfg.Package, cfg.Branch, cfg.Secret = b.pkg, &b.point, &b.point.Secret
	} else if pkg, err := arena.Load(name); err == nil {
		cfg.Package = pkg
	} else {
		return err
	}
	persons, err := seatFleet(&cfg, o)
	if err != nil {
		return err
	}
	screen := !o.headless && canShow(a)
	if len(persons) > 0 && !screen {
		return usageError("a person plays %s: that takes the screen, and here is none; run it in a terminal, without --headless and without screen_reader", strings.Join(persons, " and "))
	}
	pkg := cfg.Package
	bound, err := bind(a, pkg, o)
	if err != nil {
		return err
	}
	id := pkg.Manifest.Arena.ID
	if o.branch != nil {
		id += "-branch"
	}
	dir, err := outputDir(o, id)
	if err != nil {
		return err
	}
	if err := vacant(dir); err != nil {
		return err
	}
	runtime, disks, err := prepareRuntime()
	if err != nil {
		return err
	}
	drv, err := machines(ctx, a, o, pkg.Guest().Packages)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	progress := newProgress(a)
	ours := make(chan struct{}) // the folder is
	mine := sync.OnceFunc(func() { close(ours) })
	cfg.Driver, cfg.Dir, cfg.Runtime, cfg.Disks = drv, dir, runtime, disks
	setUp := progress.ofHeat()
	cfg.Progress = func(p heat.Progress) {
		mine()
		setUp(p)
	}
	h := heat.New(cfg)
	type ending struct {
		res heat.Result
		err error
	}
	var group sync.WaitGroup
	ended := make(chan struct{})
	var end ending
	group.Go(func() {
		defer close(ended)
		end.res, end.err = h.Run(ctx)
	})
	served, stopServing := context.WithCancel(ctx)
	group.Go(func() {
		select {
		case <-ours: // else the desk there is another heat's
		case <-served.Done():
			return
		}
		if err := control.Serve(served, deskSocket(dir), h); err != nil && served.Err() == nil {
			slog.Error("the desk cannot be reached from other terminals", "heat", dir, "error", err)
			if !screen {
				fmt.Fprintln(a.err, "refbox: the desk cannot be reached from other terminals: "+text.Line(err.Error()))
			}
		}
	})
	finish := func() (heat.Result, error) {
		<-ended
		stopServing()
		group.Wait()
		progress.done()
		return end.res, end.err
	}

	loud := func() {}
	if screen {
		loud = hush(a.in)
	}
	rec, err := awaitHeat(ctx, dir, ended)
	loud()
	if err != nil || rec == nil {
		cancel()
		res, rerr := finish()
		select {
		case <-ours:
			return heatEnd(ctx, a, dir, bound, res, errors.Join(rerr, err))
		default: // nothing was recorded
			return errors.Join(rerr, err)
		}
	}
	progress.done()
	printNotes(a, pkg, rec)
	if screen {
		desk := tui.Desk{Desk: h, Author: author(), Owned: true}
		if len(persons) > 0 {
			desk.Plays = persons[0]
		}
		desk.Later = func(ctx context.Context) string { return offerNotice(ctx, a, dir, bound, ended) }
		choice, err := tui.Watch(ctx, screenConfig(a), rec, desk, a.in, a.out)
		switch {
		case choice.Interrupted || ctx.Err() != nil:
			cancel()
		case err != nil:
			fmt.Fprintln(a.err, "refbox: the screen ended: "+text.Block(err.Error()))
			h.End(ctx, "refbox", "the screen failed") //nolint:errcheck // then it ends already
		case choice.EndHeat:
			h.End(ctx, author(), "ended at the screen") //nolint:errcheck // then it ends already
		default:
			goesOn(a, rec, ended)
		}
		res, rerr := finish()
		return heatEnd(ctx, a, dir, bound, res, rerr)
	}
	printed := make(chan struct{})
	group.Go(func() {
		defer close(printed)
		printEvents(context.WithoutCancel(ctx), a, rec, ended)
	})
	<-printed
	res, rerr := finish()
	return heatEnd(ctx, a, dir, bound, res, rerr)
}

// vacant refuses a folder that holds a heat, before anything is started for one
// that could not be recorded.
func vacant(dir string) error {
	rec, err := recording.Open(dir)
	if err != nil {
		return nil // what is wrong there is found when the folder is made
	}
	defer rec.Close()
	rec.Refresh() //nolint:errcheck // whether there is anything matters
	switch {
	case rec.Live():
		return brokenError(fmt.Errorf("a heat is being recorded in %s; choose another folder, or watch it: refbox watch %s", text.Line(dir), text.Shell(dir)))
	case rec.Len() > 0:
		return brokenError(fmt.Errorf("%s already holds a heat; choose another folder, or replay it: refbox replay %s", text.Line(dir), text.Shell(dir)))
	}
	return nil
}

// printNotes says what a reader of the heat must know: what the manifest asks for
// in vain, and for each seat who plays it when that is not who the manifest says.
func printNotes(a *app, pkg *arena.Package, rec *recording.Recording) {
	for _, n := range pkg.Notes {
		if n.Territory == "" {
			fmt.Fprintln(a.err, "note: "+text.Line(n.Text))
		}
	}
	m := rec.Match()
	if m == nil {
		return
	}
	for _, s := range m.Seats {
		if s.Note != "" {
			fmt.Fprintf(a.err, "note: %s: %s\n", s.Territory, s.Note)
		}
	}
}

// goesOn says what happens to a heat whose screen was left.
func goesOn(a *app, rec *recording.Recording, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	default:
	}
	if rec.World(rec.Len()).Over() {
		fmt.Fprintln(a.err, "The race is over; late artefacts are being collected. Ctrl-C stops that.")
		return
	}
	fmt.Fprintf(a.err, "The heat goes on in this process (%d). Watch it: refbox watch %s\nCtrl-C ends it.\n", os.Getpid(), text.Shell(rec.Path()))
}

// awaitHeat opens the recording once its machines are ready, so that the set-up
// is seen as progress and not as an empty screen; nil when the heat ended before.
func awaitHeat(ctx context.Context, dir string, ended <-chan struct{}) (*recording.Recording, error) {
	wait, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-ended:
			stop()
		case <-wait.Done():
		}
	}()
	rec, err := recording.Await(wait, dir)
	if err != nil {
		if wait.Err() != nil {
			return nil, nil // the heat's own error says more
		}
		return nil, err
	}
	changed := rec.Follow(wait)
	for {
		if _, err := rec.Refresh(); err != nil {
			rec.Close()
			return nil, err
		}
		if rec.Len() > 0 {
			return rec, nil
		}
		select {
		case <-changed:
		case <-wait.Done():
			if rec.Refresh(); rec.Len() > 0 {
				return rec, nil
			}
			rec.Close()
			return nil, nil
		}
	}
}

// heatEnd says how a heat ended, and turns that into an exit code.
func heatEnd(ctx context.Context, a *app, dir string, bound *binding, res heat.Result, err error) error {
	if rec, oerr := recording.Open(dir); oerr == nil {
		rec.Load(context.WithoutCancel(ctx)) //nolint:errcheck // what could be read is summed up
		printSummary(a, rec)
		printOffered(context.WithoutCancel(ctx), a, rec)
		printDrills(context.WithoutCancel(ctx), a, rec, bound)
		rec.Close()
	}
	if err == nil && (res.Aborted || res.Voided) {
		return exitError{code: exitBroken}
	}
	return err
}

// author is who acts at the desk from here.
func author() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "operator"
}

// detach starts the heat in a process of its own, which outlives this one and
// its terminal.
func detach(ctx context.Context, a *app, name string, o runOptions) error {
	pkg, err := arena.Load(name)
	if err != nil {
		return err
	}
	dir, err := outputDir(o, pkg.Manifest.Arena.ID)
	if err != nil {
		return err
	}
	if err := vacant(dir); err != nil {
		return err
	}
	// What has to be asked is asked here, where somebody can answer.
	if _, err := machines(ctx, a, o, pkg.Guest().Packages); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it in the background: %w", err)
	}
	if _, err := bind(a, pkg, o); err != nil {
		return err
	}
	args := []string{"run", name, "--headless", "--yes", "--output", dir, "--machines", o.machines}
	if o.drill != "" {
		args = append(args, "--drill", o.drill)
	}
	if o.cold {
		args = append(args, "--cold")
	}
	if o.fleet != "" {
		f, err := loadFleet(o.fleet)
		if err != nil {
			return err
		}
		if p := f.Persons(); len(p) > 0 {
			return usageError("a person plays %s: that takes the screen, so this heat cannot run in the background", strings.Join(p, " and "))
		}
		args = append(args, "--fleet", o.fleet)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return environmentError(err)
	}
	log, err := os.Create(filepath.Join(dir, "output.log"))
	if err != nil {
		return environmentError(fmt.Errorf("the log of the heat in the background: %w", err))
	}
	defer log.Close()
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the heat in the background: %w", err)
	}
	fmt.Fprintf(a.out, "heat    %s\nprocess %d\nlog     %s\nwatch   refbox watch %s\n", text.Line(dir), cmd.Process.Pid, text.Line(log.Name()), text.Shell(dir))
	return cmd.Process.Release()
}
