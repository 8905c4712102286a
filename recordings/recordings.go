// Package recordings embeds heats that refbox itself recorded on real machines,
// so that the lobby has something to replay wherever refbox runs.
package recordings

import (
	"embed"
	"io/fs"
	"path"
	"slices"
)

//go:embed *
var heats embed.FS

// Heats holds one folder per heat, and folders of several.
func Heats() fs.FS { return heats }

// Seasons are the names of the folders that hold weeks of a season, sorted.
func Seasons() []string {
	weeks, err := fs.Glob(heats, "*/*/draw.json")
	if err != nil { // the pattern is ours
		return nil
	}
	var names []string
	for _, w := range weeks {
		if name := path.Dir(path.Dir(w)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Names are the names of the folders that hold a heat, sorted.
func Names() []string {
	entries, err := heats.ReadDir(".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if _, err := fs.Stat(heats, e.Name()+"/events.jsonl"); err == nil {
			names = append(names, e.Name())
		}
	}
	return names
}
