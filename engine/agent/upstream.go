package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	perLink       = 10               // channels on one connection: OpenSSH's MaxSessions
	connectTime   = 20 * time.Second // for a machine to answer before an action fails
	dialTime      = 5 * time.Second  // of the first attempt; doubled for each further one
	answerTime    = 30 * time.Second // for an SSH server to answer a request
	keepaliveTime = 5 * time.Second
	staleTime     = 30 * time.Second // without an answer no new channel is opened
)

// upstream is the gateway's connections to one machine: one that stays, more
// while it is full.
type upstream struct {
	g       *Gateway
	machine string
	dialing chan struct{} // one dials, the others wait to share its connection

	mu    sync.Mutex
	links []*link
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
	return &upstream{g: g, machine: machine, dialing: make(chan struct{}, 1)}
}

// channel opens a channel to the machine, on a connection that lives or a new
// one; it waits, within bounds, for a machine that is starting. The caller
// releases the link after the channel has ended.
func (u *upstream) channel(ctx context.Context, kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, *link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for tries := 0; ; {
		l, err := u.acquire(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		guard := l.guard()
		ch, reqs, err := l.client.OpenChannel(kind, extra)
		guard()
		if err == nil {
			return ch, reqs, l, nil
		}
		var refused *ssh.OpenChannelError
		switch {
		case !errors.As(err, &refused):
			l.end("") // broken: take another
		case kind == "session" && l.full():
		case kind == "session" && tries < 20 && pause(ctx, 50*time.Millisecond) == nil:
			tries++ // a server may count sessions that have just ended
		default:
			l.release()
			return nil, nil, nil, fmt.Errorf("machine %s refused: %s", u.machine, refused.Message)
		}
		l.release()
	}
}

// acquire finds room on a link or dials.
func (u *upstream) acquire(ctx context.Context) (*link, error) {
	wait, last := dialTime, error(nil)
	for {
		if l := u.room(); l != nil {
			return l, nil
		}
		select {
		case u.dialing <- struct{}{}:
		case <-ctx.Done():
			return nil, u.unreachable(ctx, last)
		}
		l := u.room() // somebody may have dialled meanwhile
		if l != nil {
			<-u.dialing
			return l, nil
		}
		dctx, cancel := context.WithTimeout(ctx, wait)
		client, err := u.g.cfg.Dial(dctx, u.machine)
		cancel()
		if err == nil {
			l = u.add(client)
		}
		<-u.dialing
		if l != nil {
			return l, nil
		}
		if err != nil {
			last = err
		}
		wait *= 2
		if pause(ctx, 200*time.Millisecond) != nil {
			return nil, u.unreachable(ctx, last)
		}
	}
}

func (u *upstream) unreachable(ctx context.Context, last error) error {
	if u.g.ctx.Err() != nil {
		return errors.New("the gateway closed")
	}
	if last == nil {
		last = ctx.Err()
	}
	return fmt.Errorf("machine %s does not answer: %w", u.machine, last)
}

func (u *upstream) room() *link {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.links {
		if !l.stale && l.open < l.limit {
			l.open++
			return l
		}
	}
	return nil
}

// add takes a new connection, with one channel's room taken; nil when the
// gateway has closed meanwhile.
func (u *upstream) add(client *ssh.Client) *link {
	l := &link{up: u, client: client, ended: make(chan struct{}), open: 1, limit: perLink}
	u.mu.Lock()
	closed := u.g.ctx.Err() != nil
	if !closed {
		u.links = append(u.links, l)
		// Under mu, and so before Close, which drops the links after it has
		// cancelled, begins to wait.
		u.g.wg.Go(l.watch)
	}
	u.mu.Unlock()
	if closed {
		client.Close()
		client.Wait()
		return nil
	}
	return l
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
		for pause(ctx, keepaliveTime) == nil {
			slow := time.AfterFunc(staleTime, func() { l.setStale(true) })
			_, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil)
			slow.Stop()
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
	t := time.AfterFunc(answerTime, func() { l.end("the machine's SSH server does not answer") })
	return func() { t.Stop() }
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
