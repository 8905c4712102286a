package event

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line that is read, in bytes. A longer one is skipped
// whole and counts as broken.
const MaxLine = 16 << 20

// Hash is a line's hash as the next line's prev carries it.
func Hash(line []byte) string {
	sum := sha256.Sum256(bytes.TrimSuffix(line, []byte("\n")))
	return hex.EncodeToString(sum[:])
}

// ChainError says where a chain is broken.
type ChainError struct {
	Line   int   // from 1
	Offset int64 // of the line's first byte
	Text   string
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("line %d (byte %d): %s", e.Line, e.Offset, e.Text)
}

// Chain follows the hashes of a log line by line. It names the line whose bytes
// are not those that were written. Which of two neighbours was altered shows only
// with the line after them, so a break may be reported one line late.
type Chain struct {
	prev    string // the hash that the next line has to carry
	line    int
	offset  int64 // of the last line
	before  int64 // of the one before
	size    int64
	chained bool
	plain   bool // the first line carries no prev: not a chained log
	suspect bool // the last line does not carry the hash of the one before
}

// NewChain starts a chain. An empty genesis accepts any prev on the first line.
func NewChain(genesis string) *Chain { return &Chain{prev: genesis} }

// Chained says whether the log carries a chain at all; the reference's don't.
func (c *Chain) Chained() bool { return c.chained }

// Head is the hash of the last line.
func (c *Chain) Head() string { return c.prev }

// Next takes the next line, with its newline. The error is a *ChainError; reading
// may go on.
func (c *Chain) Next(line []byte) error {
	got, ok := prevOf(line)
	if c.line == 0 {
		c.chained = ok
		c.plain = !ok && c.prev == ""
		if c.prev == "" {
			c.prev = got
		}
	}
	var err error
	if !c.plain {
		err = c.link(got == c.prev)
	}
	c.line++
	c.before, c.offset = c.offset, c.size
	c.size += int64(len(line))
	c.prev = Hash(line)
	return err
}

// link judges the tie between the last line and what follows it.
func (c *Chain) link(holds bool) error {
	suspect := c.suspect
	c.suspect = !holds && !suspect
	switch {
	case holds && suspect && c.line == 1:
		return &ChainError{1, c.offset, "does not carry the hash of match.json's start part, and is itself intact: match.json was altered"}
	case holds && suspect:
		return &ChainError{c.line - 1, c.before, fmt.Sprintf("was altered: its hash is not the one that line %d carries", c.line)}
	case !holds && suspect:
		return &ChainError{c.line, c.offset, "was altered: neither its hash nor the hash that it carries fits its neighbours"}
	}
	return nil
}

// Close ends the chain. Sealed is the head that match.json names, empty when the
// heat was never closed: then a change to the last line cannot be told.
func (c *Chain) Close(sealed string) error {
	switch {
	case c.line == 0:
		if sealed != "" && sealed != c.prev {
			return &ChainError{1, 0, "is gone: match.json names lines that the log does not have"}
		}
		return nil
	case sealed == "":
		if c.suspect {
			return &ChainError{c.line, c.offset, "or the line before it was altered: the one does not carry the other's hash"}
		}
		return nil
	}
	holds := sealed == c.prev
	if err := c.link(holds); err != nil {
		return err
	}
	if !holds {
		return &ChainError{c.line, c.offset, "is not the last line that match.json names: it was altered, or lines after it are gone"}
	}
	return nil
}

// prevOf finds the last member of a line, which is prev in ours.
func prevOf(line []byte) (string, bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	const tail = len(`,"prev":"`) + 64 + len(`"}`)
	if len(line) < tail {
		return "", false
	}
	end := line[len(line)-tail:]
	if !bytes.HasPrefix(end, []byte(`,"prev":"`)) || !bytes.HasSuffix(end, []byte(`"}`)) {
		return "", false
	}
	return string(end[len(`,"prev":"`) : tail-2]), true
}

// ErrTooLong: a line is longer than MaxLine.
var ErrTooLong = errors.New("line is longer than 16 MiB")

// ReadLine reads one line with its newline, and its length. At the end of the
// input a rest without newline comes with io.EOF. Of a line longer than MaxLine
// nothing is returned but its length, with ErrTooLong, and reading can go on.
func ReadLine(r *bufio.Reader) (line []byte, n int, err error) {
	line, err = r.ReadSlice('\n')
	n = len(line)
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, n, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		n += len(line)
		if long != nil {
			if long = append(long, line...); len(long) > MaxLine {
				long = nil
			}
		}
	}
	if long == nil && (err == nil || errors.Is(err, io.EOF)) {
		return nil, n, ErrTooLong
	}
	return long, n, err
}
