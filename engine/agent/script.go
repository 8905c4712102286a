package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// Script is a scripted player: POSIX shell blocks that are run in order, each
// as one exec request.
//
// The file's blocks are separated by lines that are "---". The comment lines at
// a block's top may hold directives:
//
//	# player NAME                          the player's name (first block)
//	# skill TEXT                           what it is good at (first block)
//	# pause 2.5s                           wait before the block
//	# note TEXT                            a remark, reported before the block
//	# on MACHINE                           run on that machine of the seat
//	# expect N                             the exit status that is right; "lost" for
//	                                       a session that breaks, as by a reboot
//	# must                                 give up when it ends otherwise (than 0)
//	# repeat until N every 1s for 30s      run again until it exits so
//
// A block without commands only waits and notes.
type Script struct {
	File   string // as in errors
	Player string // its name: "# player NAME", else the file's base name
	Skill  string // "# skill TEXT"
	Blocks []Block
}

// Block is one step of a script.
type Block struct {
	Line    int           // of its first line in the file
	Text    string        // what is executed; "" for a block that only waits or notes
	Machine string        // "# on MACHINE"; "" for the first
	Pause   time.Duration // "# pause 2.5s": before it
	Note    string        // "# note TEXT": reported before it
	Expect  *int          // "# expect 0"; Lost for "# expect lost"
	Must    bool          // "# must": give up unless it ended as expected (0 unless said)
	Repeat  *Repeat       // "# repeat until 0 every 1s for 30s"
}

// Repeat runs a block again until it exits as wanted or the time is over.
type Repeat struct {
	Until int
	Every time.Duration
	For   time.Duration
}

// Lost is the exit of a session that broke.
const Lost = -1

// Bounds of a script.
const (
	maxScript = 1 << 20
	maxBlocks = 1000
	// maxBlock is what one exec can carry: Linux takes no longer argument.
	maxBlock = 96 << 10
)

// ParseScript reads a script; errors name file and line.
func ParseScript(file string, data []byte) (*Script, error) {
	if len(data) > maxScript {
		return nil, fmt.Errorf("%s: a script has at most %d bytes, this one has %d", file, maxScript, len(data))
	}
	s := &Script{File: file, Player: strings.TrimSuffix(path.Base(file), ".sh")}
	var (
		block Block
		body  strings.Builder
		top   = true // of the block: directives may come
		n     int
	)
	block.Line = 1
	flush := func() error {
		// Lines keep their numbers, so that the shell parser's errors fit.
		block.Text = body.String()
		if err := block.check(file); err != nil {
			return err
		}
		if block.Text != "" || block.Pause > 0 || block.Note != "" {
			s.Blocks = append(s.Blocks, block)
		}
		if len(s.Blocks) > maxBlocks {
			return fmt.Errorf("%s:%d: a script has at most %d blocks", file, block.Line, maxBlocks)
		}
		block, top = Block{Line: n + 1}, true
		body.Reset()
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxScript+1)
	for lines.Scan() {
		n++
		l := lines.Text()
		if l == "---" {
			if err := flush(); err != nil {
				return nil, err
			}
			continue
		}
		trimmed := strings.TrimSpace(l)
		if trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			top = false
		}
		if top && strings.HasPrefix(trimmed, "#") {
			done, err := s.directive(&block, strings.TrimSpace(trimmed[1:]))
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n, err)
			}
			if done {
				l = ""
			}
		}
		body.WriteString(l)
		body.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, n, err)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	if len(s.Blocks) == 0 {
		return nil, fmt.Errorf("%s: the script has no blocks", file)
	}
	return s, nil
}

// check parses the block's shell and drops a text that has no command.
func (b *Block) check(file string) error {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(b.Text), "")
	var bad syntax.ParseError
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("%s:%d:%d: %s", file, b.Line+int(bad.Pos.Line())-1, bad.Pos.Col(), bad.Text)
	case err != nil:
		return fmt.Errorf("%s:%d: %w", file, b.Line, err)
	}
	if len(f.Stmts) == 0 {
		if b.Must || b.Expect != nil || b.Repeat != nil {
			return fmt.Errorf("%s:%d: the block expects something of commands that it does not have", file, b.Line)
		}
		b.Text = ""
		return nil
	}
	b.Text = strings.Trim(b.Text, "\n") + "\n"
	if len(b.Text) > maxBlock {
		return fmt.Errorf("%s:%d: a block has at most %d bytes, this one has %d: split it with a line ---", file, b.Line, maxBlock, len(b.Text))
	}
	return nil
}

// directive takes a comment's text; false when it is a mere comment.
func (s *Script) directive(b *Block, text string) (bool, error) {
	word, arg, _ := strings.Cut(text, " ")
	arg = strings.TrimSpace(arg)
	var err error
	switch word {
	case "player", "skill":
		if len(s.Blocks) > 0 {
			return false, fmt.Errorf("%q belongs into the first block", "# "+word)
		}
		if arg == "" {
			return false, fmt.Errorf("%q needs a text", "# "+word)
		}
		if word == "player" {
			s.Player = line(arg)
		} else {
			s.Skill = line(arg)
		}
	case "pause":
		b.Pause, err = positive(arg)
	case "note":
		if arg == "" {
			return false, errors.New(`"# note" needs a text`)
		}
		b.Note = line(arg)
	case "on":
		if arg == "" || strings.ContainsAny(arg, " \t") {
			return false, fmt.Errorf(`"# on" takes one machine's name, not %q`, arg)
		}
		b.Machine = arg
	case "expect":
		exit := Lost
		if arg != "lost" {
			exit, err = exitStatus(arg)
		}
		b.Expect = &exit
	case "must":
		if arg != "" {
			return false, fmt.Errorf(`"# must" takes nothing, not %q`, arg)
		}
		b.Must = true
	case "repeat":
		b.Repeat, err = parseRepeat(arg)
	default:
		return false, nil
	}
	return true, err
}

func parseRepeat(arg string) (*Repeat, error) {
	f := strings.Fields(arg)
	if len(f) != 6 || f[0] != "until" || f[2] != "every" || f[4] != "for" {
		return nil, fmt.Errorf(`"# repeat" is "# repeat until 0 every 1s for 30s", not %q`, "# repeat "+arg)
	}
	var r Repeat
	var err error
	if r.Until, err = exitStatus(f[1]); err != nil {
		return nil, err
	}
	if r.Every, err = positive(f[3]); err != nil {
		return nil, err
	}
	if r.For, err = positive(f[5]); err != nil {
		return nil, err
	}
	return &r, nil
}

func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("%q is not a time such as 2.5s", s)
	}
	return d, nil
}

func exitStatus(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 255 {
		return 0, fmt.Errorf("%q is not an exit status, 0 to 255", s)
	}
	return n, nil
}
