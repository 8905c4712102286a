package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"refbox/engine/event"
	"refbox/engine/text"
	"refbox/engine/world"
)

// File returns a file of the folder by its path in it, such as an event's record;
// raw, at most 16 MiB.
func (r *Recording) File(name string) ([]byte, error) {
	if r.single {
		return nil, fmt.Errorf("%s is a log without a folder: %w", r.path, fs.ErrNotExist)
	}
	return r.source().read(name, maxEvidence)
}

// source is the folder; it changes when another takes its place.
func (r *Recording) source() *source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src
}

// Evidence returns the probe records behind a verdict as JSON text that is safe to
// show; an error that Is fs.ErrNotExist when none were kept.
func (r *Recording) Evidence(territory, milestone string, attempt uint64) ([]byte, error) {
	raw, err := r.File(evidencePath(territory, milestone, attempt))
	if err != nil {
		return nil, err
	}
	return []byte(text.Block(event.Text(raw))), nil
}

// Artifact returns a seat's file, wherever the layout has it: brief.md,
// result.json, transcript.json, transcript.live.json, analysis.json, usage.json.
// Raw, at most 16 MiB: larger ones are read with OpenArtifact.
func (r *Recording) Artifact(territory, name string) (data []byte, file string, err error) {
	if file, err = r.findArtifact(territory, name); err != nil {
		return nil, "", err
	}
	data, err = r.File(file)
	return data, file, err
}

// Blob is an open file of any size.
type Blob = blob

// OpenArtifact opens a seat's file for reading at any offset.
func (r *Recording) OpenArtifact(territory, name string) (b Blob, file string, err error) {
	if file, err = r.findArtifact(territory, name); err != nil {
		return nil, "", err
	}
	b, err = r.source().open(file)
	return b, file, err
}

func (r *Recording) findArtifact(territory, name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.single {
		return "", fmt.Errorf("%s is a log without a folder: %w", r.path, fs.ErrNotExist)
	}
	return r.artifactPath(r.head, territory, name)
}

// artifactPath knows the layouts: ours by territory; the reference's by agent, flat
// as it is published or in folders as it is made.
func (r *Recording) artifactPath(w *world.World, territory, name string) (string, error) {
	candidates := []string{seatPath(territory, fileName(name))}
	agents := []string{}
	if s := w.Seat(territory); s != nil && s.Agent != "" {
		agents = append(agents, s.Agent)
	}
	for _, a := range w.Agents() {
		if a.Territory == territory {
			agents = append(agents, a.ID)
		}
	}
	for _, a := range agents {
		if !strings.ContainsAny(a, `/\`) && a != "" && a != "." && a != ".." {
			candidates = append(candidates, a+"-"+name, path.Join("agents", a, name))
		}
	}
	for _, c := range candidates {
		if _, err := r.src.stat(c); err == nil {
			return c, nil
		}
	}
	return "", fmt.Errorf("%s of %s: %w", text.Line(name), text.Line(territory), fs.ErrNotExist)
}

// Machines are the machines of a territory whose console was recorded, sorted.
func (r *Recording) Machines(territory string) []string {
	var out []string
	for _, e := range r.source().list(seatPath(territory, "machines")) {
		name := unescape(e.Name())
		if _, err := r.source().stat(consolePath(territory, name)); err == nil {
			out = append(out, text.Line(name))
		}
	}
	sort.Strings(out)
	return out
}

// Sessions are the paths of a territory's recorded sessions, by number.
func (r *Recording) Sessions(territory string) []string {
	var out []string
	for _, e := range r.source().list(seatPath(territory)) {
		if strings.HasPrefix(e.Name(), "session-") && strings.HasSuffix(e.Name(), ".cast") {
			out = append(out, seatPath(territory, e.Name()))
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if len(out[i]) != len(out[j]) {
			return len(out[i]) < len(out[j])
		}
		return out[i] < out[j]
	})
	return out
}

// Console opens the record of a machine's console; an error that Is fs.ErrNotExist
// when there is none.
func (r *Recording) Console(territory, machine string) (*Cast, error) {
	return r.Session(consolePath(territory, machine))
}

// Session opens a recorded session by its path.
func (r *Recording) Session(name string) (*Cast, error) {
	if r.single {
		return nil, fmt.Errorf("%s is a log without a folder: %w", r.path, fs.ErrNotExist)
	}
	b, err := r.source().open(name)
	if err != nil {
		return nil, err
	}
	c := &Cast{file: b}
	if _, err := c.Refresh(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return c, nil
}

// unescape is the string that fileName made a name of, where that can be told.
func unescape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			hi, lo := strings.IndexByte(hexDigits, name[i+1]), strings.IndexByte(hexDigits, name[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

const hexDigits = "0123456789ABCDEF"
