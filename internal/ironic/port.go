package ironic

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/ports"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Port is a network card that Ironic knows.
type Port struct {
	ports.Port

	Name        string `json:"name"`        // since API 1.88; unique in Ironic
	Description string `json:"description"` // since API 1.97
	Vendor      string `json:"vendor"`      // since API 1.100
	Category    string `json:"category"`    // since API 1.101
}

// VIF returns the VIF that is attached to the port; "" if there is none.
func (p Port) VIF() string {
	id, _ := p.InternalInfo["tenant_vif_port_id"].(string)
	return id
}

// PortSpec is the wanted state of a port. nil and empty values are left to Ironic.
type PortSpec struct {
	Address             string // MAC address, in lower case with colons
	PXEEnabled          *bool
	PhysicalNetwork     string
	LocalLinkConnection map[string]any
	IsSmartNIC          *bool

	Name, Description, Vendor, Category string

	Extra   map[string]any // keys to set
	Without []string       // keys of extra to remove
	Group   string         // UUID of the port group; used only at creation
}

// Over returns the spec with what a port has and the spec leaves to Ironic, so that a new port can replace that port. The group is the
// caller's.
func (s PortSpec) Over(port Port) PortSpec {
	if s.PXEEnabled == nil {
		s.PXEEnabled = &port.PXEEnabled
	}
	if s.IsSmartNIC == nil && port.IsSmartNIC {
		s.IsSmartNIC = &port.IsSmartNIC
	}
	if s.LocalLinkConnection == nil && len(port.LocalLinkConnection) > 0 {
		s.LocalLinkConnection = port.LocalLinkConnection
	}
	for to, had := range map[*string]string{
		&s.PhysicalNetwork: port.PhysicalNetwork, &s.Name: port.Name, &s.Description: port.Description,
		&s.Vendor: port.Vendor, &s.Category: port.Category,
	} {
		*to = cmp.Or(*to, had)
	}
	s.Extra = extraAfter(port.Extra, s.Extra, s.Without)
	return s
}

func (s PortSpec) texts(port Port) map[string][2]string {
	return map[string][2]string{
		"physical_network": {s.PhysicalNetwork, port.PhysicalNetwork}, "name": {s.Name, port.Name},
		"description": {s.Description, port.Description},
		"vendor":      {s.Vendor, port.Vendor}, "category": {s.Category, port.Category},
	}
}

// CreatePort creates a port of a node, also if the answer is lost.
func (c *Client) CreatePort(ctx context.Context, nodeID string, spec PortSpec) (*Port, error) {
	id := NewUUID()
	body := map[string]any{
		"uuid": id, "node_uuid": nodeID, "address": spec.Address, "pxe_enabled": spec.PXEEnabled, "is_smartnic": spec.IsSmartNIC,
		"local_link_connection": spec.LocalLinkConnection, "extra": spec.Extra, "portgroup_uuid": spec.Group,
	}
	for key, values := range spec.texts(Port{}) {
		body[key] = values[0]
	}
	unlock, err := c.Lock(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer c.ports.Invalidate(nodeID)
	return create[Port](ctx, c, "ports", id, given(body))
}

// changes returns the edits that bring a port to the wanted state, and whether they change its connectivity.
func (s PortSpec) changes(port Port) (patch Patch, connectivity bool) {
	if s.PXEEnabled != nil && *s.PXEEnabled != port.PXEEnabled {
		patch.Set("/pxe_enabled", *s.PXEEnabled)
	}
	if s.LocalLinkConnection != nil && !SameJSON(s.LocalLinkConnection, port.LocalLinkConnection) {
		patch.Set("/local_link_connection", s.LocalLinkConnection)
	}
	connectivity = len(patch) > 0
	texts := s.texts(port)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if values := texts[key]; values[0] != "" && values[0] != values[1] {
			patch.Set("/"+key, values[0])
			connectivity = connectivity || key == "physical_network"
		}
	}
	if s.IsSmartNIC != nil && *s.IsSmartNIC != port.IsSmartNIC {
		patch.Set("/is_smartnic", *s.IsSmartNIC)
	}
	return append(patch, extraEdits(port.Extra, s.Extra, s.Without)...), connectivity
}

// Reconnects reports whether UpdatePort changes the connectivity of a port. Ironic refuses that in most states of the node, unless
// the node is in maintenance (reference/ironic.md#changing-a-port).
func (s PortSpec) Reconnects(port Port) bool {
	_, connectivity := s.changes(port)
	return connectivity
}

// IsMet reports whether UpdatePort would change nothing.
func (s PortSpec) IsMet(port Port) bool {
	patch, _ := s.changes(port)
	return len(patch) == 0
}

// UpdatePort changes a port to the wanted state and returns it; it sends only attributes that differ, and never the port group.
func (c *Client) UpdatePort(ctx context.Context, port Port, spec PortSpec) (*Port, error) {
	patch, _ := spec.changes(port)
	return c.patchPort(ctx, port, patch)
}

