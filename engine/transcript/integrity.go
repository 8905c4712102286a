package transcript

// Severity sorts findings: notes are odd, breaks are lost or wrong.
type Severity uint8

// Severities.
const (
	Note Severity = iota
	Break
)

func (s Severity) String() string {
	if s == Break {
		return "break"
	}
	return "note"
}

// MarshalText writes the word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Trouble is what kind of thing a finding is.
type Trouble uint8

// Troubles.
const (
	Skipped    Trouble = iota // could not be read, left out
	Repaired                  // damaged, read in part
	Duplicated                // the same identity twice
	Disordered                // not in the order of the file, or of the clock
	Orphaned                  // refers to something that is not there
	Incomplete                // begun and not ended; a torn tail
	Unfamiliar                // a kind, key or version that the importer does not know
	Bounded                   // larger or more than what is read
	Misleading                // figures or claims to take with caution
)

var troubleNames = [...]string{"skipped", "repaired", "duplicated", "disordered", "orphaned", "unfinished", "unfamiliar", "bounded", "misleading"}

func (t Trouble) String() string { return name(troubleNames[:], int(t)) }

// MarshalText writes the word.
func (t Trouble) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Finding is something about the record that its reader should know.
type Finding struct {
	Severity Severity `json:"severity"`
	Trouble  Trouble  `json:"trouble"`
	Code     string   `json:"code"` // such as "torn-tail"
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"` // from 1; 0 when the format has no lines
	Offset   int64    `json:"offset"`
	Length   int64    `json:"length,omitempty"`
	Step     int      `json:"step"` // -1 when it belongs to none
	Text     string   `json:"text"` // one line, sanitised
}

// MaxFindings bounds the findings that are kept; Counts goes on counting.
const MaxFindings = 2000

// Report is what reading has found so far.
type Report struct {
	Bytes    int64 `json:"bytes"` // read so far
	Size     int64 `json:"size"`  // of all that there is
	Records  int   `json:"records"`
	Steps    int   `json:"steps"`
	Complete bool  `json:"complete"` // read to the end
	// Counts by trouble, also of findings that are not kept.
	Counts   map[string]int `json:"counts"`
	Findings []Finding      `json:"findings"`
}

// Breaks says that something was lost or is wrong.
func (r Report) Breaks() bool {
	for _, f := range r.Findings {
		if f.Severity == Break {
			return true
		}
	}
	return false
}
