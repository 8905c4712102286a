package analysis

import (
	"strings"
)

// unitVerbs are what systemctl's verbs do to units; absent verbs only show
// (cat, get-default) or are handled below.
var unitVerbs = map[string]Sort{
	"start": UnitStarted, "stop": UnitStopped, "restart": UnitRestarted, "try-restart": UnitRestarted, "condrestart": UnitRestarted,
	"reload": UnitReloaded, "reload-or-restart": UnitRestarted, "try-reload-or-restart": UnitRestarted, "force-reload": UnitReloaded,
	"isolate": UnitStarted, "kill": ProcessKilled, "freeze": UnitStopped, "thaw": UnitStarted, "reset-failed": UnitReset,
	"enable": UnitEnabled, "reenable": UnitEnabled, "preset": UnitEnabled, "preset-all": UnitEnabled, "link": UnitEnabled,
	"add-wants": UnitEnabled, "add-requires": UnitEnabled, "disable": UnitDisabled, "mask": UnitMasked, "unmask": UnitUnmasked,
	"status": UnitQueried, "is-active": UnitQueried, "is-enabled": UnitQueried, "is-failed": UnitQueried, "show": UnitQueried,
	"list-units": UnitQueried, "list-unit-files": UnitQueried, "list-timers": UnitQueried, "list-sockets": UnitQueried,
	"list-jobs": UnitQueried, "list-dependencies": UnitQueried, "is-system-running": UnitQueried,
	"set-property": SystemConfigured, "set-default": SystemConfigured, "edit": SystemConfigured, "revert": SystemConfigured, "clean": DataChanged,
}

var hostVerbs = map[string]Sort{
	"daemon-reload": ManagerReloaded, "daemon-reexec": ManagerReloaded, "reboot": Reboot, "kexec": Reboot, "soft-reboot": Reboot,
	"poweroff": Shutdown, "halt": Shutdown, "suspend": Shutdown, "hibernate": Shutdown, "exit": Shutdown, "emergency": Shutdown,
	"rescue": Shutdown, "default": UnitStarted, "set-environment": ManagerReloaded, "unset-environment": ManagerReloaded,
	"import-environment": ManagerReloaded, "cancel": UnitStopped,
}

func systemctl(c *call) {
	ops, opts := getopt(c.args, "tpnoHMsP", "type", "property", "state", "lines", "output", "host", "machine", "signal", "root",
		"job-mode", "kill-whom", "what", "message", "drop-in")
	if len(ops) == 0 {
		c.sub = "list-units"
		c.add(UnitQueried, "")
		return
	}
	verb := ops[0].text
	c.sub = clip(verb, 30)
	if sort, ok := hostVerbs[verb]; ok {
		c.add(sort, "")
		return
	}
	sort, ok := unitVerbs[verb]
	if !ok {
		if strings.Contains(verb, unknown) { // which verb, only running it would tell
			c.add(ServiceCommand, "")
		}
		return
	}
	_, now := opts["now"]
	units := ops[1:]
	if len(units) == 0 {
		c.add(sort, "")
	}
	if (verb == "add-wants" || verb == "add-requires" || verb == "set-property") && len(units) > 0 {
		units = units[:1]
	}
	for _, u := range units {
		for _, name := range strings.Fields(u.text) {
			name = unitName(name)
			c.add(sort, name)
			if now {
				switch sort {
				case UnitEnabled:
					c.add(UnitStarted, name)
				case UnitDisabled, UnitMasked:
					c.add(UnitStopped, name)
				}
			}
		}
	}
}

