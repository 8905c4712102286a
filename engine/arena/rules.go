package arena

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
)

// Bounds that the reference lacks. They keep every size and duration inside
// what the machinery can count.
const (
	maxDurationSeconds = 31 * 24 * 3600
	maxTerritories     = 240 // of the reference's network plan
	maxVCPUs           = 255
	maxMemoryMiB       = 1 << 20
	maxDiskMiB         = 16 << 20
	maxItems           = 1000 // of any list
)

// Check holds a manifest to all rules and returns every fault. First the
// reference's, in its order (recordings reference, section 1.2); then the ones
// that it lacks, as errors where the heat could not be run or would lie, else as
// warnings:
//
//   - error: port 0, port 22 or a port forwarded twice; more than 240
//     territories; a CIDR that is not an IPv4 A.B.C.0/24; sizes and times beyond
//     what can be counted; our own tables' rules.
//   - warning: duplicated depends_on and links; unused classes; points that do
//     not sum to 100; a tick longer than the heat; a required milestone that
//     the completion milestone does not depend on (a seat is durable only with
//     it all the same, see Manifest.Durable); required = false on a milestone
//     that the completion milestone depends on (it has no effect there).
//
// Two of the reference's gaps cannot occur here: a verifier's loops end with
// the milestone's timeout (engine/probe), and the brief's deadline is taken from
// the rules (Package.Brief).
func Check(m *Manifest) []Problem {
	c := &checker{m: m}
	c.top()
	c.build()
	c.visualization()
	c.fog()
	c.classes()
	c.territories()
	c.agents()
	c.ours()
	return c.problems
}

type checker struct {
	m        *Manifest
	problems []Problem
}

func (c *checker) fail(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Path: path, Text: fmt.Sprintf(format, args...), Warning: true})
}

func (c *checker) failIf(bad bool, path, format string, args ...any) {
	if bad {
		c.fail(path, format, args...)
	}
}

