package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"refbox/engine/event"
	"refbox/engine/export/exporttest"
	"refbox/engine/text"
)

// A log on a terminal stays JSON of the same meaning, and drives nothing.
func TestTerminalJSON(t *testing.T) {
	for name, s := range exporttest.Strings() {
		t.Run(name, func(t *testing.T) {
			line := event.Encode(event.Event{Body: event.OperatorNote{Author: s, Text: s}})
			var b bytes.Buffer
			if _, err := (terminalJSON{&b}).Write(line); err != nil {
				t.Fatal(err)
			}
			if text.Line(b.String()) != b.String() {
				t.Fatalf("%q", b.String())
			}
			var was, is struct{ Text string }
			if json.Unmarshal(line, &was) != nil || json.Unmarshal(b.Bytes(), &is) != nil || was != is {
				t.Fatalf("%q became %q", was.Text, is.Text)
			}
		})
	}
}
