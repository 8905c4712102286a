package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"refbox/engine/bounded"
	"refbox/engine/event"
	"refbox/engine/text"
)

// Names of the files of a ledger's folder.
const (
	LogName    = "ledger.jsonl"
	ModelName  = "model.json"
	PolicyName = "policy.toml"
)

const (
	maxLedger  = 256 << 20
	maxEntries = 100_000
)

// Ledger is a model with what is known of it.
type Ledger struct {
	File    string // as it was opened: a model's, or the log of a ledger
	Model   *Model
	Policy  *Policy
	Entries []Entry
	// Head is the hash of the last line: who keeps it elsewhere sees whether lines
	// were taken away. "" for a model alone.
	Head string
	// Findings are of the files; Breaks of them make the rest unreliable.
	Findings []Finding

	files []string
}

// Files are those that a ledger was read from.
func (l *Ledger) Files() []string { return l.files }

// Log is the path of a ledger's log; "" for a model alone.
func (l *Ledger) Log() string {
	if l.Head == "" {
		return ""
	}
	return l.File
}

// Open reads a ledger by its folder or its log, or a model alone, which then has a
// ledger without evidence and the given policy, unless a policy lies beside it.
// What is wrong with the files is in Findings; the error is for what cannot be
// shown at all.
func Open(name string, policy *Policy) (*Ledger, error) {
	info, err := os.Stat(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is not there; refbox ledger init %s makes a ledger", text.Line(name), text.Shell(name))
		}
		return nil, err
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(name, LogName)); err == nil {
			return openLog(filepath.Join(name, LogName))
		}
		return nil, fmt.Errorf("%s holds no %s; refbox ledger init makes one", text.Line(name), LogName)
	}
	data, err := bounded.File(name, maxLedger)
	if err != nil {
		return nil, err
	}
	if isLog(data) {
		return openLog(name)
	}
	l := &Ledger{File: name, Policy: policy, files: []string{name}}
	beside := filepath.Join(filepath.Dir(name), PolicyName)
	if data, err := bounded.File(beside, maxPolicy); err == nil {
		if l.Policy, err = ParsePolicy(beside, data); err != nil {
			return nil, err
		}
		l.files = append(l.files, beside)
	}
	return l.use(name, data)
}

// Parse is a model that is no file, with a policy and no evidence.
func Parse(name string, data []byte, policy *Policy) (*Ledger, error) {
	return (&Ledger{File: name, Policy: policy}).use(name, data)
}

func (l *Ledger) use(name string, data []byte) (*Ledger, error) {
	m, found := ParseModel(name, data)
	l.Findings = append(l.Findings, found...)
	if m == nil || Breaks(found) {
		return nil, &Invalid{File: name, Findings: l.Findings}
	}
	l.Model = m
	return l, nil
}

// Invalid is the error of a model that is not sound.
type Invalid struct {
	File     string
	Findings []Finding
}

func (e *Invalid) Error() string {
	var b bytes.Buffer
	n := 0
	for _, f := range e.Findings {
		if f.Severity == Break && n < 20 {
			if n++; n > 1 {
				b.WriteString("\n  ")
			}
			b.WriteString(f.String())
		}
	}
	return b.String()
}

// isLog says whether a file's first line is that of a ledger, and not a model's.
func isLog(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var e struct {
		Schema string `json:"schema"`
		Prev   string `json:"prev"`
	}
	return json.Unmarshal(line, &e) == nil && e.Schema == Schema
}

// openLog reads a ledger's log, and the model and policy that it adopted last.
func openLog(name string) (*Ledger, error) {
	data, err := bounded.File(name, maxLedger)
	if err != nil {
		return nil, err
	}
	l := &Ledger{File: name, files: []string{name}}
	if err := l.read(data); err != nil {
		return nil, err
	}
	a := l.adopted()
	if a == nil {
		return nil, fmt.Errorf("%s adopts no model: its first line is not what refbox ledger init writes", text.Line(name))
	}
	dir := filepath.Dir(name)
	for _, file := range []string{a.File, a.Policy} {
		if !filepath.IsLocal(file) {
			return nil, fmt.Errorf("%s: %.100q is not beside the ledger", text.Line(name), file)
		}
	}
	policyFile, modelFile := filepath.Join(dir, a.Policy), filepath.Join(dir, a.File)
	rules, err := bounded.File(policyFile, maxPolicy)
	if err != nil {
		return nil, fmt.Errorf("the ledger's policy: %w", err)
	}
	if l.Policy, err = ParsePolicy(policyFile, rules); err != nil {
		return nil, err
	}
	written, err := bounded.File(modelFile, MaxModel)
	if err != nil {
		return nil, fmt.Errorf("the ledger's model: %w", err)
	}
	l.files = append(l.files, modelFile, policyFile)
	if _, err := l.use(modelFile, written); err != nil {
		return nil, err
	}
	l.Findings = append(l.Findings, l.changed()...)
	return l, nil
}

