package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// procedureLabel is how messages name a deploy template or a runbook.
func procedureLabel(in ironic.Collection, name string) string {
	if in == ironic.Runbooks {
		return "runbook " + name
	}
	return "deploy template " + name
}

// CreateProcedure creates a deploy template or a runbook with the mark of its creation. If a killed run has created one of this name
// that is the same, CreateProcedure takes it over and also returns the mark of that run. The caller must record the object, finish
// it, and call EndProcedure.
func (c *Site) CreateProcedure(ctx context.Context, in ironic.Collection, body map[string]any, same func(*ironic.Procedure) bool) (p *ironic.Procedure, by *Creation, err error) {
	if _, err := c.Microversion(ctx); err != nil { // its answer sets the clock
		return nil, nil, err
	}
	id, name := ironic.NewUUID(), fmt.Sprint(body["name"])
	request := maps.Clone(body)
	request["uuid"], request["extra"] = id, map[string]any{string(MarkCreation): c.begun().value()}
	p, err = ironic.CreateIn[ironic.Procedure](ctx, c.Client, in, id, request)
	if !ironic.IsStatus(err, http.StatusConflict, "") {
		return p, nil, err
	}
	found, by, ferr := c.finishProcedure(ctx, in, name, same)
	switch {
	case ferr != nil:
		return nil, nil, errors.Join(err, ferr)
	case found == nil:
		return nil, nil, err
	}
	return found, by, nil
}

// finishProcedure takes over the object of a name that a killed run has created; nil if there is none, or if it is another one.
func (c *Site) finishProcedure(ctx context.Context, in ironic.Collection, name string, same func(*ironic.Procedure) bool) (p *ironic.Procedure, by *Creation, err error) {
	read := func(ctx context.Context) (*Creation, error) {
		if p, err = ironic.ReadIn[ironic.Procedure](ctx, c.Client, in, name); err != nil {
			return nil, err
		}
		mark := creationOf(p.Extra, MarkCreation)
		if !c.unfinished(mark, nil) || !same(p) || (Tenant{project: c.Project()}).isForeign(p.Owner, "") {
			return nil, c.refuseTakeOver(mark)
		}
		return mark, nil
	}
	_, err = read(ctx)
	if err == nil {
		by, err = c.finishing(ctx, p.UUID, MarkCreation, read, func(ctx context.Context, patch ironic.Patch) error { return c.PatchIn(ctx, in, p.UUID, patch) })
	}
	if err == nil {
		p, err = ironic.ReadIn[ironic.Procedure](ctx, c.Client, in, p.UUID) // with the mark of this run
	}
	if errors.Is(err, errTakenOver) || ironic.IsNotFound(err) {
		return nil, nil, nil
	}
	return p, by, err
}

// EndProcedure is Machine.EndCreation for a deploy template or a runbook.
func (c *Site) EndProcedure(ctx context.Context, in ironic.Collection, p *ironic.Procedure, failed error) error {
	return c.endCreation(ctx, procedureLabel(in, p.Name), p.Extra, failed, func(ctx context.Context) (map[string]any, error) {
		now, err := ironic.ReadIn[ironic.Procedure](ctx, c.Client, in, p.UUID)
		if err != nil {
			return nil, err
		}
		return now.Extra, nil
	}, func(ctx context.Context, patch ironic.Patch) error { return c.PatchIn(ctx, in, p.UUID, patch) })
}

// UpdateProcedure applies edits to a deploy template or a runbook that Terraform has in state, and removes the mark of its creation.
func (c *Site) UpdateProcedure(ctx context.Context, in ironic.Collection, id string, patch ironic.Patch) error {
	p, err := ironic.ReadIn[ironic.Procedure](ctx, c.Client, in, id)
	if err != nil {
		return err
	}
	if c.isDead(creationOf(p.Extra, MarkCreation)) {
		patch.Remove("/extra/" + string(MarkCreation))
	}
	return c.PatchIn(ctx, in, id, patch)
}

// MissingTraits returns a sentence for each trait that no node has. It returns none while there are no nodes, or if this plan creates
// or changes a host, which may get the trait.
func (c *Site) MissingTraits(ctx context.Context, traits []string) ([]string, error) {
	if len(traits) == 0 || c.HasWritten() || c.expected.any(func(ExpectedHost) bool { return true }) {
		return nil, nil
	}
	all, err := c.NodesForPlan(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var sentences []string
	for _, g := range gapsOf(ironic.AllocationSpec{Traits: traits}, all) {
		sentences = append(sentences, g.String())
	}
	return sentences, nil
}
