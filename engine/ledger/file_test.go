package ledger_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"refbox/assets"
	"refbox/engine/ledger"
	"refbox/engine/ledger/ledgertest"
	"refbox/engine/text"
)

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// What is written is read back; a ledger only grows.
func TestFile(t *testing.T) {
	l := book(t)
	before := read(t, l.File)
	l, _ = add(t, l, ledgertest.Story{}, ledger.Review{})
	l = decide(t, l, ledger.Decision{Scenario: "disk-stall", Kind: ledger.Own, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"})
	after := read(t, l.File)
	if !bytes.HasPrefix(after, before) || bytes.Count(after, []byte("\n")) != 3 {
		t.Errorf("the log did not grow by two lines:\n%s", after)
	}
	for _, name := range []string{l.File, filepath.Dir(l.File)} {
		got, err := ledger.Open(name, nil)
		if err != nil || len(got.Findings) > 0 || got.Head != l.Head || len(got.Entries) != 3 {
			t.Errorf("%s: %v, %v", name, got.Findings, err)
		}
	}
	if _, err := ledger.Init(filepath.Dir(l.File), assets.LedgerModel(), assets.LedgerPolicy(), now); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
	if m, err := ledger.Open(filepath.Join(filepath.Dir(l.File), ledger.ModelName), nil); err != nil || m.Log() != "" || m.Policy == nil {
		t.Errorf("the model alone, with the policy beside it: %v", err)
	}
	if _, err := ledger.Open(filepath.Join(t.TempDir(), "nothing"), nil); err == nil || !strings.Contains(err.Error(), "refbox ledger init") {
		t.Errorf("what is not there: %v", err)
	}
}

// A line that was never finished is left out, and written over.
func TestTornTail(t *testing.T) {
	l := book(t)
	whole := read(t, l.File)
	write(t, l.File, append(bytes.Clone(whole), `{"schema":"refbox-ledger-v1","sequ`...))
	torn, err := ledger.Open(l.File, nil)
	if err != nil || ledger.Breaks(torn.Findings) || !told(torn.Findings, ledger.Note, "", "never finished") {
		t.Fatalf("%v, %v", torn.Findings, err)
	}
	next := decide(t, torn, ledger.Decision{Scenario: "disk-stall", Kind: ledger.Own, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"})
	if len(next.Findings) > 0 || len(next.Entries) != 2 || !bytes.HasPrefix(read(t, l.File), whole) {
		t.Errorf("%v\n%s", next.Findings, read(t, l.File))
	}
}

// Any byte of a line that is altered, and any line that is gone from the middle, is
// found; only the last line's needs the head that somebody kept.
func TestChain(t *testing.T) {
	l := book(t)
	for _, id := range []string{"disk-stall", "host-loss", "client-session-loss"} {
		l = decide(t, l, ledger.Decision{Scenario: id, Kind: ledger.Own, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"})
	}
	whole := read(t, l.File)
	rows := bytes.SplitAfter(whole, []byte("\n"))
	last := len(whole) - len(rows[3])
	for at := 0; at < last; at += 7 {
		spoilt := bytes.Clone(whole)
		spoilt[at] ^= 1
		write(t, l.File, spoilt)
		if got, err := ledger.Open(l.File, nil); err == nil && !ledger.Breaks(got.Findings) {
			t.Fatalf("byte %d altered, and nobody sees it: %q", at, spoilt[max(0, at-20):at+20])
		}
	}
	write(t, l.File, bytes.Join([][]byte{rows[0], rows[1], rows[3]}, nil))
	if got, err := ledger.Open(l.File, nil); err != nil || !told(got.Findings, ledger.Break, ledger.Integrity, "chain") {
		t.Errorf("a line is gone: %v, %v", got, err)
	}
	write(t, l.File, whole[:last])
	if got, err := ledger.Open(l.File, nil); err != nil || got.Head == l.Head {
		t.Errorf("the last line is gone, and the head is the same: %v", err)
	}
	if _, err := l.Append(now, ledger.Entry{}); err == nil {
		t.Error("appended to a log that is not what was read")
	}
}

// A model may grow; it may not take back what it prohibits, or a scenario that the
// ledger speaks of.
func TestChangedModel(t *testing.T) {
	l := book(t)
	l = decide(t, l, ledger.Decision{Scenario: "disk-stall", Kind: ledger.Own, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"})
	model := filepath.Join(filepath.Dir(l.File), ledger.ModelName)
	base := string(read(t, model))
	open := func(text string) *ledger.Ledger {
		t.Helper()
		write(t, model, []byte(text))
		got, err := ledger.Open(l.File, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	d := ledger.Decision{Scenario: "host-loss", Kind: ledger.Own, Owner: "x", Reason: "y", ReviewOn: "2027-01-01"}

	const first = `"a planned switchover that went well proves that a crash is survived",`
	shorter := open(strings.Replace(base, first, "", 1))
	if !told(shorter.Findings, ledger.Break, ledger.ProhibitedRemoved, "no longer prohibits") {
		t.Errorf("findings %v", shorter.Findings)
	}
	if _, err := shorter.Append(now, ledger.Entry{Decision: &d}); err == nil || !strings.Contains(err.Error(), string(ledger.ProhibitedRemoved)) {
		t.Errorf("appended: %v", err)
	}
	if gone := open(strings.Replace(base, `"disk-stall"`, `"disk-standstill"`, 1)); !told(gone.Findings, ledger.Break, ledger.ScenarioSet, "disk-stall any more") {
		t.Errorf("findings %v", gone.Findings)
	}
	more := open(strings.Replace(base, first, first+"\n    \"a green light proves that it is on\",", 1))
	if ledger.Breaks(more.Findings) || !told(more.Findings, ledger.Note, "", "was changed since") {
		t.Errorf("findings %v", more.Findings)
	}
	next := decide(t, more, d)
	if len(next.Findings) > 0 || len(next.Entries) != 4 || next.Entries[2].Model == nil {
		t.Errorf("the grown model is not adopted: %v", next.Findings)
	}
	if back := open(base); !told(back.Findings, ledger.Break, ledger.ProhibitedRemoved, "green light") {
		t.Errorf("taken back: %v", back.Findings)
	}
}

// Policies that are not sound are refused with what is wrong.
func TestPolicy(t *testing.T) {
	base := string(assets.LedgerPolicy())
	for _, x := range []struct{ old, new, want string }{
		{"drill_max_age_days = 90", "drill_max_age_days = 0", "drill_max_age_days"},
		{"acks_before = 5", "acks_before = 0", "acks_before"},
		{"acks_before = 5", "acks_before = ", "policy.toml:10"},
		{"acks_before = 5", "colour = 5\nacks_before = 5", "colour: unknown key"},
		{`scenarios = ["host-loss"]`, `scenarios = ["dcs-loss"]`, "has a rule already"},
		{`scenarios = ["host-loss"]`, `scenarios = []`, "names no scenario"},
		{`full = ["power-cut"]`, `full = ["Power cut"]`, "is no id"},
		{`why = "Nothing`, `why = "\u001b[2JNothing`, "plain text"},
		{`conclusion = "each machine fails alone"`, `conclusion = ""`, "lacks scenarios, conclusion"},
	} {
		text := strings.Replace(base, x.old, x.new, 1)
		if _, err := ledger.ParsePolicy("policy.toml", []byte(text)); text == base || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %q", x.new, err, x.want)
		}
	}
	if _, err := ledger.ParsePolicy("policy.toml", []byte(strings.Replace(base, "why = ", "# why = ", 1))); err == nil || !strings.Contains(err.Error(), "why does not say") {
		t.Errorf("nothing says why: %v", err)
	}
}

// Whatever the files hold, opening ends, and what it says is fit to be shown.
func FuzzOpen(f *testing.F) {
	f.Add(assets.LedgerModel(), []byte(""))
	l := book(f)
	f.Add(assets.LedgerModel(), read(f, l.File))
	f.Add([]byte("{}"), []byte("{\n"))
	f.Fuzz(func(t *testing.T, model, log []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, ledger.ModelName), model)
		write(t, filepath.Join(dir, ledger.PolicyName), assets.LedgerPolicy())
		write(t, filepath.Join(dir, ledger.LogName), log)
		for _, name := range []string{ledger.ModelName, ledger.LogName} {
			l, err := ledger.Open(filepath.Join(dir, name), nil)
			if err != nil {
				if s := err.Error(); !utf8.ValidString(s) || text.Block(s) != s {
					t.Errorf("%q", s)
				}
				continue
			}
			for _, f := range l.Derive(ledger.Settings{Today: today}).Findings {
				if text.Line(f.Text) != f.Text {
					t.Errorf("%q", f.Text)
				}
			}
		}
	})
}