// unitName is a unit's full name: a bare name is a service.
func unitName(name string) string {
	if strings.HasPrefix(name, "/") {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && unitSuffixes[name[i+1:]] {
		return name
	}
	return name + ".service"
}

var unitSuffixes = set1("service socket timer target mount automount path slice scope swap device")

func service(c *call) {
	if len(c.args) >= 2 {
		c.initScript(c.args[0].text, c.args[1].text)
	} else {
		c.add(UnitQueried, "")
	}
}

func reversed(c *call) { service(c) }

func (c *call) initScript(name, verb string) {
	c.sub = clip(verb, 30)
	if sort, ok := unitVerbs[verb]; ok {
		c.add(sort, unitName(name))
	}
}

func chkconfig(c *call) {
	if len(c.args) == 2 {
		if c.args[1].text == "on" {
			c.add(UnitEnabled, unitName(c.args[0].text))
		} else {
			c.add(UnitDisabled, unitName(c.args[0].text))
		}
	}
}

func systemdRun(c *call) {
	_, opts := getopt(c.args, "upEtH", "unit", "property", "on-active", "on-calendar", "description")
	unit := ""
	if a, ok := opts["u"]; ok {
		unit = unitName(a.text)
	} else if a, ok := opts["unit"]; ok {
		unit = unitName(a.text)
	}
	c.add(UnitStarted, unit)
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		if t == "--unit" || t == "-u" || t == "-p" || t == "--property" || t == "-E" || t == "--on-active" || t == "--on-calendar" || t == "--description" {
			i++
			continue
		}
		if !strings.HasPrefix(t, "-") {
			c.shell.command(c.args[i:], false)
			return
		}
	}
}

func systemdAnalyze(c *call) {
	if len(c.args) > 0 && c.args[0].text == "verify" {
		c.add(SyntaxChecked, "")
	}
}

func journalctl(c *call) {
	for _, a := range c.args {
		switch {
		case strings.HasPrefix(a.text, "--vacuum"):
			c.add(FileRemoved, "/var/log/journal/"+unknown)
			return
		case a.text == "--rotate" || a.text == "--flush" || a.text == "--sync":
			return
		}
	}
	c.add(LogRead, "")
}

func logs(c *call) {
	for _, a := range c.args {
		if a.text == "-C" || a.text == "--clear" || a.text == "-c" {
			c.add(KernelSetting, "")
			return
		}
	}
	c.add(LogRead, "")
}

func halt(sort Sort) func(*call) {
	return func(c *call) {
		s := sort
		for _, a := range c.args {
			switch a.text {
			case "-r", "--reboot":
				s = Reboot
			case "-w", "--wtmp-only", "-k":
				return
			}
		}
		c.add(s, "")
	}
}

func initLevel(c *call) {
	if len(c.args) == 1 {
		switch c.args[0].text {
		case "6":
			c.add(Reboot, "")
		case "0", "1", "s", "S":
			c.add(Shutdown, "")
		case "q", "Q":
			c.add(ManagerReloaded, "")
		default:
			c.add(UnitStarted, "")
		}
	}
}

func kill(c *call) {
	target := ""
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		switch {
		case t == "-0" || t == "-l" || t == "-L" || t == "--list":
			c.add(ProcessListed, "")
			return
		case t == "-s" || t == "-n" || c.name != "kill" && (t == "-u" || t == "-t" || t == "-P" || t == "-g"):
			i++
		case strings.HasPrefix(t, "-") && len(t) > 1 && t[1] > '9':
		default:
			target = strings.TrimSpace(target + " " + t)
		}
	}
	c.add(ProcessKilled, target)
}

func fuser(c *call) {
	for _, a := range c.args {
		if t := a.text; strings.HasPrefix(t, "-") && strings.Contains(t, "k") || t == "--kill" {
			c.add(ProcessKilled, "")
			return
		}
	}
	c.add(SocketsListed, "")
}

func startStop(c *call) {
	for _, a := range c.args {
		switch a.text {
		case "--start", "-S":
			c.add(ProcessStarted, "")
			return
		case "--stop", "-K":
			c.add(ProcessKilled, "")
			return
		}
	}
}

func sysctl(c *call) {
	for _, a := range c.args {
		t := a.text
		if t == "-w" || t == "-p" || t == "--system" || t == "--load" || strings.HasPrefix(t, "-p") || !strings.HasPrefix(t, "-") && strings.Contains(t, "=") {
			key, _, _ := strings.Cut(t, "=")
			if strings.HasPrefix(key, "-") {
				key = ""
			}
			c.add(KernelSetting, key)
			return
		}
	}
}

// ip judges ip and tc: object, then verb.
func ip(c *call) {
	for _, a := range c.args {
		switch a.text {
		case "add", "del", "delete", "change", "replace", "append", "set", "flush", "exec":
			c.sub = a.text
			c.add(NetworkChanged, "")
			return
		}
	}
}

func ifconfig(c *call) {
	ops, _ := getopt(c.args, "")
	if c.name == "ifconfig" && len(ops) > 1 || c.name == "route" && len(ops) > 0 {
		c.add(NetworkChanged, "")
	}
}

