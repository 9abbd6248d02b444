package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// catalogAge is how old the lists of a catalog may be. An error is only returned from lists that were read after the creation
// started.
const catalogAge = 10 * time.Minute

// catalogFields are the fields that a creation needs of every node.
var catalogFields = []string{"uuid", "name", "driver", "driver_info", "provision_state", "instance_uuid", "extra", "protected"}

// catalog is what all creations of a run know about the site: one list of its nodes, one of its ports, the nodes that the run
// creates, and those that it deletes.
type catalog struct {
	client *ironic.Client
	turn   chan struct{}     // held while reading the lists
	hosts  notes.Set[string] // the nodes whose hosts Terraform has in state, as far as it has refreshed them
	twins  notes.Set[string] // those of them that it has twice, or that a new host takes over, too
	hidden notes.Set[string] // projects of whose rights a plan has warned

	mu       sync.Mutex
	lists    *lists // nil before the first read
	begun    int    // how many reads of the lists have started
	failures int    // how many of them failed
	oldest   int    // the number of the oldest lists that may be used
	failure  error  // the error of the last failed read
	made     map[string]*entry
	deleting map[string]bool
	gone     map[string]bool
	planned  map[string]intent
	changed  chan struct{} // closed when the run plans a change of a node, or starts or ends a change or deletion
}

// lists has the nodes of a site as of one read, with their ports and, if a caller needed them, their port groups.
type lists struct {
	number     int
	at         time.Time
	entries    []*entry
	neighbours []Neighbour        // the same nodes
	reports    map[string]*report // what discovered machines report; nil: not read yet
	bonds      bool               // the entries have port groups
}

// entry is a node with everything that no other node may have too.
type entry struct {
	identity.Identity
	node   *ironic.Node // has catalogFields
	before *entry       // what a node has that this run is changing; else nil
	isOurs bool         // a creation or change of this run makes it or has taken it over
}

func catalogOf(site *machine.Site) *catalog { return machine.Kept(site, newCatalog) }

func newCatalog(site *machine.Site) *catalog {
	return &catalog{
		client: site.Ironic, turn: make(chan struct{}, 1), changed: make(chan struct{}),
		made: map[string]*entry{}, deleting: map[string]bool{}, gone: map[string]bool{}, planned: map[string]intent{},
	}
}

// Refused makes the catalog read its lists again. Ironic has answered 409 to a creation, so the lists are out of date.
func Refused(site *machine.Site) {
	known := catalogOf(site)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.oldest = known.begun + 1
}

// NotMade tells the other creations of the run that the node of a candidate was not created or has been deleted again.
func NotMade(site *machine.Site, id string) {
	known := catalogOf(site)
	known.mu.Lock()
	defer known.mu.Unlock()
	delete(known.made, id)
}

// Deleting tells the creations of the run that it is deleting a node, or undeploying one, which may be deleted next, so that a
// creation that needs its name, BMC or addresses waits. The caller must call ended once and say whether the node is gone.
func Deleting(site *machine.Site, id string) (ended func(gone bool)) {
	known := catalogOf(site)
	known.setDeleting(id, true, false)
	return func(gone bool) { known.setDeleting(id, false, gone) }
}

func (c *catalog) setDeleting(id string, deleting, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleting[id] = deleting
	if gone {
		c.gone[id] = true
		delete(c.made, id)
	}
	c.signal()
}

// signal wakes those who wait for a change; c.mu is held.
func (c *catalog) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// number returns the number of the lists whose reading started last.
func (c *catalog) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

// usable returns lists that are recent enough: not older than oldest, and read after the last refusal. It returns nil if there are
// none.
func (c *catalog) usable(oldest int, bonds bool) *lists {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil || c.lists.number < max(oldest, c.oldest) || time.Since(c.lists.at) > catalogAge || bonds && !c.lists.bonds {
		return nil
	}
	return c.lists
}

// get returns usable lists, with the port groups if bonds is true. Callers that arrive while the lists are being read share the result,
// including an error.
func (c *catalog) get(ctx context.Context, oldest int, bonds bool) (*lists, error) {
	before := c.failuresNow()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if l := c.usable(oldest, bonds); l != nil {
		return l, nil
	}
	if err := c.failedSince(before); err != nil {
		return nil, err
	}
	return c.read(ctx, bonds)
}

func (c *catalog) failuresNow() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

// failedSince returns the error of the last read if reads have failed since the count was before. It ignores an interruption,
// which ended another call only.
func (c *catalog) failedSince(before int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > before && !api.IsInterrupted(c.failure) {
		return c.failure
	}
	return nil
}

