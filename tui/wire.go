package tui

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// wire is the way to a terminal that may be slow: what is written is taken at once and
// sent beside, so that a key acts while a frame is still on its way. The model draws
// nothing meanwhile (free), so that one frame is on the way at most, and a slow
// terminal is shown what is true when it is ready and not what was before.
//
// It also makes the terminal show each frame at once (DEC mode 2026), so that one that
// takes several writes of the terminal never tears. Terminals that do not know the
// mode ignore it.
type wire struct {
	// The library asks a terminal for its size and its mode, by Fd. The file is no part
	// of the wire, so that none of its other ways to write leads past what waits.
	file  *os.File
	whole bool   // show each frame at once
	tell  func() // tells that the wire is free again, when free was asked in vain

	mu      sync.Mutex
	waiting []byte
	sent    chan struct{} // closed when all has been sent; nil while nothing is on the way
	missed  bool
	err     error
}

// newWire returns the way to w, and w itself when it is no file: then nothing is sent
// beside.
func newWire(w io.Writer, tell func()) (io.Writer, *wire) {
	f, ok := w.(*os.File)
	if !ok {
		return w, nil
	}
	x := &wire{file: f, whole: os.Getenv("REFBOX_NO_SYNC") == "", tell: tell}
	return x, x
}

// last are the sequences of leaving the screen, which no frame holds. What follows them
// is another program's, so they are waited for.
var last = [][]byte{[]byte("\x1b[?1049l"), []byte("\x1b[?25h")}

func (x *wire) Fd() uintptr                { return x.file.Fd() }
func (x *wire) Read(p []byte) (int, error) { return x.file.Read(p) }
func (x *wire) Close() error               { return x.file.Close() }

func (x *wire) Write(p []byte) (int, error) {
	x.mu.Lock()
	if err := x.err; err != nil {
		x.mu.Unlock()
		return 0, err
	}
	if x.whole {
		x.waiting = append(x.waiting, "\x1b[?2026h"...)
	}
	x.waiting = append(x.waiting, p...)
	if x.whole {
		x.waiting = append(x.waiting, "\x1b[?2026l"...)
	}
	if x.sent == nil {
		x.sent = make(chan struct{})
		go x.send(x.sent)
	}
	x.mu.Unlock()
	for _, s := range last {
		if bytes.Contains(p, s) {
			x.drain()
		}
	}
	return len(p), nil
}

// send sends what waits until nothing does.
func (x *wire) send(sent chan struct{}) {
	for {
		x.mu.Lock()
		p := x.waiting
		x.waiting = nil
		if len(p) == 0 {
			x.sent = nil
			close(sent)
			missed := x.missed
			x.missed = false
			x.mu.Unlock()
			if missed {
				x.tell()
			}
			return
		}
		x.mu.Unlock()
		if _, err := x.file.Write(p); err != nil {
			x.mu.Lock()
			x.err, x.waiting = err, nil
			x.mu.Unlock()
		}
	}
}

// free says whether a frame may be drawn: nothing is on its way. When it is not, tell
// is called once it is.
func (x *wire) free() bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.missed = x.missed || x.sent != nil
	return x.sent == nil
}

// drain waits until all has been sent.
func (x *wire) drain() {
	if x == nil {
		return
	}
	x.mu.Lock()
	sent := x.sent
	x.mu.Unlock()
	if sent != nil {
		<-sent
	}
}
