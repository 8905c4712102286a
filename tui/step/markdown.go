package step

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"

	"refbox/engine/text"
	"refbox/tui/canvas"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// maxMarkdown bounds what is read as Markdown; a longer message is shown as it is.
const maxMarkdown = 64 << 10

// message writes the words of a message, which are mostly Markdown.
func (p *paper) message(raw string, color bool) { p.markdown(raw, color, false) }

func (p *paper) markdown(raw string, color, flow bool) {
	s := text.Block(raw)
	if len(s) > maxMarkdown {
		p.put(s, canvas.Fg(canvas.Text), 0)
		p.end(0)
		return
	}
	m := &marked{paper: p, src: []byte(s), color: color, flow: flow}
	m.blocks(markdown.Parse(gtext.NewReader(m.src)), "")
}

// Markdown lays a Markdown document out, code in it coloured, in rows of at most w
// cells. The text is sanitised; a line's end inside a paragraph is a blank, which it is
// not in a message.
func Markdown(s string, w int) (rows [][]canvas.Cell) {
	p := &paper{w: max(1, w)}
	p.markdown(s, true, true)
	for _, r := range p.rows {
		rows = append(rows, r.cells)
	}
	return rows
}

// marked writes a Markdown tree.
type marked struct {
	*paper
	src   []byte
	color bool
	flow  bool // a line's end inside a paragraph is a blank
	depth int
}

// blocks writes a node's children; each line begins with lead.
func (m *marked) blocks(n ast.Node, lead string) {
	if m.depth++; m.depth > 50 { // no reader follows deeper
		m.depth--
		return
	}
	defer func() { m.depth-- }()
	for c := n.FirstChild(); c != nil && !m.full(); c = c.NextSibling() {
		if c.PreviousSibling() != nil && !tight(c) {
			m.lead(lead)
			m.end(0)
		}
		m.block(c, lead)
	}
}

// tight says that a block follows its neighbour without an empty line.
func tight(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindListItem, ast.KindTextBlock:
		return true
	case ast.KindList:
		return n.Parent().Kind() == ast.KindListItem
	}
	return false
}

func (m *marked) lead(lead string) { m.put(lead, canvas.Fg(canvas.Border), 0) }

func (m *marked) block(n ast.Node, lead string) {
	plain := canvas.Fg(canvas.Text)
	hang := text.Width(lead)
	switch n := n.(type) {
	case *ast.Heading:
		m.lead(lead)
		m.inline(n, canvas.Fg(canvas.Title).With(canvas.Bold|canvas.Underline), lead)
		m.end(hang)
	case *ast.Paragraph, *ast.TextBlock:
		m.lead(lead)
		m.inline(n, plain, lead)
		m.end(hang)
	case *ast.List:
		number := n.Start
		for item := n.FirstChild(); item != nil && !m.full(); item = item.NextSibling() {
			sign := "• "
			if n.IsOrdered() {
				sign = fmt.Sprintf("%d. ", number)
				number++
			}
			m.item(item, lead, sign)
		}
	case *ast.Blockquote:
		m.blocks(n, lead+"│ ")
	case *ast.FencedCodeBlock:
		m.fenced(n, string(n.Language(m.src)), lead)
	case *ast.CodeBlock:
		m.fenced(n, "", lead)
	case *ast.HTMLBlock:
		m.lines(n, lead, canvas.Fg(canvas.Dim))
		if n.HasClosure() {
			m.lead(lead)
			m.put(strings.TrimRight(string(n.ClosureLine.Value(m.src)), "\n"), canvas.Fg(canvas.Dim), 0)
			m.end(hang)
		}
	case *ast.ThematicBreak:
		m.lead(lead)
		m.put(strings.Repeat("─", max(3, min(40, m.w-hang))), canvas.Fg(canvas.Border), 0)
		m.end(0)
	case *east.Table:
		m.table(n, lead)
	default:
		if n.FirstChild() != nil {
			m.blocks(n, lead)
		}
	}
}

// item writes a list's item: its first line has the sign, the others are below
// its text.
func (m *marked) item(n ast.Node, lead, sign string) {
	begin := len(m.rows)
	inner := lead + strings.Repeat(" ", text.Width(sign))
	m.blocks(n, inner)
	if begin >= len(m.rows) {
		m.lead(lead)
		m.put(sign, canvas.Fg(canvas.Key), 0)
		m.end(0)
		return
	}
	cells := m.rows[begin].cells
	over := ink(nil, sign, canvas.Fg(canvas.Key))
	at := text.Width(lead)
	for len(cells) < at+len(over) {
		cells = append(cells, canvas.Cell{})
	}
	copy(cells[at:], over)
	m.rows[begin].cells = cells
}

