package recording

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Files of a heat's folder.
const (
	eventsFile = "events.jsonl"
	matchFile  = "match.json"
	arenaFile  = "arena.json"
	worldFile  = "world.json"
	seatsDir   = "seats"
)

// fileName makes one path element of any string: letters, digits, "-", "_" and
// inner dots stay, every other byte becomes %XX. Different strings give different
// names, long ones get a digest.
func fileName(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	switch {
	case name == "":
		return "%"
	case len(name) > 100:
		return name[:60] + "%" + digest([]byte(s))[:32]
	}
	return name
}

func seatPath(territory string, elem ...string) string {
	return path.Join(append([]string{seatsDir, fileName(territory)}, elem...)...)
}

func consolePath(territory, machine string) string {
	return seatPath(territory, "machines", fileName(machine), "console.cast")
}

func evidencePath(territory, milestone string, attempt uint64) string {
	return seatPath(territory, "evidence", fileName(milestone)+"-"+strconv.FormatUint(attempt, 10)+".json")
}
