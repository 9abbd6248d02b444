package host

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
)

// Cables are the ports and port groups that Ironic has of a node.
type Cables struct {
	Ports  map[string]ironic.Port      // by MAC address
	Groups map[string]ironic.PortGroup // by key; empty if they were not read

	ownNetworks bool // a group has a physical network of its own, and a change of it is one of its ports
}

// GroupOf returns the key of the group that a port belongs to; "" if it belongs to none, or the groups were not read.
func (has Cables) GroupOf(port ironic.Port) string {
	for key, group := range has.Groups {
		if group.UUID == port.PortGroupUUID {
			return key
		}
	}
	return ""
}

// ReadCables reads the ports of a node, and its port groups if they matter.
func ReadCables(ctx context.Context, site *machine.Site, node string, groups bool) (has Cables, err error) {
	if has.Ports, err = site.Ironic.Ports(ctx, node); err != nil || !groups {
		return has, err
	}
	if has.ownNetworks, err = site.Ironic.GroupsHaveNetworks(ctx); err != nil {
		return has, err
	}
	all, err := site.Ironic.PortGroups(ctx, node)
	has.Groups = GroupsByKey(all)
	return has, err
}

// pxeAfter returns pxe_enabled of the ports that a node has after an apply: those of Ironic that the plan does not remove, and the planned
// ones. had are the MAC addresses of the ports in state. The node is "" if there is none yet.
func pxeAfter(ctx context.Context, site *machine.Site, node string, had []string, planned map[string]Port) (map[string]*bool, error) {
	after := map[string]*bool{}
	if node != "" {
		ports, err := site.Ironic.PortsForRefresh(ctx, node)
		if err != nil {
			return nil, err
		}
		after = ramdisk.PXEPorts(ports)
	}
	for _, mac := range had {
		delete(after, mac)
	}
	for mac, port := range planned {
		after[mac] = nil
		if port.PXE.Set {
			after[mac] = &port.PXE.V
		}
	}
	return after, nil
}

// GroupsByKey returns the port groups of a node, except those that Ironic has made for VIFs, by their keys: the name without the UUID of
// the node, or the whole name or UUID of a group that another client has made.
func GroupsByKey(groups []ironic.PortGroup) map[string]ironic.PortGroup {
	byKey := map[string]ironic.PortGroup{}
	for _, group := range groups {
		if group.IsDynamic() {
			continue // it goes with its VIF
		}
		key, ours := strings.CutSuffix(group.Name, groupName("", group.NodeUUID))
		key = cmp.Or(key, group.UUID)
		if _, taken := byKey[key]; ours || !taken {
			byKey[key] = group
		}
	}
	return byKey
}

// groupName returns the name in Ironic of a node's port group. Names of port groups are unique over all nodes.
func groupName(key, nodeID string) string { return key + "-" + nodeID }

// portError says that the port with a MAC address could not be set.
type portError struct {
	Address string
	err     error
}

// Error names the port.
func (e *portError) Error() string { return fmt.Sprintf("port %s: %v", e.Address, e.err) }

// Unwrap returns the cause.
func (e *portError) Unwrap() error { return e.err }
