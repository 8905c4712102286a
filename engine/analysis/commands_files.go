package analysis

import (
	"path"
	"slices"
	"strings"
)

func sed(c *call) {
	ops, opts := getopt(dropSuffix(c.args), "efl", "expression", "file")
	_, e := opts["e"]
	_, f := opts["f"]
	_, long := opts["expression"]
	if !e && !f && !long && len(ops) > 0 {
		ops = ops[1:]
	}
	_, inPlace := opts["i"]
	if _, ok := opts["in-place"]; !ok && !inPlace {
		return
	}
	for _, a := range ops {
		c.file(FileWritten, a)
	}
}

// editor judges SWE-agent's editor commands, which are typed as if the shell had
// them.
func editor(c *call) {
	if c.name == "create" {
		firstOnly(FileWritten, "")(c)
		return
	}
	if len(c.args) > 1 && c.args[0].text != "view" {
		c.sub = clip(c.args[0].text, 20)
		c.file(FileWritten, c.args[1])
	}
}

// dropSuffix reads -i.bak as -i, so that the suffix is no cluster of options.
func dropSuffix(args []arg) []arg {
	out := make([]arg, 0, len(args))
	for _, a := range args {
		if strings.HasPrefix(a.text, "-i") && len(a.text) > 2 {
			a.code = code{text: "-i"}
		}
		if t := a.text; len(t) > 2 && t[0] == '-' && t[1] != '-' && strings.HasSuffix(t, "i") && !strings.ContainsAny(t, "ef") {
			a.code = code{text: "-i"}
		}
		out = append(out, a)
	}
	return out
}

func dd(c *call) {
	for _, a := range c.args {
		if p, ok := strings.CutPrefix(a.text, "of="); ok {
			c.add(FileWritten, c.resolve(p))
		}
	}
}

func patch(c *call) {
	ops, opts := getopt(c.args, "pidoBD", "input", "directory", "output")
	switch {
	case len(ops) > 0:
		c.file(FileWritten, ops[0])
	case opts["d"].text != "":
		c.file(FileWritten, opts["d"])
	default:
		c.add(FileWritten, c.resolve(unknown))
	}
}

// applyPatch judges a harness's command that takes a patch which names its files
// itself, as an argument or on standard input.
func applyPatch(c *call) {
	src := c.stdin
	if len(c.args) > 0 {
		src = &c.args[0].code
	}
	if src == nil || !patched(src.text, func(sort Sort, name string, start, end int) {
		c.note(sort, c.resolve(name), c.by(), src.span(start, end))
	}) {
		c.add(FileWritten, c.resolve(unknown))
	}
}

// patched finds the files that a patch names, and where; false when there are none.
func patched(text string, found func(sort Sort, name string, start, end int)) bool {
	at, any := 0, false
	for _, line := range strings.SplitAfter(text, "\n") {
		start := at
		at += len(line)
		line = strings.TrimRight(line, "\r\n")
		for _, mark := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "+++ /"} {
			name, ok := strings.CutPrefix(line, mark)
			if !ok {
				continue
			}
			if mark == "+++ /" {
				if name == "dev/null" {
					continue
				}
				name = "/" + name
			}
			sort := FileWritten
			if mark == "*** Delete File: " {
				sort = FileRemoved
			}
			found(sort, strings.TrimSpace(name), start, start+len(line))
			any = true
		}
	}
	return any
}

func tar(c *call) {
	mode, file, dir := "", "", c.env.cwd
	for i, a := range c.args {
		t := a.text
		next := ""
		if i+1 < len(c.args) {
			next = c.args[i+1].text
		}
		switch {
		case t == "-C" || t == "--directory":
			dir = c.resolve(next)
		case t == "--extract":
			mode = "x"
		case strings.HasPrefix(t, "--file="):
			file = t[7:]
		case i == 0 && !strings.HasPrefix(t, "--") || strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--"):
			for _, m := range "xctru" {
				if strings.ContainsRune(t, m) && mode == "" {
					mode = string(m)
				}
			}
			if strings.HasSuffix(t, "f") {
				file = next
			}
		}
	}
	switch mode {
	case "x":
		c.add(FileWritten, join(dir, unknown))
	case "c", "r", "u":
		if file != "" && file != "-" {
			c.add(FileWritten, c.resolve(file))
		}
	}
}

