// Package settings is what a user likes: theme, plain letters, mouse, lines for a
// screen reader, keys. It hides where each comes from: the configuration file, the
// environment, which wins over the file, or neither.
//
// Guarantees: reading writes nothing; every error names file and line; each value
// knows its origin; the commented file that Starter returns sets nothing, and shows
// every default as it is.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"

	"refbox/engine/bounded"
	"refbox/engine/text"
	"refbox/tui/canvas"
	"refbox/tui/internal/place"
	"refbox/tui/keymap"
)

// Settings are the effective ones.
type Settings struct {
	Theme  canvas.Theme
	Themes []canvas.Theme // what the theme key goes through
	ASCII  bool           // plain letters instead of signs
	Mouse  bool           // on from the start; a key changes it
	Reader bool           // no screen: lines of what changes, for a screen reader
	Keys   keymap.Map
	Values []Value // each with its origin, in the file's order
}

// Value is a setting as it is told.
type Value struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // "default", a variable of the environment, or file:line
}

// maxFile bounds a configuration or a theme, in bytes.
const maxFile = 1 << 20

// source is the file and the environment.
type source struct {
	file string
	data []byte
	env  func(string) string
}

// Read reads a configuration file, which need not exist, and the environment. Themes
// are the bundled ones, those of the folder "themes" beside the file, and files.
func Read(file string, env func(string) string) (Settings, error) {
	src := source{file: file, env: env}
	var err error
	if src.data, err = bounded.File(file, maxFile); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return Settings{}, err
	}
	var f struct {
		Theme  *string                        `toml:"theme"`
		ASCII  *bool                          `toml:"ascii"`
		Mouse  *bool                          `toml:"mouse"`
		Reader *bool                          `toml:"screen_reader"`
		Keys   map[keymap.Action]stringOrList `toml:"keys"`
	}
	meta, err := toml.NewDecoder(bytes.NewReader(src.data)).Decode(&f)
	if err != nil {
		line, what := place.Fault(err)
		return Settings{}, src.fault(line, "%s", what)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return Settings{}, src.fault(place.Line(src.data, unknown[0]...), "the key %q is not known; there are theme, ascii, mouse, screen_reader and [keys]", unknown[0].String())
	}
	s := Settings{Themes: canvas.Bundled()}
	if err := s.theme(src, f.Theme); err != nil {
		return Settings{}, err
	}
	for _, b := range []struct {
		into           *bool
		name, variable string
		file           *bool
		otherwise      bool
	}{
		{&s.ASCII, "ascii", "REFBOX_ASCII", f.ASCII, !utf8Locale(env)},
		{&s.Mouse, "mouse", "REFBOX_MOUSE", f.Mouse, false},
		{&s.Reader, "screen_reader", "REFBOX_SCREEN_READER", f.Reader, false},
	} {
		origin := "default"
		switch v := env(b.variable); {
		case v != "":
			*b.into, origin = v != "0", b.variable
		case b.file != nil:
			*b.into, origin = *b.file, src.at(b.name)
		default:
			if *b.into = b.otherwise; b.otherwise {
				origin = "the locale is not UTF-8"
			}
		}
		s.Values = append(s.Values, Value{b.name, fmt.Sprint(*b.into), origin})
	}
	return s, s.keys(src, f.Keys)
}

// theme sets the theme: what the environment or the file names, else what the
// terminal says of its background.
func (s *Settings) theme(src source, file *string) error {
	name, origin, line := "dark", "default", 0
	switch v := src.env("REFBOX_THEME"); {
	case v != "":
		name, origin = v, "REFBOX_THEME"
	case file != nil && *file != "auto":
		name, origin, line = *file, src.at("theme"), place.Line(src.data, "theme")
	default:
		// The convention of many terminals: "foreground;background", 0–6 and 8
		// being dark.
		if bg := src.env("COLORFGBG"); strings.HasSuffix(bg, ";15") || strings.HasSuffix(bg, ";7") {
			name, origin = "light", "COLORFGBG"
		}
	}
	s.Values = append(s.Values, Value{"theme", text.Line(name), origin})
	for _, t := range s.Themes {
		if t.Name() == name {
			s.Theme = t
			return nil
		}
	}
	themes := filepath.Join(filepath.Dir(src.file), "themes")
	path := name
	if !strings.ContainsRune(name, '/') {
		path = filepath.Join(themes, name+".toml")
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(src.file), path)
	}
	data, err := bounded.File(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		err := fmt.Errorf("there is no theme %q: it is auto, dark, light, high-contrast, or the name of a file in %s", text.Line(name), themes)
		if line == 0 {
			return fmt.Errorf("%s: %w", origin, err)
		}
		return src.fault(line, "%w", err)
	}
	if err != nil {
		return err
	}
	own, err := canvas.ParseTheme(strings.TrimSuffix(filepath.Base(path), ".toml"), data, canvas.Dark())
	if err != nil {
		at := source{file: path}
		var bad canvas.ThemeError
		if errors.As(err, &bad) {
			return at.fault(bad.Line, "%s", bad.Text)
		}
		return at.fault(0, "%w", err)
	}
	s.Theme, s.Themes = own, append(s.Themes, own)
	return nil
}

// keys makes the key map. A fault is told at the line of the action that caused it.
func (s *Settings) keys(src source, remap map[keymap.Action]stringOrList) error {
	keys := map[keymap.Action][]string{}
	for a, k := range remap {
		keys[a] = k
	}
	var err error
	if s.Keys, err = keymap.New(keys); err != nil {
		var bad *keymap.Error
		if errors.As(err, &bad) {
			return src.fault(place.Line(src.data, "keys", string(bad.Action)), "%w", err)
		}
		return src.fault(0, "%w", err)
	}
	for _, a := range slices.Sorted(maps.Keys(keys)) {
		b := s.Keys.Binding(a)
		s.Values = append(s.Values, Value{"keys." + string(a), s.Keys.Names(b), src.at("keys", string(a))})
	}
	return nil
}

// at is where a key of the file stands.
func (s source) at(key ...string) string {
	return fmt.Sprintf("%s:%d", s.file, place.Line(s.data, key...))
}

// fault is an error at a line of the file, 0 for the whole.
func (s source) fault(line int, format string, a ...any) error {
	err := fmt.Errorf(format, a...)
	if line == 0 {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	return fmt.Errorf("%s:%d: %w", s.file, line, err)
}

// utf8Locale says whether the locale lets box lines and signs be shown. The first
// variable that is set decides, as in setlocale.
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true // a bare environment on a terminal of today
}

// stringOrList is one key or several.
type stringOrList []string

func (l *stringOrList) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		*l = stringOrList{v}
		return nil
	case []any:
		*l = stringOrList{}
		for _, k := range v {
			s, ok := k.(string)
			if !ok {
				return fmt.Errorf("%v is no key; keys are strings, as in [\"w\", \"F5\"]", k)
			}
			*l = append(*l, s)
		}
		return nil
	}
	return fmt.Errorf("%v is neither a key nor a list of keys, as in [\"w\", \"F5\"]", v)
}
