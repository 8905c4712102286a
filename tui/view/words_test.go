package view

import "testing"

func TestWords(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{Clock(uint64(0)), "00:00.0"},
		{Clock(uint64(31_499)), "00:31.4"},
		{Clock(uint64(3_599_999)), "59:59.9"},
		{Clock(uint64(3_600_000)), "1:00:00"},
		{Clock(uint64(359_999_999)), "99:59:59"},
		{Clock(int64(-61_250)), "−01:01.2"},
		{Span(uint64(0)), "0ms"},
		{Span(uint64(999)), "999ms"},
		{Span(uint64(4_120)), "4.1s"},
		{Span(uint64(125_000)), "2m05s"},
		{Span(int64(4_020_000)), "1h07m"},
		{Span(int64(-1)), ""},
		{Count(999), "999"},
		{Count(1_234_567), "1,234,567"},
		{Count(-100), "-100"},
		{Count(int64(-1_000)), "-1,000"},
		{Plural(0, "seat"), "0 seats"},
		{Plural(1, "seat"), "1 seat"},
		{Plural(1_000, "seat"), "1,000 seats"},
	} {
		if x.got != x.want {
			t.Errorf("%q, want %q", x.got, x.want)
		}
	}
}
