package arena

import (
	"encoding/json"
	"time"

	"refbox/engine/internal/plainjson"
)

// Manifest is an arena's manifest as loaded: every default filled in. Field
// order is the key order of arena.json; an option that is absent is null there.
// The keys that the reference does not know come after its own and are left out
// when they are unset, so a manifest of the reference keeps its shape.
//
// Tags: a field without `default`, that is neither a pointer nor omitempty, must
// be given; `enum` closes a set of strings.
type Manifest struct {
	SchemaVersion uint32         `json:"schema_version"`
	Arena         Arena          `json:"arena"`
	Network       Network        `json:"network"`
	Rules         Rules          `json:"rules"`
	Build         *Build         `json:"build"` // nil for a conquest
	Visualization *Visualization `json:"visualization"`
	FogOfWar      *FogOfWar      `json:"fog_of_war"`
	Classes       []Class        `json:"classes"`
	Territories   []Territory    `json:"territories"`
	Agents        []Agent        `json:"agents"`

	Guest  *Guest  `json:"guest,omitempty"`  // ours
	Heat   *Heat   `json:"heat,omitempty"`   // ours
	Canary *Canary `json:"canary,omitempty"` // ours
	// Exercises are ours.
	Exercises []Exercise `json:"exercises,omitempty" default:"[]"`
	// Procedure is what a seat does to recover, Clock between what its time is taken;
	// Store is the store of a register whose data the machines hold, Copy the copy of it
	// that they were made from, Migration the one that is rolled back. All ours.
	Procedure *string `json:"procedure,omitempty"`
	Clock     *Clock  `json:"clock,omitempty"`
	Store     *string `json:"store,omitempty"`
	Copy      *string `json:"copy,omitempty"`
	Migration *string `json:"migration,omitempty"`

	Faults []Fault `json:"faults,omitempty" default:"[]"` // ours

	Players []Trial `json:"players,omitempty" default:"[]"` // ours
	Cheats  []Cheat `json:"cheats,omitempty" default:"[]"`  // ours
}

// Modes of a heat.
const (
	BuildRace = "build_race"
	Conquest  = "conquest"
)

// Arena names the arena.
type Arena struct {
	ID          string  `json:"id"`
	DisplayName string  `json:"display_name"`
	Category    *string `json:"category"`
	Mode        string  `json:"mode" default:"conquest" enum:"build_race,conquest"`
	// Laboratory is ours: nobody races. One seat is enough, and the schedule of faults
	// is what happens.
	Laboratory bool `json:"laboratory,omitempty" default:"false"`
}

// Network is the address range of the machines' private links.
type Network struct {
	CIDR                string `json:"cidr"`
	AllowPublicInternet bool   `json:"allow_public_internet" default:"false"` // must be false
	// Links are ours: what joins the territories of a conquest. Where there are any,
	// a machine is called as its territory, there and in the recording.
	Links []SeatLink `json:"links,omitempty" default:"[]"`
}

// SeatLink is an Ethernet between territories, of one machine each.
type SeatLink struct {
	Name        string   `json:"name"`
	Territories []string `json:"territories"`
}

// Rules are the heat's clock and size.
type Rules struct {
	DurationSeconds         uint64 `json:"duration_seconds"`
	TickMS                  uint64 `json:"tick_ms"` // what is eligible is evaluated at least this often
	HealthyResourcesPerTick uint64 `json:"healthy_resources_per_tick"`
	MinimumTerritories      uint64 `json:"minimum_territories"`
}

// Build is a race to a durable deployment.
type Build struct {
	StopOnFirstDurable  bool        `json:"stop_on_first_durable"`
	CompletionMilestone string      `json:"completion_milestone"`
	Milestones          []Milestone `json:"milestones"`
}

// Operations that the referee performs before a milestone's verifier runs.
const (
	Observe    = "observe"
	HostReboot = "host_reboot"
)

// Milestone is one rung of the ladder.
type Milestone struct {
	ID             string   `json:"id"`
	DisplayName    string   `json:"display_name"`
	DependsOn      []string `json:"depends_on" default:"[]"`
	Verifier       string   `json:"verifier"` // as written; Package.Verifier says which file is run
	Operation      string   `json:"operation" default:"observe" enum:"observe,host_reboot"`
	TimeoutSeconds uint64   `json:"timeout_seconds"`
	Points         uint64   `json:"points"`
	Required       bool     `json:"required" default:"true"` // false: a seat is durable without it
}

// Visualization is the topology that is drawn.
type Visualization struct {
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links" default:"[]"`
}

