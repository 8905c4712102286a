package canvas

// Color is a cell colour: Default, a Role of the theme, one of the 256 palette
// entries, or 24-bit RGB. The zero value is the terminal's own colour.
type Color uint32

const (
	kindPalette Color = 1 << 24
	kindRGB     Color = 2 << 24
	kindRole    Color = 3 << 24
	kindMask    Color = 0xff << 24
)

// Default is the terminal's own foreground or background.
const Default Color = 0

// Palette returns entry i of the 256-colour palette; 0 to 15 are the terminal's own sixteen.
func Palette(i uint8) Color { return kindPalette | Color(i) }

// RGB returns a 24-bit colour, shown as near as the profile allows.
func RGB(r, g, b uint8) Color { return kindRGB | Color(r)<<16 | Color(g)<<8 | Color(b) }

// The roles that a theme gives colours to. Panes draw with roles only, so that a
// theme can change between two frames without anything being drawn anew.
const (
	Text Color = kindRole + iota
	Dim
	Border
	Focus
	Title
	Ok
	Bad
	Warn
	Accent
	Selection // a background; SelectionText is the foreground on it
	SelectionText
	Bar // a background for header and footer; BarText is the foreground on it
	BarText
	Key // key names in the footer and in help
	Client
	Proxy
	Service
	Worker
	Queue
	Database
	Storage
	Host
	Traffic
	QueueLink
	Replication
	StorageLink
	Lifecycle
	Seat1
	Seat2
	Seat3
	Seat4
	roleEnd
)

const roleCount = int(roleEnd - kindRole)

// Attr is a set of character attributes.
type Attr uint32

// Attributes; a profile that knows none (Plain) leaves them out, so nothing may be
// told by an attribute alone.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Reverse
	Strike
)

// Style is how a cell is drawn. Styles are values; they compare with ==.
type Style struct {
	Fg, Bg Color
	Attr   Attr
}

// Fg returns the style with foreground c on the default background.
func Fg(c Color) Style { return Style{Fg: c} }

// With returns s with attributes a added.
func (s Style) With(a Attr) Style { s.Attr |= a; return s }

// On returns s on background c.
func (s Style) On(c Color) Style { s.Bg = c; return s }
