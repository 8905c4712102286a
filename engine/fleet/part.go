package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Has says whether the fleet has a player with this id.
func (f *Fleet) Has(id string) bool {
	for _, p := range f.Players {
		if p.ID == id {
			return true
		}
	}
	return false
}

// Part is the fleet of some players, each at a seat: ids by territory. The keys are
// the whole fleet's, which are read by the first of all parts.
func (f *Fleet) Part(seats map[string]string) (*Fleet, error) {
	keys, err := f.keys()
	if err != nil {
		return nil, err
	}
	part := &Fleet{File: f.File, Version: f.Version, secrets: keys}
	for territory, id := range seats {
		for _, p := range f.Players {
			if p.ID == id {
				p.Territory = territory
				part.Players = append(part.Players, p)
			}
		}
	}
	if len(part.Players) != len(seats) {
		return nil, fmt.Errorf("%s: it does not name every player of %v", f.File, seats)
	}
	return part, nil
}

// Hashes are what each player is, by id: how the file describes it, and the bytes of
// its script or program, and of each file in the fleet file's folder that an argument of
// the program names. Keys are no part of it.
func (f *Fleet) Hashes() (map[string]string, error) {
	out := map[string]string{}
	for _, p := range f.Players {
		p.Territory = "" // where it sits is no part of what it is
		data, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		h.Write(data)
		file := ""
		switch {
		case strings.Contains(p.Script, "/"):
			file = p.Script
		case len(p.Command) > 0:
			if file, err = exec.LookPath(p.Command[0]); err != nil {
				return nil, fmt.Errorf("%s: player %s: %w", f.File, p.ID, err)
			}
		}
		if file != "" {
			if err := addFile(h, file); err != nil {
				return nil, fmt.Errorf("%s: player %s: %w", f.File, p.ID, err)
			}
		}
		for _, arg := range p.Command[min(1, len(p.Command)):] {
			file, ok := f.named(arg)
			if !ok {
				continue
			}
			fmt.Fprintf(h, "\x00%s\x00", arg)
			if err := addFile(h, file); err != nil {
				return nil, fmt.Errorf("%s: player %s: %w", f.File, p.ID, err)
			}
		}
		out[p.ID] = hex.EncodeToString(h.Sum(nil))
	}
	return out, nil
}

// named is the file in the fleet file's folder, or below it, that an argument names, whole
// or after a "=".
func (f *Fleet) named(arg string) (string, bool) {
	if strings.HasPrefix(arg, "-") {
		_, after, ok := strings.Cut(arg, "=")
		if !ok {
			return "", false
		}
		arg = after
	}
	dir, err := filepath.Abs(filepath.Dir(f.File))
	if err != nil || arg == "" {
		return "", false
	}
	file := arg
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if rel, err := filepath.Rel(dir, file); err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	info, err := os.Stat(file)
	return file, err == nil && info.Mode().IsRegular()
}

func addFile(h io.Writer, name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(h, in)
	return err
}
