package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// deletionGrace is how long a creation waits for the run to start deleting the node that blocks it, counted from the last time
// that a deletion of the run began or ended. Terraform orders a creation and a deletion that do not depend on each other in any way.
const deletionGrace = 5 * time.Second

// Found is a node that a creation takes over instead of making one.
type Found struct {
	Node *ironic.Node // freshly read
	// By is the mark of the killed run that has begun to create the node; nil if the node was discovered.
	By *notes.Creation
	// Obstacle says why a plan expects that the node is not taken over; "" if it is.
	Obstacle string
}

// IsSettled reports whether a killed run has begun the host, and its node is where it is to be, or in use.
func (f *Found) IsSettled() bool {
	return f.By != nil && (states.Deployed(f.Node) || states.InPool(f.Node))
}

// Admit checks whether another node already has the name, BMC or MAC address of the candidate. All creations of the run share the
// lists that it reads. It returns nil if no node has any of them; the candidate then owns them until NotMade. It returns the node
// if the candidate takes it over: a node in enroll that discovery has given this name, an unnamed node with this BMC or MAC address
// that discovery created, or a node that a killed run has begun to create. Admit waits for a node that the run is deleting and,
// until the deadline, for an operation in progress on a node that it takes over. Any other node is an error of KindTaken.
func Admit(ctx context.Context, site *machine.Site, who Candidate, deadline time.Time) (*Found, error) {
	known := catalogOf(site)
	var oldest int
	grace, limit := time.NewTimer(deletionGrace), time.NewTimer(time.Until(deadline))
	defer grace.Stop()
	defer limit.Stop()
	waits, fresh := true, false // the grace period has not ended; the lists were read after a refusal
	for {
		l, err := known.get(ctx, oldest, len(who.Bonds) > 0)
		if err != nil {
			return nil, err
		}
		found, changed := known.contested(l, who, true)
		if found, err = withReported(ctx, site, l, who, found); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, nil //nolint:nilnil // no conflict is the usual result
		}
		blocking, err := blockingNode(ctx, site, found, who)
		if err != nil {
			return nil, err
		}
		if err := known.refuseHandover(l, Intent{Candidate: who}, ""); blocking != nil && err != nil {
			if fresh {
				return nil, err
			}
			fresh, oldest = true, known.number()+1
			continue
		}
		if blocking == nil && waits && isFinished(found[0].node) {
			blocking = &found[0] // the run may be about to delete the resource that has it
		}
		if blocking == nil {
			taken, err := takeOverNow(ctx, site, found[0], who, deadline)
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
				return nil, taken(site, blocking)
			case <-changed:
				waits = true
				grace.Reset(deletionGrace)
			case <-grace.C:
				waits, oldest = false, known.number()+1
			}
		default:
			return nil, taken(site, blocking)
		}
	}
}

// InState records that Terraform has the host of a node in state, because it has asked this run to refresh it. A second host of the node is
// a twin.
func InState(site *machine.Site, node string) {
	if known := catalogOf(site); !known.hosts.Add(node) {
		known.twins.Add(node)
	}
}

// HasTwin reports whether the state has two hosts of a node, or a new host takes over the node of a host in state, as far as this run has
// refreshed and planned them.
func HasTwin(site *machine.Site, node string) bool { return catalogOf(site).twins.Has(node) }

// WouldTakeOver returns the node that a candidate would take over now; nil if none, or if Ironic does not answer. The node of a host
// in state is none that a killed run has begun: Terraform replaces it, because it is tainted, and deletes it first.
func WouldTakeOver(ctx context.Context, site *machine.Site, who Candidate) *Found {
	known := catalogOf(site)
	if id := expect.ExpectedOf(site).Node(who.Name); id != "" {
		node, err := site.Ironic.Node(ctx, id)
		if err != nil || node.Name != "" || !machine.Unmanaged(node) {
			return nil
		}
		why, err := site.Obstacle(ctx, node, nil, who.Tenant)
		if err != nil {
			return nil
		}
		return &Found{Node: node, Obstacle: why}
	}
	l, err := known.get(ctx, 0, len(who.Bonds) > 0)
	if err != nil {
		return nil
	}
	found, err := withReported(ctx, site, l, who, known.sharing(l, entryOf(who)))
	if err != nil || len(found) == 0 {
		return nil
	}
	if blocking, err := blockingNode(ctx, site, found, who); err != nil || blocking != nil {
		return nil
	}
	over := &Found{Node: found[0].node, By: begunBefore(site, found[0].node, who)}
	if over.By != nil && known.hosts.Has(over.Node.UUID) {
		return nil
	}
	node, err := site.Ironic.Node(ctx, over.Node.UUID) // the lists have no owners
	if err != nil {
		return nil
	}
	if over.Obstacle, err = site.Obstacle(ctx, node, over.By, who.Tenant); err != nil {
		return nil
	}
	if over.Obstacle == "" && over.By != nil {
		known.twins.Add(node.UUID)
	}
	return over
}

