package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
			asJSON, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			quoted := string(asJSON)
			log := filepath.Join(broken, "events.jsonl")
			data, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(data, []byte("\n"))
			lines[2] = bytes.Replace(lines[2], []byte(`"sequence":2`), []byte(`"sequence":77,`+quoted+`:`+quoted), 1)
			lines[3] = []byte(strings.ReplaceAll(s, "\n", "") + "\n")
			lines[4] = []byte(`{"schema_version":1,"sequence":4,"elapsed_ms":0,"kind":` + quoted + "}\n")
			write := func(path, data string) {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			write(log, string(bytes.Join(lines, nil))+s)
			write(filepath.Join(broken, "world.json"), `{"match_state":`+quoted+`,`+quoted+`:{},"territories":{`+quoted+`:`+quoted+`}}`)
			write(filepath.Join(broken, "arena.json"), s)
			zip := filepath.Join(root, "z"+file+".zip")
			write(zip, "PK\x03\x04"+s)
			report := filepath.Join(root, "r"+file)
			write(filepath.Join(report, "match-report.json"), `{"world":{`+quoted+`:1},"events":[{"schema_version":1,"sequence":0,"elapsed_ms":5,"kind":"operator_note","author":`+quoted+`,"text":`+quoted+`},`+s)
			// A transcript in the reference's form, alone and in a recording of the reference.
			told := filepath.Join(root, "t"+file+".json")
			call := `{"id":` + quoted + `,"name":` + quoted + `,"input":{"command":` + quoted + `,` + quoted + `:1},"output":` + quoted + `,"started_after_ms":1,"duration_ms":2}`
			words := `{"schema_version":2,"model":` + quoted + `,"outcome":{"status":` + quoted + `,"result":` + quoted + `},"usage":{"input_tokens":1},"messages":[{"role":"assistant","content":` +
				quoted + `}],"tool_trace":[` + call + `,` + strings.Replace(call, quoted, `"b"`, 1) + `],"timing":{"model_rounds":[{"started_after_ms":0,"duration_ms":1,"usage":{"input_tokens":1}}]}}`
			write(told, words)
			foreign := filepath.Join(root, "f"+file)
			write(filepath.Join(foreign, "events.jsonl"), `{"schema_version":1,"sequence":0,"elapsed_ms":0,"kind":"territory_registered","territory":`+quoted+`,"class":`+quoted+`,"agent":"a"}`+"\n"+
				`{"schema_version":1,"sequence":1,"elapsed_ms":9,"kind":"agent_started","agent":"a","territory":`+quoted+`,"model":`+quoted+"}\n")
			write(filepath.Join(foreign, "a-transcript.json"), words[:len(words)-9])
			for _, args := range [][]string{
				{"step", told}, {"step", told, "--json"}, {"analyze", told}, {"analyze", told, "--json"},
				{"analyze", dir}, {"analyze", broken}, {"analyze", foreign}, {"verify", foreign}, {"verify", foreign, "--json"}, {"replay", foreign, "--headless"},
				{"export", told, "--markdown", "-"}, {"export", told, "--atif", "-"}, {"export", told, "--cast", "-"},
				{"export", dir, "--report", "-"}, {"export", dir, "--picture", "-"}, {"export", dir, "--cast", "-"}, {"export", foreign, "--report", "-"},
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
				// Data for programs has what was recorded, as JSON writes it; a terminal
				// gets none of it raw.
				data := slices.Contains(args, "--atif") || args[0] == "analyze" && slices.Contains(args, "--json") || slices.Contains(args, told) && slices.Contains(args, "--cast")
				for i, o := range []string{out.String(), errs.String()} {
					for l := range strings.SplitSeq(o, "\n") {
						harmless := text.Line(l) == l
						if i == 0 && data {
							harmless = !strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r >= 0x80 && r < 0xa0 })
						}
						if !harmless {
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
