// Package hello holds the simulated twin of the program that the hello-service
// arena, and every package made from it, lays into its guests: the same files, the
// same answers.
package hello

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"refbox/vm/sim"
)

// Programs are the twins, for sim.Config.
func Programs() map[string]sim.Program {
	return map[string]sim.Program{"/opt/arena/app.py": app}
}

func app(ctx context.Context, p *sim.Process) error {
	data, err := p.ReadFile("/etc/arena/port")
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 16)
	if err != nil {
		return fmt.Errorf("/etc/arena/port: %w", err)
	}
	return p.Serve(ctx, fmt.Sprintf(":%d", port), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusNotImplemented)
		case r.URL.Path == "/health":
			io.WriteString(w, "ready") //nolint:errcheck // the client has left
		case r.URL.Path == "/greeting":
			text, err := p.ReadFile("/var/lib/arena/greeting")
			if err != nil {
				panic(http.ErrAbortHandler) // as the twin's exception does
			}
			w.Write(bytes.TrimSpace(text)) //nolint:errcheck // the client has left
		default:
			http.Error(w, "not found", http.StatusNotFound)
		}
	}))
}