// WarnTaken warns of a node that has the name, BMC or MAC address of a new host that takes over none. It says nothing of nodes of hosts in
// state, which the run may rename or delete.
func WarnTaken(ctx context.Context, site *machine.Site, who Candidate) []decide.Notice {
	known := catalogOf(site)
	l, err := known.get(ctx, 0, len(who.Bonds) > 0)
	if err != nil { // another look reports it
		return nil
	}
	found := known.sharing(l, entryOf(who))
	for i, x := range found {
		if !known.hosts.Has(x.node.UUID) && !x.isOurs && !known.isLeaving(&found[i]) {
			taken := &Taken{What: x.what, Value: x.value, Node: x.node}
			return []decide.Notice{decide.Warn(decide.At("name"), "Node exists already", fmt.Sprintf("%s The apply refuses to create this "+
				"host, unless the node is deleted or renamed before. %s", failure.Sentence(taken.Err()), taken.adviceForNew()))}
		}
	}
	return nil
}

// FormerInUse returns the node in use of a host in state whose name, BMC or MAC address a candidate needs, so that the candidate can only
// replace that host; nil if there is none, or if Ironic does not answer.
func FormerInUse(ctx context.Context, site *machine.Site, who Candidate) *ironic.Node {
	known := catalogOf(site)
	l, err := known.get(ctx, 0, len(who.Bonds) > 0)
	if err != nil {
		return nil
	}
	for _, x := range known.sharing(l, entryOf(who)) {
		if known.hosts.Has(x.node.UUID) && states.Deployed(x.node) {
			return x.node
		}
	}
	return nil
}

func isFinished(node *ironic.Node) bool {
	mark := notes.CreationOf(node.Extra, notes.MarkCreation)
	return mark != nil && !mark.Done.IsZero()
}

// taken returns the error for a conflict with a node that the candidate cannot take over.
func taken(site *machine.Site, x *conflict) error {
	taken := &Taken{What: x.what, Value: x.value, Node: x.node}
	switch mark := notes.CreationOf(x.node.Extra, notes.MarkCreation); {
	case mark == nil || !mark.Done.IsZero() || mark.Run == site.Run.ID:
	case !site.Run.IsPast(mark):
	case !site.Run.IsDead(mark):
		taken.Making = mark
	case !site.Run.IsRecent(mark):
		taken.Obstacle = machine.Remains{}.Obstacle(machine.Tenant{})
	}
	return taken.Err()
}

// blockingNode returns the first conflict that prevents the creation, or nil if the candidate can take over the only node in conflict.
func blockingNode(ctx context.Context, site *machine.Site, found []conflict, who Candidate) (*conflict, error) {
	first := found[0]
	for i, x := range found {
		if x.node.UUID != first.node.UUID || x.isOurs || x.doubtful || catalogOf(site).isLeaving(&found[i]) {
			return &found[i], nil
		}
	}
	if begunBefore(site, first.node, who) != nil {
		return nil, nil //nolint:nilnil // nothing blocks it
	}
	free, err := isFree(ctx, site, first)
	if err != nil || free {
		return nil, err
	}
	return &first, nil
}

// isFree reports whether discovery has made the node of a conflict for the candidate.
func isFree(ctx context.Context, site *machine.Site, x conflict) (bool, error) {
	if x.what == identity.Name {
		return notes.DiscoveryOf(x.node) != nil && machine.Unmanaged(x.node), nil
	}
	return found.Unnamed(ctx, site, x.node)
}

