package run

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"refbox/engine/bounded"
	"refbox/engine/season"
)

// Found is what was found of a week, with where more of it can be looked up.
type Found struct {
	season.Documents
	Sources season.Sources
	Dir     string // of the week, when it is a folder; else ""
}

// maxOthers bounds how many neighbouring draws are looked at.
const maxOthers = 1000

// Open finds a week: a folder, a draw.json or a week.json, or a file of either
// kind under another name, whose other half is NAME.week.json beside
// NAME.draw.json.
func Open(ctx context.Context, path string) (*Found, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := new(Found)
	base := filepath.Base(path)
	switch {
	case st.IsDir():
		f.Dir = path
	case base == drawFile || base == weekFile:
		f.Dir = filepath.Dir(path)
	}
	if f.Dir != "" {
		if f.Documents, err = season.ReadDir(f.Dir); err != nil {
			return nil, err
		}
		if f.Sources.Journals, err = Journals(f.Dir); err != nil {
			return nil, err
		}
		if rounds, err := filepath.Glob(filepath.Join(f.Dir, "round-*")); err == nil && len(rounds) > 0 {
			f.Sources.Attempt = Attempts(ctx, f.Dir)
		}
	} else {
		if f.Documents, err = season.ReadFile(path); err != nil {
			return nil, err
		}
		if other := half(path); other != "" {
			if _, err := os.Stat(other); err == nil {
				if err := f.With(other); err != nil {
					return nil, err
				}
			}
		}
	}
	f.Path = path
	if d := f.Draw; d != nil {
		f.Sources.Key = func(x season.Arena) (string, map[string]string, error) {
			key, hashes, err := Key(x, d.Rules)
			if errors.Is(err, fs.ErrNotExist) {
				return "", nil, nil
			}
			return key, hashes, err
		}
	}
	f.Sources.Others = f.others(path)
	return f, nil
}

func half(path string) string {
	if name, ok := strings.CutSuffix(path, ".draw.json"); ok {
		return name + ".week.json"
	}
	if name, ok := strings.CutSuffix(path, ".week.json"); ok {
		return name + ".draw.json"
	}
	return ""
}

// others are the labels of other draws of the same season: in the folders beside
// a week's, and in the files beside a document.
func (f *Found) others(path string) []string {
	id, week := "", ""
	if f.Draw != nil {
		id, week = f.Draw.SeasonID, f.Draw.Week
	} else {
		id, week = f.Week.SeasonID, f.Week.Week
	}
	var files []string
	if f.Dir != "" {
		abs, err := filepath.Abs(f.Dir)
		if err != nil {
			return nil
		}
		files, _ = filepath.Glob(filepath.Join(filepath.Dir(abs), "*", drawFile))
	} else {
		files, _ = filepath.Glob(filepath.Join(filepath.Dir(path), "*.draw.json"))
	}
	var out []string
	for i, name := range files {
		if i == maxOthers {
			break
		}
		data, err := bounded.File(name, 1<<20)
		if err != nil {
			continue
		}
		var d struct {
			SeasonID string `json:"season_id"`
			Week     string `json:"week"`
		}
		if json.Unmarshal(data, &d) == nil && d.SeasonID == id && d.Week != week && season.Safe(d.Week) {
			out = append(out, d.Week)
		}
	}
	return out
}

// Here lists the attempts whose folders are in a week's, by season.Folder. What
// was set aside is not among them.
func Here(dir string) map[string]bool {
	out := map[string]bool{}
	if dir == "" {
		return out
	}
	rounds, err := filepath.Glob(filepath.Join(dir, "round-*"))
	if err != nil {
		return out
	}
	for _, r := range rounds {
		list, err := os.ReadDir(r)
		if err != nil {
			continue // no folder
		}
		for _, e := range list {
			if e.IsDir() && strings.HasPrefix(e.Name(), "heat-") && !strings.Contains(e.Name(), ".interrupted-") {
				out[filepath.Base(r)+"/"+e.Name()] = true
			}
		}
	}
	return out
}

// Summary is a drawn week in few words.
type Summary struct {
	Dir      string `json:"dir"`
	Season   string `json:"season"`
	Week     string `json:"week"`
	State    string `json:"state"` // drawn, running, complete
	Champion string `json:"champion,omitempty"`
	Entrants int    `json:"entrants"`
	Heats    int    `json:"heats"` // that are over
	Of       int    `json:"of"`    // of the bracket's
}

// List summarises the weeks of a folder, by their names: that of a week, those in a
// season's, or those below, SEASON/WEEK. Nothing is recomputed; what cannot be read is
// left out.
func List(dir string) []Summary {
	var draws []string
	for _, below := range []string{"", "*", "*/*"} {
		some, err := filepath.Glob(filepath.Join(escaped(dir), below, drawFile))
		if err != nil {
			return nil
		}
		draws = append(draws, some...)
	}
	var out []Summary
	for _, file := range draws {
		docs, err := season.ReadDir(filepath.Dir(file))
		if err != nil || docs.Draw == nil {
			continue
		}
		s := Summary{Dir: docs.Path, Season: docs.Draw.SeasonID, Week: docs.Draw.Week, State: "drawn", Entrants: len(docs.Draw.Fleet)}
		for _, stage := range docs.Draw.Shape {
			s.Of += stage.Heats
		}
		if w := docs.Week; w != nil {
			s.State = "running"
			for _, r := range w.Rounds {
				s.Heats += len(r.Heats)
			}
			if w.Completed {
				s.State = "complete"
			}
			if w.Champion != nil {
				s.Champion = *w.Champion
			}
		}
		out = append(out, s)
	}
	return out
}

// escaped is a folder's name as a pattern that matches nothing else.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
