package agent

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/vm"
	"refbox/vm/sim"
)

// startSim starts a simulated cluster of the machines app and db.
func startSim(t *testing.T, key ssh.Signer) vm.Cluster {
	t.Helper()
	d := sim.New(sim.Config{})
	machine := func(name string) vm.MachineSpec {
		return vm.MachineSpec{Name: name, VCPUs: 1, MemoryMiB: 256, DiskMiB: 1024}
	}
	tpl, err := d.Prepare(t.Context(), vm.Spec{Machines: []vm.MachineSpec{machine("app"), machine("db")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(t.Context(), tpl, vm.Start{Name: "seat", Password: "root-password", AuthorizedKey: key.PublicKey(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// The gateway and the scripted player on the machines that heats are tested on.
func TestOnSimulatedMachines(t *testing.T) {
	key := signer(t)
	c := startSim(t, key)
	w := newWatcher()
	gw, err := Open(Config{Machines: []string{"app", "db"}, Dial: DialCluster(c, key), Observer: w, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close()

	r, _ := playScript(t, t.Context(), gw, `# player sim
# must
hostname
---
# on db
# expect 3
# must
hostname; exit 3
---
# must
echo kept >/root/kept; sync
---
systemctl reboot
---
# repeat until 0 every 50ms for 30s
# must
test "$(cat /root/kept)" = kept
`)
	if r.Status != Completed {
		t.Fatalf("%+v\n%+v", r, w.done)
	}
	for n, want := range map[uint64]string{1: "app", 2: "db"} {
		if f := w.finish(t, n); !strings.Contains(f.Output, want) || w.action(n).Machine != want {
			t.Errorf("action %d on %s: %+v, want %s", n, w.action(n).Machine, f, want)
		}
	}

	// A reset that nobody announces ends the sessions; the gateway comes back.
	client := enter(t, gw)
	s := command(t, client)
	out, _ := s.StdoutPipe()
	if err := s.Start("echo up; sleep 1000"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	n := uint64(len(w.started))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.Machine("app").Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if f := w.finish(t, n); f.Exit != nil || f.Detail == "" {
		t.Fatalf("after the reset: %+v", f)
	}
	if got, err := command(t, client).Output("hostname"); err != nil {
		t.Fatalf("%q, %v", got, err)
	}
}
