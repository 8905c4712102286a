package arena

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"refbox/assets"
)

// bundledTOML is the text of the bundled arena's manifest.
func bundledTOML(t testing.TB) string {
	t.Helper()
	data, err := fs.ReadFile(assets.Arenas(), "primary-failover/arena.toml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func valid(t testing.TB) *Manifest {
	t.Helper()
	m, problems := Read("arena.toml", []byte(bundledTOML(t)))
	if len(problems) > 0 {
		t.Fatalf("the bundled manifest: %v", problems)
	}
	m.Players, m.Cheats = nil, nil
	return m
}

func ptr[T any](v T) *T { return &v }

func TestRules(t *testing.T) {
	fog := func(m *Manifest) {
		m.FogOfWar = &FogOfWar{PlayerBrief: "BRIEF.md", GuestLeakAudit: &GuestLeakAudit{ScanPaths: []string{"/etc"}, ForbiddenStrings: []string{"x"}}}
	}
	machines := func(m *Manifest) {
		m.Territories[0].Machines = []Machine{{Name: "db", Guest: "guest"}, {Name: "app", Guest: "guest"}}
		m.Territories[0].Links = []PrivateLink{{Name: "back", Ends: []string{"db", "app"}}}
	}
	tests := []struct {
		name   string
		change func(*Manifest)
		want   []string // path and the beginning of the text; "!" before a warning
	}{
		{"nothing", func(m *Manifest) {}, nil},
		{"schema", func(m *Manifest) { m.SchemaVersion = 2 }, []string{"schema_version: version 2"}},
		{"arena id", func(m *Manifest) { m.Arena.ID = "A b" }, []string{"arena.id: "}},
		{"arena id empty", func(m *Manifest) { m.Arena.ID = "" }, []string{"arena.id: "}},
		{"arena name", func(m *Manifest) { m.Arena.DisplayName = " " }, []string{"arena.display_name: must not be blank"}},
		{"category", func(m *Manifest) { m.Arena.Category = ptr("x y") }, []string{"arena.category: "}},
		{"no category", func(m *Manifest) { m.Arena.Category = nil }, nil},
		{"internet", func(m *Manifest) { m.Network.AllowPublicInternet = true }, []string{"network.allow_public_internet: "}},
		{"public cidr", func(m *Manifest) { m.Network.CIDR = "8.8.8.0/24" }, []string{"network.cidr: "}},
		{"172.15", func(m *Manifest) { m.Network.CIDR = "172.15.0.0/24" }, []string{"network.cidr: "}},
		{"172.31", func(m *Manifest) { m.Network.CIDR = "172.31.0.0/24" }, nil},
		{"192.168", func(m *Manifest) { m.Network.CIDR = "192.168.7.0/24" }, nil},
		{"cidr that is none", func(m *Manifest) { m.Network.CIDR = "10.x/24" }, []string{"network.cidr: \"10.x/24\" must have the form"}},
		{"wide cidr", func(m *Manifest) { m.Network.CIDR = "10.0.0.0/8" }, []string{"network.cidr: "}},
		{"cidr with host bits", func(m *Manifest) { m.Network.CIDR = "10.0.0.1/24" }, []string{"network.cidr: "}},
		{"duration 0", func(m *Manifest) { m.Rules.DurationSeconds = 0 }, []string{
			"rules.duration_seconds: must be more",
			"build.milestones[0].timeout_seconds: ", "build.milestones[1].timeout_seconds: ", "build.milestones[2].timeout_seconds: ",
			"build.milestones[3].timeout_seconds: ", "build.milestones[4].timeout_seconds: ", "build.milestones[5].timeout_seconds: ",
			"territories[0].service.health.recovery_window_seconds: ", "territories[1].service.health.recovery_window_seconds: ",
			"territories[2].service.health.recovery_window_seconds: ", "!rules.tick_ms: ",
		}},
		{"duration too long", func(m *Manifest) { m.Rules.DurationSeconds = 1 << 40 }, []string{"rules.duration_seconds: must be at most"}},
		{"tick 0", func(m *Manifest) { m.Rules.TickMS = 0 }, []string{"rules.tick_ms: must be more"}},
		{"tick long", func(m *Manifest) { m.Rules.TickMS = 900_001 }, []string{"!rules.tick_ms: is longer"}},
		{"minimum 1", func(m *Manifest) { m.Rules.MinimumTerritories = 1 }, []string{"rules.minimum_territories: must be 2"}},
		{"laboratory", func(m *Manifest) { m.Arena.Laboratory, m.Rules.MinimumTerritories = true, 1 }, []string{"arena.laboratory: needs a schedule"}},
		{"empty laboratory", func(m *Manifest) { m.Arena.Laboratory, m.Rules.MinimumTerritories = true, 0 }, []string{"rules.minimum_territories: must be 1", "arena.laboratory: "}},
		{"too few", func(m *Manifest) { m.Rules.MinimumTerritories = 4 }, []string{"territories: there are 3"}},
		{"race without build", func(m *Manifest) { m.Build = nil; m.Visualization = nil }, []string{"build: is missing"}},
		{"conquest with build", func(m *Manifest) { m.Arena.Mode = Conquest }, []string{"build: has no place"}},
		{"conquest", func(m *Manifest) {
			m.Arena.Mode = Conquest
			m.Build = nil
			m.Visualization = nil
			m.Procedure, m.Clock = nil, nil
		}, nil},
		{"conquest with a clock", func(m *Manifest) { m.Arena.Mode = Conquest; m.Build = nil; m.Visualization = nil }, []string{"clock: is of milestones"}},
		{"no milestones", func(m *Manifest) { m.Build.Milestones = nil; m.Visualization = nil },
			[]string{"build.milestones: must not be empty", "build.completion_milestone: no milestone", "!build.milestones: the points sum to 0"}},
		{"milestone id", func(m *Manifest) {
			m.Build.Milestones[5].ID = "Host Reboot"
			m.Build.CompletionMilestone = "Host Reboot"
			m.Visualization = nil
		},
			[]string{"build.milestones[5].id: "}},
		{"milestone twice", func(m *Manifest) {
			m.Build.Milestones = append(m.Build.Milestones, m.Build.Milestones[0])
			m.Build.Milestones[6].Points = 1
		},
			[]string{"build.milestones[6].id: \"failed-primary-preserved\" is there already", "!build.milestones: the points"}},
		{"milestone name", func(m *Manifest) { m.Build.Milestones[1].DisplayName = "" }, []string{"build.milestones[1].display_name: "}},
		{"verifier blank", func(m *Manifest) { m.Build.Milestones[1].Verifier = " " }, []string{"build.milestones[1].verifier: must not be blank"}},
		{"verifier outside", func(m *Manifest) { m.Build.Milestones[1].Verifier = "../x" }, []string{"build.milestones[1].verifier: \"../x\" must be a file inside"}},
		{"verifier absolute", func(m *Manifest) { m.Build.Milestones[1].Verifier = "/bin/true" }, []string{"build.milestones[1].verifier: "}},
		{"timeout 0", func(m *Manifest) { m.Build.Milestones[1].TimeoutSeconds = 0 }, []string{"build.milestones[1].timeout_seconds: "}},
		{"timeout long", func(m *Manifest) { m.Build.Milestones[1].TimeoutSeconds = 901 }, []string{"build.milestones[1].timeout_seconds: "}},
		{"points 0", func(m *Manifest) { m.Build.Milestones[1].Points = 0 }, []string{"build.milestones[1].points: ", "!build.milestones: the points sum to 80"}},
		{"points overflow", func(m *Manifest) { m.Build.Milestones[1].Points = 1 << 63; m.Build.Milestones[2].Points = 1 << 63 },
			[]string{"build.milestones: the points sum to more"}},
		{"completion unknown", func(m *Manifest) { m.Build.CompletionMilestone = "nope" }, []string{
			"build.completion_milestone: no milestone", "!build.milestones[0]: ", "!build.milestones[1]: ", "!build.milestones[2]: ",
			"!build.milestones[3]: ", "!build.milestones[4]: ", "!build.milestones[5]: "}},
		{"unknown dependency", func(m *Manifest) { m.Build.Milestones[1].DependsOn = []string{"failed-primary-preserved", "nope"} },
			[]string{"build.milestones[1].depends_on: no milestone is called \"nope\""}},
		{"self dependency", func(m *Manifest) { m.Build.Milestones[0].DependsOn = []string{"failed-primary-preserved"} },
			[]string{"build.milestones[0].depends_on: ", "build.milestones: \"failed-primary-preserved\" depends on itself in a circle"}},
		{"cycle named once, by its first member", func(m *Manifest) { m.Build.Milestones[1].DependsOn = []string{"writes-restored"} },
			[]string{"build.milestones: \"reads-restored\"", "!build.milestones[0]: \"failed-primary-preserved\" is required, but"}},
		{"completion optional", func(m *Manifest) { m.Build.Milestones[5].Required = false }, []string{"build.completion_milestone: \"host-reboot\" must be a required"}},
		{"dependency twice", func(m *Manifest) {
			m.Build.Milestones[1].DependsOn = []string{"failed-primary-preserved", "failed-primary-preserved"}
		},
			[]string{"!build.milestones[1].depends_on: names"}},
		{"required beside the completion", func(m *Manifest) { m.Build.Milestones[5].DependsOn = []string{"writes-restored"} },
			[]string{"!build.milestones[4]: \"service-restart\" is required, but"}},
		{"optional beside the completion", func(m *Manifest) {
			m.Build.Milestones[5].DependsOn = []string{"writes-restored"}
			m.Build.Milestones[4].Required = false
		}, nil},
		{"optional below the completion", func(m *Manifest) { m.Build.Milestones[4].Required = false }, []string{"!build.milestones[4].required: false has no effect"}},
		{"no visualization", func(m *Manifest) { m.Visualization = nil }, nil},
		{"no nodes", func(m *Manifest) { m.Visualization.Nodes = nil; m.Visualization.Links = nil }, []string{"visualization.nodes: must not"}},
		{"node id", func(m *Manifest) { m.Visualization.Nodes[0].ID = ""; m.Visualization.Links = nil }, []string{"visualization.nodes[0].id: "}},
		{"node twice", func(m *Manifest) { m.Visualization.Nodes[1].ID = "client"; m.Visualization.Links = nil }, []string{"visualization.nodes[1].id: "}},
		{"node name", func(m *Manifest) { m.Visualization.Nodes[0].DisplayName = "" }, []string{"visualization.nodes[0].display_name: "}},
		{"node off the canvas", func(m *Manifest) { m.Visualization.Nodes[0].X = 101; m.Visualization.Nodes[0].Y = 255 },
			[]string{"visualization.nodes[0].x: ", "visualization.nodes[0].y: "}},
		{"node milestone", func(m *Manifest) { m.Visualization.Nodes[0].Milestone = ptr("nope") }, []string{"visualization.nodes[0].milestone: "}},
		{"link ends", func(m *Manifest) { m.Visualization.Links[0] = Link{From: "x", To: "y", Kind: LinkTraffic} },
			[]string{"visualization.links[0].from: ", "visualization.links[0].to: "}},
		{"link to itself", func(m *Manifest) { m.Visualization.Links[0].To = "client" }, []string{"visualization.links[0]: joins"}},
		{"link label", func(m *Manifest) { m.Visualization.Links[0].Label = ptr("") }, []string{"visualization.links[0].label: "}},
		{"link twice", func(m *Manifest) { m.Visualization.Links[1] = m.Visualization.Links[0] }, []string{"!visualization.links[1]: is there already"}},
		{"fog", fog, nil},
		{"fog brief", func(m *Manifest) { fog(m); m.FogOfWar.PlayerBrief = "" }, []string{"fog_of_war.player_brief: "}},
		{"fog empty audit", func(m *Manifest) { m.FogOfWar = &FogOfWar{PlayerBrief: "x", GuestLeakAudit: &GuestLeakAudit{}} },
			[]string{"fog_of_war.guest_leak_audit.scan_paths: ", "fog_of_war.guest_leak_audit.forbidden_strings: "}},
		{"fog paths", func(m *Manifest) {
			fog(m)
			m.FogOfWar.GuestLeakAudit = &GuestLeakAudit{ScanPaths: []string{"etc", "/", "/etc"}, ForbiddenStrings: []string{"a", " "}}
		}, []string{"fog_of_war.guest_leak_audit.scan_paths[0]: ", "fog_of_war.guest_leak_audit.scan_paths[1]: ", "fog_of_war.guest_leak_audit.forbidden_strings[1]: "}},
		{"no classes", func(m *Manifest) { m.Classes = nil }, []string{"territories[0].class: ", "territories[1].class: ", "territories[2].class: "}},
		{"class", func(m *Manifest) { m.Classes[0] = Class{ID: "failover-engineer"} },
			[]string{"classes[0].display_name: ", "classes[0].resources.vcpus: ", "classes[0].resources.memory_mib: ", "classes[0].resources.disk_mib: "}},
		{"class twice", func(m *Manifest) { m.Classes = append(m.Classes, m.Classes[0]) }, []string{"classes[1].id: "}},
		{"class sizes", func(m *Manifest) {
			m.Classes[0].Resources = Resources{VCPUs: 256, MemoryMiB: 1 << 40, DiskMiB: 1 << 40}
		},
			[]string{"classes[0].resources.vcpus: ", "classes[0].resources.memory_mib: ", "classes[0].resources.disk_mib: "}},
		{"class unused", func(m *Manifest) {
			c := m.Classes[0]
			c.ID = "other"
			m.Classes = append(m.Classes, c)
		}, []string{"!classes[1]: no territory"}},
		{"territory", func(m *Manifest) {
			m.Territories[1].NixosConfig = ptr("")
			m.Territories[1].Service = Service{Port: 8080, Path: "x", ExpectedStatus: 600}
		}, []string{"territories[1].nixos_config: ", "territories[1].service.path: ", "territories[1].service.expected_status: ",
			"territories[1].service.health.poll_interval_ms: ", "territories[1].service.health.consecutive_failures: ", "territories[1].service.health.recovery_window_seconds: "}},
		{"territory twice", func(m *Manifest) { m.Territories[1].ID = "failover-one" },
			[]string{"territories[1].id: ", "agents[1].territory: no territory is called \"failover-two\""}},
		{"port 0", func(m *Manifest) { m.Territories[0].Service.Port = 0 }, []string{"territories[0].service.port: must be"}},
		{"port 22", func(m *Manifest) { m.Territories[0].Service.Port = 22 }, []string{"territories[0].service.port: must be"}},
		{"port forwarded twice", func(m *Manifest) { m.Territories[0].Service.Port = 8081 }, []string{"territories[0].service.port: port 8081"}},
		{"agent", func(m *Manifest) { m.Agents[0] = Agent{ID: "right", Territory: "failover-one"} },
			[]string{"agents[0].adapter: ", "agents[0].model: ", "agents[0].budget.resource_units: "}},
		{"agent ids", func(m *Manifest) { m.Agents[1].ID = "right"; m.Agents[2].ID = "?" }, []string{"agents[1].id: ", "agents[2].id: "}},
		{"agent's territory", func(m *Manifest) { m.Agents[0].Territory = "failover-two"; m.Agents[2].Territory = "x" },
			[]string{"agents[2].territory: ", "agents: territory \"failover-one\" has no agent", "agents: territory \"failover-two\" has 2 agents", "agents: territory \"failover-three\" has no agent"}},
		{"script missing", func(m *Manifest) { m.Agents[0].Script = nil }, []string{"agents[0].script: is missing"}},
		{"script in vain", func(m *Manifest) { m.Agents[0].Adapter = "claux" }, []string{"agents[0].script: is only for"}},
		{"script outside", func(m *Manifest) { m.Agents[0].Script = ptr("players/../../x") }, []string{"agents[0].script: "}},
		{"machines", machines, nil},
		{"machine names", func(m *Manifest) { machines(m); m.Territories[0].Machines[1].Name = "db" },
			[]string{"territories[0].machines[1].name: ", "territories[0].links[0].ends: no machine"}},
		{"machine class", func(m *Manifest) { machines(m); m.Territories[0].Machines[1].Class = ptr("nope") },
			[]string{"territories[0].machines[1].class: "}},
		{"machine sizes", func(m *Manifest) {
			machines(m)
			m.Territories[0].Machines[1].Class = ptr("failover-engineer")
			m.Territories[0].Machines[1].Resources = &Resources{VCPUs: 1, MemoryMiB: 1, DiskMiB: 1 << 40}
		}, []string{"territories[0].machines[1]: give class or resources", "territories[0].machines[1].resources.memory_mib: ", "territories[0].machines[1].resources.disk_mib: "}},
		{"machine ports", func(m *Manifest) {
			machines(m)
			m.Territories[0].Machines[0].Forwards = []uint16{9, 9, 0, 22, 8080, 8081}
			m.Territories[0].Machines[1].Forwards = []uint16{8080}
		}, []string{"territories[0].machines[0].forwards: port 9", "territories[0].machines[0].forwards: port 0", "territories[0].machines[0].forwards: port 22",
			"territories[0].machines[0].forwards: port 8080", "territories[0].machines[0].forwards: port 8081"}},
		{"machine guest", func(m *Manifest) { machines(m); m.Territories[0].Machines[1].Guest = "/etc" }, []string{"territories[0].machines[1].guest: "}},
		{"links", func(m *Manifest) {
			machines(m)
			m.Territories[0].Links = []PrivateLink{{Name: "back", Ends: []string{"db"}}, {Name: "back", Ends: []string{"db", "db"}}}
		}, []string{"territories[0].links[0].ends: needs", "territories[0].links[1].name: ", "territories[0].links[1].ends: names"}},
		{"link without machines", func(m *Manifest) { m.Territories[0].Links = []PrivateLink{{Name: "back", Ends: []string{"a", "b"}}} },
			[]string{"territories[0].links[0].ends: ", "territories[0].links[0].ends: "}},
		{"guest", func(m *Manifest) {
			m.Guest = &Guest{Setup: []string{"setup"}, Seat: []string{"rm", "-rf"}, Forwards: []uint16{0, 22}, Values: []SecretValue{{Name: "a"}, {Name: "a"}, {Name: ""}}}
		}, []string{"guest.forwards: port 0", "guest.forwards: port 22", "guest.setup: ", "guest.seat: ", "guest.values[1].name: ", "guest.values[2].name: ", "canary.known: "}},
		{"packages", func(m *Manifest) { m.Guest.Packages = []string{"postgresql-15", "g++"} }, nil},
		{"package names", func(m *Manifest) { m.Guest.Packages = []string{"haproxy", "haproxy", "Patroni", "etcd=3", ""} },
			[]string{"guest.packages[1]: names", "guest.packages[2]: ", "guest.packages[3]: ", "guest.packages[4]: "}},
		{"many packages", func(m *Manifest) {
			for i := range 33 {
				m.Guest.Packages = append(m.Guest.Packages, fmt.Sprintf("package-%d", i))
			}
		}, []string{"guest.packages: must be at most 32"}},
		{"library", func(m *Manifest) { m.Guest.Library = []string{"/opt/a/wire.py", "/opt/b/wire.py"} }, nil},
		{"library files", func(m *Manifest) {
			m.Guest.Library = []string{"/opt/a/wire.py", "/opt/a/wire.py", "/opt/a/wires.py", "wire.py", "/opt/../wire.py", ""}
		}, []string{"guest.library[1]: names", `guest.library[2]: refbox's library has no file "wires.py" (it has sql.py, wire.py)`,
			"guest.library[3]: ", "guest.library[4]: ", "guest.library[5]: ", "guest.library[5]: "}},
		{"canary", func(m *Manifest) { m.Canary = &Canary{Path: "/x/{id}", IntervalMS: 500} }, nil},
		{"canary path", func(m *Manifest) { m.Canary = &Canary{Path: "records/{id}", IntervalMS: 500} }, []string{"canary.path: "}},
		{"canary ids", func(m *Manifest) { m.Canary = &Canary{Path: "/{id}/{id}", IntervalMS: 500} }, []string{"canary.path: "}},
		{"canary line", func(m *Manifest) { m.Canary = &Canary{Path: "/{id} HTTP/1.0\r\nX: y", IntervalMS: 500} }, []string{"canary.path: "}},
		{"canary haste", func(m *Manifest) { m.Canary = &Canary{Path: "/{id}", IntervalMS: 99} }, []string{"canary.interval_ms: "}},
		{"canary known", func(m *Manifest) { m.Canary = &Canary{Path: "/{id}", IntervalMS: 500, Known: new(string)} }, []string{"canary.known: "}},
		{"drain", func(m *Manifest) { m.Heat = &Heat{DrainSeconds: 3601} }, []string{"heat.drain_seconds: "}},
		{"too many territories", func(m *Manifest) {
			m.Territories, m.Agents = nil, nil
			for i := range 241 {
				id := fmt.Sprintf("t-%d", i)
				m.Territories = append(m.Territories, Territory{ID: id, Class: "failover-engineer", Service: valid(t).Territories[0].Service})
				m.Agents = append(m.Agents, Agent{ID: id, Territory: id, Adapter: "x", Model: "y", Budget: Budget{ResourceUnits: 1}})
			}
		}, []string{"territories: must be at most 240"}},
		{"players", func(m *Manifest) {
			m.Players = []Trial{{Name: "right", Script: "players/right.sh", Result: Durable}, {Name: "right", Script: "../right.sh", Result: "host-reboot"}, {Name: "c", Script: "c.sh", Result: "nope", Territory: "failover-one"}}
			m.Cheats = []Cheat{{"c", "cheats/c.sh", "replayed", "nope", " "}, {"d", "/c.sh", "replayed", "host-reboot", "x"}}
		}, []string{"players[1].name: \"right\" is there already", "players[1].script: ", "players[2].territory: ", "players[2].result: \"nope\" is neither",
			"cheats[0].name: \"c\" is there already", "cheats[0].milestone: no milestone", "cheats[0].refusal: must not be blank", "cheats[1].script: "}},
		{"a conquest's players and links", func(m *Manifest) {
			m.Arena.Mode, m.Build, m.Visualization, m.Cheats, m.Clock, m.Procedure = Conquest, nil, nil, nil, nil, nil
			m.Players = []Trial{{Name: "a", Script: "a.sh", Result: Standing, Territory: "failover-one"}, {Name: "b", Script: "b.sh", Result: Durable, Territory: "nope"},
				{Name: "c", Script: "c.sh", Result: Eliminated, Territory: "failover-two"}}
			m.Network.Links = []SeatLink{{"lan", []string{"failover-one", "failover-one"}}, {"lan", []string{"nope"}}}
		}, []string{"network.links[0].territories: names", "network.links[1].name: ", "network.links[1].territories: needs two", "network.links[1].territories: no territory",
			"players[1].territory: ", "players[1].result: ", "players[2].refusal: "}},
		{"a link in a build race", func(m *Manifest) {
			m.Network.Links = []SeatLink{{"lan", []string{"failover-one", "failover-two"}}}
		}, []string{"network.links: are for a conquest"}},
		{"all are collected, in order", func(m *Manifest) {
			m.SchemaVersion, m.Arena.ID, m.Network.AllowPublicInternet, m.Rules.TickMS = 0, "!", true, 0
			m.Build.Milestones[0].Points, m.Build.CompletionMilestone = 0, "nope"
			m.Visualization.Nodes[0].X, m.Classes[0].DisplayName = 200, ""
			m.Territories[2].Service.Path, m.Agents[1].Model = "", ""
			m.Network.CIDR = "1.2.3.4"
		}, []string{"schema_version: ", "arena.id: ", "network.allow_public_internet: ", "network.cidr: ", "rules.tick_ms: ",
			"build.milestones[0].points: ", "build.completion_milestone: ", "visualization.nodes[0].x: ", "classes[0].display_name: ",
			"territories[2].service.path: ", "agents[1].model: ",
			"!build.milestones[0]: ", "!build.milestones[1]: ", "!build.milestones[2]: ", "!build.milestones[3]: ", "!build.milestones[4]: ", "!build.milestones[5]: ",
			"!build.milestones: the points sum to 95"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := valid(t)
			tt.change(m)
			var got []string
			for _, p := range Check(m) {
				s := p.Path + ": " + p.Text
				if p.Warning {
					s = "!" + s
				}
				got = append(got, s)
			}
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

func TestDerived(t *testing.T) {
	m := valid(t)
	if got := m.Points(); got != 100 {
		t.Errorf("points %d, want 100", got)
	}
	passed := map[string]bool{}
	has := func(id string) bool { return passed[id] }
	for _, s := range m.Build.Milestones {
		e := m.Eligible(has)
		if len(e) != 1 || e[0].ID != s.ID {
			t.Fatalf("eligible %v, want %s alone", e, s.ID)
		}
		if m.Durable(has) {
			t.Fatalf("durable before %s", s.ID)
		}
		passed[s.ID] = true
	}
	if !m.Durable(has) || len(m.Eligible(has)) != 0 {
		t.Error("not durable with everything passed")
	}

	// A branch: c and d rest on a and b; only d completes; b is optional.
	m.Build = &Build{CompletionMilestone: "d", Milestones: []Milestone{
		{ID: "a", Required: true}, {ID: "b"}, {ID: "c", Required: true, DependsOn: []string{"a", "b"}}, {ID: "d", Required: true, DependsOn: []string{"a"}},
	}}
	steps := []struct {
		pass     string
		eligible string
		durable  bool
	}{{"", "a b", false}, {"a", "b d", false}, {"d", "b", false}, {"b", "c", false}, {"c", "", true}}
	clear(passed)
	for _, s := range steps {
		passed[s.pass] = true
		var ids []string
		for _, e := range m.Eligible(has) {
			ids = append(ids, e.ID)
		}
		if got := strings.Join(ids, " "); got != s.eligible {
			t.Errorf("after %q: eligible %q, want %q", s.pass, got, s.eligible)
		}
		if got := m.Durable(has); got != s.durable {
			t.Errorf("after %q: durable %v, want %v", s.pass, got, s.durable)
		}
	}

	m.Visualization = nil
	if v := m.Topology(); len(v.Nodes) == 0 || *v.Nodes[1].Milestone != "d" {
		t.Errorf("no stand-in topology: %+v", v)
	}
}
