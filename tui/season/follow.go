package season

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	slowPoll = 2 * time.Second
	// A checkpoint is several steps on disk; what comes within this time is read
	// once.
	settling = 40 * time.Millisecond
)

// follower reads documents anew when what they are written to changes. Whoever
// started it closes it.
type follower[T any] struct {
	watch func() []string
	load  func() (T, error)
	feed  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
	seen  string // the files' signs at the last reading

	mu     sync.Mutex
	newest *news[T] // nil when taken
}

type news[T any] struct {
	of  T
	err error
}

// newFollower notes how the files are before the first reading.
func newFollower[T any](watch func() []string, load func() (T, error)) *follower[T] {
	f := &follower[T]{watch: watch, load: load, feed: make(chan struct{}, 1)}
	if watch != nil {
		f.seen = signs(watch())
	}
	return f
}

func (f *follower[T]) start() {
	if f.watch == nil || f.done != nil {
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

func (f *follower[T]) close() {
	if f.stop != nil {
		f.stop()
		<-f.done
		f.stop = nil
	}
}

// take returns the newest reading, once.
func (f *follower[T]) take() (of T, err error, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest == nil {
		return of, nil, false
	}
	n := f.newest
	f.newest = nil
	return n.of, n.err, true
}

func (f *follower[T]) publish(of T, err error) {
	f.mu.Lock()
	f.newest = &news[T]{of, err}
	f.mu.Unlock()
	select {
	case f.feed <- struct{}{}:
	default:
	}
}

func (f *follower[T]) run(ctx context.Context) {
	var notices chan fsnotify.Event
	var failures chan error
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		notices, failures = w.Events, w.Errors
	}
	rewatch := func() {
		for _, path := range f.watch() {
			if w != nil {
				_ = w.Add(path) // the poll is behind it
			}
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
		case e := <-notices:
			if !strings.HasPrefix(filepath.Base(e.Name), ".") { // a lock, or half of a file
				noticed = true
				settled.Reset(settling)
			}
			continue
		case <-failures: // too many notices: the poll makes up for it
			continue
		case <-settled.C:
		case <-poll.C:
		}
		rewatch() // a round's folder may be new
		if now := signs(f.watch()); noticed || now != f.seen {
			f.seen, noticed = now, false
			f.publish(f.load())
		}
	}
}

// signs tell whether files may have changed, without reading them.
func signs(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", p, st.Size(), st.ModTime().UnixNano())
		} else {
			b.WriteString(p + " none\n")
		}
	}
	return b.String()
}
