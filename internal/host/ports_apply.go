package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// WantedCables is what a configuration says of the ports and port groups of a node, for the apply.
type WantedCables struct {
	Ports   map[string]ironic.PortSpec      // by MAC address
	Members map[string]string               // by MAC address of a port: the key of its group, "" if it leaves its group
	Groups  map[string]ironic.PortGroupSpec // by key

	WithoutPorts, WithoutGroups []string // what the configuration does not contain any more
}

// isEmpty reports whether the configuration says nothing, and never did.
func (want WantedCables) isEmpty() bool {
	return len(want.Ports)+len(want.Groups)+len(want.WithoutPorts)+len(want.WithoutGroups) == 0
}

// HasGroups reports whether the port groups matter.
func (want WantedCables) HasGroups() bool {
	return len(want.Groups)+len(want.Members)+len(want.WithoutGroups) > 0
}

// leaving returns the ports that must leave their group before anything else changes: the group is removed, the port gets another or
// none, or its physical network changes, which must be the same in the whole group.
func (want WantedCables) leaving(has Cables) (ports []string) {
	for mac, port := range has.Ports {
		key := has.GroupOf(port)
		group, asked := want.Members[mac]
		network := want.network(mac, key, has)
		moves := network != "" && network != port.PhysicalNetwork && !has.ownNetworks
		if port.PortGroupUUID != "" && (slices.Contains(want.WithoutGroups, key) || asked && (group != key || moves)) {
			ports = append(ports, mac)
		}
	}
	slices.Sort(ports)
	return ports
}

// network returns the physical network of a port in the group with a key, which is the group's; "" if it is left as it is.
func (want WantedCables) network(mac, key string, has Cables) string {
	if own := want.Ports[mac].PhysicalNetwork; own != "" || key == "" {
		return own
	}
	return cmp.Or(want.Groups[key].PhysicalNetwork, has.Groups[key].PhysicalNetwork)
}

// stays reports whether a port stays in the group that it has, so that a group with a physical network of its own gives it that.
func (want WantedCables) stays(port ironic.Port, mac string, has Cables) bool {
	group, asked := want.Members[mac]
	key := has.GroupOf(port)
	return key != "" && (!asked || group == key) && !slices.Contains(want.WithoutGroups, key)
}

func (want WantedCables) reconnects(has Cables) bool {
	if len(want.leaving(has)) > 0 {
		return true
	}
	for mac, spec := range want.Ports {
		port, exists := has.Ports[mac]
		group, asked := want.Members[mac]
		if has.ownNetworks && want.stays(port, mac, has) {
			spec.PhysicalNetwork = ""
		}
		if exists && (spec.Reconnects(port) || asked && group != has.GroupOf(port)) {
			return true
		}
	}
	return false
}

