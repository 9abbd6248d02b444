// Package allocate reserves nodes: one for an allocation, or one for each member of a group. It selects nodes by their hardware, counts why
// none fits, and releases what it has reserved. Its plan.go and group.go decide what a plan does.
package allocate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Allocate creates an allocation with the mark of its creation; see CreateAllocation. If a killed run has created one of this name
// for the same class, traits and candidates, Allocate takes it over and also returns the mark of that run. With requirements, it
// waits for a node that meets them. The caller must record the allocation, wait for it with Reserve, and call EndAllocation.
func Allocate(ctx context.Context, site *machine.Site, r *Request) (a *ironic.Allocation, by *notes.Creation, err error) {
	if _, err := site.Ironic.Microversion(ctx); err != nil { // its answer sets the clock
		return nil, nil, err
	}
	r.begin()
	r.Extra = marked(r.Extra, site.Run.Begun())
	a, err = create(ctx, site, r, false)
	unmatched := failure.Is(err, KindNoMatch)
	if err == nil || !unmatched && !api.IsStatus(err, http.StatusConflict, "") {
		return a, nil, err
	}
	found, by, ferr := finishAllocation(ctx, site, r)
	switch {
	case ferr != nil:
		return nil, nil, errors.Join(err, ferr)
	case found == nil && (!unmatched || !r.waits()):
		return nil, nil, err
	case found != nil && found.State != ironic.AllocationError:
		r.Continue(found)
		return found, by, nil
	case found != nil:
		if err := site.Ironic.DeleteAllocation(ctx, found.UUID); err != nil {
			return nil, nil, err
		}
	}
	a, err = create(ctx, site, r, true)
	return a, by, err
}

// Reserve waits until an allocation that Allocate has created is active, like AwaitAllocation. If the allocation has failed because
// another client was faster, or if the request may wait for a node, Reserve creates it again with the same UUID. exists is false if the
// allocation does not exist any more when Reserve returns. The caller must then ask for its node with ReservedNodeOf.
func Reserve(
	ctx context.Context, site *machine.Site, r *Request, a *ironic.Allocation, timeout time.Duration,
) (now *ironic.Allocation, exists bool, err error) {
	stock := stockOf(site)
	r.begin()
	pause := rest.Backoff{First: time.Second, Max: max(site.Ironic.PollInterval(), time.Minute), Factor: 2}
	for races := 1; ; races++ {
		now, err = awaitActive(ctx, site, *r, a, timeout)
		none := noMatchOf(err)
		if none == nil {
			reserved := ""
			if err == nil {
				reserved = now.NodeUUID
			}
			stock.release(r, reserved)
			return now, true, err
		}
		stock.release(r, "")
		lost, oldest := none.Census.Matching > 0 && r.Node == "", none.asked
		switch {
		case none.Left:
			return now, true, err
		case !r.waits() && (!lost || races >= mostRaces):
			return now, false, err
		case lost:
			if err := rest.Sleep(ctx, pause.Next()); err != nil {
				return now, false, err
			}
			oldest = time.Now()
		}
		if err = choose(ctx, site, r, oldest, oldest, true); err == nil {
			a, err = failure.CreateAllocation(ctx, site.Ironic, r.spec())
		}
		if err != nil {
			stock.release(r, "")
			return now, false, err
		}
	}
}

// mostRaces is how often Reserve creates an allocation, the first time included, if it loses its node to another client each
// time.
const mostRaces = 5

// create creates the allocation of a request. With requirements, it first chooses candidates, and waits for them if wait is true.
func create(ctx context.Context, site *machine.Site, r *Request, wait bool) (*ironic.Allocation, error) {
	if r.Require != nil {
		if err := choose(ctx, site, r, time.Now().Add(-stockAge), time.Now(), wait); err != nil {
			return nil, err
		}
	}
	a, err := failure.CreateAllocation(ctx, site.Ironic, r.spec())
	if err != nil {
		stockOf(site).release(r, "")
	}
	return a, err
}

// choose finds nodes that match a request and claims one of them. It begins with a list that is not older than oldest. If no node in it
// matches, it reads one that is not older than fresh. If wait is true, it then reads others until a node matches or the wait of the
// request ends. It returns an error of KindNoMatch if no node has matched.
func choose(ctx context.Context, site *machine.Site, r *Request, oldest, fresh time.Time, wait bool) error {
	logged := false
	for {
		census, asked, err := tryChoose(ctx, site, r, oldest)
		may := wait && r.waits()
		switch {
		case err == nil && r.claimed != "":
			return nil
		case err != nil && may && api.MayPass(err):
			if err := rest.Sleep(ctx, site.Ironic.PollInterval()); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case asked.Before(fresh):
			oldest = fresh
			continue
		case census.Matching == 0 && !may:
			return noMatch(site, r, census).Err()
		}
		if !logged {
			logged = true
			site.Ironic.Logger().InfoContext(ctx, "allocation waits for a node", "allocation", r.UUID, "name", r.Name, "nodes",
				census.String())
		}
		if oldest, err = nextStock(ctx, site, asked); err != nil {
			return err
		}
	}
}

// tryChoose claims a node of one list if one matches.
func tryChoose(ctx context.Context, site *machine.Site, r *Request, oldest time.Time) (census Census, asked time.Time, err error) {
	if r.Require.needsAllFields() {
		if err := stockOf(site).readWhole(ctx); err != nil {
			return Census{}, asked, err
		}
	}
	all, asked, err := stockSince(ctx, site, oldest)
	if err != nil {
		return Census{}, asked, err
	}
	census, free, err := examine(ctx, site, *r, all, inventoriesOfRun)
	if err == nil {
		stockOf(site).claim(r, free)
	}
	return census, asked, err
}
