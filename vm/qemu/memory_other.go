//go:build !linux

package qemu

import (
	"fmt"
	"os"

	"refbox/vm"
)

func memoryFile(string, string) (*os.File, error) {
	return nil, fmt.Errorf("%w: machines run on Linux alone", vm.ErrMissing)
}
