package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"sync"

	"refbox/engine/event"
)

// Cast is a recorded terminal: frames by the heat's clock. It is read as it
// grows; frames that are damaged are left out. Methods may be called from any
// goroutine.
type Cast struct {
	mu            sync.Mutex
	file          blob
	width, height int
	begun         bool
	size          int64
	offsets       []int64
	clocks        []uint64
}

// Frame is one piece of a cast.
type Frame struct {
	MS   uint64
	Kind byte   // 'o' output, 'i' input, 'r' new size as "80x24", 'm' marker
	Data []byte // raw: only for a terminal emulator
}

// Size is the terminal's size at the beginning, 80×24 when the record does not
// say.
func (c *Cast) Size() (width, height int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bound := func(n, unknown int) int {
		if n < 1 || n > 1000 {
			return unknown
		}
		return n
	}
	return bound(c.width, 80), bound(c.height, 24)
}

// Len is the number of frames read so far.
func (c *Cast) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.offsets)
}

// IndexAt is the number of frames at or before a clock.
func (c *Cast) IndexAt(ms uint64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sort.Search(len(c.clocks), func(i int) bool { return c.clocks[i] > ms })
}

// Refresh reads what the record has more. A record that was cut starts anew.
func (c *Cast) Refresh() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return false, io.ErrClosedPipe
	}
	info, err := c.file.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() < c.size {
		c.size, c.begun, c.offsets, c.clocks = 0, false, nil, nil
		changed = true
	}
	if info.Size() == c.size {
		return changed, nil
	}
	br := bufio.NewReaderSize(io.NewSectionReader(c.file, c.size, info.Size()-c.size), 64<<10)
	for {
		line, n, err := event.ReadLine(br)
		switch {
		case errors.Is(err, io.EOF):
			return changed, nil
		case err != nil && !errors.Is(err, event.ErrTooLong):
			return changed, err
		case err != nil:
		case !c.begun:
			c.begun = true
			var header struct {
				Width  int `json:"width"`
				Height int `json:"height"`
			}
			if json.Unmarshal(line, &header) == nil {
				c.width, c.height = header.Width, header.Height
			}
		default:
			if ms, ok := frameClock(line); ok {
				if k := len(c.clocks); k > 0 {
					ms = max(ms, c.clocks[k-1])
				}
				c.offsets = append(c.offsets, c.size)
				c.clocks = append(c.clocks, ms)
			}
		}
		c.size += int64(n)
		changed = true
	}
}

// frameClock reads the time of a frame: the number after the bracket, in seconds.
func frameClock(line []byte) (uint64, bool) {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] != '[' {
		return 0, false
	}
	comma := bytes.IndexByte(line, ',')
	if comma < 0 || comma > 64 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(line[1:comma])), 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > 1e9 {
		return 0, false
	}
	return uint64(math.Round(seconds * 1000)), true
}

// Frames returns the frames from to to (excluded). A frame that cannot be read is
// empty.
func (c *Cast) Frames(from, to int) ([]Frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to = max(from, 0), min(to, len(c.offsets))
	if from >= to {
		return nil, nil
	}
	if c.file == nil {
		return nil, io.ErrClosedPipe
	}
	end := c.size
	if to < len(c.offsets) {
		end = c.offsets[to]
	}
	buf := make([]byte, end-c.offsets[from])
	if _, err := c.file.ReadAt(buf, c.offsets[from]); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a terminal's record: %w", err)
	}
	out := make([]Frame, 0, to-from)
	for i := from; i < to; i++ {
		f := Frame{MS: c.clocks[i], Kind: 'o'}
		var parts []json.RawMessage
		var kind, data string
		line := firstLine(buf[c.offsets[i]-c.offsets[from]:])
		if json.Unmarshal(line, &parts) == nil && len(parts) == 3 && json.Unmarshal(parts[1], &kind) == nil &&
			json.Unmarshal(parts[2], &data) == nil && len(kind) == 1 {
			f.Kind, f.Data = kind[0], []byte(data)
		}
		out = append(out, f)
	}
	return out, nil
}

// Close releases the file.
func (c *Cast) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}