// Kinds of nodes and links.
const (
	NodeClient   = "client"
	NodeProxy    = "proxy"
	NodeService  = "service"
	NodeWorker   = "worker"
	NodeQueue    = "queue"
	NodeDatabase = "database"
	NodeStorage  = "storage"
	NodeHost     = "host"

	LinkTraffic     = "traffic"
	LinkQueue       = "queue"
	LinkReplication = "replication"
	LinkStorage     = "storage"
	LinkLifecycle   = "lifecycle"
)

// Node is a part of the topology. X and Y are percent of the canvas, 0 to 100,
// from the left and from the top.
type Node struct {
	ID          string  `json:"id"`
	DisplayName string  `json:"display_name"`
	Kind        string  `json:"kind" enum:"client,proxy,service,worker,queue,database,storage,host"`
	Milestone   *string `json:"milestone"` // the one whose state the node shows
	X           uint8   `json:"x"`
	Y           uint8   `json:"y"`
}

// Link joins two nodes.
type Link struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Kind  string  `json:"kind" default:"traffic" enum:"traffic,queue,replication,storage,lifecycle"`
	Label *string `json:"label"`
}

// FogOfWar limits what players are told.
type FogOfWar struct {
	PlayerBrief               string          `json:"player_brief"`
	HideTopologyUntilObserved bool            `json:"hide_topology_until_observed" default:"true"`
	PlayerArtifacts           []string        `json:"player_artifacts,omitempty" default:"[]"`
	GuestLeakAudit            *GuestLeakAudit `json:"guest_leak_audit"`
}

// GuestLeakAudit names what must not be found in a guest, and where.
type GuestLeakAudit struct {
	ScanPaths        []string `json:"scan_paths"`
	ForbiddenStrings []string `json:"forbidden_strings"`
}

// Class is a kind of competitor's machine.
type Class struct {
	ID          string    `json:"id"`
	DisplayName string    `json:"display_name"`
	Strengths   []string  `json:"strengths" default:"[]"`
	Weaknesses  []string  `json:"weaknesses" default:"[]"`
	Resources   Resources `json:"resources"`
}

// Resources are a machine's sizes. They reach QEMU.
type Resources struct {
	VCPUs     uint16 `json:"vcpus"`
	MemoryMiB uint64 `json:"memory_mib"`
	DiskMiB   uint64 `json:"disk_mib"`
}

// Territory is a competitor's place.
type Territory struct {
	ID          string  `json:"id"`
	Class       string  `json:"class"`
	NixosConfig *string `json:"nixos_config,omitempty"` // the reference's guest; not used here
	Service     Service `json:"service"`

	Machines []Machine     `json:"machines,omitempty" default:"[]"` // ours; none: one, called "host", of the territory's class
	Links    []PrivateLink `json:"links,omitempty" default:"[]"`    // ours
}

// Service is the territory's public service.
type Service struct {
	Port           uint16 `json:"port"` // in the guest of the first machine
	Path           string `json:"path"`
	ExpectedStatus uint16 `json:"expected_status"`
	ExpectedBody   string `json:"expected_body"`
	Health         Health `json:"health"`
}

// Health says when a conquest's territory is lost.
type Health struct {
	PollIntervalMS        uint64 `json:"poll_interval_ms"` // ignored: tick_ms is the interval
	ConsecutiveFailures   uint32 `json:"consecutive_failures"`
	RecoveryWindowSeconds uint64 `json:"recovery_window_seconds"`
}

// Machine is one of a territory's machines. Its sizes are its own Resources, or
// its Class's, or the territory's class's.
type Machine struct {
	Name      string     `json:"name"`
	Class     *string    `json:"class,omitempty"`
	Resources *Resources `json:"resources,omitempty"`
	Forwards  []uint16   `json:"forwards,omitempty" default:"[]"` // guest ports that the host reaches, beside the service's and guest.forwards
	Guest     string     `json:"guest" default:"guest"`           // folder of the package that is laid over this machine's root
}

// PrivateLink is an Ethernet between machines of one territory.
type PrivateLink struct {
	Name string   `json:"name"`
	Ends []string `json:"ends"`
}

// Adapter names that need no command.
const (
	AdapterScript = "script" // Agent.Script is played by the harness itself
	AdapterHuman  = "human"
)

// Agent is a competitor.
type Agent struct {
	ID              string  `json:"id"`
	Territory       string  `json:"territory"`
	Adapter         string  `json:"adapter"`
	Model           string  `json:"model"`
	ReasoningEffort string  `json:"reasoning_effort" default:"default"`
	Budget          Budget  `json:"budget"`
	Script          *string `json:"script,omitempty"` // ours; for adapter script: a file of the package, e.g. players/right.sh
}

