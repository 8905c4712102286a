package canvas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"refbox/assets"
	"refbox/tui/internal/place"
)

// roleNames are the roles as a theme's file calls them.
var roleNames = map[string]Color{
	"background": background, "text": Text, "dim": Dim, "border": Border, "focus": Focus, "title": Title,
	"ok": Ok, "bad": Bad, "warn": Warn, "accent": Accent,
	"selection": Selection, "selection-text": SelectionText, "bar": Bar, "bar-text": BarText, "key": Key,
	"client": Client, "proxy": Proxy, "service": Service, "worker": Worker, "queue": Queue, "database": Database,
	"storage": Storage, "host": Host,
	"traffic": Traffic, "queue-link": QueueLink, "replication": Replication, "storage-link": StorageLink, "lifecycle": Lifecycle,
	"seat-1": Seat1, "seat-2": Seat2, "seat-3": Seat3, "seat-4": Seat4,
}

// Dark returns the theme for dark backgrounds.
func Dark() Theme { return bundled()[0] }

// Light returns the theme for light backgrounds.
func Light() Theme { return bundled()[1] }

// HighContrast returns the theme of black, white and few strong colours.
func HighContrast() Theme { return bundled()[2] }

// Bundled are the three themes that the program brings along.
func Bundled() []Theme { return slices.Clone(bundled()) }

var bundled = sync.OnceValue(func() []Theme {
	var out []Theme
	for _, name := range []string{"dark", "light", "high-contrast"} {
		t, err := ParseTheme(name, assets.Theme(name), Theme{})
		if err != nil { // they are ours and a test reads them
			t = Theme{name: name}
		}
		out = append(out, t)
	}
	return out
})

// ThemeError is what is wrong with a theme's file, and where.
type ThemeError struct {
	Line int // from 1; 0 for the file as a whole
	Text string
}

func (e ThemeError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// ParseTheme reads a theme of TOML:
//
//	paint = true              # its background is drawn, too; false unless it is said
//	[colors]
//	text = "#d7dce4 -"        # a role's colour, and the one of sixteen (0 to 15, - for the terminal's own)
//
// Roles that are left out are base's. An error is a ThemeError.
func ParseTheme(name string, data []byte, base Theme) (Theme, error) {
	var file struct {
		Paint  bool                     `toml:"paint"`
		Colors map[string]themeRoleText `toml:"colors"`
	}
	meta, err := toml.Decode(string(data), &file)
	if err != nil {
		line, what := place.Fault(err)
		return Theme{}, ThemeError{line, what}
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return Theme{}, ThemeError{place.Line(data, unknown[0]...), fmt.Sprintf("the key %q is not known; there are paint and colors", unknown[0].String())}
	}
	t := Theme{name: name, paint: file.Paint, roles: new([roleCount + 1]roleColor)}
	if base.roles != nil {
		*t.roles = *base.roles
	}
	for role, c := range file.Colors {
		at, known := roleNames[role]
		if !known {
			return Theme{}, ThemeError{place.Line(data, "colors", role), fmt.Sprintf("no role is called %q; there are %s", role, strings.Join(RoleNames(), ", "))}
		}
		t.roles[at-kindRole] = roleColor(c)
	}
	if base.roles == nil {
		for _, role := range RoleNames() {
			if _, given := file.Colors[role]; !given {
				return Theme{}, ThemeError{0, fmt.Sprintf("the role %q has no colour", role)}
			}
		}
	}
	return t, nil
}

// RoleNames are the roles that a theme gives colours to, by name.
func RoleNames() []string {
	var out []string
	for name := range roleNames {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// themeRoleText is a role's colour as a file has it.
type themeRoleText roleColor

func (c *themeRoleText) UnmarshalText(b []byte) error {
	colour, own, two := strings.Cut(string(b), " ")
	hex, ok := strings.CutPrefix(colour, "#")
	n, err := strconv.ParseUint(hex, 16, 32)
	if !ok || err != nil || len(hex) != 6 {
		return fmt.Errorf("%q is no colour; it is #rrggbb, and perhaps after a blank 0 to 15 or -", b)
	}
	rgb := RGB(uint8(n>>16), uint8(n>>8), uint8(n))
	*c = themeRoleText{rgb: rgb, p: nearest256(rgb), ansi: int8(nearest16(rgb))}
	switch {
	case !two:
	case own == "-":
		c.ansi = -1
	default:
		i, err := strconv.ParseUint(own, 10, 8)
		if err != nil || i > 15 {
			return fmt.Errorf("%q is none of the sixteen colours: they are 0 to 15, or - for the terminal's own", own)
		}
		c.ansi = int8(i)
	}
	return nil
}
