// Package keymap is every key of the program: what it does, what it is called,
// and in which screens it works. The footer, the help screen and the README's
// table are made from it, so none of them can be wrong (design, section 6).
//
// Each action has a second binding where a keyboard layout lacks the first.
package keymap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Action is something a person can do.
type Action string

// The actions.
const (
	None       Action = ""
	PlayPause  Action = "play-pause"
	EventBack  Action = "event-back"
	EventNext  Action = "event-next"
	Back5      Action = "seek-back"
	Next5      Action = "seek-forward"
	BackTenth  Action = "seek-back-tenth"
	NextTenth  Action = "seek-forward-tenth"
	MarkBack   Action = "milestone-back"
	MarkNext   Action = "milestone-next"
	ActionBack Action = "action-back"
	ActionNext Action = "action-next"
	Slower     Action = "slower"
	Faster     Action = "faster"
	Normal     Action = "speed-normal"
	Idle       Action = "idle-compression"
	Start      Action = "start"
	End        Action = "end"
	Down       Action = "down"
	Up         Action = "up"
	Left       Action = "left"
	Right      Action = "right"
	HalfDown   Action = "half-down"
	HalfUp     Action = "half-up"
	PageDown   Action = "page-down"
	PageUp     Action = "page-up"
	NextPane   Action = "next-pane"
	PrevPane   Action = "prev-pane"
	ZoomIn     Action = "zoom-in"
	ZoomOut    Action = "zoom-out"
	Open       Action = "open"
	Back       Action = "back"
	Leave      Action = "leave"
	Quit       Action = "quit"
	Find       Action = "find"
	FindNext   Action = "find-next"
	FindPrev   Action = "find-prev"
	Command    Action = "command"
	Transcript Action = "transcript"
	Why        Action = "why"
	Integrity  Action = "integrity"
	Console    Action = "console"
	Detach     Action = "console-detach"
	Sit        Action = "sit"
	Branch     Action = "branch"
	Note       Action = "note"
	EndHeat    Action = "end-heat"
	Desk       Action = "desk"
	Fault      Action = "fault"
	Explain    Action = "explain"
	WhatIf     Action = "what-if"
	Posture    Action = "posture"
	Severity   Action = "severity"
	OfStore    Action = "of-store"
	Drill      Action = "drill"
	Copy       Action = "copy"
	Mouse      Action = "mouse"
	Theme      Action = "theme"
	Help       Action = "help"
	Suspend    Action = "suspend"
	Redraw     Action = "redraw"
	// Of the stepper: the next step of a sort, and the one before.
	MutationNext   Action = "mutation-next"
	MutationBack   Action = "mutation-back"
	LifecycleNext  Action = "lifecycle-next"
	LifecycleBack  Action = "lifecycle-back"
	ValidationNext Action = "validation-next"
	ValidationBack Action = "validation-back"
	ErrorNext      Action = "error-next"
	ErrorBack      Action = "error-back"
	AnomalyNext    Action = "anomaly-next"
	AnomalyBack    Action = "anomaly-back"
	Filter         Action = "filter"
	Reasoning      Action = "reasoning"
	Totals         Action = "totals"
	Editor         Action = "editor"
	HeatHere       Action = "heat-here"
	// Seat1 to Seat9 choose a seat.
	Seat Action = "seat"
)

// Group is a heading of the help screen.
type Group string

// The groups, in the order of the help screen.
const (
	Time   Group = "Time"
	Move   Group = "Move"
	Look   Group = "Look"
	Steps  Group = "Transcript"
	Estate Group = "Register"
	Act    Group = "Act"
	Always Group = "Always"
)

// Binding is one action's keys.
type Binding struct {
	Action Action
	Group  Group
	Keys   []string // as Bubble Tea names them; the first is shown in the footer
	Short  string   // for the footer
	Long   string   // for help and the README
}

