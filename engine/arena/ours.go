package arena

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"refbox/vm"
)

// ours checks what the reference does not.
func (c *checker) ours() {
	m := c.m
	c.failIf(privateCIDR(m.Network.CIDR) && slash24(m.Network.CIDR) == "", "network.cidr", "%s must have the form A.B.C.0/24", quote(m.Network.CIDR))
	c.failIf(m.Rules.DurationSeconds > maxDurationSeconds, "rules.duration_seconds", "must be at most %d (31 days)", maxDurationSeconds)
	if m.Rules.TickMS > m.Rules.DurationSeconds*1000 && m.Rules.DurationSeconds <= maxDurationSeconds {
		c.warn("rules.tick_ms", "is longer than the heat: milestones are evaluated only after observed actions")
	}
	c.failIf(m.Arena.Laboratory && len(m.Faults) == 0, "arena.laboratory", "needs a schedule of faults: [[faults]]")
	c.failIf(len(m.Territories) > maxTerritories, "territories", "must be at most %d", maxTerritories)
	c.ourMilestones()
	c.ourLinks()
	used := map[string]bool{}
	for i, t := range m.Territories {
		used[t.Class] = true
		c.machines(fmt.Sprintf("territories[%d]", i), t, used)
	}
	for i, k := range m.Classes {
		at := fmt.Sprintf("classes[%d]", i)
		c.limits(at+".resources", k.Resources)
		if !used[k.ID] {
			c.warn(at, "no territory is of class %s", quote(k.ID))
		}
	}
	for i, a := range m.Agents {
		at := fmt.Sprintf("agents[%d].script", i)
		switch {
		case a.Adapter == AdapterScript && a.Script == nil:
			c.fail(at, "is missing: adapter \"script\" plays a file of the package, e.g. script = \"players/right.sh\"")
		case a.Adapter != AdapterScript && a.Script != nil:
			c.fail(at, "is only for adapter \"script\", not for %s", quote(a.Adapter))
		case a.Script != nil && !local(*a.Script):
			c.fail(at, "%s must be a file inside the package", quote(*a.Script))
		}
	}
	for i, t := range m.Territories {
		if t.NixosConfig == nil {
			continue
		}
		folder, _, _ := strings.Cut(*t.NixosConfig, "#")
		c.failIf(!blank(*t.NixosConfig) && folder != "." && !local(folder), fmt.Sprintf("territories[%d].nixos_config", i),
			"%s: what stands before # must be a folder inside the package", quote(*t.NixosConfig))
	}
	c.seatLinks()
	c.guest()
	c.canary()
	c.exercises()
	c.drills()
	c.faults()
	c.trials()
	if m.Heat != nil {
		c.failIf(m.Heat.DrainSeconds > 3600, "heat.drain_seconds", "must be at most 3600")
	}
}

func (c *checker) ourMilestones() {
	b := c.m.Build
	if b == nil {
		return
	}
	c.failIf(len(b.Milestones) > maxItems, "build.milestones", "must be at most %d", maxItems)
	below := c.m.DependsOn(b.CompletionMilestone)
	for i, s := range b.Milestones {
		at := fmt.Sprintf("build.milestones[%d]", i)
		for j, d := range s.DependsOn {
			if slices.Contains(s.DependsOn[:j], d) {
				c.warn(at+".depends_on", "names %s twice", quote(d))
			}
		}
		c.failIf(!blank(s.Verifier) && !local(s.Verifier), at+".verifier", "%s must be a file inside the package", quote(s.Verifier))
		switch {
		case s.ID == b.CompletionMilestone:
		case s.Required && !below[s.ID]:
			c.warn(at, "%s is required, but the completion milestone does not depend on it: a seat is durable only when both have passed", quote(s.ID))
		case !s.Required && below[s.ID]:
			c.warn(at+".required", "false has no effect: the completion milestone depends on %s", quote(s.ID))
		}
	}
	switch sum, ok := c.m.points(); {
	case !ok:
		c.fail("build.milestones", "the points sum to more than can be counted")
	case sum != 100:
		c.warn("build.milestones", "the points sum to %d, not to 100", sum)
	}
}

