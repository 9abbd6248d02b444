package ironic

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

// CreateNode creates a node, whose first state is enroll. If the answer is lost, CreateNode checks whether the node exists before
// it sends the request again. The caller chooses the UUID, and sends afterwards what Ironic refuses at creation, such as the owner.
func (c *Client) CreateNode(ctx context.Context, id string, s Settings) (*Node, error) {
	err := c.defect.check(ctx, c, func() (string, string, error) { return s.Text("driver"), s.Text("conductor_group"), nil })
	if err != nil {
		return nil, err
	}
	s = maps.Clone(s)
	s["uuid"] = id
	var node *Node
	err = c.Create(ctx, func(ctx context.Context) error {
		var made Node
		if err := c.Request(ctx, http.MethodPost, "nodes", s.body(), &made); err != nil {
			return err
		}
		node = c.redacted(&made)
		c.known.saw(node)
		return nil
	}, func(ctx context.Context) error {
		var err error
		node, err = c.Node(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return node, nil
}

// LastError returns last_error of a node as its states show it, also to users from whom the node itself hides it
// (reference/ironic.md#hidden-fields).
func (c *Client) LastError(ctx context.Context, id string) (text string, hidden bool, err error) {
	var states struct {
		LastError string `json:"last_error"`
	}
	err = c.Request(ctx, http.MethodGet, "nodes/"+id+"/states", nil, &states)
	hidden = hideText(&states.LastError)
	return c.Redact(states.LastError), hidden, err
}

// NodeForRefresh returns a node by UUID for a refresh. Reads that arrive together are answered from one list, which may be up to a
// minute old but is newer than the last write of this process to the node. It returns an error of KindIncomplete if a data source has
// lacked the node.
func (c *Client) NodeForRefresh(ctx context.Context, id string) (*Node, error) {
	node, err := c.nodes.Get(ctx, id)
	if err == nil {
		err = c.lackNode(node)
	}
	return node, err
}

// reserved are parts of URLs below those of the nodes (reference/ironic.md#names).
var reserved = []string{".", "..", "detail", "maintenance", "management", "states", "validate", "vendor_passthru"}

// namePattern is a name or a UUID as Ironic accepts it (reference/ironic.md#names).
var namePattern = regexp.MustCompile(`^[0-9A-Za-z._~-]{1,255}$`)

// mayExist returns an error that api.IsNotFound recognises if no node or allocation can have this name or UUID. In a URL it could name
// something else.
func mayExist(ref string) error {
	if !namePattern.MatchString(ref) || slices.Contains(reserved, ref) {
		return &api.StatusError{
			Status:  http.StatusNotFound,
			Message: fmt.Sprintf("%q is neither a UUID nor a name that Ironic accepts", ref),
		}
	}
	return nil
}

// Node reads a node by UUID or name now.
func (c *Client) Node(ctx context.Context, ref string) (*Node, error) {
	if err := mayExist(ref); err != nil {
		return nil, err
	}
	var node Node
	if err := c.Request(ctx, http.MethodGet, "nodes/"+url.PathEscape(ref), nil, &node); err != nil {
		if api.IsNotFound(err) {
			c.known.forget(ref)
		}
		return nil, err
	}
	c.known.saw(&node)
	return c.redacted(&node), nil
}

var macPattern = regexp.MustCompile(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$`)

// MAC writes a MAC address as Ironic does.
func MAC(address string) string { return strings.ToLower(strings.ReplaceAll(address, "-", ":")) }

// FindNode returns a node by UUID, name, the MAC address of a port, or "bmc:ADDRESS". It returns an error if no node or several
// nodes match.
func (c *Client) FindNode(ctx context.Context, ref string) (*Node, error) {
	if address, ok := strings.CutPrefix(ref, "bmc:"); ok {
		return c.findNodeByBMC(ctx, address)
	}
	if !macPattern.MatchString(ref) {
		return c.Node(ctx, ref)
	}
	address := MAC(ref)
	ports, err := api.List[Port](ctx, c.Conn, "ports/detail", "ports", url.Values{"address": {address}})
	if err != nil {
		return nil, err
	}
	if len(ports) == 0 {
		return nil, &api.StatusError{Status: http.StatusNotFound, Message: "no port has the MAC address " + address, Ours: true}
	}
	return c.Node(ctx, ports[0].NodeUUID)
}

func (c *Client) findNodeByBMC(ctx context.Context, address string) (*Node, error) {
	all, err := c.ListNodes(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	var found []*Node
	for i := range all {
		if named, err := driverinfo.NamesBMC(address, all[i].DriverInfo); err != nil {
			return nil, err
		} else if named {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, &api.StatusError{Status: http.StatusNotFound, Message: "no node has the BMC address " + address, Ours: true}
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d nodes have the BMC address %s, such as %s and %s: name one by its UUID",
		len(found), address, NodeLabel(found[0]), NodeLabel(found[1]))
}

// PatchNode applies edits to a node and returns Ironic's answer, which is the whole node; an empty patch reads it. This process
// never sends two edits of one node at the same time. Ironic may lose an edit of a map if another client edits the map at the same
// time (reference/ironic.md#patching-a-node): check the next read of the node with Patch.Holds.
func (c *Client) PatchNode(ctx context.Context, id string, patch Patch) (*Node, error) {
	if len(patch) == 0 {
		return c.Node(ctx, id)
	}
	unlock, err := c.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer c.nodes.Invalidate(id)
	err = c.defect.check(ctx, c, func() (string, string, error) {
		node, err := c.Node(ctx, id)
		if err != nil {
			return "", "", err
		}
		return node.Driver, node.ConductorGroup, nil
	})
	if err != nil {
		return nil, err
	}
	path := "nodes/" + id
	if patch.Changes("/driver") {
		path += "?reset_interfaces=true"
	}
	for try := 1; ; try++ {
		var node Node
		err := c.Request(ctx, http.MethodPatch, path, patch.body(), &node)
		if api.IsStatus(err, http.StatusBadRequest, "remove a non-existent object") && try < api.Retries {
			// An earlier try or another client has removed it.
			if patch, err = c.withoutGone(ctx, id, patch); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if err := c.defect.examine(&node); err != nil {
			return nil, err
		}
		c.known.edited(&node)
		return c.redacted(&node), nil
	}
}

func (c *Client) withoutGone(ctx context.Context, id string, patch Patch) (Patch, error) {
	node, err := c.Node(ctx, id)
	if err != nil {
		return nil, err
	}
	maps := map[string]map[string]any{
		"extra": node.Extra, "properties": node.Properties, "driver_info": node.DriverInfo, "instance_info": node.InstanceInfo,
	}
	var kept Patch
	for _, op := range patch {
		attribute, key, isKey := strings.Cut(strings.TrimPrefix(op.Path, "/"), "/")
		if _, exists := maps[attribute][key]; op.Op != nodes.RemoveOp || !isKey || exists {
			kept = append(kept, op)
		}
	}
	return kept, nil
}

// DeleteNode deletes a node and its ports. It succeeds if the node does not exist.
func (c *Client) DeleteNode(ctx context.Context, id string) error {
	defer c.nodes.Invalidate(id)
	err := c.remove(ctx, "nodes/"+id)
	if err == nil {
		c.known.forget(id)
	}
	return err
}

// SetMaintenance puts a node into maintenance with a reason, or takes it out.
func (c *Client) SetMaintenance(ctx context.Context, id string, on bool, reason string) error {
	defer c.nodes.Invalidate(id)
	if !on {
		return c.Request(ctx, http.MethodDelete, "nodes/"+id+"/maintenance", nil, nil)
	}
	body := map[string]any{}
	if reason != "" {
		body["reason"] = reason
	}
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/maintenance", body, nil)
}

// SetTraits adds and removes single traits of a node and keeps the others.
func (c *Client) SetTraits(ctx context.Context, id string, add, remove []string) error {
	unlock, err := c.Lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	defer c.nodes.Invalidate(id)
	for _, trait := range add {
		if err := c.Request(ctx, http.MethodPut, "nodes/"+id+"/traits/"+url.PathEscape(trait), nil, nil); err != nil {
			return fmt.Errorf("add trait %s: %w", trait, err)
		}
	}
	for _, trait := range remove {
		if err := c.remove(ctx, "nodes/"+id+"/traits/"+url.PathEscape(trait)); err != nil {
			return fmt.Errorf("remove trait %s: %w", trait, err)
		}
	}
	return nil
}

// NodeOfInstance returns the node that an allocation or instance has reserved.
func (c *Client) NodeOfInstance(ctx context.Context, instance string) (*Node, error) {
	found, err := c.ListNodes(ctx, NodeFilter{InstanceUUID: instance})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &api.StatusError{Status: http.StatusNotFound, Message: "no node is reserved by " + instance, Ours: true}
	}
	return &found[0], nil
}
