package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"

	"refbox/engine/arena"
	"refbox/engine/recording"
	"refbox/engine/text"
	"refbox/recordings"
	"refbox/tui"
)

// lobby shows what there is; an arena that is chosen there is raced, and then
// the lobby is shown again.
func lobby(ctx context.Context, a *app) error {
	if !canShow(a) {
		return listEverything(ctx, a)
	}
	for {
		lib, err := library(ctx)
		if err != nil {
			return err
		}
		c, err := tui.Lobby(ctx, screenConfig(a), lib, a.in, a.out)
		if err == nil && c.Race != nil {
			f := &registerFlags{a: a}
			set, err := f.settings()
			if err != nil {
				return err
			}
			if c, err = f.screen(ctx, c.Race.Register, set, runOptions{machines: "qemu"}, c.Race); err != nil || c.Interrupted {
				return leaveScreen(c, err)
			}
			continue
		}
		if err == nil && c.Branch != nil {
			err = branched(ctx, a, c.Branch)
			var e exitError
			if err != nil && !errors.As(err, &e) || ctx.Err() != nil {
				return err
			}
			continue
		}
		if err != nil || c.Run == "" {
			return leaveScreen(c, err)
		}
		err = runHeat(ctx, a, c.Run, runOptions{machines: "qemu", play: c.Sit})
		var e exitError
		if err != nil && !errors.As(err, &e) || ctx.Err() != nil {
			return err
		}
	}
}

func library(ctx context.Context) (tui.Library, error) {
	var lib tui.Library
	for _, id := range arena.Bundled() {
		p, err := arena.Load(id)
		if err != nil {
			return lib, err
		}
		lib.Arenas = append(lib.Arenas, p)
	}
	dir, err := recordingsDir()
	if err != nil {
		return lib, err
	}
	lib.Screens = append(seasonEntries(ctx, filepath.Join(filepath.Dir(dir), "seasons")), registerEntries(filepath.Join(filepath.Dir(dir), "registers"))...)
	if bundled, err := bundledSeasons(); err == nil {
		lib.Screens = append(seasonEntries(ctx, bundled), lib.Screens...)
	} else {
		slog.Warn("the bundled seasons are not in the lobby", "error", err)
	}
	lib.Screens = append(lib.Screens, ledgerEntries(filepath.Join(filepath.Dir(dir), "ledgers"))...)
	lib.Shelves = []tui.Shelf{folderShelf(dir), embeddedShelf{}}
	lib.Desk = func(rec *recording.Recording) tui.Desk {
		if !rec.Live() {
			return tui.Desk{}
		}
		return tui.Desk{Desk: distant(deskSocket(rec.Path())), Author: author()}
	}
	return lib, nil
}

// folderShelf is a folder that holds recordings.
type folderShelf string

func (f folderShelf) List(context.Context) ([]recording.Summary, error) {
	list, err := recording.List(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing has been recorded yet
	}
	return list, err
}

func (folderShelf) Open(path string) (*recording.Recording, error) { return recording.Open(path) }

// embeddedShelf holds the recordings that the program brings along.
type embeddedShelf struct{}

func (embeddedShelf) List(context.Context) ([]recording.Summary, error) {
	var out []recording.Summary
	for _, name := range recordings.Names() {
		rec, err := recording.OpenFS(recordings.Heats(), name)
		if err != nil {
			return out, err
		}
		out = append(out, rec.Summary())
		rec.Close()
	}
	return out, nil
}

func (embeddedShelf) Open(path string) (*recording.Recording, error) {
	return recording.OpenFS(recordings.Heats(), path)
}

// listEverything is the lobby without a terminal.
func listEverything(ctx context.Context, a *app) error {
	if err := listArenas(a, false); err != nil {
		return err
	}
	lib, err := library(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	for _, s := range lib.Shelves {
		list, err := s.List(ctx)
		if err != nil {
			return err
		}
		for _, r := range list {
			fmt.Fprintln(a.out, strings.TrimRight(fmt.Sprintf("%-40s  %-10s  %-20s  %-7s  %s", r.Path, r.State, r.Winner, r.Badge, r.Machines), " "))
		}
	}
	for _, e := range lib.Screens {
		if e.Group == "Seasons" {
			fmt.Fprintf(a.out, "season %s: %s\n", text.Line(e.Name), text.Line(e.Note))
		}
	}
	if a.settings.Reader {
		fmt.Fprintln(a.err, "refbox run ARENA and refbox replay RECORDING tell a heat in lines; refbox --help says what else there is.")
		return nil
	}
	fmt.Fprintln(a.err, "The lobby needs a terminal; refbox --help says what works without one.")
	return nil
}
