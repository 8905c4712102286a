package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"refbox/engine/agent/llm/llmtest"
	"refbox/engine/event"
)

const (
	modelKey   = "sk-marked-key-of-the-model-4711"
	programKey = "marked-key-of-the-program-0815"
)

// fleet writes a fleet file: a model that repairs the machine, and a program.
func (b *box) fleet(endpoint, program string) string {
	b.t.Helper()
	text := `schema_version = 1
[[players]]
id = "model"
territory = "failover-one"
adapter = "llm"
model = "vendor/scripted"
endpoint = "` + endpoint + `"
key_env = "MODEL_KEY"
limits = { turns = 30 }
[[players]]
id = "program"
adapter = "command"
command = ["./program.sh"]
env = ["PROGRAM_KEY"]
`
	for name, data := range map[string]string{"fleet.toml": text, "program.sh": "#!/bin/sh\n" + program} {
		if err := os.WriteFile(b.path(name), []byte(data), 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
	b.env["MODEL_KEY"], b.env["PROGRAM_KEY"] = modelKey, programKey
	return b.path("fleet.toml")
}

// A fleet's heat, from its check to its exports: the keys are in none of it, nor
// in the log, nor in what is printed.
func TestFleetKeepsKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	s := (&llmtest.Server{Key: modelKey, Faults: map[int]llmtest.Fault{2: {Status: 500, Body: "your key is " + modelKey}}, Plan: []llmtest.Turn{
		{Commands: []string{"systemctl mask failover-primary.service", `printf 'primary\n' >/var/lib/failover/replica.role; printf '8082\n' >/var/lib/failover/upstream; sync`}, Cost: 0.01},
		{Text: "Repaired with " + modelKey}, {Text: "Done."}}}).Start()
	defer s.Close()
	b := newBox(t)
	file := b.fleet(s.Endpoint(), `echo "$PROGRAM_KEY"; ssh -F "$REFBOX_SSH_CONFIG" seat 'hostname'; echo "{\"key\":\"$PROGRAM_KEY\"}" >"$REFBOX_TRANSCRIPT"; exit 3`)

	check := b.run(time.Minute, "fleet", "check", file, "--json")
	if check.code != 0 || !strings.Contains(check.output.String(), `"cost_microusd": 10000`) {
		t.Fatalf("fleet check exits with %d\n%s%s", check.code, check.output, check.errors)
	}
	dir := b.path("heat")
	p := b.run(2*time.Minute, "run", "primary-failover", "--machines", "sim", "--headless", "--output", dir, "--fleet", file)
	if p.code != 0 || !strings.Contains(p.output.String(), "failover-one won") {
		t.Fatalf("run exits with %d\n%s%s", p.code, p.output, p.errors)
	}
	why := b.run(time.Minute, "why", dir, "--json")
	if out := why.output.String(); !strings.Contains(out, `"ending": "gave_up"`) || !strings.Contains(out, `"ending": "finished"`) {
		t.Errorf("why: %s", out)
	}
	rec := recorded(t, dir)
	if n := len(events[event.UsageCharged](t, rec)); n < 3 {
		t.Errorf("%d usages were charged", n)
	}
	for _, args := range [][]string{
		{"export", dir, "--report", b.path("out.html"), "--cast", b.path("out.cast"), "--bundle", b.path("out.tar.gz"), "--picture", b.path("out.svg"), "--jsonl=" + b.path("out.jsonl")},
		{"export", dir + "/failover-one", "--atif", b.path("out.json"), "--markdown", b.path("out.md")},
		{"verify", dir},
	} {
		if x := b.run(time.Minute, args...); x.code != 0 {
			t.Errorf("%v exits with %d\n%s", args, x.code, x.errors)
		}
	}
	printed := check.output.String() + check.errors.String() + p.output.String() + p.errors.String() + why.output.String()
	if err := os.WriteFile(b.path("printed"), []byte(printed), 0o644); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(b.root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if strings.HasSuffix(path, ".tar.gz") {
			data, err = unpacked(data)
		}
		for _, key := range []string{modelKey, programKey} {
			if bytes.Contains(data, []byte(key)) {
				t.Errorf("%s holds %s", path, key)
			}
		}
		return err
	})
	if err != nil || files < 30 {
		t.Errorf("%d files were searched: %v", files, err)
	}
	if len(s.Requests()) != 5 { // the check's, and a broken one among the heat's
		t.Errorf("%d requests", len(s.Requests()))
	}
}

// unpacked is all that is in an archive.
func unpacked(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for r := tar.NewReader(z); ; {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return all.Bytes(), nil
		} else if err != nil {
			return nil, err
		}
		if _, err := io.Copy(&all, r); err != nil {
			return nil, err
		}
	}
}

// What a player's program has started outlives a refbox that is killed by a moment
// at most: the next one ends it.
func TestKilledRefboxLeavesNoPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a heat: skipped under -short")
	}
	s := (&llmtest.Server{Key: modelKey}).Start()
	defer s.Close()
	b := newBox(t)
	pids := b.path("pids")
	file := b.fleet(s.Endpoint(), fmt.Sprintf("setsid sh -c 'echo $$ >>%s; exec sleep 1003' &\nsleep 1004 & echo $! >>%s\nwait\n", pids, pids))
	p := b.start("run", "primary-failover", "--machines", "sim", "--headless", "--output", b.path("heat"), "--fleet", file)
	var all []string
	for deadline := time.Now().Add(time.Minute); len(all) < 2; time.Sleep(50 * time.Millisecond) {
		data, _ := os.ReadFile(pids)
		all = strings.Fields(string(data))
		if time.Now().After(deadline) {
			t.Fatalf("the program has not started\n%s%s", p.output, p.errors)
		}
	}
	p.signal(syscall.SIGKILL, time.Minute)
	next := b.run(time.Minute, "run", "primary-failover", "--machines", "no-such-kind", "--headless", "--output", b.path("next"))
	if next.code != 2 {
		t.Errorf("the next run exits with %d\n%s", next.code, next.errors)
	}
	for _, word := range all {
		pid, _ := strconv.Atoi(word)
		for n := 0; ; n++ {
			if syscall.Kill(pid, 0) != nil || zombie(pid) {
				break
			}
			if n > 100 {
				t.Errorf("process %d lives", pid)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func zombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return bytes.Contains(stat, []byte(") Z "))
}
