package register

import (
	"bytes"
	"time"

	"refbox/engine/internal/plainjson"
)

// Document is a register. Its fields stand in the order in which they are
// printed. A tag says where a field comes from: without one a person declares
// it; "derived" follows from the rest, is never read and always written by
// [Derive]; "joined" comes from the [Estate]. "optional" may be left out of a
// declaration. (reference/register-and-failure-model.md 1.1.)
//
// Minutes are minutes, and null is unknown or none, never zero.
type Document struct {
	Available bool   `json:"available" reg:"joined"`
	Status    string `json:"status" reg:"optional"`
	Note      string `json:"note" reg:"optional"`
	Policy    Policy `json:"policy"`
	// Estate, Profile and EvaluatedOn let a rendered register be derived again
	// from itself alone.
	Estate      *Estate     `json:"estate,omitempty" reg:"optional"`
	Profile     Profile     `json:"profile,omitempty" reg:"optional"`
	EvaluatedOn Date        `json:"evaluatedOn,omitempty" reg:"optional"`
	Summary     Summary     `json:"summary" reg:"derived"`
	Paths       []Path      `json:"paths" reg:"optional"`
	Stores      []Store     `json:"stores"`
	Migrations  []Migration `json:"migrations" reg:"optional"`
	Scenarios   []Scenario  `json:"scenarios" reg:"optional"`
	Matrix      []Cell      `json:"matrix" reg:"derived"`
	Findings    []Finding   `json:"findings" reg:"derived"`
	Source      string      `json:"source" reg:"joined"`
}

// Policy is what the estate asks of every durable store.
type Policy struct {
	CopiesRequired   int      `json:"copiesRequired"`
	DomainsRequired  int      `json:"domainsRequired"`
	OffsiteRequired  bool     `json:"offsiteRequired"`
	DrillMaxAgeDays  int      `json:"drillMaxAgeDays"`
	QuorumMinDomains int      `json:"quorumMinDomains"`
	UplinkEntities   []string `json:"uplinkEntities"`
	Notes            []string `json:"notes" reg:"optional"`
}

// Summary counts the register.
type Summary struct {
	Stores                int `json:"stores"`
	Durable               int `json:"durable"`
	Copies                int `json:"copies"`
	CopiesRunning         int `json:"copiesRunning"`
	MeetingRPO            int `json:"meetingRpo"`
	WithOffsite           int `json:"withOffsite"`
	WithOffsiteToday      int `json:"withOffsiteToday"`
	Drilled               int `json:"drilled"`
	UplinkDependent       int `json:"uplinkDependent"`
	Gaps                  int `json:"gaps"`
	Accepted              int `json:"accepted"`
	Notes                 int `json:"notes"`
	Scenarios             int `json:"scenarios"`
	CellsSurvivingTarget  int `json:"cellsSurvivingTarget"`
	CellsSurvivingCurrent int `json:"cellsSurvivingCurrent"`
	CellsTotal            int `json:"cellsTotal"`
	Migrations            int `json:"migrations"`
	MigrationsReversible  int `json:"migrationsReversible"`
}

// Path is a way that bytes travel, with the entities they cross.
type Path struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Description     string   `json:"description" reg:"optional"`
	Transits        []string `json:"transits"`
	DependsOnUplink bool     `json:"dependsOnUplink" reg:"derived"`
}

// Store is one datastore.
type Store struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	Purpose        string         `json:"purpose" reg:"optional"`
	Engine         string         `json:"engine" reg:"optional"`
	Durability     Durability     `json:"durability"`
	Criticality    Criticality    `json:"criticality"`
	WriteModel     WriteModel     `json:"writeModel"`
	EntityID       *string        `json:"entityId"`
	Unmonitored    *string        `json:"unmonitored"`
	Proposed       bool           `json:"proposed" reg:"optional"`
	Status         *string        `json:"status" reg:"joined"`
	Primary        Primary        `json:"primary"`
	HomeDomain     string         `json:"homeDomain" reg:"derived"`
	Domains        []string       `json:"domains" reg:"derived"`
	Writers        []Writer       `json:"writers" reg:"optional"`
	Objectives     *Objectives    `json:"objectives"`
	Design         Design         `json:"design" reg:"derived"`
	Today          Protection     `json:"today" reg:"derived"`
	UplinkExposure UplinkExposure `json:"uplinkExposure" reg:"derived"`
	Copies         []Copy         `json:"copies" reg:"optional"`
	Promotion      *Promotion     `json:"promotion"`
	LocalFirst     *LocalFirst    `json:"localFirst"`
	Rebuild        *Rebuild       `json:"rebuild"`
	Vendor         *Vendor        `json:"vendor"`
	Restore        *Restore       `json:"restore"`
	// Rehearsals prove nothing of the store, and no rule looks at them.
	Rehearsals    []Rehearsal `json:"rehearsals,omitempty" reg:"optional"`
	LastDrill     *Drill      `json:"lastDrill" reg:"derived"`
	HostsLeaseFor []string    `json:"hostsLeaseFor" reg:"joined"`
	Worst         Outcome     `json:"worst" reg:"derived"`
	WorstToday    Outcome     `json:"worstToday" reg:"derived"`
}

