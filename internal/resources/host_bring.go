package resources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// hostChange is what a host is to become.
type hostChange struct {
	config, plan *hostModel
	state        *hostModel // the prior state; nil for a new host
	steps        hostSteps  // what the plan has announced
	limit        time.Duration
	before       managed        // what was managed until now
	written      map[string]any // settings of the prior configuration
	sendSecrets  bool
	patched      bool // out: the settings have arrived
	complete     bool // out: so have traits, maintenance and ports
}

// bring makes a node what a configuration says: settings, traits, ports, maintenance, then the walk to the target state,
// and power last. It returns what it was doing when an error came.
func (h *host) bring(ctx context.Context, node *ironic.Node, c *hostChange) (doing string, err error) {
	label, power, occupied := ironic.NodeLabel(node), ironic.Power(node), isOccupied(node)
	if err := c.asPlanned(node); err != nil {
		return "change node " + label, err
	}
	if node, err = h.change(ctx, node, c); err != nil {
		return "change node " + label, err
	}
	if err := h.bringPorts(ctx, node, c); err != nil {
		return "set the ports of node " + label, err
	}
	c.complete = true
	if err := h.prepare(ctx, node, c); err != nil {
		return "prepare node " + label, err
	}
	want := c.config.PowerState.ValueString()
	putBack := c.steps.walks && want == power // the walk may have switched it
	if want != "" && (c.steps.switches || putBack) && !occupied && ironic.PowerManaged(node) {
		if _, err := h.client.SetPower(ctx, node.UUID, want == powerOn, c.limit); err != nil {
			return "switch node " + label + " " + want, err
		}
	}
	return "", nil
}

// change patches settings, traits and maintenance.
func (h *host) change(ctx context.Context, node *ironic.Node, c *hostChange) (*ironic.Node, error) {
	p := patch{node: asJSON(node), settings: c.config.settings(ctx), before: c.before, written: c.written}
	if p.written == nil { // just enrolled with them
		p.written = p.settings
	}
	if secrets := c.config.secrets(ctx); c.sendSecrets {
		p.secrets = secrets
	} else {
		p.before = slices.DeleteFunc(slices.Clone(p.before), func(path string) bool { return secrets[path] != nil })
	}
	edits := p.edits(stringMap(c.config.Capabilities))
	edits.TakeDiscovered(node)
	if err := oneview.KeepsHardware(node, edits); err != nil {
		return node, err
	}
	patched, err := h.client.PatchHost(ctx, node, edits)
	c.patched = patched != nil
	if err != nil {
		return node, err
	}
	node = patched
	wanted := stringSet(c.config.Traits)
	var add, remove []string
	for _, trait := range wanted {
		if !slices.Contains(node.Traits, trait) {
			add = append(add, trait)
		}
	}
	for _, trait := range c.before.below("/traits") {
		if !slices.Contains(wanted, trait) {
			remove = append(remove, trait)
		}
	}
	if err := h.client.SetTraits(ctx, node.UUID, add, remove); err != nil {
		return node, err
	}
	if isSet(c.config.Maintenance) || c.before.has("/maintenance") {
		on, reason := c.config.Maintenance.ValueBool(), c.config.MaintenanceReason.ValueString()
		if on != node.Maintenance || (on && reason != node.MaintenanceReason) {
			return node, h.client.SetMaintenance(ctx, node.UUID, on, reason)
		}
	}
	return node, nil
}

// bringPorts creates, changes and removes ports.
func (h *host) bringPorts(ctx context.Context, node *ironic.Node, c *hostChange) error {
	wanted, before := c.config.ports(ctx), c.before.below("/ports")
	if len(wanted) == 0 && len(before) == 0 {
		return nil
	}
	have, err := h.client.Ports(ctx, node.UUID)
	if err != nil {
		return err
	}
	for _, mac := range before {
		if port, exists := have[mac]; exists {
			if _, keep := wanted[mac]; !keep {
				if err := h.client.DeletePort(ctx, port); err != nil {
					return fmt.Errorf("port %s: %w", mac, err)
				}
			}
		}
	}
	for _, mac := range slices.Sorted(maps.Keys(wanted)) {
		spec := wanted[mac].spec(mac)
		port, exists := have[mac]
		if exists {
			err = h.client.UpdatePort(ctx, port, spec)
		} else {
			err = h.client.CreatePort(ctx, node.UUID, spec)
		}
		if err != nil {
			return fmt.Errorf("port %s: %w", mac, err)
		}
	}
	return nil
}

func (m portModel) spec(mac string) ironic.PortSpec {
	spec := ironic.PortSpec{Address: mac, PXEEnabled: m.PXEEnabled.ValueBoolPointer(), PhysicalNetwork: m.PhysicalNetwork.ValueString()}
	if link := stringMap(m.LocalLinkConnection); link != nil {
		spec.LocalLinkConnection = map[string]any{}
		for key, value := range link {
			spec.LocalLinkConnection[key] = value
		}
	}
	return spec
}

