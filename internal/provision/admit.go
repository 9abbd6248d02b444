package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// deletionGrace is how long a creation waits for the run to start deleting the node that blocks it, counted from the last time
// that a deletion of the run began or ended. Terraform orders a creation and a deletion that do not depend on each other in any way.
const deletionGrace = 5 * time.Second

// Found is a node that a creation takes over instead of making one.
type Found struct {
	Node *ironic.Node // freshly read
	// By is the mark of the killed run that has begun to create the node; nil if the node was discovered.
	By *Creation
	// Obstacle says why a plan expects that the node is not taken over; "" if it is.
	Obstacle string
}

// Admit checks whether another node already has the name, BMC or MAC address of the candidate. All creations of the run share the
// lists that it reads. It returns nil if no node has any of them; the candidate then owns them until NotMade. It returns the node
// if the candidate takes it over: a node in enroll that discovery has given this name, an unnamed node with this BMC or MAC address
// that discovery created, or a node that a killed run has begun to create. Admit waits for a node that the run is deleting and,
// until the deadline, for an operation in progress on a node that it takes over. Any other node is an error of KindTaken.
func (c *Site) Admit(ctx context.Context, who Candidate, deadline time.Time) (*Found, error) {
	known := catalogOf(c)
	var oldest int
	grace, limit := time.NewTimer(deletionGrace), time.NewTimer(time.Until(deadline))
	defer grace.Stop()
	defer limit.Stop()
	waits := true // the grace period has not ended
	for {
		l, err := known.get(ctx, oldest, len(who.Bonds) > 0)
		if err != nil {
			return nil, err
		}
		found, changed := known.contested(l, who, true)
		if found, err = c.withReported(ctx, l, who, found); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, nil //nolint:nilnil // no conflict is the usual result
		}
		blocking, err := c.blocking(ctx, found, who)
		if err != nil {
			return nil, err
		}
		if blocking == nil && waits && c.isFinished(found[0].node) {
			blocking = &found[0] // the run may be about to delete the resource that has it
		}
		if blocking == nil {
			taken, err := c.takeOverNow(ctx, found[0], who, deadline)
			if taken != nil || err != nil {
				return taken, err
			}
			oldest = known.number() + 1 // the node has changed since it was listed
			continue
		}
		switch leaving := known.isLeaving(blocking); {
		case blocking.isOurs && !leaving:
			return nil, blocking.err()
		case waits || leaving:
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-limit.C:
				return nil, c.taken(blocking)
			case <-changed:
				waits = true
				grace.Reset(deletionGrace)
			case <-grace.C:
				waits, oldest = false, known.number()+1
			}
		default:
			return nil, c.taken(blocking)
		}
	}
}

// HostInState records that Terraform has the host of a node in state, because it has asked this run to refresh it.
func (c *Site) HostInState(node string) { catalogOf(c).hosts.Add(node) }

// WouldTakeOver returns the node that a candidate would take over now; nil if none, or if Ironic does not answer. The node of a host
// in state is none that a killed run has begun: Terraform replaces it, because it is tainted, and deletes it first.
func (c *Site) WouldTakeOver(ctx context.Context, who Candidate) *Found {
	known := catalogOf(c)
	if id := expectedOf(c).node(who.Name); id != "" {
		node, err := c.Node(ctx, id)
		if err != nil || node.Name != "" || !unmanaged(node) {
			return nil
		}
		why, err := c.obstacle(ctx, node, nil, who.Tenant)
		if err != nil {
			return nil
		}
		return &Found{Node: node, Obstacle: why}
	}
	l, err := known.get(ctx, 0, len(who.Bonds) > 0)
	if err != nil {
		return nil
	}
	found, err := c.withReported(ctx, l, who, known.sharing(l, entryOf(who)))
	if err != nil || len(found) == 0 {
		return nil
	}
	if blocking, err := c.blocking(ctx, found, who); err != nil || blocking != nil {
		return nil
	}
	over := &Found{Node: found[0].node, By: c.begunBefore(found[0].node, who)}
	if over.By != nil && known.hosts.Has(over.Node.UUID) {
		return nil
	}
	node, err := c.Node(ctx, over.Node.UUID) // the lists have no owners
	if err != nil {
		return nil
	}
	if over.Obstacle, err = c.obstacle(ctx, node, over.By, who.Tenant); err != nil {
		return nil
	}
	return over
}

// isFinished reports whether the creation of a node was finished.
func (c *Site) isFinished(node *ironic.Node) bool {
	mark := creationOf(node.Extra, MarkCreation)
	return mark != nil && !mark.Done.IsZero()
}

// taken returns the error for a conflict with a node that the candidate cannot take over.
func (c *Site) taken(x *conflict) error {
	taken := &Taken{What: x.what, Value: x.value, Node: x.node}
	switch mark := creationOf(x.node.Extra, MarkCreation); {
	case mark == nil || !mark.Done.IsZero() || mark.Run == c.Run.id:
	case !c.Run.isPast(mark):
	case !c.Run.isDead(mark):
		taken.Making = mark
	case !c.Run.isRecent(mark):
		taken.Obstacle = remains{}.obstacle(Tenant{})
	}
	return taken.Err()
}

