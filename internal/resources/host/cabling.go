package host

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// portError says that the port with a MAC address could not be set.
type portError struct {
	address string
	err     error
}

// Error names the port.
func (e *portError) Error() string { return fmt.Sprintf("port %s: %v", e.address, e.err) }

// Unwrap returns the cause.
func (e *portError) Unwrap() error { return e.err }

// cabling is what a configuration says of the ports and port groups of a node.
type cabling struct {
	ports   map[string]ironic.PortSpec      // by MAC address
	members map[string]string               // by MAC address of a port: the key of its group, "" if it leaves its group
	groups  map[string]ironic.PortGroupSpec // by key

	withoutPorts, withoutGroups []string // what the configuration does not contain any more
}

// cablingOf returns the cabling of a configuration. before is what was managed until now.
func (m *model) cablingOf(ctx context.Context, before managed) cabling {
	want := cabling{ports: map[string]ironic.PortSpec{}, members: map[string]string{}, groups: map[string]ironic.PortGroupSpec{}}
	for key, group := range m.portGroups(ctx) {
		want.groups[key] = group.spec()
	}
	for mac, port := range m.ports(ctx) {
		want.ports[mac] = port.spec(mac, before)
		switch key := port.PortGroup.ValueString(); {
		case key != "":
			want.members[mac] = key
			if group := want.groups[key]; port.PhysicalNetwork.ValueString() != "" {
				group.PhysicalNetwork = port.PhysicalNetwork.ValueString()
				want.groups[key] = group
			}
		case before.has("/members/" + mac):
			want.members[mac] = ""
		}
	}
	for _, mac := range before.below("/ports") {
		if _, stays := want.ports[mac]; !stays {
			want.withoutPorts = append(want.withoutPorts, mac)
		}
	}
	want.withoutGroups = slices.Sorted(maps.Keys(m.lostGroups(ctx, before)))
	return want
}

// isEmpty reports whether the configuration says nothing, and never did.
func (want cabling) isEmpty() bool {
	return len(want.ports)+len(want.groups)+len(want.withoutPorts)+len(want.withoutGroups) == 0
}

// hasGroups reports whether the port groups matter.
func (want cabling) hasGroups() bool {
	return len(want.groups)+len(want.members)+len(want.withoutGroups) > 0
}

// leaving returns the ports that must leave their group before anything else changes: the group is removed, the port gets another or
// none, or its physical network changes, which must be the same in the whole group.
func (want cabling) leaving(seen sight) (ports []string) {
	for mac, port := range seen.ports {
		key := seen.groupOf(port)
		group, asked := want.members[mac]
		network := want.ports[mac].PhysicalNetwork
		// A group with a network of its own gives that to its ports.
		moves := network != "" && network != port.PhysicalNetwork && seen.groups[key].PhysicalNetwork == ""
		if port.PortGroupUUID != "" && (slices.Contains(want.withoutGroups, key) || asked && (group != key || moves)) {
			ports = append(ports, mac)
		}
	}
	slices.Sort(ports)
	return ports
}

