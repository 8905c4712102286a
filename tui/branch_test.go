package tui

import (
	"errors"
	"testing"

	"refbox/engine/branch"
	"refbox/engine/recording"
)

// pressBranch asks for a branch in a program whose states are as find says.
func pressBranch(d *driver, find func() (branch.Point, error)) {
	d.m.cfg.Branch = func(*recording.Recording, string, int) (branch.Point, error) { return find() }
	d.goTo("7s")
	d.press("b")
	d.until("it is asked", func() bool { return d.m.dialog != nil })
}

func demoPoint() (branch.Point, error) {
	return branch.Point{State: branch.State{Arena: "primary-failover"}, Passed: []string{"failed-primary-preserved", "reads-restored"},
		Origin: recording.MatchBranch{Milestone: "reads-restored", AtMS: 5200}}, nil
}

func nowhere() (branch.Point, error) {
	return branch.Point{}, errors.New("nothing to branch from: no state of failover-one was saved in demo-heat: states are saved by refbox run and play, of heats on this computer")
}

// What is chosen in the dialog is what the program ends with.
func TestBranchDialog(t *testing.T) {
	dir := demoHeat(t)
	for name, c := range map[string]struct {
		keys []string
		want string // the player; "" for none
	}{
		"human":   {[]string{"enter"}, "human"},
		"another": {[]string{"a", "h", "a", "s", "t", "y", "enter"}, "hasty"},
		"nobody":  {[]string{"a", "enter"}, ""},
		"left":    {[]string{"esc"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := replayOf(t, dir, 80, 24, plainOutput())
			pressBranch(d, demoPoint)
			d.press(c.keys...)
			got := ""
			if b := d.m.choice.Branch; b != nil {
				got = b.Player
			}
			if got != c.want || d.m.dialog != nil {
				t.Errorf("player %q, want %q; dialog %v", got, c.want, d.m.dialog)
			}
		})
	}
}
