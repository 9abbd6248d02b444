package ironic

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// PortGroup is a bond of ports of one node.
type PortGroup struct {
	UUID            string         `json:"uuid"`
	Name            string         `json:"name"` // unique in Ironic; may be empty
	NodeUUID        string         `json:"node_uuid"`
	Address         string         `json:"address"`
	Mode            string         `json:"mode"`
	StandalonePorts bool           `json:"standalone_ports_supported"`
	Properties      map[string]any `json:"properties"`
	Extra           map[string]any `json:"extra"`
	PhysicalNetwork string         `json:"physical_network"`  // since API 1.102
	Category        string         `json:"category"`          // since API 1.103
	Dynamic         bool           `json:"dynamic_portgroup"` // since API 1.111; see IsDynamic
}

// IsDynamic reports whether Ironic has made the group while it attached VIFs, for as long as they are attached
// (reference/ironic.md#trait-based-networking).
func (g PortGroup) IsDynamic() bool {
	return g.Dynamic || strings.HasPrefix(g.Name, "tbn_dyn_portgroup_")
}

// PortGroupSpec is the wanted state of a port group. nil and empty values are left to Ironic.
type PortGroupSpec struct {
	Name            string // used only at creation
	Address         string // MAC address, in lower case with colons
	Mode            string
	StandalonePorts *bool
	Properties      map[string]any
	PhysicalNetwork string // of its ports; sent only since API 1.102
	Category        string
	Extra           map[string]any // keys to set
	Without         []string       // keys of extra to remove
}

// Over returns the spec with what a group has and the spec leaves to Ironic, so that a new group can replace that group.
func (s PortGroupSpec) Over(group PortGroup) PortGroupSpec {
	if s.StandalonePorts == nil {
		s.StandalonePorts = &group.StandalonePorts
	}
	if s.Properties == nil && len(group.Properties) > 0 {
		s.Properties = group.Properties
	}
	for to, had := range map[*string]string{
		&s.Address: group.Address, &s.Mode: group.Mode, &s.PhysicalNetwork: group.PhysicalNetwork,
		&s.Category: group.Category,
	} {
		*to = cmp.Or(*to, had)
	}
	s.Extra = extraAfter(group.Extra, s.Extra, s.Without)
	return s
}

// IsMet reports whether UpdatePortGroup would change nothing, in an Ironic in which port groups have the attributes of the spec.
func (s PortGroupSpec) IsMet(group PortGroup) bool { return len(s.changes(group)) == 0 }

func (s PortGroupSpec) changes(group PortGroup) (patch Patch) {
	if s.PhysicalNetwork != "" && s.PhysicalNetwork != group.PhysicalNetwork {
		// Ironic changes the ports only if it comes first (reference/ironic.md#port-groups)
		patch.Set("/physical_network", s.PhysicalNetwork)
	}
	for path, values := range map[string][2]string{
		"/address": {s.Address, group.Address}, "/mode": {s.Mode, group.Mode},
		"/category": {s.Category, group.Category},
	} {
		if values[0] != "" && values[0] != values[1] {
			patch.Set(path, values[0])
		}
	}
	if s.StandalonePorts != nil && *s.StandalonePorts != group.StandalonePorts {
		patch.Set("/standalone_ports_supported", *s.StandalonePorts)
	}
	if s.Properties != nil && !SameJSON(s.Properties, group.Properties) {
		patch.Set("/properties", s.Properties)
	}
	return append(patch, extraEdits(group.Extra, s.Extra, s.Without)...)
}

// CreatePortGroup creates a port group of a node, also if the answer is lost.
func (c *Client) CreatePortGroup(ctx context.Context, nodeID string, spec PortGroupSpec) (*PortGroup, error) {
	id := "f" + NewUUID()[1:] // Ironic 21.4 may refuse to delete a group whose UUID begins with a number (reference/ironic.md#port-groups)
	own, err := c.GroupsHaveNetworks(ctx)
	if err != nil {
		return nil, err
	}
	if !own {
		spec.PhysicalNetwork = ""
	}
	defer c.portGroups.Invalidate(nodeID)
	return create[PortGroup](ctx, c, "portgroups", id, given(map[string]any{
		"uuid": id, "node_uuid": nodeID, "name": spec.Name, "address": spec.Address, "mode": spec.Mode,
		"physical_network": spec.PhysicalNetwork, "category": spec.Category, "extra": spec.Extra,
		"standalone_ports_supported": spec.StandalonePorts, "properties": spec.Properties,
	}))
}

