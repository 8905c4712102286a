package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"refbox/vm"
)

// scene is one fault's target, and what was seen of it before.
type scene struct {
	cluster vm.Cluster
	fault   Fault
	machine vm.Machine
	peer    vm.Machine // of a link's fault
	link    vm.Link

	bit  bool     // the fault was confirmed
	boot string   // the boot before
	pid  int      // the unit's main process before
	conn net.Conn // to the unit's port, open since before
	mem  int      // MiB available before
	told []reply  // what each machine's port gave before
}

func newScene(c vm.Cluster, f Fault) (*scene, error) {
	s := &scene{cluster: c, fault: f}
	machine := func(name string) (vm.Machine, error) {
		if m := c.Machine(name); m != nil {
			return m, nil
		}
		return nil, fmt.Errorf("the cluster has no machine %.40q", name)
	}
	var err error
	if s.machine, err = machine(f.Machine); err != nil {
		return nil, err
	}
	if f.Link == "" {
		return s, nil
	}
	i := slices.IndexFunc(c.Links(), func(l vm.Link) bool { return l.Spec().Name == f.Link })
	if i < 0 {
		return nil, fmt.Errorf("the cluster has no link %.40q", f.Link)
	}
	s.link = c.Links()[i]
	if s.peer, err = machine(f.Peer); err != nil {
		return nil, err
	}
	for _, end := range []string{f.Machine, f.Peer} {
		if _, err := s.link.Spec().Addr(end); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *scene) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// run runs a command in a machine and insists on its success.
func run(ctx context.Context, m vm.Machine, argv ...string) error {
	r, err := m.Guest().Run(ctx, argv, nil)
	if err != nil {
		return err
	}
	if r.Exit != 0 {
		return fmt.Errorf("%s exits with %d: %q", argv[0], r.Exit, firstLine(r.Stderr))
	}
	return nil
}

// held tells whether a forwarded port keeps a connection. QEMU takes every one, and
// ends at once those that nobody in the guest wants.
func held(ctx context.Context, m vm.Machine, port int) (conn net.Conn, saw string, err error) {
	addr, err := m.Addr(port)
	if err != nil {
		return nil, "", err
	}
	conn, err = vm.Dial(ctx, addr)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, "the port refuses connections", nil
	case err != nil:
		return nil, "", err
	}
	if ended(conn, 500*time.Millisecond) {
		conn.Close()
		return nil, "the port ends connections at once", nil
	}
	return conn, "the port keeps a connection", nil
}

// refuses is the sight of a port that keeps no connection.
func refuses(ctx context.Context, m vm.Machine, port int) (string, bool, error) {
	conn, saw, err := held(ctx, m, port)
	if conn != nil {
		conn.Close()
	}
	return saw, conn == nil, err
}

// ended tells whether the far end ends a connection within d. What it says
// meanwhile is thrown away.
func ended(c net.Conn, d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	buf := make([]byte, 512)
	for {
		if _, err := c.Read(buf); err != nil {
			var t net.Error
			return !(errors.As(err, &t) && t.Timeout())
		}
	}
}

// silence is how long a guest's agent must not answer to be taken for frozen. It
// answers in a few milliseconds; on a host with ten times its work in one second.
const silence = 3 * time.Second

func hello(ctx context.Context, m vm.Machine) (vm.Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	return m.Guest().Hello(ctx)
}

// answers is the sight of a machine that is up: its agent says hello, and its
// SSH port keeps a connection.
func answers(ctx context.Context, s *scene) (string, bool, error) {
	h, err := hello(ctx, s.machine)
	if err != nil {
		return "no hello", false, err
	}
	conn, saw, err := held(ctx, s.machine, 22)
	if conn == nil {
		return saw, false, err
	}
	conn.Close()
	return fmt.Sprintf("boot %s, up %.1f s; its SSH port keeps a connection", short(h.BootID), h.Uptime.Seconds()), true, nil
}

// short is a boot's id as a person reads it. It is the guest's word.
func short(id string) string { return strconv.QuoteToASCII(id[:min(8, len(id))]) }

// remember is answers, and keeps the boot.
func remember(ctx context.Context, s *scene) (string, bool, error) {
	saw, ok, err := answers(ctx, s)
	if !ok || err != nil {
		return saw, ok, err
	}
	h, err := hello(ctx, s.machine)
	s.boot = h.BootID
	return saw, err == nil, err
}

