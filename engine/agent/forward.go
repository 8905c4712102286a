package agent

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// directTCPIP is the payload of a direct-tcpip channel (RFC 4254, section 7.2).
type directTCPIP struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}

// target decides where a forward may lead: to a loopback port of the client's
// own machine, or of the seat's machine of that name. The connection is made
// inside the guest; nothing here ever dials for a player.
func (c *client) target(d directTCPIP) (machine, host string, ok bool) {
	if d.Port == 0 || d.Port > 65535 {
		return "", "", false
	}
	if slices.Contains(c.g.cfg.Machines, d.Host) {
		return d.Host, "127.0.0.1", true
	}
	if d.Host == "localhost" {
		return c.machine, "localhost", true
	}
	if ip, err := netip.ParseAddr(d.Host); err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback() {
		return c.machine, ip.Unmap().String(), true
	}
	return "", "", false
}

// forward is one port forward, an action of its own.
func (c *client) forward(nc ssh.NewChannel) {
	var d directTCPIP
	if err := ssh.Unmarshal(nc.ExtraData(), &d); err != nil {
		nc.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	want := net.JoinHostPort(line(d.Host), strconv.FormatUint(uint64(d.Port), 10))
	machine, host, ok := c.target(d)
	if !ok {
		c.g.refuse(c.machine, want, "a forward leads to the loopback of the seat's own machines only")
		nc.Reject(ssh.Prohibited, "a forward leads to the loopback of your own machines only")
		return
	}
	act := c.g.begin(ChannelForward, machine, want, 0)
	up, upReqs, l, err := c.g.machines[machine].channel(c.g.ctx, "direct-tcpip",
		ssh.Marshal(directTCPIP{Host: host, Port: d.Port, OriginHost: "127.0.0.1"}))
	if err != nil {
		why := line(err.Error())
		act.finish(nil, "", 0, why)
		nc.Reject(ssh.ConnectionFailed, why)
		return
	}
	defer l.release()
	ch, reqs, err := nc.Accept()
	if err != nil {
		up.Close()
		discard(upReqs)
		act.finish(nil, "", 0, "the player ended the connection")
		return
	}
	in, out := carry(c, l, ch, reqs, up, upReqs)
	act.finish(nil, "", out, fmt.Sprintf("%d bytes to the machine, %d from it", in, out))
}

// carry joins two channels until both have ended, and counts what went each
// way.
func carry(c *client, l *link, ch ssh.Channel, reqs <-chan *ssh.Request, up ssh.Channel, upReqs <-chan *ssh.Request) (in, out uint64) {
	var nIn, nOut atomic.Uint64
	inDone, outDone := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(inDone)
		copyStream(up, ch, func(p []byte) { nIn.Add(uint64(len(p))) })
		up.CloseWrite()
	})
	all.Go(func() {
		defer close(outDone)
		copyStream(ch, up, func(p []byte) { nOut.Add(uint64(len(p))) })
		ch.CloseWrite()
	})
	upClosed, chClosed := make(chan struct{}), make(chan struct{})
	all.Go(func() { discard(upReqs); close(upClosed) })
	all.Go(func() { discard(reqs); close(chClosed) })

	select {
	case <-chClosed: // what the client sent last still goes to the machine
		t := time.NewTimer(linger)
		select {
		case <-inDone:
		case <-upClosed:
		case <-t.C:
		}
		t.Stop()
	case <-upClosed: // and the other way, at the client's pace
		select {
		case <-outDone:
		case <-chClosed:
		}
	case <-bothDone(inDone, outDone, &all):
	}
	// Both ends confirm a close, or lose their connection.
	t := time.AfterFunc(linger, func() {
		if !closed(upClosed) {
			l.end("the machine's SSH server does not confirm a close")
		}
		if !closed(chClosed) {
			c.conn.Close()
		}
	})
	up.Close()
	ch.Close()
	all.Wait()
	t.Stop()
	return nIn.Load(), nOut.Load()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func bothDone(a, b <-chan struct{}, wg *sync.WaitGroup) <-chan struct{} {
	both := make(chan struct{})
	wg.Go(func() { <-a; <-b; close(both) })
	return both
}

func discard(reqs <-chan *ssh.Request) {
	for r := range reqs {
		r.Reply(false, nil)
	}
}
