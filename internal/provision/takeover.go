package provision

import (
	"context"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Other tenants can write marks of creation, too: each user who may edit extra can. So a mark alone never makes a run take over an object.

// Tenant says for whom a creation makes an object.
type Tenant struct {
	Owner, Lessee string // as configured; "" if not
	project       string // that Keystone has authenticated; "" without one
}

// isForeign reports whether a field of Ironic names a project other than the configured one and the one of this run.
func (t Tenant) isForeign(field, configured string) bool {
	return field != "" && field != configured && field != t.project
}

// remains is what a killed run has left of a creation.
type remains struct {
	owner, lessee string
	instance      string // what reserves the node; "" if nothing
	reservedToo   bool   // a killed run has made that reservation, too
	recent        bool   // the creation began less than markAge ago
}

// obstacle returns why a creation must not be taken over, as a clause about the object; "" if it may.
func (r remains) obstacle(t Tenant) string {
	switch {
	case t.isForeign(r.owner, t.Owner):
		return fmt.Sprintf("its owner is project %s", r.owner)
	case t.isForeign(r.lessee, t.Lessee):
		return fmt.Sprintf("its lessee is project %s", r.lessee)
	case r.instance != "" && !r.reservedToo:
		return fmt.Sprintf("instance %s reserves it, which no killed run has made", r.instance)
	case !r.recent:
		return fmt.Sprintf("that was more than %d hours ago", int(markAge.Hours()))
	}
	return ""
}

// obstacle returns why a node, which was just read in full, a candidate of a tenant must not take over; "" if it may. mark is nil if the node
// was discovered.
func (c *Site) obstacle(ctx context.Context, node *ironic.Node, mark *Creation, tenant Tenant) (string, error) {
	tenant.project = c.Project()
	r := remains{owner: node.Owner, lessee: node.Lessee, instance: node.InstanceUUID, recent: mark == nil || c.Run.isRecent(mark)}
	if r.instance != "" {
		var err error
		if r.reservedToo, err = c.reservedByKilledRun(ctx, node, tenant); err != nil {
			return "", err
		}
	}
	return r.obstacle(tenant), nil
}

// reservedByKilledRun reports whether a killed run has made the reservation of a node: for a deployment, or as an allocation.
func (c *Site) reservedByKilledRun(ctx context.Context, node *ironic.Node, tenant Tenant) (bool, error) {
	if node.AllocationUUID == "" {
		return c.begunReservation(node, "") != nil, nil
	}
	a, err := c.Allocation(ctx, node.AllocationUUID)
	if ironic.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !tenant.isForeign(a.Owner, tenant.Owner) && c.Run.unfinished(creationOf(a.Extra, MarkCreation), node.Extra), nil
}

// instanceNamespace is the namespace of the instance UUIDs of this provider's own reservations.
const instanceNamespace = "6b0f2d0c-6d65-5461-8c1e-7265736572ae"

// newReservation returns the mark of a new reservation of a node without an allocation. Its instance UUID follows from the node, the project of
// this run and the origin in the mark, so that no mark can be written for an instance UUID that another client or project has set.
func (c *Site) newReservation(node string) *Creation {
	mark := c.Run.begun()
	mark.Origin = ironic.NewUUID()
	mark.Instance = instanceOf(node, c.Project(), mark.Origin)
	return mark
}

func instanceOf(node, project, origin string) string {
	return ironic.UUID5(instanceNamespace, strings.Join([]string{node, project, origin}, " "))
}

// describes reports whether a mark describes the reservation of a node: the allocation of the caller, or a reservation that a run of this
// provider has made for the project of this run. allocation is "" if the caller has none.
func (c *Site) describes(mark *Creation, n *ironic.Node, allocation string) bool {
	if n.InstanceUUID == "" || mark.Instance != n.InstanceUUID {
		return false
	}
	return mark.Instance == allocation || mark.Instance == instanceOf(n.UUID, c.Project(), mark.Origin)
}

// isOfOthers reports whether another project than that of this run owns or leases a node, so that its users may write notes on it. Without
// Keystone there are no projects.
func (c *Site) isOfOthers(n *ironic.Node) bool {
	ours := Tenant{project: c.Project()}
	return c.cfg.Auth == ironic.AuthKeystone && (ours.isForeign(n.Owner, "") || ours.isForeign(n.Lessee, ""))
}

// TakenOver is the notice, in the plan or during the apply, that a resource takes over what a killed run has begun to create. more are further
// sentences.
func (c *Creation) TakenOver(what string, more ...string) decide.Notice {
	begun := "has begun to create"
	if !c.Done.IsZero() {
		begun = "has just created"
	}
	return decide.Warn(nil, "Interrupted creation is continued", fmt.Sprintf("Another run %s %s, and this state does not have it: %s. "+
		"The apply takes it over and finishes it; it repeats nothing. If that run was not yours, or its state has the resource, remove it from one of the two configurations.", begun, what, c)+
		strings.Join(append([]string{""}, more...), " "))
}
