package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// catalogAge is how old the lists of a catalog may be. An error is only returned from lists that were read after the creation
// started.
const catalogAge = 10 * time.Minute

// catalogFields are the fields that a creation needs of every node.
var catalogFields = []string{"uuid", "name", "driver", "driver_info", "provision_state", "instance_uuid", "extra"}

// catalog is what all creations of a run know about the site: one list of its nodes, one of its ports, the nodes that the run
// creates, and those that it deletes.
type catalog struct {
	client *ironic.Client
	turn   chan struct{} // held while reading the lists

	mu       sync.Mutex
	lists    *lists // nil before the first read
	begun    int    // how many reads of the lists have started
	failures int    // how many of them failed
	oldest   int    // the number of the oldest lists that may be used
	failure  error  // the error of the last failed read
	made     map[string]*entry
	deleting map[string]bool
	gone     map[string]bool
	changed  chan struct{} // closed when the run starts or ends a deletion
}

// lists are the nodes of a site with their ports.
type lists struct {
	number  int
	at      time.Time
	entries []*entry
}

// entry is a node with everything that no other node may have too.
type entry struct {
	node      *ironic.Node // has catalogFields
	bmc       ironic.BMCIdentity
	addresses []string
	isOurs    bool // a creation of this run makes it or has taken it over
}

func newCatalog(client *ironic.Client) *catalog {
	return &catalog{
		client: client, turn: make(chan struct{}, 1), changed: make(chan struct{}),
		made: map[string]*entry{}, deleting: map[string]bool{}, gone: map[string]bool{},
	}
}

// Refused makes the catalog read its lists again. Ironic has answered 409 to a creation, so the lists are out of date.
func (c *Site) Refused() {
	c.catalog.mu.Lock()
	defer c.catalog.mu.Unlock()
	c.catalog.oldest = c.catalog.begun + 1
}

// NotMade tells the other creations of the run that the node of a candidate was not created or has been deleted again.
func (c *Site) NotMade(id string) {
	c.catalog.mu.Lock()
	defer c.catalog.mu.Unlock()
	delete(c.catalog.made, id)
}

// Deleting tells the creations of the run that it is deleting a node, or undeploying one, which may be deleted next, so that a
// creation that needs its name, BMC or addresses waits. The caller must call ended once and say whether the node is gone.
func (c *Site) Deleting(id string) (ended func(gone bool)) {
	c.catalog.setDeleting(id, true, false)
	return func(gone bool) { c.catalog.setDeleting(id, false, gone) }
}

