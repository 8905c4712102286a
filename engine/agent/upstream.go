package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"refbox/engine/internal/pause"
)

const (
	perLink       = 10               // channels on one connection: OpenSSH's MaxSessions
	connectTime   = 60 * time.Second // without any connection before a waiting action fails
	dialTime      = 60 * time.Second // of one attempt
	answerTime    = 60 * time.Second // for an SSH server to answer a request
	keepaliveTime = 5 * time.Second
	staleTime     = 60 * time.Second // without an answer no new channel is opened
	refusalTries  = 20               // of a session, 50 ms apart
	brokenTries   = 5                // of connections that break at once
)

// upstream is the gateway's connections to one machine: one that stays, more
// while it is full. Connections are made one at a time and shared by whoever
// waits: under load a handshake takes seconds, and giving it up only to begin
// another would make it take for ever.
type upstream struct {
	g       *Gateway
	machine string

	mu      sync.Mutex
	links   []*link
	changed chan struct{} // closed and made anew when waiting may be over
	dialing bool
	added   time.Time // when the last connection was made
	last    error     // of the last attempt; nil when it succeeded
}

// link is one connection to a machine's SSH server.
type link struct {
	up     *upstream
	client *ssh.Client
	ended  chan struct{} // closed once it is known why

	// Guarded by up.mu.
	open   int // channels
	limit  int
	stale  bool
	gone   bool
	reason string // why it was ended; "" when it broke by itself
}

func newUpstream(g *Gateway, machine string) *upstream {
	return &upstream{g: g, machine: machine, changed: make(chan struct{})}
}

// channel opens a channel to the machine, on a connection that lives or a new
// one; it waits, within bounds, for a machine that is starting. The caller
// releases the link after the channel has ended.
func (u *upstream) channel(ctx context.Context, kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, *link, error) {
	for refusals, breaks := 0, 0; ; {
		l, err := u.acquire(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		answered := l.guard()
		ch, reqs, err := l.client.OpenChannel(kind, extra)
		answered()
		if err == nil {
			return ch, reqs, l, nil
		}
		var refused *ssh.OpenChannelError
		switch {
		case !errors.As(err, &refused):
			l.end("")
			breaks++
			if breaks >= brokenTries {
				l.release()
				return nil, nil, nil, fmt.Errorf("machine %s ends every connection: %w", u.machine, err)
			}
		case kind == "session" && l.full():
		case kind == "session" && refusals < refusalTries && pause.For(ctx, 50*time.Millisecond):
			refusals++ // a server may count sessions that have just ended
		default:
			l.release()
			return nil, nil, nil, fmt.Errorf("machine %s refused: %s", u.machine, refused.Message)
		}
		l.release()
	}
}

// acquire waits for room on a link. It gives up when no connection could be
// made for connectTime.
func (u *upstream) acquire(ctx context.Context) (*link, error) {
	since, _ := u.g.hold.now()
	for {
		l, changed, err := u.try(since)
		if l != nil || err != nil {
			return l, err
		}
		t := time.NewTimer(connectTime)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return nil, u.unreachable(nil)
		}
	}
}

// try takes room on a link, or sees to it that there will be some and returns
// what to wait for.
func (u *upstream) try(since time.Time) (*link, <-chan struct{}, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.g.ctx.Err() != nil {
		return nil, nil, u.unreachable(nil)
	}
	for _, l := range u.links {
		if !l.stale && l.open < l.limit {
			l.open++
			return l, nil, nil
		}
	}
	if u.added.After(since) {
		since = u.added
	}
	if now, held := u.g.hold.now(); !held && now.Sub(since) >= connectTime {
		return nil, nil, u.unreachable(u.last)
	}
	if !u.dialing {
		u.dialing = true
		// Under mu, and so before Close, which takes it after it has
		// cancelled, begins to wait.
		u.g.wg.Go(u.dial)
	}
	return nil, u.changed, nil
}

