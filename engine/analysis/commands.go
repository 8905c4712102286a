package analysis

import (
	"path"
	"slices"
	"strings"
)

// handlers judge commands by name. A command in neither table is a program that
// nobody knows; it is noted and decides nothing.
var handlers map[string]func(*call)

// quietPrograms only print, compute or wait, whatever their arguments.
var quietPrograms = set1(`: true false echo printf cat ls dir vdir head tail tac nl wc grep egrep fgrep rg ag zgrep cut tr uniq
	comm join paste column fold fmt rev seq yes sleep wait   pwd stat file readlink realpath basename dirname which whereis type
	hash whoami id groups who w last uptime uname arch hostid nproc free df du lsblk blkid findmnt lscpu lsmod lspci lsusb lshw
	dmidecode vmstat iostat mpstat sar getconf locale getent printenv   export unset alias local declare typeset readonly shift
	return exit break continue getopts let umask ulimit jobs fg bg disown times history less more most bat strings xxd hexdump od
	hd mktemp base64 base32   jq yq xmllint envsubst tree locate man info apropos help expr bc dc factor tput clear   stty tty
	logname mesg cal   let sum cksum b2sum ldd nm objdump readelf size getfacl lsattr namei pstree tsort shuf numfmt
	systemd-detect-virt systemd-path systemd-cgls systemd-cgtop systemd-id128 systemd-escape systemd-delta nix-store nix-instantiate
	nixos-version nixos-option   sync   zcat bzcat xzcat zless awk gawk mawk diffstat sleep usleep mountpoint
	host dig nslookup drill whois traceroute tracepath mtr arp   lslocks lsns lsipc ipcs   pvs vgs lvs`)

