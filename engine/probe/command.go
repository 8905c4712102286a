package probe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"refbox/engine/internal/pause"
)

// command is a verifier that is an executable of the arena's package (recordings
// reference, sections 5.1 and 5.2). It sees the seat as the reference's verifiers
// do: the ports and the password of root. Every run has a folder of its own, so
// no evidence of an earlier run can be taken for its own, and a process group of
// its own, which is killed when the run ends.
type command struct {
	name string
	sha  string
	// beside are the files of its folder, itself included: it may source others.
	beside map[string][]byte
}

func loadCommand(name string, file []byte, beside map[string][]byte) *command {
	sum := sha256.Sum256(file)
	beside[path.Base(name)] = file
	return &command{name: name, sha: hex.EncodeToString(sum[:]), beside: beside}
}

func (c *command) SHA256() string                              { return c.sha }
func (c *command) Before(context.Context, *Attempt) error      { return nil }
func (c *command) Boot() *Boot                                 { return nil }
func (c *command) Attacks() []string                           { return nil }
func (c *command) Attack(context.Context, *Attempt, int) error { return nil }
func (c *command) Undo(context.Context, *Attempt, int) error   { return nil }
func (c *command) Holds(context.Context, *Attempt) error       { return nil }

const commandForgeable = "what the executable does not see for itself from outside: it reaches the guest as root, whom the player also is"

// Verify runs the executable.
func (c *command) Verify(ctx context.Context, a *Attempt) (json.RawMessage, error) {
	// What it does to the seat is not seen, so the worst is assumed.
	a.disrupted = true
	dir, err := os.MkdirTemp("", "refbox-verify-")
	if err != nil {
		return nil, failure(Transport, "verifier %s: %v", c.name, err)
	}
	defer os.RemoveAll(dir)
	var evidence json.RawMessage
	r := Record{Call: "exec", Request: map[string]any{"file": c.name}, Forgeable: commandForgeable}
	err = a.call(ctx, r, a.Seat.c.Machines[0], func(ctx context.Context) (map[string]any, error) {
		var stderr string
		evidence, stderr, err = c.run(ctx, a, dir)
		a.look([]byte(stderr))
		return map[string]any{"stderr": bounded(stderr, maxShown)}, err
	})
	if f := (*Failure)(nil); errors.As(err, &f) && f.Category == Contract {
		a.refuse(f.Reason)
	}
	return evidence, err
}

func (c *command) run(ctx context.Context, a *Attempt, dir string) (json.RawMessage, string, error) {
	env, err := c.environment(a, dir)
	if err != nil {
		return nil, "", err
	}
	own := filepath.Join(dir, "verify")
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, "", failure(Transport, "verifier %s: %v", c.name, err)
	}
	for name, data := range c.beside {
		if err := os.WriteFile(filepath.Join(own, name), data, 0o700); err != nil {
			return nil, "", failure(Transport, "verifier %s: %v", c.name, err)
		}
	}
	file := filepath.Join(own, path.Base(c.name))
	out := &head{left: maxBody}
	for try := 0; ; try++ {
		cmd := exec.CommandContext(ctx, file)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		err = cmd.Run()
		if cmd.Process != nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left running
		}
		// A child of another goroutine may hold the file open for writing for an
		// instant, between its fork and its exec.
		if !errors.Is(err, syscall.ETXTBSY) || try == 10 || !pause.For(ctx, 10*time.Millisecond) {
			break
		}
	}
	stderr := out.String()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, stderr, ctx.Err()
	case errors.As(err, &exit) && exit.Exited():
		reason := strings.TrimSpace(stderr)
		if reason == "" {
			reason = fmt.Sprintf("%s exited with %d and said nothing", c.name, exit.ExitCode())
		}
		return nil, stderr, failure(Contract, "%s", reason)
	case err != nil:
		return nil, stderr, failure(Broken, "verifier %s: %v", c.name, err)
	}
	left := evidenceFile(a, dir)
	if info, err := os.Lstat(left); err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, stderr, failure(Broken, "verifier %s exited with 0 but left no evidence", c.name)
	}
	f, err := os.Open(left)
	if err != nil {
		return nil, stderr, failure(Broken, "verifier %s exited with 0 but left no evidence", c.name)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEvidence+1))
	if err != nil || len(b) > maxEvidence || !json.Valid(b) {
		return nil, stderr, failure(Broken, "verifier %s exited with 0 but its evidence is no JSON of at most %d KiB", c.name, maxEvidence>>10)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return nil, stderr, failure(Broken, "verifier %s: evidence: %v", c.name, err)
	}
	return compact.Bytes(), stderr, nil
}

// environment is the contract's, and nothing else of ours.
func (c *command) environment(a *Attempt, dir string) ([]string, error) {
	s := a.Seat
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8",
		"AOE_TERRITORY_ID=" + s.c.Territory, "AOE_HOST=127.0.0.1",
		"AOE_CREDENTIAL_FILE=" + filepath.Join(dir, "credentials"),
		"AOE_PREVIOUS_EVIDENCE=" + filepath.Join(filepath.Dir(evidenceFile(a, dir)), "previous.json"),
		"AOE_EVIDENCE_FILE=" + evidenceFile(a, dir),
		"AOE_SCENARIO_SEED=" + s.c.Secret.Derive("scenario", s.c.Territory).Value}
	for name, port := range map[string]int{"AOE_SSH_PORT": 22, "AOE_SERVICE_PORT": s.c.ServicePort} {
		addr, err := s.c.Machines[0].Addr(port)
		if err != nil {
			return nil, failure(Broken, "verifier %s: port %d is not forwarded: %v", c.name, port, err)
		}
		_, p, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, failure(Transport, "verifier %s: %v", c.name, err)
		}
		env = append(env, name+"="+p)
	}
	previous := a.Full
	if previous == nil {
		previous = json.RawMessage("{}")
	}
	if err := os.MkdirAll(filepath.Dir(evidenceFile(a, dir)), 0o700); err != nil {
		return nil, failure(Transport, "verifier %s: %v", c.name, err)
	}
	for file, data := range map[string][]byte{
		filepath.Join(dir, "credentials"):                                  []byte("AOE_SSH_PASSWORD=" + s.c.Password + "\n"),
		filepath.Join(filepath.Dir(evidenceFile(a, dir)), "previous.json"): previous,
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return nil, failure(Transport, "verifier %s: %v", c.name, err)
		}
	}
	return env, nil
}

// evidenceFile lies as in the reference: <dir>/evidence/<territory>/<milestone>.json.
func evidenceFile(a *Attempt, dir string) string {
	return filepath.Join(dir, "evidence", a.Seat.c.Territory, a.Milestone+".json")
}

// head keeps the first bytes of what is written to it.
type head struct {
	mu   sync.Mutex
	b    bytes.Buffer
	left int
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(p), h.left)
	h.b.Write(p[:n])
	h.left -= n
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}
