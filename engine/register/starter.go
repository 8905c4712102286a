package register

import (
	_ "embed"
	"fmt"
)

//go:embed starter.toml
var starterTOML []byte

//go:embed starter.yaml
var starterYAML []byte

// Starter is a commented register of a small estate, to begin one's own from:
// "toml" or "yaml", which say the same. JSON has no comments, so there is none.
func Starter(syntax string) ([]byte, error) {
	switch syntax {
	case "toml":
		return starterTOML, nil
	case "yaml":
		return starterYAML, nil
	}
	return nil, fmt.Errorf("a starter register is toml or yaml, not %q: only they can hold its comments", syntax)
}