// MovePort puts a port into the port group with a UUID, or takes it out of its group if the UUID is empty.
func (c *Client) MovePort(ctx context.Context, port Port, group string) (*Port, error) {
	var patch Patch
	switch group {
	case port.PortGroupUUID:
	case "":
		patch.Set("/portgroup_uuid", nil)
	default:
		patch.Set("/portgroup_uuid", group)
	}
	return c.patchPort(ctx, port, patch)
}

// RemovePortName takes the name of a port away, so that another port can get it.
func (c *Client) RemovePortName(ctx context.Context, port Port) (*Port, error) {
	var patch Patch
	patch.Remove("/name")
	return c.patchPort(ctx, port, patch)
}

func (c *Client) patchPort(ctx context.Context, port Port, patch Patch) (*Port, error) {
	if len(patch) == 0 {
		return &port, nil
	}
	defer c.ports.Invalidate(port.NodeUUID)
	var changed Port
	if err := c.Request(ctx, http.MethodPatch, "ports/"+port.UUID, patch.body(), &changed); err != nil {
		return nil, err
	}
	return &changed, nil
}

// DeletePort deletes a port. It succeeds if the port does not exist.
func (c *Client) DeletePort(ctx context.Context, port Port) error {
	defer c.ports.Invalidate(port.NodeUUID)
	return c.remove(ctx, "ports/"+port.UUID)
}

// Ports reads the ports of a node now, by MAC address.
func (c *Client) Ports(ctx context.Context, nodeID string) (map[string]Port, error) {
	all, err := c.listNodePorts(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	return byAddress(*all), nil
}

// PortsForRefresh returns the ports of a node by MAC address; see NodeForRefresh. had are the MAC addresses that it has had: if the answer
// lacks one of them, the ports of the node are read now.
func (c *Client) PortsForRefresh(ctx context.Context, nodeID string, had ...string) (map[string]Port, error) {
	all, err := c.ports.Get(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	has := byAddress(*all)
	if slices.ContainsFunc(had, func(mac string) bool { return has[mac].UUID == "" }) {
		return c.Ports(ctx, nodeID)
	}
	return has, nil
}

func byAddress(all []Port) map[string]Port {
	m := make(map[string]Port, len(all))
	for _, port := range all {
		m[strings.ToLower(port.Address)] = port
	}
	return m
}

func (c *Client) listNodePorts(ctx context.Context, nodeID string) (*[]Port, error) {
	all, err := api.List[Port](ctx, c.Conn, "ports/detail", "ports", url.Values{"node": {nodeID}})
	return &all, err
}

// ListPorts lists the ports of all nodes.
func (c *Client) ListPorts(ctx context.Context) ([]Port, error) {
	return api.List[Port](ctx, c.Conn, "ports/detail", "ports", nil)
}

// ListPortAddresses lists all ports with only UUID, MAC address and node.
func (c *Client) ListPortAddresses(ctx context.Context) ([]Port, error) {
	return api.List[Port](ctx, c.Conn, "ports", "ports", url.Values{"fields": {"uuid,address,node_uuid"}})
}

func (c *Client) listPortsByNode(ctx context.Context) (map[string]*[]Port, error) {
	all, err := c.ListPorts(ctx)
	return byNode(all, func(p *Port) string { return p.NodeUUID }), err
}

// Addresses returns the MAC addresses of ports, sorted.
func Addresses(ports map[string]Port) []string { return slices.Sorted(maps.Keys(ports)) }

// VIFs returns the IDs of the VIFs that are attached to a node. The network interface noop keeps none.
func (c *Client) VIFs(ctx context.Context, node string) (ids []string, err error) {
	var answer struct {
		VIFs []struct{ ID string }
	}
	if err := c.Request(ctx, http.MethodGet, "nodes/"+node+"/vifs", nil, &answer); err != nil {
		return nil, err
	}
	for _, vif := range answer.VIFs {
		ids = append(ids, vif.ID)
	}
	return ids, nil
}

// AttachVIF attaches a VIF to the port of a node, or to a free port if the port's UUID is empty. It succeeds if the VIF is attached to
// the node already, also when the answer is lost.
func (c *Client) AttachVIF(ctx context.Context, node, vif, port string) error {
	body := map[string]any{"id": vif}
	if port != "" {
		body["port_uuid"] = port
	}
	err := c.Request(ctx, http.MethodPost, "nodes/"+node+"/vifs", body, nil)
	if api.IsTransient(err) || api.IsStatus(err, http.StatusConflict, "already attached") {
		if attached, rerr := c.VIFs(ctx, node); rerr == nil && slices.Contains(attached, vif) {
			return nil
		}
	}
	return err
}

// DetachVIF detaches a VIF from a node. It succeeds if the VIF is not attached.
func (c *Client) DetachVIF(ctx context.Context, node, vif string) error {
	err := c.Request(ctx, http.MethodDelete, "nodes/"+node+"/vifs/"+vif, nil, nil)
	if api.IsStatus(err, http.StatusBadRequest, "is not attached to it") {
		return nil
	}
	return err
}