func (c *checker) ourLinks() {
	v := c.m.Visualization
	if v == nil {
		return
	}
	c.failIf(len(v.Nodes) > maxItems, "visualization.nodes", "must be at most %d", maxItems)
	c.failIf(len(v.Links) > maxItems, "visualization.links", "must be at most %d", maxItems)
	seen := map[string]bool{}
	for i, l := range v.Links {
		key := l.From + "\x00" + l.To + "\x00" + l.Kind
		if seen[key] {
			c.warn(fmt.Sprintf("visualization.links[%d]", i), "is there already: %s to %s, %s", quote(l.From), quote(l.To), l.Kind)
		}
		seen[key] = true
	}
}

func (c *checker) limits(at string, r Resources) {
	c.failIf(r.VCPUs > maxVCPUs, at+".vcpus", "must be at most %d", maxVCPUs)
	c.failIf(r.MemoryMiB > maxMemoryMiB, at+".memory_mib", "must be at most %d", maxMemoryMiB)
	c.failIf(r.DiskMiB > maxDiskMiB, at+".disk_mib", "must be at most %d", maxDiskMiB)
}

// ports checks forwards of one machine against those already taken.
func (c *checker) ports(at string, taken map[uint16]bool, ports ...uint16) {
	for _, p := range ports {
		switch {
		case p == 0:
			c.fail(at, "port 0 cannot be forwarded")
		case p == 22:
			c.fail(at, "port 22 is always forwarded")
		case taken[p]:
			c.fail(at, "port %d is forwarded already", p)
		}
		taken[p] = true
	}
}

func (c *checker) machines(at string, t Territory, used map[string]bool) {
	common := map[uint16]bool{}
	if c.m.Guest != nil {
		for _, p := range c.m.Guest.Forwards {
			common[p] = true
		}
	}
	port := t.Service.Port
	c.failIf(port == 0 || port == 22, at+".service.port", "must be the guest's port of the service, neither 0 nor 22")
	c.failIf(common[port] && port != 0, at+".service.port", "port %d is in guest.forwards too: the service's is always forwarded", port)
	c.failIf(len(t.Machines) > 16, at+".machines", "must be at most 16")
	names := map[string]bool{}
	for i, mc := range t.Machines {
		at := fmt.Sprintf("%s.machines[%d]", at, i)
		c.id(at+".name", mc.Name, names)
		if mc.Class != nil {
			_, ok := c.m.Class(*mc.Class)
			c.failIf(!ok, at+".class", "no class is called %s", quote(*mc.Class))
			used[*mc.Class] = true
		}
		c.failIf(mc.Class != nil && mc.Resources != nil, at, "give class or resources, not both")
		if mc.Resources != nil {
			c.resources(at+".resources", *mc.Resources)
			c.limits(at+".resources", *mc.Resources)
		}
		c.failIf(!local(mc.Guest), at+".guest", "%s must be a folder inside the package", quote(mc.Guest))
		taken := map[uint16]bool{}
		for p := range common {
			taken[p] = true
		}
		if i == 0 && port != 0 {
			taken[port] = true
		}
		c.ports(at+".forwards", taken, mc.Forwards...)
	}
	links := map[string]bool{}
	for i, l := range t.Links {
		at := fmt.Sprintf("%s.links[%d]", at, i)
		c.id(at+".name", l.Name, links)
		c.failIf(len(l.Ends) < 2, at+".ends", "needs two machines or more")
		for j, e := range l.Ends {
			c.failIf(!names[e], at+".ends", "no machine of this territory is called %s", quote(e))
			c.failIf(slices.Contains(l.Ends[:j], e), at+".ends", "names %s twice", quote(e))
		}
	}
	c.failIf(len(t.Links) > 16, at+".links", "must be at most 16")
}