func (c *catalog) setDeleting(id string, deleting, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleting[id] = deleting
	if gone {
		c.gone[id] = true
		delete(c.made, id)
	}
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
func (c *catalog) usable(oldest int) *lists {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil || c.lists.number < max(oldest, c.oldest) || time.Since(c.lists.at) > catalogAge {
		return nil
	}
	return c.lists
}

// get returns usable lists. Callers that arrive while the lists are being read share the result, including an error.
func (c *catalog) get(ctx context.Context, oldest int) (*lists, error) {
	before := c.failuresNow()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if l := c.usable(oldest); l != nil {
		return l, nil
	}
	if err := c.failedSince(before); err != nil {
		return nil, err
	}
	return c.read(ctx)
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
	if c.failures > before && !ironic.IsInterrupted(c.failure) {
		return c.failure
	}
	return nil
}

// read reads the lists.
func (c *catalog) read(ctx context.Context) (*lists, error) {
	c.mu.Lock()
	c.begun++
	l := &lists{number: c.begun, at: time.Now()}
	c.mu.Unlock()
	nodes, err := c.client.ListNodeFields(ctx, ironic.NodeFilter{}, catalogFields)
	var ports []ironic.Port
	if err == nil {
		ports, err = c.client.ListPortAddresses(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures, c.failure = c.failures+1, err
		return nil, err
	}
	l.entries = entriesOf(nodes, ports)
	c.lists = l
	return l, nil
}

func entriesOf(nodes []ironic.Node, ports []ironic.Port) []*entry {
	var all []*entry
	byNode := map[string]*entry{}
	add := func(node *ironic.Node) *entry {
		e := &entry{node: node, bmc: ironic.IdentifyBMC(node.DriverInfo)}
		all, byNode[node.UUID] = append(all, e), e
		return e
	}
	for i := range nodes {
		add(&nodes[i])
	}
	for _, port := range ports {
		e := byNode[port.NodeUUID]
		if e == nil { // created between the two lists
			e = add(&ironic.Node{UUID: port.NodeUUID})
		}
		e.addresses = append(e.addresses, strings.ToLower(port.Address))
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
	Tenant     Tenant
}

// Sharing is a property that two nodes must not share.
type Sharing string

// Properties that two nodes must not share.
const (
	SharedName    Sharing = "name"
	SharedBMC     Sharing = "BMC"
	SharedAddress Sharing = "MAC address"
)

// TakenError says that another node already has the name, BMC or MAC address of a new one.
type TakenError struct {
	What  Sharing
	Value string
	Node  *ironic.Node // the node that has it
	// Making is the mark of another run that creates the node at the same time; nil if there is none.
	Making *Creation
	// Obstacle says why the node, which a killed run has begun to create or which was discovered, is not taken over; "" if it is another node.
	Obstacle string
}

// Error names the node.
func (e *TakenError) Error() string {
	label := ironic.NodeLabel(e.Node)
	switch e.What {
	case SharedName:
		return fmt.Sprintf("a node with name %s already exists: %s", e.Value, e.Node.UUID)
	case SharedBMC:
		return fmt.Sprintf("node %s has the BMC %s already", label, e.Value)
	case SharedAddress:
	}
	return fmt.Sprintf("a port with MAC address %s already exists, on node %s", e.Value, label)
}

func (e *TakenError) advice() string {
	if e.Making != nil {
		return fmt.Sprintf("%s is creating it. If two configurations create the same machine, remove it from one of them.", e.Making)
	}
	if e.Obstacle != "" {
		return fmt.Sprintf("The node looks like one that discovery has found, or that an earlier run has begun to create, but the provider does not take it over, because %s. "+
			"If the machine is yours, import it:\n\n  terraform import <address of the metal_host> %s\n\nOtherwise, describe another machine.", e.Obstacle, e.Node.UUID)
	}
	if e.What == SharedBMC {
		return "Two nodes on one BMC are one machine: every operation on one affects the other. Correct the address, or import the node that has it:\n\n" +
			"  terraform import <address of the metal_host> " + e.Node.UUID
	}
	return adviseConflict(Sentence(e))
}

// conflict is a node that already has what a candidate needs.
type conflict struct {
	*entry
	what  Sharing
	value string
}

func (x conflict) err() error { return &TakenError{What: x.what, Value: x.value, Node: x.node} }

// conflicts returns the nodes that share something with a candidate: first the one with its name, then the one with its BMC. If
// there are none, the candidate becomes an entry of the catalog and conflicts with later candidates.
func (c *catalog) conflicts(l *lists, who Candidate) (found []conflict, changed <-chan struct{}) {
	wanted := entryOf(who)
	c.mu.Lock()
	defer c.mu.Unlock()
	if found = c.sharedBy(l, wanted); len(found) == 0 {
		c.made[who.UUID] = wanted
	}
	return found, c.changed
}

// sharing is conflicts without an effect on the catalog.
func (c *catalog) sharing(l *lists, wanted *entry) []conflict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sharedBy(l, wanted)
}

// sharedBy is sharing; c.mu is held.
func (c *catalog) sharedBy(l *lists, wanted *entry) (found []conflict) {
	for _, e := range l.entries {
		if !c.gone[e.node.UUID] && c.made[e.node.UUID] == nil {
			found = append(found, wanted.sharedWith(e)...)
		}
	}
	for _, e := range c.made {
		found = append(found, wanted.sharedWith(e)...)
	}
	slices.SortStableFunc(found, func(a, b conflict) int { return rank(a.what) - rank(b.what) })
	return found
}

func rank(what Sharing) int {
	return slices.Index([]Sharing{SharedName, SharedBMC, SharedAddress}, what)
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
	return &entry{
		node: &ironic.Node{UUID: who.UUID, Name: who.Name}, bmc: ironic.IdentifyBMC(who.DriverInfo), addresses: who.Addresses, isOurs: true,
	}
}

// sharedWith returns what two nodes share.
func (e *entry) sharedWith(other *entry) (shared []conflict) {
	if e.node.Name != "" && e.node.Name == other.node.Name {
		shared = append(shared, conflict{other, SharedName, e.node.Name})
	}
	if e.bmc.Same(other.bmc) {
		shared = append(shared, conflict{other, SharedBMC, e.bmc.String()})
	}
	for _, address := range e.addresses {
		if slices.Contains(other.addresses, address) {
			shared = append(shared, conflict{other, SharedAddress, address})
		}
	}
	return shared
}

// isDeleting reports whether the run is deleting a node.
func (c *catalog) isDeleting(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deleting[id]
}
