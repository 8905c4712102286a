package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"refbox/vm"
)

// now is the guest's wall clock.
func (b *boot) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

// SetClock sets the guest's wall clock; files and logs keep the host's.
func (m *machine) SetClock(ctx context.Context, ahead time.Duration) error {
	g := guest{m}
	b, err := g.call(ctx, "set clock")
	if err != nil {
		return err
	}
	b.ahead.Store(int64(ahead))
	return g.answered(ctx, b, "set clock", nil)
}

// store is the host's end of a machine's disk.
type store struct {
	mu     sync.Mutex
	stall  chan struct{} // nil: not stalled; closed when it ends
	broken bool
	lost   int64 // written under machine.mu
}

// take waits while the disk is stalled, and fails while its writes do.
func (s *store) take(ctx context.Context) error {
	for {
		s.mu.Lock()
		stall, broken := s.stall, s.broken
		s.mu.Unlock()
		if stall == nil {
			if broken {
				return syscall.EIO
			}
			return nil
		}
		select {
		case <-stall:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *store) mend() {
	s.setStall(false)
	s.mu.Lock()
	s.broken = false
	s.mu.Unlock()
}

func (s *store) setStall(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case on && s.stall == nil:
		s.stall = make(chan struct{})
	case !on && s.stall != nil:
		close(s.stall)
		s.stall = nil
	}
}

type machineDisk struct{ m *machine }

func (m *machine) Disk() vm.Disk { return machineDisk{m} }

func (d machineDisk) on() error {
	if d.m.current() == nil {
		return fmt.Errorf("disk of machine %s: %w: it is off", d.m.spec.Name, vm.ErrPower)
	}
	return nil
}

func (d machineDisk) Stall(_ context.Context, on bool) error {
	if err := d.on(); err != nil {
		return err
	}
	d.m.store.setStall(on)
	return nil
}

func (d machineDisk) FailWrites(_ context.Context, on bool) error {
	if err := d.on(); err != nil {
		return err
	}
	d.m.store.mu.Lock()
	defer d.m.store.mu.Unlock()
	d.m.store.broken = on
	return nil
}

func (d machineDisk) Lost() int64 {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return d.m.store.lost
}

// links are those that the machine is an end of, in the order of its NICs.
func (m *machine) links() []vm.LinkSpec {
	return slices.DeleteFunc(slices.Clone(m.cl.spec.Links), func(l vm.LinkSpec) bool { return !slices.Contains(l.Ends, m.spec.Name) })
}

// hurt is what is wrong with a cluster's links.
type hurt struct {
	mu       sync.Mutex
	ways     map[[3]string]vm.Impairment // link, from, to
	pulled   map[[2]string]bool          // link, machine
	received map[[2]string]int           // link, machine: frames
	news     chan struct{}               // closed at the next change
}

func newHurt() *hurt {
	return &hurt{ways: map[[3]string]vm.Impairment{}, pulled: map[[2]string]bool{}, received: map[[2]string]int{}, news: make(chan struct{})}
}

func (h *hurt) change(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
	close(h.news)
	h.news = make(chan struct{})
}

func (h *hurt) count(link, machine string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.received[[2]string{link, machine}]
}

// send sends one frame, and tells whether and when it arrives.
func (h *hurt) send(link, from, to string) (delay time.Duration, ok bool, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.ways[[3]string{link, from, to}]
	ok = !i.Drop && !h.pulled[[2]string{link, from}] && !h.pulled[[2]string{link, to}] && (i.Loss == 0 || rand.Float64() >= i.Loss)
	if ok {
		h.received[[2]string{link, to}]++
	}
	return i.Delay, ok, h.news
}

var errLost = errors.New("lost on its way")

// roundTrip sends a frame over the link of the address ip and waits for the
// answer's arrival; errLost, and when the link changes, if one is lost.
func (c *cluster) roundTrip(ctx context.Context, from, to *machine, ip string) (<-chan struct{}, error) {
	link := c.spec.Links[c.linkOf[ip]].Name
	there, ok, news := c.hurt.send(link, from.spec.Name, to.spec.Name)
	if !ok {
		return news, errLost
	}
	if to.current() == nil || !to.gate.isOpen() {
		return news, errLost
	}
	back, ok, news := c.hurt.send(link, to.spec.Name, from.spec.Name)
	if !ok {
		return news, errLost
	}
	if there+back == 0 {
		return news, nil
	}
	return news, sleep(ctx, there+back)
}

// cross takes a piece of a TCP connection over a link: what is lost is sent again,
// until it arrives.
func (c *cluster) cross(ctx context.Context, from, to *machine, ip string) error {
	for again := 50 * time.Millisecond; ; again = min(2*again, time.Second) {
		news, err := c.roundTrip(ctx, from, to, ip)
		if !errors.Is(err, errLost) {
			return err
		}
		t := time.NewTimer(again)
		select {
		case <-t.C:
		case <-news:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

type clusterLink struct {
	c    *cluster
	spec vm.LinkSpec
}

func (c *cluster) Links() []vm.Link {
	var out []vm.Link
	for _, l := range c.spec.Links {
		out = append(out, clusterLink{c, l})
	}
	return out
}

func (l clusterLink) Spec() vm.LinkSpec { return l.spec }

func (l clusterLink) Plug(_ context.Context, machine string, in bool) error {
	if _, err := l.spec.Addr(machine); err != nil {
		return err
	}
	l.c.hurt.change(func() { l.c.hurt.pulled[[2]string{l.spec.Name, machine}] = !in })
	return nil
}

func (l clusterLink) Impair(from, to string, i vm.Impairment) error {
	for _, m := range []string{from, to} {
		if _, err := l.spec.Addr(m); err != nil {
			return err
		}
	}
	l.c.hurt.change(func() { l.c.hurt.ways[[3]string{l.spec.Name, from, to}] = i })
	return nil
}

// toolPing is iputils' ping of a machine on a private link.
func toolPing(t *run) int {
	opts, rest := t.flags("ciW")
	if len(rest) != 1 {
		return t.fail(2, "usage error: Destination address required")
	}
	ip, err := t.b.resolve(rest[0])
	if err != nil {
		return t.fail(2, "%s: Name or service not known", rest[0])
	}
	count, interval, patience := 0, 1.0, 10.0
	if v, ok := opts["c"]; ok {
		count, _ = strconv.Atoi(v)
	}
	if v, ok := opts["i"]; ok {
		interval, _ = strconv.ParseFloat(v, 64)
	}
	if v, ok := opts["W"]; ok {
		patience, _ = strconv.ParseFloat(v, 64)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	sent, got := 0, 0
	var sum time.Duration
	for ; (count == 0 || sent < count) && t.ctx.Err() == nil; sent++ {
		if sent > 0 && sleep(t.ctx, time.Duration(interval*float64(time.Second))) != nil {
			break
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.ctx, time.Duration(patience*float64(time.Second)))
			defer cancel()
			began := time.Now()
			if !t.b.echo(ctx, ip) {
				<-ctx.Done()
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got++
			sum += time.Since(began)
		})
	}
	wg.Wait()
	t.printf("PING %s (%s) 56(84) bytes of data.\n\n--- %s ping statistics ---\n%d packets transmitted, %d received, %d%% packet loss, time 0ms\n",
		rest[0], ip, rest[0], sent, got, (sent-got)*100/max(sent, 1))
	if got == 0 {
		return 1
	}
	ms := float64(sum.Microseconds()) / 1000 / float64(got)
	t.printf("rtt min/avg/max/mdev = %.3f/%.3f/%.3f/0.000 ms\n", ms, ms, ms)
	return 0
}

// echo tells whether one ping is answered.
func (b *boot) echo(ctx context.Context, ip string) bool {
	if b.owns(ip) {
		return true
	}
	to := b.m.cl.ips[ip]
	if to == nil || !b.m.cl.linked(b.m, to, ip) {
		return false
	}
	_, err := b.m.cl.roundTrip(ctx, b.m, to, ip)
	return err == nil
}

// toolFallocate makes a file larger without writing it.
func toolFallocate(t *run) int {
	opts, rest := t.flags("ol")
	off, _ := strconv.ParseInt(opts["o"], 10, 64)
	n, err := strconv.ParseInt(opts["l"], 10, 64)
	if err != nil || n <= 0 || off < 0 || len(rest) != 1 {
		return t.fail(1, "no length argument specified")
	}
	if err := t.b.fs.Allocate(t.Path(rest[0]), off+n); err != nil {
		return t.fail(1, "fallocate failed: %s", errText(err))
	}
	return 0
}
