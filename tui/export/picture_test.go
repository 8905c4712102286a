package export_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"refbox/engine/export/exporttest"
	"refbox/engine/text"
	"refbox/tui/export"
)

// elements reads an SVG as a viewer would, and returns its words. Anything but
// shapes and text, and any attribute that could load or run something, fails.
func elements(t *testing.T, svg []byte) string {
	t.Helper()
	var words strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return words.String()
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			switch tok.Name.Local {
			case "svg", "rect", "g", "text":
			default:
				t.Fatalf("a picture holds <%s>", tok.Name.Local)
			}
			for _, a := range tok.Attr {
				if n := a.Name.Local; strings.HasPrefix(n, "on") || n == "href" || n == "style" {
					t.Fatalf("a picture holds the attribute %s", n)
				}
			}
		case xml.CharData:
			words.Write(tok)
			words.WriteByte(' ')
		}
	}
}

func picture(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	if err := export.Picture(t.Context(), &b, open(t, dir), 120, 34, 1<<40); err != nil {
		t.Fatal(err)
	}
	return elements(t, b.Bytes())
}

func TestPictureShowsTheFrame(t *testing.T) {
	words := picture(t, exporttest.Small(t))
	for _, want := range []string{"refbox", "finished", "help"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in the picture: %s", want, words)
		}
	}
}

func TestPictureOfHostileHeats(t *testing.T) {
	for name, s := range exporttest.Strings() {
		t.Run(name, func(t *testing.T) {
			words := picture(t, exporttest.Hostile(t, s))
			if clean := text.Block(words); clean != words {
				t.Errorf("what the sanitiser would take out is in the picture: %q", words)
			}
		})
	}
}
