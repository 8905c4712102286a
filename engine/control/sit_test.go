package control

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSittingIsTheSameBothWays(t *testing.T) {
	bothWays(t, func(t *testing.T, d *desk, c Desk) {
		if _, err := c.Sit(t.Context(), "ann", "nowhere", "", Size{80, 24}); err == nil || err.Error() != `no running seat is called "nowhere"` {
			t.Fatalf("sit nowhere: %v", err)
		}
		seat, err := c.Sit(t.Context(), "ann", "one", "db", Size{100, 30})
		if err != nil {
			t.Fatal(err)
		}
		types(t, seat, "<132x43>", func() error { return seat.Resize(Size{132, 43}) })
		if err := seat.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := d.said(), "sit ann one db {100 30}|rise"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if seat, err = c.Sit(t.Context(), "ann", "one", "", Size{80, 24}); err != nil {
			t.Fatal(err)
		}
		if _, err := seat.Write([]byte("halt")); err != nil {
			t.Fatal(err)
		}
		if _, err := seat.Read(make([]byte, 10)); !errors.Is(err, io.EOF) {
			t.Errorf("the session ended, and reading gives %v", err)
		}
		seat.Close()
	})
}

// A person who gives up waiting for a machine that starts is not waited for.
func TestSittingDownIsGivenUp(t *testing.T) {
	d := &desk{began: make(chan struct{})}
	c, _ := serveDesk(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := c.Sit(ctx, "ann", "slow", "", Size{80, 24})
		gone <- err
	}()
	<-d.began
	cancel()
	<-d.began
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("given up, and it is %v", err)
	}
}

// keys remembers what reached a terminal.
type keys struct {
	bytes.Buffer
	sizes []Size
}

func (k *keys) Resize(s Size) error { k.sizes = append(k.sizes, s); return nil }
func (*keys) Close() error          { return nil }

// Whatever comes in place of frames, what was typed before it has arrived, and
// every size is one that a terminal can have.
func TestFramesOfAnyKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire bytes.Buffer
		var typed strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
			kind := rapid.SampledFrom([]byte{frameKeys, frameSize}).Draw(t, "kind")
			if kind == frameSize {
				p = append(p, 0, 0, 0, 0)[:4]
			} else {
				typed.Write(p)
			}
			wire.Write(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(p))))
			wire.Write(p)
		}
		wire.Write(rapid.SampledFrom([][]byte{nil, {frameKeys}, {frameKeys, 0, 9, 'x'}, {'?', 0, 0}, {frameSize, 0, 1, 7}}).Draw(t, "rest"))
		var got keys
		if err := typeFrames(&got, &wire); err == nil {
			t.Fatal("frames that end are no error")
		}
		if got.String() != typed.String() {
			t.Fatalf("typed %q, and %q arrived", typed.String(), got.String())
		}
		for _, s := range got.sizes {
			if s.bounded() != s {
				t.Fatal(fmt.Sprint("the size ", s))
			}
		}
	})
}
