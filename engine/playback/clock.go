package playback

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse reads a place on the clock as a person types it: "50%" of the head,
// "12m30s", "750ms", "12:30", "1:02:03.5", "90" (seconds). Places beyond the head
// are its end.
func Parse(s string, h Head) (uint64, error) {
	in := s
	s = strings.TrimPrefix(strings.TrimSpace(s), ":")
	refuse := func() (uint64, error) {
		return 0, fmt.Errorf("%.40q is no place on the clock: try 50%%, 12m30s, 12:30 or 90", in)
	}
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || math.IsNaN(f) || f < 0 || f > 100 {
			return refuse()
		}
		return min(uint64(f/100*float64(h.MS)), h.MS), nil
	}
	seconds := 0.0
	switch {
	case strings.ContainsRune(s, ':'):
		parts := strings.Split(s, ":")
		if len(parts) > 3 {
			return refuse()
		}
		for i, part := range parts {
			f, err := plain(part)
			if err != nil || i > 0 && f >= 60 || i < len(parts)-1 && f != math.Trunc(f) {
				return refuse()
			}
			seconds = seconds*60 + f
		}
	case strings.Trim(s, "0123456789.") == "":
		f, err := plain(s)
		if err != nil {
			return refuse()
		}
		seconds = f
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return refuse()
		}
		return min(uint64(d/time.Millisecond), h.MS), nil
	}
	if seconds*1000 >= float64(h.MS) {
		return h.MS, nil
	}
	return uint64(math.Round(seconds * 1000)), nil
}

// plain reads digits with at most one point, nothing else that a float may be.
func plain(s string) (float64, error) {
	if strings.Trim(s, "0123456789.") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(s, 64)
}

// Exact writes a clock to the millisecond: 00:31.402, from an hour on 1:02:03.402.
func Exact(ms uint64) string { return fmt.Sprintf("%s%02d", Format(ms), ms%100) }

// Format writes a clock as 00:31.4, from an hour on as 1:02:03.4; tenths are cut,
// not rounded, so that a clock never shows what has not come.
func Format(ms uint64) string {
	tenths := ms / 100 % 10
	s := ms / 1000
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d.%d", s/3600, s/60%60, s%60, tenths)
	}
	return fmt.Sprintf("%02d:%02d.%d", s/60, s%60, tenths)
}
