package qemu

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"refbox/vm"
)

func TestSplit(t *testing.T) {
	l := launch{Spec: vm.MachineSpec{Name: "host", VCPUs: 1, MemoryMiB: 512}, Accel: "tcg", CPU: "max", KernelArg: "console=ttyS0 quiet",
		Forwards: []forward{{4000, 22}}, Links: []linkEnd{{"back", "52:54:00:00:01:01"}}, Layers: 1}
	opts, net, kernel := split(commandLine(l))
	if net != "restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:4000-:22" || kernel != "console=ttyS0 quiet" {
		t.Errorf("net %q, kernel %q", net, kernel)
	}
	for _, o := range opts {
		if strings.ContainsAny(o, " *?[\n") || strings.Contains(o, "n0") {
			t.Errorf("%q does not survive a shell's splitting, or is the runner's", o)
		}
	}
	if !slices.Contains(opts, "-sandbox") || !strings.HasPrefix(opts[len(opts)-1], "on,") || len(opts) != len(commandLine(l))-6 {
		t.Errorf("something is lost: %q", opts)
	}
}

const script = `#!/bin/sh
exec qemu-system-x86_64 -netdev user,id=n0,$QEMU_NET_OPTS -device virtio-net-pci,netdev=n0,romfile=,mac=52:54:00:00:00:01 \
	-smbios type=1,serial="by-runner-$AOE_MACHINE-${AOE_SSH_PORT:+ssh}" $QEMU_OPTS
`

// TestRealRunner: a machine started by a package's script is prepared, resumed,
// reached and ended as any other, and is what the script made of it.
func TestRealRunner(t *testing.T) {
	d := realDriver(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tpl, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{{Name: "host", VCPUs: 1, MemoryMiB: 512, DiskMiB: 2048, Runner: []byte(script)}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	_, pub := newKey(t)
	c, err := d.Start(ctx, tpl, vm.Start{Name: "ran", Password: "secret", AuthorizedKey: pub, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m := c.Machine("host")
	serial, err := m.Guest().ReadFile(ctx, "/sys/class/dmi/id/product_serial", 100)
	if err != nil || strings.TrimSpace(string(serial)) != "by-runner-host-ssh" {
		t.Errorf("serial %q, %v", serial, err)
	}
	if err := m.Reboot(ctx); err != nil {
		t.Errorf("reboot: %v", err)
	}
	if _, err := m.Addr(22); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-m.Done():
	case <-ctx.Done():
		t.Error("the machine outlives its cluster")
	}
}

// TestRealRunnerThatIsNoMachine: a script that does not become the hypervisor leaves
// nothing behind, and is an error that says what it said.
func TestRealRunnerThatIsNoMachine(t *testing.T) {
	d := realDriver(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{{Name: "host", VCPUs: 1, MemoryMiB: 512, DiskMiB: 2048, Runner: []byte("#!/bin/sh\necho no machine here >&2\nexit 3\n")}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "no machine here") {
		t.Errorf("%v", err)
	}
}
