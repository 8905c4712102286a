package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"refbox/engine/text"
	"refbox/tui/settings"
)

// configure reads the configuration. One that is broken stops nothing: what is wrong
// with it is said, and what can be used of it is the environment's and the defaults.
func (a *app) configure(cmd *cobra.Command) error {
	for c := cmd; c != nil; c = c.Parent() {
		switch c.Name() {
		case "completion", "help", "man", "version", "config", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return nil
		}
	}
	file, err := configFile()
	if err != nil {
		file = "" // a bare environment has none, and needs none
	}
	if a.settings, err = settings.Read(file, os.Getenv); err == nil {
		return nil
	}
	fmt.Fprintln(a.err, "refbox: "+text.Block(err.Error()))
	if a.settings, err = settings.Read("", os.Getenv); err != nil { // the environment's own fault
		a.settings, err = settings.Read("", func(name string) string {
			if name == "REFBOX_THEME" {
				return ""
			}
			return os.Getenv(name)
		})
	}
	fmt.Fprintln(a.err, "refbox: goes on without it; refbox config looks at it again")
	return err
}

func newConfig(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "config",
		Short: "Show what is configured, and where each value comes from",
		Long: `Shows the settings in force with their origin: the default, a line of the
configuration file, or a variable of the environment, which wins over the file. Then
the folders that refbox uses. refbox config init writes a commented file to begin from.`,
		Example: "  refbox config\n  refbox config init",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return showConfig(a, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(&cobra.Command{
		Use:   "init",
		Short: "Write a commented configuration file",
		Long: `Writes a configuration file in which every setting stands with its default and a
comment. It sets nothing until a line is changed. A file that exists is left alone.`,
		Example: "  refbox config init\n  REFBOX_CONFIG=./refbox.toml refbox config init",
		Args:    exactArgs(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return initConfig(a) },
	})
	return c
}

func showConfig(a *app, asJSON bool) error {
	file, err := configFile()
	if err != nil {
		return err
	}
	s, err := settings.Read(file, os.Getenv)
	if err != nil {
		return usageError("%w", err)
	}
	values := append(s.Values, settings.Value{Name: "colours", Value: colours(), Origin: colourOrigin()})
	for _, f := range []struct {
		name, variable string
		path           func() (string, error)
	}{
		{"recordings", "XDG_DATA_HOME", recordingsDir}, {"cache", "XDG_CACHE_HOME", cacheDir},
		{"runtime", "XDG_RUNTIME_DIR", func() (string, error) { return runtimeDir(), nil }},
		{"log", "XDG_STATE_HOME", func() (string, error) { return cmp.Or(logFile(), "none"), nil }},
	} {
		path, err := f.path()
		if err != nil {
			path = err.Error()
		}
		origin := "default"
		if os.Getenv(f.variable) != "" {
			origin = f.variable
		}
		values = append(values, settings.Value{Name: f.name, Value: path, Origin: origin})
	}
	if asJSON {
		return writeJSON(a.out, struct {
			File   string           `json:"file"`
			Exists bool             `json:"exists"`
			Values []settings.Value `json:"values"`
		}{file, there(file), values})
	}
	is := ""
	if !there(file) {
		is = "  (not there; refbox config init writes it)"
	}
	fmt.Fprintf(a.out, "%s%s\n\n", text.Line(file), is)
	wide := 0
	for _, v := range values {
		wide = max(wide, len(v.Name))
	}
	for _, v := range values {
		origin := text.Line(v.Origin)
		if rest, ok := strings.CutPrefix(origin, file+":"); ok {
			origin = "line " + rest
		}
		fmt.Fprintf(a.out, "%-*s  %s  (%s)\n", wide, v.Name, text.Line(v.Value), origin)
	}
	return nil
}

func colours() string {
	if os.Getenv("NO_COLOR") != "" {
		return "none"
	}
	return "as the terminal has them"
}

func colourOrigin() string {
	for _, name := range []string{"NO_COLOR", "COLORTERM", "TERM"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return "default"
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func initConfig(a *app) error {
	file, err := configFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return environmentError(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return brokenError(fmt.Errorf("%s is there already, and is left as it is", text.Line(file)))
	}
	if err != nil {
		return environmentError(err)
	}
	_, err = f.WriteString(settings.Starter())
	if err = errors.Join(err, f.Close()); err != nil {
		return environmentError(fmt.Errorf("write %s: %w", text.Line(file), err))
	}
	fmt.Fprintln(a.out, text.Line(file))
	return nil
}
