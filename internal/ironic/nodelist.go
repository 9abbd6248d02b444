package ironic

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// NodeFilter selects nodes on the server. nil and empty fields select all (reference/ironic.md#filters-of-node-lists).
type NodeFilter struct {
	ProvisionState, ResourceClass, ConductorGroup, Owner, Lessee, Project string
	Driver, Fault, Shard, InstanceUUID, DescriptionContains, ChassisUUID  string
	Maintenance, Associated, Retired                                      *bool
}

func (f NodeFilter) query() url.Values {
	q := url.Values{}
	for key, value := range map[string]string{
		"provision_state": f.ProvisionState, "resource_class": f.ResourceClass, "conductor_group": f.ConductorGroup,
		"owner": f.Owner, "lessee": f.Lessee, "project": f.Project, "driver": f.Driver, "fault": f.Fault, "shard": f.Shard,
		"instance_uuid": f.InstanceUUID, "description_contains": f.DescriptionContains, "chassis_uuid": f.ChassisUUID,
	} {
		if value != "" {
			q.Set(key, value)
		}
	}
	for key, value := range map[string]*bool{"maintenance": f.Maintenance, "associated": f.Associated, "retired": f.Retired} {
		if value != nil {
			q.Set(key, fmt.Sprint(*value))
		}
	}
	return q
}

// ListNodes returns the nodes with all fields, including child nodes.
func (c *Client) ListNodes(ctx context.Context, filter NodeFilter) ([]Node, error) {
	query, err := c.detailQuery(ctx, filter)
	if err != nil {
		return nil, err
	}
	return c.listNodes(ctx, filter, query)
}

// ListNodesByID returns all nodes with all fields by UUID.
func (c *Client) ListNodesByID(ctx context.Context) (map[string]*Node, error) {
	all, err := c.ListNodes(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	return ByUUID(all, func(n *Node) string { return n.UUID }), nil
}

// ListNodeFields returns only the given fields of the nodes, including child nodes, so that a list of thousands stays small. Fields that
// the API does not have are empty.
func (c *Client) ListNodeFields(ctx context.Context, filter NodeFilter, fields []string) ([]Node, error) {
	query, err := c.nodeQuery(ctx, filter)
	if err != nil {
		return nil, err
	}
	asked, err := c.visibly(ctx, fields)
	if err != nil {
		return nil, err
	}
	query.Set("fields", asked)
	return c.listNodes(ctx, filter, query)
}

// StreamNodes yields the nodes, including child nodes, while it reads the pages of their list: with all fields, or with the given
// ones. limit is the most nodes that the reader wants; 0: all.
func (c *Client) StreamNodes(ctx context.Context, filter NodeFilter, limit int64, fields ...string) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		query, err := c.detailQuery(ctx, filter)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(fields) > 0 {
			asked, err := c.visibly(ctx, fields)
			if err != nil {
				yield(nil, err)
				return
			}
			query.Del("detail")
			query.Set("fields", asked)
		}
		for node, err := range api.Stream(ctx, c.Conn, "nodes", "nodes", limited(query, limit), func(n *Node) string { return n.UUID }) {
			if node != nil {
				c.redacted(node)
			}
			if !yield(node, err) {
				return
			}
		}
	}
}

// limited asks for pages of at most the given size; 0: of the size that Ironic chooses.
func limited(query url.Values, limit int64) url.Values {
	if limit > 0 {
		query.Set("limit", fmt.Sprint(limit))
	}
	return query
}

func (c *Client) listNodes(ctx context.Context, filter NodeFilter, query url.Values) ([]Node, error) {
	return c.complete(ctx, filter, func() ([]Node, error) {
		all, err := api.List[Node](ctx, c.Conn, "nodes", "nodes", query)
		for i := range all {
			c.redacted(&all[i])
		}
		return all, err
	})
}

// nodeQuery returns the query of a filter. It includes child nodes where the server supports them, because otherwise a node that a
// defect has made its own parent would be missing (reference/ironic.md#a-node-that-is-its-own-parent).
func (c *Client) nodeQuery(ctx context.Context, filter NodeFilter) (url.Values, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, err
	}
	query := filter.query()
	if version >= api.VersionParentNode {
		query.Set("include_children", "true")
	}
	return query, nil
}

// detailQuery is nodeQuery for lists with all fields.
func (c *Client) detailQuery(ctx context.Context, filter NodeFilter) (url.Values, error) {
	if err := c.Requires(ctx, api.VersionDetail, "listing nodes"); err != nil {
		return nil, err
	}
	query, err := c.nodeQuery(ctx, filter)
	if err == nil {
		query.Set("detail", "true")
	}
	return query, err
}

