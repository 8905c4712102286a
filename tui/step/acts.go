package step

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"refbox/engine/playback"
	"refbox/engine/text"
	"refbox/engine/transcript"
	"refbox/tui/view"
)

// find looks for words from the chosen step on.
func (s *Screen) find(words string) tea.Cmd {
	s.stopLooking()
	s.words = strings.ToLower(strings.TrimSpace(words))
	if s.words == "" {
		return nil
	}
	s.last = nil
	s.look(1, 0)
	return nil
}

// look starts a search, skip steps away from the chosen one.
func (s *Screen) look(dir, skip int) {
	t := s.track()
	from := t.stepAt(t.sel) + dir*skip
	if from < 0 && dir < 0 {
		from = t.tr.Len() - 1
	}
	s.search = t.seek(s.words, max(0, from), dir, s.private)
}

// again repeats what was looked for last, in a direction.
func (s *Screen) again(h view.Host, dir int) tea.Cmd {
	switch {
	case s.last != nil:
		q := *s.last
		q.dir = dir
		s.start(h, q)
	case s.words == "":
		h.Say("nothing was looked for yet")
	default:
		s.stopLooking()
		s.look(dir, 1)
	}
	return nil
}

// goTo runs what was typed after ":": a step's number, a share, or a time.
func (s *Screen) goTo(h view.Host, value string) tea.Cmd {
	value = strings.TrimPrefix(strings.TrimSpace(value), "#")
	t := s.track()
	if value == "" {
		return nil
	}
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		if n >= t.tr.Len() && t.tr.Complete() {
			h.Say(fmt.Sprintf("there is no step %d: the last is %d", n, t.tr.Len()-1))
			return nil
		}
		s.move(func(t *track) { t.goTo(n) })
		return nil
	}
	if p, ok := strings.CutSuffix(value, "%"); ok {
		if n, err := strconv.ParseFloat(p, 64); err == nil && n >= 0 {
			s.move(func(t *track) { t.choose(int(min(n, 100) / 100 * float64(len(t.rows)-1))) })
			return nil
		}
	}
	if value == "start" || value == "end" {
		s.move(func(t *track) { t.choose(map[bool]int{true: len(t.rows)}[value == "end"]) })
		return nil
	}
	ms, err := playback.Parse(value, playback.Head{MS: 1 << 50})
	if err != nil {
		h.Say("a step's number, a share such as 50%, or a time such as 12m30s")
		return nil
	}
	if !t.timed() {
		h.Say("this record has no clock")
		return nil
	}
	s.move(func(t *track) { t.choose(t.at(int64(ms))) })
	return nil
}

// chooseSeat makes a side lead, or brings a seat of the heat beside this one.
func (s *Screen) chooseSeat(h view.Host, raw tea.KeyMsg) tea.Cmd {
	n := 0
	if len(raw.Runes) == 1 {
		n = int(raw.Runes[0] - '1')
	}
	if s.seat != nil {
		return s.besideSeat(h, n)
	}
	if n >= 0 && n < len(s.sides) {
		s.lead = n
	}
	return nil
}

// enter opens what is chosen: a sub-agent, a recorded session, what is folded; from
// a milestone it goes to the step that came before it.
func (s *Screen) enter(h view.Host) tea.Cmd {
	t := s.track()
	if t.onMark() {
		i := t.rowBefore(t.sel)
		if i < 0 {
			h.Say("no step that is listed began before this milestone")
			return nil
		}
		s.move(func(t *track) { t.choose(i) })
		h.Say("the last step that began before the milestone")
		return nil
	}
	head, ok := s.chosenHead(h)
	if !ok {
		return nil
	}
	if !s.detail {
		if i := t.subagent(head); i >= 0 {
			s.enterAgent(h, t, i)
			return nil
		}
		if t.cast != nil {
			if name := t.cast(head); name != "" {
				return s.enterCast(h, t, name)
			}
		}
	}
	if p, ok, _ := t.page(t.pageKey(head, s, t.asked.page.width)); ok && p.folded > 0 || t.open {
		t.open = !t.open
	}
	s.detail = true
	return nil
}

// enterAgent steps through a sub-agent's own record, or its steps in this one.
func (s *Screen) enterAgent(h view.Host, t *track, i int) {
	a := t.agents()[i]
	var next *track
	if a.File != "" {
		tr, err := t.tr.OpenAgent(i)
		if err != nil {
			h.Say(text.Line(err.Error()))
			return
		}
		next = newTrack(newRecord(s.ctx, tr, references{}, t.grew, s.wake), t.agentName(i))
		next.owned = true
	} else {
		next = newTrack(t.record, t.agentName(i))
		next.lens = i
	}
	next.zero, next.placed = t.zero, t.placed
	s.push(next)
}

func (s *Screen) push(t *track) {
	d := s.sides[s.lead]
	d.stack = append(d.stack, t)
	s.detail = false
	s.stopLooking()
}

