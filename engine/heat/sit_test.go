package heat

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"refbox/engine/agent"
	"refbox/engine/control"
	"refbox/engine/world"
)

// A person plays a seat through the desk: what they do is observed and recorded as
// anyone's, their seat is not touched, and they win.
func TestAPersonWins(t *testing.T) {
	t.Parallel()
	p := own(pkg(t, idle, idle, idle))
	p.Manifest.Agents[0].Script, p.Manifest.Agents[0].Adapter = nil, "human"
	racing := make(chan struct{})
	once := sync.OnceFunc(func() { close(racing) })
	players := registry(func(ctx context.Context, s agent.Seat, r agent.Report) agent.Result {
		once()
		<-ctx.Done()
		return agent.Result{}
	})
	players["human"] = func(string) (agent.Player, error) { return agent.HumanPlayer(), nil }
	h := New(Config{Package: p, Driver: driver(), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: runtimeFolder(t), Players: players})
	played := make(chan error, 1)
	go func() { <-racing; played <- play(t, h) }()
	res, err := h.Run(t.Context())
	if perr := <-played; perr != nil {
		t.Error(perr)
	}
	if err != nil {
		t.Fatal(err)
	}
	rec := open(t, res.Dir)
	w := rec.World(rec.Len())
	s := w.Seats()[0]
	if world.OutcomeOf(w, s.ID) != world.OutcomeWon {
		t.Errorf("%s is %s: %+v", s.ID, world.OutcomeOf(w, s.ID), res.Outcome)
	}
	if s.Touches.Len() > 0 {
		t.Error("the seat is marked as touched by its own player")
	}
	if s.Actions.Len() == 0 || s.Actions.At(0).Channel != agent.ChannelShell || s.Actions.At(0).Session == "" {
		t.Fatalf("the person's session is not an action: %d", s.Actions.Len())
	}
	casts := holders(t, filepath.Join(res.Dir, "seats", s.ID), "replica.role")
	if !strings.Contains(strings.Join(casts, " "), "session-1.cast") {
		t.Errorf("what they typed is in %v", casts)
	}
}

// play does what a person would who knows the way, once the heat is running.
func play(t *testing.T, h *Heat) error {
	id := h.cfg.Package.Manifest.Territories[0].ID
	other := h.cfg.Package.Manifest.Territories[1].ID
	c, err := h.Sit(t.Context(), "ann", id, "", control.Size{Cols: 100, Rows: 30})
	if err != nil {
		return err
	}
	if _, err := h.Sit(t.Context(), "ann", other, "", control.Size{Cols: 80, Rows: 24}); err == nil || !strings.Contains(err.Error(), "a person's seats are "+id) {
		return fmt.Errorf("a script's seat was given to a person: %v", err)
	}
	if _, err := h.Sit(t.Context(), "ann", id, "nowhere", control.Size{Cols: 80, Rows: 24}); err == nil || !strings.Contains(err.Error(), "no machine") {
		return fmt.Errorf("a machine that there is not: %v", err)
	}
	defer c.Close()
	if err := c.Resize(control.Size{Cols: 132, Rows: 43}); err != nil {
		return err
	}
	for _, line := range []string{
		"mv /etc/systemd/system/failover-primary.service /root/; systemctl daemon-reload; systemctl mask failover-primary.service",
		`printf 'primary\n' >/var/lib/failover/replica.role`,
		`printf '8082\n' >/var/lib/failover/upstream`,
		"echo done $((40+2))",
	} {
		if _, err := io.WriteString(c, line+"\r"); err != nil {
			return err
		}
	}
	if err := until(c, "done 42"); err != nil {
		return err
	}
	io.Copy(io.Discard, c) //nolint:errcheck // it ends with the heat
	return nil
}
