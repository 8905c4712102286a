package transcript

import (
	"strings"
	"time"
)

// parseTime reads a time as harnesses write it: ISO 8601 with or without a zone
// (then it counts as UTC). Milliseconds since 1970.
func parseTime(s string) (ms int64, zoned, ok bool) {
	if s == "" || len(s) > 64 {
		return noTime, false, false
	}
	if t, ok := quickTime(s); ok {
		return t, true, true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return bound(t), true, true
		}
	}
	s = strings.Replace(s, " ", "T", 1)
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return bound(t), false, true
		}
	}
	return noTime, false, false
}

// bound keeps times where arithmetic on them is safe.
func bound(t time.Time) int64 {
	if y := t.Year(); y < 1 || y > 9999 {
		return noTime
	}
	return t.UnixMilli()
}

// quickTime reads 2025-06-14T11:00:00.123Z, the form of nearly every record.
func quickTime(s string) (int64, bool) {
	if len(s) < 20 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[len(s)-1] != 'Z' {
		return 0, false
	}
	num := func(from, to int) int {
		n := 0
		for _, c := range []byte(s[from:to]) {
			if c < '0' || c > '9' {
				return -1
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	y, mo, d, h, mi, sec := num(0, 4), num(5, 7), num(8, 10), num(11, 13), num(14, 16), num(17, 19)
	if y < 1 || mo < 1 || mo > 12 || d < 1 || d > 28 || h < 0 || h > 23 || mi < 0 || mi > 59 || sec < 0 || sec > 59 {
		return 0, false // the 29th to 31st are left to who knows the months
	}
	ms := 0
	if len(s) > 20 {
		if s[19] != '.' || len(s) < 22 {
			return 0, false
		}
		frac := s[20 : len(s)-1]
		for i := range 3 {
			ms *= 10
			if i < len(frac) {
				ms += int(frac[i] - '0')
			}
		}
		for _, c := range []byte(frac) {
			if c < '0' || c > '9' {
				return 0, false
			}
		}
	}
	return time.Date(y, time.Month(mo), d, h, mi, sec, ms*1e6, time.UTC).UnixMilli(), true
}

// span32 is a duration in memory: clamped to what fits, never negative.
func span32(ms int64) int32 { return int32(min(max(ms, 0), 1<<31-1)) }