// Primary is where a store is written: a node of ours, or a vendor's domain.
type Primary struct {
	Node   string `json:"node,omitempty" reg:"optional"`
	Vendor string `json:"vendor,omitempty" reg:"optional"`
	Region string `json:"region,omitempty" reg:"optional"`
	Domain string `json:"domain,omitempty" reg:"optional"`
}

// Held says whether a vendor holds the store.
func (p Primary) Held() bool { return p.Vendor != "" }

// Writer is a process that writes to a store.
type Writer struct {
	ID   string     `json:"id"`
	Node string     `json:"node"`
	Mode WriterMode `json:"mode"`
	Path *string    `json:"path,omitempty"`
	Via  *string    `json:"via,omitempty"`
	Note *string    `json:"note,omitempty"`
}

// Objectives are what a durable store promises.
type Objectives struct {
	RPOMinutes     float64  `json:"rpoMinutes"`
	SiteRPOMinutes float64  `json:"siteRpoMinutes"`
	RTOMinutes     float64  `json:"rtoMinutes"`
	RetentionDays  *float64 `json:"retentionDays"`
}

// Protection is what a set of copies gives.
type Protection struct {
	RPOMinutes     *float64 `json:"rpoMinutes"`
	SiteRPOMinutes *float64 `json:"siteRpoMinutes"`
	HasOffsite     bool     `json:"hasOffsite"`
	CopyCount      int      `json:"copyCount"`
}

// Design is what all copies would give, planned ones included.
type Design struct {
	RPOMinutes        *float64 `json:"rpoMinutes"`
	SiteRPOMinutes    *float64 `json:"siteRpoMinutes"`
	OffsiteRPOMinutes *float64 `json:"offsiteRpoMinutes"`
	HasOffsite        bool     `json:"hasOffsite"`
	CopyCount         int      `json:"copyCount"`
}

// UplinkExposure says what hangs on the home uplink.
type UplinkExposure struct {
	Writes                    bool `json:"writes"`
	Offsite                   bool `json:"offsite"`
	OffsiteIndependent        bool `json:"offsiteIndependent"`
	OffsiteIndependentPlanned bool `json:"offsiteIndependentPlanned"`
}

// Copy is a copy of a store: fed by Node over Path into Target.
type Copy struct {
	ID              string     `json:"id"`
	Kind            CopyKind   `json:"kind"`
	Target          string     `json:"target"`
	Node            string     `json:"node"`
	Path            string     `json:"path"`
	Domain          string     `json:"domain" reg:"derived"`
	OffDomain       bool       `json:"offDomain" reg:"derived"`
	Mode            CopyMode   `json:"mode"`
	LagSec          *float64   `json:"lagSec"`
	IntervalMinutes *float64   `json:"intervalMinutes"`
	ExposureMinutes float64    `json:"exposureMinutes" reg:"derived"`
	Promotable      bool       `json:"promotable" reg:"derived"`
	Restorable      bool       `json:"restorable" reg:"derived"`
	Serves          Serves     `json:"serves" reg:"optional"`
	Encrypted       bool       `json:"encrypted"`
	Status          CopyStatus `json:"status"`
	VerifiedBy      string     `json:"verifiedBy" reg:"optional"`
}

// Running says whether the copy protects anything today.
func (c *Copy) Running() bool { return c.Status == Running }

// Promotion is the runbook that makes a replica the primary.
type Promotion struct {
	Trigger   Trigger  `json:"trigger"`
	From      string   `json:"from"`
	Minutes   float64  `json:"minutes"`
	Fencing   string   `json:"fencing" reg:"optional"`
	Steps     []string `json:"steps" reg:"optional"`
	Verify    string   `json:"verify" reg:"optional"`
	DataLoss  string   `json:"dataLoss" reg:"optional"`
	Reprotect string   `json:"reprotect" reg:"optional"`
	Drills    []Drill  `json:"drills,omitempty" reg:"optional"`
}

