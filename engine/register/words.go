package register

// The closed sets of words. The first of a set is not special; a word outside
// its set is an error with the words that are known.
type (
	// Durability says whether a store's data must survive.
	Durability string
	// Criticality says what a store takes down with it.
	Criticality string
	// WriteModel says who may write a store.
	WriteModel string
	// WriterMode says how a writer reaches its store.
	WriterMode string
	// CopyKind says what can be done with a copy's bytes.
	CopyKind string
	// CopyMode says how a copy is fed.
	CopyMode string
	// Serves says what a copy answers.
	Serves string
	// CopyStatus says whether a copy is there today.
	CopyStatus string
	// Trigger says who starts a promotion.
	Trigger string
	// DrillOutcome says how a drill ended.
	DrillOutcome string
	// Procedure is what a heat follows: of rollouts registers keep no drills.
	Procedure string
	// Style is the shape of a migration.
	Style string
	// RollbackMethod is how a migration is undone.
	RollbackMethod string
	// Profile chooses the rules of findings.
	Profile string
	// Posture is which copies count: all, or those that run.
	Posture string
	// Outcome is what becomes of a store, best first.
	Outcome string
	// Severity sorts findings.
	Severity string
)

// The words of the register.
const (
	Durable     Durability = "durable"
	Rebuildable Durability = "rebuildable"

	FleetFatal      Criticality = "fleet-fatal"
	EstateCritical  Criticality = "estate-critical"
	ServiceCritical Criticality = "service-critical"
	Convenience     Criticality = "convenience"

	SingleWriter    WriteModel = "single-writer"
	LocalFirstQueue WriteModel = "local-first-queue"
	VendorManaged   WriteModel = "vendor-managed"

	Direct  WriterMode = "direct"
	Proxied WriterMode = "proxied"
	Queued  WriterMode = "queued"

	StreamingReplica CopyKind = "streaming-replica"
	WALArchive       CopyKind = "wal-archive"
	Snapshot         CopyKind = "snapshot"
	LogicalDump      CopyKind = "logical-dump"

	Continuous CopyMode = "continuous"
	Periodic   CopyMode = "periodic"

	ServesReads   Serves = "reads"
	ServesNothing Serves = "nothing"

	Running CopyStatus = "running"
	Planned CopyStatus = "planned"

	Manual    Trigger = "manual"
	Automatic Trigger = "automatic"

	Restoring   Procedure = "restore"
	Promoting   Procedure = "promotion"
	Draining    Procedure = "drain"
	RollingBack Procedure = "rollback"
	RollingOut  Procedure = "rollout"

	Pass    DrillOutcome = "pass"
	Partial DrillOutcome = "partial"
	Fail    DrillOutcome = "fail"

	ExpandContract Style = "expand-contract"
	InPlace        Style = "in-place"
	Destructive    Style = "destructive"

	InverseMigration RollbackMethod = "inverse-migration"
	RestoreCopy      RollbackMethod = "restore"
	RollForward      RollbackMethod = "roll-forward"

	// Seed has the rules that the original register has, and no more.
	Seed Profile = "seed"
	// Full adds the rules that policy and fields imply, and the expiry of
	// acceptances.
	Full Profile = "full"

	// TargetPosture counts all copies, CurrentPosture those that run.
	TargetPosture  Posture = "target"
	CurrentPosture Posture = "current"

	Writable        Outcome = "writable"
	ReadOnly        Outcome = "read-only"
	RestoreRequired Outcome = "restore-required"
	Lost            Outcome = "lost"

	Gap        Severity = "gap"
	IsAccepted Severity = "accepted"
	Note       Severity = "note"
)

func (Durability) known() []string { return words(Durable, Rebuildable) }
func (Criticality) known() []string {
	return words(FleetFatal, EstateCritical, ServiceCritical, Convenience)
}
func (WriteModel) known() []string { return words(SingleWriter, LocalFirstQueue, VendorManaged) }
func (WriterMode) known() []string { return words(Direct, Proxied, Queued) }
func (CopyKind) known() []string {
	return words(StreamingReplica, WALArchive, Snapshot, LogicalDump)
}
func (CopyMode) known() []string     { return words(Continuous, Periodic) }
func (Serves) known() []string       { return words(ServesReads, ServesNothing) }
func (CopyStatus) known() []string   { return words(Running, Planned) }
func (Trigger) known() []string      { return words(Manual, Automatic) }
func (DrillOutcome) known() []string { return words(Pass, Partial, Fail) }
func (Procedure) known() []string {
	return words(Restoring, Promoting, Draining, RollingBack, RollingOut)
}
func (Style) known() []string          { return words(ExpandContract, InPlace, Destructive) }
func (RollbackMethod) known() []string { return words(InverseMigration, RestoreCopy, RollForward) }
func (Profile) known() []string        { return words(Seed, Full) }

func words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// rank orders outcomes, best first.
func (o Outcome) rank() int {
	switch o {
	case Writable:
		return 0
	case ReadOnly:
		return 1
	case RestoreRequired:
		return 2
	default:
		return 3
	}
}

// Worse says whether o is worse than p.
func (o Outcome) Worse(p Outcome) bool { return o.rank() > p.rank() }

// Survives says whether a store is still of use: writable or readable.
func (o Outcome) Survives() bool { return o == Writable || o == ReadOnly }
