package vm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestGet(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, "/long", http.StatusFound)
		case "/long":
			io.WriteString(w, strings.Repeat("x", 100))
		case "/cut":
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "short")
		case "/never":
			<-release
		}
	}))
	defer s.Close()
	defer close(release)
	addr := s.Listener.Addr().String()
	for _, tt := range []struct {
		path, body string
		status     int
	}{{"/long", "xxxxxxxxxx", 200}, {"/elsewhere", "<a href=\"/", 302}} {
		status, body, err := Get(t.Context(), addr, tt.path, 10)
		if status != tt.status || body != tt.body || err != nil {
			t.Errorf("%s: %d, %q, %v", tt.path, status, body, err)
		}
	}
	if status, _, err := Get(t.Context(), addr, "/cut", 10); err == nil {
		t.Errorf("half an answer is taken for one: %d", status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := Get(ctx, addr, "/never", 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
}
