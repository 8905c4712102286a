// Package guestassets holds the recipe of the guest image: what is installed,
// how it is trimmed, what is laid over it, and the referee's agent. Package
// vm/image carries the recipe out; its hash is the image's name in the cache.
package guestassets

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed agent.py customize.sh init modules.txt packages.txt all:rootfs
var recipe embed.FS

// Recipe is every file of the recipe.
func Recipe() fs.FS { return recipe }

// Rootfs is laid over the guest's root.
func Rootfs() fs.FS {
	sub, err := fs.Sub(recipe, "rootfs")
	if err != nil {
		return embed.FS{} // cannot be: the name is a constant and valid
	}
	return sub
}

var (
	// Agent is the referee's agent: Python 3, standard library alone.
	//go:embed agent.py
	Agent []byte
	// Init is the initrd's /init, for busybox's shell.
	//go:embed init
	Init []byte
	// Customize is the shell script that trims the root file system given as $1,
	// run in an mmdebstrap customize hook.
	//go:embed customize.sh
	Customize string

	// Services is the shell script that disables the services of an arena's
	// packages, run before Customize when there are any. It is no part of Recipe:
	// an image without such packages does not depend on it.
	//go:embed services.sh
	Services string

	//go:embed packages.txt
	packages string
	//go:embed modules.txt
	modules string
)

// Packages are the Debian packages installed beside the essential ones.
func Packages() []string { return strings.Fields(packages) }

// Modules are the kernel modules that the initrd loads, in order, without those
// that they depend on.
func Modules() []string { return strings.Fields(modules) }
