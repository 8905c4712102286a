package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"refbox/engine/export/exporttest"
	"refbox/engine/text"
)

// Whatever is in a recording's fields and names, and in what is typed, what the
// program prints is lines of plain text: output and errors, of every command that
// reads recordings.
func TestHostileStringsInPlainOutput(t *testing.T) {
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	for name, s := range exporttest.Strings() {
		t.Run(name, func(t *testing.T) {
			dir := exporttest.Hostile(t, s)
			root := filepath.Dir(dir)
			arg := strings.ReplaceAll(s, "\x00", "")
			if len(arg) > 4000 {
				arg = arg[:4000]
			}
			file := strings.ReplaceAll(arg, "/", "_")
			if len(file) > 200 {
				file = file[:200]
			}
			// A second one that is broken in every way, and archives that are none.
			broken := filepath.Join(root, "b"+file)
			if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			quoted, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(broken, "events.jsonl")
			data, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(data, []byte("\n"))
			lines[2] = bytes.Replace(lines[2], []byte(`"sequence":2`), []byte(`"sequence":77,`+string(quoted)+`:`+string(quoted)), 1)
			lines[3] = []byte(strings.ReplaceAll(s, "\n", "") + "\n")
			lines[4] = []byte(`{"schema_version":1,"sequence":4,"elapsed_ms":0,"kind":` + string(quoted) + "}\n")
			write := func(path, data string) {
				if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(log, string(bytes.Join(lines, nil))+s)
			write(filepath.Join(broken, "world.json"), `{"match_state":`+string(quoted)+`,`+string(quoted)+`:{},"territories":{`+string(quoted)+`:`+string(quoted)+`}}`)
			write(filepath.Join(broken, "arena.json"), s)
			zip := filepath.Join(root, "z"+file+".zip")
			write(zip, "PK\x03\x04"+s)
			report := filepath.Join(root, "r"+file)
			if err := os.Mkdir(report, 0o755); err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(report, "match-report.json"), `{"world":{`+string(quoted)+`:1},"events":[{"schema_version":1,"sequence":0,"elapsed_ms":5,"kind":"operator_note","author":`+string(quoted)+`,"text":`+string(quoted)+`},`+s)
			for _, args := range [][]string{
				{"ls", root}, {"ls", dir, broken, report}, {"ls", zip}, {"ls", filepath.Join(root, "no"+file)},
				{"verify", dir}, {"verify", broken}, {"verify", zip}, {"verify", report},
				{"why", dir}, {"why", broken}, {"why", dir, "no" + arg},
				{"replay", "--headless", dir}, {"replay", "--headless", broken}, {"replay", "--headless", report}, {"replay", "--headless", zip},
				{"replay", "--headless", dir, "--against", broken}, {"replay", dir, "--against", "no" + arg},
				{"watch", zip}, {"watch", "--headless", dir}, {"export", broken, "--jsonl", filepath.Join(root, "no", file)}, {"export", dir, "--" + arg},
				{"run", "no" + arg}, {"no" + arg}, {"--no" + arg}, {"arena", "validate", broken},
			} {
				cmd := exec.Command(program, args...)
				cmd.Env = append(os.Environ(), "HOME="+root+"/home", "XDG_DATA_HOME="+root+"/home", "XDG_CACHE_HOME="+root+"/home", "XDG_RUNTIME_DIR="+t.TempDir())
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				err := cmd.Run()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatalf("%.200q: %v", args, err)
				}
				if out.Len()+errs.Len() == 0 {
					t.Errorf("%.200q says nothing", args)
				}
				for _, o := range []string{out.String(), errs.String()} {
					for l := range strings.SplitSeq(o, "\n") {
						if text.Line(l) != l {
							t.Errorf("%.200q prints %.300q", args, l)
							break
						}
					}
					if strings.Contains(o, "goroutine ") {
						t.Errorf("%.200q panics: %.2000s", args, o)
					}
				}
			}
		})
	}
}
