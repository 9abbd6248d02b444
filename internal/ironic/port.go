package ironic

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/ports"
)

// Port is a network card that Ironic knows.
type Port = ports.Port

// PortSpec is the wanted state of a port. nil and empty values are left to Ironic.
type PortSpec struct {
	Address             string // MAC address, in lower case with colons
	PXEEnabled          *bool
	PhysicalNetwork     string
	LocalLinkConnection map[string]any
}

// CreatePort creates a port of a node. If the answer is lost, it checks whether the port exists before it sends the request again.
func (c *Client) CreatePort(ctx context.Context, nodeID string, spec PortSpec) (*Port, error) {
	id := NewUUID()
	body := map[string]any{"uuid": id, "node_uuid": nodeID, "address": spec.Address}
	if spec.PXEEnabled != nil {
		body["pxe_enabled"] = *spec.PXEEnabled
	}
	if spec.PhysicalNetwork != "" {
		body["physical_network"] = spec.PhysicalNetwork
	}
	if spec.LocalLinkConnection != nil {
		body["local_link_connection"] = spec.LocalLinkConnection
	}
	unlock, err := c.locks.lock(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer c.ports.invalidate(nodeID)
	var port Port
	err = c.create(ctx,
		func(ctx context.Context) error { return c.Request(ctx, http.MethodPost, "ports", body, &port) },
		func(ctx context.Context) error { return c.Request(ctx, http.MethodGet, "ports/"+id, nil, &port) })
	if err != nil {
		return nil, err
	}
	return &port, nil
}

// UpdatePort changes a port to the wanted state and returns it; it sends only attributes that differ. Ironic refuses changes of
// connectivity while the node is available or active (reference/ironic.md#changing-a-port).
func (c *Client) UpdatePort(ctx context.Context, port Port, spec PortSpec) (*Port, error) {
	var patch Patch
	if spec.PXEEnabled != nil && *spec.PXEEnabled != port.PXEEnabled {
		patch.Set("/pxe_enabled", *spec.PXEEnabled)
	}
	if spec.PhysicalNetwork != "" && spec.PhysicalNetwork != port.PhysicalNetwork {
		patch.Set("/physical_network", spec.PhysicalNetwork)
	}
	if spec.LocalLinkConnection != nil && !SameJSON(spec.LocalLinkConnection, port.LocalLinkConnection) {
		patch.Set("/local_link_connection", spec.LocalLinkConnection)
	}
	if len(patch) == 0 {
		return &port, nil
	}
	defer c.ports.invalidate(port.NodeUUID)
	var changed Port
	if err := c.Request(ctx, http.MethodPatch, "ports/"+port.UUID, patch.body(), &changed); err != nil {
		return nil, err
	}
	return &changed, nil
}

// DeletePort deletes a port. It succeeds if the port does not exist.
func (c *Client) DeletePort(ctx context.Context, port Port) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.ports.invalidate(port.NodeUUID)
	err = c.wrap(ports.Delete(ctx, api, port.UUID).ExtractErr())
	if IsNotFound(err) {
		return nil
	}
	return err
}

// Ports reads the ports of a node now, by MAC address.
func (c *Client) Ports(ctx context.Context, nodeID string) (map[string]Port, error) {
	all, err := c.listNodePorts(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	return byAddress(*all), nil
}

// PortsForRefresh returns the ports of a node by MAC address; see NodeForRefresh.
func (c *Client) PortsForRefresh(ctx context.Context, nodeID string) (map[string]Port, error) {
	all, err := c.ports.get(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	return byAddress(*all), nil
}

func byAddress(all []Port) map[string]Port {
	m := make(map[string]Port, len(all))
	for _, port := range all {
		m[strings.ToLower(port.Address)] = port
	}
	return m
}

func (c *Client) listNodePorts(ctx context.Context, nodeID string) (*[]Port, error) {
	all, err := List[Port](ctx, c, "ports/detail", "ports", url.Values{"node": {nodeID}})
	return &all, err
}

// ListPortAddresses lists all ports with only UUID, MAC address and node.
func (c *Client) ListPortAddresses(ctx context.Context) ([]Port, error) {
	return List[Port](ctx, c, "ports", "ports", url.Values{"fields": {"uuid,address,node_uuid"}})
}

func (c *Client) listPortsByNode(ctx context.Context) (map[string]*[]Port, error) {
	all, err := List[Port](ctx, c, "ports/detail", "ports", nil)
	if err != nil {
		return nil, err
	}
	byNode := map[string]*[]Port{}
	for _, port := range all {
		if byNode[port.NodeUUID] == nil {
			byNode[port.NodeUUID] = &[]Port{}
		}
		*byNode[port.NodeUUID] = append(*byNode[port.NodeUUID], port)
	}
	return byNode, nil
}

// Addresses returns the MAC addresses of ports, sorted.
func Addresses(ports map[string]Port) []string { return slices.Sorted(maps.Keys(ports)) }
