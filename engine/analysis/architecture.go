package analysis

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Architecture is what the agent's effects show of what it left behind.
type Architecture struct {
	Technologies    []string `json:"technologies"`     // that some effect involved, sorted
	ServiceUnits    []string `json:"service_units"`    // that were acted on or written, sorted
	PersistentPaths []string `json:"persistent_paths"` // written and still there at the end, sorted
}

// maxPaths bounds the lists: a summary is read by people.
const maxPaths = 100

// technology is told by the program that ran, the file that was written, the
// package that was installed or the unit that was acted on.
type technology struct {
	name     string
	programs string // words that By may begin with
	files    string // suffixes of paths
	names    string // units and packages that begin so
	imports  string // libraries of programs that were written
}

var technologies = []technology{
	{"Python", "python python3 pip pipx uv poetry pytest", ".py", "python3 python", ""},
	{"SQLite", "sqlite3", ".sqlite .sqlite3", "sqlite3 sqlite libsqlite3", "sqlite3"},
	{"PostgreSQL", "psql pg_ctl pg_ctlcluster createdb dropdb pg_restore pg_basebackup initdb pg_dump", "postgresql.conf pg_hba.conf", "postgresql postgres", "psycopg psycopg2 asyncpg"},
	{"MySQL", "mysql mariadb", "my.cnf", "mysql mariadb", "pymysql MySQLdb"},
	{"Redis", "redis-cli valkey-cli redis-server", "redis.conf", "redis valkey", "redis"},
	{"Nginx", "nginx", "nginx.conf", "nginx", ""},
	{"HAProxy", "haproxy", "haproxy.cfg", "haproxy", ""},
	{"Caddy", "caddy", "Caddyfile", "caddy", ""},
	{"Node.js", "node npm pnpm yarn bun deno", ".js .mjs .cjs .ts package.json", "nodejs npm", ""},
	{"Ruby", "ruby gem bundle", ".rb Gemfile", "ruby", ""},
	{"Rust", "cargo rustc", ".rs Cargo.toml", "rustc cargo", ""},
	{"Go", "go", ".go go.mod", "golang", ""},
	{"Java", "java mvn gradle", ".java .jar", "openjdk default-jdk", ""},
	{"PHP", "php composer", ".php", "php", ""},
	{"Perl", "perl", ".pl .pm", "perl", ""},
	{"Docker", "docker podman nerdctl", "Dockerfile docker-compose.yml compose.yaml", "docker podman containerd", ""},
	{"Kubernetes", "kubectl", "", "kubelet k3s", ""},
	{"etcd", "etcdctl", "", "etcd", "etcd3"},
	{"Gunicorn", "gunicorn", "gunicorn.conf.py", "gunicorn", "gunicorn"},
	{"Flask", "", "", "flask", "flask"},
	{"nftables", "nft", "nftables.conf", "nftables", ""},
	{"iptables", "iptables ip6tables iptables-restore", "", "iptables", ""},
	{"NixOS", "nixos-rebuild nix-env", ".nix", "", ""},
}

