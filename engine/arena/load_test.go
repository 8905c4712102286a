package arena

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"refbox/assets"
	"refbox/engine/internal/shared"
)

// unpack writes the bundled package to a folder, executable bits and all.
func unpack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	fsys, err := fs.Sub(assets.Arenas(), "primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func notes(p *Package) string {
	var b strings.Builder
	for _, n := range p.Notes {
		b.WriteString(n.String() + "\n")
	}
	return b.String()
}

func TestBundledPackagesAreSound(t *testing.T) {
	if !slices.Contains(Bundled(), "primary-failover") {
		t.Fatal("primary-failover is not bundled")
	}
	for _, id := range Bundled() {
		t.Run(id, func(t *testing.T) {
			p, err := Load(id)
			if err != nil {
				t.Fatal(err)
			}
			if p.Manifest.Arena.ID != id || p.Origin != "bundled" {
				t.Errorf("is %s from %s", p.Manifest.Arena.ID, p.Origin)
			}
			if len(p.Notes) > 0 {
				t.Errorf("notes: %v", p.Notes)
			}
			seats, notes, err := p.Seats(nil)
			if err != nil || len(notes) > 0 || len(seats) != len(p.Manifest.Territories) {
				t.Errorf("seats %v, notes %v, error %v", seats, notes, err)
			}
			for _, s := range seats {
				if s.Player != AdapterScript || !isFile(p.FS, s.Script) {
					t.Errorf("%s is played by %s %s", s.Territory.ID, s.Player, s.Script)
				}
				if !isDir(s.Spec.Machines[0].Files, "usr") {
					t.Errorf("%s: the guest's tree has no usr", s.Territory.ID)
				}
			}
		})
	}
}

