package arena

import (
	"strings"
	"testing"
)

// Each fault of a schedule is said with its line and its key.
func TestSchedule(t *testing.T) {
	base := bundledTOML(t)
	for name, c := range map[string]struct{ text, want string }{
		"well":                {"id = \"a\"\nkind = \"power-cut\"\nat_ms = 5000", ""},
		"drawn after":         {"id = \"a\"\nkind = \"clock-jump\"\nback_ms = 60000\nafter = \"reads-restored\"\nwindow_ms = [100, 2000]\nfor_ms = 500\nseats = \"one\"", ""},
		"by port":             {"id = \"a\"\nkind = \"service-stop\"\nunit = \"failover-proxy.service\"\nport = 8080\nat_ms = 1\nproves = [\"writes-restored\"]", ""},
		"no kind":             {"id = \"a\"\nkind = \"earthquake\"\nat_ms = 1", ":3: faults[0].kind"},
		"no id":               {"id = \"A b\"\nkind = \"freeze\"\nat_ms = 1", ":2: faults[0].id"},
		"never":               {"id = \"a\"\nkind = \"freeze\"", ":1: faults[0]: when?"},
		"twice":               {"id = \"a\"\nkind = \"freeze\"\nat_ms = 1\nafter = \"reads-restored\"", ":4: faults[0].at_ms: a time of its own"},
		"too late":            {"id = \"a\"\nkind = \"freeze\"\nat_ms = 900000", ":4: faults[0].at_ms: the heat is over"},
		"after nothing":       {"id = \"a\"\nkind = \"freeze\"\nafter = \"x\"", ":4: faults[0].after: no milestone"},
		"waits for nothing":   {"id = \"a\"\nkind = \"freeze\"\nwindow_ms = [1, 2]\nwait_ms = 3", ":5: faults[0].wait_ms"},
		"backward window":     {"id = \"a\"\nkind = \"freeze\"\nwindow_ms = [5, 2]", ":4: faults[0].window_ms"},
		"half a window":       {"id = \"a\"\nkind = \"freeze\"\nwindow_ms = [5]", ":4: faults[0].window_ms"},
		"no machine":          {"id = \"a\"\nkind = \"freeze\"\nat_ms = 1\nmachine = \"mars\"", ":5: faults[0].machine: territory failover-one has no machine"},
		"no unit":             {"id = \"a\"\nkind = \"process-kill\"\nat_ms = 1", ":1: faults[0].unit: want the name"},
		"foreign":             {"id = \"a\"\nkind = \"freeze\"\nat_ms = 1\nmib = 64", ":5: faults[0].mib: a freeze has none"},
		"bounds":              {"id = \"a\"\nkind = \"clock-jump\"\nat_ms = 1\nback_ms = 3", ":5: faults[0].back_ms: want 5000"},
		"both ways":           {"id = \"a\"\nkind = \"clock-jump\"\nat_ms = 1\nback_ms = 6000\nahead_ms = 90000", ":5: faults[0].back_ms: the clock jumps"},
		"more than there is":  {"id = \"a\"\nkind = \"memory-pressure\"\nat_ms = 1\nmib = 768", ":5: faults[0].mib: machine host"},
		"not forwarded":       {"id = \"a\"\nkind = \"service-stop\"\nunit = \"x.service\"\nport = 99\nat_ms = 1", ":5: faults[0].port: 99 is not forwarded"},
		"no link":             {"id = \"a\"\nkind = \"link-down\"\nlink = \"x\"\npeer = \"y\"\nat_ms = 1", ":4: faults[0].link: territory failover-one has no link"},
		"does not last":       {"id = \"a\"\nkind = \"hard-reset\"\nat_ms = 1\nfor_ms = 5", ":5: faults[0].for_ms: a hard-reset does not last"},
		"proves nothing":      {"id = \"a\"\nkind = \"freeze\"\nat_ms = 1\nproves = [\"x\"]", ":5: faults[0].proves: no milestone"},
		"proves what is past": {"id = \"a\"\nkind = \"freeze\"\nafter = \"writes-restored\"\nproves = [\"reads-restored\"]", ":5: faults[0].proves: \"reads-restored\" is passed before"},
		"one proves":          {"id = \"a\"\nkind = \"freeze\"\nat_ms = 1\nseats = \"one\"\nproves = [\"reads-restored\"]", ":6: faults[0].proves: the other seats"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "[[faults]]\n" + c.text + "\n"
			lines := strings.Count(base, "\n")
			_, problems := Read("arena.toml", []byte(base+text))
			var got []string
			for _, p := range problems {
				if !p.Warning {
					p.Line -= lines
					got = append(got, p.String())
				}
			}
			if all := strings.Join(got, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("got %s\nwant %s", all, c.want)
			}
		})
	}
}
