package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// HumanPlayer is the player of a seat that a person plays. It does nothing by
// itself: the person comes in through the seat's gateway with OpenTerminal, and is
// observed there like anyone. It plays for as long as it may.
func HumanPlayer() Player { return humanPlayer{} }

// IsHuman tells whether a person plays.
func IsHuman(p Player) bool {
	_, ok := p.(humanPlayer)
	return ok
}

type humanPlayer struct{}

func (humanPlayer) Play(ctx context.Context, _ Seat, _ Report) Result {
	<-ctx.Done()
	return Result{Status: CutStatus(ctx), Summary: "a person played"}
}

// termType is what a person's terminal is to the guest: its keys and colours are
// those that refbox's own screen sends and draws.
const termType = "linux"

// PersonsTerminal is a person's interactive session on one of a seat's machines.
type PersonsTerminal struct {
	client *ssh.Client
	sess   *ssh.Session
	in     io.WriteCloser
	out    io.Reader
}

// OpenTerminal opens a terminal on a machine through the seat's gateway, as any SSH
// client of the player's would; "" is the first machine. Ctx bounds the opening
// alone; a machine that is starting is waited for.
func OpenTerminal(ctx context.Context, login Login, machine string, cols, rows int) (_ *PersonsTerminal, err error) {
	user := login.User
	if machine != "" {
		if !slices.Contains(login.Machines, machine) {
			return nil, fmt.Errorf("the seat has no machine %q; it has %s", line(machine), strings.Join(login.Machines, ", "))
		}
		user = machine
	}
	auth, err := login.auth()
	if err != nil {
		return nil, err
	}
	t := &PersonsTerminal{}
	t.client, err = DialSSH(ctx, login.Addr, &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.FixedHostKey(login.HostKey)})
	if err != nil {
		return nil, fmt.Errorf("reach the seat's door: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { t.client.Close() })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			t.client.Close()
			t.client.Wait() //nolint:errcheck // that it has ended matters
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			err = fmt.Errorf("open a terminal on the seat's machine: %w", err)
		}
	}()
	if t.sess, err = t.client.NewSession(); err != nil {
		return nil, err
	}
	if t.in, err = t.sess.StdinPipe(); err != nil {
		return nil, err
	}
	if t.out, err = t.sess.StdoutPipe(); err != nil {
		return nil, err
	}
	if err = t.sess.RequestPty(termType, clampSide(rows), clampSide(cols), ssh.TerminalModes{}); err != nil {
		return nil, err
	}
	if err = t.sess.Shell(); err != nil {
		return nil, err
	}
	return t, nil
}

// clampSide is a terminal's columns or rows as the gateway takes them.
func clampSide(n int) int { return min(max(n, 1), maxSide) }

// Read gives what the machine prints, and io.EOF when the session has ended.
func (t *PersonsTerminal) Read(p []byte) (int, error) { return t.out.Read(p) }

// Write types.
func (t *PersonsTerminal) Write(p []byte) (int, error) { return t.in.Write(p) }

// Resize tells the machine the terminal's size.
func (t *PersonsTerminal) Resize(cols, rows int) error {
	return t.sess.WindowChange(clampSide(rows), clampSide(cols))
}

// Wait waits until the session's connection has ended.
func (t *PersonsTerminal) Wait() { t.client.Wait() } //nolint:errcheck // that it has ended matters

// Close ends the session and waits for its connection's end. It is idempotent.
func (t *PersonsTerminal) Close() error {
	err := t.client.Close()
	t.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
