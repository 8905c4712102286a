package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"refbox/engine/arena"
	"refbox/vm/image"
)

func newImage(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "image",
		Short:   "The guest image that every machine starts from",
		Example: "  refbox image build",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError("image takes a command: build\ntry: refbox image --help")
		},
	}
	c.AddCommand(&cobra.Command{
		Use:   "build [ARENA]",
		Short: "Build the guest image, unless the cache has it",
		Long: `Builds the guest image, unless the cache has it: the plain one, or with an arena
the one that has the Debian packages that it names (guest.packages).`,
		Example: "  refbox image build\n  refbox image build failover-lab",
		Args:    maxArgs(1, "at most one arena"),
		RunE: func(cmd *cobra.Command, args []string) error {
			packages, err := packagesOfArena(args)
			if err != nil {
				return err
			}
			cache, err := cacheDir()
			if err != nil {
				return err
			}
			p := newProgress(a)
			img, err := image.Ensure(cmd.Context(), cache, packages, p.report)
			p.done()
			if err != nil {
				return environmentError(err)
			}
			fmt.Fprintf(a.out, "image   %s\nkernel  %s\ndisk    %s\n", img.Digest, img.KernelVersion, img.Disk)
			return nil
		},
	})
	return c
}

// packagesOfArena are the Debian packages that the arena of an optional argument
// wants in its guests.
func packagesOfArena(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	pkg, err := arena.Load(args[0])
	if err != nil {
		return nil, err
	}
	return pkg.Guest().Packages, nil
}