// defaults, in the order in which they are shown.
func defaults() []Binding {
	return []Binding{
		{PlayPause, Time, []string{" ", "p"}, "pause", "play or pause"},
		{EventBack, Time, []string{",", "B"}, "event", "one event back"},
		{EventNext, Time, []string{".", "e"}, "event", "one event forward"},
		{Back5, Time, []string{"left"}, "−5 s", "5 s back"},
		{Next5, Time, []string{"right"}, "+5 s", "5 s forward"},
		{BackTenth, Time, []string{"shift+left", "alt+left"}, "−10 %", "a tenth of the heat back"},
		{NextTenth, Time, []string{"shift+right", "alt+right"}, "+10 %", "a tenth of the heat forward"},
		{MarkBack, Time, []string{"[", "alt+p"}, "milestone", "previous milestone"},
		{MarkNext, Time, []string{"]", "alt+n"}, "milestone", "next milestone"},
		{ActionBack, Time, []string{"{", "alt+b"}, "action", "previous agent action"},
		{ActionNext, Time, []string{"}", "alt+f"}, "action", "next agent action"},
		{Slower, Time, []string{"<", "alt+-"}, "slower", "slower, down to ×1/4"},
		{Faster, Time, []string{">", "alt+="}, "faster", "faster, up to ×64"},
		{Normal, Time, []string{"backspace", "alt+1"}, "×1", "normal speed"},
		{Idle, Time, []string{"I"}, "idle", "shorten stretches in which nothing happens"},
		{Start, Time, []string{"g", "home"}, "start", "to the start"},
		{End, Time, []string{"G", "end"}, "end", "to the end; follow a live heat"},

		{Down, Move, []string{"j", "down"}, "down", "down"},
		{Up, Move, []string{"k", "up"}, "up", "up"},
		{Left, Move, []string{"h"}, "left", "to the left"},
		{Right, Move, []string{"l"}, "right", "to the right"},
		{HalfDown, Move, []string{"ctrl+d"}, "½ down", "half a page down"},
		{HalfUp, Move, []string{"ctrl+u"}, "½ up", "half a page up"},
		{PageDown, Move, []string{"pgdown", "ctrl+f"}, "page", "a page down"},
		{PageUp, Move, []string{"pgup", "ctrl+b"}, "page", "a page up"},
		{NextPane, Move, []string{"tab"}, "pane", "next pane"},
		{PrevPane, Move, []string{"shift+tab", "alt+tab"}, "pane", "previous pane"},
		{Seat, Move, []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, "seat", "choose a seat"},
		{ZoomIn, Move, []string{"+", "="}, "zoom", "the chosen seat or pane alone"},
		{ZoomOut, Move, []string{"_", "-"}, "unzoom", "all seats again"},
		{Open, Move, []string{"enter", "o"}, "open", "open what is chosen"},
		{Back, Move, []string{"esc"}, "back", "back"},

		{Transcript, Look, []string{"t"}, "transcript", "step through what the seat's agent did"},
		{Why, Look, []string{"w"}, "why", "the events and the evidence behind an outcome"},
		{Integrity, Look, []string{"i"}, "integrity", "what is wrong with the recording, and where"},
		{Find, Look, []string{"/", "ctrl+s"}, "find", "find: in a heat, the next event with these words"},
		{FindNext, Look, []string{"n"}, "next", "next match"},
		{FindPrev, Look, []string{"N"}, "previous", "previous match"},
		{Command, Look, []string{":", "alt+x"}, "go to", "go to a time: :50%, :12m30s, :end"},
		{Copy, Look, []string{"y"}, "copy", "copy what is chosen (OSC 52)"},

		{Explain, Estate, []string{"x"}, "explain", "explain what is chosen: the inputs, and the rule that fired or did not"},
		{WhatIf, Estate, []string{"W"}, "what if", "what if: run a copy, lose a node, cut a path"},
		{Posture, Estate, []string{"P"}, "posture", "the matrix today, or with what is planned"},
		{Severity, Estate, []string{"V"}, "severity", "findings: gaps, accepted, notes, or all"},
		{OfStore, Estate, []string{"s"}, "this store", "findings of the chosen store only"},
		{Drill, Estate, []string{"d"}, "drill", "the heat that would turn what is chosen green, or why there is none; enter races it"},

		{MutationNext, Steps, []string{"M"}, "mutation", "next mutation; n and N go on from there"},
		{MutationBack, Steps, []string{"alt+M"}, "mutation", "previous mutation"},
		{LifecycleNext, Steps, []string{"L"}, "lifecycle", "next step that only changed what runs"},
		{LifecycleBack, Steps, []string{"alt+L"}, "lifecycle", "previous one"},
		{ValidationNext, Steps, []string{"C"}, "validation", "next check of the agent's own work"},
		{ValidationBack, Steps, []string{"alt+C"}, "validation", "previous check"},
		{ErrorNext, Steps, []string{"E"}, "error", "next step that failed"},
		{ErrorBack, Steps, []string{"alt+E"}, "error", "previous step that failed"},
		{AnomalyNext, Steps, []string{"A"}, "anomaly", "next step that something is wrong with"},
		{AnomalyBack, Steps, []string{"alt+A"}, "anomaly", "previous one"},
		{Filter, Steps, []string{"F"}, "filter", "filter by kind, tool and agent"},
		{Reasoning, Steps, []string{"R"}, "reasoning", "show or hide private reasoning"},
		{Totals, Steps, []string{"U"}, "totals", "tokens and cost, and how they were counted"},
		{Editor, Steps, []string{"v"}, "editor", "open the step in $EDITOR"},
		{HeatHere, Steps, []string{"H"}, "heat here", "move the heat to the step's time"},

		{Console, Act, []string{"c"}, "console", "attach to the seat's serial console"},
		{Detach, Act, []string{"ctrl+]", "ctrl+5"}, "detach", "leave the console, or your seat's terminal; back to it"},
		{Sit, Act, []string{"S"}, "take a seat", "take a seat: race the chosen arena yourself; in a heat, your seat"},
		{Branch, Act, []string{"b", "ctrl+r"}, "branch", "race on from the seat's last saved state, in a replay of your own heat"},
		{Note, Act, []string{"a"}, "note", "add a note to the heat"},
		{Fault, Act, []string{"f"}, "fault", "hurt a machine of the seat, or clear what hurts it"},
		{Desk, Act, []string{"r"}, "desk", "the referee's desk: pause, rule, void"},
		{EndHeat, Act, []string{"X"}, "end heat", "end a live heat"},

		{Help, Always, []string{"?", "f1"}, "help", "keys and legend"},
		{Theme, Always, []string{"T"}, "theme", "next theme"},
		{Mouse, Always, []string{"m"}, "mouse", "mouse on or off (off: the terminal selects text)"},
		{Redraw, Always, []string{"ctrl+l"}, "redraw", "draw the screen anew"},
		{Suspend, Always, []string{"ctrl+z"}, "suspend", "suspend to the shell"},
		{Leave, Always, []string{"q"}, "leave", "back; on the first screen leave; a live heat asks once"},
		{Quit, Always, []string{"ctrl+c"}, "leave", "leave from anywhere; a live heat asks once"},
	}
}