// fenced writes a block of code.
func (m *marked) fenced(n ast.Node, language, lead string) {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(m.src))
	}
	in := &paper{w: max(8, m.w-text.Width(lead)-2)}
	grammar := grammarOf(language)
	if !m.color {
		grammar = ""
	}
	in.code(strings.TrimRight(b.String(), "\n"), grammar, nil)
	for _, r := range in.rows {
		m.lead(lead)
		m.put("▏ ", canvas.Fg(canvas.Border), 0)
		m.line = append(m.line, r.cells...)
		m.end(0)
	}
}

func (m *marked) lines(n ast.Node, lead string, st canvas.Style) {
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		m.lead(lead)
		m.put(strings.TrimRight(string(line.Value(m.src)), "\n"), st, 0)
		m.end(text.Width(lead))
	}
}

// inline writes the words of a block; their line breaks stay.
func (m *marked) inline(n ast.Node, st canvas.Style, lead string) {
	if m.depth++; m.depth > 100 {
		m.depth--
		return
	}
	defer func() { m.depth-- }()
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			m.put(string(c.Segment.Value(m.src)), st, 0)
			switch {
			case c.SoftLineBreak() && m.flow:
				m.put(" ", st, 0)
			case c.SoftLineBreak() || c.HardLineBreak():
				m.end(text.Width(lead))
				m.lead(lead)
			}
		case *ast.String:
			m.put(string(c.Value), st, 0)
		case *ast.CodeSpan:
			m.inline(c, canvas.Style{Fg: canvas.Service, Attr: st.Attr}, lead)
		case *ast.Emphasis:
			attr := canvas.Italic
			if c.Level > 1 {
				attr = canvas.Bold
			}
			m.inline(c, st.With(attr), lead)
		case *east.Strikethrough:
			m.inline(c, st.With(canvas.Strike), lead)
		case *ast.Link:
			m.inline(c, st.With(canvas.Underline), lead)
			m.put(" ("+text.Line(string(c.Destination))+")", canvas.Fg(canvas.Dim), 0)
		case *ast.Image:
			m.put("image ", canvas.Fg(canvas.Dim), 0)
			m.inline(c, st, lead)
			m.put(" ("+text.Line(string(c.Destination))+")", canvas.Fg(canvas.Dim), 0)
		case *ast.AutoLink:
			m.put(string(c.Label(m.src)), st.With(canvas.Underline), 0)
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				seg := c.Segments.At(i)
				m.put(string(seg.Value(m.src)), canvas.Fg(canvas.Dim), 0)
			}
		case *east.TaskCheckBox:
			sign := "☐ "
			if c.IsChecked {
				sign = "☑ "
			}
			m.put(sign, canvas.Fg(canvas.Key), 0)
		default:
			m.inline(c, st, lead)
		}
	}
}

// table writes a table's rows with their columns aligned; one that is wider than
// the page as a record per row, as wrapped columns would stand under each other's
// heads.
func (m *marked) table(n *east.Table, lead string) {
	var rows [][][]canvas.Cell
	var widths []int
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		st := canvas.Fg(canvas.Text)
		if r.Kind() == east.KindTableHeader {
			st = canvas.Fg(canvas.Title).With(canvas.Bold)
		}
		var cells [][]canvas.Cell
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			in := &marked{paper: &paper{w: 1 << 20}, src: m.src, depth: m.depth}
			in.inline(c, st, "")
			cells = append(cells, in.line)
			if len(widths) < len(cells) {
				widths = append(widths, 0)
			}
			widths[len(cells)-1] = max(widths[len(cells)-1], len(in.line))
		}
		rows = append(rows, cells)
	}
	total := -3
	for _, w := range widths {
		total += w + 3
	}
	if total > m.w-text.Width(lead) && len(rows) > 1 {
		m.records(rows[0], rows[1:], lead)
		return
	}
	for i, r := range rows {
		m.lead(lead)
		for j, cell := range r {
			if j > 0 {
				m.put(" │ ", canvas.Fg(canvas.Border), 0)
			}
			m.line = append(m.line, cell...)
			if j+1 < len(r) {
				m.put(strings.Repeat(" ", widths[j]-len(cell)), canvas.Style{}, 0)
			}
		}
		m.end(text.Width(lead))
		if i == 0 {
			m.lead(lead)
			m.put(strings.Repeat("─", max(1, min(total, m.w-text.Width(lead)))), canvas.Fg(canvas.Border), 0)
			m.end(0)
		}
	}
}

// records writes each row as its first cell and, below it, the others with their
// columns' heads.
func (m *marked) records(head [][]canvas.Cell, rows [][][]canvas.Cell, lead string) {
	for _, r := range rows {
		for j, cell := range r {
			m.lead(lead)
			switch {
			case j == 0:
				m.put("▪ ", canvas.Fg(canvas.Key), 0)
			case len(cell) == 0:
				m.line = m.line[:0]
				continue
			default:
				m.put("  ", canvas.Style{}, 0)
				if j < len(head) {
					m.line = append(m.line, head[j]...)
					m.put(" ", canvas.Style{}, 0)
				}
			}
			m.line = append(m.line, cell...)
			m.end(text.Width(lead) + 4)
		}
	}
}
