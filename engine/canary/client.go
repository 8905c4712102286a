package canary

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"refbox/engine/internal/pause"
)

// Record is an id and a value, both URL-safe.
type Record struct{ ID, Value string }

// Config is what a client does.
type Config struct {
	Addr   string                  // of the public port, host:port
	Path   string                  // of a record; {id} stands for its id
	Record func(n uint64) Record   // of write n
	Known  *Record                 // one that is there without being written; nil for none
	Every  time.Duration           // between two writes, unless one takes longer
	Wait   time.Duration           // for the answer to one request
	Clock  func() uint64           // the heat's, ms
	Say    func(samples ...Sample) // from Run's goroutine
}

// Client is one client. Run is called once, ReadBack after it returned.
type Client struct {
	cfg  Config
	log  Log
	said samples

	mu   sync.Mutex
	held chan struct{} // closed by Release; nil when not held
	busy sync.Mutex    // held while a request is under way
}

// New makes a client; it does nothing before Run.
func New(cfg Config) *Client { return &Client{cfg: cfg} }

// History is what Run has seen; read it once Run returned.
func (c *Client) History() *Log { return &c.log }

// Hold lets what is under way end, and nothing begin until Release: machines are about
// to be frozen, which is no failure of theirs.
func (c *Client) Hold() {
	c.mu.Lock()
	if c.held == nil {
		c.held = make(chan struct{})
	}
	c.mu.Unlock()
	c.busy.Lock()
	//lint:ignore SA2001 it was free, so nothing is under way
	c.busy.Unlock()
}

// Release undoes Hold.
func (c *Client) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		close(c.held)
		c.held = nil
	}
}

