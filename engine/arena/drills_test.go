package arena

import (
	"io/fs"
	"strings"
	"testing"

	"refbox/assets"
)

// What an arena says that it drills is checked, each rule by a manifest that breaks
// it alone.
func TestDrills(t *testing.T) {
	data, err := fs.ReadFile(assets.Arenas(), "primary-failover/arena.toml")
	if err != nil {
		t.Fatal(err)
	}
	const has = "procedure = \"promotion\"\nclock = { to = \"writes-restored\" }\n"
	if !strings.Contains(string(data), has) {
		t.Fatal("the arena declares no promotion")
	}
	const clock = "clock = { from = \"reads-restored\", to = \"writes-restored\" }\n"
	for _, x := range []struct{ says, path, want string }{
		{"", "", ""},
		{has, "", ""},
		{"procedure = \"restore\"\n" + clock + "store = \"App.db:1\"\ncopy = \"dump@nas\"\n", "", ""},
		{"procedure = \"rollback\"\n" + clock + "store = \"db\"\nmigration = \"m-1\"\n", "", ""},
		{"procedure = \"restart\"\n" + clock, "procedure", "none of restore"},
		{"procedure = \"restore\"\n", "clock", "is missing"},
		{clock, "procedure", "is missing"},
		{"procedure = \"restore\"\nclock = { to = \"lunch\" }\n", "clock.to", "no milestone"},
		{"procedure = \"restore\"\nclock = { from = \"lunch\", to = \"writes-restored\" }\n", "clock.from", "no milestone"},
		{"procedure = \"restore\"\nclock = { from = \"writes-restored\", to = \"writes-restored\" }\n", "clock.from", "no time passes"},
		{"procedure = \"restore\"\nclock = { }\n", "clock.to", "is missing"},
		{"store = \"db\"\n", "procedure", "is missing"},
		{has + "store = \"a b\"\n", "store", "no id"},
		{has + "store = \"\"\n", "store", "no id"},
		{has + "copy = \"db\"\n", "store", "is missing: copy"},
		{has + "store = \"db\"\ncopy = \"-db\"\n", "copy", "no id"},
		{has + "store = \"db\"\nmigration = \"m\"\n", "migration", "only for procedure"},
		{"procedure = \"rollback\"\n" + clock + "store = \"db\"\n", "migration", "is missing"},
	} {
		m, problems := Read("arena.toml", []byte(strings.Replace(string(data), has, x.says, 1)))
		var bad []Problem
		for _, p := range problems {
			if !p.Warning {
				bad = append(bad, p)
			}
		}
		switch {
		case x.want == "" && len(bad) > 0:
			t.Errorf("%s: %v", x.says, bad)
		case x.want == "" && (m.Procedure != nil) != (x.says != ""):
			t.Errorf("%s: procedure %v", x.says, m.Procedure)
		case x.want != "" && (len(bad) != 1 || bad[0].Path != x.path || !strings.Contains(bad[0].Text, x.want) || bad[0].Line == 0):
			t.Errorf("%s: %v, want %s: … %s", x.says, bad, x.path, x.want)
		}
	}

	// A milestone that is not required, and that nothing rests on, stops no clock.
	loose := strings.Replace(string(data), "[[build.milestones]]\nid = \"service-restart\"", "[[build.milestones]]\nid = \"extra\"\ndisplay_name = \"Extra\"\nverifier = \"verify/reads-restored.star\"\ntimeout_seconds = 5\npoints = 0\nrequired = false\n\n[[build.milestones]]\nid = \"service-restart\"", 1)
	_, problems := Read("arena.toml", []byte(strings.Replace(loose, "clock = { to = \"writes-restored\" }", "clock = { to = \"extra\" }", 1)))
	found := false
	for _, p := range problems {
		found = found || p.Path == "clock.to" && strings.Contains(p.Text, "not required")
	}
	if !found {
		t.Errorf("an optional milestone stops the clock: %v", problems)
	}
}
