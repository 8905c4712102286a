package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh/knownhosts"

	"refbox/vm/child"
)

// Command is a player that is a program on this host: a CLI agent, a script, or
// an adapter written for the reference's contract (recordings reference, section
// 6).
//
// It runs as whoever runs refbox, in a private folder, with nothing on its
// standard input and terminals of its own for its output and its errors, which
// are recorded. It has no controlling terminal: what would ask for a password
// fails instead of waiting. Its environment is what environment below says; of the
// host's only harmless variables and the ones that Env names are in it. It is
// ended as a process group, and so is whatever it started that left the group
// and kept its environment.
type Command struct {
	Argv []string // the program, looked up on PATH, and its arguments; no secrets
	// Env are variables that the program needs beside the harmless ones, such as
	// an API key. They are in its environment and its credential file, and hidden
	// in everything that is recorded of it.
	Env map[string]string
	// Strict holds the program to the reference's contract: to leave no result.json
	// is then a fault of the harness. Otherwise its exit status decides.
	Strict bool
}

// Check looks for the program.
func (c Command) Check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("a command is needed: a program on PATH or a path, and its arguments")
	}
	_, err := exec.LookPath(c.Argv[0])
	return err
}

// CommandPlayer is the player that runs c.
func CommandPlayer(c Command) Player { return commandPlayer{c} }

type commandPlayer struct{ c Command }

// Times of a command that is told to end.
const (
	drainGrace = 20 * time.Second // at the freeze, or when its time is over: to leave its artefacts
	drainSpare = 2 * time.Second  // of the drain's time, for what is done after that
	abortGrace = time.Second
)

// terminal's size, as of a wide window.
const termCols, termRows = 120, 40

func (p commandPlayer) Play(ctx context.Context, seat Seat, report Report) Result {
	harness := func(format string, a ...any) Result {
		return Result{Status: HarnessError, Summary: fmt.Sprintf(format, a...)}
	}
	path, err := exec.LookPath(p.c.Argv[0])
	if err == nil {
		path, err = filepath.Abs(path) // it runs in another folder
	}
	if err != nil {
		return harness("the program cannot be started: %v", err)
	}
	b, err := layBench(seat, p.c)
	if err != nil {
		return harness("prepare the program's folder: %v", err)
	}
	defer b.clear()
	term := seat.Terminal
	if term == nil {
		term = func(string, int, int) Terminal { return nowhere{} }
	}
	t := term(strings.Join(p.c.Argv, " "), termCols, termRows)
	var exit *int
	detail := ""
	defer func() { t.Close(exit, detail) }()

	run, err := b.start(path, p.c.Argv[1:], t)
	if err != nil {
		detail = "not started"
		return harness("%s cannot be started: %v", p.c.Argv[0], err)
	}
	watch, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { b.watch(watch, report) })
	state, cut := run.wait(ctx, seat.Drain)
	stopWatching()
	wg.Wait()
	if n := state.ExitCode(); n >= 0 {
		exit = &n
	} else {
		detail = state.String()
	}
	report.Usage(b.usage())
	transcript := b.keep()
	r := b.result(state, cut, p.c.Strict, CutStatus(ctx))
	r.Usage = r.Usage.Most(b.usage())
	r.Transcript = transcript
	r.Summary = b.secrets.HideText(r.Summary)
	return r
}

// bench is a program's folder, and what is known of the seat there.
type bench struct {
	seat    Seat
	dir     string // the program's working folder
	own     string // removed at the end; "" when the seat's owner does that
	env     []string
	token   string // marks the program's processes
	secrets Secrets

	mu     sync.Mutex
	charge Usage
	taken  map[string]int // room for the seat's files, by name
}

