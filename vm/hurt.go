package vm

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Link is the host's end of a private link: the switch that its machines are
// plugged into. What it is told holds until it is told otherwise, over reboots
// and power cuts of the machines.
type Link interface {
	Spec() LinkSpec
	// Plug sets the carrier of one end: false pulls its cable.
	Plug(ctx context.Context, machine string, in bool) error
	// Impair replaces what happens to what one end sends another; the zero
	// Impairment is none.
	Impair(from, to string, i Impairment) error
}

// Impairment is what a link does to frames of one direction.
type Impairment struct {
	Drop  bool
	Loss  float64       // the part of the frames that is lost, in [0,1)
	Delay time.Duration // of each frame; their order is kept
}

// Addr is the address of a machine's end.
func (l LinkSpec) Addr(machine string) (string, error) {
	i := slices.Index(l.Ends, machine)
	if i < 0 {
		return "", fmt.Errorf("machine %q is no end of link %q", machine, l.Name)
	}
	return fmt.Sprintf("%s.%d", l.Subnet, 10+i), nil
}

// Disk is the host's end of a machine's disk. What it is told ends with a power
// cut.
type Disk interface {
	// Stall holds up all that the guest asks of its disk, until it is called
	// with false: nothing fails, nothing is answered.
	Stall(ctx context.Context, on bool) error
	// FailWrites answers the guest's writes and flushes with an I/O error. What
	// it could not write it has to do without once they are answered again: most
	// file systems stay read-only until the next boot.
	FailWrites(ctx context.Context, on bool) error
	// Lost is what the latest power cut took: bytes that the guest had written
	// and not flushed. A guest that flushed after each write lost nothing.
	Lost() int64
}
