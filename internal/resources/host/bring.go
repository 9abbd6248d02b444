package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// change is the desired change of a host, and a record of the parts that have been applied.
type change struct {
	config, plan *model
	state        *model // the prior state; nil for a new host
	steps        steps  // the plan has announced them
	limit        time.Duration
	before       managed  // what was managed until now
	written      settings // settings of the prior configuration
	sendSecrets  bool
	isMade       bool // this run has created the node

	hardware provision.Hardware // known to be on the machine before
	open     []provision.Part   // parts of the hardware configuration that are not known to be on the machine

	machine   *provision.Machine // as of Ironic's latest answer
	seen      sight              // likewise, without the node; empty if the configuration has no ports
	patched   bool               // Ironic has the settings
	complete  bool               // and also traits, maintenance and ports
	inspected bool               // this run has inspected the machine

	taken *sharing.InUseError // why this run has taken the host out of service; nil: it has not
}

// node returns the node as of Ironic's latest answer.
func (c *change) node() *ironic.Node { return c.machine.Node() }

// bring applies a configuration to a node: settings, traits, ports and maintenance, then the walk to the target state, and
// power last. With an error, it returns what it was doing.
func (h *host) bring(ctx context.Context, c *change) (doing string, err error) {
	label, power, occupied := ironic.NodeLabel(c.node()), provision.Power(c.node()), isOccupied(c.node())
	if err := c.asPlanned(c.node()); err != nil {
		return "change node " + label, err
	}
	if err := h.leavePool(ctx, c); err != nil {
		return "retire node " + label, err
	}
	if err := h.refuseInspection(ctx, c); err != nil {
		return "inspect node " + label, err
	}
	if err := h.move(ctx, c); err != nil {
		return "change node " + label, err
	}
	if err := h.change(ctx, c); err != nil {
		return "change node " + label, err
	}
	if err := h.bringPorts(ctx, c); err != nil {
		return "set the ports of node " + label, err
	}
	c.complete = true
	if err := h.takeOut(ctx, c, h.prepare(ctx, c)); err != nil {
		return "prepare node " + label, err
	}
	want := c.config.PowerState.ValueString()
	putBack := c.steps.walks && want == power // the walk may have switched it
	if want != "" && (c.steps.switches || putBack) && !occupied && provision.PowerManaged(c.node()) && c.taken == nil {
		if err := c.switchPower(ctx, want); err != nil {
			return "switch node " + label + " " + want, err
		}
	}
	return "", nil
}

// switchPower switches the machine as configured.
func (c *change) switchPower(ctx context.Context, want string) error {
	if want == framework.PowerOn {
		return c.machine.SetPower(ctx, true, c.limit)
	}
	return c.machine.SwitchOff(ctx, provision.OffMode(c.config.PowerOffMode.ValueString()), c.limit)
}

// leavePool makes an available node that is to be retired manageable, because Ironic retires no available node. The machine is not
// touched.
func (h *host) leavePool(ctx context.Context, c *change) error {
	if !c.config.Retired.ValueBool() || c.node().Retired || !provision.InPool(c.node()) {
		return nil
	}
	return h.reach(ctx, c, provision.GoalManageable)
}

// change patches settings, traits and maintenance.
func (h *host) change(ctx context.Context, c *change) error {
	edits := c.edits(ctx)
	if c.state == nil {
		h.Client.TakesOver(&edits, c.node())
	}
	if err := sharing.KeepsHardware(c.node(), edits); err != nil {
		return err
	}
	var err error
	if c.patched, err = c.machine.PatchHost(ctx, edits); err != nil {
		return err
	}
	if edits.Changes("/driver") { // Ironic has reset interfaces that already had the configured value (reference/ironic.md#changing-interfaces)
		if _, err := c.machine.PatchHost(ctx, c.edits(ctx).OfInterfaces()); err != nil {
			return err
		}
	}
	if len(edits.OfExtra()) > 0 { // Ironic loses one of two concurrent changes of extra
		if err := c.machine.Refresh(ctx); err != nil {
			return err
		}
	}
	if err := h.changeTraits(ctx, c); err != nil {
		return err
	}
	if !framework.IsSet(c.config.Maintenance) && !c.before.has("/maintenance") {
		return nil
	}
	on, reason := c.config.Maintenance.ValueBool(), c.config.MaintenanceReason.ValueString()
	if on == c.node().Maintenance && (!on || reason == c.node().MaintenanceReason) {
		return nil
	}
	if err := h.Client.SetMaintenance(ctx, c.node().UUID, on, reason); err != nil {
		return err
	}
	c.machine.Changed(func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason = on, reason })
	return nil
}