// reconnects reports whether the connectivity of an existing port changes.
func (want cabling) reconnects(seen sight) bool {
	if len(want.leaving(seen)) > 0 {
		return true
	}
	for mac, spec := range want.ports {
		port, exists := seen.ports[mac]
		group, asked := want.members[mac]
		if exists && (spec.Reconnects(port) || asked && group != seen.groupOf(port)) {
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

// freeNames takes away the names of ports that other ports of the node get.
func (h *host) freeNames(ctx context.Context, c *change, want cabling) error {
	has, wants := map[string]string{}, map[string]string{}
	for mac, port := range c.seen.ports {
		has[mac] = port.Name
	}
	for mac, spec := range want.ports {
		wants[mac] = spec.Name
	}
	for _, mac := range givingUp(has, wants) {
		nameless, err := h.Client.RemovePortName(ctx, c.seen.ports[mac])
		if err != nil {
			return &portError{mac, err}
		}
		c.seen.ports[mac] = *nameless
	}
	return nil
}

// freeAddresses takes away the MAC addresses of port groups that other groups of the node get.
func (h *host) freeAddresses(ctx context.Context, c *change, want cabling) error {
	has, wants := map[string]string{}, map[string]string{}
	for key, group := range c.seen.groups {
		has[key] = group.Address
	}
	for key, spec := range want.groups {
		wants[key] = spec.Address
	}
	for _, key := range givingUp(has, wants) {
		without, err := h.Client.RemovePortGroupAddress(ctx, c.seen.groups[key])
		if err != nil {
			return fmt.Errorf("port group %s: %w", key, err)
		}
		c.seen.groups[key] = *without
	}
	return nil
}

// bringPorts brings the ports and port groups of the node to the configuration. Where Ironic demands it, the node is in maintenance
// meanwhile.
func (h *host) bringPorts(ctx context.Context, c *change) error {
	want := c.config.cablingOf(ctx, c.before)
	if want.isEmpty() {
		return nil
	}
	c.seen.ports, c.seen.groups = map[string]ironic.Port{}, map[string]ironic.PortGroup{}
	if !c.isMade {
		if err := h.readPorts(ctx, c, want.hasGroups()); err != nil {
			return err
		}
	}
	if !want.reconnects(c.seen) {
		return h.rewire(ctx, c, want)
	}
	return c.machine.Reconnect(ctx, func() error { return h.rewire(ctx, c, want) })
}

// readPorts reads the ports of the node, and its port groups if they matter.
func (h *host) readPorts(ctx context.Context, c *change, groups bool) (err error) {
	if c.seen.ports, err = h.Client.Ports(ctx, c.node().UUID); err != nil || !groups {
		return err
	}
	all, err := h.Client.PortGroups(ctx, c.node().UUID)
	c.seen.groups = groupsByKey(all)
	return err
}

// rewire removes and takes apart first, then makes the groups, then their ports.
func (h *host) rewire(ctx context.Context, c *change, want cabling) error {
	for _, mac := range want.withoutPorts {
		if port, exists := c.seen.ports[mac]; exists {
			if err := h.Client.DeletePort(ctx, port); err != nil {
				return &portError{mac, err}
			}
			delete(c.seen.ports, mac)
		}
	}
	for _, mac := range want.leaving(c.seen) {
		if err := h.movePort(ctx, c, mac, ""); err != nil {
			return err
		}
	}
	for _, key := range want.withoutGroups {
		if group, exists := c.seen.groups[key]; exists {
			if err := h.Client.DeletePortGroup(ctx, group); err != nil {
				return fmt.Errorf("port group %s: %w", key, err)
			}
			delete(c.seen.groups, key)
		}
	}
	if err := h.freeAddresses(ctx, c, want); err != nil {
		return err
	}
	if err := h.bringGroups(ctx, c, want, true); err != nil {
		return err
	}
	if err := h.freeNames(ctx, c, want); err != nil {
		return err
	}
	for _, mac := range slices.Sorted(maps.Keys(want.ports)) {
		if err := h.bringPort(ctx, c, want.ports[mac], want.members[mac]); err != nil {
			return err
		}
	}
	return h.bringGroups(ctx, c, want, false)
}

// bringGroups creates and changes port groups. Before the ports have changed, an existing group keeps standalone_ports, if it is to
// become false: Ironic refuses that while a port of the group may boot alone.
func (h *host) bringGroups(ctx context.Context, c *change, want cabling, first bool) error {
	for _, key := range slices.Sorted(maps.Keys(want.groups)) {
		spec := want.groups[key]
		group, exists := c.seen.groups[key]
		var now *ironic.PortGroup
		var err error
		switch {
		case !exists:
			spec.Name = groupName(key, c.node().UUID)
			now, err = h.Client.CreatePortGroup(ctx, c.node().UUID, spec)
		default:
			if first && spec.StandalonePorts != nil && !*spec.StandalonePorts {
				spec.StandalonePorts = nil
			}
			now, err = h.Client.UpdatePortGroup(ctx, group, spec)
		}
		if err != nil {
			return fmt.Errorf("port group %s: %w", key, err)
		}
		if exists && now.PhysicalNetwork != group.PhysicalNetwork {
			for mac, port := range c.seen.ports {
				if port.PortGroupUUID == now.UUID {
					port.PhysicalNetwork = now.PhysicalNetwork
					c.seen.ports[mac] = port
				}
			}
		}
		c.seen.groups[key] = *now
	}
	return nil
}

// bringPort creates or changes a port, and puts it into the group with a key, "" for none.
func (h *host) bringPort(ctx context.Context, c *change, spec ironic.PortSpec, key string) error {
	port, exists := c.seen.ports[spec.Address]
	if !exists {
		spec.Group = c.seen.groups[key].UUID
		made, err := h.Client.CreatePort(ctx, c.node().UUID, spec)
		if err != nil {
			return &portError{spec.Address, err}
		}
		c.seen.ports[spec.Address] = *made
		return nil
	}
	changed, err := h.Client.UpdatePort(ctx, port, spec)
	if err != nil {
		return &portError{spec.Address, err}
	}
	c.seen.ports[spec.Address] = *changed
	if key == "" {
		return nil
	}
	return h.movePort(ctx, c, spec.Address, key)
}

// movePort puts a port into the group with a key, or takes it out of its group.
func (h *host) movePort(ctx context.Context, c *change, mac, key string) error {
	moved, err := h.Client.MovePort(ctx, c.seen.ports[mac], c.seen.groups[key].UUID)
	if err != nil {
		return &portError{mac, err}
	}
	c.seen.ports[mac] = *moved
	return nil
}

// addParts adds the traits, ports and port groups of the prior state to the planned ones. The next refresh removes those that are gone.
func (m *model) addParts(ctx context.Context, state *model) {
	if before := framework.StringSet(state.Traits); len(before) > 0 {
		all := append(framework.StringSet(m.Traits), before...)
		slices.Sort(all)
		m.Traits = framework.SetValue(slices.Compact(all))
	}
	if before := state.ports(ctx); len(before) > 0 {
		maps.Copy(before, m.ports(ctx))
		m.Ports = portsValue(ctx, before)
	}
	if before := state.portGroups(ctx); len(before) > 0 {
		maps.Copy(before, m.portGroups(ctx))
		m.PortGroups = groupsValue(ctx, before)
	}
}
