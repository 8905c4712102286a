package view

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
)

const (
	slowPoll = 2 * time.Second
	// Who writes a file takes several steps; what comes within this time is read once.
	settling = 40 * time.Millisecond
)

// Followed is what a screen shows of files. Its functions are called by one goroutine at a
// time, and never by the screen's once it was started.
type Followed[T any] struct {
	// Paths are the files and folders it is read from, as they are now; nil for what
	// never changes.
	Paths func() []string
	// Meant says of a name in one of their folders that its change may matter; without it
	// those of Paths do.
	Meant func(name string) bool
	// Read reads it again; changed is false where nothing changed and Again was called.
	Read func(changed bool) (T, error)
}

// Follower reads something anew, beside the screen, when what it is read from changes.
// Whoever started it closes it.
type Follower[T any] struct {
	of   Followed[T]
	feed chan struct{}
	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
	seen string // the paths' signs at the last reading

	mu     sync.Mutex
	newest *news[T] // nil when taken
}

type news[T any] struct {
	of  T
	err error
}

// NewFollower notes how the paths are before the first reading.
func NewFollower[T any](of Followed[T]) *Follower[T] {
	f := &Follower[T]{of: of, feed: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	if of.Paths != nil {
		f.seen = signs(of.Paths())
	}
	return f
}

// Start begins to follow; once is enough.
func (f *Follower[T]) Start() {
	if f.of.Paths == nil || f.done != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.done = stop, make(chan struct{})
	go func() {
		defer close(f.done)
		defer close(f.feed)
		defer func() {
			if r := recover(); r != nil {
				f.publish(*new(T), fmt.Errorf("internal fault, the files are not followed any more: %v", r))
			}
		}()
		f.run(ctx)
	}()
}

// Close ends the following, and waits for it.
func (f *Follower[T]) Close() {
	if f.stop != nil {
		f.stop()
		<-f.done
		f.stop = nil
	}
}

// Feed tells that there is something to take; it is closed when nothing more comes.
func (f *Follower[T]) Feed() <-chan struct{} { return f.feed }

// Again asks for another reading of what did not change.
func (f *Follower[T]) Again() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Take returns the newest reading, once, or why there is none.
func (f *Follower[T]) Take() (of T, err error, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest == nil {
		return of, nil, false
	}
	n := f.newest
	f.newest = nil
	return n.of, n.err, true
}

func (f *Follower[T]) publish(of T, err error) {
	f.mu.Lock()
	f.newest = &news[T]{of, err}
	f.mu.Unlock()
	select {
	case f.feed <- struct{}{}:
	default:
	}
}

func (f *Follower[T]) run(ctx context.Context) {
	var notices chan fsnotify.Event
	var failures chan error
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		notices, failures = w.Events, w.Errors
	}
	rewatch := func() {
		for _, path := range f.of.Paths() {
			if w == nil {
				return
			}
			if st, err := os.Stat(path); err != nil || !st.IsDir() {
				path = filepath.Dir(path)
			}
			_ = w.Add(path) // the poll is behind it
		}
	}
	rewatch()
	poll := time.NewTicker(slowPoll)
	defer poll.Stop()
	settled := time.NewTimer(0) // what changed before the watch began
	defer settled.Stop()
	noticed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			f.publish(f.of.Read(false))
			continue
		case e := <-notices:
			if f.meant(e.Name) {
				noticed = true
				settled.Reset(settling)
			}
			continue
		case <-failures: // too many notices: the poll makes up for it
			continue
		case <-settled.C:
		case <-poll.C:
		}
		rewatch() // a folder may be new
		if now := signs(f.of.Paths()); noticed || now != f.seen {
			f.seen, noticed = now, false
			f.publish(f.of.Read(true))
		}
	}
}

func (f *Follower[T]) meant(name string) bool {
	if f.of.Meant != nil {
		return f.of.Meant(name)
	}
	return slices.ContainsFunc(f.of.Paths(), func(file string) bool { return filepath.Clean(file) == filepath.Clean(name) })
}

// signs tell whether files may have changed, without reading them.
func signs(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil {
			fmt.Fprintf(&b, "%s %d %d %v\n", p, st.Size(), st.ModTime().UnixNano(), st.Mode())
		} else {
			b.WriteString(p + " none\n")
		}
	}
	return b.String()
}
