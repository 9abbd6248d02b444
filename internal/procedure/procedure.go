// Package procedure creates and edits what Ironic keeps for many nodes: deploy templates, runbooks and inspection rules.
package procedure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// label is how messages name a deploy template or a runbook.
func label(in ironic.Collection, name string) string {
	if in == ironic.Runbooks {
		return "runbook " + name
	}
	return "deploy template " + name
}

// Create creates a deploy template or a runbook with the mark of its creation. If a killed run has created one of this name that is the
// same, Create takes it over. The end sends traits, unless they are nil.
func Create(ctx context.Context, site *machine.Site, in ironic.Collection, body map[string]any, traits []string,
	same func(*ironic.Procedure) bool,
) (machine.Made, error) {
	p, by, err := create(ctx, site, in, body, same)
	if err != nil {
		return machine.Made{}, err
	}
	made := machine.Made{UUID: p.UUID, End: func() error { return end(ctx, site, in, p, by, body, traits) }}
	if by != nil {
		made.Told = []decide.Notice{machine.TakenOver(by, label(in, p.Name))}
	}
	return made, nil
}

func create(ctx context.Context, site *machine.Site, in ironic.Collection, body map[string]any, same func(*ironic.Procedure) bool,
) (p *ironic.Procedure, by *notes.Creation, err error) {
	if _, err := site.Ironic.Microversion(ctx); err != nil { // its answer sets the clock
		return nil, nil, err
	}
	id, name := ironic.NewUUID(), fmt.Sprint(body["name"])
	request := maps.Clone(body)
	request["uuid"], request["extra"] = id, map[string]any{string(notes.MarkCreation): site.Run.Begun().Value()}
	p, err = ironic.CreateIn[ironic.Procedure](ctx, site.Ironic, in, id, request)
	if !api.IsStatus(err, http.StatusConflict, "") {
		return p, nil, err
	}
	found, by, ferr := finish(ctx, site, in, name, same)
	switch {
	case ferr != nil:
		return nil, nil, errors.Join(err, ferr)
	case found == nil:
		return nil, nil, err
	}
	return found, by, nil
}

// finish takes over the object of a name that a killed run has created; nil if there is none, or if it is another one.
func finish(ctx context.Context, site *machine.Site, in ironic.Collection, name string,
	same func(*ironic.Procedure) bool,
) (p *ironic.Procedure, by *notes.Creation, err error) {
	read := func(ctx context.Context) (*notes.Creation, error) {
		if p, err = ironic.ReadIn[ironic.Procedure](ctx, site.Ironic, in, name); err != nil {
			return nil, err
		}
		mark := notes.CreationOf(p.Extra, notes.MarkCreation)
		if !site.Run.Unfinished(mark, nil) || !same(p) || (machine.Tenant{Project: site.Ironic.Project()}).IsForeign(p.Owner, "") {
			return nil, site.Run.RefuseTakeOver(mark)
		}
		return mark, nil
	}
	_, err = read(ctx)
	if err == nil {
		by, err = site.Run.Finishing(ctx, p.UUID, notes.MarkCreation, read, func(ctx context.Context, patch ironic.Patch) error {
			return site.Ironic.PatchIn(ctx, in, p.UUID, patch)
		})
	}
	if err == nil {
		p, err = ironic.ReadIn[ironic.Procedure](ctx, site.Ironic, in, p.UUID) // with the mark of this run
	}
	if errors.Is(err, notes.ErrTakenOver) || api.IsNotFound(err) {
		return nil, nil, nil
	}
	return p, by, err
}

// end completes what create has returned, and ends its creation, like Machine.EndCreation. It sends the steps again if the object was taken
// over, because Ironic does not show secrets in arguments, and the traits of a runbook, unless they are nil.
func end(ctx context.Context, site *machine.Site, in ironic.Collection, p *ironic.Procedure, by *notes.Creation, body map[string]any,
	traits []string,
) (err error) {
	switch steps, ordered := body["steps"].([]ironic.RunbookStep); {
	case by != nil && ordered:
		err = sendSteps(ctx, site, p, steps)
	case by != nil:
		err = site.Ironic.PatchIn(ctx, in, p.UUID, ironic.Patch{}.With("/steps", body["steps"]))
	}
	if err == nil && traits != nil {
		err = site.Ironic.SetRunbookTraits(ctx, p.UUID, traits)
	}
	return site.Run.EndCreation(ctx, label(in, p.Name), p.Extra, err, func(ctx context.Context) (map[string]any, error) {
		now, err := ironic.ReadIn[ironic.Procedure](ctx, site.Ironic, in, p.UUID)
		if err != nil {
			return nil, err
		}
		return now.Extra, nil
	}, func(ctx context.Context, patch ironic.Patch) error {
		return site.Ironic.PatchIn(ctx, in, p.UUID, patch)
	})
}

// Update sends what differs between two bodies of a deploy template or a runbook, and removes the mark of its creation.
func Update(ctx context.Context, site *machine.Site, in ironic.Collection, id string, before, after map[string]any) error {
	p, err := ironic.ReadIn[ironic.Procedure](ctx, site.Ironic, in, id)
	if err != nil {
		return err
	}
	if steps, ordered := after["steps"].([]ironic.RunbookStep); ordered && !ironic.SameJSON(before["steps"], steps) {
		if err := sendSteps(ctx, site, p, steps); err != nil {
			return err
		}
		after = maps.Clone(after)
		delete(after, "steps")
	}
	patch := editsBetween(before, after)
	if site.Run.IsDead(notes.CreationOf(p.Extra, notes.MarkCreation)) {
		patch.Remove("/extra/" + string(notes.MarkCreation))
	}
	return site.Ironic.PatchIn(ctx, in, id, patch)
}

// editsBetween returns the edits that make an object with one body that with another. What the other body lacks stays.
func editsBetween(before, after map[string]any) (patch ironic.Patch) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !ironic.SameJSON(before[name], after[name]) {
			patch.Set("/"+name, after[name])
		}
	}
	return patch
}

// NoTraits warns of a runbook that Ironic runs on no node.
func NoTraits(runbook string) decide.Notice {
	return decide.Warn(decide.At("traits"), "Runbook has no traits", "Ironic runs a runbook only on nodes with one of its traits. Set "+
		"traits to make "+runbook+" usable.")
}
