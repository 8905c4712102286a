package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
)

func runCommand(t *testing.T, ctx context.Context, r *rig, script string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("this host has no bash")
	}
	v, err := Load(fstest.MapFS{"verify/lib.sh": {Data: []byte("helper() { echo helped; }")}, "secret": {Data: []byte("x")}, "verify/v.sh": {Data: []byte("#!/usr/bin/env bash\nset -eu\n" + script), Mode: 0o755}}, "verify/v.sh")
	if err != nil {
		t.Fatal(err)
	}
	a := r.Attempt("m", 1, nil)
	a.Full = json.RawMessage(`{"earlier":{"evidence":{"id":"x"}}}`)
	ev, err := v.Verify(ctx, a)
	return string(ev), err
}

func commandRig(t *testing.T) *rig {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {})
	r.m.addrs[22] = "127.0.0.1:2222"
	r.Seat.c.Password = "secret"
	return r
}

func TestCommandContract(t *testing.T) {
	r := commandRig(t)
	_, port, _ := strings.Cut(r.m.addrs[8080], ":")
	ev, err := runCommand(t, t.Context(), r, `
source "$AOE_CREDENTIAL_FILE"
source "$(dirname "$0")/lib.sh"
[ "$(helper)" = helped ]
[ ! -e "$(dirname "$0")/../secret" ]
[ "$(basename "$AOE_EVIDENCE_FILE")" = m.json ]
echo ignored
grep -q '"id":"x"' "$AOE_PREVIOUS_EVIDENCE"
[ -n "$AOE_SCENARIO_SEED" ]
[ -z "${XDG_RUNTIME_DIR:-}" ]
printf '{ "t": "%s", "p": "%s", "ports": "%s %s", "h": "%s" }' "$AOE_TERRITORY_ID" "$AOE_SSH_PASSWORD" "$AOE_SSH_PORT" "$AOE_SERVICE_PORT" "$AOE_HOST" >"$AOE_EVIDENCE_FILE"`)
	if want := fmt.Sprintf(`{"t":"one","p":"secret","ports":"2222 %s","h":"127.0.0.1"}`, port); err != nil || ev != want {
		t.Fatalf("%s %v, want %s", ev, err, want)
	}
}

func TestCommandFailures(t *testing.T) {
	r := commandRig(t)
	for _, tc := range []struct {
		script   string
		category Category
		reason   string
	}{
		{"echo 'GET /health: 502' >&2; exit 22", Contract, "GET /health: 502"},
		{"exit 1", Contract, "said nothing"},
		{"exit 0", Broken, "left no evidence"},
		{"echo '{' >$AOE_EVIDENCE_FILE", Broken, "is no JSON"},
		{"head -c 100000 /dev/zero >$AOE_EVIDENCE_FILE", Broken, "is no JSON"},
		{"mkfifo $AOE_EVIDENCE_FILE", Broken, "left no evidence"},
		{"kill -9 $$", Broken, "killed"},
		{"head -c 1000000 /dev/zero >&2; exit 1", Contract, "\u2400"},
	} {
		_, err := runCommand(t, t.Context(), r, tc.script)
		var f *Failure
		if !errors.As(err, &f) || f.Category != tc.category || !strings.Contains(f.Reason, tc.reason) {
			t.Errorf("%s: %v", tc.script, err)
		}
	}
}

// A verifier that passed once leaves nothing that a later run could pass with.
func TestStaleEvidenceIsNotAccepted(t *testing.T) {
	r := commandRig(t)
	if _, err := runCommand(t, t.Context(), r, `echo '{}' >"$AOE_EVIDENCE_FILE"`); err != nil {
		t.Fatal(err)
	}
	var f *Failure
	if _, err := runCommand(t, t.Context(), r, "true"); !errors.As(err, &f) || f.Category != Broken {
		t.Fatal(err)
	}
}
