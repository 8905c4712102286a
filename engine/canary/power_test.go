package canary_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/canary"
	"refbox/vm"
	"refbox/vm/qemu/qemutest"
	"refbox/vm/sim"
)

// Two stores of records, on ports of their own: one syncs each record before it
// acknowledges it, the other acknowledges first, and syncs some of them.
const (
	carefulPort = 8080
	hastyPort   = 8081
	cuts        = 10
)

// store is their program: its argument says which it is. It syncs a record of the hasty
// one when its number, which begins the value, can be divided by 8.
const store = `#!/usr/bin/python3
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

HASTY = sys.argv[1] == "hasty"
ROOT = "/var/lib/store/" + sys.argv[1]
os.makedirs(ROOT, exist_ok=True)
os.sync()

class Handler(BaseHTTPRequestHandler):
    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def at(self):
        return os.path.join(ROOT, os.path.basename(self.path))

    def do_GET(self):
        try:
            with open(self.at(), "rb") as f:
                self.reply(200, f.read())
        except OSError:
            self.reply(404)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(self.at(), "wb") as f:
            f.write(body)
            if not HASTY or int(body.split(b"-")[0]) % 8 == 0:
                f.flush()
                os.fsync(f.fileno())
        if not HASTY:
            folder = os.open(ROOT, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self.reply(204)

    def log_message(self, *_):
        pass

HTTPServer(("", 8081 if HASTY else 8080), Handler).serve_forever()
`

func unit(name string) []byte {
	return []byte("[Unit]\nDescription=" + name + " store\n[Service]\nExecStart=/opt/store/store.py " + name + "\nRestart=always\n[Install]\nWantedBy=multi-user.target\n")
}

func machine() vm.MachineSpec {
	return vm.MachineSpec{Name: "host", VCPUs: 1, MemoryMiB: 256, DiskMiB: 512, Forwards: []int{carefulPort, hastyPort},
		Files: fstest.MapFS{
			"opt/store/store.py":                 {Data: []byte(store)},
			"etc/systemd/system/careful.service": {Data: unit("careful")},
			"etc/systemd/system/hasty.service":   {Data: unit("hasty")},
		},
		Setup: []string{"/bin/sh", "-c", "systemctl daemon-reload && systemctl enable --now careful.service hasty.service"}}
}