// adopted is the last adoption of a model, nil for none.
func (l *Ledger) adopted() *Adoption {
	for _, e := range slices.Backward(l.Entries) {
		if e.Model != nil {
			return e.Model
		}
	}
	return nil
}

// changed holds the model beside the ledger to those that it has adopted.
func (l *Ledger) changed() []Finding {
	var out []Finding
	add := func(s Severity, code Code, format string, args ...any) {
		out = append(out, Finding{Severity: s, Code: code, File: l.files[1], Text: text.Line(fmt.Sprintf(format, args...))})
	}
	for _, line := range l.everProhibited() {
		if !slices.Contains(l.Model.Prohibited, line) {
			add(Break, ProhibitedRemoved, "no longer prohibits %q, which the ledger has adopted: prohibitions are only added", line)
		}
	}
	spoken := map[string]bool{}
	for _, e := range l.Entries {
		switch {
		case e.Kept != nil:
			spoken[e.Kept.Scenario] = true
		case e.Decision != nil:
			spoken[e.Decision.Scenario] = true
		}
	}
	for _, id := range sorted(spoken) {
		if l.Model.Scenario(id) == nil {
			add(Break, ScenarioSet, "has no scenario %s any more, of which the ledger holds evidence or a decision", id)
		}
	}
	a := l.adopted()
	if a.SHA256 != l.Model.SHA256() {
		add(Note, "", "was changed since the ledger adopted it; the next line adopts it as it is")
	}
	if a.PolicySHA256 != l.Policy.SHA256() {
		out = append(out, Finding{Severity: Note, File: l.files[2], Text: "was changed since the ledger adopted it: what was judged by the old one is of another target"})
	}
	return out
}