// Names that systemd would accept, without templates' and variables' rests.
var (
	unitFile   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:_.\\@-]*\.(service|socket|timer|path|mount)$`)
	unitFolder = regexp.MustCompile(`^/(etc|run|usr/lib|lib|usr/local/lib)/systemd/(system|user)/([^/]+)`)
	plainPath  = regexp.MustCompile(`^(/[^/\x00-\x1f*?\[\]{}$"'` + "`" + `\\]+)+$`)
)

// volatileRoots lose what is in them at the next start, or hold no files.
var volatileRoots = []string{"/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/", "/run/", "/var/run/", "/nix/store/"}

// architecture sums up the steps in the order in which they happened.
func architecture(steps []Step, order []int) Architecture {
	techs, units, paths := names{}, names{}, names{}
	for _, i := range order {
		s := &steps[i]
		_, fileTool := s.fileTool()
		if fileTool && !s.Success {
			continue
		}
		for _, e := range s.Effects {
			if e.Scratch && e.Sort != DataRead {
				continue
			}
			involve(techs, e)
			// At the very end of a cut text a name may be cut, too.
			if s.Degraded && e.Via == "" && e.Span.End >= len(strings.TrimSuffix(s.Text(), "…")) && !fileTool {
				continue
			}
			units.unit(e)
			paths.path(e, s.Success)
		}
		if fileTool {
			imports(techs, s.Action)
		}
	}
	return Architecture{Technologies: sorted(techs), ServiceUnits: sorted(units), PersistentPaths: sorted(paths)}
}

type names map[string]bool

func sorted(m names) []string {
	out := slices.Sorted(maps.Keys(m))
	if out == nil {
		out = []string{}
	}
	return out[:min(len(out), maxPaths)]
}

func (u names) unit(e Effect) {
	name := ""
	switch e.Sort {
	case UnitStarted, UnitStopped, UnitRestarted, UnitReloaded, UnitEnabled, UnitDisabled, UnitMasked, UnitUnmasked, UnitReset:
		if strings.HasPrefix(e.By, "docker") || strings.HasPrefix(e.By, "podman") {
			return
		}
		name = e.target
	case FileWritten:
		if m := unitFolder.FindStringSubmatch(e.target); m != nil && !e.Undone {
			name = strings.TrimSuffix(m[3], ".d")
		}
	}
	if unitFile.MatchString(name) {
		u[name] = true
	}
}

func (p names) path(e Effect, success bool) {
	switch e.Sort {
	case FileWritten, DirectoryCreated, DataChanged:
		if e.Undone || !lasting(e.target) {
			return
		}
		p[e.target] = true
	case FileRemoved:
		if !success {
			return // it may still be there
		}
		for known := range p {
			if inside(known, e.target) {
				delete(p, known)
			}
		}
	}
}

// lasting tells whether a target is one path, complete, in a place that lasts.
func lasting(target string) bool {
	if len(target) > 255 || !plainPath.MatchString(target) || strings.Contains(target, "…") {
		return false
	}
	for _, root := range volatileRoots {
		if strings.HasPrefix(target+"/", root) {
			return false
		}
	}
	return true
}

func involve(techs map[string]bool, e Effect) {
	switch e.Sort {
	case UnitStarted, UnitStopped, UnitRestarted, UnitReloaded, UnitEnabled, UnitDisabled, UnitMasked, UnitUnmasked, UnitReset,
		ManagerReloaded, UnitQueried, LogRead:
		if strings.HasPrefix(e.By, "systemctl") || strings.HasPrefix(e.By, "journalctl") {
			techs["systemd"] = true
		}
	case FileWritten:
		if unitFolder.MatchString(e.target) {
			techs["systemd"] = true
		}
	}
	by, _, _ := strings.Cut(e.By, " ")
	file, name := "", ""
	switch e.Sort {
	case FileWritten:
		file = path.Base(e.target)
	case PackageInstalled, UnitStarted, UnitRestarted, UnitReloaded, UnitEnabled, ServiceCommand, ProcessStarted, ProgramRun:
		name = path.Base(e.target)
	case DataChanged, DataRead, DataDescribed:
		if by == "python" && strings.HasPrefix(e.target, "/") { // a database that is a file
			techs["SQLite"] = true
		}
	}
	for _, t := range technologies {
		if slices.Contains(strings.Fields(t.programs), by) && e.Sort != PackageRemoved ||
			name != "" && startsWith(t.names, name) || file != "" && endsWith(t.files, file) ||
			(e.Sort == ProcessStarted || e.Sort == ProgramRun) && endsWith(t.files, path.Base(e.target)) {
			techs[t.name] = true
		}
	}
}

func startsWith(prefixes, name string) bool {
	for _, p := range strings.Fields(prefixes) {
		if rest, ok := strings.CutPrefix(name, p); ok && (rest == "" || !(rest[0] >= 'a' && rest[0] <= 'z')) {
			return true
		}
	}
	return false
}

func endsWith(suffixes, file string) bool {
	for _, s := range strings.Fields(suffixes) {
		if file == s || strings.HasPrefix(s, ".") && strings.HasSuffix(file, s) {
			return true
		}
	}
	return false
}

// imports finds technologies in a program that a tool wrote: its interpreter,
// its libraries, what a unit executes. Comments and texts do not count.
func imports(techs map[string]bool, a Action) {
	content, _ := a.fields()["content"].(string)
	if content == "" || len(content) > maxScript {
		return
	}
	p := a.path()
	lang := shebang(content)
	if strings.HasSuffix(p, ".service") {
		for _, line := range strings.Split(content, "\n") {
			if run, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
				for _, w := range strings.Fields(strings.TrimLeft(run, "-@:+!")) {
					involve(techs, Effect{Sort: ProgramRun, By: program(w), target: w})
				}
			}
		}
		return
	}
	if lang != "" {
		involve(techs, Effect{Sort: ProgramRun, By: lang})
	}
	if lang != "python" && !strings.HasSuffix(p, ".py") {
		return
	}
	for _, l := range pyLines(content) {
		if l.tokens[0].text != "import" && l.tokens[0].text != "from" || l.tokens[0].kind != pyName {
			continue
		}
		for _, t := range l.tokens[1:] {
			for _, tech := range technologies {
				if t.kind == pyName && slices.Contains(strings.Fields(tech.imports), t.text) {
					techs[tech.name] = true
				}
			}
			if l.tokens[0].text == "from" {
				break
			}
		}
	}
}
