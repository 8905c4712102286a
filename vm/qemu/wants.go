package qemu

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/vm"
)

// The initrd's words (assets/guest/init). Between the start of a process and
// "handing over" only the host's own kernel and initrd run, so nobody in the guest
// can have printed them, nor keep them from being read.
const (
	bootSays    = "refbox-boot: "
	handingOver = bootSays + "handing over"
)

// rebootWanting reboots by way of another process: one process has one kernel
// command line for all its boots.
func (m *machine) rebootWanting(ctx context.Context, b *boot, wants []string) error {
	if err := b.onReboot(ctx, "shutdown"); err != nil {
		return err
	}
	err := m.guest.Reboot(ctx)
	if err == nil {
		select {
		case <-b.life.Done():
		case <-ctx.Done():
			err = wentDown(context.Cause(ctx))
		}
	}
	if err != nil {
		// A later reboot, its own, is none that ends it.
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if undo := b.onReboot(back, "reset"); undo != nil && b.life.Err() == nil {
			err = errors.Join(err, undo)
		}
		return err
	}
	if b.witness.shutdownReason() != "guest-reset" {
		return wentDown(errEnded)
	}
	p := m.again
	p.KernelArg += " refbox.order=" + rand.Text() // by which the initrd obeys it once
	for _, w := range wants {
		p.KernelArg += " refbox.wants=" + w
	}
	h := &head{}
	defer m.console.Attach(h.add)()
	next, err := m.launch(ctx, p)
	if err != nil {
		return fmt.Errorf("%w: it is off, and does not start again: %w", vm.ErrTransport, err)
	}
	err = cameBack(m.firstHello(ctx, next, p.Accel))
	if said := h.read(); said.altered != "" {
		return fmt.Errorf("%w: the referee's helper was altered: /%s is not what the image holds", vm.ErrGuestRefused, said.altered)
	} else if err == nil && !slices.Equal(said.wants, wants) {
		return fmt.Errorf("%w: the boot wants %q, and the initrd confirms %q", vm.ErrTransport, wants, said.wants)
	}
	return err
}

// onReboot says what QEMU does when the guest resets the machine.
func (b *boot) onReboot(ctx context.Context, action string) error {
	return b.qmp.run(ctx, "set-action", map[string]string{"reboot": action}, nil)
}

// head is what a process printed first, up to the handing over.
type head struct {
	mu   sync.Mutex
	b    []byte
	over bool
}

// headBytes bounds a head: a quiet kernel and the initrd print a few lines.
const headBytes = 64 << 10

func (h *head) add(chunk []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.b = append(h.b, chunk[:min(len(chunk), headBytes-len(h.b))]...)
	if i := bytes.Index(h.b, []byte(handingOver)); i >= 0 {
		h.b, h.over = h.b[:i], true
	}
}

// said is what the initrd said: the first altered file, and the units that the
// boot wants. Without the handing over it has confirmed nothing.
type said struct {
	altered string
	wants   []string
}

func (h *head) read() (s said) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		return s
	}
	for line := range strings.Lines(string(h.b)) {
		_, words, _ := strings.Cut(strings.TrimSpace(line), bootSays)
		switch word, rest, _ := strings.Cut(words, " "); {
		case word == "altered" && s.altered == "":
			s.altered = rest
		case word == "wants":
			s.wants = append(s.wants, rest)
		}
	}
	return s
}
