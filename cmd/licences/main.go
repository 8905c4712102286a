// Command licences lists what the program and its tests are made of, with the
// licence of each module, read from the module's own files. It needs no network:
// what was built is in the module cache.
//
//	go run ./cmd/licences            prints the list
//	go run ./cmd/licences -check F   exits 1 unless F is that list
//	go run ./cmd/licences -texts     prints the licences of what is in the program, in full
//
// A module without a licence file, or with a licence that is not on the list of
// those which may be shipped, is an error that names it.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// shippable are the licences under which a module may be part of the program. The
// last one is that of a font beside a module's code, which may go with anything.
var shippable = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "OFL-1.1"}

// testable may besides be used by tests, which are not shipped.
var testable = []string{"MPL-2.0"}

// least is how much of a licence file must be known words, in per cent: the rest
// is names, years and a project's own preface.
const least = 75

type module struct {
	Path, Version, Dir string
	Replace            *struct{ Version string }
	shipped            bool     // in the program, not in its tests alone
	licences           []string // SPDX names
	files              []string // paths of licences and notices
}

func main() {
	check := flag.String("check", "", "compare with this file")
	texts := flag.Bool("texts", false, "print the licences in full")
	flag.Parse()
	if err := run(os.Stdout, *check, *texts); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, check string, texts bool) error {
	mods, err := modules()
	if err != nil {
		return err
	}
	var faults []error
	for i := range mods {
		faults = append(faults, mods[i].read())
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if texts {
		return printTexts(out, mods)
	}
	list := table(mods)
	if check == "" {
		_, err := out.Write(list)
		return err
	}
	have, err := os.ReadFile(check)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, list) {
		return fmt.Errorf("%s is not the list of today's modules; write it anew: go run ./cmd/licences >%s", check, check)
	}
	return nil
}

// modules are those that the program and the tests are built from, by path.
func modules() ([]module, error) {
	found := map[string]module{}
	for _, q := range []struct {
		shipped bool
		args    []string
	}{{true, []string{"./cmd/refbox"}}, {false, []string{"-test", "./..."}}} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, q.args...)...)
		cmd.Stderr = os.Stderr
		data, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for d := json.NewDecoder(bytes.NewReader(data)); ; {
			var p struct{ Module *module }
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list: %w", err)
			}
			// Modules without a version are this repository's.
			if m := p.Module; m != nil && m.Version != "" && (m.Replace == nil || m.Replace.Version != "") {
				if _, known := found[m.Path]; !known {
					m.shipped = q.shipped
					found[m.Path] = *m
				}
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	found["std"] = module{Path: "the Go standard library", Version: goLine(), Dir: strings.TrimSpace(string(root)), shipped: true}
	var out []module
	for _, m := range found {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// goLine is Go's version without the patch, which changes from host to host.
func goLine() string {
	parts := strings.SplitN(runtime.Version(), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-.].*)?$`)
	// What a module itself took from others, with words of their own (SQLite's is a
	// blessing: it is in the public domain). It is printed in full with the rest.
	noticeFile = regexp.MustCompile(`(?i)^(notice|patents|authors)([-.].*)?$|^licen[cs]e-(3rd-party\.md|logo|sqlite)$`)
)

// read finds a module's licences.
func (m *module) read() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w; go mod download fetches it", m.Path, err)
	}
	for _, e := range entries {
		path := filepath.Join(m.Dir, e.Name())
		switch {
		case !e.Type().IsRegular(), strings.HasSuffix(e.Name(), ".go"):
		case noticeFile.MatchString(e.Name()):
			m.files = append(m.files, path)
		case licenceFile.MatchString(e.Name()):
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			m.files = append(m.files, path)
			cov := licensecheck.Scan(data)
			if cov.Percent < least {
				return fmt.Errorf("%s: %s is no licence that is known (%.0f %% of its words are)", m.Path, e.Name(), cov.Percent)
			}
			for _, match := range cov.Match {
				m.licences = append(m.licences, match.ID)
			}
		}
	}
	slices.Sort(m.licences)
	m.licences = slices.Compact(m.licences)
	if len(m.licences) == 0 {
		return fmt.Errorf("%s %s has no licence file in %s", m.Path, m.Version, m.Dir)
	}
	for _, l := range m.licences {
		if !slices.Contains(shippable, l) && (m.shipped || !slices.Contains(testable, l)) {
			return fmt.Errorf("%s %s is under %s, which is not among %s", m.Path, m.Version, l, strings.Join(shippable, ", "))
		}
	}
	return nil
}

// table is the list as Markdown.
func table(mods []module) []byte {
	var b bytes.Buffer
	b.WriteString("# What refbox is made of\n\nWritten by `task licences`, compared by `task lint`.\n\n| module | version | licence | in |\n|---|---|---|---|\n")
	for _, m := range mods {
		in := "tests"
		if m.shipped {
			in = "program"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.licences, ", "), in)
	}
	return b.Bytes()
}

// printTexts prints what must go with the program.
func printTexts(out io.Writer, mods []module) error {
	for _, m := range mods {
		if !m.shipped {
			continue
		}
		for _, f := range m.files {
			data, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "%s %s: %s\n\n%s\n\n%s\n\n", m.Path, m.Version, filepath.Base(f), strings.TrimSpace(string(data)), strings.Repeat("-", 78)); err != nil {
				return err
			}
		}
	}
	return nil
}
