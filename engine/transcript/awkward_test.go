package transcript

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func said(id, words string) string {
	return cc("user", id, "", "00", `{"role":"user","content":"`+words+`"}`)
}

// I01: a cut record with a whole one behind it on the same line.
func TestJoinedLine(t *testing.T) {
	cut := `{"type":"assistant","uuid":"x","message":{"content":[{"type":"text","text":"half`
	tr := written(t, said("a", "one")+cut+said("b", "two")+said("c", "three"))
	wantKinds(t, tr, "message unknown message message")
	if f := finding(t, tr, "damaged-record"); f.Line != 2 || f.Offset != int64(len(said("a", "one"))) || f.Length != int64(len(cut)) || f.Step != 1 {
		t.Errorf("%+v", f)
	}
	if f := finding(t, tr, "joined-line"); f.Step != 2 || tr.Step(2).Title != "two" {
		t.Errorf("%+v", f)
	}
	if s := tr.Step(1); !s.Has(Damaged) || !strings.Contains(full(t, tr, 1).Parts[0].Text.Raw(), "half") {
		t.Errorf("%+v", s)
	}
}

// I02: a run of NUL bytes, as a line and in front of a record.
func TestHoles(t *testing.T) {
	hole := strings.Repeat("\x00", 512)
	tr := written(t, said("a", "one")+hole+"\n"+said("b", "two")+hole+said("c", "three"))
	wantKinds(t, tr, "message message message")
	f := finding(t, tr, "hole")
	if f.Offset != int64(len(said("a", "one"))) || f.Length != 512 || f.Severity != Break || f.Line != 2 {
		t.Errorf("%+v", f)
	}
	if got := strings.Count(strings.Join(codes(tr), " "), "hole"); got != 2 {
		t.Errorf("%d holes", got)
	}
}

// I03 and I22: a last line that is completed later, cut, and a file that is replaced.
func TestGrowing(t *testing.T) {
	dir := t.TempDir()
	line := said("b", "two")
	path := put(t, dir, "s", said("a", "one")+line[:40])
	tr := opened(t, path)
	wantKinds(t, tr, "message")
	if f := finding(t, tr, "torn-tail"); f.Severity != Note || f.Length != 40 {
		t.Errorf("%+v", f)
	}
	more := func(s string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(s)
		f.Close()
	}
	refresh := func(want bool) {
		t.Helper()
		if changed, err := tr.Refresh(); changed != want || err != nil {
			t.Errorf("changed %v, %v; want %v", changed, err, want)
		}
	}
	refresh(false)
	more(line[40 : len(line)-1]) // all but the line break
	refresh(true)
	wantKinds(t, tr, "message message")
	more("\n" + said("c", "three"))
	refresh(true)
	wantKinds(t, tr, "message message message")
	if len(tr.Integrity().Findings) != 0 {
		t.Errorf("%q", codes(tr))
	}
	// Another file in its place.
	put(t, dir, "new", said("d", "other")+said("e", "more"))
	if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
		t.Fatal(err)
	}
	refresh(true)
	wantKinds(t, tr, "message message")
	finding(t, tr, "restarted")
	// Cut.
	if err := os.Truncate(path, int64(len(said("d", "other")))); err != nil {
		t.Fatal(err)
	}
	refresh(true)
	if got := titles(ofKind(tr, Message)); len(got) != 1 || got[0] != "other" {
		t.Errorf("%q", got)
	}
}

// A live copy that is being written must not take a whole one's place.
func TestTornCopyIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	whole := `{"schema_version":2,"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"text","text":"hi"}]}],"outcome":{"status":"running"},"tool_trace":[]}`
	path := put(t, dir, "live", whole)
	tr := opened(t, path)
	put(t, dir, "live", whole[:100])
	if changed, err := tr.Refresh(); changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if tr.Len() != 2 || tr.Integrity().Breaks() {
		t.Errorf("%d steps, %q", tr.Len(), codes(tr))
	}
	put(t, dir, "live", strings.Replace(whole, `"text":"hi"}]}`, `"text":"hi"}]},{"role":"user","content":"again"}`, 1))
	if changed, err := tr.Refresh(); !changed || err != nil || tr.Len() != 3 {
		t.Errorf("changed %v, %v, %d steps", changed, err, tr.Len())
	}
}

