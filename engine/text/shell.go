package text

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Shell is a path or a name as one word of a command that is printed to be typed or
// pasted: sanitised, and quoted where a POSIX shell would read it otherwise. A path
// that begins with a dash is not taken for a flag.
func Shell(word string) string {
	word = Line(word)
	if strings.HasPrefix(word, "-") {
		word = "./" + word
	}
	q, err := syntax.Quote(word, syntax.LangPOSIX)
	if err != nil { // a POSIX shell's quotes cannot hold it: what is sanitised has none such
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return q
}