// Budget limits an agent.
type Budget struct {
	ResourceUnits   uint64  `json:"resource_units"`
	MaxCostMicroUSD *uint64 `json:"max_cost_microusd"`
}

// Guest says how the package's guest tree is set up. The tree itself is the
// package's folder guest/, laid over the machine's root.
type Guest struct {
	// Setup runs once, as root, when the machines are prepared.
	Setup []string `json:"setup,omitempty" default:"[]"`
	// Packages are Debian packages that the machines have beside the image's own. None
	// of their services starts at boot until Setup enables it.
	Packages []string `json:"packages,omitempty" default:"[]"`
	// Library are files of refbox's guest library, each by where it is laid on every
	// machine: "/opt/arena/wire.py" is wire.py. Their bytes count as the guest tree's.
	Library []string `json:"library,omitempty" default:"[]"`
	// Runner is a file of the package that starts each machine's process in QEMU's
	// place: vm.MachineSpec.Runner.
	Runner string `json:"runner,omitempty" default:""`
	// Forwards are guest ports, on every machine, that the referee reaches from
	// outside, beside the service's.
	Forwards []uint16 `json:"forwards,omitempty" default:"[]"`
	// Seat runs at the start of every seat, as root through the referee's
	// channel, after the seat's identity is set; its standard input is
	// SeatInput's JSON. It fails the seat, charged to the arena, unless it
	// exits 0.
	Seat []string `json:"seat,omitempty" default:"[]"`
	// Values are derived from the heat's secret seed for Seat and the verifiers.
	Values []SecretValue `json:"values,omitempty" default:"[]"`
	// Decoys are planted to be left alone: a seat whose player uses one is marked.
	Decoys []Decoy `json:"decoys,omitempty" default:"[]"`
}

// Kinds of decoys.
const (
	DecoyToken = "token" // a secret value, which Seat plants as it plants Values
	DecoyPath  = "path"  // a file of the guest's
)

// Decoy is something in the guest that nobody who does the task needs. A token is
// used when the player sends it to its machines, a path when the player names it
// there. Both are seen on the wire, in commands and in what is typed; a token that
// a program in the guest reads from its file and passes on is not.
type Decoy struct {
	Name string `json:"name"`
	Kind string `json:"kind" default:"token" enum:"token,path"`
	Path string `json:"path,omitempty" default:""` // of kind path: absolute
}

// KindRecord is a secret value made of an opaque id and an opaque value.
const KindRecord = "record"

// SecretValue names a value that is derived from the heat's secret seed.
type SecretValue struct {
	Name string `json:"name"`
	Kind string `json:"kind" default:"record" enum:"record"`
}

// Record is a value of KindRecord. Both are URL-safe: a-z 0-9 -.
type Record struct {
	ID    string `json:"id"`
	Value string `json:"value"`
}

// SeatInput is the standard input of Guest.Seat:
// {"values":{"<name>":{"id":"…","value":"…"}}}, names sorted.
func SeatInput(values map[string]Record) []byte {
	if values == nil {
		values = map[string]Record{}
	}
	b, err := json.Marshal(struct {
		Values map[string]Record `json:"values"`
	}{values})
	if err != nil { // a map of strings always marshals
		return []byte(`{"values":{}}`)
	}
	return b
}

// Heat holds the arena's defaults for running it.
type Heat struct {
	// DrainSeconds bounds the collection of late artefacts after the freeze.
	DrainSeconds uint64 `json:"drain_seconds" default:"30"`
}

// DefaultDrainSeconds is used when the manifest has no heat table.
const DefaultDrainSeconds = 30

// Canary declares that the referee's own client writes records through each
// territory's public service for the whole heat: package canary.
type Canary struct {
	// Path of a record: PUT writes it, GET reads it. {id} stands for its id, which is of
	// a-z 0-9 and -, as its value is.
	Path       string `json:"path"`
	IntervalMS uint64 `json:"interval_ms" default:"500"` // between two writes
	// Known is one of guest.values that can be read as long as the service serves reads.
	Known *string `json:"known,omitempty"`
}

// Interval is the time between two writes.
func (c Canary) Interval() time.Duration { return time.Duration(c.IntervalMS) * time.Millisecond }

// JSON is arena.json, in the reference's form: two-space indent, nothing escaped
// that JSON does not demand, no final newline.
func (m *Manifest) JSON() ([]byte, error) { return plainjson.Indented(m) }
