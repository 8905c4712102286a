package transcript

import (
	"time"

	"refbox/engine/text"
)

// Kind is what a step is.
type Kind uint8

// Kinds of steps. A call and its result are one step.
const (
	Unknown   Kind = iota // a record that the importer does not know: kept, shown collapsed
	Message               // words to or from the model
	Thinking              // the model's private reasoning
	ToolCall              // a call of a tool, with its result
	Output                // terminal output or input that belongs to no call
	State                 // settings, context, snapshots, bookkeeping
	Lifecycle             // start, end, interruption, limit, compaction
	Marker                // a named instant: score, checkpoint, a cast's marker
)

var kindNames = [...]string{"unknown", "message", "thinking", "tool", "output", "state", "lifecycle", "marker"}

func (k Kind) String() string { return name(kindNames[:], int(k)) }

// Actor is who did it.
type Actor uint8

// Actors.
const (
	NoActor Actor = iota
	User
	Agent
	System      // the harness
	Environment // the machine, a sandbox, a terminal
)

var actorNames = [...]string{"", "user", "agent", "system", "environment"}

func (a Actor) String() string { return name(actorNames[:], int(a)) }

// Outcome is how a step ended.
type Outcome uint8

// Outcomes. A step that has no end of its own (a message) has NoOutcome; a call
// whose result says neither good nor bad is Done.
const (
	NoOutcome  Outcome = iota
	Done               // there is a result; whether it is good is not recorded
	Succeeded          // recorded as good, or exit status 0
	Failed             // recorded as an error, or another exit status
	TimedOut           // ended by a time limit
	Cancelled          // interrupted or refused
	Unfinished         // the record ends without a result
)

var outcomeNames = [...]string{"", "done", "ok", "failed", "timeout", "cancelled", "unfinished"}

func (o Outcome) String() string { return name(outcomeNames[:], int(o)) }

// Bad says that a step ended, and not as it should.
func (o Outcome) Bad() bool { return o == Failed || o == TimedOut || o == Cancelled }

// Class is what a tool does, whatever the harness calls it.
type Class uint8

// Classes of tools.
const (
	NoClass  Class = iota // not a tool call
	Shell                 // runs shell text: the step has a PartCommand
	Code                  // runs a program's text, mostly Python: the step has a PartCode
	Read                  // reads a file
	Write                 // writes a whole file: PartNew
	Edit                  // changes a file: PartOld and PartNew, or PartPatch
	Search                // looks for files or text
	Plan                  // keeps a list of things to do
	Browse                // web pages
	Delegate              // starts or asks another agent
	Finish                // says that the work is done
	Other
)

var classNames = [...]string{"", "shell", "code", "read", "write", "edit", "search", "plan", "browse", "delegate", "finish", "other"}

func (c Class) String() string { return name(classNames[:], int(c)) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "?"
}

// Flags are what else is known of a step.
type Flags uint16

// Flags of a step.
const (
	// Private is reasoning that was not written for a reader: hidden until asked for.
	Private Flags = 1 << iota
	// Encrypted content is there and is never handed out.
	Encrypted
	// Copied from an earlier context: history, does not count.
	Copied
	// Duplicate of another record's identity.
	Duplicate
	// Damaged record, shown as far as it could be read.
	Damaged
	// Giant record: Full cuts it unless told otherwise.
	Giant
	// Compacted: the harness itself dropped the output later.
	Compacted
	// ReadOnly as the harness declared it.
	ReadOnly
	// Sidechain: a sub-agent's step inside the main record.
	Sidechain
	// OutOfOrder in the record: its place here is not where it lies.
	OutOfOrder
	// Anomalous: an integrity finding points at the step.
	Anomalous
	// Truncated output, as the harness declared it.
	Truncated
)

// Head is a step without its bodies. It costs no reading.
type Head struct {
	Index int // in the transcript, from 0
	// Pos is the record's number in the file as the format counts, from 0: a
	// tool_trace index in the reference's dialects, a line in JSONL, an element of
	// a list. -1 when the format counts nothing.
	Pos     int
	Kind    Kind
	Actor   Actor
	Class   Class
	Outcome Outcome
	Flags   Flags
	// Tool is the name as recorded, sanitised; "" when Kind is not ToolCall.
	Tool string
	// Agent is an index into Agents: 0 is the main agent.
	Agent int
	// AtMS is the start in milliseconds on the transcript's clock (Clock says
	// which), never less than that of the same agent's step before: steps
	// without a time have that of their neighbour. -1 when the transcript has no
	// clock.
	AtMS int64
	// RecordedMS is the start on the same clock as recorded, not corrected: calls
	// that ran side by side may have begun in another order than they stand in.
	// Negative when not recorded.
	RecordedMS int64
	// Time is the start as recorded, not corrected; zero when not recorded.
	Time time.Time
	// DurationMS is -1 when unknown, never negative otherwise.
	DurationMS int64
	// File, Offset and Length are where the record lies; Length is 0 when it has
	// no place of its own. Inside an archive the offset counts in the member.
	File   string
	Offset int64
	Length int64
}

