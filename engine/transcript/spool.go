package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"refbox/engine/bounded"
)

// spool unpacks members of an archive so that they can be read at an offset:
// small ones in memory, large ones in a temporary file that has no name. Few are
// kept; the others are unpacked again when they are wanted.
type spool struct {
	members []member
	mu      sync.Mutex
	kept    map[int]*unpacked
	files   map[uint32]int
	damaged map[int]error
	clock   int
}

const (
	maxUnpacked = 2 << 30 // of a member
	inMemory    = 8 << 20
	keptMembers = 4
)

// unpacked is a member that can be read at an offset.
type unpacked struct {
	blob
	users, used int
	evicted     bool
}

func newSpool(members []member) *spool {
	return &spool{members: members, kept: map[int]*unpacked{}, files: map[uint32]int{}, damaged: map[int]error{}}
}

// number gives a member its file number in the index.
func (s *spool) number(file uint32, member int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[file] = member
}

// damage is why a member could be unpacked only in part; nil when it was whole.
func (s *spool) damage(member int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged[member]
}

func (s *spool) file(file uint32) (blob, func(), error) {
	s.mu.Lock()
	m, ok := s.files[file]
	s.mu.Unlock()
	if !ok {
		return nil, nil, fmt.Errorf("file %d of the archive: %w", file, fs.ErrNotExist)
	}
	return s.open(m)
}

// open unpacks a member; the caller releases it.
func (s *spool) open(m int) (blob, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	u := s.kept[m]
	if u == nil {
		b, err := s.unpack(m)
		if err != nil {
			return nil, nil, err
		}
		u = &unpacked{blob: b}
		s.kept[m] = u
		s.evict(m)
	}
	u.users++
	u.used = s.clock
	var once sync.Once
	return u.blob, func() { once.Do(func() { s.release(u) }) }, nil
}

func (s *spool) release(u *unpacked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.users--; u.users == 0 && u.evicted {
		u.blob.Close()
	}
}

// evict gives up what was used longest ago.
func (s *spool) evict(but int) {
	for len(s.kept) > keptMembers {
		oldest := -1
		for m, u := range s.kept {
			if m != but && (oldest < 0 || u.used < s.kept[oldest].used) {
				oldest = m
			}
		}
		u := s.kept[oldest]
		delete(s.kept, oldest)
		if u.evicted = true; u.users == 0 {
			u.blob.Close()
		}
	}
}

func (s *spool) unpack(m int) (blob, error) {
	in, err := s.members[m].open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var small bytes.Buffer
	n, err := io.Copy(&small, io.LimitReader(in, inMemory+1))
	if n <= inMemory {
		if err != nil {
			if n == 0 {
				return nil, err
			}
			s.damaged[m] = err
		}
		return bounded.InMemory(small.Bytes(), sized(n)), nil
	}
	f, err := os.CreateTemp("", "refbox-member-*")
	if err != nil {
		return nil, fmt.Errorf("a large member needs a temporary file: %w", err)
	}
	os.Remove(f.Name())
	written, err := io.Copy(f, io.MultiReader(&small, io.LimitReader(in, maxUnpacked-inMemory)))
	var disk *fs.PathError
	if err != nil && errors.As(err, &disk) {
		f.Close()
		return nil, fmt.Errorf("unpacking %d bytes: %w", written, err)
	}
	if err != nil {
		s.damaged[m] = err
	} else if written >= maxUnpacked {
		s.damaged[m] = fmt.Errorf("larger than %d bytes", int64(maxUnpacked))
	}
	return f, nil
}

func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m, u := range s.kept {
		delete(s.kept, m)
		if u.evicted = true; u.users == 0 {
			u.blob.Close()
		}
	}
}

// sized is a file's info that only knows its size.
type sized int64

func (s sized) Name() string     { return "" }
func (s sized) Size() int64      { return int64(s) }
func (sized) Mode() fs.FileMode  { return 0o444 }
func (sized) ModTime() time.Time { return time.Time{} }
func (sized) IsDir() bool        { return false }
func (sized) Sys() any           { return nil }