// Map says what each key does.
type Map struct {
	bindings []Binding
	byKey    map[string]Action
}

// Default is the key map of design section 6.
func Default() Map {
	m, err := New(nil)
	if err != nil { // the table is ours and a test reads it
		return Map{}
	}
	return m
}

// Error is what is wrong with an action's keys.
type Error struct {
	Action Action // whose keys were to be replaced
	Text   string
}

func (f *Error) Error() string { return fmt.Sprintf("keys of %q: %s", f.Action, f.Text) }

// New is the default map with some actions' keys replaced, named as Bubble Tea names
// them or as Name shows them. An unknown action, an empty list, what is no key, and a
// key that another action has are an *Error.
func New(remap map[Action][]string) (Map, error) {
	m := Map{bindings: defaults(), byKey: map[string]Action{}}
	changed := slices.Sorted(maps.Keys(remap))
	for _, a := range changed {
		i := slices.IndexFunc(m.bindings, func(b Binding) bool { return b.Action == a })
		switch {
		case i < 0:
			return Map{}, &Error{a, "no action is called so"}
		case len(remap[a]) == 0:
			return Map{}, &Error{a, "it has no key left"}
		case a == Seat && len(remap[a]) != len(m.bindings[i].Keys):
			return Map{}, &Error{a, fmt.Sprintf("it takes %d keys, one for each seat", len(m.bindings[i].Keys))}
		}
		m.bindings[i].Keys = nil
		for _, name := range remap[a] {
			key, ok := Parse(name)
			if !ok {
				return Map{}, &Error{a, fmt.Sprintf("%q is no key; keys are called w, space, ctrl-x, alt-x, F5, PgDn, shift-tab and the like", name)}
			}
			m.bindings[i].Keys = append(m.bindings[i].Keys, key)
		}
	}
	for _, b := range m.bindings {
		for _, k := range b.Keys {
			other, taken := m.byKey[k]
			if !taken {
				m.byKey[k] = b.Action
				continue
			}
			f := &Error{b.Action, fmt.Sprintf("%s is already a key of %q", Name(k), other)}
			if !slices.Contains(changed, b.Action) {
				f = &Error{other, fmt.Sprintf("%s is already a key of %q", Name(k), b.Action)}
			}
			if other != b.Action {
				f.Text += "; give that other keys, or choose another"
			}
			return Map{}, f
		}
	}
	return m, nil
}