// UpdatePortGroup changes a port group to the wanted state and returns it; it sends only attributes that differ. Ironic accepts that
// in every state of the node (reference/ironic.md#port-groups). A change of the physical network also changes that of the ports in
// the group.
func (c *Client) UpdatePortGroup(ctx context.Context, group PortGroup, spec PortGroupSpec) (*PortGroup, error) {
	own, err := c.GroupsHaveNetworks(ctx)
	if err != nil {
		return nil, err
	}
	if !own {
		spec.PhysicalNetwork = ""
	}
	return c.patchPortGroup(ctx, group, spec.changes(group))
}

// GroupsHaveNetworks reports whether port groups have a physical network of their own in this Ironic, which a change of it gives to their
// ports.
func (c *Client) GroupsHaveNetworks(ctx context.Context) (bool, error) {
	version, err := c.Microversion(ctx)
	return version >= api.VersionGroupNetwork, err
}

// RemovePortGroupExtra removes a key of a port group's extra.
func (c *Client) RemovePortGroupExtra(ctx context.Context, group PortGroup, key string) (*PortGroup, error) {
	return c.patchPortGroup(ctx, group, extraEdits(group.Extra, nil, []string{key}))
}

// RemovePortGroupAddress takes the MAC address of a port group away, so that another group can get it.
func (c *Client) RemovePortGroupAddress(ctx context.Context, group PortGroup) (*PortGroup, error) {
	var patch Patch
	patch.Remove("/address")
	return c.patchPortGroup(ctx, group, patch)
}

func (c *Client) patchPortGroup(ctx context.Context, group PortGroup, patch Patch) (*PortGroup, error) {
	if len(patch) == 0 {
		return &group, nil
	}
	defer c.portGroups.Invalidate(group.NodeUUID)
	defer c.ports.Invalidate(group.NodeUUID)
	var changed PortGroup
	if err := c.Request(ctx, http.MethodPatch, "portgroups/"+group.UUID, patch.body(), &changed); err != nil {
		return nil, err
	}
	return &changed, nil
}

// DeletePortGroup deletes a port group, which must contain no ports. It succeeds if the group does not exist.
func (c *Client) DeletePortGroup(ctx context.Context, group PortGroup) error {
	defer c.portGroups.Invalidate(group.NodeUUID)
	return c.remove(ctx, "portgroups/"+group.UUID)
}

// PortGroups reads the port groups of a node now.
func (c *Client) PortGroups(ctx context.Context, nodeID string) ([]PortGroup, error) {
	return api.List[PortGroup](ctx, c.Conn, "portgroups/detail", "portgroups", url.Values{"node": {nodeID}})
}

// ListPortGroupAddresses reads the port groups of all nodes, with UUID, address and node_uuid only.
func (c *Client) ListPortGroupAddresses(ctx context.Context) ([]PortGroup, error) {
	return api.List[PortGroup](ctx, c.Conn, "portgroups", "portgroups", url.Values{"fields": {"uuid,address,node_uuid"}})
}

// PortGroupsForRefresh returns the port groups of a node; see NodeForRefresh.
func (c *Client) PortGroupsForRefresh(ctx context.Context, nodeID string) ([]PortGroup, error) {
	all, err := c.portGroups.Get(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	return *all, nil
}

func (c *Client) listNodePortGroups(ctx context.Context, nodeID string) (*[]PortGroup, error) {
	all, err := c.PortGroups(ctx, nodeID)
	return &all, err
}

func (c *Client) listPortGroupsByNode(ctx context.Context) (map[string]*[]PortGroup, error) {
	all, err := api.List[PortGroup](ctx, c.Conn, "portgroups/detail", "portgroups", nil)
	return byNode(all, func(g *PortGroup) string { return g.NodeUUID }), err
}
