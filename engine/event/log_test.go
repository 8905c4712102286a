package event

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

func writeLog(t testing.TB, n int) (path, genesis, head string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "events.jsonl")
	genesis = Hash([]byte("start part"))
	a, err := Create(path, genesis)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := a.Append(uint64(i*10), MilestoneFailed{Territory: "one", Milestone: "reads", Detail: fmt.Sprintf("try %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return path, genesis, a.Head()
}

func TestAppenderChainsItsLines(t *testing.T) {
	path, genesis, head := writeLog(t, 5)
	lines := readLines(t, path)
	if len(lines) != 5 {
		t.Fatalf("%d lines", len(lines))
	}
	prev := genesis
	for i, line := range lines {
		e, err := decodeRaw(line)
		if err != nil || e.Sequence != uint64(i) || e.Prev != prev {
			t.Fatalf("line %d: %+v, %v", i, e, err)
		}
		prev = Hash(line)
	}
	if prev != head {
		t.Fatal("Head is not the hash of the last line")
	}
	if _, err := Create(path, genesis); !errors.Is(err, os.ErrExist) {
		t.Fatalf("a log that holds a heat was opened again: %v", err)
	}
}

func TestAppenderFromManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	a, err := Create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := a.Append(uint64(i), OperatorNote{Author: fmt.Sprint(g), Text: strings.Repeat("x", i*40)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i, line := range readLines(t, path) {
		e, err := Decode(line)
		if err != nil || e.Sequence != uint64(i) || e.ElapsedMS < last {
			t.Fatalf("line %d: %+v %v", i, e, err)
		}
		last = e.ElapsedMS
	}
	f, _ := os.Open(path)
	defer f.Close()
	if _, breaks, err := verifyChain(f, "", a.Head()); err != nil || len(breaks) > 0 {
		t.Fatalf("%v %v", breaks, err)
	}
}

func TestDiskFullLeavesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	a, err := Create(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(0, OperatorNote{Text: "kept"}); err != nil {
		t.Fatal(err)
	}
	// A file size limit makes the kernel cut a write short, as a full disk does.
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Skipf("no file size limit here: %v", err)
	}
	size, _ := os.Stat(path)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(size.Size()) + 20, Max: old.Max}); err != nil {
		t.Skipf("no file size limit here: %v", err)
	}
	_, first := a.Append(1, OperatorNote{Text: "lost"})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if first == nil || !strings.Contains(first.Error(), path) {
		t.Fatalf("error = %v", first)
	}
	if _, again := a.Append(2, OperatorNote{Text: "later"}); !errors.Is(again, first) {
		t.Fatalf("the error did not stick: %v", again)
	}
	a.Close()
	data, _ := os.ReadFile(path)
	if n := bytes.Count(data, []byte("\n")); n != 1 || data[len(data)-1] != '\n' {
		t.Fatalf("the log does not end with a whole line: %q", data)
	}
}

func TestAnyAlteredByteIsFoundAndItsLineNamed(t *testing.T) {
	path, genesis, head := writeLog(t, 7)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, breaks, err := verifyChain(bytes.NewReader(whole), genesis, head); err != nil || len(breaks) != 0 {
		t.Fatalf("an unaltered log: %v %v", breaks, err)
	}
	check := func(fatalf func(string, ...any), at int, to byte) {
		altered := bytes.Clone(whole)
		if altered[at] == to {
			return
		}
		altered[at] = to
		line := 1 + bytes.Count(whole[:at], []byte("\n"))
		_, breaks, err := verifyChain(bytes.NewReader(altered), genesis, head)
		if err != nil {
			fatalf("%v", err)
		}
		for _, b := range breaks {
			var ce *ChainError
			if errors.As(b, &ce) && ce.Line == line {
				return
			}
		}
		fatalf("byte %d of line %d changed to %q: reported %v", at, line, to, breaks)
	}
	for at := range whole {
		check(t.Fatalf, at, whole[at]^1)
		check(t.Fatalf, at, '\n')
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt.Fatalf, rapid.IntRange(0, len(whole)-1).Draw(rt, "at"), rapid.Byte().Draw(rt, "to"))
	})
}

func TestMissingTailAndAlteredStartAreFound(t *testing.T) {
	path, genesis, head := writeLog(t, 4)
	whole, _ := os.ReadFile(path)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, c := range map[string]struct {
		log     []byte
		genesis string
	}{
		"last line gone":  {bytes.Join(lines[:3], nil), genesis},
		"all gone":        {nil, genesis},
		"first line gone": {bytes.Join(lines[1:], nil), genesis},
		"line gone":       {bytes.Join([][]byte{lines[0], lines[1], lines[3]}, nil), genesis},
		"other start":     {whole, Hash([]byte("x"))},
	} {
		if _, breaks, err := verifyChain(bytes.NewReader(c.log), c.genesis, head); err != nil || len(breaks) == 0 {
			t.Errorf("%s: %v %v", name, breaks, err)
		}
	}
}

// verifyChain reads a log to its end and returns every break, and the hash of
// the last whole line. A sealed log's head is what it should be; empty when the
// log was never sealed (the heat did not end): then a change to its last line
// cannot be told.
func verifyChain(r io.Reader, genesis, sealed string) (head string, breaks []error, err error) {
	c := NewChain(genesis)
	br := bufio.NewReaderSize(r, 256<<10)
	for {
		line, _, err := ReadLine(br)
		if errors.Is(err, ErrTooLong) {
			breaks = append(breaks, &ChainError{c.line + 1, c.size, "is longer than any line that is written"})
			return c.prev, breaks, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return c.prev, breaks, err
		}
		if errors.Is(err, io.EOF) {
			if len(line) > 0 && sealed != "" {
				breaks = append(breaks, &ChainError{c.line + 1, c.size, "has no newline, in a log that was closed properly"})
			}
			break
		}
		if breakErr := c.Next(line); breakErr != nil {
			breaks = append(breaks, breakErr)
		}
	}
	if err := c.Close(sealed); err != nil {
		breaks = append(breaks, err)
	}
	return c.prev, breaks, nil
}

// decodeRaw decodes a line with its strings as they are in the file.
func decodeRaw(line []byte) (Event, error) { return (&Decoder{Raw: true}).Decode(line) }