// Duration is the duration and whether it is known.
func (h Head) Duration() (time.Duration, bool) {
	return time.Duration(max(h.DurationMS, 0)) * time.Millisecond, h.DurationMS >= 0
}

// Has says that all of these flags are set.
func (h Head) Has(f Flags) bool { return h.Flags&f == f }

// Step is a step as a list shows it.
type Step struct {
	Head
	// Title is one line: the agent's own description of a call, else the first
	// words of its command, path or text. Private reasoning and encrypted content
	// are never in it.
	Title string
}

// Role is what a part of a step is.
type Role uint8

// Roles of parts.
const (
	PartMessage     Role = iota // words, mostly Markdown
	PartReasoning               // private; hide until asked for
	PartDescription             // what the agent said the call is for
	PartCommand                 // shell text, also one quoted from an argument vector
	PartCode                    // a program's text; Label is the language
	PartInput                   // the call's arguments as JSON
	PartPath                    // a file that the tool worked on
	PartQuery                   // what a search looked for, or a page's address
	PartOld                     // the text an edit looks for
	PartNew                     // the text it puts there, or a file's whole new text
	PartPatch                   // a unified diff or apply_patch text
	PartOutput                  // what came back; may hold terminal sequences
	PartError                   // standard error, or an error's message
	PartData                    // other JSON
	PartMedia                   // an image or other binary, named only: never its bytes
	PartSealed                  // encrypted or redacted content, named only
)

var roleNames = [...]string{"message", "reasoning", "description", "command", "code", "input", "path", "query", "old", "new", "patch", "output", "error", "data", "media", "sealed"}

func (r Role) String() string { return name(roleNames[:], int(r)) }

// Part is one body of a step.
type Part struct {
	Role  Role
	Label string // a language, a media type, a name of an argument; sanitised, may be ""
	Text  Text
}

// Full is a step with its bodies.
type Full struct {
	Step
	// Parts in the order to read them.
	Parts []Part
	// Exit is the command's exit status; nil when not recorded.
	Exit *int
	// CallID is the harness's name for the call, sanitised.
	CallID string
	// Model that spoke, sanitised; "" when the record does not say.
	Model string
	// WorkDir is where the command ran, sanitised; "" when the record does not say.
	WorkDir string
	// ReferenceKind is what the reference's analysis called the action; "" elsewhere.
	ReferenceKind string
	// Usage that was charged with this step; nil when none was.
	Usage *Usage
}

// Part is the first part with a role; its Text is empty when there is none.
func (f *Full) Part(r Role) (Text, bool) {
	for _, p := range f.Parts {
		if p.Role == r {
			return p.Text, true
		}
	}
	return Text{}, false
}

// All are the parts with a role.
func (f *Full) All(r Role) []Part {
	var found []Part
	for _, p := range f.Parts {
		if p.Role == r {
			found = append(found, p)
		}
	}
	return found
}

// Command is the shell text of the call, raw, "" when there is none.
func (f *Full) Command() string { t, _ := f.Part(PartCommand); return t.Raw() }

// Output is all that came back, raw, errors after output.
func (f *Full) Output() string {
	var out string
	for _, p := range f.Parts {
		if p.Role == PartOutput || p.Role == PartError {
			if out != "" {
				out += "\n"
			}
			out += p.Text.Raw()
		}
	}
	return out
}

// Text is a body. Printing it prints the sanitised form.
type Text struct {
	raw  string
	size int64
}

// NewText makes a whole body.
func NewText(raw string) Text { return Text{raw: raw, size: int64(len(raw))} }

// String is the body, safe to show: lines kept, terminal sequences dropped.
func (t Text) String() string { return text.Block(t.raw) }

// Raw is the body as recorded (decoded from JSON): for parsers and for a
// terminal emulator, never for a terminal.
func (t Text) Raw() string { return t.raw }

// Size is the whole body's size in bytes, also of what was cut.
func (t Text) Size() int64 { return t.size }

// Cut says that Raw is only the beginning of the body.
func (t Text) Cut() bool { return int64(len(t.raw)) < t.size }
