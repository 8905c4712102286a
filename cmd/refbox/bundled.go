package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"refbox/recordings"
)

// bundledSeasons is a folder with the weeks that the program brings along, unpacked where
// what can be made again is kept: a week is read as files. It is named after what they
// hold, so that another version's are others.
func bundledSeasons() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range recordings.Seasons() {
		files, err := fs.Glob(recordings.Heats(), name+"/*/*.json")
		if err != nil {
			return "", err
		}
		for _, f := range files {
			data, err := fs.ReadFile(recordings.Heats(), f)
			if err != nil {
				return "", err
			}
			sum.Write(data)
		}
	}
	dir := filepath.Join(cache, "seasons", hex.EncodeToString(sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", environmentError(err)
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".unpacking-")
	if err != nil {
		return "", environmentError(err)
	}
	defer os.RemoveAll(made)
	for _, name := range recordings.Seasons() {
		sub, err := fs.Sub(recordings.Heats(), name)
		if err == nil {
			err = os.CopyFS(filepath.Join(made, name), sub)
		}
		if err != nil {
			return "", environmentError(err)
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return "", environmentError(err)
	}
	if err := os.Rename(made, dir); err != nil && !errors.Is(err, fs.ErrExist) && !there(dir) { // another process was quicker
		return "", environmentError(err)
	}
	return dir, nil
}
