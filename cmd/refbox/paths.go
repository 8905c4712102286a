package main

import (
	"fmt"
	"os"
	"path/filepath"

	"refbox/engine/branch"
)

// cacheDir holds what can be made again: the guest image, prepared states.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", environmentError(fmt.Errorf("no folder for the cache: %w; set XDG_CACHE_HOME or HOME", err))
	}
	return filepath.Join(base, "refbox"), nil
}

// recordingsDir is where heats are recorded unless --output says otherwise.
func recordingsDir() (string, error) {
	base := os.Getenv("XDG_DATA_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", environmentError(fmt.Errorf("no folder for recordings: %w; set XDG_DATA_HOME or HOME, or use --output", err))
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "refbox", "recordings"), nil
}

// configFile is the user's configuration.
func configFile() (string, error) {
	if f := os.Getenv("REFBOX_CONFIG"); f != "" {
		return f, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", environmentError(fmt.Errorf("no folder for the configuration: %w; set XDG_CONFIG_HOME or HOME", err))
	}
	return filepath.Join(base, "refbox", "config.toml"), nil
}

// logFile takes warnings and errors that have no place on the screen or in a
// recording; "" when there is no folder for it.
func logFile() string {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "refbox", "refbox.log")
}

// disksDir holds the disks of running heats' machines. They may grow to
// gigabytes, for which the runtime folder, often one in memory, has no room.
func disksDir() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "heats"), nil
}

// statesHere takes the states of machines that heats save; "" where there is no folder
// for them, which no heat fails by.
func statesHere() branch.Store {
	cache, err := cacheDir()
	if err != nil {
		return ""
	}
	return branch.Store(filepath.Join(cache, "states"))
}

// runtimeDir holds sockets and passwords of running heats. It is short, because
// a Unix socket's path is at most 107 bytes.
func runtimeDir() string {
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" && len(d) < 40 {
		return filepath.Join(d, "refbox")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("refbox-%d", os.Getuid()))
}
