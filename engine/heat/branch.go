package heat

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"refbox/engine/branch"
	"refbox/engine/event"
)

// saver keeps the state of a seat's machines; nil when nothing is to be kept. That it
// could not is no failure of the heat's.
func (h *Heat) saver() func(ctx context.Context, territory, milestone string) {
	if h.cfg.States == "" || h.cfg.Package.Manifest.Build == nil {
		return nil
	}
	return func(ctx context.Context, territory, milestone string) {
		s := h.seats[slices.IndexFunc(h.seats, func(s *seat) bool { return s.id() == territory })]
		began := time.Now()
		id, bytes, err := h.cfg.States.Keep(branch.State{Driver: h.cfg.Driver.Kind(), Template: s.template, Arena: h.cfg.Package.Manifest.Arena.ID,
			Package: h.cfg.Package.Origin, SeedSHA256: h.secret.SHA256(), Territory: territory, Milestone: milestone},
			func(dir string, most int64) error { return s.cluster.Save(ctx, dir, most) })
		if err != nil {
			slog.Warn("the state of a seat was not saved", "territory", territory, "milestone", milestone, "error", err)
		}
		if id != "" {
			h.say(event.StateSaved{Territory: territory, Milestone: milestone, State: id, Bytes: uint64(bytes), TookMS: uint64(time.Since(began).Milliseconds())})
		}
	}
}

// inherits says that a milestone had passed in the heat that this one branched from.
func (h *Heat) inherits(milestone string) bool {
	return h.cfg.Branch != nil && h.cfg.Branch.From[milestone].Passed
}

// inherited are the log's first words of a heat that branched from another.
func (h *Heat) inherited() (bodies []event.Body) {
	b := h.cfg.Branch
	if b == nil {
		return nil
	}
	o := b.Origin
	bodies = append(bodies, event.HeatBranched{Territory: o.Territory, Heat: o.Heat, LogHead: o.LogHead, Milestone: o.Milestone, Event: o.Event, AtMS: o.AtMS})
	for _, id := range b.Passed {
		bodies = append(bodies, event.MilestoneInherited{Territory: o.Territory, Milestone: id, Attempt: b.From[id].Attempts, Evidence: b.From[id].Evidence})
	}
	return bodies
}
