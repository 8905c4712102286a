// Package disk is a machine's disk as the host serves it: a file behind a
// volatile write cache of our own, over the NBD protocol.
//
// It exists because killing QEMU is no power cut: what a guest has written and
// not flushed is in the host's page cache then, and survives. Here it is in the
// cache, and Cut drops it.
//
// What it promises:
//
//   - What was flushed, or written with FUA, before a Cut is in the file; of what was
//     not, nothing is, unless the cache was full: it holds MaxCached, and puts
//     all it holds in the file when it would grow over that, as a real disk may
//     at any time.
//   - Any other end keeps everything.
//   - Requests are carried out one by one, in order, so what a Cut leaves is the
//     disk as it was at one instant.
//   - The far end can reach nothing but the file's first size bytes, and cannot
//     make us hold more than MaxCached and one request.
package disk

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	block = 4096
	// MaxCached is how much the cache holds. An ext4 guest flushes at least every
	// five seconds.
	MaxCached = 64 << 20
)

// Disk is a file with its cache. Make one with Open and give it to one QEMU
// process with Serve.
type Disk struct {
	size int64

	mu     sync.Mutex
	file   *os.File
	cache  map[int64]*[block]byte // by block number; nil is a block of zeros
	stall  chan struct{}          // nil: not stalled; closed when it ends
	broken bool                   // writes fail
	ended  bool                   // nothing is carried out any more
	lost   int64
	failed chan struct{} // closed when err is set
	err    error         // how the host failed the disk
}

// Open opens the file at path as a disk of size bytes; what the file lacks of
// them reads as zeros.
func Open(path string, size int64) (*Disk, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a disk: %w", err)
	}
	return &Disk{file: f, size: size &^ (block - 1), cache: map[int64]*[block]byte{}, failed: make(chan struct{})}, nil
}

// Failed is closed when the host could not keep what was written, or not give it
// back, as when its own disk is full. From that instant on nothing is carried out
// or answered, as after Cut: a guest that went on could rely on neither. Err then
// says why.
func (d *Disk) Failed() <-chan struct{} { return d.failed }

// Err is how the host failed the disk; nil while it has not.
func (d *Disk) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// fail ends the disk by the host's fault. The caller holds mu.
func (d *Disk) fail(what string, err error) error {
	if !d.ended {
		d.ended, d.cache = true, nil
		d.err = fmt.Errorf("%s: %w", what, err)
		close(d.failed)
	}
	return errEnded
}

// Stall holds up every request until it is called with false.
func (d *Disk) Stall(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case on && d.stall == nil:
		d.stall = make(chan struct{})
	case !on && d.stall != nil:
		close(d.stall)
		d.stall = nil
	}
}

// Stalled tells whether requests are held up.
func (d *Disk) Stalled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stall != nil
}

// FailWrites answers all that would change the disk, and flushes, with an I/O
// error.
func (d *Disk) FailWrites(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = on
}

// Cut ends the disk at this instant and drops what its cache holds. Nothing is
// carried out after it, and nothing answered: the far end, which is to be killed
// next, sees no disk that vanishes. A stall ends with it.
func (d *Disk) Cut() {
	d.mu.Lock()
	if !d.ended {
		d.ended = true
		d.lost = int64(len(d.cache)) * block
		d.cache = nil
	}
	d.mu.Unlock()
	d.Stall(false)
}

// Hold carries nothing out on any of the disks, until release is called: their files
// are meanwhile what a power cut of all of them, at one instant, would leave.
func Hold(disks ...*Disk) (release func()) {
	for _, d := range disks {
		d.mu.Lock()
	}
	return func() {
		for _, d := range disks {
			d.mu.Unlock()
		}
	}
}

// Lost is what Cut dropped, in bytes, by whole blocks.
func (d *Disk) Lost() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// end keeps what there is and closes the file.
func (d *Disk) end() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.destage() == nil {
		d.ended = true
	}
	return errors.Join(d.err, d.file.Close())
}

var errEnded = errors.New("the disk has ended")

// read fills b from off.
func (d *Disk) read(b []byte, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return errEnded
	}
	return d.readAt(b, off)
}

func (d *Disk) readAt(b []byte, off int64) error {
	n, err := d.file.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return d.fail("reading the disk's file", err)
	}
	clear(b[n:])
	if len(d.cache) == 0 {
		return nil
	}
	return pieces(off, int64(len(b)), func(no, from, at, n int64) error {
		if c, ok := d.cache[no]; ok {
			if c == nil {
				clear(b[at : at+n])
			} else {
				copy(b[at:at+n], c[from:from+n])
			}
		}
		return nil
	})
}

// pieces calls do for each block that a range touches: its number, where in it
// the piece begins, where in the range, and how long it is.
func pieces(off, n int64, do func(no, from, at, n int64) error) error {
	for at := int64(0); at < n; {
		from := (off + at) % block
		k := min(block-from, n-at)
		if err := do((off+at)/block, from, at, k); err != nil {
			return err
		}
		at += k
	}
	return nil
}

// write puts b, or n zeros when b is nil, at off.
func (d *Disk) write(b []byte, off, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return err
	}
	return pieces(off, n, func(no, from, at, n int64) error {
		c, ok := d.cache[no]
		if !ok && int64(len(d.cache)) >= MaxCached/block {
			if err := d.destage(); err != nil {
				return err
			}
		}
		if b == nil && n == block {
			d.cache[no] = nil
			return nil
		}
		if c == nil {
			c = new([block]byte)
			if !ok && n < block {
				if err := d.readAt(c[:], no*block); err != nil {
					return err
				}
			}
			d.cache[no] = c
		}
		if b == nil {
			clear(c[from : from+n])
		} else {
			copy(c[from:from+n], b[at:at+n])
		}
		return nil
	})
}

// trim forgets the whole blocks of a range.
func (d *Disk) trim(off, n int64) error {
	first := (off + block - 1) / block * block
	last := (off + n) / block * block
	if last <= first {
		return nil
	}
	return d.write(nil, first, last-first)
}

func (d *Disk) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.writable(); err != nil {
		return err
	}
	return d.destage()
}

func (d *Disk) writable() error {
	switch {
	case d.ended:
		return errEnded
	case d.broken:
		return unix.EIO
	}
	return nil
}

// destage puts the cache in the file. The file
// is not synced: it outlives QEMU and us, and a crash of the host ends the heat.
func (d *Disk) destage() error {
	nos := slices.Sorted(maps.Keys(d.cache))
	var run []byte
	for i := 0; i < len(nos); {
		first, zero := nos[i], d.cache[nos[i]] == nil
		run = run[:0]
		j := i
		for ; j < len(nos) && nos[j] == first+int64(j-i) && (d.cache[nos[j]] == nil) == zero && (zero || len(run) < 1<<20); j++ {
			if !zero {
				run = append(run, d.cache[nos[j]][:]...)
			}
		}
		var err error
		if zero {
			err = punch(d.file, first*block, int64(j-i)*block)
			if errors.Is(err, errors.ErrUnsupported) {
				_, err = d.file.WriteAt(make([]byte, (j-i)*block), first*block)
			}
		} else {
			_, err = d.file.WriteAt(run, first*block)
		}
		if err != nil {
			return d.fail("writing the disk's file", err)
		}
		for ; i < j; i++ {
			delete(d.cache, nos[i])
		}
	}
	return nil
}
