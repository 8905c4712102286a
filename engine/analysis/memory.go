package analysis

import (
	"maps"
	"slices"
	"strings"
)

// memory is what an agent has written so far: a script that it wrote in one
// action and runs in a later one is followed there.
type memory struct {
	files map[string]string
	size  int
	used  bool // a script was looked up and found
}

// Bounds on what is remembered.
const (
	maxScript  = 256 << 10
	maxScripts = 4 << 20
)

func (m *memory) put(path, text string) {
	if strings.Contains(path, unknown) || hasGlob(path) {
		return
	}
	if m.files == nil {
		m.files = map[string]string{}
	}
	m.size -= len(m.files[path])
	delete(m.files, path)
	if text == "" || len(text) > maxScript || m.size+len(text) > maxScripts {
		return
	}
	m.files[path] = text
	m.size += len(text)
}

// wrote remembers what the action wrote to a file.
func (r *reading) wrote(path, text string, more bool) {
	if more {
		old, _ := r.script(path)
		text = old + text
	}
	if text == unknown || len(text) > maxScript {
		text = ""
	}
	r.mem.put(path, text)
}

// script is the text of a file that the agent wrote.
func (r *reading) script(path string) (string, bool) {
	text, ok := r.mem.files[path]
	r.mem.used = r.mem.used || ok
	return text, ok
}

// moved remembers a file under its new name, too.
func (r *reading) moved(from, to string) {
	if text, ok := r.mem.files[from]; ok {
		r.mem.put(to, text)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
