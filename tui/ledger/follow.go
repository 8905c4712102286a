package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"refbox/engine/ledger"
	"refbox/engine/text"
)

const (
	slowPoll = 2 * time.Second
	// What comes within this time is read once: a writer takes several steps.
	settling = 40 * time.Millisecond
)

// reading is the ledger as it was last understood. It never changes; a newer one
// takes its place.
type reading struct {
	ledger  *ledger.Ledger
	picture *ledger.Picture
	// trouble is why the files could not be read since; "" when what is shown is
	// what they say.
	trouble string
}

func load(src Source) (*reading, error) {
	l, set, err := src.Load()
	if err != nil {
		return nil, err
	}
	return &reading{ledger: l, picture: l.Derive(set)}, nil
}

// follower reads a ledger again when its files change. Whoever started it closes
// it.
type follower struct {
	src  Source
	feed chan struct{}
	stop context.CancelFunc // nil until it is started
	done chan struct{}

	mu     sync.Mutex
	newest *reading // nil when taken

	seen string // the files' signs at the last reading
}

func newFollower(src Source) *follower {
	return &follower{src: src, feed: make(chan struct{}, 1), done: make(chan struct{})}
}

// start follows the files of what was read first.
func (f *follower) start(first *reading) {
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() {
		defer close(f.done)
		defer close(f.feed)
		last := first
		defer func() {
			if r := recover(); r != nil {
				broken := *last
				broken.trouble = text.Line(fmt.Sprintf("internal fault, the files are not followed any more: %v", r))
				f.publish(&broken)
			}
		}()
		f.run(ctx, &last)
	}()
}

func (f *follower) close() {
	if f.stop != nil {
		f.stop()
		<-f.done
		f.stop = nil
	}
}

// take returns a reading that is newer than the last one taken, or nil.
func (f *follower) take() *reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.newest
	f.newest = nil
	return r
}

func (f *follower) publish(r *reading) {
	f.mu.Lock()
	f.newest = r
	f.mu.Unlock()
	select {
	case f.feed <- struct{}{}:
	default:
	}
}

func (f *follower) run(ctx context.Context, last **reading) {
	var notices chan fsnotify.Event
	var failures chan error
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		notices, failures = w.Events, w.Errors
	}
	watch := func() {
		for _, file := range (*last).ledger.Files() {
			if w != nil {
				_ = w.Add(filepath.Dir(file)) // the poll is behind it
			}
		}
	}
	watch()
	poll := time.NewTicker(slowPoll)
	defer poll.Stop()
	settled := time.NewTimer(0) // what changed before the watch began
	defer settled.Stop()
	noticed := false
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-notices:
			if slices.ContainsFunc((*last).ledger.Files(), func(file string) bool { return filepath.Clean(file) == filepath.Clean(e.Name) }) {
				noticed = true
				settled.Reset(settling)
			}
			continue
		case <-failures: // too many notices: the poll makes up for it
			continue
		case <-settled.C:
		case <-poll.C:
			watch() // the folder may have been made anew
		}
		if now := signs((*last).ledger.Files()); noticed || now != f.seen {
			f.seen, noticed = now, false
			next, err := load(f.src)
			if err != nil {
				old := **last
				old.trouble, next = text.Line("the last good one is shown: "+err.Error()), &old
			}
			*last = next
			f.publish(next)
		}
	}
}

// signs tell whether a file may have changed, without reading it.
func signs(files []string) string {
	var b strings.Builder
	for _, file := range files {
		if st, err := os.Stat(file); err == nil {
			fmt.Fprintf(&b, "%d %d %v\n", st.Size(), st.ModTime().UnixNano(), st.Mode())
		} else {
			b.WriteString("none\n")
		}
	}
	return b.String()
}
