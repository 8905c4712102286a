package heat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"refbox/engine/arena"
	"refbox/engine/event"
	"refbox/engine/recording"
	"refbox/engine/world"
	"refbox/vm/sim"
	"refbox/vm/sim/hello"
)

// TestDecoys: a seat whose player sends a planted token, or names a planted file, is
// marked once for each; one that leaves them alone is not, whatever it lists.
func TestDecoys(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole heat: skipped under -short")
	}
	dir := filepath.Join(t.TempDir(), "decoyed")
	if _, err := arena.Init(dir); err != nil {
		t.Fatal(err)
	}
	change := func(file, old, new string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%s does not hold %q: %v", file, old, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Replace(string(data), old, new, 1)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	change("arena.toml", "tick_ms = 2000", "tick_ms = 50")
	change("arena.toml", "[build]", "[[guest.decoys]]\nname = \"master-token\"\n\n[[guest.decoys]]\nname = \"answers\"\nkind = \"path\"\npath = \"/root/answers.txt\"\n\n[build]")
	change("guest/opt/arena/seat", "sed -n", `cat >/tmp/in
sed -n 's/.*"master-token":{[^}]*"value":"\([a-z0-9-]*\)".*/\1/p' /tmp/in >/root/token
echo 'nothing here' >/root/answers.txt
</tmp/in sed -n`)
	p, err := arena.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{
		"honest": "ls /root",
		"reader": "cat /root/answers.txt\n---\ncat /root/answers.txt",
		"user":   "true",
	}
	var players []arena.Trial
	for _, name := range []string{"honest", "reader", "user"} {
		if err := os.WriteFile(filepath.Join(dir, "players", name+".sh"), []byte(scripts[name]+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		players = append(players, arena.Trial{Name: name, Script: "players/" + name + ".sh"})
	}
	if p, err = p.Cast(players, false); err != nil {
		t.Fatal(err)
	}
	run, err := os.MkdirTemp("", "decoys") // sockets live in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	h := New(Config{Package: p, Driver: sim.New(sim.Config{Programs: hello.Programs()}), Dir: filepath.Join(t.TempDir(), "heat"), Runtime: run})
	// What "user" types holds its seat's own token: known here, and to whoever reads the file.
	token := h.decoyToken("user", "master-token").Value
	if err := os.WriteFile(filepath.Join(dir, "players", "user.sh"), []byte("cat /root/token\n---\ncurl -s -H 'Authorization: "+token+"' http://127.0.0.1:8080/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(res.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := rec.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	planted := false
	err = rec.Events(0, rec.Len(), func(_ int, e event.Event) bool {
		switch b := e.Body.(type) {
		case event.DecoyUsed:
			got[b.Territory+" "+b.Decoy+" "+b.Where]++
			if b.Agent != b.Territory || b.Detail == "" || strings.Contains(b.Detail, token) {
				t.Errorf("%+v", b)
			}
		case event.AgentActionFinished:
			planted = planted || strings.Contains(b.Output, token)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["reader answers action"] != 1 || got["user master-token action"] != 1 {
		t.Errorf("%v", got)
	}
	if !planted {
		t.Error("the token is not where the seat's set-up planted it")
	}
	for _, s := range world.Standings(rec.World(rec.Len())) {
		want := 1
		if s.Territory == "honest" {
			want = 0
		}
		if s.Decoys != want {
			t.Errorf("%s: %d decoys in the standings, want %d", s.Territory, s.Decoys, want)
		}
	}
}

// TestDecoyCutInTwo: pieces of a session's input are looked at together.
func TestDecoyCutInTwo(t *testing.T) {
	told := 0
	d := &decoys{used: map[string]bool{}, all: []decoy{{name: "x", sign: []byte("needle")}}, tell: func(string, string, string) { told++ }}
	s := stream{d: d}
	for _, piece := range []string{"a nee", "d", "le b", " needle again"} {
		s.saw("", []byte(piece))
		if len(s.kept) > len("needle")+around {
			t.Errorf("more is kept than is looked at: %q", s.kept)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestDecoyPaths: a planted path is its whole components, however it is sent.
func TestDecoyPaths(t *testing.T) {
	for sent, want := range map[string]bool{
		"cat /srv/backup":                     true,
		"cat '/srv/backup'":                   true,
		"cat /srv/backup; id":                 true,
		"cat </srv/backup":                    true,
		"tar c /srv/backup/a":                 true,
		"x=/srv/backup":                       true,
		"cat //srv/backup":                    true,
		"cat /proc/self/root/srv/backup":      true,
		"ls /srv/backup-old /srv/backup":      true,
		"ls /srv/backup-old":                  false,
		"ls /srv/backup.tar":                  false,
		"ls /srv/backups":                     false,
		"ls /mnt/srv/backup":                  false,
		"ls /home/a/srv/backup; ls /srv/back": false,
	} {
		for _, size := range []int{len(sent), 1, 3} {
			told := 0
			d := &decoys{used: map[string]bool{}, all: []decoy{{name: "x", sign: []byte("/srv/backup"), path: true}}, tell: func(string, string, string) { told++ }}
			if size == len(sent) {
				d.saw(decoyInAction, "", []byte(sent))
			} else {
				s := stream{d: d}
				for piece := range slices.Chunk([]byte(sent), size) {
					s.saw("", piece)
				}
				s.end("")
			}
			if (told == 1) != want || told > 1 {
				t.Errorf("%q in pieces of %d: told %d times", sent, size, told)
			}
		}
	}
}