// simulated is the twin of store.
func simulated(ctx context.Context, p *sim.Process) error {
	which, port := p.Args[len(p.Args)-1], carefulPort
	if which == "hasty" {
		port = hastyPort
	}
	root := "/var/lib/store/" + which
	if err := p.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := p.Sync(); err != nil {
		return err
	}
	return p.Serve(ctx, fmt.Sprint(":", port), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := root + "/" + filepath.Base(r.URL.Path)
		if r.Method == http.MethodGet {
			data, err := p.ReadFile(at)
			if err != nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.Write(data) //nolint:errcheck // the client may have gone
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = p.WriteFile(at, body, 0o644)
		}
		number := 0
		fmt.Sscanf(string(body), "%d-", &number) //nolint:errcheck // 0 is synced
		if err == nil && (which == "careful" || number%8 == 0) {
			err = p.SyncFile(at)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}

func TestPowerCutsSimulated(t *testing.T) {
	d := sim.New(sim.Config{Programs: map[string]sim.Program{"/opt/store/store.py": simulated}, LoseUnsynced: true})
	powerCuts(t, d, t.TempDir(), cuts, 4*time.Millisecond, time.Minute)
}

func TestPowerCutsReal(t *testing.T) {
	d := qemutest.Driver(t)
	n := 1 // each takes a boot: task faults does ten
	if os.Getenv("REFBOX_FAULTS") != "" {
		n = cuts
	}
	powerCuts(t, d, t.TempDir(), n, 100*time.Millisecond, 10*time.Minute)
}

// powerCuts cuts a machine's power some times while two canaries write to it, and compares
// what they measure with what is on its disk.
func powerCuts(t *testing.T, d vm.Driver, dir string, times int, every, patience time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tpl, err := d.Prepare(ctx, vm.Spec{Machines: []vm.MachineSpec{machine()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(ctx, tpl, vm.Start{Name: "cut", Password: "x", AuthorizedKey: key, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m := c.Machine("host")
	for n := range times {
		cut(t, ctx, m, n, every)
		if t.Failed() {
			return
		}
	}
}

// side is a canary at one of the stores.
type side struct {
	name   string
	addr   string
	client *canary.Client
	record func(n uint64) canary.Record

	mu   sync.Mutex
	many chan struct{} // closed when that write, or a later one, is about to be sent
	want uint64
}

func (s *side) wrap(n uint64) canary.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want > 0 && n >= s.want {
		s.want = 0
		close(s.many)
	}
	return s.record(n)
}

// await waits until write n or a later one is about to be sent.
func (s *side) await(t *testing.T, ctx context.Context, n uint64) {
	t.Helper()
	s.mu.Lock()
	s.want, s.many = n, make(chan struct{})
	many := s.many
	s.mu.Unlock()
	select {
	case <-many:
	case <-ctx.Done():
		t.Fatalf("%s: write %d was not reached", s.name, n)
	}
}

func cut(t *testing.T, ctx context.Context, m vm.Machine, round int, every time.Duration) {
	began := time.Now()
	wctx, stop := context.WithCancel(ctx)
	defer stop()
	var live sync.WaitGroup
	defer live.Wait()
	var sides []*side
	for name, port := range map[string]int{"careful": carefulPort, "hasty": hastyPort} {
		addr, err := m.Addr(port)
		if err != nil {
			t.Fatal(err)
		}
		s := &side{name: name, addr: addr, record: func(n uint64) canary.Record {
			return canary.Record{ID: fmt.Sprintf("r%d-%d", round, n), Value: fmt.Sprintf("%d-%d", n, round)}
		}}
		s.client = canary.New(canary.Config{Addr: addr, Path: "/{id}", Record: s.wrap, Every: every, Wait: 2 * time.Second,
			Clock: func() uint64 { return uint64(time.Since(began).Milliseconds()) }, Say: func(...canary.Sample) {}})
		live.Go(func() { s.client.Run(wctx) })
		sides = append(sides, s)
	}
	hasty := sides[0]
	if hasty.name != "hasty" {
		hasty = sides[1]
	}
	// Somewhere between two records that the hasty one syncs, some of which the disk has.
	hasty.await(t, ctx, uint64(18+round%6))
	if err := m.PowerCut(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.PowerOnAgain(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range sides {
		serves(t, ctx, s.addr)
		s.await(t, ctx, 1) // one that may have been sent before that,
		s.await(t, ctx, 1) // and one that was not, once the next is about to be
		s.await(t, ctx, 1)
	}
	stop()
	live.Wait()
	for _, s := range sides {
		r := s.client.ReadBack(ctx, 20*time.Second)
		lost := truth(t, ctx, m, s, round)
		t.Logf("cut %d, %s: %d acknowledged, %d failed, %d indeterminate, %d lost over %d ms, down %d ms", round+1, s.name, r.Acknowledged, r.Failed, r.Indeterminate, r.Lost, r.LossMS, r.OutageMS)
		if r.Unread != 0 || r.Lost != uint64(len(lost)) {
			t.Errorf("cut %d, %s: %d lost and %d unread; of those acknowledged the disk lacks %v", round+1, s.name, r.Lost, r.Unread, lost)
		}
		if (r.Lost > 0) != (s.name == "hasty") || (r.LossMS > 0) != (s.name == "hasty") {
			t.Errorf("cut %d, %s: %d lost over %d ms", round+1, s.name, r.Lost, r.LossMS)
		}
		if n := len(r.Outages); n > 0 && r.Outages[n-1].AckMS == nil { // a simulated cut may fall between two writes
			t.Errorf("cut %d, %s: outages %+v", round+1, s.name, r.Outages)
		}
	}
}

// serves waits until something answers there.
func serves(t *testing.T, ctx context.Context, addr string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/none", nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := client.Do(req); err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nothing answers at %s", addr)
		}
	}
}

// truth are the acknowledged writes whose records the machine's disk lacks, by the guest's
// own shell.
func truth(t *testing.T, ctx context.Context, m vm.Machine, s *side, round int) []uint64 {
	t.Helper()
	res, err := m.Guest().Run(ctx, []string{"/bin/sh", "-c", "cd /var/lib/store/" + s.name + " && for f in r" + fmt.Sprint(round) + "-*; do echo $f $(cat $f); done"}, nil)
	if err != nil || res.Exit != 0 {
		t.Fatalf("read the disk: %+v, %v", res, err)
	}
	on := map[string]string{}
	for line := range strings.Lines(string(res.Stdout)) {
		id, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		on[id] = value
	}
	var lost []uint64
	for _, w := range s.client.History().Writes {
		r := s.record(w.Number)
		if w.Outcome == canary.Acknowledged && on[r.ID] != r.Value {
			lost = append(lost, w.Number)
		}
	}
	return lost
}
