package view

import (
	"fmt"
	"strconv"
)

// millis are milliseconds of a heat's clock, or of a transcript's, which may lie
// before the heat's start.
type millis interface{ int64 | uint64 }

// Clock is an instant as mm:ss.t, or h:mm:ss from an hour on, so that it takes
// eight cells for a hundred hours. Tenths are cut, so that it never shows what has
// not come.
func Clock[T millis](ms T) string {
	if ms < 0 {
		return "−" + Clock(-ms)
	}
	s := ms / 1000
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d.%d", s/60, s%60, ms/100%10)
}

// Span is a length of time in the shortest form that says enough: 340ms, 4.1s,
// 2m05s, 1h07m. It is empty for a negative one, which is not known.
func Span[T millis](ms T) string {
	switch {
	case ms < 0:
		return ""
	case ms < 1000:
		return fmt.Sprintf("%dms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1fs", float64(ms)/1000)
	case ms < 3_600_000:
		return fmt.Sprintf("%dm%02ds", ms/60_000, ms/1000%60)
	}
	return fmt.Sprintf("%dh%02dm", ms/3_600_000, ms/60_000%60)
}

// Count is a number with its thousands apart: 1,234,567.
func Count[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	from := 1
	if n < 0 {
		from = 2
	}
	for i := len(s) - 3; i >= from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural is so many of a thing: 1 step, 2 steps.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}