// copyStep puts the chosen step into the clipboard.
func (s *Screen) copyStep(h view.Host) tea.Cmd {
	head, ok := s.chosenHead(h)
	if !ok {
		return nil
	}
	t, private := s.track(), s.private
	return t.besides(h, head.Index, transcript.BodyLimit, func(h view.Host, f *transcript.Full) tea.Cmd { return h.Copy(plain(f, private)) })
}

// besides reads a step outside the program's goroutine.
func (t *track) besides(h view.Host, i, limit int, then func(h view.Host, f *transcript.Full) tea.Cmd) tea.Cmd {
	return h.Beside(hold(t, func() (*transcript.Full, error) { return t.tr.FullLimit(i, limit) }, then))
}

// hold works on a record that is not closed meanwhile, and comes back only to a
// screen that is still there.
func hold[T any](t *track, work func() (T, error), then func(h view.Host, v T) tea.Cmd) func(context.Context) (func(view.Host) tea.Cmd, error) {
	return func(context.Context) (func(view.Host) tea.Cmd, error) {
		if !t.enter() {
			return nil, nil
		}
		defer t.done.Done()
		v, err := work()
		if err != nil {
			return nil, err
		}
		return func(h view.Host) tea.Cmd {
			if t.within.Err() != nil {
				switch v := any(v).(type) {
				case *transcript.Transcript:
					v.Close() //nolint:errcheck // nobody will read it
				case *track:
					v.close() //nolint:errcheck // the same
				}
				return nil
			}
			return then(h, v)
		}, nil
	}
}

// editLimit is what an editor gets of each body.
const editLimit = 64 << 20

// edit opens the chosen step in $EDITOR: a copy that is removed afterwards.
func (s *Screen) edit(h view.Host) tea.Cmd {
	head, ok := s.chosenHead(h)
	if !ok {
		return nil
	}
	editor := strings.Fields(firstOf(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if _, err := exec.LookPath(editor[0]); err != nil {
		h.Say("there is no editor " + text.Line(editor[0]) + ": set EDITOR")
		return nil
	}
	private := s.private
	return s.track().besides(h, head.Index, editLimit, func(h view.Host, f *transcript.Full) tea.Cmd {
		name, err := leaf(f, private)
		if err != nil {
			h.Say(text.Line(err.Error()))
			return nil
		}
		return tea.ExecProcess(editing(editor, name), func(err error) tea.Msg {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(name)))
			s.after(err)
			return nil
		})
	})
}

// editing is the user's own editor on a file. It gets the terminal itself: the
// program's output is written through a filter, and would reach it as a pipe.
func editing(editor []string, name string) *exec.Cmd {
	cmd := exec.Command(editor[0], append(slices.Clone(editor[1:]), name)...) // #nosec
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// after tells how an editor ended.
func (s *Screen) after(err error) {
	if err == nil {
		return
	}
	s.later.Store(text.Line("the editor: " + err.Error()))
	s.wake()
}

// leaf writes a step into a file that only its owner can read, in a folder of its
// own, which goes with it.
func leaf(f *transcript.Full, private bool) (name string, err error) {
	dir, err := os.MkdirTemp("", "refbox-step-")
	if err != nil {
		return "", fmt.Errorf("a copy for the editor: %w", err)
	}
	name = filepath.Join(dir, fmt.Sprintf("step-%d.txt", f.Index))
	if err := os.WriteFile(name, []byte(plain(f, private)), 0o600); err != nil {
		return "", errors.Join(fmt.Errorf("a copy for the editor: %w", err), os.RemoveAll(dir))
	}
	return name, nil
}

func firstOf(list ...string) string {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// heatHere moves the heat to the chosen row's time.
func (s *Screen) heatHere(h view.Host) {
	t := s.track()
	ms, ok := t.when(t.sel)
	switch {
	case s.seat == nil:
		h.Say("there is no heat behind this record")
	case !ok || !t.placed:
		h.Say("where this record lies on the heat's clock is not known")
	default:
		s.seat.Seek(uint64(max(0, ms)))
		h.Say("the heat is at " + view.Clock(ms))
	}
}

// enterCast steps through a recorded session.
func (s *Screen) enterCast(h view.Host, t *track, name string) tea.Cmd {
	if s.seat == nil {
		return nil
	}
	tree := s.seat.Recording.Tree()
	if tree == nil {
		h.Say("this recording has no folder")
		return nil
	}
	return h.Beside(hold(t, func() (*transcript.Transcript, error) {
		tr, err := transcript.OpenFS(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the session %s was not kept", text.Line(name))
		}
		return tr, err
	}, func(h view.Host, tr *transcript.Transcript) tea.Cmd {
		next := newTrack(newRecord(s.ctx, tr, references{}, nil, s.wake), strings.TrimSuffix(path.Base(name), ".cast"))
		next.owned = true
		next.placed, next.zero = true, 0 // casts are on the heat's clock
		s.push(next)
		return nil
	}))
}
