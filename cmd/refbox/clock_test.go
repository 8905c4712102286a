//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// jumpingTime is Go's time.now with a wall clock that jumps every two seconds, to
// any second of the day before or after. The monotonic clock is the host's.
const jumpingTime = `package runtime

import _ "unsafe"

func trueTime() (sec int64, nsec int32, mono int64)

//go:linkname time_now time.now
func time_now() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = trueTime()
	sec += int64(uint64(mono)/2e9*0x9E3779B97F4A7C15>>32%172800) - 86400
	return
}
`

// jumping is the program as it is shipped, but for its runtime's wall clock.
var jumping = sync.OnceValues(func() (string, error) {
	whole, err := binary()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(whole)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime")
	asm, err := os.ReadFile(filepath.Join(src, "time_linux_amd64.s"))
	if err != nil {
		return "", err
	}
	const was, is = "TEXT time·now<ABIInternal>", "TEXT runtime·trueTime<ABIInternal>"
	if !strings.Contains(string(asm), was) {
		return "", fmt.Errorf("this Go's time_linux_amd64.s has no %q", was)
	}
	files := map[string]string{"time_linux_amd64.s": strings.Replace(string(asm), was, is, 1), "timeasm.go": jumpingTime}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(src, name)] = at
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o644); err != nil {
		return "", err
	}
	name := filepath.Join(dir, "refbox-jumping")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", name, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build -overlay: %w\n%s", err, out)
	}
	return name, nil
})

// jumpingClock runs a heat on a host whose wall clock jumps by hours. No duration may
// come from it: the right player wins, nothing ends early or late, and nothing that
// is recorded took longer than the whole run.
func (r *round) jumpingClock() {
	if runtime.GOARCH != "amd64" {
		r.t.Skip("the wall clock is injected into amd64's runtime only")
	}
	program, err := jumping()
	if err != nil {
		r.t.Fatal(err)
	}
	r.raceWith(program)
	r.holds(exitDone)
	if !strings.Contains(r.heat.output.String(), "1. failover-one won") {
		r.t.Error("the right player did not win")
	}
	var match struct {
		StartedAt time.Time `json:"started_at"`
	}
	data, err := os.ReadFile(filepath.Join(r.dir, "match.json"))
	if err == nil {
		err = json.Unmarshal(data, &match)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if off := time.Until(match.StartedAt).Abs(); off < r.heat.took {
		r.t.Errorf("the clock did not jump: the heat says that it started at %v", match.StartedAt)
	}
	log, err := os.ReadFile(filepath.Join(r.dir, "events.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	before := 0.0
	for line := range strings.Lines(string(log)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatal(err)
		}
		for field, v := range e {
			ms, ok := v.(float64)
			if ok && strings.HasSuffix(field, "_ms") && field != "timeout_ms" && (ms < 0 || ms > float64(r.heat.took.Milliseconds())) {
				r.t.Errorf("%s is not within the %v of the run: %s", field, r.heat.took, line)
			}
		}
		at, _ := e["elapsed_ms"].(float64)
		if at < before {
			r.t.Errorf("time goes back: %s", line)
		}
		before = at
	}
}
