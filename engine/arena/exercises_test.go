package arena

import (
	"strings"
	"testing"

	"refbox/assets"
)

// What an arena says that it exercises is checked, each rule by a manifest that
// breaks it alone.
func TestExercises(t *testing.T) {
	data, err := assets.Arenas().Open("primary-failover/arena.toml")
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	info, _ := data.Stat()
	text := make([]byte, info.Size())
	if _, err := data.Read(text); err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(string(text), "[[exercises]]")
	_, rest, _ := strings.Cut(string(text), "[build]")
	const good = "[[exercises]]\nscenario = \"host-loss\"\nfault = \"power-cut\"\n"
	for _, x := range []struct{ exercises, path, want string }{
		{good, "", ""},
		{good + "coverage = \"whole\"\nmachinery = \"real\"\nfrom = \"writes-restored\"\nto = \"host-reboot\"\nsingle_writer = \"old-primary-fenced\"\nwithin_seconds = 60\ntarget = \"host\"\n", "", ""},
		{good + good, "exercises[1]", "there already"},
		{good + "coverage = \"whole\"\n", "exercises[0].coverage", "a stand-in never covers"},
		{good + "coverage = \"most\"\n", "exercises[0].coverage", "none of partial, whole"},
		{good + "from = \"lunch\"\n", "exercises[0].from", "no milestone"},
		{good + "to = \"lunch\"\n", "exercises[0].to", "no milestone"},
		{good + "single_writer = \"lunch\"\n", "exercises[0].single_writer", "no milestone"},
		{good + "within_seconds = 901\n", "exercises[0].within_seconds", "at most"},
		{good + "target = \" \"\n", "exercises[0].target", "blank"},
		{strings.Replace(good, "host-loss", "Host loss", 1), "exercises[0].scenario", "no id"},
		{strings.Replace(good, "power-cut", "", 1), "exercises[0].fault", "no id"},
		{strings.Replace(good, "power-cut", StartsBroken, 1) + "from = \"writes-restored\"\n", "exercises[0]", "starts broken"},
	} {
		m, problems := Read("arena.toml", []byte(base+x.exercises+"[build]"+rest))
		var bad []Problem
		for _, p := range problems {
			if !p.Warning {
				bad = append(bad, p)
			}
		}
		switch {
		case x.want == "" && len(bad) > 0:
			t.Errorf("%s: %v", x.exercises, bad)
		case x.want == "" && (m.Exercises[0].Coverage == "" || m.Exercises[0].Machinery == ""):
			t.Errorf("defaults are not filled in: %+v", m.Exercises[0])
		case x.want != "" && (len(bad) != 1 || bad[0].Path != x.path || !strings.Contains(bad[0].Text, x.want) || bad[0].Line == 0):
			t.Errorf("%s: %v, want %s: … %s", x.exercises, bad, x.path, x.want)
		}
	}
}
