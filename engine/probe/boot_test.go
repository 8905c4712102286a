package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"refbox/vm"
)

// bootable is a machine that a test reboots.
type bootable struct {
	*fakeMachine
	reboot func(wants []string) error
}

func (m *bootable) Reboot(_ context.Context, wants ...string) error { return m.reboot(wants) }

const bootVerifier = `
def verify(seat):
    return {}
def run(seat):
    require(seat.guest.read("/fence") != None, "it came up")
def undo(seat):
    seat.guest.read("/left")
boot = boot_attack("boot it", ["old.service"], run, undo, ports = [8081])
`

func TestBootAttack(t *testing.T) {
	answers := func(w http.ResponseWriter, _ *http.Request) {}
	for _, tc := range []struct {
		name         string
		open         bool
		err          error
		back         bool
		source, want string
	}{
		{"withstood", false, nil, true, "", ""},
		{"something answers meanwhile", true, nil, true, "player", "something answered on port 8081 while the machine rebooted"},
		{"the helper was altered", false, fmt.Errorf("%w: /usr/lib/x is not what the image holds", vm.ErrGuestRefused), false, "player", "/usr/lib/x"},
		{"the host could not", false, fmt.Errorf("%w: no process", vm.ErrTransport), false, "controller", "no process"},
	} {
		r := newRig(t, answers)
		if tc.open {
			r.m.addrs[8081] = r.m.addrs[8080]
		} else {
			r.m.addrs[8081] = "127.0.0.1:1"
		}
		var wanted []string
		r.c.Machines[0] = &bootable{r.m, func(wants []string) error {
			wanted = wants
			time.Sleep(3 * watchEvery) // what a boot takes: that is what the watch is about
			return tc.err
		}}
		boot := load(t, bootVerifier).Boot()
		if boot == nil || boot.Words != "boot it" {
			t.Fatalf("%+v", boot)
		}
		a := r.Attempt("m", 1, nil)
		back, err := a.Reboot(t.Context(), boot)
		var f *Failure
		if back != tc.back || (tc.want == "") != (err == nil) || err != nil && (!errors.As(err, &f) || f.Source != tc.source || !strings.Contains(f.Reason, tc.want)) {
			t.Errorf("%s: back %v, %v", tc.name, back, err)
		}
		if len(wanted) != 1 || wanted[0] != "old.service" {
			t.Errorf("%s: the machine was to start %q", tc.name, wanted)
		}
		recs, _ := a.Records()
		if len(recs) != 2 || recs[0].Call != "reboot" || recs[1].Call != "watch" || !recs[1].Outside || recs[1].Response["looks"].(int) < 1 ||
			recs[0].Forgeable != bootForgeable || (recs[0].Response["confirmed"] != nil) != tc.back || !a.Disrupted() {
			t.Errorf("%s: records %+v", tc.name, recs)
		}
		if err := boot.Run(t.Context(), r.Attempt("m", 1, nil)); err == nil || err.Error() != "it came up" {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err := boot.Undo(t.Context(), r.Attempt("m", 1, nil)); err != nil {
			t.Errorf("%s: undo: %v", tc.name, err)
		}
	}
}

func TestBootAttackIsChecked(t *testing.T) {
	if v := load(t, "def verify(seat):\n    return {}\n"); v.Boot() != nil {
		t.Error("a boot attack out of nothing")
	}
	for line, want := range map[string]string{
		`boot = attack("x", verify, verify)`:          "not boot_attack",
		`boot = 1`:                                    "not boot_attack",
		`boot = boot_attack("x", [], verify, verify)`: "name 1 to 8 units",
		`boot = boot_attack("x", ["a.service"], verify, verify, cut = True)`:        "wants no units",
		`boot = boot_attack("x", ["a b.service"], verify, verify)`:                  "not the name of a unit",
		`boot = boot_attack("x", [1], verify, verify)`:                              "not the name of a unit",
		`boot = boot_attack("", ["a.service"], verify, verify)`:                     "words are empty",
		`boot = boot_attack("x", ["a.service"], verify, verify, ports = [0])`:       "ports: 0",
		`attacks = [boot_attack("x", ["a.service"], verify, verify)]`:               "not attack(words",
		`boot = boot_attack("x", ["a.service", "../../b.service"], verify, verify)`: "not the name of a unit",
	} {
		_, err := Load(fstest.MapFS{"v.star": {Data: []byte("def verify(seat):\n    return {}\n" + line + "\n")}}, "v.star")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
