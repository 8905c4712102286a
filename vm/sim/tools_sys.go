package sim

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func toolHostname(t *run) int {
	opts, rest := t.flags("F")
	if len(rest) > 0 {
		t.b.mu.Lock()
		t.b.host = rest[0]
		t.b.mu.Unlock()
		return 0
	}
	if has(opts, "I", "i") {
		t.printf("%s\n", guestIP)
		return 0
	}
	t.printf("%s\n", t.b.hostname())
	return 0
}

func toolID(t *run) int {
	opts, _ := t.flags("")
	switch {
	case has(opts, "n"):
		t.printf("root\n")
	case has(opts, "u", "g", "G"):
		t.printf("0\n")
	default:
		t.printf("uid=0(root) gid=0(root) groups=0(root)\n")
	}
	return 0
}

func toolUname(t *run) int {
	opts, _ := t.flags("")
	var f []string
	add := func(s string, names ...string) {
		if has(opts, names...) || has(opts, "a") {
			f = append(f, s)
		}
	}
	if len(opts) == 0 {
		f = append(f, "Linux")
	}
	add("Linux", "s")
	add(t.b.hostname(), "n")
	add("6.1.0-sim-amd64", "r")
	add("#1 SMP PREEMPT_DYNAMIC", "v")
	add("x86_64", "m", "p", "i")
	add("GNU/Linux", "o")
	t.printf("%s\n", strings.Join(f, " "))
	return 0
}

// toolDate prints the time; it sets none.
func toolDate(t *run) int {
	now := t.b.now()
	format := "%a %b %e %H:%M:%S %Z %Y"
	for i, a := range t.args {
		switch {
		case a == "-u" || a == "--utc":
			now = now.UTC()
		case a == "-s" || strings.HasPrefix(a, "--set"):
			return t.fail(1, "cannot set date: a simulated machine has the host's clock")
		case strings.HasPrefix(a, "+"):
			format = a[1:]
		case a == "-Is" || a == "-Iseconds":
			format = "%Y-%m-%dT%H:%M:%S%:z"
		case a == "-d" && i+1 < len(t.args) && strings.HasPrefix(t.args[i+1], "@"):
			n, _ := strconv.ParseInt(t.args[i+1][1:], 10, 64)
			now = time.Unix(n, 0)
		}
	}
	var s strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			s.WriteByte(format[i])
			continue
		}
		i++
		layout := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'Z': "MST", 'z': "-0700", 'a': "Mon", 'b': "Jan",
			'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'y': "06", 'B': "January", 'A': "Monday", 'p': "PM", 'I': "03"}
		switch c := format[i]; {
		case c == 's':
			fmt.Fprintf(&s, "%d", now.Unix())
		case c == 'N':
			fmt.Fprintf(&s, "%09d", now.Nanosecond())
		case c == '3' && strings.HasPrefix(format[i:], "3N"):
			i++
			fmt.Fprintf(&s, "%03d", now.Nanosecond()/1e6)
		case c == 'j':
			fmt.Fprintf(&s, "%03d", now.YearDay())
		case c == ':' && strings.HasPrefix(format[i:], ":z"):
			i++
			s.WriteString(now.Format("-07:00"))
		case c == '%':
			s.WriteByte('%')
		case layout[c] != "":
			s.WriteString(now.Format(layout[c]))
		default:
			s.WriteString(format[i-1 : i+1])
		}
	}
	t.printf("%s\n", s.String())
	return 0
}

func toolSync(t *run) int {
	_, rest := t.flags("")
	if len(rest) == 0 {
		t.b.fs.Sync()
		return 0
	}
	for _, a := range rest {
		if err := t.b.fs.SyncFile(t.Path(a)); err != nil {
			return t.fail(1, "error opening '%s': %s", a, errText(err))
		}
	}
	return 0
}

func toolNproc(t *run) int {
	t.printf("%d\n", max(t.b.m.spec.VCPUs, 1))
	return 0
}

func toolFree(t *run) int {
	n := t.b.m.spec.MemoryMiB * 1024
	opts, _ := t.flags("")
	if has(opts, "m") {
		n /= 1024
	}
	t.printf("               total        used        free\nMem:    %12d%12d%12d\n", n, n/2, n/2)
	return 0
}

func toolUptime(t *run) int {
	t.printf(" %s up %s,  0 user,  load average: 0.00, 0.00, 0.00\n", time.Now().Format("15:04:05"), t.b.uptime().Round(time.Second))
	return 0
}

func toolPs(t *run) int {
	t.printf("    PID    PPID COMMAND\n      1       0 /sbin/init\n")
	for _, p := range t.b.processes() {
		t.printf("%7d %7d %s\n", p.pid, p.ppid(), strings.Join(p.Args, " "))
	}
	return 0
}

