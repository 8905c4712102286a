package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"refbox/vm/image"
)

func newImage(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "The guest image that every machine starts from",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError("image takes a command: build\ntry: refbox image --help")
		},
	}
	c.AddCommand(&cobra.Command{
		Use:     "build",
		Short:   "Build the guest image, unless the cache has it",
		Example: "  refbox image build",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := cacheDir()
			if err != nil {
				return err
			}
			p := newProgress(a.err)
			img, err := image.Ensure(cmd.Context(), cache, p.report)
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