func TestSpecOfThePackage(t *testing.T) {
	p, err := Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := p.Spec("failover-two")
	if err != nil {
		t.Fatal(err)
	}
	m := spec.Machines[0]
	if len(spec.Machines) != 1 || m.Name != "host" || m.VCPUs != 1 || m.MemoryMiB != 768 || m.DiskMiB != 2048 {
		t.Errorf("sizes: %+v", spec)
	}
	if !slices.Equal(m.Forwards, []int{8080, 8081, 8082}) || !slices.Equal(m.Setup, []string{"/opt/failover/setup"}) {
		t.Errorf("forwards %v, set-up %v", m.Forwards, m.Setup)
	}
	if _, err := p.Spec("nobody"); err == nil {
		t.Error("a spec for no territory")
	}

	big, small := Resources{2, 1024, 4096}, "small"
	p.Manifest.Classes = append(p.Manifest.Classes, Class{ID: small, Resources: Resources{1, 256, 512}})
	p.Manifest.Territories[1].Machines = []Machine{{Name: "db", Resources: &big, Guest: "guest"}, {Name: "app", Class: &small, Guest: "guest/opt", Forwards: []uint16{9000}}, {Name: "more", Guest: "guest"}}
	p.Manifest.Territories[1].Links = []PrivateLink{{"back", []string{"db", "app"}}, {"front", []string{"app", "more"}}}
	if spec, err = p.Spec("failover-two"); err != nil {
		t.Fatal(err)
	}
	var got [][]int
	for _, m := range spec.Machines {
		got = append(got, append([]int{m.VCPUs, m.MemoryMiB, m.DiskMiB}, m.Forwards...))
	}
	want := [][]int{{2, 1024, 4096, 8080, 8081, 8082}, {1, 256, 512, 8081, 8082, 9000}, {1, 768, 2048, 8081, 8082}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if spec.Links[0].Subnet != "10.81.0" || spec.Links[1].Subnet != "10.81.1" || !slices.Equal(spec.Links[1].Ends, []string{"app", "more"}) {
		t.Errorf("links: %+v", spec.Links)
	}
	if !isDir(spec.Machines[1].Files, "failover") {
		t.Error("a machine's own guest folder is not laid")
	}
}

func TestReferencesArenaLoadsAsItStands(t *testing.T) {
	p, err := Load(shared.Shared(t, "seeds", "arena.json"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load("primary-failover")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Manifest.Milestones() {
		if got, want := p.Verifier(s.ID), "verify/"+s.ID+".star"; got != want || !isFile(p.FS, got) {
			t.Errorf("%s is decided by %q, want %q", s.ID, got, want)
		}
	}
	if d := cmp.Diff(b.Guest(), p.Guest()); d != "" {
		t.Errorf("the guest's set-up differs:\n%s", d)
	}
	ours, err := b.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := p.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	delete(ours, "manifest")
	delete(theirs, "manifest")
	if d := cmp.Diff(ours, theirs); d != "" || len(ours) != 4 {
		t.Errorf("the parts differ from the bundled ones:\n%s%v", d, ours)
	}
	for _, want := range []string{"failover-one: nixos_config is not used", "failover-two: nixos_config", "failover-three: nixos_config",
		"bundled verifiers, matched by milestone id"} {
		if !strings.Contains(notes(p), want) {
			t.Errorf("no note says %q:\n%s", want, notes(p))
		}
	}
	seats, ns, err := p.Seats(func(adapter string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	var played []string
	for i, s := range seats {
		played = append(played, s.Territory.ID+" "+s.Agent.ID+" "+s.Script)
		if ns[i].Territory != s.Territory.ID || !strings.Contains(ns[i].Text, "adapter claux has no command here") {
			t.Errorf("note %v", ns[i])
		}
	}
	want := []string{"failover-one kimi players/right.sh", "failover-two glm players/careful.sh", "failover-three deepseek players/hasty.sh"}
	if d := cmp.Diff(want, played); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	seats, ns, err = p.Seats(func(adapter string) bool { return adapter == "claux" })
	if err != nil || len(ns) != 0 || seats[0].Player != "claux" || seats[0].Script != "" {
		t.Errorf("with a command: %+v, %v, %v", seats, ns, err)
	}
	brief, err := p.Brief("failover-one")
	if err != nil || !strings.Contains(brief, "What the fence must withstand") || !strings.Contains(brief, "15 minutes") {
		t.Errorf("brief: %v\n%s", err, brief)
	}
}

func TestPackagesOfOthers(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		err    []string // parts of the error; none: it loads
		notes  []string
	}{
		{"whole", func(t *testing.T, dir string) {}, nil, nil},
		{"whole, another id", rename, nil, nil},
		{"no guest", func(t *testing.T, dir string) { remove(t, dir, "guest") }, nil, []string{"failover-one: the package has no guest of its own"}},
		{"no guest, another id", func(t *testing.T, dir string) { rename(t, dir); remove(t, dir, "guest") },
			[]string{"no folder guest", "no bundled arena is called \"else\"", "primary-failover"}, nil},
		{"no verifier", func(t *testing.T, dir string) { remove(t, dir, "verify/host-reboot.star") }, nil, []string{"lacks the verifiers of host-reboot"}},
		{"no verifier, another id", func(t *testing.T, dir string) {
			rename(t, dir)
			remove(t, dir, "verify/host-reboot.star")
			remove(t, dir, "CONTRACT.md")
		}, []string{"build.milestones[5].verifier", "CONTRACT.md"}, nil},
		{"no contract", func(t *testing.T, dir string) { remove(t, dir, "CONTRACT.md") }, nil, []string{"no CONTRACT.md; players get that of the bundled"}},
		{"no players", func(t *testing.T, dir string) { remove(t, dir, "players") }, nil, nil},
		{"no players, another id", func(t *testing.T, dir string) { rename(t, dir); remove(t, dir, "players/right.sh") },
			[]string{"agents[0].script", "players/right.sh"}, nil},
		{"verifier not executable", func(t *testing.T, dir string) {
			manifest(t, dir, "verify/host-reboot.star", "verify/host-reboot.sh")
			write(t, filepath.Join(dir, "verify/host-reboot.sh"), "#!/bin/sh\n", 0o644)
		}, []string{"not executable: chmod +x"}, nil},
		{"another interval of health", func(t *testing.T, dir string) {
			manifest(t, dir, "tick_ms = 1000", "tick_ms = 900")
		}, nil, []string{"service.health (poll_interval_ms, consecutive_failures, recovery_window_seconds) is ignored in a build race"}},
		{"verifier executable", func(t *testing.T, dir string) {
			manifest(t, dir, "verify/host-reboot.star", "verify/host-reboot.sh")
			write(t, filepath.Join(dir, "verify/host-reboot.sh"), "#!/bin/sh\n", 0o755)
		}, nil, nil},
		{"verifier behind a link that leads out", func(t *testing.T, dir string) {
			rename(t, dir)
			remove(t, dir, "verify/host-reboot.star")
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "verify/host-reboot.star")); err != nil {
				t.Fatal(err)
			}
		}, []string{"build.milestones[5].verifier"}, nil},
		{"fog without its brief", func(t *testing.T, dir string) {
			manifest(t, dir, "[visualization]", "[fog_of_war]\nplayer_brief = \"BRIEF.md\"\n[visualization]")
		}, []string{"fog_of_war.player_brief", "BRIEF.md"}, nil},
		{"no manifest", func(t *testing.T, dir string) { remove(t, dir, "arena.toml") }, []string{"neither arena.toml nor arena.json"}, nil},
		{"many faults at once", func(t *testing.T, dir string) {
			manifest(t, dir, "tick_ms = 1000", "tick_ms = 0", "schema_version = 1", "schema_version = 7", "points = 25", "points = 0")
		}, []string{"3 faults", "arena.toml:4: schema_version", "rules.tick_ms", "build.milestones[3].points"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := unpack(t)
			tt.change(t, dir)
			p, err := Load(dir)
			if len(tt.err) > 0 {
				if err == nil {
					t.Fatal("it loads")
				}
				for _, want := range tt.err {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.notes {
				if !strings.Contains(notes(p), want) {
					t.Errorf("no note says %q:\n%s", want, notes(p))
				}
			}
			if len(tt.notes) == 0 && len(p.Notes) != 0 {
				t.Errorf("notes: %v", p.Notes)
			}
			if _, _, err := p.Seats(nil); err != nil {
				t.Error(err)
			}
			if _, err := p.Hashes(); err != nil {
				t.Error(err)
			}
			for _, s := range p.Manifest.Milestones() {
				if _, err := fs.ReadFile(p.FS, p.Verifier(s.ID)); err != nil {
					t.Error(err)
				}
			}
			if _, err := p.Brief("failover-one"); err != nil {
				t.Error(err)
			}
			if err := fs.WalkDir(p.FS, "guest", func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
				t.Error(err)
			}
		})
	}
}

// manifest edits the package's manifest.
func manifest(t *testing.T, dir string, oldNew ...string) {
	t.Helper()
	path := filepath.Join(dir, "arena.toml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, edit(t, string(data), oldNew...), 0o644)
}

func rename(t *testing.T, dir string) {
	t.Helper()
	manifest(t, dir, "id = \"primary-failover\"", "id = \"else\"")
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestLoadTakesFilesAndFolders(t *testing.T) {
	dir := unpack(t)
	for _, name := range []string{dir, filepath.Join(dir, "arena.toml")} {
		if p, err := Load(name); err != nil || p.Origin != dir || p.File != filepath.Join(dir, "arena.toml") {
			t.Errorf("Load(%s): %+v, %v", name, p, err)
		}
	}
	_, err := Load("no-such-arena")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "primary-failover") {
		t.Errorf("the error does not name the bundled arenas: %v", err)
	}
	var bad *Invalid
	write(t, filepath.Join(dir, "arena.toml"), "x", 0o644)
	if _, err := Load(dir); !errors.As(err, &bad) || bad.Problems[0].Line != 1 {
		t.Errorf("a broken manifest: %v", err)
	}
	write(t, filepath.Join(dir, "arena.toml"), strings.Repeat("#", maxManifestBytes+1), 0o644)
	if _, err := Load(dir); !errors.As(err, &bad) {
		t.Errorf("a huge manifest: %v", err)
	}
}

func TestSeatsWithoutAnyPlayer(t *testing.T) {
	dir := unpack(t)
	manifest(t, dir, "id = \"primary-failover\"", "id = \"else\"",
		"adapter = \"script\"\nscript = \"players/right.sh\"", "adapter = \"claux\"",
		"adapter = \"script\"\nscript = \"players/careful.sh\"", "adapter = \"claux\"")
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	seats, ns, err := p.Seats(nil)
	if err != nil || len(ns) != 2 || seats[0].Script != "players/hasty.sh" {
		t.Errorf("the package's own script does not stand in: %+v %v %v", seats, ns, err)
	}
	manifest(t, dir, "adapter = \"script\"\nscript = \"players/hasty.sh\"", "adapter = \"claux\"")
	if p, err = Load(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Seats(nil); err == nil || !strings.Contains(err.Error(), "agent right") {
		t.Errorf("a seat that nobody plays: %v", err)
	}
}

func TestHashesKnowEveryPart(t *testing.T) {
	dir := unpack(t)
	base := hashes(t, dir)
	if len(base) != 5 {
		t.Errorf("parts: %v", base)
	}
	moved := t.TempDir()
	if err := os.CopyFS(filepath.Join(moved, "x"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(base, hashes(t, filepath.Join(moved, "x"))); d != "" {
		t.Errorf("the place of the package matters:\n%s", d)
	}
	for part, file := range map[string]string{"manifest": "arena.toml", "guest": "guest/opt/failover/seed", "players": "players/right.sh",
		"CONTRACT.md": "CONTRACT.md", "verifiers": "verify/host-reboot.star"} {
		dir := unpack(t)
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n# changed\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for name, sum := range hashes(t, dir) {
			if (sum != base[name]) != (name == part) {
				t.Errorf("%s changed: hash of %s is %s, was %s", file, name, sum, base[name])
			}
		}
	}
}

// TestLibrary: what the manifest names of the guest library lies on the machines and
// in the guest's hash, as if it were the package's own; a file of the package's wins.
func TestLibrary(t *testing.T) {
	wire, err := fs.ReadFile(assets.Library(), "wire.py")
	if err != nil {
		t.Fatal(err)
	}
	laid := func(dir string) (string, error) {
		t.Helper()
		p, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := p.Spec(p.Manifest.Territories[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		err = fs.WalkDir(spec.Machines[0].Files, ".", func(name string, d fs.DirEntry, err error) error {
			if path.Base(name) == "wire.py" {
				data, err := fs.ReadFile(spec.Machines[0].Files, name)
				found += name + ": " + string(data)
				return err
			}
			return err
		})
		return found, err
	}
	dir := unpack(t)
	base := hashes(t, dir)
	if got, err := laid(dir); err != nil || got != "opt/failover/wire.py: "+string(wire) {
		t.Errorf("the machine has %.60q, %v", got, err)
	}

	manifest(t, dir, `library = ["/opt/failover/wire.py"]`, "")
	if got, err := laid(dir); err != nil || got != "" || hashes(t, dir)["guest"] == base["guest"] {
		t.Errorf("not named, the machine has %.60q, %v; %v", got, err, hashes(t, dir))
	}
	own := filepath.Join(dir, "guest/opt/failover/wire.py")
	write(t, own, string(wire), 0o644)
	if hashes(t, dir)["guest"] != base["guest"] {
		t.Error("the same bytes as a file of the package's are another guest")
	}

	manifest(t, dir, "[guest]\n", "[guest]\nlibrary = [\"/opt/failover/wire.py\"]\n")
	if got, err := laid(dir); err != nil || got != "opt/failover/wire.py: "+string(wire) || hashes(t, dir)["guest"] != base["guest"] {
		t.Errorf("in a copy of the whole, the machine has %.60q, %v", got, err)
	}
	write(t, own, "# changed", 0o644)
	if got, err := laid(dir); err != nil || got != "opt/failover/wire.py: # changed" || hashes(t, dir)["guest"] == base["guest"] {
		t.Errorf("changed, the machine has %.60q, %v", got, err)
	}
	if p, err := Load(dir); err != nil || !strings.Contains(fmt.Sprint(p.Notes), "guest/opt/failover/wire.py is laid in place") {
		t.Errorf("nothing says so: %v, %v", p.Notes, err)
	}

	// A tree that does not lie under guest/ counts as one that does.
	elsewhere := unpack(t)
	for _, id := range []string{"one", "two", "three"} {
		manifest(t, elsewhere, "id = \"failover-"+id+"\"\n", "id = \"failover-"+id+"\"\nmachines = [{name = \"host\", guest = \"trees/host\"}]\n")
	}
	if err := os.CopyFS(filepath.Join(elsewhere, "trees/host"), os.DirFS(filepath.Join(elsewhere, "guest"))); err != nil {
		t.Fatal(err)
	}
	before := hashes(t, elsewhere)["guest"]
	write(t, filepath.Join(elsewhere, "trees/host/opt/failover/wire.py"), "# changed", 0o644)
	if got, err := laid(elsewhere); err != nil || got != "opt/failover/wire.py: # changed" || hashes(t, elsewhere)["guest"] == before {
		t.Errorf("of a tree elsewhere, the machine has %.60q, %v", got, err)
	}

	manifest(t, dir, "/opt/failover/wire.py", "/opt/failover/store.py/wire.py")
	var bad *Invalid
	if _, err := Load(dir); !errors.As(err, &bad) || bad.Problems[0].Path != "guest.library[0]" || bad.Problems[0].Line == 0 {
		t.Errorf("below a file: %v", err)
	}
}

func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	p, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Hashes()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSeatInput(t *testing.T) {
	got := string(SeatInput(map[string]Record{"b": {"1", "2"}, "a": {"3", "4"}}))
	if want := `{"values":{"a":{"id":"3","value":"4"},"b":{"id":"1","value":"2"}}}`; got != want {
		t.Errorf("got %s", got)
	}
	if got := string(SeatInput(nil)); got != `{"values":{}}` {
		t.Errorf("got %s", got)
	}
}

// FuzzLoad loads a folder whose manifest and one file are anything.
func FuzzLoad(f *testing.F) {
	f.Add(bundledTOML(f), "guest/x")
	f.Add(strings.ReplaceAll(bundledTOML(f), "verify/", "../verify/"), "CONTRACT.md")
	f.Add(strings.Replace(bundledTOML(f), "id = \"primary-failover\"", "id = \"other\"", 1), "verify/host-reboot.star")
	f.Fuzz(func(t *testing.T, manifest, file string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "arena.toml"), []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		if filepath.IsLocal(file) && len(file) < 100 {
			if os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755) == nil {
				_ = os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"), 0o755)
			}
		}
		p, err := Load(dir)
		if err != nil {
			return
		}
		for _, t2 := range p.Manifest.Territories {
			if _, err := p.Spec(t2.ID); err != nil {
				t.Errorf("a package that loads has no machines: %v", err)
			}
			if _, err := p.Brief(t2.ID); err != nil {
				t.Errorf("a package that loads has no brief: %v", err)
			}
		}
		if _, err := p.Hashes(); err != nil {
			t.Errorf("a package that loads has no hashes: %v", err)
		}
	})
}
