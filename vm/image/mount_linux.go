package image

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayMount tells whether this process has CAP_SYS_ADMIN. Root in a container
// often lacks it; then mmdebstrap cannot mount anything either.
func mayMount() bool {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			return err == nil && caps>>unix.CAP_SYS_ADMIN&1 == 1
		}
	}
	return false
}

// ownMounts starts a process that mounts for itself and its children alone.
func ownMounts() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}