// I14: a giant line does not hurt the rest, a long word is cut.
func TestGiants(t *testing.T) {
	big := strings.Repeat("QUJD", 5<<20) // 20 MiB
	image := cc("user", "b", "a", "01", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+big+`"}},{"type":"text","text":"look"}]}`)
	word := cc("user", "c", "b", "02", `{"role":"user","content":"`+strings.Repeat("x", 1<<20)+`"}`)
	tr := written(t, said("a", "one")+image+word+said("d", "last"))
	wantKinds(t, tr, "message message message message message")
	if s := tr.Step(1); !s.Has(Giant) || !strings.HasPrefix(s.Title, "media image/png") {
		t.Errorf("%+v", s)
	}
	if p := full(t, tr, 1).Parts[0]; p.Role != PartMedia || p.Text.Raw() != "" || p.Text.Size() < int64(len(big)) {
		t.Errorf("%+v", p.Role)
	}
	f := full(t, tr, 3)
	if p := f.Parts[0].Text; !p.Cut() || len(p.Raw()) != BodyLimit || p.Size() != 1<<20 {
		t.Errorf("%d of %d bytes", len(p.Raw()), p.Size())
	}
	whole, err := tr.FullLimit(3, 2<<20)
	if err != nil || whole.Parts[0].Text.Cut() {
		t.Errorf("%v", err)
	}
	if len(tr.Step(3).Title) > 1000 {
		t.Errorf("a title of %d bytes", len(tr.Step(3).Title))
	}
}

// I15 and I16: nothing that drives a terminal or turns text around is handed out.
func TestHostileText(t *testing.T) {
	for _, bad := range []string{`\u001b]52;c;aGk=\u0007`, `\u001b]0;title\u0007`, `\u001b]8;;http://x\u0007y\u001b]8;;\u0007`, `\u001bPq\u001b\\`, `\u001bc`,
		`\u001b[6n`, `\u001b]unterminated`, `\u009b31m`, `\u009d0;x\u009c`, `\u202egnp.exe`, `\u2066x\u2069`, `\u200b`, `a\u0300\u0301\u0302\u0303`} {
		tr := written(t, cc("assistant", "a"+bad, "", "00", `{"role":"assistant","model":"m`+bad+`","content":[{"type":"tool_use","id":"t`+bad+`","name":"Bash`+bad+`","input":{"command":"ls`+bad+`","description":"d`+bad+`"}}]}`)+
			`{"type":"new`+bad+`","sessionId":"s`+bad+`"}`+"\n")
		if i := tr.Info(); unclean(i.Model+i.Session) != "" {
			t.Errorf("%s: %+v", bad, i)
		}
		if !strings.HasPrefix(full(t, tr, 0).Command(), "ls") || len(full(t, tr, 0).Command()) < 3 {
			t.Errorf("%s: raw command is %q", bad, full(t, tr, 0).Command())
		}
	}
	dir := t.TempDir()
	tr := opened(t, put(t, dir, "name\x1b]0;x\x07", said("a", "b")))
	if unclean(tr.Path()) != "" {
		t.Errorf("%q", tr.Path())
	}
}

// Records that are shown as JSON tell neither reasoning nor what is encrypted.
func TestRawRecordsKeepSecrets(t *testing.T) {
	tr := written(t, said("a", "x")+
		`{"type":"future","sessionId":"s","message":{"content":[{"type":"thinking","thinking":"HIDDEN \"q\" HIDDEN","signature":"HIDDEN"},{"type":"redacted_thinking","data":"HIDDEN"}]},"encrypted_content":"HIDDEN"}`+"\n"+
		`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"cut off HIDDEN`+"\n"+said("b", "y"))
	wantKinds(t, tr, "message unknown unknown message")
	noSecret(t, tr, "HIDDEN")
}

func TestLoneSurrogate(t *testing.T) {
	tr := written(t, said("a", `half \ud83d pair \ud83d\ude00`))
	if tr.Step(0).Title != "half \ufffd pair 😀" {
		t.Errorf("%q", tr.Step(0).Title)
	}
	finding(t, tr, "lone-surrogate")
}