// seatLinks are the one way between territories, and so a conquest's alone.
func (c *checker) seatLinks() {
	m := c.m
	c.failIf(len(m.Network.Links) > 0 && m.Arena.Mode != Conquest, "network.links", "are for a conquest: in a build race nothing lies between the territories")
	c.failIf(len(m.Network.Links) > 16, "network.links", "must be at most 16")
	names := map[string]bool{}
	for i, l := range m.Network.Links {
		at := fmt.Sprintf("network.links[%d]", i)
		c.id(at+".name", l.Name, names)
		c.failIf(len(l.Territories) < 2, at+".territories", "needs two territories or more")
		for j, id := range l.Territories {
			t, ok := m.Territory(id)
			c.failIf(!ok, at+".territories", "no territory is called %s", quote(id))
			c.failIf(len(t.Machines) > 1, at+".territories", "%s has %d machines: a territory on a link between territories has one", quote(id), len(t.Machines))
			c.failIf(slices.Contains(l.Territories[:j], id), at+".territories", "names %s twice", quote(id))
		}
	}
}

func (c *checker) guest() {
	g := c.m.Guest
	if g == nil {
		return
	}
	c.ports("guest.forwards", map[uint16]bool{}, g.Forwards...)
	c.failIf(len(g.Forwards) > 64, "guest.forwards", "must be at most 64")
	c.failIf(g.Runner != "" && !local(g.Runner), "guest.runner", "%s must be a file inside the package", quote(g.Runner))
	c.packages(g.Packages)
	c.library(g.Library)
	c.argv("guest.setup", g.Setup)
	c.argv("guest.seat", g.Seat)
	names := map[string]bool{}
	for i, v := range g.Values {
		c.id(fmt.Sprintf("guest.values[%d].name", i), v.Name, names)
	}
	c.failIf(len(g.Values) > 64, "guest.values", "must be at most 64")
	for i, d := range g.Decoys {
		at := fmt.Sprintf("guest.decoys[%d]", i)
		c.id(at+".name", d.Name, names)
		c.failIf(d.Kind == DecoyPath && (!strings.HasPrefix(d.Path, "/") || len(d.Path) < 5), at+".path", "%s must be the absolute path of a file in the guest", quote(d.Path))
		c.failIf(d.Kind == DecoyToken && d.Path != "", at+".path", "is only for kind \"path\"")
		c.failIf(d.Kind == DecoyToken && len(g.Seat) == 0, at, "a token needs guest.seat: that plants it")
	}
	c.failIf(len(g.Decoys) > 64, "guest.decoys", "must be at most 64")
}

func (c *checker) packages(packages []string) {
	c.failIf(len(packages) > vm.MaxPackages, "guest.packages", "must be at most %d", vm.MaxPackages)
	for i, p := range packages {
		at := fmt.Sprintf("guest.packages[%d]", i)
		if err := vm.CheckPackage(p); err != nil {
			c.fail(at, "%s", err)
		}
		c.failIf(slices.Contains(packages[:i], p), at, "names %s twice", quote(p))
	}
}

var canaryPath = regexp.MustCompile(`^/[!-"$&-z|~]{0,200}\{id\}[!-"$&-z|~]{0,50}$`)

// maxCanaryWrites is what a client makes at most: package canary.
const maxCanaryWrites = 1 << 16

func (c *checker) canary() {
	d := c.m.Canary
	if d == nil {
		return
	}
	c.failIf(!canaryPath.MatchString(d.Path), "canary.path", "%s must be the path of a record on the service, with one {id}, e.g. /records/{id}", quote(d.Path))
	c.failIf(d.IntervalMS < 100 || d.IntervalMS > 60_000, "canary.interval_ms", "must be from 100 to 60000")
	c.failIf(d.IntervalMS >= 100 && c.m.Rules.DurationSeconds <= maxDurationSeconds && c.m.Rules.DurationSeconds*1000/d.IntervalMS > maxCanaryWrites,
		"canary.interval_ms", "would be more than %d writes in a heat", maxCanaryWrites)
	if d.Known != nil {
		known := c.m.Guest != nil && slices.ContainsFunc(c.m.Guest.Values, func(v SecretValue) bool { return v.Name == *d.Known })
		c.failIf(!known, "canary.known", "none of guest.values is called %s", quote(*d.Known))
	}
}

func (c *checker) argv(at string, argv []string) {
	c.failIf(len(argv) > 0 && !strings.HasPrefix(argv[0], "/"), at, "%s must begin with / : it is a program in the guest", quote(strings.Join(argv, " ")))
}