// everProhibited are the prohibited lines of every model that was adopted.
func (l *Ledger) everProhibited() []string {
	var out []string
	for _, e := range l.Entries {
		if e.Model != nil {
			for _, p := range e.Model.Prohibited {
				if !slices.Contains(out, p) {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// read takes a log's lines. Only whole ones count.
func (l *Ledger) read(data []byte) error {
	chain := event.NewChain(genesis())
	r := bufio.NewReader(bytes.NewReader(data))
	for n := 1; ; n++ {
		line, size, err := event.ReadLine(r)
		if size == 0 {
			break
		}
		bad := func(s Severity, code Code, format string, args ...any) {
			if len(l.Findings) < 1000 {
				l.Findings = append(l.Findings, Finding{Severity: s, Code: code, File: l.File, Line: n, Text: text.Line(fmt.Sprintf(format, args...))})
			}
		}
		if err != nil && errors.Is(err, io.EOF) {
			bad(Note, "", "was never finished: %d bytes are left out", size)
			break
		}
		if n > maxEntries {
			return fmt.Errorf("%s has more than %d lines", text.Line(l.File), maxEntries)
		}
		if err := chain.Next(line); err != nil {
			bad(Break, Integrity, "the chain is broken: %v", err)
		}
		e, err := parseEntry(line)
		if err != nil {
			bad(Break, BadField, "%v", err)
			continue
		}
		if e.Sequence != uint64(n-1) {
			bad(Break, Integrity, "sequence %d where %d is next", e.Sequence, n-1)
		}
		e.line = n
		l.Entries = append(l.Entries, e)
	}
	if err := chain.Close(""); err != nil {
		l.Findings = append(l.Findings, Finding{Severity: Break, Code: Integrity, File: l.File, Text: text.Line("the chain is broken: " + err.Error())})
	}
	l.Head = chain.Head()
	return nil
}

// Adopt is the entry that adopts the ledger's model and policy as they are.
func (l *Ledger) Adopt(now time.Time, modelFile, policyFile string) Entry {
	return Entry{At: now.UTC(), Model: &Adoption{File: modelFile, SHA256: l.Model.SHA256(), Release: l.Model.Release, Scenarios: l.Model.IDs(),
		Prohibited: l.Model.Prohibited, Policy: policyFile, PolicySHA256: l.Policy.SHA256()}}
}

// News are the offers of a heat that the ledger does not hold yet, of the target that
// they are of, as entries.
func (l *Ledger) News(j Judged) []Entry {
	var out []Entry
	for i := range j.Offers {
		o := &j.Offers[i]
		if !slices.ContainsFunc(l.Entries, func(e Entry) bool {
			return e.Kept != nil && e.Kept.ID == o.Evidence.ID && e.Kept.Target.Digest == o.Evidence.Target.Digest && e.Kept.Fix == o.Evidence.Fix
		}) {
			out = append(out, Entry{Kept: o.Kept()})
		}
	}
	return out
}

// Append writes entries at the end of a ledger's log, each a whole line on the
// disk, or nothing. The log must be what l was read from: another that appended
// meanwhile is an error. A changed model or policy is adopted first; one that
// takes back what was adopted is refused.
func (l *Ledger) Append(now time.Time, entries ...Entry) (*Ledger, error) {
	if l.Log() == "" {
		return nil, fmt.Errorf("%s is a model without a ledger; refbox ledger init --model %s makes one", text.Line(l.File), text.Shell(l.File))
	}
	if Breaks(l.Findings) {
		return nil, &Invalid{File: l.File, Findings: l.Findings}
	}
	f, err := os.OpenFile(l.File, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // and with it the lock
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", text.Line(l.File), err)
	}
	fresh, err := openLog(l.File)
	if err != nil {
		return nil, err
	}
	if fresh.Head != l.Head {
		return nil, fmt.Errorf("%s grew while this was decided; do it again", text.Line(l.File))
	}
	if a := l.adopted(); a.SHA256 != l.Model.SHA256() || a.PolicySHA256 != l.Policy.SHA256() {
		entries = append([]Entry{l.Adopt(now, a.File, a.Policy)}, entries...)
	}
	for i := range entries {
		entries[i].At = now.UTC()
	}
	data, err := encode(entries, uint64(len(l.Entries)), l.Head)
	if err != nil {
		return nil, err
	}
	if err := extend(f, data); err != nil {
		return nil, fmt.Errorf("write %s: %w", text.Line(l.File), err)
	}
	return openLog(l.File)
}

// extend writes data after the last whole line; what could not be written whole is
// taken back.
func extend(f *os.File, data []byte) error {
	all, err := io.ReadAll(io.LimitReader(f, maxLedger))
	if err != nil {
		return err
	}
	end := int64(bytes.LastIndexByte(all, '\n') + 1)
	if err := f.Truncate(end); err != nil { // a line that was never finished
		return err
	}
	if _, err = f.WriteAt(data, end); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(end))
	}
	return nil
}

// Init makes a ledger's folder: the model and the policy as they are, and a log
// that adopts them. Files that are there are left alone: an error that Is
// fs.ErrExist.
func Init(dir string, model, policy []byte, now time.Time) (*Ledger, error) {
	l := &Ledger{File: filepath.Join(dir, LogName)}
	var err error
	if l.Policy, err = ParsePolicy(PolicyName, policy); err != nil {
		return nil, err
	}
	if _, err := l.use(ModelName, model); err != nil {
		return nil, err
	}
	line, err := encode([]Entry{l.Adopt(now, ModelName, PolicyName)}, 0, genesis())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files := []struct {
		name string
		data []byte
	}{{ModelName, model}, {PolicyName, policy}, {LogName, line}}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); err == nil {
			return nil, fmt.Errorf("%s: %w; name another folder", text.Line(filepath.Join(dir, f.name)), fs.ErrExist)
		}
	}
	for _, f := range files {
		if err := create(filepath.Join(dir, f.name), f.data); err != nil {
			return nil, err
		}
	}
	return openLog(l.File)
}

func create(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
