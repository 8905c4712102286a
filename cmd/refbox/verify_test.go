package main

import (
	"strings"
	"testing"

	"refbox/engine/recording"
)

// A break is told before the notes, however many there are.
func TestBreaksAreToldFirst(t *testing.T) {
	var b strings.Builder
	rep := recording.Report{Events: 2, Findings: []recording.Finding{
		{Severity: recording.Note, Code: "clock_back", Text: "back"},
		{Severity: recording.Break, Code: "chain_broken", Text: "altered"},
		{Severity: recording.Note, Code: "torn_tail", Text: "torn"},
	}}
	if err := printReport(&app{out: &b}, "heat", rep); err != nil {
		t.Fatal(err)
	}
	want := "break  chain_broken  altered\nnote   clock_back  back\nnote   torn_tail  torn\nheat: 2 events, not chained, 1 break, 2 notes\n"
	if b.String() != want {
		t.Errorf("%s\nnot\n%s", b.String(), want)
	}
}