// takeOverNow reads the node that a candidate takes over and claims it. It returns nil if the node cannot be taken over any more.
func takeOverNow(ctx context.Context, site *machine.Site, x conflict, who Candidate, deadline time.Time) (*Found, error) {
	node, err := site.Ironic.Node(ctx, x.node.UUID)
	if api.IsNotFound(err) {
		return nil, nil //nolint:nilnil // the lists are out of date
	}
	if err != nil {
		return nil, err
	}
	mark := begunBefore(site, node, who)
	free, err := isFree(ctx, site, conflict{entry: &entry{node: node}, what: x.what, value: x.value})
	if err != nil || mark == nil && !free {
		return nil, err
	}
	why, err := site.Obstacle(ctx, node, mark, who.Tenant)
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, (&Taken{What: x.what, Value: x.value, Node: node, Obstacle: why}).Err()
	case mark != nil:
		return finish(ctx, site, node, who, deadline)
	case !catalogOf(site).claim(node.UUID, who):
		return nil, nil //nolint:nilnil // another resource has just taken it
	}
	return &Found{Node: node}, nil
}

// begunBefore returns the mark of a killed run that has begun to create exactly what the candidate is; nil if the node is anything
// else. Two nodes without a name are the same if they have the same BMC.
func begunBefore(site *machine.Site, node *ironic.Node, who Candidate) *notes.Creation {
	mark, wanted := notes.CreationOf(node.Extra, notes.MarkCreation), who.Identity()
	theirs := identity.Of(node.Name, node.DriverInfo, nil, nil)
	same := node.Name == who.Name && node.Driver == who.Driver && (wanted.BMC.Same(theirs.BMC) || who.Name != "" &&
		wanted.BMC.String() == theirs.BMC.String())
	if !same || !site.Run.Unfinished(mark, node.Extra) {
		return nil
	}
	return mark
}

// finish takes over a node that a killed run has begun to create. It waits first for the end of an operation in progress. Another
// user may have reserved or deployed the node since: creating the host then takes no further steps.
func finish(ctx context.Context, site *machine.Site, node *ironic.Node, who Candidate, deadline time.Time) (*Found, error) {
	m := site.Record(node)
	if err := m.AtRest(ctx, deadline); err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*notes.Creation, error) {
		if err := m.Refresh(ctx); err != nil {
			return nil, err
		}
		mark := begunBefore(site, m.Node(), who)
		if mark == nil {
			return nil, site.Run.RefuseTakeOver(notes.CreationOf(m.Node().Extra, notes.MarkCreation))
		}
		if why, err := site.Obstacle(ctx, m.Node(), mark, who.Tenant); err != nil || why != "" {
			return nil, cmp.Or(err, notes.ErrTakenOver)
		}
		return mark, nil
	}
	mark, err := site.Run.Finishing(ctx, node.UUID, notes.MarkCreation, read, m.Write)
	switch {
	case errors.Is(err, notes.ErrTakenOver), api.IsNotFound(err):
		return nil, nil //nolint:nilnil // the node has changed since it was listed
	case err != nil:
		return nil, err
	case !catalogOf(site).claim(node.UUID, who):
		return nil, fmt.Errorf("another resource of this configuration has taken over node %s. Two resources describe the same machine: "+
			"remove one of them", ironic.NodeLabel(m.Node()))
	}
	return &Found{Node: m.Node(), By: mark}, nil
}

// CandidateOf returns what no other node may have too, of a new host with some settings and ports.
func CandidateOf(settings ironic.Settings, cables WantedCables) Candidate {
	who := Candidate{
		UUID: ironic.NewUUID(), Name: settings.Text("name"), Driver: settings.Text("driver"), DriverInfo: settings.Keys("driver_info"),
		Addresses: slices.Sorted(maps.Keys(cables.Ports)), Tenant: machine.Tenant{
			Owner:  settings.Text("owner"),
			Lessee: settings.Text("lessee"),
		},
	}
	for _, group := range cables.Groups {
		if group.Address != "" {
			who.Bonds = append(who.Bonds, group.Address)
		}
	}
	slices.Sort(who.Bonds)
	return who
}