// givingUp returns the keys that must give up their values first, because other keys get them and the values are unique in Ironic.
func givingUp(has, wants map[string]string) (keys []string) {
	takers := map[string]string{}
	for key, value := range wants {
		takers[value] = key
	}
	for key, value := range has {
		if taker, taken := takers[value]; taken && value != "" && taker != key {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// ApplyPorts brings the ports and port groups of the node to a configuration, and returns those that Ironic has then, also on error. A node
// that this run has just created has none. Where Ironic demands it, the node is in maintenance meanwhile.
func ApplyPorts(ctx context.Context, m *machine.Machine, want WantedCables, isNew bool) (Cables, error) {
	if want.isEmpty() {
		return Cables{}, nil
	}
	c := &cabler{
		site: m.Site(), node: m.Node().UUID, want: want, has: Cables{
			Ports:  map[string]ironic.Port{},
			Groups: map[string]ironic.PortGroup{},
		},
		switches: m.Node().NetworkInterface == SwitchInterface, running: states.Occupied(m.State()),
		lost: map[string]lostPort{}, lostGroups: map[string]ironic.PortGroup{}, bonds: map[string]any{},
	}
	if !isNew {
		var err error
		if c.has, err = ReadCables(ctx, m.Site(), c.node, want.HasGroups()); err != nil {
			return c.has, err
		}
	}
	if err := c.mend(ctx); err != nil {
		return c.has, err
	}
	// in maintenance, Ironic would delete a port with a VIF of a running machine
	if err := c.removePorts(ctx, want.WithoutPorts); err != nil {
		return c.has, err
	}
	if !want.reconnects(c.has) {
		return c.has, c.rewire(ctx)
	}
	err := m.Reconnect(ctx, func() error { return c.rewire(ctx) })
	return c.has, err
}

type cabler struct {
	site *machine.Site
	node string // UUID
	want WantedCables
	has  Cables // as of Ironic's latest answer

	switches bool // Ironic configures the switch ports
	running  bool // something is deployed on the node

	lost       map[string]lostPort         // ports to make again, by MAC address
	lostGroups map[string]ironic.PortGroup // groups to make again, by key
	bonds      map[string]any              // bonds that were taken away, by key of the group
}

// rewire takes apart first, then makes the groups, then their ports.
func (c *cabler) rewire(ctx context.Context) error {
	if err := c.takeApart(ctx); err != nil {
		return err
	}
	if err := c.freeAddresses(ctx); err != nil {
		return err
	}
	if err := c.bringGroups(ctx, true); err != nil {
		return err
	}
	if err := c.freeNames(ctx); err != nil {
		return err
	}
	for _, mac := range slices.Sorted(maps.Keys(c.want.Ports)) {
		if err := c.bringPort(ctx, mac); err != nil {
			return err
		}
	}
	return c.bringGroups(ctx, false)
}

// takeApart takes ports out of their groups, and removes groups.
func (c *cabler) takeApart(ctx context.Context) error {
	for _, mac := range c.want.leaving(c.has) {
		if err := c.movePort(ctx, mac, ""); err != nil {
			return err
		}
	}
	for _, key := range c.want.WithoutGroups {
		if group, exists := c.has.Groups[key]; exists {
			if err := c.site.Ironic.DeletePortGroup(ctx, group); err != nil {
				return fmt.Errorf("port group %s: %w", key, err)
			}
			delete(c.has.Groups, key)
		}
	}
	return nil
}

func (c *cabler) removePorts(ctx context.Context, macs []string) error {
	for _, mac := range macs {
		if port, exists := c.has.Ports[mac]; exists {
			if err := c.site.Ironic.DeletePort(ctx, port); err != nil {
				return &portError{mac, err}
			}
			delete(c.has.Ports, mac)
		}
	}
	return nil
}

// freeNames takes away the names of ports that other ports of the node get.
func (c *cabler) freeNames(ctx context.Context) error {
	has, wants := map[string]string{}, map[string]string{}
	for mac, port := range c.has.Ports {
		has[mac] = port.Name
	}
	for mac, spec := range c.want.Ports {
		wants[mac] = spec.Name
	}
	for _, mac := range givingUp(has, wants) {
		port, err := c.site.Ironic.RemovePortName(ctx, c.has.Ports[mac])
		if err := c.record(mac, port, err); err != nil {
			return err
		}
	}
	return nil
}

// freeAddresses takes away the MAC addresses of port groups that other groups of the node get.
func (c *cabler) freeAddresses(ctx context.Context) error {
	has, wants := map[string]string{}, map[string]string{}
	for key, group := range c.has.Groups {
		has[key] = group.Address
	}
	for key, spec := range c.want.Groups {
		wants[key] = spec.Address
	}
	for _, key := range givingUp(has, wants) {
		without, err := c.site.Ironic.RemovePortGroupAddress(ctx, c.has.Groups[key])
		if err != nil {
			return fmt.Errorf("port group %s: %w", key, err)
		}
		c.has.Groups[key] = *without
	}
	return nil
}

// bringGroups creates and changes port groups, before or after their ports.
func (c *cabler) bringGroups(ctx context.Context, first bool) error {
	for _, key := range slices.Sorted(maps.Keys(c.want.Groups)) {
		group, exists := c.has.Groups[key]
		spec := c.groupSpec(key, first, exists)
		var now *ironic.PortGroup
		var err error
		if exists {
			if network := cmp.Or(spec.PhysicalNetwork, group.PhysicalNetwork); c.strays(key, network) {
				spec.PhysicalNetwork, group.PhysicalNetwork = network, "" // send it again
			}
			now, err = c.site.Ironic.UpdatePortGroup(ctx, group, spec)
		} else {
			spec.Name = groupName(key, c.node)
			now, err = failure.CreatePortGroup(ctx, c.site.Ironic, c.node, spec)
		}
		if err != nil {
			return fmt.Errorf("port group %s: %w", key, err)
		}
		c.has.Groups[key] = *now
		if exists && now.PhysicalNetwork != group.PhysicalNetwork {
			for mac, port := range c.has.Ports {
				if port.PortGroupUUID == now.UUID {
					port.PhysicalNetwork = now.PhysicalNetwork
					c.has.Ports[mac] = port
				}
			}
		}
	}
	return nil
}

// strays reports whether a port of a group that has a physical network of its own has another one. Another client may have changed that of
// the group alone.
func (c *cabler) strays(key, network string) bool {
	return c.has.ownNetworks && network != "" && slices.ContainsFunc(c.members(key), func(mac string) bool {
		return c.has.Ports[mac].PhysicalNetwork != network
	})
}

// bringPort creates or changes a port, and puts it into its group.
func (c *cabler) bringPort(ctx context.Context, mac string) error {
	spec, key := c.want.Ports[mac], c.want.Members[mac]
	port, exists := c.has.Ports[mac]
	if !exists {
		made, err := c.makePort(ctx, mac)
		return c.record(mac, made, err)
	}
	spec.PhysicalNetwork = c.want.network(mac, key, c.has)
	changed, err := c.site.Ironic.UpdatePort(ctx, port, spec)
	if err = c.record(mac, changed, err); err != nil || key == "" {
		return err
	}
	return c.movePort(ctx, mac, key)
}

func (c *cabler) create(ctx context.Context, spec ironic.PortSpec) (*ironic.Port, error) {
	return failure.CreatePort(ctx, c.site.Ironic, c.node, spec)
}

// movePort puts a port into the group with a key, or takes it out of its group if the key is empty.
func (c *cabler) movePort(ctx context.Context, mac, key string) error {
	moved, err := c.site.Ironic.MovePort(ctx, c.has.Ports[mac], c.has.Groups[key].UUID)
	return c.record(mac, moved, err)
}

func (c *cabler) record(mac string, port *ironic.Port, err error) error {
	if err != nil {
		return &portError{mac, err}
	}
	c.has.Ports[mac] = *port
	return nil
}

// removePorts deletes those ports of a node that have one of some MAC addresses.
func removePorts(ctx context.Context, m *machine.Machine, macs []string) (err error) {
	c := &cabler{site: m.Site(), node: m.Node().UUID}
	if c.has.Ports, err = m.Site().Ironic.Ports(ctx, c.node); err != nil {
		return err
	}
	return c.removePorts(ctx, macs)
}

// removeGroupAddresses takes the MAC addresses away from those port groups of a node that have one of them.
func removeGroupAddresses(ctx context.Context, m *machine.Machine, macs []string) error {
	groups, err := m.Site().Ironic.PortGroups(ctx, m.Node().UUID)
	for i := 0; err == nil && i < len(groups); i++ {
		if slices.Contains(macs, ironic.MAC(groups[i].Address)) {
			_, err = m.Site().Ironic.RemovePortGroupAddress(ctx, groups[i])
		}
	}
	return err
}
