package sim

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/fstest"
	"time"

	"refbox/vm"
	"refbox/vm/vmtest"
)

const conformUnit = `[Unit]
Description=conformance service

[Service]
ExecStart=/usr/bin/python3 /opt/conform/conform.py
Restart=always

[Install]
WantedBy=multi-user.target
`

// conform is the service that vmtest.Fixture asks for.
func conform(ctx context.Context, p *Process) error {
	const dir = "/var/lib/conform/"
	if err := p.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "pong\n") })
	mux.HandleFunc("GET /kv/{key}", func(w http.ResponseWriter, r *http.Request) {
		data, err := p.ReadFile(dir + r.PathValue("key"))
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Write(data)
	})
	mux.HandleFunc("PUT /kv/{key}", func(w http.ResponseWriter, r *http.Request) {
		at := dir + r.PathValue("key")
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = p.WriteFile(at, data, 0o644)
		}
		if err == nil {
			err = p.SyncFile(at)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return p.Serve(ctx, ":8080", mux)
}

func conformFixture(lose bool) vmtest.Fixture {
	return vmtest.Fixture{
		Driver: New(Config{Programs: map[string]Program{"/opt/conform/conform.py": conform}, LoseUnsynced: lose}),
		Machine: func(name string) vm.MachineSpec {
			return vm.MachineSpec{
				Name: name, VCPUs: 1, MemoryMiB: 128, DiskMiB: 256, Forwards: []int{8080, 8081},
				Files: fstest.MapFS{
					"opt/conform/conform.py":             {Data: []byte("#!/usr/bin/python3\n")},
					"etc/systemd/system/conform.service": {Data: []byte(conformUnit)},
				},
				Setup: []string{"/bin/sh", "-c", "systemctl daemon-reload && systemctl enable --now conform.service"},
			}
		},
		Helper:   agentPath,
		Patience: 20 * time.Second,
	}
}

func TestConformance(t *testing.T) {
	for name, lose := range map[string]bool{"KeepUnsynced": false, "LoseUnsynced": true} {
		t.Run(name, func(t *testing.T) { vmtest.Run(t, conformFixture(lose)) })
	}
}

func TestInjectedFaults(t *testing.T) {
	f := conformFixture(true)
	f.Unflushed = "echo new >/var/lib/cut/file"
	vmtest.Faults(t, f)
}