func TestNotTranscripts(t *testing.T) {
	for _, content := range []string{"", "hello\n", "{}", "[]", "[1,2]", `{"a":1}`, "\x00\x00", "42", `{"messages":[]}`} {
		if _, err := Open(put(t, t.TempDir(), "x", content)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrFormat) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A sub-agent's file that is a link out of the folder is not followed.
func TestLinksOutAreNotFollowed(t *testing.T) {
	outside := put(t, t.TempDir(), "secret", said("z", "secret"))
	dir := t.TempDir()
	main := put(t, dir, "s.jsonl", said("a", "one"))
	os.MkdirAll(filepath.Join(dir, "s", "subagents"), 0o755)
	if err := os.Symlink(outside, filepath.Join(dir, "s", "subagents", "agent-x.jsonl")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	tr := opened(t, main)
	for i := range tr.Agents() {
		if sub, err := tr.OpenAgent(i); err == nil {
			sub.Close()
			t.Errorf("agent %d was opened", i)
		}
	}
}

func TestOpenFSAndBlob(t *testing.T) {
	tree := fstest.MapFS{"a/b/s.jsonl": {Data: []byte(said("a", "one"))}, "a/b/s/subagents/agent-x.jsonl": {Data: []byte(said("b", "two"))}}
	tr, err := OpenFS(tree, "a/b/s.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if tr.Step(0).Title != "one" || len(tr.Agents()) != 2 {
		t.Errorf("%q, %+v", tr.Step(0).Title, tr.Agents())
	}
	f, err := os.Open(put(t, t.TempDir(), "x", said("a", "blob")))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := OpenBlob("shown", f)
	if err != nil {
		t.Fatal(err)
	}
	if blob.Step(0).Title != "blob" || blob.Path() != "shown" {
		t.Errorf("%q %q", blob.Step(0).Title, blob.Path())
	}
	if err := blob.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Stat(); err == nil {
		t.Error("the file is still open")
	}
}

// A heat's archive is opened by what it is, whatever its name; so is an Inspect log,
// which is a zip as well.
func TestArchives(t *testing.T) {
	log := `{"schema_version":1,"sequence":0,"elapsed_ms":0,"kind":"agent_action_started","territory":"one","agent":"a","action":1,"channel":"exec","command":"uptime"}` + "\n"
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	tw := tar.NewWriter(gz)
	tw.WriteHeader(&tar.Header{Name: "heat/events.jsonl", Mode: 0o644, Size: int64(len(log))})
	io.WriteString(tw, log)
	tw.Close()
	gz.Close()
	var zipped bytes.Buffer
	zw := zip.NewWriter(&zipped)
	w, err := zw.Create("heat/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, log)
	zw.Close()
	for name, content := range map[string]string{"heat.tar.gz": packed.String(), "odd": packed.String(), "log.eval": zipped.String()} {
		tr := opened(t, put(t, t.TempDir(), name, content))
		if tr.Info().Format != "heat" || tr.Len() != 1 || full(t, tr, 0).Command() != "uptime" {
			t.Errorf("%s: %s, %d steps", name, tr.Info().Format, tr.Len())
		}
		if changed, err := tr.Refresh(); changed || err != nil {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
	}
	if _, err := Open(put(t, t.TempDir(), "cut.tar.gz", packed.String()[:20])); err == nil || !strings.Contains(err.Error(), "cut.tar.gz") {
		t.Errorf("a cut archive: %v", err)
	}
}

// Reading and stepping at once, and an end in the middle.
func TestStepWhileLoading(t *testing.T) {
	var b strings.Builder
	for i := range 60_000 {
		b.WriteString(cc("user", fmt.Sprint("u", i), "", fmt.Sprintf("%02d", i%60), `{"role":"user","content":"`+strings.Repeat("w", 100)+`"}`))
	}
	tr, err := Open(put(t, t.TempDir(), "x", b.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if tr.Len() == 0 {
		t.Fatal("nothing to step before the end of the reading")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tr.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := 0; !tr.Complete(); i = (i + 17) % max(tr.Len(), 1) {
				tr.Step(i)
				if _, err := tr.Full(i); err != nil {
					t.Error(err)
					return
				}
				tr.Totals()
			}
		})
	}
	if err := tr.Load(context.Background()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if tr.Len() != 60_000 || tr.Totals().Partial {
		t.Errorf("%d steps", tr.Len())
	}
}

func TestNext(t *testing.T) {
	tr := written(t, said("a", "1")+cc("assistant", "b", "a", "01", `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}`)+said("c", "3"))
	tool := func(h Head) bool { return h.Kind == ToolCall }
	if tr.Next(-1, 1, tool) != 1 || tr.Next(1, 1, tool) != -1 || tr.Next(2, -1, tool) != 1 || tr.Next(1, -1, tool) != -1 {
		t.Error("Next does not find the call")
	}
}