func signalNumber(s string) syscall.Signal {
	if n, err := strconv.Atoi(s); err == nil {
		return syscall.Signal(n)
	}
	return map[string]syscall.Signal{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15, "CONT": 18, "STOP": 19}[strings.TrimPrefix(strings.ToUpper(s), "SIG")]
}

// takeSignal takes "-9", "-KILL" and "-s KILL" from a command line.
func takeSignal(args []string) (syscall.Signal, []string) {
	sig := syscall.SIGTERM
	var rest []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if (a == "-s" || a == "--signal") && i+1 < len(args) {
			i++
			sig = signalNumber(args[i])
			continue
		}
		if v, ok := strings.CutPrefix(a, "--signal="); ok {
			sig = signalNumber(v)
			continue
		}
		if len(a) > 1 && a[0] == '-' {
			if n := signalNumber(a[1:]); n != 0 || a == "-0" {
				sig = n
				continue
			}
		}
		rest = append(rest, a)
	}
	return sig, rest
}

func toolKill(t *run) int {
	sig, rest := takeSignal(t.args)
	if len(rest) == 0 {
		return t.fail(2, "usage: kill [-s sigspec] pid ...")
	}
	code := 0
	for _, a := range rest {
		pid, err := strconv.Atoi(a)
		if err != nil {
			code = t.fail(1, "%s: arguments must be process ids", a)
			continue
		}
		t.b.mu.Lock()
		p := t.b.procs[pid]
		t.b.mu.Unlock()
		switch {
		case pid == 1:
		case p == nil:
			code = t.fail(1, "(%d) - No such process", pid)
		default:
			p.signal(sig)
		}
	}
	return code
}

// toolPgrep is pgrep and pkill. A process never matches itself or its parents.
func toolPgrep(t *run) int {
	sig, args := syscall.SIGTERM, t.args
	if t.name() == "pkill" {
		sig, args = takeSignal(args)
	}
	full, exact, list := false, false, false
	var pats []string
	for _, a := range args {
		if len(a) > 1 && a[0] == '-' {
			full = full || strings.Contains(a, "f")
			exact = exact || strings.Contains(a, "x")
			list = list || strings.ContainsAny(a, "al")
			continue
		}
		pats = append(pats, a)
	}
	if len(pats) != 1 {
		return t.fail(2, "no matching criteria specified")
	}
	pat := pats[0]
	if exact {
		pat = "^(?:" + pat + ")$"
	}
	re, err := regexp.Compile(pat)
	if err != nil {
		return t.fail(2, "%v", err)
	}
	mine := map[*Process]bool{}
	for p := t.Process; p != nil; p = p.parent {
		mine[p] = true
	}
	code := 1
	for _, p := range t.b.processes() {
		text := p.name()
		if full {
			text = strings.Join(p.Args, " ")
		}
		if mine[p] || !re.MatchString(text) {
			continue
		}
		code = 0
		switch {
		case t.name() == "pkill":
			p.signal(sig)
		case list:
			t.printf("%d %s\n", p.pid, strings.Join(p.Args, " "))
		default:
			t.printf("%d\n", p.pid)
		}
	}
	return code
}

func toolSs(t *run) int {
	opts, _ := t.flags("")
	procs := has(opts, "p", "processes")
	if !has(opts, "H") {
		t.printf("State  Recv-Q Send-Q Local Address:Port Peer Address:Port%s\n", map[bool]string{true: " Process", false: ""}[procs])
	}
	if has(opts, "u") && !has(opts, "t") {
		return 0
	}
	for _, l := range t.b.listeners() {
		line := fmt.Sprintf("LISTEN 0      %-6d %s:%d 0.0.0.0:*", backlog, l.IP, l.Port)
		if procs {
			line += fmt.Sprintf(" users:((%q,pid=%d,fd=3))", l.Process, l.PID)
		}
		t.printf("%s\n", line)
	}
	return 0
}

func toolChpasswd(t *run) int {
	data, _ := io.ReadAll(io.LimitReader(t.in, 1<<16))
	for line := range strings.Lines(string(data)) {
		user, pw, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || user != "root" {
			return t.fail(1, "user '%s' does not exist", user)
		}
		shadow, err := shadowLine(pw)
		if err == nil {
			err = t.b.fs.WriteFile("/etc/shadow", []byte(shadow), os.FileMode(0o640))
		}
		if err != nil {
			return t.fail(1, "%s", errText(err))
		}
	}
	return 0
}

// sortedPorts are the listening sockets by port.
func (b *boot) sortedPorts() []*port {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Clone(b.ports)
	slices.SortFunc(list, func(x, y *port) int { return x.num - y.num })
	return list
}