func extract(dirOption string) func(*call) {
	return func(c *call) {
		_, opts := getopt(c.args, dirOption)
		for _, quiet := range []string{"l", "t", "p", "v", "Z"} {
			if _, ok := opts[quiet]; ok && c.name == "unzip" {
				return
			}
		}
		if _, in := opts["i"]; c.name == "cpio" && !in {
			return
		}
		dir := c.env.cwd
		if d, ok := opts[dirOption]; ok {
			dir = c.resolve(d.text)
		}
		c.add(FileWritten, join(dir, unknown))
	}
}

// find acts by -delete, -exec and -fprint; {} stands for files below its roots.
func find(c *call) {
	var roots []string
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
			break
		}
		roots = append(roots, a.text)
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for i := 0; i < len(c.args); i++ {
		switch c.args[i].text {
		case "-delete":
			for _, root := range roots {
				c.add(FileRemoved, join(c.resolve(root), unknown))
			}
		case "-fprint", "-fprintf", "-fls":
			if i+1 < len(c.args) {
				c.file(FileWritten, c.args[i+1])
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			var inner []arg
			for i++; i < len(c.args) && c.args[i].text != ";" && c.args[i].text != "+"; i++ {
				a := c.args[i]
				if strings.Contains(a.text, "{}") {
					a.code = code{text: strings.ReplaceAll(a.text, "{}", join(c.resolve(roots[0]), unknown)), fixed: &c.at}
				}
				inner = append(inner, a)
			}
			c.command(inner, false)
		}
	}
}

// gitReads are the verbs that only show.
var gitReads = set1(`status log diff show blame ls-files ls-tree ls-remote rev-parse describe grep cat-file shortlog reflog rev-list
	name-rev for-each-ref whatchanged count-objects fsck check-ignore diff-tree help version archive`)

func git(c *call) {
	dir := c.env.cwd
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if args[0].text == "-C" && len(args) > 1 {
			dir = c.resolve(args[1].text)
		}
		if t := args[0].text; (t == "-C" || t == "-c") && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	verb := args[0].text
	c.sub = clip(verb, 20)
	ops, opts := getopt(args[1:], "mb")
	switch {
	case gitReads[verb]:
		return
	case verb == "clone" && len(ops) > 1:
		c.file(FileWritten, ops[len(ops)-1])
		return
	case verb == "init" && len(ops) > 0:
		c.file(FileWritten, ops[0])
		return
	case (verb == "branch" || verb == "tag" || verb == "remote" || verb == "stash" || verb == "worktree") &&
		(len(ops) == 0 || ops[0].text == "list" || ops[0].text == "show" || ops[0].text == "-v"):
		return
	case verb == "config":
		_, get := opts["get"]
		_, list := opts["list"]
		_, l := opts["l"]
		if get || list || l || len(ops) < 2 {
			return
		}
	}
	c.add(FileWritten, dir)
}

func keygen(c *call) {
	_, opts := getopt(c.args, "ftbCNPVsInRq")
	for _, quiet := range []string{"l", "y", "F", "E", "B", "L"} {
		if _, ok := opts[quiet]; ok {
			return
		}
	}
	if f, ok := opts["f"]; ok {
		c.file(FileWritten, f)
	} else {
		c.add(FileWritten, "/root/.ssh/"+unknown)
	}
}

// build tools test, or leave files where they run.
func build(c *call) {
	ops, opts := getopt(c.args, "CfjIo", "directory", "target-dir")
	verb := ""
	if len(ops) > 0 {
		verb = ops[0].text
	}
	c.sub = clip(verb, 20)
	dir := c.env.cwd
	if d, ok := opts["C"]; ok {
		dir = c.resolve(d.text)
	}
	if _, dry := opts["n"]; dry && c.name == "make" {
		return
	}
	switch verb {
	case "test", "check", "bench":
		c.add(TestRun, "")
	case "vet", "fmt", "clippy", "lint", "verify":
		c.add(SyntaxChecked, "")
	case "version", "env", "list", "tree", "metadata", "doc", "help":
	case "get", "install":
		if c.name != "make" {
			packages(c)
			return
		}
		c.add(FileWritten, join(dir, unknown))
	case "run":
		c.started(ProgramRun, "")
	default:
		c.add(FileWritten, join(dir, unknown))
	}
}

