package recording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	slowPoll   = time.Second
	maxWatches = 256
)

// Follow reads on until ctx ends, and signals after each step that brought
// something: events, a restart, the end of the writer, console output. It signals
// also when another reader of the recording was quicker. Signals that nobody takes
// are merged. The channel is closed when the following has ended; nothing of it
// runs any more then.
//
// Notices of the file system are used where they come, and a slow poll behind
// them, so a folder on any file system is followed.
func (r *Recording) Follow(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	f := &follower{r: r, out: out, watched: map[string]bool{}, seen: r.progress()}
	go func() {
		defer close(out)
		f.run(ctx)
	}()
	return out
}

// Await waits until a heat's folder is there, and opens it.
func Await(ctx context.Context, paths ...string) (*Recording, error) {
	for {
		for _, path := range paths {
			r, err := Open(path)
			if err == nil || !errors.Is(err, fs.ErrNotExist) {
				return r, err
			}
		}
		if err := awaitPath(ctx, paths); err != nil {
			return nil, err
		}
	}
}

// awaitPath waits until something changed where one of the paths may appear.
func awaitPath(ctx context.Context, paths []string) error {
	var notices chan fsnotify.Event
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer w.Close()
		notices = w.Events
		for _, path := range paths {
			dir := filepath.Dir(filepath.Clean(path))
			for w.Add(dir) != nil && dir != filepath.Dir(dir) {
				dir = filepath.Dir(dir)
			}
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	timer := time.NewTimer(slowPoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", strings.Join(paths, " or "), ctx.Err())
	case <-notices:
	case <-timer.C:
	}
	return nil
}

type follower struct {
	r       *Recording
	out     chan<- struct{}
	watcher *fsnotify.Watcher
	src     *source // whose folders are watched
	watched map[string]bool
	seen    int // of the recording's readings
}

func (f *follower) run(ctx context.Context) {
	var notices chan fsnotify.Event
	var failures chan error
	if f.r.source().root != nil { // else there is no folder that could grow
		if w, err := fsnotify.NewWatcher(); err == nil {
			f.watcher, notices, failures = w, w.Events, w.Errors
			defer w.Close()
		}
	}
	timer := time.NewTimer(slowPoll)
	defer timer.Stop()
	f.watch()
	for f.read(ctx) {
		timer.Reset(slowPoll)
	wait:
		select {
		case <-ctx.Done():
			return
		case e := <-notices:
			if !f.notice(e, notices) {
				goto wait
			}
		case <-failures: // too many notices; the reading that follows makes up for it
		case <-timer.C:
			f.watch()
		}
	}
}

// notice takes a notice and those that are there already: one reading answers
// them all. False when they are not about the heat.
func (f *follower) notice(e fsnotify.Event, more <-chan fsnotify.Event) bool {
	dir := filepath.Clean(f.r.source().dir)
	about, made := false, false
	for n := 0; ; n++ {
		if name := filepath.Clean(e.Name); name == dir || filepath.Dir(name) != filepath.Dir(dir) {
			about = true
			made = made || e.Has(fsnotify.Create)
			if strings.HasSuffix(name, ".cast") {
				f.signal()
			}
		}
		if n > 1024 {
			break
		}
		select {
		case e = <-more:
			continue
		default:
		}
		break
	}
	if made {
		f.watch()
	}
	return about
}

// read reads all that is there; false when the following has to end.
func (f *follower) read(ctx context.Context) bool {
	for ctx.Err() == nil {
		changed, err := f.r.Refresh()
		if errors.Is(err, fs.ErrClosed) {
			return false
		}
		if n := f.r.progress(); n != f.seen {
			f.seen = n
			f.signal()
		}
		if err != nil || !changed {
			return true
		}
	}
	return false
}

// progress is how many readings brought something.
func (r *Recording) progress() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readings
}

func (f *follower) signal() {
	select {
	case f.out <- struct{}{}:
	default:
	}
}

// watch asks for notices of the folder, of the folder above it (the heat's may be
// replaced), and of those that casts lie in.
func (f *follower) watch() {
	if f.watcher == nil {
		return
	}
	src := f.r.source()
	if src != f.src {
		for dir := range f.watched {
			_ = f.watcher.Remove(dir) // it may be gone with its folder
		}
		clear(f.watched)
		f.src = src
	}
	dir := src.dir
	f.add(filepath.Dir(filepath.Clean(dir)))
	f.add(dir)
	if f.r.single {
		return
	}
	f.add(filepath.Join(dir, seatsDir))
	for _, seat := range src.list(seatsDir) {
		seatDir := path.Join(seatsDir, seat.Name())
		f.add(filepath.Join(dir, filepath.FromSlash(seatDir)))
		machines := path.Join(seatDir, "machines")
		if list := src.list(machines); len(list) > 0 {
			f.add(filepath.Join(dir, filepath.FromSlash(machines)))
			for _, m := range list {
				f.add(filepath.Join(dir, filepath.FromSlash(path.Join(machines, m.Name()))))
			}
		}
	}
}

func (f *follower) add(dir string) {
	if f.watched[dir] || len(f.watched) >= maxWatches {
		return
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return
	}
	if f.watcher.Add(dir) == nil {
		f.watched[dir] = true
		f.signal() // what came before the watch gave no notice
	}
}
