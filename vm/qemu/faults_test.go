package qemu

import (
	"os"
	"testing"
	"time"

	"refbox/vm/vmtest"
)

// Every kind of fault on one pair of real machines. It takes minutes, so it runs
// where it is asked for.
func TestFaults(t *testing.T) {
	if os.Getenv("REFBOX_FAULTS") == "" {
		t.Skip("takes minutes of real machines: task faults runs it")
	}
	d := realDriver(t)
	vmtest.Faults(t, vmtest.Fixture{
		Driver: d, Machine: conformMachine, Patience: 4 * time.Minute, Left: ourMachines,
		// Past the guest's page cache, into the disk's: what a killed QEMU would
		// leave, and a power cut does not. The journal must not flush meanwhile.
		Unflushed: "mount -o remount,commit=600 / && printf 'new\\n%04092d' 0 | dd of=/var/lib/cut/file bs=4096 count=1 conv=notrunc,nocreat oflag=direct iflag=fullblock status=none",
	})
}