func set1(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

func init() {
	handlers = map[string]func(*call){
		"env": env, "su": su, "ssh": ssh, "eval": eval, "source": source, ".": source, "trap": trap, "cd": cd, "pushd": cd, "popd": cd,
		"read": read, "mapfile": read, "readarray": read, "set": set, "[": test, "test": test,
		"python": python, "pypy": python, "perl": otherLanguage, "ruby": otherLanguage, "node": otherLanguage, "deno": otherLanguage,
		"php": otherLanguage, "lua": otherLanguage, "bun": otherLanguage,

		"touch": written("dtr"), "mkdir": operands(DirectoryCreated, "mZ"), "truncate": written("sr"), "fallocate": written("lo"),
		"mkfifo": written("m"), "mknod": firstOnly(FileWritten, "m"), "tee": tee, "sponge": tee,
		"rm": removed(""), "rmdir": removed(""), "unlink": removed(""), "shred": removed("ns"),
		"chmod": attributes, "chown": attributes, "chgrp": attributes, "chattr": attributes, "setfacl": attributes, "chcon": attributes,
		"setcap": attributes, "cp": copied, "mv": copied, "install": installFiles, "ln": copied, "rsync": copied, "scp": copied,
		"sed": sed, "dd": dd, "patch": patch, "apply_patch": applyPatch, "applypatch": applyPatch, "ed": firstOnly(FileWritten, "p"), "ex": firstOnly(FileWritten, "c"),
		"create": editor, "str_replace_editor": editor,
		"tar": tar, "unzip": extract("d"), "cpio": extract("D"), "bsdtar": tar, "gzip": written("S"), "gunzip": written("S"), "bzip2": written(""),
		"xz": written("T"), "zstd": written("T"), "zip": firstOnly(FileWritten, "P"), "sort": outputOption("o", "output"), "split": ignore,
		"find": find, "git": git, "mkfs": lastOnly(FileWritten), "mkswap": lastOnly(FileWritten), "wipefs": lastOnly(FileWritten),
		"openssl": outputOption("o", "out"), "ssh-keygen": keygen, "gcc": outputOption("o", "output"), "cc": outputOption("o", "output"),
		"make": build, "cmake": build, "ninja": build, "go": build, "cargo": build, "mvn": build, "gradle": build,

		"systemctl": systemctl, "service": service, "journalctl": journalctl, "systemd-run": systemdRun, "systemd-analyze": systemdAnalyze,
		"systemd-tmpfiles": always(SystemConfigured, "--create", "--remove", "--clean"), "systemd-sysusers": always(AccountChanged),
		"loginctl": verbs(map[string]Sort{"terminate-session": ProcessKilled, "kill-session": ProcessKilled, "terminate-user": ProcessKilled,
			"enable-linger": SystemConfigured, "disable-linger": SystemConfigured, "reboot": Reboot, "poweroff": Shutdown}),
		"reboot": halt(Reboot), "poweroff": halt(Shutdown), "halt": halt(Shutdown), "shutdown": halt(Shutdown), "telinit": initLevel, "init": initLevel,
		"kexec": always(Reboot, "-e", "--exec"), "kill": kill, "pkill": kill, "killall": kill, "skill": kill, "fuser": fuser,
		"renice": always(ProcessKilled, "-never"), "start-stop-daemon": startStop,
		"supervisorctl": verbs(map[string]Sort{"start": UnitStarted, "stop": UnitStopped, "restart": UnitRestarted, "reload": UnitReloaded,
			"update": UnitReloaded, "status": UnitQueried}),
		"sv": verbs(map[string]Sort{"start": UnitStarted, "up": UnitStarted, "stop": UnitStopped, "down": UnitStopped, "restart": UnitRestarted,
			"reload": UnitReloaded, "status": UnitQueried}),
		"rc-service": reversed, "docker": containers, "podman": containers, "nerdctl": containers, "kubectl": kubectl,

		"curl": curl, "wget": wget, "http": httpie, "https": httpie, "nc": portProbe, "ncat": portProbe, "netcat": portProbe, "telnet": portProbe, "socat": portProbe,
		"ping": always(PortProbed), "nmap": always(PortProbed), "ss": always(SocketsListed), "netstat": always(SocketsListed), "lsof": always(SocketsListed),
		"ps": always(ProcessListed), "pgrep": always(ProcessListed), "pidof": always(ProcessListed), "top": always(ProcessListed), "htop": always(ProcessListed),
		"dmesg": logs, "pytest": always(TestRun), "tox": always(TestRun), "bats": always(TestRun), "ab": always(HTTPRequest), "wrk": always(HTTPRequest), "hey": always(HTTPRequest),
		"shellcheck": always(SyntaxChecked), "visudo": always(SyntaxChecked, "-c"), "sshd": always(SyntaxChecked, "-t", "-T"),
		"cmp": always(Asserted), "diff": diff, "sha256sum": sums, "sha1sum": sums, "md5sum": sums, "sha512sum": sums,

		"sqlite3": sqlite, "psql": psql, "mysql": psql, "mariadb": psql, "redis-cli": redis, "valkey-cli": redis,
		"pg_ctl": verbs(map[string]Sort{"start": UnitStarted, "stop": UnitStopped, "restart": UnitRestarted, "reload": UnitReloaded,
			"promote": ServiceCommand, "status": UnitQueried, "init": FileWritten}),
		"pg_ctlcluster": pgCluster, "createdb": always(DataChanged), "dropdb": always(DataChanged), "createuser": always(DataChanged), "pg_restore": always(DataChanged),
		"pg_basebackup": outputOption("D", "pgdata"), "initdb": outputOption("D", "pgdata"), "pg_rewind": outputOption("", "target-pgdata"),
		"pg_dump": outputOption("f", "file"), "mongosh": always(ProgramRun), "etcdctl": verbs(map[string]Sort{"put": DataChanged, "del": DataChanged, "get": DataRead}),
		"nginx": nginx, "haproxy": nginx, "caddy": nginx, "apachectl": nginx, "apache2ctl": nginx, "rndc": nginx, "varnishadm": nginx,

		"sysctl": sysctl, "ip": ip, "ifconfig": ifconfig, "route": ifconfig, "brctl": always(NetworkChanged), "tc": ip, "ethtool": always(NetworkChanged, "-s", "-K", "-G"),
		"nmcli":    verbs2(map[string]Sort{"up": NetworkChanged, "down": NetworkChanged, "add": NetworkChanged, "modify": NetworkChanged, "delete": NetworkChanged}),
		"iptables": firewall, "ip6tables": firewall, "nft": firewall, "ufw": firewall, "firewall-cmd": firewall, "ipset": firewall, "ebtables": firewall,
		"iptables-restore": always(FirewallChanged), "ip6tables-restore": always(FirewallChanged),
		"mount": mount, "umount": always(MountChanged), "swapon": always(MountChanged), "swapoff": always(MountChanged), "losetup": mount,
		"modprobe": always(KernelSetting), "insmod": always(KernelSetting), "rmmod": always(KernelSetting), "setenforce": always(KernelSetting),
		"date": always(KernelSetting, "-s", "--set"), "hwclock": always(KernelSetting, "-w", "-s"),
		"hostname": hostname, "hostnamectl": verbs(map[string]Sort{"set-hostname": SystemConfigured, "hostname": SystemConfigured}),
		"timedatectl": verbs(map[string]Sort{"set-time": SystemConfigured, "set-timezone": SystemConfigured, "set-ntp": SystemConfigured}),
		"crontab":     crontab, "at": always(SystemConfigured), "batch": always(SystemConfigured), "update-rc.d": always(UnitEnabled), "chkconfig": chkconfig,
		"useradd": always(AccountChanged), "userdel": always(AccountChanged), "usermod": always(AccountChanged), "adduser": always(AccountChanged),
		"deluser": always(AccountChanged), "groupadd": always(AccountChanged), "groupdel": always(AccountChanged), "groupmod": always(AccountChanged),
		"passwd": always(AccountChanged), "chpasswd": always(AccountChanged), "gpasswd": always(AccountChanged), "chage": always(AccountChanged),
		"nixos-rebuild": verbs(map[string]Sort{"switch": SystemConfigured, "boot": SystemConfigured, "test": SystemConfigured}),
		"nix":           nix, "nix-env": always(PackageInstalled, "-i", "-iA", "-e", "-u", "--install"), "update-alternatives": always(SystemConfigured, "--set", "--install", "--remove"),
		"ldconfig": ignore, "update-ca-certificates": always(SystemConfigured), "grub-install": always(SystemConfigured), "update-grub": always(SystemConfigured),
	}
	for name := range wrappers {
		handlers[name] = wrap
	}
	for _, name := range []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "rbash"} {
		handlers[name] = shellProgram
	}
	for name := range packageVerbs {
		handlers[name] = packages
	}
	for _, fs := range []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "vfat"} {
		handlers["mkfs."+fs] = lastOnly(FileWritten)
	}
}

