package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"refbox/engine/bounded"
)

// pace knows how long a step takes that tells no part of itself, such as a boot: as
// long as on this host the last time, else as long as usual without a KVM. It is kept
// in the cache; that it cannot be read or written is in nobody's way.
type pace struct {
	file string // "" to keep nothing

	mu    sync.Mutex
	last  map[string]time.Duration
	dirty bool
}

// usual is how long the steps took on two cores without a KVM.
var usual = map[string]time.Duration{"booting": 12 * time.Second, "saving": 3 * time.Second}

func openPace() *pace {
	cache, err := cacheDir()
	if err != nil {
		return &pace{}
	}
	p := &pace{file: filepath.Join(cache, "steps.json")}
	if data, err := bounded.File(p.file, 1<<16); err == nil {
		json.Unmarshal(data, &p.last) //nolint:errcheck // then nothing is known
	}
	return p
}

// takes is how long a step takes, whoever's it is; 0 when that is not known.
func (p *pace) takes(step string) time.Duration {
	step = bare(step)
	if p == nil {
		return usual[step]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.last[step]; d > 0 {
		return d
	}
	return usual[step]
}

// took remembers how long a step took, if it is one of those that are waited for.
func (p *pace) took(step string, d time.Duration) {
	if step = bare(step); p == nil || usual[step] == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]time.Duration{}
	}
	p.last[step], p.dirty = d, true
}

// keep writes what was remembered.
func (p *pace) keep() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == "" || !p.dirty {
		return
	}
	data, err := json.Marshal(p.last)
	if err == nil && os.WriteFile(p.file+".new", data, 0o644) == nil {
		os.Rename(p.file+".new", p.file) //nolint:errcheck // it is but an estimate
	}
	p.dirty = false
}

// bare is a step without the seat that it is about.
func bare(step string) string { return strings.TrimPrefix(step, whose(step)+": ") }
