package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxKey bounds a key file.
const maxKey = 16 << 10

// keys are the secrets of each player, by the variable's name; "" for one from a
// file. What was in the environment is no more: they are read once.
func (f *Fleet) keys() (map[string]map[string]string, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.secrets != nil {
		return f.secrets, nil
	}
	out := map[string]map[string]string{}
	var all []error
	for _, p := range f.Players {
		got, err := p.keys()
		if err != nil {
			all = append(all, fmt.Errorf("%s: player %s: %w", f.File, p.ID, err))
		}
		out[p.ID] = got
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	for _, p := range f.Players {
		for _, name := range append(p.Env, p.KeyEnv) {
			if name != "" {
				os.Unsetenv(name)
			}
		}
	}
	f.secrets = out
	return out, nil
}

// keysOf are a player's, also when they have been read for a heat.
func (f *Fleet) keysOf(p Player) (map[string]string, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.secrets != nil {
		return f.secrets[p.ID], nil
	}
	return p.keys()
}

// keys are what the player is given.
func (p Player) keys() (map[string]string, error) {
	out := map[string]string{}
	names := p.Env
	if p.KeyEnv != "" {
		names = []string{p.KeyEnv}
	}
	for _, name := range names {
		v := os.Getenv(name)
		if v == "" {
			return nil, fmt.Errorf("the variable %s is not set; set it before refbox is started: export %s=…", name, name)
		}
		out[name] = v
	}
	if p.KeyFile == "" {
		return out, nil
	}
	file, err := os.Open(p.KeyFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("the key file %s is no file", p.KeyFile)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may read the key file %s; mend that: chmod 600 %s", p.KeyFile, p.KeyFile)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxKey))
	if err != nil {
		return nil, err
	}
	key := string(bytes.TrimSpace(data))
	if key == "" || bytes.ContainsAny(bytes.TrimSpace(data), "\r\n \t") {
		return nil, fmt.Errorf("the key file %s does not hold one key and nothing else", p.KeyFile)
	}
	out[""] = key
	return out, nil
}