// newBoot is the sight of another boot than the remembered one.
func newBoot(ctx context.Context, s *scene) (string, bool, error) {
	h, err := hello(ctx, s.machine)
	if err != nil {
		return "no hello", false, err
	}
	return fmt.Sprintf("boot %s became %s, up %.1f s", short(s.boot), short(h.BootID), h.Uptime.Seconds()), h.BootID != s.boot, nil
}

// pinged is what a machine's ping of another says.
type pinged struct {
	sent, got int
	rtt       time.Duration // the average; 0 when nothing came back
}

func (p pinged) String() string {
	s := fmt.Sprintf("%d of %d pings answered", p.got, p.sent)
	if p.got > 0 {
		s += fmt.Sprintf(", in %.1f ms on average", float64(p.rtt.Microseconds())/1000)
	}
	return s
}

// pings are the peer's of the machine.
func pings(count int, every string) func(context.Context, *scene) (pinged, error) {
	return func(ctx context.Context, s *scene) (pinged, error) {
		return s.ping(ctx, s.peer, s.machine, count, every)
	}
}

func (s *scene) ping(ctx context.Context, from, to vm.Machine, count int, every string) (pinged, error) {
	addr, err := s.link.Spec().Addr(to.Name())
	if err != nil {
		return pinged{}, err
	}
	wait := strconv.Itoa(1 + (2*s.fault.DelayMS+999)/1000)
	r, err := from.Guest().Run(ctx, []string{"ping", "-q", "-n", "-c", strconv.Itoa(count), "-i", every, "-W", wait, addr}, nil)
	if err != nil {
		return pinged{}, err
	}
	p, ok := parsePing(string(r.Stdout))
	if !ok {
		return p, fmt.Errorf("ping exits with %d and says %q", r.Exit, firstLine(append(r.Stdout, r.Stderr...)))
	}
	return p, nil
}

// parsePing reads the summary of iputils' ping.
func parsePing(out string) (p pinged, ok bool) {
	for line := range strings.Lines(out) {
		if before, after, found := strings.Cut(line, " packets transmitted, "); found {
			n, err1 := strconv.Atoi(before)
			got, err2 := strconv.Atoi(strings.SplitN(after, " ", 2)[0])
			p.sent, p.got = n, got
			ok = err1 == nil && err2 == nil && n > 0 && got >= 0 && got <= n
		}
		if _, after, found := strings.Cut(line, "min/avg/max/mdev = "); found {
			if f := strings.Split(after, "/"); len(f) > 1 {
				ms, err := strconv.ParseFloat(f[1], 64)
				if err == nil && ms >= 0 && ms < 1e6 {
					p.rtt = time.Duration(ms * float64(time.Millisecond))
				}
			}
		}
	}
	return p, ok
}

// received is how many frames a machine's kernel has received on the link.
func (s *scene) received(ctx context.Context, m vm.Machine) (int, error) {
	b, err := m.Guest().ReadFile(ctx, fmt.Sprintf("/sys/class/net/eth%d/statistics/rx_packets", s.nic(m)), 32)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// nic is the number of a machine's NIC on the link: eth0 is the user network's,
// and the others follow in the order of the spec's links.
func (s *scene) nic(m vm.Machine) int {
	n := 1
	for _, l := range s.cluster.Links() {
		if l.Spec().Name == s.link.Spec().Name {
			break
		}
		if _, err := l.Spec().Addr(m.Name()); err == nil {
			n++
		}
	}
	return n
}

// available is the memory that the machine's kernel says can be had.
func available(ctx context.Context, s *scene) (mib int, err error) {
	b, err := s.machine.Guest().ReadFile(ctx, "/proc/meminfo", 4<<10)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 1 && f[0] == "MemAvailable:" {
			kb, err := strconv.Atoi(f[1])
			return kb / 1024, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// writes tries a durable write in the guest, and tells whether it was made within
// the time that a well disk never takes.
func (s *scene) writes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stallTime)
	defer cancel()
	err := s.machine.Guest().WriteFile(ctx, probeFile, make([]byte, 64<<10), 0o600)
	if err != nil {
		return err
	}
	return s.machine.Guest().Remove(ctx, probeFile)
}

const (
	stallTime = 4 * time.Second
	probeFile = "/var/tmp/.refbox-probe"
	fillFile  = "/var/tmp/.refbox-fill"
	hogFile   = "/dev/shm/.refbox-pressure"
)