// LocalFirst describes a queue that is written here and drains elsewhere.
type LocalFirst struct {
	DrainsTo        string   `json:"drainsTo"`
	Durable         bool     `json:"durable"`
	MaxQueueMinutes *float64 `json:"maxQueueMinutes"`
	MaxQueueBytes   *int64   `json:"maxQueueBytes"`
	OnFull          string   `json:"onFull" reg:"optional"`
	ConflictRule    string   `json:"conflictRule" reg:"optional"`
	DrainVerifiedOn *Date    `json:"drainVerifiedOn"`
}

// Rebuild says how a rebuildable store is made again.
type Rebuild struct {
	From      string `json:"from"`
	Procedure string `json:"procedure" reg:"optional"`
	Cost      string `json:"cost" reg:"optional"`
}

// Vendor says what a vendor controls and how to leave it.
type Vendor struct {
	Name     string `json:"name"`
	Controls string `json:"controls" reg:"optional"`
	ExitPlan string `json:"exitPlan" reg:"optional"`
}

// Restore is the runbook that brings a store back from a copy, and its drills.
type Restore struct {
	From   string   `json:"from"`
	Steps  []string `json:"steps" reg:"optional"`
	Verify string   `json:"verify" reg:"optional"`
	Drills []Drill  `json:"drills" reg:"optional"`
}

// Drill is one restore, or promotion, that somebody ran.
type Drill struct {
	Date            Date         `json:"date"`
	Outcome         DrillOutcome `json:"outcome"`
	MeasuredMinutes *float64     `json:"measuredMinutes"`
	// MeasuredMs is the exact time behind the minutes, which are rounded up to a
	// tenth: see TenthsUp. Heat names the seat of a heat that measured it.
	MeasuredMs *int64 `json:"measuredMs,omitempty" reg:"optional"`
	Heat       string `json:"heat,omitempty" reg:"optional"`
	RestoredTo string `json:"restoredTo" reg:"optional"`
	Note       string `json:"note" reg:"optional"`
}

// Rehearsal is a heat that followed a procedure of a store, but not on a copy of
// the store's own: it closes nothing.
type Rehearsal struct {
	Date      Date         `json:"date"`
	Procedure Procedure    `json:"procedure"`
	Outcome   DrillOutcome `json:"outcome"`
	// MeasuredMs is null where the seat did not get there.
	MeasuredMinutes *float64 `json:"measuredMinutes"`
	MeasuredMs      *int64   `json:"measuredMs"`
	Heat            string   `json:"heat" reg:"optional"`
	Note            string   `json:"note" reg:"optional"` // why it is no drill
}

// TenthsUp are milliseconds in minutes, rounded up to a tenth: a time that is one
// millisecond over an objective breaks it
// (reference/register-and-failure-model.md, part 3).
func TenthsUp(ms int64) float64 { return float64((ms+5_999)/6_000) / 10 }

// Migration is a schema change and its way back.
type Migration struct {
	ReplicaSafe  bool     `json:"replicaSafe" reg:"optional"`
	DrainedFirst bool     `json:"drainedFirst" reg:"optional"`
	AppliedBy    *string  `json:"appliedBy"`
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Store        string   `json:"store"`
	Style        Style    `json:"style"`
	Reversible   bool     `json:"reversible"`
	BackupGate   *string  `json:"backupGate,omitempty"`
	Steps        []string `json:"steps" reg:"optional"`
	Verify       string   `json:"verify" reg:"optional"`
	Rollback     Rollback `json:"rollback"`
	Note         string   `json:"note" reg:"optional"`
}

// setDefaults holds before a migration is read: what it does not say is the
// ordinary case.
func (m *Migration) setDefaults() { m.ReplicaSafe = true }

func (c *Copy) setDefaults() { c.Serves = ServesNothing }

// Rollback is a migration's way back.
type Rollback struct {
	Method             RollbackMethod `json:"method"`
	From               *string        `json:"from,omitempty"`
	Steps              []string       `json:"steps" reg:"optional"`
	MaxDataLossMinutes float64        `json:"maxDataLossMinutes"`
	TestedOn           *Date          `json:"testedOn"`
}

// Scenario is a break: which nodes are gone, which can see each other.
type Scenario struct {
	ID             string      `json:"id"`
	Name           string      `json:"name"`
	Description    string      `json:"description" reg:"optional"`
	Partitions     []Partition `json:"partitions"`
	LostNodes      []string    `json:"lostNodes" reg:"optional"`
	Surviving      int         `json:"surviving" reg:"derived"`
	SurvivingToday int         `json:"survivingToday" reg:"derived"`
	Lost           int         `json:"lost" reg:"derived"`
	Total          int         `json:"total" reg:"derived"`
}

