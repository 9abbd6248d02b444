// Package ironic is a client of the Bare Metal API: nodes, ports, allocations and what else Ironic has, with lists and polls that many
// readers share. It contains no policy about machines.
package ironic

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/polling"
)

// Polls says how a Client polls nodes.
type Polls struct {
	// Fields are additional fields of nodes that polls request.
	Fields []string
	// OthersAtWork reports, from a list of all nodes, whether other runs have operations in progress. Polling then pauses longer.
	// nil: unknown.
	OthersAtWork func(fleet map[string]*Node) bool
}

// Client is a client of one Ironic. It is safe for concurrent use. A process should use one Client for all reading and waiting,
// because the Client polls and lists for all its callers at once.
type Client struct {
	*api.Conn
	polls      Polls
	nodes      *polling.Batch[Node]
	ports      *polling.Batch[[]Port]
	portGroups *polling.Batch[[]PortGroup]
	allocs     *polling.Batch[Allocation]
	fleet      *polling.Watch[Node]
	pending    *polling.Watch[Allocation]
	defect     parentDefect
	known      known

	usedNodes       answers[Node]
	usedAllocations answers[Allocation]
}

// New returns a Client. It makes no request and reads no file, so that validate and plan work offline. Errors in the configuration
// appear on first use.
func New(cfg api.Config, polls Polls) *Client {
	c := &Client{Conn: api.New(cfg), polls: polls, known: known{all: map[string]*fact{}}}
	c.nodes = polling.NewBatch(c.Node, c.ListNodesByID)
	c.ports = polling.NewBatch(c.listNodePorts, c.listPortsByNode)
	c.ports.Absent = &[]Port{}
	c.portGroups = polling.NewBatch(c.listNodePortGroups, c.listPortGroupsByNode)
	c.portGroups.Absent = &[]PortGroup{}
	c.allocs = polling.NewBatch(c.Allocation, c.listAllocationsByID)
	c.fleet = polling.NewWatch(c.PollInterval(), c.shortNode, c.ShortNodes)
	c.fleet.Others = polls.OthersAtWork
	c.fleet.State = func(n *Node) string { return n.ProvisionState }
	c.pending = polling.NewWatch(c.PollInterval(), c.Allocation, c.listAllocationsByID)
	return c
}

// PollNode waits for the next poll of a node, and returns only the fields that waiting needs, and when the request for them began.
// It returns api.ErrNoPoll if no poll comes within the given time.
func (c *Client) PollNode(ctx context.Context, id string, within time.Duration) (node *Node, asked time.Time, err error) {
	return c.fleet.Poll(ctx, id, within)
}

// PollNodes waits for the next poll of all nodes.
func (c *Client) PollNodes(ctx context.Context) (map[string]*Node, error) {
	return c.fleet.NextAll(ctx)
}

// PollAllocation waits for the next poll of an allocation; it fails as PollNode does.
func (c *Client) PollAllocation(ctx context.Context, id string, within time.Duration) (*Allocation, error) {
	return c.pending.Next(ctx, id, within)
}

// ForgetNode makes the next refresh read a node again.
func (c *Client) ForgetNode(id string) { c.nodes.Invalidate(id) }

// ForgetAllocation makes the next refresh read an allocation again.
func (c *Client) ForgetAllocation(id string) { c.allocs.Invalidate(id) }

// NodesForPlan returns all nodes by UUID from a list that many plans share. The list is at most a minute old and newer than the
// last write of this process.
func (c *Client) NodesForPlan(ctx context.Context) (map[string]*Node, error) {
	return c.nodes.FullList(ctx)
}

// AllocationsForPlan is NodesForPlan for allocations.
func (c *Client) AllocationsForPlan(ctx context.Context) (map[string]*Allocation, error) {
	return c.allocs.FullList(ctx)
}

// HasWritten reports whether this run has changed a node, which means that it is an apply. During an apply, Terraform plans
// resources again whose values were unknown before, and such a plan must not contradict the first one.
func (c *Client) HasWritten() bool { return c.nodes.HasWritten() }
