package guest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/GehirnInc/crypt/sha512_crypt"
	"golang.org/x/crypto/ssh"
)

// Identity is all that makes one started machine itself.
type Identity struct {
	Hostname       string
	MachineID      string // 32 hex digits
	Entropy        []byte // 32 to 512 bytes, for the kernel's random state
	PasswordHash   string // root's, in crypt(5) form
	AuthorizedKeys string // root's, one line per key; "" for none
	HostKey        string // private, OpenSSH PEM
	HostKeyPublic  string // one line
	Hosts          []Host // the other machines of the cluster
	Links          []Link // this machine's private NICs
}

// Host is a line of /etc/hosts.
type Host struct {
	IP   string `json:"ip"`
	Name string `json:"name"`
}

// Link gives the NIC with that MAC an address; both stay over reboots.
type Link struct {
	MAC  string `json:"mac"`
	CIDR string `json:"cidr"` // e.g. "10.81.0.10/24"
}

// hashRounds is sha512-crypt's least: the password is random, lives for one
// heat, and an emulated processor pays for each round at each login.
const hashRounds = 1000

// NewIdentity makes a fresh identity: a host key, a machine id, entropy and the
// password's hash. Key may be nil. Hosts and Links are left to the caller.
func NewIdentity(hostname, password string, key ssh.PublicKey) (Identity, ssh.PublicKey, error) {
	id := Identity{Hostname: hostname, Entropy: make([]byte, 256)}
	_, _ = rand.Read(id.Entropy) // crypto/rand.Read never fails
	var machine [16]byte
	_, _ = rand.Read(machine[:])
	// systemd wants a random UUID's version and variant.
	machine[6] = machine[6]&0x0f | 0x40
	machine[8] = machine[8]&0x3f | 0x80
	id.MachineID = hex.EncodeToString(machine[:])

	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, nil, fmt.Errorf("make a host key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		return Identity{}, nil, fmt.Errorf("encode a host key: %w", err)
	}
	hostKey, err := ssh.NewPublicKey(pub)
	if err != nil {
		return Identity{}, nil, fmt.Errorf("encode a host key: %w", err)
	}
	id.HostKey = string(pem.EncodeToMemory(block))
	id.HostKeyPublic = string(ssh.MarshalAuthorizedKey(hostKey))

	if id.PasswordHash, err = hashPassword(password); err != nil {
		return Identity{}, nil, err
	}
	if key != nil {
		id.AuthorizedKeys = string(ssh.MarshalAuthorizedKey(key))
	}
	return id, hostKey, nil
}

func hashPassword(password string) (string, error) {
	var salt [8]byte
	_, _ = rand.Read(salt[:])
	hash, err := sha512_crypt.New().Generate([]byte(password),
		fmt.Appendf(nil, "$6$rounds=%d$%x", hashRounds, salt))
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// Clock is how a guest's clock stands.
type Clock struct {
	// Offset is the guest's clock less the host's, half the round trip taken
	// for the way; the guest's true offset is within RTT/2 of it.
	Offset time.Duration
	RTT    time.Duration
}

// clockClose is near enough not to set the clock again.
const clockClose = 5 * time.Millisecond

// Identify gives the guest an identity, sets its clock and reseeds its random
// state, in one round trip (and one more when the first one took so long that
// the clock may be off). When it returns, new SSH connections are answered with
// the new host key.
func (c *Client) Identify(ctx context.Context, id Identity) (Clock, error) {
	args := struct {
		TimeNS   int64  `json:"time_ns"`
		Hostname string `json:"hostname"`
		Machine  string `json:"machine_id"`
		Entropy  []byte `json:"entropy"`
		Password string `json:"password"`
		Keys     string `json:"authorized_keys"`
		HostKey  string `json:"host_key"`
		HostPub  string `json:"host_key_pub"`
		Hosts    []Host `json:"hosts"`
		Links    []Link `json:"links"`
	}{0, id.Hostname, id.MachineID, id.Entropy, id.PasswordHash, id.AuthorizedKeys,
		id.HostKey, id.HostKeyPublic, id.Hosts, id.Links}
	if _, _, err := c.ready(ctx); err != nil {
		return Clock{}, fmt.Errorf("guest identify: %w", err)
	}
	var out struct {
		TimeNS int64 `json:"time_ns"`
	}
	sent := time.Now()
	args.TimeNS = sent.UnixNano()
	if err := c.call(ctx, "identify", args, &out); err != nil {
		return Clock{}, err
	}
	clock := clockOf(out.TimeNS, sent, time.Now())
	if clock.Offset.Abs() <= clockClose && clock.RTT/2 <= clockClose {
		return clock, nil
	}
	return c.SetClock(ctx, 0)
}

// SetClock sets the guest's wall clock ahead of the host's by that much: it asks what the guest's
// clock says, a few times while the answers are slow, and puts it forward or
// back by what is missing, so that how long the request takes does not matter.
func (c *Client) SetClock(ctx context.Context, ahead time.Duration) (Clock, error) {
	if _, _, err := c.ready(ctx); err != nil {
		return Clock{}, fmt.Errorf("guest clock: %w", err)
	}
	var best Clock
	for try := range 4 {
		clock, err := c.clock(ctx, 0)
		if err != nil {
			return Clock{}, err
		}
		if try == 0 || clock.RTT < best.RTT {
			best = clock
		}
		if best.RTT/2 <= clockClose {
			break
		}
	}
	return c.clock(ctx, ahead-best.Offset)
}

// clock puts the guest's clock forward and tells how it stands then.
func (c *Client) clock(ctx context.Context, forward time.Duration) (Clock, error) {
	var out struct {
		TimeNS int64 `json:"time_ns"`
	}
	sent := time.Now()
	if err := c.call(ctx, "clock", map[string]int64{"forward_ns": int64(forward)}, &out); err != nil {
		return Clock{}, err
	}
	return clockOf(out.TimeNS, sent, time.Now()), nil
}

func clockOf(guestNS int64, sent, received time.Time) Clock {
	rtt := received.Sub(sent)
	return Clock{Offset: time.Duration(guestNS - sent.UnixNano() - int64(rtt/2)), RTT: rtt}
}