// Partition is one side of a break.
type Partition struct {
	ID              string   `json:"id"`
	Nodes           []string `json:"nodes"`
	Operator        bool     `json:"operator" reg:"optional"`
	VendorReachable bool     `json:"vendorReachable"`
}

// Cell is what becomes of one store in one scenario, as its operator finds it.
type Cell struct {
	Posture           Posture  `json:"posture"`
	StoreID           string   `json:"storeId"`
	ScenarioID        string   `json:"scenarioId"`
	Outcome           Outcome  `json:"outcome"`
	Minutes           *float64 `json:"minutes"`
	Notes             []string `json:"notes"`
	ConcurrentWriters int      `json:"concurrentWriters"`
	Partitions        []Side   `json:"partitions"`
}

// Side is what becomes of a store on one side of a break.
type Side struct {
	ID       string  `json:"id"`
	Operator bool    `json:"operator"`
	Outcome  Outcome `json:"outcome"`
	Writable bool    `json:"writable"`
}

// Finding is one thing that is wrong, accepted, or worth knowing.
type Finding struct {
	Code        Code      `json:"code"`
	Severity    Severity  `json:"severity"`
	Title       string    `json:"title"`
	StoreID     string    `json:"storeId"`
	ScenarioID  *string   `json:"scenarioId"`
	MigrationID *string   `json:"migrationId"`
	Detail      string    `json:"detail"`
	Acceptance  *Accepted `json:"acceptance"`
}

// Accepted is who lives with a gap, why, and until when.
type Accepted struct {
	Reason     string `json:"reason"`
	AcceptedBy string `json:"acceptedBy"`
	ReviewOn   Date   `json:"reviewOn"`
}

// Estate holds the facts that other registers know: where nodes and targets
// are, what depends on what, what is healthy, which gaps are accepted.
type Estate struct {
	Available *bool           `json:"available,omitempty"`
	Source    *string         `json:"source,omitempty"`
	Now       *Date           `json:"now,omitempty"`
	Nodes     Keyed[Node]     `json:"nodes"`
	Targets   Keyed[Target]   `json:"targets"`
	DependsOn Keyed[[]string] `json:"dependsOn" reg:"optional"`
	Health    Keyed[string]   `json:"health" reg:"optional"`
	// Leases maps a lease to the store that holds it.
	Leases      Keyed[string] `json:"leases" reg:"optional"`
	Acceptances []Acceptance  `json:"acceptances" reg:"optional"`
	// CopyAgeMinutes is the live age of the newest copy, where it is known.
	CopyAgeMinutes Keyed[float64] `json:"copyAgeMinutes,omitempty" reg:"optional"`
}

// Node is a machine of ours. Compute says whether it runs anything of ours
// besides holding copies.
type Node struct {
	Domain  string `json:"domain"`
	Compute bool   `json:"compute"`
}

// Target is where copies are put. Node holds the bytes, where one of ours does.
type Target struct {
	Domain string  `json:"domain"`
	Node   *string `json:"node"`
}

// Acceptance accepts the gaps of one code on one store.
type Acceptance struct {
	Code       Code   `json:"code"`
	StoreID    string `json:"storeId"`
	Reason     string `json:"reason"`
	AcceptedBy string `json:"acceptedBy"`
	ReviewOn   Date   `json:"reviewOn"`
}

// Keyed is a map that keeps its order; it is written as an object.
type Keyed[T any] []Entry[T]

// Entry is one key of a Keyed.
type Entry[T any] struct {
	ID    string
	Value T
}

// Get returns the value of a key.
func (k Keyed[T]) Get(id string) (T, bool) {
	for i := range k {
		if k[i].ID == id {
			return k[i].Value, true
		}
	}
	var none T
	return none, false
}

func (k Keyed[T]) isKeyed() {}

// MarshalJSON writes an object, keys in order.
func (k Keyed[T]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range k {
		if i > 0 {
			b.WriteByte(',')
		}
		id, err := plainjson.Compact(e.ID)
		if err != nil {
			return nil, err
		}
		v, err := plainjson.Compact(e.Value)
		if err != nil {
			return nil, err
		}
		b.Write(id)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Date is a day, written 2006-01-02; empty is none.
type Date string

// Days counts from d to the later day other.
func (d Date) Days(other Date) int {
	a, _ := time.Parse(time.DateOnly, string(d))
	b, _ := time.Parse(time.DateOnly, string(other))
	return int((b.Unix() - a.Unix()) / (24 * 60 * 60)) // a Duration ends at 292 years
}

// ParseDate reads a day that exists.
func ParseDate(s string) (Date, bool) {
	_, err := time.Parse(time.DateOnly, s)
	return Date(s), err == nil
}