// firewall commands that list are told from those that change.
func firewall(c *call) {
	for _, a := range c.args {
		switch a.text {
		case "list", "-L", "-S", "--list-rules", "--list", "status", "--list-all", "--state", "-C", "--check", "export", "--get-active-zones":
			return
		}
	}
	if len(c.args) > 0 || c.stdin != nil {
		c.add(FirewallChanged, "")
	}
}

func mount(c *call) {
	ops, opts := getopt(c.args, "otTLUj", "options", "types")
	_, all := opts["a"]
	_, o := opts["o"]
	if len(ops) == 0 && !all && !o {
		return
	}
	if c.name == "losetup" && len(ops) == 0 {
		return
	}
	target := ""
	if len(ops) > 0 {
		target = ops[len(ops)-1].text
	}
	c.add(MountChanged, target)
}

func hostname(c *call) {
	if ops, _ := getopt(c.args, "F"); len(ops) > 0 {
		c.add(SystemConfigured, "")
	}
}

func crontab(c *call) {
	for _, a := range c.args {
		if a.text == "-l" {
			return
		}
	}
	if len(c.args) > 0 || c.stdin != nil {
		c.add(SystemConfigured, "crontab")
	}
}

func nix(c *call) {
	for i, a := range c.args {
		switch a.text {
		case "run", "shell", "develop":
			for j := i + 1; j < len(c.args); j++ {
				if t := c.args[j].text; t == "-c" || t == "--command" || t == "--" {
					c.shell.command(c.args[j+1:], c.background)
					return
				}
			}
			return
		case "profile":
			if i+1 < len(c.args) && (c.args[i+1].text == "install" || c.args[i+1].text == "add" || c.args[i+1].text == "remove") {
				c.add(PackageInstalled, "")
			}
			return
		}
	}
}

// containerVerbs are docker's and podman's.
var containerVerbs = map[string]Sort{
	"run": ProcessStarted, "start": UnitStarted, "stop": UnitStopped, "restart": UnitRestarted, "kill": ProcessKilled, "rm": FileRemoved,
	"create": FileWritten, "build": FileWritten, "pull": PackageInstalled, "load": PackageInstalled, "rmi": PackageRemoved, "up": UnitStarted,
	"down": UnitStopped, "pause": UnitStopped, "unpause": UnitStarted, "ps": ProcessListed, "logs": LogRead, "inspect": UnitQueried, "cp": FileWritten,
}

func containers(c *call) {
	ops, _ := getopt(c.args, "fHp", "file", "host", "project-name")
	if len(ops) > 0 && (ops[0].text == "compose" || ops[0].text == "container") {
		ops = ops[1:]
	}
	if len(ops) == 0 {
		return
	}
	c.sub = clip(ops[0].text, 20)
	if ops[0].text == "exec" {
		rest := ops[1:]
		if len(rest) > 1 {
			c.shell.command(rest[1:], false)
		}
		return
	}
	if sort, ok := containerVerbs[ops[0].text]; ok {
		c.add(sort, unknown)
	}
}

func kubectl(c *call) {
	verbs2(map[string]Sort{"apply": SystemConfigured, "create": SystemConfigured, "delete": SystemConfigured, "patch": SystemConfigured,
		"edit": SystemConfigured, "scale": SystemConfigured, "rollout": UnitRestarted, "get": UnitQueried, "describe": UnitQueried, "logs": LogRead})(c)
}

// nginx stands for servers that check their configuration or signal themselves.
func nginx(c *call) {
	for i, a := range c.args {
		switch a.text {
		case "-t", "-T", "configtest", "validate":
			c.add(SyntaxChecked, "")
			return
		case "-s", "-k":
			if i+1 < len(c.args) {
				c.sub = clip(c.args[i+1].text, 20)
			}
			c.add(ServiceCommand, c.name)
			return
		case "reload", "stop", "start", "restart", "graceful":
			c.sub = a.text
			c.add(ServiceCommand, c.name)
			return
		case "-c":
			if c.name == "haproxy" {
				c.add(SyntaxChecked, "")
				return
			}
		case "-V", "-v":
			return
		}
	}
	c.add(ProcessStarted, c.name)
}