// edits returns the settings that the node does not have yet.
func (c *change) edits(ctx context.Context) ironic.Patch {
	info := infoOf(c.node(), c.before)
	p := patch{node: asJSON(c.node()), settings: c.config.settings(ctx), before: c.before, written: c.written}
	p.node["driver_info"] = info
	if p.written == nil { // the node was just enrolled with them
		p.written = p.settings
	}
	secrets := c.config.secrets(ctx)
	p.before = slices.DeleteFunc(slices.Clone(p.before), func(path string) bool { return secrets[path] != nil })
	switch {
	case c.sendSecrets:
		p.secrets = secrets
	case c.state != nil: // a new node was just enrolled with them
		p.secrets = secrets.unsent(c.before, info)
	}
	c.keepQuarantine(&p)
	edits := p.edits(framework.StringMap(c.config.Capabilities))
	c.noteTriggers(&edits)
	c.endQuarantine(&edits)
	provision.TakeDiscovered(&edits, c.node(), c.config.Name.ValueString())
	return edits
}

// changeTraits adds the configured traits, and removes those that are not configured any more.
func (h *host) changeTraits(ctx context.Context, c *change) error {
	wanted := framework.StringSet(c.config.Traits)
	var add, remove []string
	for _, trait := range wanted {
		if !slices.Contains(c.node().Traits, trait) {
			add = append(add, trait)
		}
	}
	for _, trait := range c.before.below("/traits") {
		if !slices.Contains(wanted, trait) {
			remove = append(remove, trait)
		}
	}
	if len(add)+len(remove) == 0 {
		return nil
	}
	if err := h.Client.SetTraits(ctx, c.node().UUID, add, remove); err != nil {
		return err
	}
	c.machine.Changed(func(n *ironic.Node) {
		n.Traits = slices.DeleteFunc(slices.Concat(n.Traits, add), func(trait string) bool { return slices.Contains(remove, trait) })
	})
	return nil
}

// prepare walks the node to its target state, and inspects it on the way if planned.
func (h *host) prepare(ctx context.Context, c *change) error {
	goal := c.plan.goals()[0]
	if c.steps.verifies {
		goal = provision.GoalManageable
	}
	if !provision.Preparable(c.node()) || c.isOutOfService(c.node()) {
		return nil
	}
	if err := h.setBoot(ctx, c); err != nil || goal == targetEnroll {
		return err
	}
	if err := h.configure(ctx, c); err != nil {
		return err
	}
	if err := h.inspect(ctx, c); err != nil {
		return err
	}
	if !c.steps.walks || provision.Settled(goal, ironic.State(c.node().ProvisionState)) {
		if err := h.EndTemporary(ctx, c.node(), c.limit); err != nil {
			return err
		}
	} else if err := h.reach(ctx, c, goal); err != nil {
		return err
	}
	if (c.steps.walks || c.steps.learnsPower) && goal == provision.GoalAvailable && c.node().PowerState == "" && !c.steps.switches && provision.PowerManaged(c.node()) &&
		!provision.Deployed(c.node()) {
		// Ironic allocates no node whose power state it does not know; after cleaning the node is off, or on if it is never off.
		return c.machine.SetPower(ctx, c.node().DisablePowerOff, c.limit)
	}
	return nil
}

// reach walks the node to a goal. It then removes the temporary server profile that sharing.Pool.Check may have created on the
// way, even if the walk has failed. After an interruption the machine still needs the profile, and a later run removes it.
func (h *host) reach(ctx context.Context, c *change, goal provision.Goal) error {
	err := c.machine.Reach(ctx, goal, c.limit)
	return errors.Join(err, h.EndTemporary(ctx, c.node(), c.limit))
}