// begin waits until it is not held, and then keeps Hold waiting until busy is unlocked.
func (c *Client) begin(ctx context.Context) bool {
	for ctx.Err() == nil {
		c.busy.Lock()
		c.mu.Lock()
		held := c.held
		c.mu.Unlock()
		if held == nil {
			return true
		}
		c.busy.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	return false
}

// readEvery: while the service serves, so many writes come with one read.
const readEvery = 4

// Run writes until ctx ends, or MaxWrites were made. A request that is under way then is
// seen through, which takes Config.Wait at most: cut off, it would look like an outage.
func (c *Client) Run(ctx context.Context) {
	tick := time.NewTicker(c.cfg.Every)
	defer tick.Stop()
	acknowledged := uint64(0) // the last
	last := None              // answer to a read
	for n := uint64(1); n <= MaxWrites && c.begin(ctx); n++ {
		w := c.write(context.WithoutCancel(ctx), n)
		if w.Outcome == Acknowledged {
			acknowledged = n
		}
		if ctx.Err() == nil && (w.Outcome != Acknowledged || last != Right || n%readEvery == 0) {
			last = c.read(context.WithoutCancel(ctx), acknowledged)
		}
		c.busy.Unlock()
		if out := c.said.add(w); len(out) > 0 {
			c.cfg.Say(out...)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	if out := c.said.flush(nil); len(out) > 0 {
		c.cfg.Say(out...)
	}
}

func (c *Client) write(ctx context.Context, n uint64) Write {
	r := c.cfg.Record(n)
	w := Write{Number: n, SentMS: c.cfg.Clock()}
	a := c.ask(ctx, c.cfg.Wait, http.MethodPut, r.ID, []byte(r.Value))
	w.DoneMS, w.Outcome = c.cfg.Clock(), classify(a)
	c.log.Writes = append(c.log.Writes, w)
	return w
}

// read reads the record of write n, or the known one if n is 0; if there is none, there
// is nothing that could be wrong.
func (c *Client) read(ctx context.Context, n uint64) Answer {
	var want Record
	switch {
	case n > 0:
		want = c.cfg.Record(n)
	case c.cfg.Known != nil:
		want = *c.cfg.Known
	default:
		return Right
	}
	sent := c.cfg.Clock()
	a := c.look(ctx, want, c.cfg.Wait)
	c.log.Reads = append(c.log.Reads, Read{sent, c.cfg.Clock(), a})
	return a
}

// look reads one record.
func (c *Client) look(ctx context.Context, want Record, wait time.Duration) Answer {
	a := c.ask(ctx, wait, http.MethodGet, want.ID, nil)
	switch {
	case a.status == http.StatusOK && string(a.body) == want.Value:
		return Right
	case a.status == http.StatusOK:
		return Wrong
	case a.status == http.StatusNotFound || a.status == http.StatusGone:
		return Missing
	}
	return None
}

func (c *Client) ask(ctx context.Context, wait time.Duration, method, id string, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return exchange(ctx, c.cfg.Addr, method, strings.ReplaceAll(c.cfg.Path, "{id}", url.PathEscape(id)), body)
}

// classify says how a write ended that was answered so.
func classify(a answer) Outcome {
	switch s := a.status; {
	case !a.sent:
		return Failed
	case s >= 200 && s <= 299 && s != http.StatusAccepted:
		return Acknowledged
	case s >= 300 && s <= 499, s == http.StatusNotImplemented, s == http.StatusServiceUnavailable, s == http.StatusHTTPVersionNotSupported:
		return Failed
	}
	return Indeterminate
}

const (
	readers   = 4                      // at once, when reading back
	lookAgain = 200 * time.Millisecond // after a read that got no answer
)

// ReadBack reads every record back, the acknowledged first and of those the newest,
// which a loss takes first, and measures. It gives up when ctx ends, or when nothing was
// answered for the time of patience; what it has not read by then is unread.
func (c *Client) ReadBack(ctx context.Context, patience time.Duration) Measure {
	return c.readBack(ctx, patience, &c.log)
}

// Look measures while Run runs: it reads back what has been written up to now, as ReadBack
// does. Down tells that the last write was not acknowledged.
func (c *Client) Look(ctx context.Context, patience time.Duration) (m Measure, down bool) {
	c.busy.Lock() // between two writes
	log := Log{Writes: slices.Clone(c.log.Writes), Reads: slices.Clone(c.log.Reads)}
	c.busy.Unlock()
	if n := len(log.Writes); n > 0 {
		down = log.Writes[n-1].Outcome != Acknowledged
	}
	return c.readBack(ctx, patience, &log), down
}

func (c *Client) readBack(ctx context.Context, patience time.Duration, log *Log) Measure {
	end := uint64(0)
	var order, rest []uint64
	for _, w := range slices.Backward(log.Writes) {
		end = max(end, w.DoneMS)
		switch w.Outcome {
		case Acknowledged:
			order = append(order, w.Number)
		case Failed:
			rest = append(rest, w.Number)
		}
	}
	found := c.sweep(ctx, patience, append(slices.Clone(order), rest...))
	again := slices.DeleteFunc(order, func(n uint64) bool { a := found[n]; return a != Missing && a != Wrong })
	second := c.sweep(ctx, patience, again)
	for _, n := range again {
		found[n] = second[n] // None unless it was seen twice
	}
	return log.Measure(end, found)
}

// sweep reads the records of those writes, in their order, each until it is answered.
func (c *Client) sweep(ctx context.Context, patience time.Duration, order []uint64) map[uint64]Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lost := time.AfterFunc(patience, cancel)
	defer lost.Stop()
	// What is there is asked, not how fast: a slow answer is one.
	wait := max(c.cfg.Wait, patience/2)
	var (
		mu    sync.Mutex
		next  int
		found = make(map[uint64]Answer, len(order))
		wg    sync.WaitGroup
	)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(order) || ctx.Err() != nil {
			return 0, false
		}
		next++
		return order[next-1], true
	}
	for range min(readers, len(order)) {
		wg.Go(func() {
			for n, ok := take(); ok; n, ok = take() {
				a := c.look(ctx, c.cfg.Record(n), wait)
				for a == None && pause.For(ctx, lookAgain) {
					a = c.look(ctx, c.cfg.Record(n), wait)
				}
				if a == None {
					return
				}
				mu.Lock()
				found[n] = a
				mu.Unlock()
				lost.Reset(patience)
			}
		})
	}
	wg.Wait()
	return found
}
