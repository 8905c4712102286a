package agent

import (
	"io/fs"
	"time"
)

// Script is a scripted player: POSIX shell blocks that are run in order, each
// as one exec request.
type Script struct {
	File   string // as in errors
	Player string // its name: "# player NAME", else the file's base name
	Skill  string // "# skill TEXT"
	Blocks []Block
}

// Block is one step of a script.
type Block struct {
	Line    int           // of its first line in the file
	Text    string        // what is executed; "" for a block that only waits or notes
	Machine string        // "# on MACHINE"; "" for the first
	Pause   time.Duration // "# pause 2.5s": before it
	Note    string        // "# note TEXT": reported before it
	Expect  *int          // "# expect 0"
	Must    bool          // "# must": give up unless it ended as expected (0 unless said)
	Repeat  *Repeat       // "# repeat until 0 every 1s for 30s"
}

// Repeat runs a block again until it exits as wanted or the time is over.
type Repeat struct {
	Until int
	Every time.Duration
	For   time.Duration
}

// ParseScript reads a script; errors name file and line.
func ParseScript(file string, data []byte) (*Script, error) { return nil, nil }

// ScriptPlayer is the player that runs s.
func ScriptPlayer(s *Script) Player { return nil }

// Scripts is the adapter "script": its argument names a bundled script
// ("careful" is careful.sh in fsys) or, with a slash in it, a file on disk.
func Scripts(fsys fs.FS) Factory { return nil }
