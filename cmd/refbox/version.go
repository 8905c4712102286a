package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is stamped by the packager; a build from a clone says its revision.
var version = "dev"

// revision is the commit the binary was built from, and whether the tree had
// changes on top of it; empty when the build did not record it.
func revision() (rev string, dirty bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	return rev, dirty
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  refbox version",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			rev, dirty := revision()
			switch {
			case rev == "":
				rev = "unknown revision"
			case dirty:
				rev += " with local changes"
			}
			_, err := fmt.Fprintf(a.out, "refbox %s (%s, %s)\n", version, rev, runtime.Version())
			return err
		},
	}
}
