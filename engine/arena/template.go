package arena

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refbox/assets"
)

// template is the bundled arena that new ones are made of.
const template = "hello-service"

// Init makes a package of the template in a folder, which must be empty or not
// there, and gives its id: the folder's name, as far as that can be one.
func Init(dir string) (id string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("arena %q: %w", dir, err)
	}
	id = idOf(filepath.Base(abs))
	if isDir(assets.Arenas(), id) {
		return "", fmt.Errorf("arena %q: a bundled arena is called %s: choose another folder name", dir, id)
	}
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return "", fmt.Errorf("arena %q: the folder is not empty: choose another", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("arena: %w", err)
	}
	from, err := fs.Sub(assets.Arenas(), template)
	if err != nil {
		return "", fmt.Errorf("the template: %w", err)
	}
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		if name == "arena.toml" {
			data = bytes.Replace(data, []byte(`id = "`+template+`"`), []byte(`id = "`+id+`"`), 1)
			data = bytes.Replace(data, []byte(`display_name = "Hello Service"`), []byte(`display_name = "`+title(id)+`"`), 1)
		}
		return os.WriteFile(at, data, mode)
	})
	if err != nil {
		return "", fmt.Errorf("make the arena package: %w", err)
	}
	return id, nil
}

// idOf makes an id of a name.
func idOf(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !isID(string(r)) || r == '-' })
	if len(parts) == 0 {
		return "arena"
	}
	return strings.Join(parts, "-")
}

func title(id string) string {
	words := strings.Split(id, "-")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}
