package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"refbox/engine/event"
	"refbox/engine/recording"
)

// lastStep is what completes the repair of primary-failover when all else is done:
// from its end on the service is whole.
const lastStep = "echo 8082 >/var/lib/failover/upstream; sync"

// TestRealGaps lets three right players complete their repairs one after another,
// in every order, as many heats as REFBOX_GAPS says, and none if unset: the log
// holds when each player's last step began and ended, as the gateway saw it. Where
// one ended at least a second before every other began, its seat has won, however
// the host divides its processors among the checks and the reboots after it.
func TestRealGaps(t *testing.T) {
	n := times(t, "REFBOX_GAPS", 0)
	if n == 0 {
		t.Skip("REFBOX_GAPS is unset or 0")
	}
	b := realBox(t)
	seats := []string{"failover-one", "failover-three", "failover-two"}
	orders := [][]int{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}}
	for i := range n {
		gap := time.Duration(1000+300*(i%3)) * time.Millisecond
		var fleet strings.Builder
		fleet.WriteString("schema_version = 1\n")
		meet := t.TempDir()
		for place, at := range orders[i%len(orders)] {
			name := fmt.Sprintf("player-%d", place)
			if err := os.WriteFile(b.path(name), []byte(gapPlayer(meet, place, gap)), 0o755); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&fleet, "[[players]]\nid = %q\nterritory = %q\nadapter = \"command\"\ncommand = [\"./%s\"]\n", name, seats[at], name)
		}
		if err := os.WriteFile(b.path("gaps.toml"), []byte(fleet.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		dir := b.path(fmt.Sprintf("heat-%d", i))
		p := b.run(raceTime, "run", "primary-failover", "--headless", "--fleet", b.path("gaps.toml"), "--output", dir)
		if p.code != 0 {
			t.Fatalf("heat %d exits with %d\n%s%s", i, p.code, p.output, p.errors)
		}
		began, ended, winner, tied := lastSteps(t, dir)
		first := seats[orders[i%len(orders)][0]]
		clear := time.Duration(1 << 62)
		for seat, at := range began {
			if seat != first {
				clear = min(clear, time.Duration(int64(at)-int64(ended[first]))*time.Millisecond)
			}
		}
		t.Logf("heat %d: %s was %v ahead; won: %q, dead heat: %v", i, first, clear, winner, tied)
		if len(began) < 2 || ended[first] == 0 {
			t.Errorf("heat %d: the players' last steps are not in the log", i)
		} else if clear < time.Second {
			t.Errorf("heat %d: the players came closer together than they were meant to; nothing is shown", i)
		} else if winner != first || len(tied) > 0 {
			t.Errorf("heat %d: %s was %v ahead, but %q won, in a dead heat: %v", i, first, clear, winner, tied)
		}
	}
}

// gapPlayer is a program that does all but the last step, waits in the folder meet
// for the two others to have come as far and for the one before it to have done its
// last step, and does its own after the gap.
func gapPlayer(meet string, place int, gap time.Duration) string {
	return fmt.Sprintf(`#!/bin/bash
set -eu
ssh -F "$REFBOX_SSH_CONFIG" seat "systemctl mask failover-primary.service; printf 'primary\\n' >/var/lib/failover/replica.role"
touch %[1]s/ready-%[2]d
until test "$(ls %[1]s | grep -c ready)" = 3; do sleep 0.05; done
until test %[2]d = 0 || test -e %[1]s/done-$((%[2]d - 1)); do sleep 0.05; done
sleep %[3]f
ssh -F "$REFBOX_SSH_CONFIG" seat %[4]q
touch %[1]s/done-%[2]d
`, meet, place, gap.Seconds(), lastStep)
}

// lastSteps are the seats' instants, in milliseconds of the heat's clock, at which
// the last step began and ended, and who won.
func lastSteps(t *testing.T, dir string) (began, ended map[string]uint64, winner string, tied []string) {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	began, ended = map[string]uint64{}, map[string]uint64{}
	steps := map[string]uint64{} // the action's number, by seat
	err = rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		switch body := e.Body.(type) {
		case event.AgentActionStarted:
			if strings.Contains(body.Command, lastStep) {
				began[body.Territory], steps[body.Territory] = e.ElapsedMS, body.Action
			}
		case event.AgentActionFinished:
			if n, ok := steps[body.Territory]; ok && n == body.Action {
				ended[body.Territory] = e.ElapsedMS
			}
		case event.MatchFinished:
			if body.Winner != nil {
				winner = *body.Winner
			}
			tied = slices.Clone(body.DeadHeat)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return began, ended, winner, tied
}