// pollFields are the fields that waiting for a node needs (reference/ironic.md#lists-of-nodes). They include the provider's notes
// in extra, with which the list is half as large again and still less than a third of a full list.
var pollFields = []string{
	"uuid", "name", "provision_state", "target_provision_state", "power_state", "target_power_state", "maintenance", "fault",
	"last_error", "reservation", "instance_uuid", "provision_updated_at", "boot_interface", "conductor_group", "deploy_step",
	"clean_step", "extra", "service_step",
}

// fieldsSince are the fields of a node that lists request and not all versions of the API have.
var fieldsSince = map[string]api.Microversion{
	"owner": api.VersionOwner, "lessee": api.VersionLessee, "shard": api.VersionShard, "parent_node": api.VersionParentNode,
	"firmware_interface": api.VersionFirmware, "service_step": api.VersionService, "health": api.VersionHealth,
}

// visibly adds owner and lessee to the fields of nodes that a list requests, and leaves out those that the API does not have. By these two
// Ironic decides what it shows to the user: without them, 21.4 hides the others from the owner, too (reference/ironic.md#hidden-fields).
func (c *Client) visibly(ctx context.Context, fields []string) (string, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return "", err
	}
	all := slices.Clone(fields)
	for _, field := range []string{"owner", "lessee"} {
		if !slices.Contains(all, field) {
			all = append(all, field)
		}
	}
	all = slices.DeleteFunc(all, func(field string) bool { return version < fieldsSince[field] })
	return strings.Join(all, ","), nil
}

// fields returns the fields that polls request: those that waiting needs, and the configured ones, which the limit needs.
func (c *Client) fields(ctx context.Context) (string, error) {
	if err := c.Requires(ctx, api.VersionConductorGroup, "waiting for a node"); err != nil {
		return "", err
	}
	return c.visibly(ctx, append(slices.Clone(pollFields), c.polls.Fields...))
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
	all, err := c.listNodes(ctx, NodeFilter{}, query)
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
	c.known.saw(&node)
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

// complete requests a list of nodes until it agrees with what this process knows, and adds the nodes that lists hide from this user.
// A list that agrees costs no request more.
func (c *Client) complete(ctx context.Context, filter NodeFilter, list func() ([]Node, error)) ([]Node, error) {
	for try, pause := 1, relistAfter; ; try, pause = try+1, 2*pause {
		asked := time.Now()
		all, err := list()
		if err != nil {
			return nil, err
		}
		hidden, wrong, err := c.compare(ctx, all, filter, asked, try == relists && len(all) > 0)
		if err != nil {
			return nil, err
		}
		if wrong == nil {
			c.known.sawAll(all, asked)
			return append(all, hidden...), nil
		}
		if try == relists {
			return nil, incomplete("node " + NodeLabel(wrong))
		}
		c.Logger().WarnContext(ctx, "a list of nodes lacks a node that exists, or shows it as it was: the list is requested again",
			"node", wrong.Name, "uuid", wrong.UUID, "listed", len(all), "try", try)
		if err := rest.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// compare asks for each node about which a list differs from what is known, until one of them shows that the list is wrong. last: a node
// that no list has ever shown is hidden.
func (c *Client) compare(ctx context.Context, all []Node, filter NodeFilter, asked time.Time, last bool) (
	hidden []Node, wrong *Node, err error,
) {
	listed := ByUUID(all, func(n *Node) string { return n.UUID })
	for _, id := range c.known.doubts(listed, filter, asked, asked.Add(c.Ahead()-unsettled)) {
		node, err := c.Node(ctx, id)
		if api.IsNotFound(err) || api.IsDenied(err) {
			c.known.forget(id)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		switch n := listed[id]; {
		case n == nil && !filter.selects(node), n != nil && n.agrees(node):
		case n == nil && c.known.isHidden(id, last):
			hidden = append(hidden, *node)
		default:
			return nil, node, nil
		}
	}
	return hidden, nil, nil
}

func incomplete(label string) error {
	return &fault.Error{
		Kind: KindIncomplete, Err: api.ErrIncomplete,
		Fact: fmt.Sprintf("Ironic's lists lack %s, which exists, or show it as it was: nothing is concluded from them", label),
		Advice: "Check Ironic's database (has it failed over?) and the proxies before Ironic, then try again. Nothing was changed " +
			"because of these lists.",
	}
}