// Action is what key does; None for a key that does nothing.
func (m Map) Action(key string) Action { return m.byKey[key] }

// Bindings are all bindings, in the order in which they are shown.
func (m Map) Bindings() []Binding { return m.bindings }

// Binding is an action's binding; the zero Binding for an unknown one.
func (m Map) Binding(a Action) Binding {
	for _, b := range m.bindings {
		if b.Action == a {
			return b
		}
	}
	return Binding{}
}

// Hint is an action as the footer shows it: the key's name and a word.
func (m Map) Hint(a Action) (key, word string) {
	b := m.Binding(a)
	if len(b.Keys) == 0 {
		return "", ""
	}
	if a == Seat {
		return Name(b.Keys[0]) + "–" + Name(b.Keys[len(b.Keys)-1]), b.Short
	}
	return Name(b.Keys[0]), b.Short
}

// Markdown is the README's table.
func (m Map) Markdown() string {
	var b strings.Builder
	b.WriteString("| key | does |\n|---|---|\n")
	for _, x := range m.bindings {
		keys := make([]string, len(x.Keys))
		for i, k := range x.Keys {
			keys[i] = "`" + strings.ReplaceAll(Name(k), "|", `\|`) + "`"
		}
		list := strings.Join(keys, " ")
		if x.Action == Seat {
			list = "`" + strings.ReplaceAll(m.Names(x), "–", "`–`") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", list, x.Long)
	}
	return b.String()
}

// Names are a binding's keys as the help screen lists them.
func (m Map) Names(b Binding) string {
	names := make([]string, len(b.Keys))
	for i, k := range b.Keys {
		names[i] = Name(k)
	}
	if b.Action == Seat && strings.Join(b.Keys, "") == "123456789" {
		return "1–9"
	}
	return strings.Join(names, " ")
}

// Stride is how many rows a key of movement goes down a list, negative for up, with
// how far the keys of half a page and of a page go; 0 for any other action.
func (a Action) Stride(half, page int) int {
	switch a {
	case Down:
		return 1
	case Up:
		return -1
	case HalfDown:
		return half
	case HalfUp:
		return -half
	case PageDown:
		return page
	case PageUp:
		return -page
	}
	return 0
}