func diff(c *call) {
	ops, _ := getopt(c.args, "UCIxXFW", "label")
	for _, a := range ops {
		if a.text == "/dev/null" { // shows one file
			return
		}
	}
	c.add(Asserted, "")
}

func sums(c *call) {
	if _, opts := getopt(c.args, ""); len(opts) > 0 {
		_, c1 := opts["c"]
		if _, c2 := opts["check"]; c1 || c2 {
			c.add(Asserted, "")
		}
	}
}

// packageVerbs are what the package managers call installing (true) and
// removing (false).
var packageVerbs = map[string]map[string]bool{
	"apt": debian, "apt-get": debian, "aptitude": debian, "dnf": redhat, "yum": redhat, "zypper": redhat, "microdnf": redhat,
	"apk": {"add": true, "del": false, "upgrade": true, "fix": true}, "snap": debian, "flatpak": debian, "brew": debian,
	"pip": {"install": true, "uninstall": false}, "pipx": {"install": true, "uninstall": false},
	"uv":  {"install": true, "add": true, "sync": true, "remove": false, "uninstall": false},
	"npm": node, "pnpm": node, "yarn": node, "gem": {"install": true, "uninstall": false, "update": true},
	"composer": {"install": true, "require": true, "update": true, "remove": false}, "bundle": {"install": true, "add": true, "update": true},
	"poetry": {"install": true, "add": true, "remove": false}, "conda": {"install": true, "create": true, "remove": false},
	"dpkg": {"-i": true, "--install": true, "-r": false, "-P": false, "--remove": false, "--purge": false, "--configure": true},
	"rpm":  {"-i": true, "-ivh": true, "-Uvh": true, "-U": true, "-e": false, "--install": true, "--erase": false},
}

var (
	debian = map[string]bool{"install": true, "reinstall": true, "upgrade": true, "full-upgrade": true, "dist-upgrade": true,
		"build-dep": true, "remove": false, "purge": false, "autoremove": false, "uninstall": false}
	redhat = map[string]bool{"install": true, "in": true, "reinstall": true, "update": true, "upgrade": true, "groupinstall": true,
		"remove": false, "rm": false, "erase": false, "autoremove": false}
	node = map[string]bool{"install": true, "i": true, "ci": true, "add": true, "update": true, "uninstall": false, "remove": false, "rm": false}
)

func packages(c *call) {
	if c.name == "npm" || c.name == "pnpm" || c.name == "yarn" {
		for _, a := range c.args {
			switch a.text {
			case "test", "t":
				c.add(TestRun, "")
				return
			case "start":
				c.started(ProgramRun, "")
				return
			}
		}
	}
	table := packageVerbs[c.name]
	if c.name == "go" || c.name == "cargo" {
		table = map[string]bool{"get": true, "install": true}
	}
	if c.name == "pacman" {
		table = map[string]bool{"-S": true, "-Sy": true, "-Syu": true, "-U": true, "-R": false, "-Rs": false}
	}
	for i, a := range c.args {
		install, ok := table[a.text]
		if !ok {
			continue
		}
		c.sub = a.text
		sort := PackageRemoved
		if install {
			sort = PackageInstalled
		}
		names, _ := getopt(c.args[i+1:], "ctorie", "target-release", "requirement", "index-url", "target", "prefix")
		if strings.HasPrefix(c.name, "apt") && slices.ContainsFunc(c.args, func(a arg) bool { return a.text == "-s" }) {
			return // simulates
		}
		if len(names) == 0 {
			c.add(sort, "")
		}
		for _, n := range names {
			c.add(sort, path.Base(n.text))
		}
		return
	}
}
