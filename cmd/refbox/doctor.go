package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"refbox/engine/text"
	"refbox/vm/accel"
	"refbox/vm/image"
)

// finding is one thing that doctor looked at.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // the command that mends it
}

func newDoctor(a *app) *cobra.Command {
	var fix, yes, asJSON bool
	c := &cobra.Command{
		Use:   "doctor [ARENA]",
		Short: "Say what real machines need and this host lacks, and mend it",
		Long: `Says what real machines need and this host lacks. With an arena it looks for the
image that has the Debian packages that the arena names, too.`,
		Example: "  refbox doctor\n  refbox doctor --fix\n  refbox doctor failover-lab --fix",
		Args:    maxArgs(1, "at most one arena"),
		RunE: func(cmd *cobra.Command, args []string) error {
			packages, err := packagesOfArena(args)
			if err != nil {
				return err
			}
			if fix {
				if err := mend(cmd.Context(), a, yes, packages); err != nil {
					return environmentError(err)
				}
			}
			findings, err := examine(cmd.Context(), args, packages)
			if err != nil {
				return err
			}
			return reportFindings(a, findings, asJSON)
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "install what is missing and build the guest image")
	c.Flags().BoolVar(&yes, "yes", false, "don't ask before installing")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// mend installs the tools and builds the image, and the one with these packages.
func mend(ctx context.Context, a *app, yes bool, packages []string) error {
	if err := installTools(ctx, a, yes); err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	p := newProgress(a)
	defer p.done()
	if _, err := image.Ensure(ctx, cache, nil, p.report); err != nil || len(packages) == 0 {
		return err
	}
	_, err = image.Ensure(ctx, cache, packages, p.report)
	return err
}

// examine looks the host over; args are doctor's: an arena or none, that wants these
// packages.
func examine(ctx context.Context, args, packages []string) ([]finding, error) {
	var out []finding
	missing := needs()
	tools := finding{What: "tools", OK: len(missing) == 0, Detail: "all there"}
	if len(missing) > 0 {
		tools.Detail = "missing: " + toolNames(missing)
		tools.Fix = strings.Join(aptCommand("install", packagesOf(missing)...), " ")
	}
	out = append(out, tools)
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	if path, err := exec.LookPath("qemu-system-x86_64"); err == nil {
		acc, err := accel.Choose(ctx, cache, path)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f := finding{What: "acceleration", OK: err == nil, Detail: fmt.Sprintf("%s, %s", acc.Name, acc.Why)}
		if err != nil {
			f.Detail = err.Error()
		}
		out = append(out, f)
	}
	out = append(out, cached("guest image", "refbox image build", cache, nil))
	if len(packages) > 0 {
		out = append(out, cached("arena image", "refbox image build "+text.Shell(args[0]), cache, packages))
	}
	out = append(out, diskSpace(cache))
	return out, nil
}

// cached says whether an image is built.
func cached(what, fix, cache string, packages []string) finding {
	img, err := image.Cached(cache, packages)
	switch {
	case err == nil:
		return finding{What: what, OK: true, Detail: fmt.Sprintf("%.12s, kernel %s", img.Digest, img.KernelVersion)}
	case errors.Is(err, fs.ErrNotExist):
		return finding{What: what, Detail: "not built yet", Fix: fix}
	}
	return finding{What: what, Detail: err.Error(), Fix: fix}
}

// leastFree is room for the image, a prepared state and a heat's overlays.
const leastFree = 3 << 30

func diskSpace(dir string) finding {
	f := finding{What: "disk space"}
	for d := dir; ; d = d[:strings.LastIndexByte(d, '/')] {
		var st unix.Statfs_t
		err := unix.Statfs(d, &st)
		if errors.Is(err, os.ErrNotExist) && strings.LastIndexByte(d, '/') > 0 {
			continue
		}
		if err != nil {
			f.Detail = err.Error()
			return f
		}
		free := st.Bavail * uint64(st.Bsize)
		f.OK = free >= leastFree
		f.Detail = fmt.Sprintf("%.1f GiB free for %s", float64(free)/(1<<30), dir)
		if !f.OK {
			f.Fix = "free some space there, or set XDG_CACHE_HOME"
		}
		return f
	}
}

func reportFindings(a *app, findings []finding, asJSON bool) error {
	broken := false
	for _, f := range findings {
		broken = broken || !f.OK
	}
	if asJSON {
		if err := writeJSON(a.out, findings); err != nil {
			return err
		}
	} else {
		// The renderer looks at the output: colours only on a terminal that has them.
		styles := lipgloss.NewRenderer(a.out)
		good, bad := styles.NewStyle().Foreground(lipgloss.Color("2")), styles.NewStyle().Foreground(lipgloss.Color("1")).Bold(true)
		for _, f := range findings {
			mark := good.Render("ok  ")
			if !f.OK {
				mark = bad.Render("LACK")
			}
			fmt.Fprintf(a.out, "%s  %-12s  %s\n", mark, f.What, f.Detail)
			if f.Fix != "" {
				fmt.Fprintf(a.out, "      mend it: %s\n", f.Fix)
			}
		}
	}
	if broken {
		return exitError{code: exitEnvironment}
	}
	return nil
}