func ignore(*call) {}

// always notes one effect, or only when one of the options is there.
func always(sort Sort, when ...string) func(*call) {
	return func(c *call) {
		if len(when) == 0 {
			c.add(sort, "")
			return
		}
		for _, a := range c.args {
			for _, w := range when {
				if a.text == w || strings.HasPrefix(w, "--") && strings.HasPrefix(a.text, w+"=") {
					c.add(sort, "")
					return
				}
			}
		}
	}
}

// verbs notes what the first operand asks for, per further operand.
func verbs(table map[string]Sort) func(*call) {
	return func(c *call) {
		ops, _ := getopt(c.args, "cDn")
		if len(ops) == 0 {
			return
		}
		c.sub = clip(ops[0].text, 30)
		sort, ok := table[ops[0].text]
		if !ok {
			return
		}
		if len(ops) == 1 {
			c.add(sort, "")
		}
		for _, a := range ops[1:] {
			c.add(sort, a.text)
		}
	}
}

// verbs2 does so with the first word that is a verb.
func verbs2(table map[string]Sort) func(*call) {
	return func(c *call) {
		for _, a := range c.args {
			if sort, ok := table[a.text]; ok {
				c.sub = a.text
				c.add(sort, "")
				return
			}
		}
	}
}

func operands(sort Sort, valued string) func(*call) {
	return func(c *call) {
		ops, _ := getopt(c.args, valued, "mode", "date", "reference", "size")
		for _, a := range ops {
			c.file(sort, a)
		}
	}
}

// written is for programs that write each operand; gzip -c and the like print.
func written(valued string) func(*call) {
	return func(c *call) {
		ops, opts := getopt(c.args, valued, "date", "reference", "size", "suffix")
		switch c.name {
		case "gzip", "gunzip", "bzip2", "xz", "zstd":
			for _, quiet := range []string{"c", "stdout", "l", "t", "list", "test"} {
				if _, ok := opts[quiet]; ok {
					return
				}
			}
		}
		for _, a := range ops {
			c.file(FileWritten, a)
		}
	}
}

func removed(valued string) func(*call) {
	return func(c *call) {
		ops, opts := getopt(c.args, valued)
		if _, keep := opts["u"]; c.name == "shred" && !keep {
			for _, a := range ops {
				c.file(FileWritten, a)
			}
			return
		}
		for _, a := range ops {
			c.file(FileRemoved, a)
		}
	}
}

