package host

import (
	"context"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
)

// LookAtNeighbours returns the nodes of the site for the plan of a host; nil if Ironic does not answer. They come from the lists that all
// creations and changes of a run share. was is the node that the host has or takes over; nil for a new one.
func LookAtNeighbours(ctx context.Context, site *machine.Site, who Intent, was *ironic.Node) *Neighbours {
	known, now := catalogOf(site), &Neighbours{}
	l, err := known.get(ctx, 0, len(who.Bonds) > 0)
	project := site.Ironic.Project()
	if (project != "" || api.IsForbidden(err)) && known.hidden.Add(project) {
		now.Hidden = fmt.Sprintf("Ironic shows project %s only nodes that it owns or leases.", project)
		if project == "" {
			now.Hidden = "Ironic shows this user no list of all nodes."
		}
	}
	if err != nil && now.Hidden == "" {
		return nil // the apply asks again
	}
	if was != nil {
		now.Own = &Neighbour{identity.Of(was.Name, was.DriverInfo, nil, nil), was, UseOf(was)}
	}
	if err != nil {
		return now
	}
	now.All = l.neighbours
	for i := range now.All {
		if was != nil && now.All[i].Node.UUID == was.UUID {
			now.Own = &now.All[i]
		}
	}
	if was == nil || now.Own.Use != "" {
		now.All = append(now.All[:len(now.All):len(now.All)], known.discovered(ctx, site, l, who)...)
	}
	return now
}

// discovered returns the discovered nodes that have what a host gets without showing it: their machines report its BMC, or this run gives
// them its name.
func (c *catalog) discovered(ctx context.Context, site *machine.Site, l *lists, who Intent) (more []Neighbour) {
	if id := expect.ExpectedOf(site).Node(who.Name); id != "" && who.Name != "" {
		more = append(more, Neighbour{Identity: identity.Identity{Name: who.Name}, Node: &ironic.Node{UUID: id}})
	}
	reports, err := c.readReports(ctx, l)
	if err != nil {
		return more // the apply asks again
	}
	for _, x := range reportedConflicts(entryOf(who.Candidate), nil, l.entries, reports) {
		more = append(more, Neighbour{identity.Identity{BMC: x.by.BMC}, x.node, UseOf(x.node)})
	}
	return more
}

// refuseHandover returns an error if a machine in use would change hands by what a host gets, as the lists show it. An empty UUID is that
// of a new host.
func (c *catalog) refuseHandover(l *lists, who Intent, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var own *Neighbour
	var all []Neighbour
	for i, n := range l.neighbours {
		switch {
		case n.Node.UUID == id:
			own = &l.neighbours[i]
		case !c.gone[n.Node.UUID]:
			all = append(all, n)
		}
	}
	if taken := handsOver(who.Identity(), own, all, who.Replaced); taken != nil {
		return taken.Err()
	}
	return nil
}