func (u *upstream) unreachable(last error) error {
	switch {
	case u.g.ctx.Err() != nil:
		return errors.New("the gateway closed")
	case last != nil:
		return fmt.Errorf("machine %s does not answer: %w", u.machine, last)
	}
	return fmt.Errorf("machine %s does not answer", u.machine)
}

// dial makes one attempt at a connection.
func (u *upstream) dial() {
	ctx, cancel := context.WithCancel(u.g.ctx)
	stop := u.g.hold.after(dialTime, cancel)
	client, err := u.g.cfg.Dial(ctx, u.machine)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no connection within %v: %w", dialTime, err)
	}
	stop()
	cancel()
	if err != nil {
		pause.For(u.g.ctx, 200*time.Millisecond)
	}
	u.mu.Lock()
	u.dialing, u.last = false, err
	closed := u.g.ctx.Err() != nil
	if err == nil && !closed {
		l := &link{up: u, client: client, ended: make(chan struct{}), limit: perLink}
		u.links = append(u.links, l)
		u.added, _ = u.g.hold.now()
		u.g.wg.Go(l.watch)
	}
	u.wake()
	u.mu.Unlock()
	if err == nil && closed {
		client.Close()
		client.Wait()
	}
}

// wake lets those who wait look again; mu is held.
func (u *upstream) wake() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// drop ends the connections there are.
func (u *upstream) drop(reason string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.links {
		l.kill(reason)
	}
	u.links = nil
}

// kill ends the link; up.mu is held.
func (l *link) kill(reason string) {
	if !l.gone {
		l.gone, l.reason = true, reason
		l.client.Close()
	}
}

// watch keeps asking whether the machine is there, which is also what makes a
// connection break whose machine was reset, and cleans up after its end.
func (l *link) watch() {
	u := l.up
	ctx, cancel := context.WithCancel(u.g.ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for pause.For(ctx, keepaliveTime) {
			fresh := u.g.hold.after(staleTime, func() { l.setStale(true) })
			_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
			fresh()
			if err != nil {
				return
			}
			l.setStale(false)
		}
	})
	l.client.Wait()
	u.mu.Lock()
	l.gone = true
	u.remove(l)
	u.mu.Unlock()
	close(l.ended)
	cancel()
	wg.Wait()
}

func (l *link) setStale(stale bool) {
	l.up.mu.Lock()
	defer l.up.mu.Unlock()
	l.stale = stale
}

// remove takes l off the list; mu is held.
func (u *upstream) remove(l *link) {
	for i, x := range u.links {
		if x == l {
			u.links = append(u.links[:i:i], u.links[i+1:]...)
			return
		}
	}
}

// release gives a channel's room back. A link that is idle while another
// exists is closed.
func (l *link) release() {
	u := l.up
	u.mu.Lock()
	defer u.mu.Unlock()
	l.open--
	u.wake()
	if l.open == 0 && len(u.links) > 1 {
		u.remove(l)
		l.kill("idle")
	}
}

// full tells, of a server that refused a session, that it would take no more
// beside others; false when there are no others, or the link has ended.
func (l *link) full() bool {
	l.up.mu.Lock()
	defer l.up.mu.Unlock()
	if l.open <= 1 {
		return false
	}
	l.limit = max(1, min(l.limit, l.open-1))
	return true
}

// guard ends the link unless the function it returns is called in time: the
// only way out of a request that a server never answers.
func (l *link) guard() (done func()) {
	return l.up.g.hold.after(answerTime, func() { l.end("the machine's SSH server does not answer") })
}

// end ends the link and offers it to nobody else.
func (l *link) end(reason string) {
	l.up.mu.Lock()
	defer l.up.mu.Unlock()
	l.up.remove(l)
	l.kill(reason)
}

// lost says why the link ended; "" while it lives. A link's channels end a
// moment before the link is known to have, so it waits that moment.
func (l *link) lost() string {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-l.ended:
	case <-t.C:
	}
	l.up.mu.Lock()
	defer l.up.mu.Unlock()
	switch {
	case !l.gone:
		return ""
	case l.reason != "":
		return l.reason
	}
	return fmt.Sprintf("the connection to machine %s was lost", l.up.machine)
}
