package arena_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"refbox/engine/probe"
	"refbox/vm/qemu/qemutest"
)

// TestRealMachine climbs the ladder on a real machine, with the real programs
// under the real systemd, each attack first shown to succeed.
func TestRealMachine(t *testing.T) {
	r := newRig(t, qemutest.Driver(t))
	began := time.Now()
	lap := func(what string) {
		t.Logf("%5.1fs %s", time.Since(began).Seconds(), what)
		began = time.Now()
	}
	if _, err := r.verify("failed-primary-preserved"); err != nil {
		t.Fatal(err)
	}
	lap("failed-primary-preserved")
	if _, err := r.verify("reads-restored"); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("reads before anything was done: %v", err)
	}
	r.sh(promote)
	lap("promote and switch")
	if _, err := r.verify("reads-restored"); err != nil {
		t.Fatal(err)
	}
	lap("reads-restored")
	attacked(t, r, true)
	lap("attacks, unfenced")
	for name, script := range fences {
		if name == "masked" {
			continue
		}
		r.sh("cp -p /opt/failover/primary.py /tmp/kept\n" + script)
		attacked(t, r, false)
		lap("attacks, " + name)
		r.sh("rm -rf /etc/systemd/system/failover-primary.service.d; rm -f /opt/failover/primary.py; cp -p /tmp/kept /opt/failover/primary.py; systemctl daemon-reload")
	}
	attacked(t, r, true)
	lap("attacks, unfenced again")
	climbFrom := time.Now()
	r.sh(mask)
	for _, l := range ladder {
		if l.milestone == "host-reboot" {
			if err := r.reboot(l.milestone); err != nil {
				t.Fatal(err)
			}
			lap("reboot")
		}
		if _, err := r.verify(l.milestone); err != nil {
			t.Fatalf("%s: %v", l.milestone, err)
		}
		lap(l.milestone)
	}
	t.Logf("the ladder took %.1fs", time.Since(climbFrom).Seconds())
}

// liar is the referee's helper, altered: a start of the old primary is said to fail,
// and is not tried.
const liar = `python3 - <<'EOF'
s = open("/usr/lib/refbox/agent.py").read()
honest = '    argv = a["argv"]\n'
assert honest in s
lie = '    if argv[-1] == "failover-primary.service" and ("start" in argv or "enable" in argv): return {"exit": 1, "stdout": "", "stderr": ""}\n'
open("/root/liar.py", "w").write(s.replace(honest, honest + lie, 1))
EOF
`

// replaced runs what replaces the helper under way, and waits for the new one.
func (r *rig) replaced(script string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	r.sh("rm -f /run/lying; " + script)
	for {
		if _, err := r.m.Guest().Stat(ctx, "/run/lying"); err == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			r.t.Fatal("the altered helper does not answer")
		}
	}
}

// TestRealLyingHelper: an old primary that is only stopped, behind a helper that
// lies about starting it, gets past the attacks that ask the helper, and not past
// the reboot, whatever becomes of the lie.
func TestRealLyingHelper(t *testing.T) {
	r := newRig(t, qemutest.Driver(t))
	r.sh(promote + liar + "sync")
	climb := func() {
		t.Helper()
		for _, l := range ladder[:5] {
			if _, err := r.verify(l.milestone); err != nil {
				t.Fatalf("%s: %v", l.milestone, err)
			}
			if l.milestone == "old-primary-fenced" {
				for i, err := range r.strike() {
					if err != nil {
						t.Errorf("attack %d finds the lie out, so this test shows nothing of the reboot: %v", i, err)
					}
				}
			}
		}
	}
	refused := func(want string) {
		t.Helper()
		began := time.Now()
		err := r.reboot("host-reboot")
		t.Logf("the reboot took %.1fs: %v", time.Since(began).Seconds(), err)
		var f *probe.Failure
		if !errors.As(err, &f) || f.Source != "player" || f.Category != probe.Contract || !strings.Contains(f.Reason, want) {
			t.Errorf("the reboot: %v, want %q, charged to the player", err, want)
		}
	}
	// It lies while it runs, and the boot has an honest one: the host's order then
	// brings up an old primary that takes writes.
	r.replaced("systemd-run -q --unit=liar sh -c 'systemctl stop refbox-agent.service; touch /run/lying; exec python3 -I -S /root/liar.py'")
	climb()
	refused("the old primary came up with the boot, and acknowledged a write")
	if u, err := r.m.Guest().Unit(t.Context(), "failover-primary.service"); err != nil || u.UnitFileState != "disabled" || u.ActiveState == "active" {
		t.Errorf("the referee left the unit as %+v, %v", u, err)
	}
	// It lies on, from the disk.
	r.replaced("python3 -c \"import py_compile as p; p.compile('/root/liar.py', cfile='/usr/lib/refbox/agent.pyc', doraise=True, invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)\"; " +
		"sync; systemd-run -q sh -c 'systemctl restart refbox-agent.service; touch /run/lying'")
	climb()
	refused("/usr/lib/refbox/agent.pyc is not what the image holds")
}
