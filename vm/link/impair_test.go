package link_test

import (
	"fmt"
	"testing"
	"time"

	"refbox/vm"
	"refbox/vm/link"
)

// What one direction suffers, no other does, and it ends.
func TestImpair(t *testing.T) {
	h := link.New()
	defer h.Close()
	a, b, c := plug(t, h, "a"), plug(t, h, "b"), plug(t, h, "c")
	h.Impair("a", "b", vm.Impairment{Drop: true})
	send(t, a, []byte("lost"))
	if got := recv(t, c); string(got) != "lost" {
		t.Errorf("c got %q", got)
	}
	send(t, b, []byte("back"))
	if got := recv(t, a); string(got) != "back" {
		t.Errorf("the other direction: %q", got)
	}
	recv(t, c)
	// A new port of the name suffers the same.
	b = plug(t, h, "b")
	send(t, a, []byte("lost too"))
	recv(t, c)
	h.Impair("a", "b", vm.Impairment{})
	send(t, a, []byte("heard"))
	if got := recv(t, b); string(got) != "heard" {
		t.Errorf("after mending b got %q", got)
	}
	recv(t, c)

	const delay = 200 * time.Millisecond
	h.Impair("a", "b", vm.Impairment{Delay: delay})
	sent := time.Now()
	for i := range 5 {
		send(t, a, fmt.Append(nil, i))
		recv(t, c)
	}
	send(t, c, []byte("quick"))
	if got := recv(t, b); string(got) != "quick" {
		t.Errorf("a delayed direction holds up another: %q first", got)
	}
	recv(t, a)
	for i := range 5 {
		if got := recv(t, b); string(got) != fmt.Sprint(i) {
			t.Errorf("frame %d is %q", i, got)
		}
	}
	if took := time.Since(sent); took < delay {
		t.Errorf("they took %v, less than the delay", took)
	}

	h.Impair("a", "b", vm.Impairment{Loss: 0.5})
	const n = 200
	for i := range n {
		send(t, a, fmt.Append(nil, i))
		recv(t, c)
	}
	h.Impair("a", "b", vm.Impairment{})
	send(t, a, []byte("end"))
	recv(t, c)
	got := 0
	for ; string(recv(t, b)) != "end"; got++ {
	}
	if got < n/4 || got > n*3/4 { // 7 standard deviations
		t.Errorf("half of %d frames lost, and %d arrived", n, got)
	}
}
