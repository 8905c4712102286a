// Package probe is what verifiers may do to a seat, and what remains of it.
//
// A verifier is a Starlark file, or an executable that follows the reference's
// contract (recordings reference, section 5); Load decides by extension. Starlark
// reaches nothing but the values below: no files, no clock, no network of its own.
//
// A Starlark file defines verify(seat), which returns the evidence (a dict) or
// fails, and may define
//
//	before(seat)   runs before the milestone's operation (host_reboot)
//	boot           boot_attack("what is tried", wants, run, undo, ports=[]): makes
//	               that operation an attack. The host has the new boot of the first
//	               machine start the units named in wants, whatever the guest says,
//	               and watches those of the machine's ports from outside meanwhile:
//	               an answer on one is a refusal. Then run and undo as below.
//	               With cut=True, and no wants, the machines' power is cut at once
//	               after before(seat), with all that they had not flushed to their
//	               disks, and put on again
//	holds(seat)    fails when the milestone, once passed, no longer holds; run
//	               after every later check that restarts or reboots something
//	attacks        a list of attack("what is tried", run, undo); run(seat) fails
//	               when the seat did not withstand it, undo(seat) removes what it
//	               left and fails unless that is confirmed
//
// Globals:
//
//	require(cond, reason, final=False)    refuses the milestone unless cond
//	fail(reason, final=False)             refuses it; final: for good, no later
//	                                      attempt at it is made
//	eventually(fn, timeout=5, every=0.1)  calls fn() until it neither fails nor
//	                                      returns False; gives its result
//	attack, boot_attack, struct, json
//
// Times are seconds, as int or float. A seat has
//
//	seat.id, seat.attempt
//	seat.http(method, path, body=None, timeout=2, port=None, machine=None)
//	     from outside, through the forward of the public service; gives
//	     struct(status, body, error, took); error is "" or "closed", "timeout",
//	     "malformed", and status is then 0; took is seconds
//	seat.get_all(paths, timeout=2, port=None, machine=None)
//	     GETs at the same time, at most 64; gives the list of their replies
//	seat.http_all(requests, timeout=2, port=None, machine=None)
//	     the same with dicts of method, path, body and after, the seconds to wait
//	     before that one is sent; only path must be given
//	seat.watch(paths, writes="", every=0.1)
//	     asks the public service from outside from now on until the seat ends, and
//	     gives what came of it up to now: watch.go
//	seat.set_clock(ahead, machine=None)
//	     sets the guest's clock ahead of the host's by so many seconds
//	seat.canary()
//	     what the referee's client has measured up to now, its acknowledged writes
//	     read back: canary.go
//	seat.port(n, machine=None, postgres=False)
//	     from outside: "open" (something answers), "closed" (reset or refused),
//	     "silent" (neither within half a second, as behind a firewall that drops).
//	     postgres: PostgreSQL answers nothing else than its own protocol
//	seat.power(machine=None)              "on", "paused", "off": from outside
//	seat.console_contains(text)           in the serial console's last 256 KiB
//	seat.machine(name)                    a machine: name, guest, http, port, power
//	seat.guest                            the first machine's guest
//	seat.value(name)                      struct(id, value), secret, same all heat
//	seat.fresh(name)                      struct(id, value), new in every attempt
//	seat.previous(milestone)              evidence it passed with, or None
//
// and a guest, whose answers root could forge, all of them,
//
//	guest.read(path, limit=65536)         text, or None when there is no file
//	guest.exists(path)
//	guest.write(path, text, mode=0o644), guest.remove(path)
//	guest.unit(name)                      struct(load, active, sub, file, pid, restarts)
//	guest.systemctl(action, unit)         struct(exit, stdout, stderr)
//	guest.listeners()                     list of struct(ip, port, process, pid)
//	guest.listening(port)
//	guest.http(method, url, body=None, timeout=2)   struct(status, body, error);
//	     from inside; error also "refused", "reset"
//	guest.run(argv, stdin="", timeout=10) struct(exit, stdout, stderr)
//	guest.sync()
//
// A run of a function takes at most 500,000 steps and 64 MiB for what it builds in
// one go (bounds.go); for that, calls take no *args or **kwargs, and += and its kin
// change names only.
//
// Promises: every call leaves a Record with request, bounded and sanitised
// response, instants, and what root could forge; a failure has a category and
// says who is charged; a transport failure is retried inside the call and never
// charged to a player; an evaluation ends with its context.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Category of a failure (design: section 5).
type Category string

const (
	Contract  Category = "contract"  // the service or the guest is wrong
	Transport Category = "transport" // the way to the guest failed
	Timeout   Category = "timeout"   // not done within the milestone's time
	Broken    Category = "verifier"  // the verifier itself is at fault
)

// Failure is why an evaluation did not pass. Every error of a Verifier is one.
type Failure struct {
	Category Category
	Source   string // who is charged, in the reference's words
	Reason   string // sanitised
	Final    bool   // no later attempt at the milestone can pass
}

func (f *Failure) Error() string { return f.Reason }

// ErrGone is wrapped by errors of a seat whose machine has ended for good.
var ErrGone = errors.New("the machine is gone")

// Charged is the source that a category is charged to when nothing better is
// known.
func (c Category) Charged() string {
	switch c {
	case Contract, Timeout:
		return "player"
	case Transport:
		return "controller"
	}
	return "arena"
}

func failure(c Category, format string, args ...any) *Failure {
	return &Failure{Category: c, Source: c.Charged(), Reason: bounded(fmt.Sprintf(format, args...), maxReason)}
}

// Boot is a reboot that is an attack.
type Boot struct {
	Words string
	Wants []string // units that the host has the boot of the first machine start
	Ports []int    // of that machine that must not answer meanwhile
	Cut   bool     // the power of all machines is cut and put on again; without Wants
	// Run looks at what came of it, Undo removes what it left, as with other
	// attacks.
	Run, Undo func(ctx context.Context, a *Attempt) error
}

// Verifier decides one milestone. Its methods may be called for several seats at
// once; for one seat, one after the other.
type Verifier interface {
	// SHA256 is of the verifier's file, hex.
	SHA256() string
	// Before prepares the milestone's operation.
	Before(ctx context.Context, a *Attempt) error
	// Verify returns the evidence, a JSON value of at most 64 KiB.
	Verify(ctx context.Context, a *Attempt) (json.RawMessage, error)
	// Boot is the attack that the milestone's reboot is; nil for a plain one.
	Boot() *Boot
	// Attacks are what the milestone must withstand, in words.
	Attacks() []string
	// Attack runs the attack of that index; an error of category contract means
	// that the seat did not withstand it.
	Attack(ctx context.Context, a *Attempt, i int) error
	// Undo removes what the attack left; nil means that this was confirmed.
	Undo(ctx context.Context, a *Attempt, i int) error
	// Holds looks again at a milestone that passed.
	Holds(ctx context.Context, a *Attempt) error
}
