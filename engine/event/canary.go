package event

import "fmt"

// LossWords says what of the acknowledged writes is lost, in a few words: what was not
// read back is not counted as kept.
func (b CanaryResult) LossWords() string {
	switch {
	case b.Acknowledged == 0:
		return "none acknowledged"
	case b.Unread == b.Acknowledged:
		return fmt.Sprintf("unknown, %d unread", b.Unread)
	case b.Lost == 0 && b.Unread > 0:
		return fmt.Sprintf("0 of %d read, %d unread", b.Acknowledged-b.Unread, b.Unread)
	case b.Lost == 0:
		return fmt.Sprintf("0 of %d", b.Acknowledged)
	case b.Unread > 0:
		return fmt.Sprintf("at least %d of %d, %s", b.Lost, b.Acknowledged, seconds(b.LossMS))
	}
	return fmt.Sprintf("%d of %d, %s", b.Lost, b.Acknowledged, seconds(b.LossMS))
}

// OutageWords says for how long writes were not acknowledged.
func (b CanaryResult) OutageWords() string {
	switch {
	case b.Writes == 0:
		return "nothing was written"
	case b.Outages == 0:
		return "none"
	case b.Outages == 1:
		return seconds(b.OutageMS)
	}
	return fmt.Sprintf("%s in %d, longest %s", seconds(b.OutageMS), b.Outages, seconds(b.LongestMS))
}

// Words is the whole result as a sentence without its stop.
func (b CanaryResult) Words() string {
	s := fmt.Sprintf("the canary's writes: %d acknowledged, %d failed, %d indeterminate; acknowledged and lost: %s; outage: %s",
		b.Acknowledged, b.Failed, b.Indeterminate, b.LossWords(), b.OutageWords())
	if b.Phantoms > 0 {
		s += fmt.Sprintf("; %d declined and done nevertheless", b.Phantoms)
	}
	if b.OutageFromMS == nil {
		return s
	}
	when := func(what string, at *uint64) string {
		if at == nil {
			return what + " not seen"
		}
		return what + " at " + seconds(*at)
	}
	return s + "; of the first, from " + seconds(*b.OutageFromMS) + ": " + when("a read", b.FirstReadMS) + ", " +
		when("an acknowledged write", b.FirstAckMS) + ", " + when("steady service", b.SteadyMS)
}

func seconds(ms uint64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

// Words is the sample as a phrase.
func (b CanarySample) Words() string {
	if b.Writes > 1 {
		return fmt.Sprintf("canary writes %d to %d %s, in up to %d ms", b.Write-min(b.Write, b.Writes-1), b.Write, b.Outcome, b.LatencyMS)
	}
	return fmt.Sprintf("canary write %d %s in %d ms", b.Write, b.Outcome, b.LatencyMS)
}
