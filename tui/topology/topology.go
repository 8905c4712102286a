// Package topology lays out an arena's graph on a small area of cells and draws it.
//
// It hides placement, routing and the choice of form: boxes where there is room, chips
// where there is less, a list where there is hardly any. It guarantees, at every size:
// node boxes are disjoint and inside the area; a drawn link runs from its source to its
// target, through no node and along no other link, crossing others at right angles
// only; a link or a label that finds no way is named in words under the graph; a name
// that does not fit ends in "…". The same graph and size always give the same Layout.
//
// Nothing is told by colour alone (design: section 6): states have glyphs, kinds of
// nodes have brackets or words, kinds of links have line styles, and an arrowhead
// stands at the target.
//
// A Layout does not depend on states: compute it once per graph and size, draw it in
// every frame.
package topology

import "refbox/tui/canvas"

// NodeKind is what a node is.
type NodeKind string

// The kinds of nodes; any other is drawn as a service.
const (
	Client   NodeKind = "client"
	Proxy    NodeKind = "proxy"
	Service  NodeKind = "service"
	Worker   NodeKind = "worker"
	Queue    NodeKind = "queue"
	Database NodeKind = "database"
	Storage  NodeKind = "storage"
	Host     NodeKind = "host"
)

// NodeKinds returns the kinds in the legend's order.
func NodeKinds() []NodeKind {
	return []NodeKind{Client, Proxy, Service, Worker, Queue, Database, Storage, Host}
}

// LinkKind is what a link carries.
type LinkKind string

// The kinds of links; any other is drawn as traffic.
const (
	Traffic     LinkKind = "traffic"
	QueueLink   LinkKind = "queue"
	Replication LinkKind = "replication"
	StorageLink LinkKind = "storage"
	Lifecycle   LinkKind = "lifecycle"
)

// LinkKinds returns the kinds in the legend's order.
func LinkKinds() []LinkKind {
	return []LinkKind{Traffic, QueueLink, Replication, StorageLink, Lifecycle}
}

// Node is one node of a graph. X and Y are percent of the area, its centre.
type Node struct {
	ID, Name string
	Kind     NodeKind
	X, Y     float64
	// Says is a word in place of "healthy", for a node whose tick would be misread
	// without it: of an old primary that is kept, not well, "preserved".
	Says string
}

// Link is a directed link between two nodes by id.
type Link struct {
	From, To string
	Kind     LinkKind
	Label    string
}

// Graph is what is laid out. Names and labels must have been through engine/text.
type Graph struct {
	Nodes []Node
	Links []Link
}

// State is what the referee knows of a node.
type State uint8

// States. None is for nodes that nothing is verified of: they show no glyph.
const (
	None State = iota
	Unknown
	Pending
	Verifying
	Healthy
	Failed
	Hurt // by a fault of the referee's, whatever is known of it otherwise
)

// States returns the states in the legend's order.
func States() []State { return []State{Unknown, Pending, Verifying, Healthy, Failed, Hurt} }

// Glyph returns the state's one-cell sign, a space for None.
func (s State) Glyph() rune {
	switch s {
	case Unknown:
		return '?'
	case Pending:
		return '○'
	case Verifying:
		return '◐'
	case Healthy:
		return '✓'
	case Failed:
		return '✗'
	case Hurt:
		return '↯'
	}
	return ' '
}

// String returns the state's word, "" for None.
func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Pending:
		return "pending"
	case Verifying:
		return "verifying"
	case Healthy:
		return "healthy"
	case Failed:
		return "failed"
	case Hurt:
		return "fault"
	}
	return ""
}

// Style returns the colours of the state's glyph and word.
func (s State) Style() canvas.Style {
	switch s {
	case Verifying, Hurt:
		return canvas.Fg(canvas.Warn).With(canvas.Bold)
	case Healthy:
		return canvas.Fg(canvas.Ok).With(canvas.Bold)
	case Failed:
		return canvas.Fg(canvas.Bad).With(canvas.Bold)
	}
	return canvas.Fg(canvas.Dim)
}

// Brackets returns the two signs that enclose a chip of kind k.
func (k NodeKind) Brackets() (left, right rune) {
	switch k {
	case Client:
		return '<', '>'
	case Proxy:
		return '/', '/'
	case Worker:
		return '{', '}'
	case Queue:
		return '=', '='
	case Database:
		return '(', ')'
	case Storage:
		return '$', '$'
	case Host:
		return '#', '#'
	}
	return '[', ']'
}

// Style returns the colours of a node's outline.
func (k NodeKind) Style() canvas.Style {
	switch k {
	case Client:
		return canvas.Fg(canvas.Client)
	case Proxy:
		return canvas.Fg(canvas.Proxy)
	case Worker:
		return canvas.Fg(canvas.Worker)
	case Queue:
		return canvas.Fg(canvas.Queue)
	case Database:
		return canvas.Fg(canvas.Database)
	case Storage:
		return canvas.Fg(canvas.Storage)
	case Host:
		return canvas.Fg(canvas.Host)
	}
	return canvas.Fg(canvas.Service)
}

// Line returns the signs of a link's horizontal and vertical run.
func (k LinkKind) Line() (horizontal, vertical rune) {
	switch k {
	case QueueLink:
		return '═', '║'
	case Replication:
		return '━', '┃'
	case StorageLink:
		return '╌', '╎'
	case Lifecycle:
		return '┄', '┊'
	}
	return '─', '│'
}

// Style returns the colours of a link.
func (k LinkKind) Style() canvas.Style {
	switch k {
	case QueueLink:
		return canvas.Fg(canvas.QueueLink)
	case Replication:
		return canvas.Fg(canvas.Replication)
	case StorageLink:
		return canvas.Fg(canvas.StorageLink)
	case Lifecycle:
		return canvas.Fg(canvas.Lifecycle)
	}
	return canvas.Fg(canvas.Traffic)
}

// Form is how much a node shows.
type Form uint8

// Forms, from the richest to the poorest.
const (
	Full  Form = iota // an outline with the kind, the name, the state's word
	Boxed             // an outline with the kind, and the name
	Chip              // kind brackets around glyph and name
	Tight             // a chip without the space after the glyph
	List              // numbered chips, links by their targets' numbers
)

// Point is a cell of the layout's area.
type Point struct{ X, Y int }

// Box is a node's place. Lines is its name as shown.
type Box struct {
	canvas.Rect
	Lines []string
}

// Path is a link's way: adjacent cells from beside the source to beside the target,
// where the arrowhead is. It is empty for a link that Texts names instead.
type Path []Point

// Words is text beside the graph: a label, a note, a link of the list form.
type Words struct {
	X, Y int
	Text string
	Link int // what it is about, -1 for none
}

// Saying is the place beside a node for what it says when it is healthy.
type Saying struct {
	X, Y, Node int
	Text       string
}

// Layout is a graph's picture without its states. Boxes and Paths are in the order of
// the graph's nodes and links.
type Layout struct {
	W, H  int
	Form  Form
	Graph Graph
	Boxes []Box
	Paths []Path
	Texts []Words
	Says  []Saying
}
