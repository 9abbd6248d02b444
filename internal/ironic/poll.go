package ironic

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pollFields are the fields that waiting for a node needs (reference/ironic.md#lists-of-nodes). They include the provider's notes
// in extra, with which the list is half as large again and still less than a third of a full list.
var pollFields = []string{
	"uuid", "name", "provision_state", "target_provision_state", "power_state", "target_power_state", "maintenance", "fault",
	"last_error", "reservation", "instance_uuid", "provision_updated_at", "boot_interface", "conductor_group", "deploy_step", "extra",
}

// PollNode waits for the next poll of a node, and returns only the fields that waiting needs, and when the request for them began.
// It returns ErrNoPoll if no poll comes within the given time.
func (c *Client) PollNode(ctx context.Context, id string, within time.Duration) (node *Node, asked time.Time, err error) {
	p := c.fleet.poll(ctx, id, within)
	return p.value, p.asked, p.err
}

// PollNodes waits for the next poll of all nodes.
func (c *Client) PollNodes(ctx context.Context) (map[string]*Node, error) {
	return c.fleet.nextAll(ctx)
}

// PollAllocation waits for the next poll of an allocation; it fails as PollNode does.
func (c *Client) PollAllocation(ctx context.Context, id string, within time.Duration) (*Allocation, error) {
	return c.pending.next(ctx, id, within)
}

// visibly adds owner and lessee to the fields of nodes that a list requests, if the API has them. By these fields Ironic decides what it
// shows to the user: without them, 21.4 hides the others from the owner, too (reference/ironic.md#hidden-fields).
func (c *Client) visibly(ctx context.Context, fields []string) (string, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return "", err
	}
	all := slices.Clone(fields)
	for _, field := range []struct {
		name  string
		since Microversion
	}{{"owner", VersionOwner}, {"lessee", VersionLessee}} {
		if version >= field.since && !slices.Contains(all, field.name) {
			all = append(all, field.name)
		}
	}
	return strings.Join(all, ","), nil
}

// fields returns the fields that polls request: those that waiting needs, and the configured ones, which the limit needs.
func (c *Client) fields(ctx context.Context) (string, error) {
	fields := slices.Clone(pollFields)
	if err := c.Requires(ctx, VersionConductorGroup, "waiting for a node"); err != nil {
		return "", err
	}
	version, err := c.Microversion(ctx)
	if err != nil {
		return "", err
	}
	for _, field := range c.cfg.PollFields {
		if field != "shard" || version >= VersionShard {
			fields = append(fields, field)
		}
	}
	return c.visibly(ctx, fields)
}

// ShortNodes lists all nodes now, with the fields of polls.
func (c *Client) ShortNodes(ctx context.Context) (map[string]*Node, error) {
	query, err := c.nodeQuery(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	fields, err := c.fields(ctx)
	if err != nil {
		return nil, err
	}
	query.Set("fields", fields)
	all, err := c.listNodes(ctx, query)
	if err != nil {
		return nil, err
	}
	return ByUUID(all, func(n *Node) string { return n.UUID }), nil
}

// shortNode reads one node with the fields of polls.
func (c *Client) shortNode(ctx context.Context, id string) (*Node, error) {
	fields, err := c.fields(ctx)
	if err != nil {
		return nil, err
	}
	var node Node
	if err := c.Request(ctx, http.MethodGet, "nodes/"+id+"?fields="+fields, nil, &node); err != nil {
		return nil, err
	}
	return c.redacted(&node), nil
}

// ByUUID returns a list as a map by the given identifier.
func ByUUID[T any](all []T, id func(*T) string) map[string]*T {
	m := make(map[string]*T, len(all))
	for i := range all {
		m[id(&all[i])] = &all[i]
	}
	return m
}