// prepare walks the node to its target state, with an inspection on the way.
func (h *host) prepare(ctx context.Context, node *ironic.Node, c *hostChange) error {
	target := c.plan.TargetState.ValueString()
	if !ironic.PowerManaged(node) || target == targetEnroll || c.isWithdrawn(node) {
		return nil
	}
	goal := ironic.Goal(target)
	if c.steps.inspects && ironic.InspectedAt(node).IsZero() && !ironic.Deployed(node) {
		inventory, err := h.client.Inventory(ctx, node.UUID)
		if err != nil {
			return err
		}
		if inventory == nil {
			if node, err = h.reach(ctx, node.UUID, ironic.GoalInspected, c.limit); err != nil {
				return err
			}
			c.plan.Inventory = types.ObjectUnknown(inventoryType)
		}
	}
	if !c.steps.walks || ironic.Settled(goal, ironic.State(node.ProvisionState)) {
		return h.endTemporary(ctx, node.UUID, h.pool.EndTemporary)
	}
	node, err := h.reach(ctx, node.UUID, goal, c.limit)
	if err != nil {
		return err
	}
	if goal == ironic.GoalAvailable && node.PowerState == "" && !c.steps.switches {
		// Ironic hands out no node whose power state it does not know; after cleaning it is off.
		_, err = h.client.SetPower(ctx, node.UUID, false, c.limit)
		return err
	}
	return nil
}

// reach walks a node to a goal. If it was given a temporary server profile on the way (oneview.Pool.Guard), that is removed
// again, also when the walk has failed; after an interruption the machine still needs it, and a later run removes it.
func (h *host) reach(ctx context.Context, id string, goal ironic.Goal, limit time.Duration) (*ironic.Node, error) {
	node, err := h.client.Reach(ctx, id, goal, limit)
	if ctx.Err() != nil {
		return node, err
	}
	return node, errors.Join(err, h.endTemporary(ctx, id, h.pool.EndTemporary))
}

// endTemporary removes a temporary server profile, if there is one, in one of the two ways of the pool.
func (h *host) endTemporary(ctx context.Context, id string, end func(context.Context, string, time.Duration) error) error {
	if !h.hasOneView() {
		return nil
	}
	if err := end(ctx, id, 0); err != nil {
		return fmt.Errorf("remove the temporary server profile: %w", err)
	}
	return nil
}

// addParts adds the traits and ports of the prior state to those that were planned. The next refresh takes out what is gone.
func (m *hostModel) addParts(ctx context.Context, state *hostModel) {
	if before := stringSet(state.Traits); len(before) > 0 {
		all := append(stringSet(m.Traits), before...)
		slices.Sort(all)
		m.Traits = setValue(slices.Compact(all))
	}
	if before := state.ports(ctx); len(before) > 0 {
		maps.Copy(before, m.ports(ctx))
		m.Ports = portsValue(ctx, before)
	}
}

// keepPlanned restores what was planned as a known value: state must be as planned, and what Ironic made of it is for
// the next refresh to show.
func (m *hostModel) keepPlanned(ctx context.Context, wanted *hostModel) {
	keep(&m.Name, wanted.Name)
	keep(&m.BMC, wanted.BMC)
	keep(&m.Driver, wanted.Driver)
	keep(&m.DriverInfo, wanted.DriverInfo)
	m.Ports = keepPorts(ctx, m, wanted)
	keep(&m.ResourceClass, wanted.ResourceClass)
	keep(&m.Traits, wanted.Traits)
	keep(&m.Capabilities, wanted.Capabilities)
	keep(&m.Properties, wanted.Properties)
	keep(&m.RootDevice, wanted.RootDevice)
	m.Interfaces = keepInterfaces(m.Interfaces, wanted.Interfaces)
	keep(&m.Extra, wanted.Extra)
	keep(&m.Description, wanted.Description)
	keep(&m.Owner, wanted.Owner)
	keep(&m.Lessee, wanted.Lessee)
	keep(&m.ConductorGroup, wanted.ConductorGroup)
	keep(&m.Shard, wanted.Shard)
	keep(&m.AutomatedClean, wanted.AutomatedClean)
	keep(&m.Maintenance, wanted.Maintenance)
	keep(&m.MaintenanceReason, wanted.MaintenanceReason)
	keep(&m.Retired, wanted.Retired)
	keep(&m.RetiredReason, wanted.RetiredReason)
	keep(&m.Protected, wanted.Protected)
	keep(&m.ProtectedReason, wanted.ProtectedReason)
	keep(&m.TargetState, wanted.TargetState)
	keep(&m.PowerState, wanted.PowerState)
	keep(&m.ProvisionState, wanted.ProvisionState)
	keep(&m.PowerManaged, wanted.PowerManaged)
	keep(&m.LastError, wanted.LastError)
	keep(&m.Fault, wanted.Fault)
	keep(&m.InstanceUUID, wanted.InstanceUUID)
	keep(&m.AllocationID, wanted.AllocationID)
	keep(&m.Inventory, wanted.Inventory)
}

// keep puts a known value back.
func keep[T attr.Value](value *T, wanted T) {
	if !wanted.IsUnknown() {
		*value = wanted
	}
}

// keepPorts is keep for ports, whose attributes may be unknown one by one.
func keepPorts(ctx context.Context, m, wanted *hostModel) types.Map {
	planned := wanted.ports(ctx)
	if planned == nil {
		return m.Ports
	}
	actual := m.ports(ctx)
	for mac, port := range planned {
		now, exists := actual[mac]
		if !exists {
			now = portModel{LocalLinkConnection: types.MapNull(types.StringType)}
		}
		keep(&now.PXEEnabled, port.PXEEnabled)
		keep(&now.PhysicalNetwork, port.PhysicalNetwork)
		keep(&now.LocalLinkConnection, port.LocalLinkConnection)
		planned[mac] = now
	}
	return portsValue(ctx, planned)
}

// keepInterfaces is keep for interfaces, likewise.
func keepInterfaces(actual, wanted types.Object) types.Object {
	if !isSet(wanted) {
		return actual
	}
	values := actual.Attributes()
	for name, value := range wanted.Attributes() {
		if !value.IsUnknown() {
			values[name] = value
		}
	}
	return types.ObjectValueMust(interfacesType, values)
}
