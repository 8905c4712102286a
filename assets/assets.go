// Package assets embeds what refbox brings along.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed all:arenas
var arenas embed.FS

// Arenas holds one folder per bundled arena package, named by the arena's id.
func Arenas() fs.FS {
	sub, err := fs.Sub(arenas, "arenas")
	if err != nil { // "arenas" is a valid name: it cannot fail
		return arenas
	}
	return sub
}
