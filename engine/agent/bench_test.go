package agent

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// idle keeps nothing.
type idle struct{}

func (idle) ActionStarted(Action)        {}
func (idle) ActionEnded(uint64, string)  {}
func (idle) ActionFinished(Finish)       {}
func (idle) SessionStarted(Session) Cast { return nil }

// BenchmarkExec runs commands through the gateway and directly on the same
// in-process server, alternately, and prints both with their ratio.
func BenchmarkExec(b *testing.B) {
	g := newGuest(b)
	g.bare = true
	gw, err := Open(Config{Machines: []string{"host"}, Dial: g.dial, Observer: idle{}, Password: password})
	if err != nil {
		b.Fatal(err)
	}
	defer gw.Close()
	through := enter(b, gw)
	direct, err := g.dial(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer direct.Close()
	run := func(c *ssh.Client) time.Duration {
		start := time.Now()
		s, err := c.NewSession()
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Run("true"); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	run(through)
	run(direct)
	var t, d []time.Duration
	for b.Loop() {
		t = append(t, run(through))
		d = append(d, run(direct))
	}
	slices.Sort(t)
	slices.Sort(d)
	for _, q := range []struct {
		name string
		at   func([]time.Duration) time.Duration
	}{
		{"min", func(x []time.Duration) time.Duration { return x[0] }},
		{"median", func(x []time.Duration) time.Duration { return x[len(x)/2] }},
		{"max", func(x []time.Duration) time.Duration { return x[len(x)-1] }},
	} {
		b.ReportMetric(float64(q.at(t).Microseconds()), "gateway-µs-"+q.name)
		b.ReportMetric(float64(q.at(d).Microseconds()), "direct-µs-"+q.name)
	}
	b.ReportMetric(float64(t[len(t)/2])/float64(d[len(d)/2]), "ratio-median")
}

// BenchmarkStream carries bytes through the gateway and back.
func BenchmarkStream(b *testing.B) {
	g := newGuest(b)
	g.bare = true
	gw, err := Open(Config{Machines: []string{"host"}, Dial: g.dial, Observer: idle{}, Password: password})
	if err != nil {
		b.Fatal(err)
	}
	defer gw.Close()
	direct, err := g.dial(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer direct.Close()
	for _, way := range []struct {
		name string
		c    *ssh.Client
	}{{"gateway", enter(b, gw)}, {"direct", direct}} {
		b.Run(way.name, func(b *testing.B) {
			s, err := way.c.NewSession()
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			in, _ := s.StdinPipe()
			out, _ := s.StdoutPipe()
			if err := s.Start("cat"); err != nil {
				b.Fatal(err)
			}
			const size = 1 << 20
			b.SetBytes(size)
			back, data := make([]byte, size), make([]byte, size)
			for b.Loop() {
				sent := make(chan error, 1)
				go func() { _, err := in.Write(data); sent <- err }()
				if _, err := io.ReadFull(out, back); err != nil {
					b.Fatal(err)
				}
				if err := <-sent; err != nil {
					b.Fatal(err)
				}
			}
			in.Close()
			s.Wait()
		})
	}
}
