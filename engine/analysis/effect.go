package analysis

// Sort names what an effect did.
type Sort string

// Effects that change files or data.
const (
	FileWritten       Sort = "file_written"
	FileRemoved       Sort = "file_removed"
	DirectoryCreated  Sort = "directory_created"
	AttributesChanged Sort = "attributes_changed"
	DataChanged       Sort = "data_changed"
	PackageInstalled  Sort = "package_installed"
	PackageRemoved    Sort = "package_removed"
	AccountChanged    Sort = "account_changed"
	SystemConfigured  Sort = "system_configured" // host name, time zone, whole-system switches, schedules
)

// Effects that change only what runs.
const (
	UnitStarted     Sort = "unit_started"
	UnitStopped     Sort = "unit_stopped"
	UnitRestarted   Sort = "unit_restarted"
	UnitReloaded    Sort = "unit_reloaded"
	UnitEnabled     Sort = "unit_enabled"
	UnitDisabled    Sort = "unit_disabled"
	UnitMasked      Sort = "unit_masked"
	UnitUnmasked    Sort = "unit_unmasked"
	UnitReset       Sort = "unit_reset"
	ManagerReloaded Sort = "manager_reloaded"
	Reboot          Sort = "reboot"
	Shutdown        Sort = "shutdown"
	ProcessStarted  Sort = "process_started"
	ProcessKilled   Sort = "process_killed"
	KernelSetting   Sort = "kernel_setting"
	FirewallChanged Sort = "firewall_changed"
	NetworkChanged  Sort = "network_changed"
	MountChanged    Sort = "mount_changed"
	ServiceCommand  Sort = "service_command" // a running service was told to do something
)

// Effects that only look; they make a check of the agent's own work.
const (
	HTTPRequest   Sort = "http_request"
	HTTPWrite     Sort = "http_write" // a request that may change data behind a service: a smoke test
	PortProbed    Sort = "port_probed"
	UnitQueried   Sort = "unit_queried"
	LogRead       Sort = "log_read"
	ProcessListed Sort = "process_listed"
	SocketsListed Sort = "sockets_listed"
	DataRead      Sort = "data_read"
	Asserted      Sort = "asserted"
	SyntaxChecked Sort = "syntax_checked"
	TestRun       Sort = "test_run"
)

// Effects that are seen and decide nothing.
const (
	DataDescribed Sort = "data_described" // schema, settings
	ProgramRun    Sort = "program_run"    // a program that no table knows, or an interpreter
)

var kindOf = map[Sort]Kind{
	FileWritten: Mutation, FileRemoved: Mutation, DirectoryCreated: Mutation, AttributesChanged: Mutation,
	DataChanged: Mutation, PackageInstalled: Mutation, PackageRemoved: Mutation, AccountChanged: Mutation,
	SystemConfigured: Mutation,

	UnitStarted: Lifecycle, UnitStopped: Lifecycle, UnitRestarted: Lifecycle, UnitReloaded: Lifecycle,
	UnitEnabled: Lifecycle, UnitDisabled: Lifecycle, UnitMasked: Lifecycle, UnitUnmasked: Lifecycle,
	UnitReset: Lifecycle, ManagerReloaded: Lifecycle, Reboot: Lifecycle, Shutdown: Lifecycle,
	ProcessStarted: Lifecycle, ProcessKilled: Lifecycle, KernelSetting: Lifecycle, FirewallChanged: Lifecycle,
	NetworkChanged: Lifecycle, MountChanged: Lifecycle, ServiceCommand: Lifecycle,

	HTTPRequest: Validation, HTTPWrite: Validation, PortProbed: Validation, UnitQueried: Validation,
	LogRead: Validation, ProcessListed: Validation, SocketsListed: Validation, DataRead: Validation,
	Asserted: Validation, SyntaxChecked: Validation, TestRun: Validation,
}

// Kind is the kind of action that such an effect makes, by itself and after a
// change: Discovery when it decides nothing.
func (s Sort) Kind() Kind {
	if k, ok := kindOf[s]; ok {
		return k
	}
	return Discovery
}

// Changes tells whether the effect changed something that outlives the action.
func (e Effect) Changes() bool {
	k := e.Sort.Kind()
	return (k == Mutation || k == Lifecycle) && !e.Scratch && !e.Undone
}
