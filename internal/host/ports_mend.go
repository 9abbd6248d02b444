package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// lostPort is a port that was deleted to be made again, with the key of its group.
type lostPort struct {
	ironic.Port

	group string
}

// mend clears the way for changes. The network interface ironic-networking checks all ports and port groups of the node, as Ironic has
// them, before it takes a change of any (reference/ironic.md#switch-ports). So mend deletes those of the configuration that it would
// refuse, which are made again later, and takes away each bond whose ports change. It leaves them alone as long as nothing changes: a port
// may wait for the inspection that finds its switch.
func (c *cabler) mend(ctx context.Context) error {
	if !c.switches || !c.changes() {
		return nil
	}
	for _, mac := range c.want.WithoutPorts {
		if err := c.resetSwitch(ctx, mac); err != nil {
			return err
		}
		if err := c.removePorts(ctx, []string{mac}); err != nil {
			return err
		}
	}
	for _, mac := range slices.Sorted(maps.Keys(c.has.Ports)) {
		port := c.has.Ports[mac]
		if _, ours := c.want.Ports[mac]; !ours || !c.blocks(port) {
			continue
		}
		c.lost[mac] = lostPort{port, c.has.GroupOf(port)}
		if err := c.removePorts(ctx, []string{mac}); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.has.Groups)) {
		if err := c.mendGroup(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// changes reports whether the ports or port groups differ from what is wanted. The network interface of the node exists only where groups
// have networks of their own.
func (c *cabler) changes() bool {
	for mac, spec := range c.want.Ports {
		port, exists := c.has.Ports[mac]
		key, asked := c.want.Members[mac]
		spec.PhysicalNetwork = c.want.network(mac, key, c.has)
		if !exists || !spec.IsMet(port) || asked && key != c.has.GroupOf(port) {
			return true
		}
	}
	for key, spec := range c.want.Groups {
		group, exists := c.has.Groups[key]
		if !exists || !spec.IsMet(group) || c.strays(key, cmp.Or(spec.PhysicalNetwork, group.PhysicalNetwork)) {
			return true
		}
	}
	gone := func(mac string) bool { _, exists := c.has.Ports[mac]; return exists }
	dissolved := func(key string) bool { _, exists := c.has.Groups[key]; return exists }
	return slices.ContainsFunc(c.want.WithoutPorts, gone) || slices.ContainsFunc(c.want.WithoutGroups, dissolved)
}

// resetSwitch takes the VLANs of a machine that runs off the switch port of a port that is about to be deleted: Ironic leaves them there.
// It does nothing while a port of the node makes Ironic refuse that.
func (c *cabler) resetSwitch(ctx context.Context, mac string) error {
	port, exists := c.has.Ports[mac]
	if !exists || !c.running || setting(port.Extra, switchportKey) == nil {
		return nil
	}
	for _, other := range c.has.Ports {
		if c.blocks(other) {
			return nil
		}
	}
	reset, err := c.site.Ironic.UpdatePort(ctx, port, ironic.PortSpec{Without: []string{switchportKey}})
	return c.record(mac, reset, err)
}

// blocks reports whether a port, or a bond that it belongs to, makes Ironic refuse all changes.
func (c *cabler) blocks(port ironic.Port) bool {
	lag := setting(c.has.Groups[c.has.GroupOf(port)].Extra, lagKey)
	return invalid(port) || lag != nil && (refusedByIronic(lagKey, lag) != "" || setting(port.Extra, switchportKey) == nil ||
		!linked(port.LocalLinkConnection))
}

// mendGroup clears the way for the changes of a port group that has a bond. It deletes a group without ports, which Ironic would refuse,
// and takes away a bond that changes, or whose ports change. Both are made again after the ports, unless the configuration removes them.
func (c *cabler) mendGroup(ctx context.Context, key string) error {
	bond := setting(c.has.Groups[key].Extra, lagKey)
	var err error
	switch {
	case bond == nil || !c.configures(key):
	case len(c.members(key)) == 0:
		err = c.deleteEmptyGroup(ctx, key)
	case c.changesBond(key, bond):
		err = c.takeBond(ctx, key, bond)
	}
	if err != nil {
		return fmt.Errorf("port group %s: %w", key, err)
	}
	return nil
}

// configures reports whether the configuration says something of a port group: how it is to be, or that it is to go.
func (c *cabler) configures(key string) bool {
	_, wanted := c.want.Groups[key]
	return wanted || slices.Contains(c.want.WithoutGroups, key)
}

func (c *cabler) changesBond(key string, bond any) bool {
	spec := c.want.Groups[key]
	asked, sets := spec.Extra[lagKey]
	return slices.Contains(spec.Without, lagKey) || sets && !ironic.SameJSON(asked, bond) ||
		!slices.Equal(c.members(key), c.membersAfter(key))
}

// deleteEmptyGroup deletes a port group without ports. apply makes it again if the configuration still has it.
func (c *cabler) deleteEmptyGroup(ctx context.Context, key string) error {
	group := c.has.Groups[key]
	if err := c.site.Ironic.DeletePortGroup(ctx, group); err != nil {
		return err
	}
	delete(c.has.Groups, key)
	c.lostGroups[key] = group
	return nil
}

// takeBond takes away the bond of a port group. groupSpec gives it back if the configuration still has it.
func (c *cabler) takeBond(ctx context.Context, key string, bond any) error {
	without, err := c.site.Ironic.RemovePortGroupExtra(ctx, c.has.Groups[key], lagKey)
	if err != nil {
		return err
	}
	c.has.Groups[key] = *without
	c.bonds[key] = bond
	return nil
}

func (c *cabler) members(key string) (macs []string) {
	for mac, port := range c.has.Ports {
		if c.has.GroupOf(port) == key {
			macs = append(macs, mac)
		}
	}
	slices.Sort(macs)
	return macs
}

// membersAfter returns the MAC addresses of the ports that a group will have, sorted.
func (c *cabler) membersAfter(key string) []string {
	macs := slices.DeleteFunc(c.members(key), func(mac string) bool {
		group, asked := c.want.Members[mac]
		return asked && group != key || slices.Contains(c.want.WithoutPorts, mac) || slices.Contains(c.want.WithoutGroups, key)
	})
	for mac, group := range c.want.Members {
		if group == key {
			macs = append(macs, mac)
		}
	}
	slices.Sort(macs)
	return slices.Compact(macs)
}

// groupSpec returns what is wanted of a group in one of two passes: before its ports change, and after them. A bond needs its ports, and
// Ironic refuses standalone_ports = false while one of them may boot alone.
func (c *cabler) groupSpec(key string, first, exists bool) ironic.PortGroupSpec {
	spec := c.want.Groups[key]
	if lost, again := c.lostGroups[key]; again && !exists {
		spec = spec.Over(lost)
	}
	if bond, taken := c.bonds[key]; taken && !slices.Contains(spec.Without, lagKey) && spec.Extra[lagKey] == nil {
		spec.Extra = extraWith(spec.Extra, lagKey, bond) // of another client
	}
	if !first {
		return spec
	}
	if exists && spec.StandalonePorts != nil && !*spec.StandalonePorts {
		spec.StandalonePorts = nil
	}
	if c.switches && setting(c.has.Groups[key].Extra, lagKey) == nil {
		spec.Extra = extraWith(spec.Extra, lagKey, nil)
	}
	return spec
}

// extraWith returns a copy of an extra with another value of a key; without the key if the value is nil.
func extraWith(extra map[string]any, key string, value any) map[string]any {
	other := map[string]any{}
	maps.Copy(other, extra)
	delete(other, key)
	if value != nil {
		other[key] = value
	}
	return other
}

// makePort creates a port. Ironic configures the switch port of a machine that runs when a port changes, and not when it is created. It
// refuses such a change of a port whose switch it does not know.
func (c *cabler) makePort(ctx context.Context, mac string) (*ironic.Port, error) {
	spec, key := c.want.Ports[mac], c.want.Members[mac]
	if lost, again := c.lost[mac]; again {
		spec = spec.Over(lost.Port)
		if _, asked := c.want.Members[mac]; !asked {
			key = lost.group
		}
	}
	spec.Group, spec.PhysicalNetwork = c.has.Groups[key].UUID, c.want.network(mac, key, c.has)
	vlans := setting(spec.Extra, switchportKey)
	if !c.switches || !c.running || vlans == nil || !linked(spec.LocalLinkConnection) {
		return c.create(ctx, spec)
	}
	spec.Extra = extraWith(spec.Extra, switchportKey, nil)
	made, err := c.create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := c.record(mac, made, nil); err != nil {
		return nil, err
	}
	return c.site.Ironic.UpdatePort(ctx, *made, ironic.PortSpec{Extra: map[string]any{switchportKey: vlans}})
}
