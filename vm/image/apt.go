package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"refbox/vm"
)

// target is one index of packages that the host's apt is set up for.
type target struct {
	URI, Release, Component, Codename, Origin string
}

// indexTargets asks apt for the host's sources: apt reads both of its formats.
func indexTargets(ctx context.Context) ([]target, error) {
	cmd := exec.CommandContext(ctx, "apt-get", "indextargets", "--format",
		"$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)\t$(CODENAME)\t$(ORIGIN)", "Created-By: Packages", "Target-Of: deb")
	cmd.Env = toolEnv()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("apt-get indextargets: %w", toolError(err))
	}
	var ts []target
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 5 {
			continue
		}
		for i := range f {
			if strings.HasPrefix(f[i], "$(") {
				f[i] = "" // apt does not know it before the lists are fetched
			}
		}
		ts = append(ts, target{f[0], f[1], f[2], f[3], f[4]})
	}
	return ts, nil
}

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// sourceLines are the lines of a sources.list: the host's own sources, as far as
// they are Debian's main archive for that suite.
func sourceLines(ts []target, suite, keyring string) ([]string, error) {
	suites := []string{suite, suite + "-updates", suite + "-security", suite + "/updates"}
	var lines []string
	for _, t := range ts {
		name := t.Codename
		if name == "" {
			name = t.Release
		}
		ours := t.Component == "main" && (t.Origin == "Debian" || t.Origin == "") &&
			(slices.Contains(suites, name) || slices.Contains(suites, t.Release))
		if !ours || strings.HasPrefix(t.URI, "cdrom:") || strings.ContainsAny(t.URI+t.Release, " \t\r\n[]") {
			continue
		}
		options := ""
		if keyring != "" {
			options = "[signed-by=" + keyring + "] "
		}
		line := "deb " + options + t.URI + " " + t.Release + " main"
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%w: Debian's %s in this host's apt sources (/etc/apt/sources.list and sources.list.d)",
			vm.ErrMissing, suite)
	}
	return lines, nil
}

// aptOptions are the host's settings that reaching its mirrors may rest on.
func aptOptions(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%f\t%v%n", "Acquire")
	cmd.Env = toolEnv()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("apt-config dump: %w", toolError(err))
	}
	return pickOptions(string(out)), nil
}

func pickOptions(dump string) []string {
	var options []string
	for line := range strings.Lines(dump) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok || value == "" || strings.ContainsAny(name+value, "\"\n;{}") {
			continue
		}
		lower := strings.ToLower(name)
		switch {
		case strings.HasPrefix(lower, "acquire::http::"), strings.HasPrefix(lower, "acquire::https::"),
			lower == "acquire::check-valid-until", lower == "acquire::check-date",
			lower == "acquire::retries", strings.HasPrefix(lower, "acquire::forceipv"):
			options = append(options, fmt.Sprintf("%s %q", name, value))
		}
	}
	return options
}

// sources collects what mmdebstrap needs to know of the host's apt.
func sources(ctx context.Context) (lines, options []string, err error) {
	suite, err := hostSuite()
	if err != nil {
		return nil, nil, err
	}
	ts, err := indexTargets(ctx)
	if err != nil {
		return nil, nil, err
	}
	keyring := debianKeyring
	if _, err := os.Stat(keyring); err != nil {
		keyring = ""
	}
	if lines, err = sourceLines(ts, suite, keyring); err != nil {
		return nil, nil, err
	}
	options, err = aptOptions(ctx)
	return lines, options, err
}
