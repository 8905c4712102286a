package world

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// laterKeys did not exist in every era: a recorded world may lack them
// (recordings reference, sections 0 and 3.4).
var laterKeys = map[string]string{
	"terminal_state":   "before era E3",
	"terminal_detail":  "before era E3",
	"competitor_state": "before era E1",
	"milestones":       "before era E1",
	"milestone_points": "before era E1",
	"durable_at_ms":    "before era E1",
	"class":            "before the controller registered territories",
	"agent":            "before the controller registered territories",
}

// foreignKeys are a newer reference's, which its reducer does not derive from the
// log in a way that is known: they are not compared.
var foreignKeys = map[string]bool{"cost_complete": true}

// CompareRecorded compares a raw fold with the text of a recorded world.json.
// Differences are given as path and values, one a line. Era lists what the record
// lacks since it did not exist then, and what it has that this version does not
// know; both are no difference.
func CompareRecorded(w *World, recorded []byte) (differences, era []string, err error) {
	var want any
	d := json.NewDecoder(bytes.NewReader(recorded))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		return nil, nil, fmt.Errorf("world.json: %w", err)
	}
	own := keyOf(want, "refbox") != nil
	text, err := w.ReferenceJSON()
	if own {
		text, err = w.JSON()
	}
	if err != nil {
		return nil, nil, err
	}
	var got any
	d = json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		return nil, nil, err
	}
	c := comparison{own: own, era: map[string]bool{}}
	c.compare("", got, want)
	for note := range c.era {
		era = append(era, note)
	}
	slices.Sort(era)
	return c.differences, era, nil
}

func keyOf(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}

type comparison struct {
	own         bool
	differences []string
	era         map[string]bool
}

const maxDifferences = 50

func (c *comparison) differ(path string, got, want any) {
	if len(c.differences) < maxDifferences {
		c.differences = append(c.differences, fmt.Sprintf("%s: the log gives %s, world.json says %s", strings.TrimPrefix(path, "."), short(got), short(want)))
	}
}

type absent struct{}

func short(v any) string {
	if _, ok := v.(absent); ok {
		return "nothing"
	}
	text, _ := json.Marshal(v)
	if len(text) > 120 {
		return string(text[:117]) + "..."
	}
	return string(text)
}

func (c *comparison) compare(path string, got, want any) {
	g, ok1 := got.(map[string]any)
	m, ok2 := want.(map[string]any)
	if !ok1 || !ok2 {
		if !reflect.DeepEqual(got, want) {
			c.differ(path, got, want)
		}
		return
	}
	// Evidence and the maps by id hold anybody's keys; the records' own keys
	// are those that eras differ in.
	open := path == ".territories" || path == ".agents" || strings.HasSuffix(path, ".milestones") || strings.Contains(path, ".evidence")
	keys := make([]string, 0, len(g))
	for k := range g {
		keys = append(keys, k)
	}
	for k := range m {
		if _, ok := g[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		gv, inFold := g[k]
		wv, inRecord := m[k]
		at := path + "." + k
		switch {
		case inFold && inRecord:
			c.compare(at, gv, wv)
		case inFold && !open && !c.own && laterKeys[k] != "":
			c.era[fmt.Sprintf("world.json lacks %s: recorded %s", k, laterKeys[k])] = true
		case !inFold && !open && !c.own && foreignKeys[k]:
			c.era[fmt.Sprintf("world.json has %s, which is not compared", k)] = true
		case !inFold && !open && !c.own:
			c.era[fmt.Sprintf("world.json has %s, which this version does not know", k)] = true
		case inFold:
			c.differ(at, gv, absent{})
		default:
			c.differ(at, absent{}, wv)
		}
	}
}