func (c *catalog) read(ctx context.Context, bonds bool) (*lists, error) {
	c.mu.Lock()
	c.begun++
	bonds = bonds || c.lists != nil && c.lists.bonds
	l := &lists{number: c.begun, at: time.Now(), bonds: bonds}
	c.mu.Unlock()
	nodes, err := c.client.ListNodeFields(ctx, ironic.NodeFilter{}, catalogFields)
	var ports []ironic.Port
	if err == nil {
		ports, err = c.client.ListPortAddresses(ctx)
	}
	if err == nil && c.client.Expect(nodesOf(ports)...) { // made between the lists, or the first list lacks them
		nodes, err = c.client.ListNodeFields(ctx, ironic.NodeFilter{}, catalogFields)
	}
	var groups []ironic.PortGroup
	if err == nil && bonds {
		groups, err = c.client.ListPortGroupAddresses(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures, c.failure = c.failures+1, err
		return nil, err
	}
	l.entries = entriesOf(nodes, ports, groups)
	for _, e := range l.entries {
		l.neighbours = append(l.neighbours, Neighbour{e.Identity, e.node, UseOf(e.node)})
	}
	c.lists = l
	return l, nil
}

func nodesOf(ports []ironic.Port) (ids []string) {
	for _, port := range ports {
		ids = append(ids, port.NodeUUID)
	}
	return ids
}

func entriesOf(nodes []ironic.Node, ports []ironic.Port, groups []ironic.PortGroup) []*entry {
	var all []*entry
	byNode := map[string]*entry{}
	add := func(node *ironic.Node) *entry {
		e := &entry{node: node}
		all, byNode[node.UUID] = append(all, e), e
		return e
	}
	for i := range nodes {
		add(&nodes[i])
	}
	of := func(id string) *entry {
		if byNode[id] == nil { // created between the lists
			add(&ironic.Node{UUID: id})
		}
		return byNode[id]
	}
	for _, port := range ports {
		e := of(port.NodeUUID)
		e.Addresses = append(e.Addresses, port.Address)
	}
	for _, group := range groups {
		e := of(group.NodeUUID)
		e.Bonds = append(e.Bonds, group.Address)
	}
	for _, e := range all {
		e.Identity = identity.Of(e.node.Name, e.node.DriverInfo, e.Addresses, e.Bonds)
	}
	return all
}

// Candidate is a node to be created, with everything that no other node may have too.
type Candidate struct {
	UUID       string
	Name       string // may be empty
	Driver     string
	DriverInfo map[string]any
	Addresses  []string // MAC addresses of its ports, in lower case
	Bonds      []string // MAC addresses of its port groups, in lower case
	Tenant     machine.Tenant
}

// Identity returns what names the machine of a candidate.
func (c Candidate) Identity() identity.Identity {
	return identity.Of(c.Name, c.DriverInfo, c.Addresses, c.Bonds)
}

// conflict is a node that already has what a candidate needs.
type conflict struct {
	*entry
	what  identity.Kind
	value string
	// doubtful: the node may be another machine that shares the BMC, so that it is not taken over.
	doubtful bool
	by       *entry // the candidate or the change
}

func (x conflict) err() error { return (&Taken{What: x.what, Value: x.value, Node: x.node}).Err() }

// sharing returns the nodes that share something with a candidate: first the one with its name, then the one with its BMC.
func (c *catalog) sharing(l *lists, wanted *entry) []conflict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sharedBy(l, wanted)
}

// sharedBy is sharing; c.mu is held. What a node shares already is no conflict.
func (c *catalog) sharedBy(l *lists, wanted *entry) (found []conflict) {
	for _, e := range c.entries(l) {
		if e.node.UUID != wanted.node.UUID {
			found = append(found, wanted.newlySharedWith(e)...)
		}
	}
	slices.SortStableFunc(found, func(a, b conflict) int { return rank(a.what) - rank(b.what) })
	return found
}

func rank(what identity.Kind) int {
	return slices.Index([]identity.Kind{identity.Name, identity.BMC, identity.Address, identity.Bond}, what)
}

// claim registers a candidate that takes over a discovered node. It reports whether this candidate is the first to do so.
func (c *catalog) claim(id string, who Candidate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made[id] != nil {
		return false
	}
	who.UUID = id
	c.made[id] = entryOf(who)
	return true
}

func entryOf(who Candidate) *entry {
	return &entry{Identity: who.Identity(), node: &ironic.Node{UUID: who.UUID, Name: who.Name}, isOurs: true}
}

// entries returns all nodes, those of this run as it makes or changes them; c.mu is held.
func (c *catalog) entries(l *lists) []*entry {
	all := c.untouched(l)
	for _, e := range c.made {
		all = append(all, e)
		if e.before != nil { // it has that until its change is complete
			all = append(all, e.before)
		}
	}
	return all
}

// untouched returns the nodes of the lists that exist and that no creation of this run has made or taken over; c.mu is held.
func (c *catalog) untouched(l *lists) []*entry {
	return slices.DeleteFunc(slices.Clone(l.entries), func(e *entry) bool { return c.gone[e.node.UUID] || c.made[e.node.UUID] != nil })
}

// present returns a node as it is; nil if the lists do not have it. c.mu is held.
func (c *catalog) present(l *lists, id string) *entry {
	if e := c.made[id]; e != nil {
		return e.before
	}
	for _, e := range l.entries {
		if e.node.UUID == id {
			return e
		}
	}
	return nil
}

// newlySharedWith returns what a node will share with another, and does not share yet.
func (e *entry) newlySharedWith(other *entry) (shared []conflict) {
	var before identity.Identity
	if e.before != nil {
		before = e.before.Identity
	}
	for _, t := range e.NewlyShared(before, other.Identity) {
		shared = append(shared, conflict{entry: other, what: t.Kind, value: t.Value, by: e})
	}
	return shared
}
