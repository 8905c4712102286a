// Package assets embeds what refbox brings along.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed all:arenas
var arenas embed.FS

//go:embed library
var library embed.FS

//go:embed register/example.toml
var register []byte

//go:embed ledger/model.json
var ledgerModel []byte

//go:embed ledger/failover-lab.json
var laboratoryModel []byte

//go:embed ledger/policy.toml
var ledgerPolicy []byte

//go:embed themes
var themes embed.FS

// Theme is a bundled theme, TOML; nil for a name that none has.
func Theme(name string) []byte {
	data, err := themes.ReadFile("themes/" + name + ".toml")
	if err != nil {
		return nil
	}
	return data
}

// Library holds the guest library: files that several arenas lay on their machines.
func Library() fs.FS {
	sub, err := fs.Sub(library, "library")
	if err != nil { // "library" is a valid name: it cannot fail
		return library
	}
	return sub
}

// LedgerModel is the example of a failure model, JSON, and LedgerPolicy what counts as
// evidence unless a ledger says otherwise, TOML; the caller leaves them as they are.
func LedgerModel() []byte  { return ledgerModel }
func LedgerPolicy() []byte { return ledgerPolicy }

// LedgerModelOf is the failure model of a bundled laboratory, by its arena's name; nil
// for one that has none.
func LedgerModelOf(arena string) []byte {
	if arena == "failover-lab" {
		return laboratoryModel
	}
	return nil
}

// Register is the example of a datastore register, in TOML; the caller leaves it
// as it is.
func Register() []byte { return register }

// Arenas holds one folder per bundled arena package, named by the arena's id.
func Arenas() fs.FS {
	sub, err := fs.Sub(arenas, "arenas")
	if err != nil { // "arenas" is a valid name: it cannot fail
		return arenas
	}
	return sub
}