func isID(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return s != ""
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

const (
	badID    = "%s is no id: use a-z, 0-9 and -"
	notBlank = "must not be blank"
)

// id checks a list item's id and that it is new.
func (c *checker) id(path, id string, seen map[string]bool) {
	c.failIf(!isID(id), path, badID, quote(id))
	c.failIf(seen[id], path, "%s is there already: ids are unique", quote(id))
	seen[id] = true
}

func (c *checker) top() {
	m := c.m
	c.failIf(m.SchemaVersion != 1, "schema_version", "version %d is not supported: only 1 is", m.SchemaVersion)
	c.failIf(!isID(m.Arena.ID), "arena.id", badID, quote(m.Arena.ID))
	c.failIf(blank(m.Arena.DisplayName), "arena.display_name", notBlank)
	if m.Arena.Category != nil {
		c.failIf(!isID(*m.Arena.Category), "arena.category", badID, quote(*m.Arena.Category))
	}
	c.failIf(m.Network.AllowPublicInternet, "network.allow_public_internet", "must be false: machines reach nothing outside their territory")
	c.failIf(!privateCIDR(m.Network.CIDR), "network.cidr", "%s is not private: use 10., 172.16. to 172.31., or 192.168.", quote(m.Network.CIDR))
	c.failIf(m.Rules.DurationSeconds == 0, "rules.duration_seconds", "must be more than 0")
	c.failIf(m.Rules.TickMS == 0, "rules.tick_ms", "must be more than 0")
	if m.Arena.Laboratory {
		c.failIf(m.Rules.MinimumTerritories < 1, "rules.minimum_territories", "must be 1 or more")
	} else {
		c.failIf(m.Rules.MinimumTerritories < 2, "rules.minimum_territories", "must be 2 or more")
	}
	c.failIf(uint64(len(m.Territories)) < m.Rules.MinimumTerritories, "territories", "there are %d, rules.minimum_territories is %d", len(m.Territories), m.Rules.MinimumTerritories)
}

// privateCIDR is the reference's test, of the text alone.
func privateCIDR(s string) bool {
	if strings.HasPrefix(s, "10.") || strings.HasPrefix(s, "192.168.") {
		return true
	}
	for n := 16; n <= 31; n++ {
		if strings.HasPrefix(s, fmt.Sprintf("172.%d.", n)) {
			return true
		}
	}
	return false
}

func (c *checker) build() {
	m := c.m
	if m.Build == nil {
		c.failIf(m.Arena.Mode == BuildRace, "build", "is missing: a build race needs milestones")
		return
	}
	c.failIf(m.Arena.Mode == Conquest, "build", "has no place in a conquest: set arena.mode = \"build_race\" or drop it")
	seen := map[string]bool{}
	for i, s := range m.Build.Milestones {
		at := fmt.Sprintf("build.milestones[%d]", i)
		c.id(at+".id", s.ID, seen)
		c.failIf(blank(s.DisplayName), at+".display_name", notBlank)
		c.failIf(blank(s.Verifier), at+".verifier", notBlank)
		c.failIf(s.TimeoutSeconds == 0 || s.TimeoutSeconds > m.Rules.DurationSeconds, at+".timeout_seconds", "must be from 1 to rules.duration_seconds (%d)", m.Rules.DurationSeconds)
		c.failIf(s.Points == 0, at+".points", "must be more than 0")
	}
	c.failIf(len(m.Build.Milestones) == 0, "build.milestones", "must not be empty")
	c.failIf(!seen[m.Build.CompletionMilestone], "build.completion_milestone", "no milestone is called %s", quote(m.Build.CompletionMilestone))
	for i, s := range m.Build.Milestones {
		at := fmt.Sprintf("build.milestones[%d].depends_on", i)
		for _, d := range s.DependsOn {
			c.failIf(d == s.ID, at, "%s cannot depend on itself", quote(d))
			c.failIf(!seen[d], at, "no milestone is called %s", quote(d))
		}
	}
	for _, s := range m.Build.Milestones {
		if m.DependsOn(s.ID)[s.ID] {
			c.fail("build.milestones", "%s depends on itself in a circle", quote(s.ID))
			break
		}
	}
	if s, ok := m.Milestone(m.Build.CompletionMilestone); ok {
		c.failIf(!s.Required, "build.completion_milestone", "%s must be a required milestone", quote(s.ID))
	}
}

func (c *checker) visualization() {
	v := c.m.Visualization
	if v == nil {
		return
	}
	c.failIf(len(v.Nodes) == 0, "visualization.nodes", "must not be empty")
	seen := map[string]bool{}
	for i, n := range v.Nodes {
		at := fmt.Sprintf("visualization.nodes[%d]", i)
		c.id(at+".id", n.ID, seen)
		c.failIf(blank(n.DisplayName), at+".display_name", notBlank)
		c.failIf(n.X > 100, at+".x", "must be from 0 to 100, not %d", n.X)
		c.failIf(n.Y > 100, at+".y", "must be from 0 to 100, not %d", n.Y)
		if n.Milestone != nil {
			_, ok := c.m.Milestone(*n.Milestone)
			c.failIf(!ok, at+".milestone", "no milestone is called %s", quote(*n.Milestone))
		}
	}
	for i, l := range v.Links {
		at := fmt.Sprintf("visualization.links[%d]", i)
		c.failIf(!seen[l.From], at+".from", "no node is called %s", quote(l.From))
		c.failIf(!seen[l.To], at+".to", "no node is called %s", quote(l.To))
		c.failIf(l.From == l.To, at, "joins %s to itself", quote(l.From))
		c.failIf(l.Label != nil && blank(*l.Label), at+".label", notBlank)
	}
}

func (c *checker) fog() {
	f := c.m.FogOfWar
	if f == nil {
		return
	}
	c.failIf(blank(f.PlayerBrief), "fog_of_war.player_brief", notBlank)
	a := f.GuestLeakAudit
	if a == nil {
		return
	}
	const at = "fog_of_war.guest_leak_audit"
	c.failIf(len(a.ScanPaths) == 0, at+".scan_paths", "must not be empty")
	for i, p := range a.ScanPaths {
		c.failIf(!strings.HasPrefix(p, "/") || strings.Trim(p, "/") == "", fmt.Sprintf("%s.scan_paths[%d]", at, i), "%s must be absolute and not just /", quote(p))
	}
	c.failIf(len(a.ForbiddenStrings) == 0, at+".forbidden_strings", "must not be empty")
	for i, s := range a.ForbiddenStrings {
		c.failIf(blank(s), fmt.Sprintf("%s.forbidden_strings[%d]", at, i), notBlank)
	}
}

func (c *checker) resources(at string, r Resources) {
	c.failIf(r.VCPUs == 0, at+".vcpus", "must be more than 0")
	c.failIf(r.MemoryMiB < 128, at+".memory_mib", "must be 128 or more, not %d", r.MemoryMiB)
	c.failIf(r.DiskMiB < 256, at+".disk_mib", "must be 256 or more, not %d", r.DiskMiB)
}

func (c *checker) classes() {
	seen := map[string]bool{}
	for i, k := range c.m.Classes {
		at := fmt.Sprintf("classes[%d]", i)
		c.id(at+".id", k.ID, seen)
		c.failIf(blank(k.DisplayName), at+".display_name", notBlank)
		c.resources(at+".resources", k.Resources)
	}
}

func (c *checker) territories() {
	seen := map[string]bool{}
	for i, t := range c.m.Territories {
		at := fmt.Sprintf("territories[%d]", i)
		c.id(at+".id", t.ID, seen)
		_, ok := c.m.Class(t.Class)
		c.failIf(!ok, at+".class", "no class is called %s", quote(t.Class))
		c.failIf(t.NixosConfig != nil && blank(*t.NixosConfig), at+".nixos_config", notBlank)
		s, h := t.Service, t.Service.Health
		c.failIf(!strings.HasPrefix(s.Path, "/"), at+".service.path", "%s must begin with /", quote(s.Path))
		c.failIf(s.ExpectedStatus < 100 || s.ExpectedStatus > 599, at+".service.expected_status", "must be from 100 to 599, not %d", s.ExpectedStatus)
		c.failIf(h.PollIntervalMS == 0, at+".service.health.poll_interval_ms", "must be more than 0")
		c.failIf(h.ConsecutiveFailures == 0, at+".service.health.consecutive_failures", "must be more than 0")
		c.failIf(h.RecoveryWindowSeconds == 0 || h.RecoveryWindowSeconds >= c.m.Rules.DurationSeconds, at+".service.health.recovery_window_seconds", "must be more than 0 and less than rules.duration_seconds (%d)", c.m.Rules.DurationSeconds)
	}
}

func (c *checker) agents() {
	seen := map[string]bool{}
	per := map[string]int{}
	for i, a := range c.m.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		c.id(at+".id", a.ID, seen)
		_, ok := c.m.Territory(a.Territory)
		c.failIf(!ok, at+".territory", "no territory is called %s", quote(a.Territory))
		c.failIf(blank(a.Adapter), at+".adapter", notBlank)
		c.failIf(blank(a.Model), at+".model", notBlank)
		c.failIf(a.Budget.ResourceUnits == 0, at+".budget.resource_units", "must be more than 0")
		per[a.Territory]++
	}
	done := map[string]bool{}
	for _, t := range c.m.Territories {
		if done[t.ID] {
			continue
		}
		done[t.ID] = true
		switch n := per[t.ID]; n {
		case 1:
		case 0:
			c.fail("agents", "territory %s has no agent", quote(t.ID))
		default:
			c.fail("agents", "territory %s has %d agents: it takes one", quote(t.ID), n)
		}
	}
}

// slash24 is the first three octets of A.B.C.0/24, or "".
func slash24(cidr string) string {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !p.Addr().Is4() || p.Bits() != 24 || p.Masked() != p {
		return ""
	}
	return strings.TrimSuffix(p.Addr().String(), ".0")
}

// points is the sum, and whether it can be counted.
func (m *Manifest) points() (sum uint64, ok bool) {
	if m.Build == nil {
		return 0, true
	}
	for _, s := range m.Build.Milestones {
		if s.Points > math.MaxInt64-sum {
			return 0, false
		}
		sum += s.Points
	}
	return sum, true
}