// layBench writes what a program is given: key, known_hosts, an ssh
// configuration, the brief and the credential file.
func layBench(seat Seat, c Command) (_ *bench, err error) {
	b := &bench{seat: seat, token: newToken(), taken: map[string]int{}}
	base := seat.Private
	if base == "" {
		if base, err = os.MkdirTemp("", "refbox-player-"); err != nil {
			return nil, err
		}
		b.own = base
	}
	b.dir = filepath.Join(base, "player")
	defer func() {
		if err != nil {
			b.clear()
		}
	}()
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	host, port, ok := strings.Cut(seat.Login.Addr, ":")
	if !ok {
		return nil, fmt.Errorf("the gateway's address %q has no port", seat.Login.Addr)
	}
	words := []string{seat.Login.Password}
	credentials := map[string]string{"AOE_SSH_PASSWORD": seat.Login.Password}
	for k, v := range c.Env {
		words = append(words, v)
		credentials[k] = v
	}
	b.secrets = NewSecrets(words...)

	var brief []byte
	if seat.Brief != "" {
		if brief, err = os.ReadFile(seat.Brief); err != nil {
			return nil, err
		}
	}
	var quoted strings.Builder
	for _, k := range slices.Sorted(maps.Keys(credentials)) {
		fmt.Fprintf(&quoted, "%s='%s'\n", k, strings.ReplaceAll(credentials[k], "'", `'\''`))
	}
	known := ""
	if seat.Login.HostKey != nil {
		known = knownhosts.Line([]string{knownhosts.Normalize(seat.Login.Addr)}, seat.Login.HostKey) + "\n"
	}
	files := map[string][]byte{
		"instruction.md": brief, "credentials": []byte(quoted.String()), "known_hosts": []byte(known),
		"ssh_config": []byte(b.sshConfig(host, port)), "stdout.log": nil, "stderr.log": nil,
	}
	if seat.Login.KeyFile != "" {
		if files["id_ed25519"], err = os.ReadFile(seat.Login.KeyFile); err != nil {
			return nil, err
		}
	}
	for name, data := range files {
		if err := writeFile(filepath.Join(b.dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	b.env = b.environment(c, host, port)
	return b, nil
}

// sshConfig names each machine; "ssh -F $REFBOX_SSH_CONFIG MACHINE" is all that a
// player needs.
func (b *bench) sshConfig(host, port string) string {
	var s strings.Builder
	for i, m := range b.seat.Login.Machines {
		names := m
		if i == 0 && m != "seat" {
			names += " seat"
		}
		fmt.Fprintf(&s, "Host %s\n  User %s\n", names, m)
	}
	fmt.Fprintf(&s, "Host *\n  HostName %s\n  Port %s\n  UserKnownHostsFile %q\n  StrictHostKeyChecking yes\n  HostKeyAlias %s\n  ControlMaster no\n  ServerAliveInterval 5\n",
		host, port, filepath.Join(b.dir, "known_hosts"), knownhosts.Normalize(b.seat.Login.Addr))
	if b.seat.Login.KeyFile != "" {
		fmt.Fprintf(&s, "  IdentityFile %q\n  IdentitiesOnly yes\n", filepath.Join(b.dir, "id_ed25519"))
	}
	return s.String()
}

// harmless are the host's variables that every program is given. A proxy's may
// hold a password, so they are not among them.
var harmless = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}

// environment is the program's: the reference's contract, and ours.
func (b *bench) environment(c Command, host, port string) []string {
	at := func(name string) string { return filepath.Join(b.dir, name) }
	s := b.seat
	env := map[string]string{
		"TERM": "xterm-256color", "COLUMNS": strconv.Itoa(termCols), "LINES": strconv.Itoa(termRows),

		"AOE_AGENT_ID": s.Agent, "AOE_TERRITORY_ID": s.Territory, "AOE_TERRITORY_HOST": host, "AOE_SSH_PORT": port,
		"AOE_MODEL": s.Model, "AOE_REASONING_EFFORT": s.ReasoningEffort, "AOE_INSTRUCTION_FILE": at("instruction.md"),
		"AOE_RESULT_FILE": at("result.json"), "AOE_USAGE_FILE": at("usage.json"),
		"AOE_STDOUT_FILE": at("stdout.log"), "AOE_STDERR_FILE": at("stderr.log"),
		"AOE_CREDENTIAL_FILE": at("credentials"), "AOE_PLAYER_ARTIFACTS_JSON": "[]",

		"REFBOX_AGENT": s.Agent, "REFBOX_TERRITORY": s.Territory, "REFBOX_MODEL": s.Model, "REFBOX_REASONING_EFFORT": s.ReasoningEffort,
		"REFBOX_BRIEF": at("instruction.md"), "REFBOX_DIR": b.dir, "REFBOX_MACHINES": strings.Join(s.Login.Machines, " "),
		"REFBOX_SSH_HOST": host, "REFBOX_SSH_PORT": port, "REFBOX_SSH_USER": s.Login.User,
		"REFBOX_SSH_KNOWN_HOSTS": at("known_hosts"), "REFBOX_SSH_CONFIG": at("ssh_config"),
		"REFBOX_CREDENTIAL_FILE": at("credentials"), "REFBOX_TRANSCRIPT": at("transcript.jsonl"), tokenName: b.token,
	}
	if s.Login.KeyFile != "" {
		env["REFBOX_SSH_KEY"] = at("id_ed25519")
	}
	if !s.Deadline.IsZero() {
		env["REFBOX_SECONDS"] = strconv.Itoa(int(time.Until(s.Deadline).Seconds()))
	}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if slices.Contains(harmless, k) || strings.HasPrefix(k, "LC_") {
			env[k] = v
		}
	}
	maps.Copy(env, c.Env)
	out := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

func (b *bench) clear() {
	if b.own != "" {
		os.RemoveAll(b.own)
		return
	}
	// What the seat's owner would remove later anyway.
	os.Remove(filepath.Join(b.dir, "credentials"))
	os.Remove(filepath.Join(b.dir, "id_ed25519"))
}

// program is a running command.
type program struct {
	proc   *os.Process
	token  string
	exited chan struct{}
	state  *os.ProcessState // after exited
	output sync.WaitGroup   // the copying of its terminals
	ours   []*os.File
}

// start starts the program on two terminals, whose output goes to t and to the
// contract's files.
func (b *bench) start(path string, args []string, t io.Writer) (*program, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	p := &program{token: b.token, exited: make(chan struct{})}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for _, stream := range []string{"stdout.log", "stderr.log"} {
		our, their, err := pty.Open()
		if err != nil {
			p.closeTerminals()
			return nil, fmt.Errorf("open a terminal: %w", err)
		}
		p.ours, theirs = append(p.ours, our), append(theirs, their)
		if err := pty.Setsize(our, &pty.Winsize{Rows: termRows, Cols: termCols}); err != nil {
			p.closeTerminals()
			return nil, fmt.Errorf("size a terminal: %w", err)
		}
		log, err := os.OpenFile(filepath.Join(b.dir, stream), os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			p.closeTerminals()
			return nil, err
		}
		p.output.Go(func() {
			defer log.Close()
			// Of its own for each stream: the other's output may come in between.
			shown := &veiled{to: t, hide: hider{secrets: b.secrets}}
			defer shown.flush()
			left := maxKept
			copyStream(shown, our, func(data []byte) {
				data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the terminal's doing
				data = data[:min(len(data), left)]
				left -= len(data)
				log.Write(data) //nolint:errcheck // a full disk must not stop a player
			})
		})
	}
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[1]
	if err := child.Start(cmd, func() {
		p.state = cmd.ProcessState
		close(p.exited)
	}); err != nil {
		for _, f := range theirs {
			f.Close()
		}
		theirs = nil
		p.closeTerminals()
		p.output.Wait()
		return nil, err
	}
	p.proc = cmd.Process
	return p, nil
}

func (p *program) closeTerminals() {
	for _, f := range p.ours {
		f.Close()
	}
}

// wait waits for the program, which ctx ends. When it returns, nothing of the
// program lives. Cut says that the program was told to end before it did.
func (p *program) wait(ctx context.Context, drain time.Duration) (state *os.ProcessState, cut bool) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		select {
		case <-p.exited: // at the same moment: it ended by itself
		default:
			cut = true
			p.end(ctx, drain)
		}
	}
	endGroup(p.proc.Pid, p.token)
	<-p.exited
	// Nobody has the other ends any more, so all output has come; but a process
	// that escaped must not hold us up.
	drained := make(chan struct{})
	go func() { p.output.Wait(); close(drained) }()
	timer := time.AfterFunc(2*time.Second, p.closeTerminals)
	<-drained
	timer.Stop()
	p.closeTerminals()
	return p.state, cut
}

// end asks the program to end and gives it time for its artefacts.
func (p *program) end(ctx context.Context, drain time.Duration) {
	grace := abortGrace
	if cause := context.Cause(ctx); errors.Is(cause, ErrFrozen) || outOfTime(ctx) {
		grace = max(abortGrace, min(drainGrace, drain-drainSpare))
	}
	askGroup(p.proc.Pid)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
	}
}

// veiled shows a stream without its secrets.
type veiled struct {
	to   io.Writer
	hide hider
}

func (w *veiled) Write(p []byte) (int, error) {
	w.to.Write(w.hide.next(p)) //nolint:errcheck // a Terminal never fails
	return len(p), nil
}

func (w *veiled) flush() { w.to.Write(w.hide.rest()) } //nolint:errcheck // a Terminal never fails

// nowhere is a terminal that nobody records.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close(*int, string)          {}