// blocking returns the first conflict that prevents the creation, or nil if the candidate can take over the only node in conflict.
func (c *Site) blocking(ctx context.Context, found []conflict, who Candidate) (*conflict, error) {
	first := found[0]
	for i, x := range found {
		if x.node.UUID != first.node.UUID || x.isOurs || x.doubtful || catalogOf(c).isLeaving(&found[i]) {
			return &found[i], nil
		}
	}
	if c.begunBefore(first.node, who) != nil {
		return nil, nil //nolint:nilnil // nothing blocks it
	}
	free, err := c.isFree(ctx, first)
	if err != nil || free {
		return nil, err
	}
	return &first, nil
}

// isFree reports whether discovery has made the node of a conflict for the candidate.
func (c *Site) isFree(ctx context.Context, x conflict) (bool, error) {
	if x.what == SharedName {
		return DiscoveryOf(x.node) != nil && unmanaged(x.node), nil
	}
	return c.unnamed(ctx, x.node)
}

// takeOverNow reads the node that a candidate takes over and claims it. It returns nil if the node cannot be taken over any more.
func (c *Site) takeOverNow(ctx context.Context, x conflict, who Candidate, deadline time.Time) (*Found, error) {
	node, err := c.Node(ctx, x.node.UUID)
	if ironic.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the lists are out of date
	}
	if err != nil {
		return nil, err
	}
	mark := c.begunBefore(node, who)
	free, err := c.isFree(ctx, conflict{entry: &entry{node: node}, what: x.what, value: x.value})
	if err != nil || mark == nil && !free {
		return nil, err
	}
	why, err := c.obstacle(ctx, node, mark, who.Tenant)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, (&Taken{What: x.what, Value: x.value, Node: node, Obstacle: why}).Err()
	case mark != nil:
		return c.finish(ctx, node, who, deadline)
	case !catalogOf(c).claim(node.UUID, who):
		return nil, nil //nolint:nilnil // another resource has just taken it
	}
	return &Found{Node: node}, nil
}

// begunBefore returns the mark of a killed run that has begun to create exactly what the candidate is; nil if the node is anything
// else. Two nodes without a name are the same if they have the same BMC.
func (c *Site) begunBefore(node *ironic.Node, who Candidate) *Creation {
	mark, wanted := creationOf(node.Extra, MarkCreation), entryOf(who)
	theirs := ironic.IdentifyBMC(node.DriverInfo)
	same := node.Name == who.Name && node.Driver == who.Driver && (wanted.bmc.Same(theirs) || who.Name != "" && wanted.bmc.String() == theirs.String())
	if !same || !c.Run.unfinished(mark, node.Extra) {
		return nil
	}
	return mark
}

// finish takes over a node that a killed run has begun to create. It waits first for the end of an operation in progress. Another
// user may have reserved or deployed the node since: creating the host then takes no further steps.
func (c *Site) finish(ctx context.Context, node *ironic.Node, who Candidate, deadline time.Time) (*Found, error) {
	m := c.Record(node)
	if err := m.atRest(ctx, deadline); err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*Creation, error) {
		if err := m.Refresh(ctx); err != nil {
			return nil, err
		}
		mark := c.begunBefore(m.node, who)
		if mark == nil {
			return nil, c.Run.refuseTakeOver(creationOf(m.node.Extra, MarkCreation))
		}
		if why, err := c.obstacle(ctx, m.node, mark, who.Tenant); err != nil || why != "" {
			return nil, cmp.Or(err, errTakenOver)
		}
		return mark, nil
	}
	mark, err := c.Run.finishing(ctx, node.UUID, MarkCreation, read, m.write)
	switch {
	case errors.Is(err, errTakenOver), ironic.IsNotFound(err):
		return nil, nil //nolint:nilnil // the node has changed since it was listed
	case err != nil:
		return nil, err
	case !catalogOf(c).claim(node.UUID, who):
		return nil, fmt.Errorf("another resource of this configuration has taken over node %s. Two resources describe the same machine: remove one of them", ironic.NodeLabel(m.node))
	}
	return &Found{Node: m.node, By: mark}, nil
}

// write sends a patch that Ironic may refuse, and updates the record.
func (m *Machine) write(ctx context.Context, patch ironic.Patch) error {
	node, err := m.site.Client.PatchNode(ctx, m.node.UUID, patch)
	if err == nil {
		m.applyAnswer(node)
	}
	return err
}

// atRest waits until no operation is in progress on the node.
func (m *Machine) atRest(ctx context.Context, deadline time.Time) error {
	for inProgress(m.state()) || isLocked(m.node) {
		err := m.poll(ctx, deadline)
		if errors.Is(err, ironic.ErrNoPoll) {
			return fmt.Errorf("node %s, whose creation another run has begun, is still in state %q. Apply again when that operation has ended, or raise timeouts", ironic.NodeLabel(m.node), m.node.ProvisionState)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
