package sim

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unitDirs are where units live, first wins.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"}

// builtinTargets exist without a file.
var builtinTargets = []string{"multi-user.target", "default.target", "graphical.target", "basic.target", "sysinit.target",
	"network.target", "network-online.target", "local-fs.target", "shutdown.target",
	"reboot.target", "poweroff.target", "halt.target", "rescue.target", "emergency.target", "timers.target", "sockets.target"}

// unitFile is a unit as loaded: its file and drop-ins, merged.
type unitFile struct {
	name     string
	path     string   // "" when not found
	dropIns  []string // paths
	load     string   // loaded, masked, not-found, bad-setting
	text     string   // as systemctl cat shows it
	sections map[string]map[string][]string
}

// get is the last value of a setting, "" when there is none.
func (f *unitFile) get(section, key string) string {
	v := f.sections[section][key]
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}

// list is a setting's values, an empty assignment having cleared those before.
func (f *unitFile) list(section, key string) []string { return f.sections[section][key] }

// words are the space-separated words of a setting that may be repeated.
func (f *unitFile) words(section, key string) []string {
	var all []string
	for _, v := range f.list(section, key) {
		all = append(all, strings.Fields(v)...)
	}
	return all
}

// duration reads a systemd time span; "" and nonsense are def.
func (f *unitFile) duration(key string, def time.Duration) time.Duration {
	s := f.get("Service", key)
	switch {
	case s == "":
		return def
	case s == "infinity":
		return 1<<63 - 1
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	total := time.Duration(0)
	for _, part := range strings.Fields(s) {
		part = strings.NewReplacer("msec", "ms", "sec", "s", "min", "m", "hr", "h").Replace(part)
		d, err := time.ParseDuration(part)
		if err != nil {
			return def
		}
		total += d
	}
	return total
}

func (f *unitFile) serviceType() string {
	if t := f.get("Service", "Type"); t != "" {
		return t
	}
	if len(f.list("Service", "ExecStart")) == 0 {
		return "oneshot"
	}
	return "simple"
}

// parse adds a file's settings.
func (f *unitFile) parse(text string) {
	section := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			section = line[1 : len(line)-1]
			if f.sections[section] == nil {
				f.sections[section] = map[string][]string{}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if value == "" {
			f.sections[section][key] = nil
			continue
		}
		if len(f.sections[section][key]) < 1024 {
			f.sections[section][key] = append(f.sections[section][key], value)
		}
	}
}

// unitName adds the suffix that systemctl adds.
func unitName(name string) string {
	for _, suffix := range []string{".service", ".target", ".socket", ".timer", ".mount", ".path", ".slice", ".scope"} {
		if strings.HasSuffix(name, suffix) {
			return name
		}
	}
	return name + ".service"
}

// loadUnit reads a unit from the disk.
func (b *boot) loadUnit(name string) *unitFile {
	f := &unitFile{name: name, load: "not-found", sections: map[string]map[string][]string{}}
	if strings.ContainsAny(name, "/\x00") || name == "" {
		return f
	}
	template := name
	if base, suffix, ok := strings.Cut(name, "@"); ok {
		template = base + "@" + suffix[strings.LastIndexByte(suffix, '.'):]
	}
	for _, dir := range unitDirs {
		for _, candidate := range slices.Compact([]string{name, template}) {
			at := path.Join(dir, candidate)
			data, err := b.fs.ReadFile(at)
			if err != nil {
				// A dangling link, or one to a directory, is not a unit.
				continue
			}
			f.path = at
			if real, err := b.fs.Real(at); len(data) == 0 && (err != nil || real == "/dev/null" || path.Dir(real) == dir) {
				f.load = "masked"
				return f
			}
			f.load = "loaded"
			f.text = "# " + at + "\n" + string(data)
			f.parse(string(data))
			break
		}
		if f.path != "" {
			break
		}
	}
	if f.path == "" {
		if !slices.Contains(builtinTargets, name) {
			return f
		}
		f.load, f.path = "loaded", "/usr/lib/systemd/system/"+name
	}
	// Drop-ins apply in the order of their names, whatever their directory; of
	// two with one name the first directory's wins.
	byName := map[string]string{}
	for _, dir := range slices.Backward(unitDirs) {
		for _, base := range slices.Compact([]string{template, name}) {
			list, _ := b.fs.ReadDir(path.Join(dir, base+".d"))
			for _, e := range list {
				if strings.HasSuffix(e.Name(), ".conf") {
					byName[e.Name()] = path.Join(dir, base+".d", e.Name())
				}
			}
		}
	}
	for _, base := range sortedKeys(byName) {
		data, err := b.fs.ReadFile(byName[base])
		if err != nil {
			continue
		}
		f.dropIns = append(f.dropIns, byName[base])
		f.text += "\n# " + byName[base] + "\n" + string(data)
		f.parse(string(data))
	}
	return f
}

// wants are the units that a target or service pulls in.
func (b *boot) wants(f *unitFile) (wants, requires []string) {
	wants = f.words("Unit", "Wants")
	requires = append(f.words("Unit", "Requires"), f.words("Unit", "BindsTo")...)
	for _, dir := range unitDirs {
		for suffix, into := range map[string]*[]string{".wants": &wants, ".requires": &requires} {
			list, _ := b.fs.ReadDir(path.Join(dir, f.name+suffix))
			for _, e := range list {
				*into = append(*into, e.Name())
			}
		}
	}
	slices.Sort(wants)
	return slices.Compact(wants), requires
}

// fileState is what systemctl is-enabled says.
func (b *boot) fileState(f *unitFile) string {
	switch f.load {
	case "masked":
		if strings.HasPrefix(f.path, "/run/") {
			return "masked-runtime"
		}
		return "masked"
	case "not-found":
		return ""
	}
	for _, dir := range unitDirs {
		list, _ := b.fs.ReadDir(dir)
		for _, e := range list {
			if !strings.HasSuffix(e.Name(), ".wants") && !strings.HasSuffix(e.Name(), ".requires") {
				continue
			}
			if st, err := b.fs.Lstat(path.Join(dir, e.Name(), f.name)); err == nil && st.Mode()&fs.ModeSymlink != 0 {
				if dir == unitDirs[1] {
					return "enabled-runtime"
				}
				return "enabled"
			}
		}
	}
	if len(f.sections["Install"]) == 0 {
		return "static"
	}
	return "disabled"
}

// splitCommand splits an Exec line into words, with systemd's quotes, and takes
// its prefixes off; mayFail is set by "-".
func splitCommand(line string) (words []string, mayFail bool) {
	line = strings.TrimSpace(line)
	for line != "" && strings.IndexByte("-@:+!|", line[0]) >= 0 {
		mayFail = mayFail || line[0] == '-'
		line = line[1:]
	}
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
			continue
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote && quote != 0:
			quote = 0
		case c == '\\' && i+1 < len(line) && quote != '\'':
			i++
			word.WriteByte(map[byte]byte{'n': '\n', 't': '\t'}[line[i]] | zeroIf(line[i] == 'n' || line[i] == 't', line[i]))
		case c == '%' && i+1 < len(line) && line[i+1] == '%':
			i++
			word.WriteByte('%')
		default:
			word.WriteByte(c)
		}
		in = true
	}
	if in {
		words = append(words, word.String())
	}
	return words, mayFail
}

func zeroIf(zero bool, c byte) byte {
	if zero {
		return 0
	}
	return c
}
