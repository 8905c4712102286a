package export_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"refbox/engine/export"
	"refbox/engine/export/exporttest"
	"refbox/engine/internal/shared"
	"refbox/engine/recording"
	"refbox/engine/redact"
	"refbox/engine/text"
)

var update = flag.Bool("update", false, "write the golden files anew")

func open(t testing.TB, dir string) *recording.Recording {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	if err := rec.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return rec
}

func report(t testing.TB, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := export.Report(context.Background(), &b, open(t, dir), &redact.Redactor{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReportGolden(t *testing.T) {
	got := report(t, exporttest.Small(t))
	golden := filepath.Join("testdata", "small.html")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("the page is not %s; look at it, and run the test with -update if it is right", golden)
	}
}

func TestReportTellsTheHeat(t *testing.T) {
	page := string(report(t, exporttest.Small(t)))
	for _, want := range []string{
		"failover-one won: first durable deployment.", "100 / 100", "00:05.700 – 00:05.800", "1200 in, 80 out", "$0.001234", "Reads restored",
		"systemctl stop old-primary &amp;&amp; echo &lt;done&gt;", "withstood", "the old primary is started", "&lt;upstream&gt; does not answer",
		"seat two guesses", "slow-disk", "match.json names the last",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// What a page may consist of. Nothing that loads, runs, or leads elsewhere.
var (
	elements = strings.Fields(`html head meta title style body header div h1 h2 h3 p dl dt dd span main section table thead tbody tr th td
		svg line text circle polygon g details summary pre code br footer`)
	attributes = strings.Fields(`lang charset http-equiv content name class colspan viewbox viewBox role aria-label x y x1 x2 y1 y2 cx cy r dy
		text-anchor points stroke-linecap stroke-width`)
)

// What a canary measured is in the standings, in the time line and in the story; a heat
// without one has no column for it.
func TestReportTellsOfTheCanary(t *testing.T) {
	page := string(report(t, exporttest.Canaried(t)))
	for _, want := range []string{"<th>writes lost</th><th>outage</th>", "<td>2 of 3, 0.7 s</td><td>4.1 s</td>", `<line class="served"`,
		"3 writes acknowledged from", "an acknowledged write at 4.1 s", "a read not seen"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(string(report(t, exporttest.Small(t))), "writes lost") {
		t.Error("a heat without a canary has its column")
	}
}

// check parses a page and looks at every part of it.
func check(t *testing.T, page []byte) {
	t.Helper()
	if !utf8.Valid(page) {
		t.Error("the page is not UTF-8")
	}
	for _, line := range strings.Split(string(page), "\n") {
		if text.Line(line) != line {
			t.Errorf("a line that a terminal would obey: %q", line)
		}
	}
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	policy := false
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			if !slices.Contains(elements, n.Data) {
				t.Errorf("element %q", n.Data)
			}
			for _, a := range n.Attr {
				if !slices.Contains(attributes, a.Key) {
					t.Errorf("attribute %q of %s", a.Key, n.Data)
				}
				if a.Key == "http-equiv" {
					policy = a.Val == "Content-Security-Policy" && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
						return a.Key == "content" && a.Val == "default-src 'none'; style-src 'unsafe-inline'"
					})
				}
			}
			if n.Data == "style" && (strings.Contains(n.FirstChild.Data, "url(") || strings.Contains(n.FirstChild.Data, "@import")) {
				t.Error("the style loads something")
			}
		case html.CommentNode:
			t.Errorf("comment %q", n.Data)
		}
	}
	if !policy {
		t.Error("the page has no policy against loading")
	}
}

func TestReportOfHostileHeats(t *testing.T) {
	for name, s := range exporttest.Strings() {
		t.Run(name, func(t *testing.T) { check(t, report(t, exporttest.Hostile(t, s))) })
	}
	if page := string(report(t, exporttest.Hostile(t, "<b>&\"x"))); strings.Count(page, "&lt;b&gt;&amp;") < 100 {
		t.Error("the strings of a hostile heat are not on its page")
	}
	t.Run("huge", func(t *testing.T) {
		dir := exporttest.Small(t)
		line := `{"schema_version":1,"sequence":99,"elapsed_ms":6000,"kind":"operator_note","author":"x","text":"` + strings.Repeat("<b>", 10<<20/3) + `"}` + "\n"
		f, err := os.OpenFile(filepath.Join(dir, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		f.Close()
		page := report(t, dir)
		check(t, page)
		if len(page) > 1<<20 {
			t.Fatalf("a page of %d bytes", len(page))
		}
	})
}

func TestReportOfManyEventsIsBounded(t *testing.T) {
	page := report(t, exporttest.Large(t, 50_000))
	check(t, page)
	if len(page) > 2<<20 {
		t.Fatalf("a page of %d bytes", len(page))
	}
	if !strings.Contains(string(page), "more are in the recording") {
		t.Error("what was left out is not told of")
	}
}

func TestReportOfRecordings(t *testing.T) {
	for _, dir := range shared.Recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) { check(t, report(t, dir)) })
	}
}

func TestReportOfAnEmptyFolder(t *testing.T) {
	page := report(t, t.TempDir())
	check(t, page)
	if !strings.Contains(string(page), "Nothing was recorded.") {
		t.Error("the page does not say that nothing was recorded")
	}
}

var fileLines = regexp.MustCompile(`<p class="file dim"><code>[^<]*</code>`)

// Secrets in any field of a heat are not on its page, whole or cut at a cell's edge;
// they are where redaction is switched off, and the page says how many there were.
func TestReportHoldsNoSecrets(t *testing.T) {
	for _, s := range []string{"gh" + "p_" + strings.Repeat("Zq9Xw", 8), "postgres://app:Zq9Xwhunter@db/x", "PGPASSWORD=Zq9Xwhunter psql", "Authorization: Bearer Zq9XwZq9XwZq9Xw"} {
		for _, pad := range []string{"", strings.Repeat("many words ", 53) + " "} {
			dir := exporttest.Hostile(t, " "+pad+s)
			// The names of folders are altered, so that no rule knows them; nobody names one
			// after a key.
			page := fileLines.ReplaceAllString(string(report(t, dir)), "")
			page = strings.ReplaceAll(page, html.EscapeString(filepath.Base(dir)), "")
			if i := strings.Index(page, "Zq9"); i >= 0 {
				t.Errorf("%s: …%s…", s, page[max(0, i-80):min(len(page), i+80)])
			}
			if !strings.Contains(page, "redacted") {
				t.Errorf("%s: the page does not say that something was redacted", s)
			}
			var b bytes.Buffer
			if err := export.Report(context.Background(), &b, open(t, dir), nil); err != nil {
				t.Fatal(err)
			}
			if pad == "" && !strings.Contains(b.String(), "Zq9") {
				t.Errorf("%s: is not on the page without redaction: the test looks for nothing", s)
			}
		}
	}
}