func firstOnly(sort Sort, valued string) func(*call) {
	return func(c *call) {
		if ops, _ := getopt(c.args, valued); len(ops) > 0 {
			c.file(sort, ops[0])
		}
	}
}

func lastOnly(sort Sort) func(*call) {
	return func(c *call) {
		if ops, _ := getopt(c.args, "tLUmF"); len(ops) > 0 {
			c.file(sort, ops[len(ops)-1])
		}
	}
}

// outputOption is for programs that write only where an option says.
func outputOption(short, long string) func(*call) {
	return func(c *call) {
		for i, a := range c.args { // openssl writes long options with one dash
			if a.text == "-"+long && i+1 < len(c.args) {
				c.file(FileWritten, c.args[i+1])
				return
			}
		}
		_, opts := getopt(c.args, short, long)
		for _, k := range []string{short, long} {
			if a, ok := opts[k]; ok && k != "" {
				c.file(FileWritten, a)
				return
			}
		}
	}
}

func attributes(c *call) {
	ops, opts := getopt(c.args, "m", "reference", "modify")
	if _, ref := opts["reference"]; !ref && len(ops) > 0 && c.name != "setfacl" {
		ops = ops[1:] // the mode or owner
	}
	for _, a := range ops {
		c.file(AttributesChanged, a)
	}
}

func tee(c *call) {
	ops, opts := getopt(c.args, "")
	_, more := opts["a"]
	for _, a := range ops {
		c.file(FileWritten, a)
		if c.stdin != nil {
			c.wrote(c.resolve(a.text), c.stdin.text, more)
		}
	}
}

// folders that commands name as targets without a slash behind them.
var folders = set1(`/ /bin /boot /etc /etc/cron.d /etc/default /etc/nginx/conf.d /etc/systemd/system /etc/systemd/user /home /lib/systemd/system /opt
	/root /run/systemd/system /sbin /srv /tmp /usr/bin /usr/lib/systemd/system /usr/local/bin /usr/local/lib /usr/local/sbin /usr/sbin
	/usr/lib /var /var/backups /var/lib /var/log /var/tmp . ..`)

// copied judges cp, mv, ln and rsync: the last operand is written, mv takes the
// others away.
func copied(c *call) {
	ops, opts := getopt(c.args, "tSegMPiFlJo", "target-directory", "suffix", "rsh", "exclude", "include", "chmod", "chown")
	if _, dry := opts["n"]; dry && c.name == "rsync" {
		return
	}
	into, dir := opts["t"]
	if a, ok := opts["target-directory"]; ok {
		into, dir = a, true
	}
	if !dir {
		if len(ops) == 1 && c.name == "ln" {
			c.add(FileWritten, c.resolve(path.Base(ops[0].text)))
			return
		}
		if len(ops) < 2 {
			return
		}
		into, ops = ops[len(ops)-1], ops[:len(ops)-1]
		dir = len(ops) > 1 || strings.HasSuffix(into.text, "/") || folders[into.text]
		if _, file := opts["T"]; file {
			dir = false
		}
	}
	if remote, _, ok := strings.Cut(into.text, ":"); ok && (c.name == "rsync" || c.name == "scp") && !strings.Contains(remote, "/") {
		return // to another machine
	}
	for _, a := range ops {
		from, to := c.resolve(a.text), c.resolve(into.text)
		if dir {
			to = join(to, path.Base(a.text))
		}
		c.add(FileWritten, to)
		if c.name == "mv" {
			c.add(FileRemoved, from)
		}
		if c.name != "ln" {
			c.moved(from, to)
		}
	}
}

func installFiles(c *call) {
	ops, opts := getopt(c.args, "mogtS", "mode", "owner", "group", "target-directory")
	if _, dirs := opts["d"]; dirs {
		for _, a := range ops {
			c.file(DirectoryCreated, a)
		}
		return
	}
	if _, dirs := opts["directory"]; dirs {
		for _, a := range ops {
			c.file(DirectoryCreated, a)
		}
		return
	}
	// `install /dev/stdin FILE` writes what it is given.
	if len(ops) == 2 && (ops[0].text == "/dev/stdin" || ops[0].text == "-") && c.stdin != nil {
		c.wrote(c.resolve(ops[1].text), c.stdin.text, false)
	}
	rest := slices.Clone(ops)
	if t, ok := opts["t"]; ok {
		rest = append(rest, arg{code{text: t.text + "/"}, t.from, t.to})
	}
	c.args = rest
	copied(c)
}
