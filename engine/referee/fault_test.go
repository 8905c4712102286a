package referee

import (
	"testing"
	"time"
)

// What a lone fault takes is credited whole, once, and for good; what the referee's work
// takes is lost with the next failure.
func TestStillTimeIsCredited(t *testing.T) {
	var now uint64
	clock := func() uint64 { return now }
	a := newAccount()
	want := func(at, credit, still uint64) {
		t.Helper()
		if c, s := a.credit(at), a.stood(at); c != credit || s != still {
			t.Errorf("at %d: credited %d, of which stood %d; want %d and %d", at, c, s, credit, still)
		}
	}
	now = 1000
	end := a.standStill(clock)
	want(1500, 500, 500)
	if wait, _, ok := a.before(1200, 1900); !ok || wait < 200*time.Millisecond {
		t.Errorf("a clock that stands still: %v, %v", wait, ok)
	}
	now = 1200
	other := a.standStill(clock) // within the first
	now = 1400
	other()
	now = 2000
	end()
	end()
	want(1500, 500, 500)
	want(9000, 1000, 1000)
	a.begin(3 * time.Second)
	a.work(2500)
	now = 3000
	again := a.standStill(clock)
	now = 3400
	again()
	a.rest(3500)
	want(4000, 1000+1000, 1400) // the 400 are not credited twice
	a.charge(4000)
	want(4000, 1400, 1400)
	if _, _, ok := a.before(2700, 4000); !ok {
		t.Error("the seat's clock is past 2700")
	}
	if _, _, ok := a.before(2600, 4000); ok {
		t.Error("the seat's clock is not past 2600")
	}
}