// Claim creates the node of a new host, or takes over a discovered one: the node with the configured name, or an unnamed node with the
// configured BMC or port. It also takes over a node that a killed run has begun to create. It returns the node that it has taken over; nil
// if it has created one. If another node gets the name meanwhile, Claim tries once more to take that node over.
func Claim(
	ctx context.Context, site *machine.Site, settings ironic.Settings, cables WantedCables, limit time.Duration,
) (*machine.Machine, *Found, error) {
	who, deadline := CandidateOf(settings, cables), time.Now().Add(limit)
	for try := 1; ; try++ {
		found, err := Admit(ctx, site, who, deadline)
		if err == nil && found != nil {
			err = nameDiscovered(ctx, site, found, who.Name)
		}
		if err != nil {
			return nil, nil, err
		}
		if found != nil {
			return site.Record(found.Node), found, nil
		}
		node, err := Enroll(ctx, site, who.UUID, settings)
		if err == nil {
			return site.Record(node), nil, nil
		}
		NotMade(site, who.UUID)
		if !isDuplicate(err) || try > 1 {
			return nil, nil, err
		}
		Refused(site)
	}
}

// MakeAnew creates the node of a host whose record Ironic has lost, with its UUID. It takes over no other node.
func MakeAnew(
	ctx context.Context, site *machine.Site, id string, settings ironic.Settings, cables WantedCables, limit time.Duration,
) (*machine.Machine, error) {
	return makeAnew(ctx, site, id, settings, cables, limit, Enroll)
}

// makeAnew is MakeAnew, which creates the node with a function.
func makeAnew(
	ctx context.Context, site *machine.Site, id string, settings ironic.Settings, cables WantedCables, limit time.Duration,
	create func(ctx context.Context, site *machine.Site, id string, settings ironic.Settings) (*ironic.Node, error),
) (*machine.Machine, error) {
	who := CandidateOf(settings, cables)
	who.UUID = id
	found, err := Admit(ctx, site, who, time.Now().Add(limit))
	if err == nil && found != nil {
		err = fmt.Errorf("node %s has its name, BMC or a port. Delete that node, or import it in place of this host",
			ironic.NodeLabel(found.Node))
	}
	if err != nil {
		return nil, err
	}
	node, err := create(ctx, site, id, settings)
	if err != nil {
		NotMade(site, id)
		return nil, err
	}
	return site.Record(node), nil
}

// Enroll creates a node for a metal_host, like CreateNode, with the mark of its creation. It notes on a node without a name that a
// metal_host manages it.
func Enroll(ctx context.Context, site *machine.Site, id string, settings ironic.Settings) (*ironic.Node, error) {
	settings = settings.Clone()
	settings.SetKey("extra", string(notes.MarkCreation), site.Run.Begun().Value())
	if settings.Text("name") == "" {
		settings.SetKey("extra", notes.KeyEnrolled, true)
	}
	node, err := failure.CreateNode(ctx, site.Ironic, id, settings)
	return node, site.ExplainDriver(ctx, settings.Text("driver"), err)
}

// isDuplicate reports whether Ironic refused because another node has the name, the BMC or the port.
func isDuplicate(err error) bool { return api.IsStatus(err, http.StatusConflict, "already exists") }

// nameDiscovered names a discovered node after the host that takes it over, unless it has a name.
func nameDiscovered(ctx context.Context, site *machine.Site, taken *Found, name string) error {
	id := taken.Node.UUID
	if taken.By != nil || name == "" || notes.DiscoveryOf(taken.Node) != nil {
		return nil
	}
	err := found.Claim(ctx, site, id, notes.Discovery{
		Version: 1, Owner: "metal_host", Name: name, From: "boot-mac",
		At: time.Now().UTC().Format(time.RFC3339),
	})
	if err == nil {
		taken.Node, err = site.Ironic.Node(ctx, id)
	}
	if err != nil {
		NotMade(site, id)
	}
	return err
}

// Unmake deletes the node that this run has created, if the host failed because another node has the MAC address of one of its ports. It
// returns the reason of the failure, and whether the node is gone.
func Unmake(ctx context.Context, m *machine.Machine, failed error) (gone bool, why error) {
	var refused *portError
	if !isDuplicate(failed) || !errors.As(failed, &refused) {
		return false, failed
	}
	Refused(m.Site())
	ctx = context.WithoutCancel(ctx)
	if err := m.CheckCreation(ctx); err != nil {
		return false, err
	}
	if err := m.Site().Ironic.DeleteNode(ctx, m.Node().UUID); err != nil {
		return false, errors.Join(refused, err)
	}
	NotMade(m.Site(), m.Node().UUID)
	if other, err := m.Site().Ironic.FindNode(ctx, refused.Address); err == nil {
		return true, (&Taken{What: identity.Address, Value: refused.Address, Node: other}).Err()
	}
	return true, refused
}
