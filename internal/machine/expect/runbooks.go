package expect

import (
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Runbook is what a plan knows of a runbook.
type Runbook struct {
	*ironic.Procedure
	Open  bool // this plan creates or changes it, and not all of it is known yet
	First bool // this run has not asked for it before
}

// runbooks are those for which the plans of a run have asked, and those that they create or change.
type runbooks struct {
	asking  chan struct{} // has room for one, who may use the rest
	planned []Runbook
	found   map[string]answeredRunbook
}

type answeredRunbook struct {
	runbook *ironic.Procedure
	err     error
}

func runbooksOf(site *machine.Site) *runbooks {
	return machine.Kept(site, func(*machine.Site) *runbooks {
		return &runbooks{asking: make(chan struct{}, 1), found: map[string]answeredRunbook{}}
	})
}

// ExpectRunbook records that this plan creates or changes a runbook, so that a host that is planned afterwards knows it.
func ExpectRunbook(site *machine.Site, planned Runbook) {
	known := runbooksOf(site)
	known.asking <- struct{}{}
	defer func() { <-known.asking }()
	known.planned = append(known.planned, planned)
}

// FindRunbook returns a runbook by UUID or name, as this plan leaves it. It asks Ironic once in a run for each. It is called during plan.
func FindRunbook(ctx context.Context, site *machine.Site, ref string) (Runbook, error) {
	known := runbooksOf(site)
	select {
	case known.asking <- struct{}{}:
		defer func() { <-known.asking }()
	case <-ctx.Done():
		return Runbook{}, ctx.Err()
	}
	was, asked := known.found[ref]
	for _, planned := range known.planned {
		if planned.Name == ref || planned.UUID == ref {
			known.found[ref] = was
			planned.First = !asked
			return planned, nil
		}
	}
	if !asked {
		was.runbook, was.err = ironic.ReadIn[ironic.Procedure](ctx, site.Ironic, ironic.Runbooks, ref)
		if ctx.Err() == nil {
			known.found[ref] = was
		}
	}
	return Runbook{Procedure: was.runbook, First: !asked}, was.err
}
