// Package failover holds the simulated twins of the programs that the
// primary-failover arena lays into its guests: the same API, the same files,
// the same answers, byte for byte, as the Python programs. Its test holds both
// to that.
//
// What differs: a database is a JSON file, not SQLite; its name is the same.
package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"refbox/vm/sim"
)

const (
	stateDir = "/var/lib/failover"
	maxValue = 64 << 10
)

var recordPath = regexp.MustCompile(`^/records/([a-z0-9-]{1,64})$`)

// Programs are the twins, for sim.Config. The arena's shell scripts (seed,
// setup) need none: the simulated shell runs them as they are.
func Programs() map[string]sim.Program {
	return map[string]sim.Program{
		"/opt/failover/primary.py": primary,
		"/opt/failover/replica.py": replica,
		"/opt/failover/proxy.py":   proxy,
		"/opt/failover/seat":       seat,
	}
}

func state(name string) string { return stateDir + "/" + name }

// store is a database: every change is on disk when the call returns.
type store struct {
	p    *sim.Process
	path string
	mu   sync.Mutex
}

func openStore(p *sim.Process, name string) (*store, error) {
	if err := p.MkdirAll(stateDir, 0o755); err != nil {
		return nil, err
	}
	s := &store{p: p, path: state(name)}
	if _, err := p.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		return s, s.save(map[string]string{})
	}
	return s, nil
}

func (s *store) load() (map[string]string, error) {
	data, err := s.p.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	records := map[string]string{}
	if err := json.Unmarshal(data, &records); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return records, nil
}

func (s *store) save(records map[string]string) error {
	data, err := json.Marshal(records)
	if err != nil {
		return err
	}
	if err := s.p.WriteFile(s.path, data, 0o644); err != nil {
		return err
	}
	return s.p.SyncFile(s.path)
}

func (s *store) change(f func(map[string]string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, err := s.load()
	if err != nil {
		return err
	}
	f(records)
	return s.save(records)
}

func primary(ctx context.Context, p *sim.Process) error {
	return serveRecords(ctx, p, "primary.sqlite3", ":8081", func() string { return "primary" })
}

func replica(ctx context.Context, p *sim.Process) error {
	return serveRecords(ctx, p, "replica.sqlite3", ":8082", func() string {
		role, err := p.ReadFile(state("replica.role"))
		if err == nil && strings.TrimSpace(string(role[:min(len(role), 64)])) == "primary" {
			return "primary"
		}
		return "replica"
	})
}

func serveRecords(ctx context.Context, p *sim.Process, database, addr string, role func() string) error {
	s, err := openStore(p, database)
	if err != nil {
		return err
	}
	return p.Serve(ctx, addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := s.serve(r, role)
		answer(w, status, body)
	}))
}

func (s *store) serve(r *http.Request, role func() string) (status int, body string) {
	const readOnly = "read-only: not the primary"
	record := recordPath.FindStringSubmatch(r.RequestURI)
	switch r.Method {
	case http.MethodGet:
		switch r.RequestURI {
		case "/health":
			return 200, "ready"
		case "/role":
			return 200, role()
		}
		if record != nil {
			records, err := s.load()
			if err != nil {
				return 500, ""
			}
			if value, ok := records[record[1]]; ok {
				return 200, value
			}
		}
		return 404, "no such record"
	case http.MethodPut:
		if record == nil {
			return 404, "no such record"
		}
		value, status, why := readBody(r, "")
		if status != 0 {
			return status, why
		}
		if role() != "primary" {
			return 503, readOnly
		}
		if s.change(func(m map[string]string) { m[record[1]] = value }) != nil {
			return 500, ""
		}
		return 204, ""
	case http.MethodDelete:
		if record == nil {
			return 404, "no such record"
		}
		if role() != "primary" {
			return 503, readOnly
		}
		if s.change(func(m map[string]string) { delete(m, record[1]) }) != nil {
			return 500, ""
		}
		return 204, ""
	}
	return 501, ""
}

// readBody reads a body whose length is declared; absent is the length when it
// is not.
func readBody(r *http.Request, absent string) (body string, status int, why string) {
	length := r.Header.Get("Content-Length")
	if length == "" {
		length = absent
	}
	n, err := strconv.ParseUint(length, 10, 63)
	if err != nil {
		return "", 411, "length required"
	}
	if n > maxValue {
		// A connection that is closed with something unread is reset, and the reset may
		// overtake the answer. A slightly too large value is what gets one for certain.
		io.CopyN(io.Discard, r.Body, int64(min(n, 2*maxValue))) //nolint:errcheck // the client may have gone
		return "", 413, "too large"
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, int64(n)))
	if err != nil || uint64(len(data)) != n {
		panic(http.ErrAbortHandler) // the client has gone
	}
	return string(data), 0, ""
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header()["Content-Type"] = nil
	w.WriteHeader(status)
	if status != 204 {
		io.WriteString(w, body) //nolint:errcheck // the client may have gone
	}
}

func proxy(ctx context.Context, p *sim.Process) error {
	client := p.HTTP()
	return p.Serve(ctx, ":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodPut, http.MethodDelete:
		default:
			answer(w, 501, "")
			return
		}
		body, status, why := readBody(r, "0")
		if status != 0 {
			answer(w, status, why)
			return
		}
		status, body = forward(r, client, p, body)
		answer(w, status, body)
	}))
}

func forward(r *http.Request, client *http.Client, p *sim.Process, body string) (int, string) {
	data, err := p.ReadFile(state("upstream"))
	if err != nil {
		return 502, "no upstream"
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(data[:min(len(data), 16)])), 10, 16)
	if err != nil || port == 0 {
		return 502, "no upstream"
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	dead := fmt.Sprintf("upstream %d does not answer", port)
	req, err := http.NewRequestWithContext(ctx, r.Method, fmt.Sprintf("http://127.0.0.1:%d%s", port, r.RequestURI), strings.NewReader(body))
	if err != nil {
		return 502, dead
	}
	res, err := client.Do(req)
	if err != nil {
		return 502, dead
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, maxValue+1))
	if err != nil {
		return 502, dead
	}
	return res.StatusCode, string(got)
}

// seat gives both databases the records of its standard input.
func seat(_ context.Context, p *sim.Process) error {
	var input struct {
		Values map[string]struct{ ID, Value string }
	}
	if err := json.NewDecoder(p.Stdin()).Decode(&input); err != nil {
		return err
	}
	if len(input.Values) == 0 {
		return errors.New("no values")
	}
	records := map[string]string{}
	for _, v := range input.Values {
		records[v.ID] = v.Value
	}
	if err := p.MkdirAll(stateDir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"primary.sqlite3", "replica.sqlite3"} {
		s := &store{p: p, path: state(name)}
		if err := s.save(records); err != nil {
			return err
		}
	}
	return nil
}
