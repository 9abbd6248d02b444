package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// change is the desired change of a host, and a record of the parts that have been applied.
type change struct {
	config, plan *model
	state        *model      // the prior state; nil for a new host
	todo         enroll.Plan // what the plan has announced; the apply does nothing else
	limit        time.Duration
	before       managed         // what was managed until now
	written      ironic.Settings // settings of the prior configuration
	sendSecrets  bool
	isMade       bool // this run has created the node

	hardware hardware.Hardware // known to be on the machine before
	open     []hardware.Part   // parts of the hardware configuration that are not known to be on the machine

	machine   *machine.Machine // as of Ironic's latest answer
	seen      sight            // likewise, without the node; empty if the configuration has no ports
	patched   bool             // Ironic has the settings
	complete  bool             // and also traits, maintenance and ports
	inspected bool             // this run has inspected the machine

	taken *sharing.InUseError // why this run has taken the host out of service; nil: it has not
}

// node returns the node as of Ironic's latest answer.
func (c *change) node() *ironic.Node { return c.machine.Node() }

// bring applies a configuration to a node: settings, traits, ports and maintenance, then the walk to the target state, and
// power last. With an error, it returns what it was doing.
func (h *host) bring(ctx context.Context, c *change) (doing string, err error) {
	doing, err = h.bringUp(ctx, c)
	return doing, c.machine.Unwatched(ctx, err)
}

func (h *host) bringUp(ctx context.Context, c *change) (doing string, err error) {
	label, power, occupied := ironic.NodeLabel(c.node()), machine.Power(c.node()), states.IsOccupied(c.node())
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
	if c.seen.Cables, err = enroll.Cable(ctx, c.machine, c.config.cablingOf(ctx, c.before), c.isMade); err != nil {
		return "set the ports of node " + label, err
	}
	c.complete = true
	if err := c.takeOut(ctx, h.prepare(ctx, c)); err != nil {
		return "prepare node " + label, err
	}
	step, switches := c.todo.Find(enroll.DoSwitchPower)
	if kept, keeps := c.todo.Find(enroll.DoKeepPower); keeps && kept.Power == power { // the walk may have switched it
		step, switches = kept, true
	}
	if switches && !occupied && machine.PowerManaged(c.node()) && c.taken == nil {
		if err := c.switchPower(ctx, step.Power); err != nil {
			return "switch node " + label + " " + step.Power, err
		}
	}
	return "", nil
}

// asPlanned refuses a node whose provision state has changed since a plan that announced no walk: the way back may clean the
// node. If a deployment has ended meanwhile, asPlanned accepts the node, and the next plan announces the walk.
func (c *change) asPlanned(node *ironic.Node) error {
	if c.state == nil || c.todo.Has(enroll.DoWalk, enroll.DoVerify) || states.Deployed(c.state.node()) || !c.unsettled(node) {
		return nil
	}
	before := c.state.ProvisionState.ValueString()
	if node.ProvisionState == before {
		return nil // it got a BMC, or metal oneview has returned it to service: the next plan announces the walk
	}
	return fmt.Errorf("host %s has changed since the plan, from state %s to %s. Nothing was done to it. Plan again",
		c.plan.label(), before, node.ProvisionState)
}

// unsettled reports whether a node is not in its target state yet.
func (c *change) unsettled(node *ironic.Node) bool {
	return c.mayBePrepared() && c.todo.Goal != enroll.GoalEnroll && !states.Settled(c.todo.Goal, ironic.State(node.ProvisionState))
}

// mayBePrepared reports whether Ironic can prepare the machine, and metal oneview sync has not taken it out of service: that returns it when the
// hardware is free.
func (c *change) mayBePrepared() bool {
	return machine.Preparable(c.node()) && (!sharing.OutOfService(c.node()) || !c.config.Maintenance.IsNull())
}

// switchPower switches the machine as configured.
func (c *change) switchPower(ctx context.Context, want string) error {
	if want == framework.PowerOn {
		return c.machine.SetPower(ctx, true, c.limit)
	}
	return c.machine.SwitchOff(ctx, machine.OffMode(c.config.PowerOffMode.ValueString()), c.limit)
}

// leavePool makes an available node that is to be retired manageable, because Ironic retires no available node. The machine is not
// touched.
func (h *host) leavePool(ctx context.Context, c *change) error {
	if !c.todo.Has(enroll.DoLeavePool) || c.node().Retired || !states.InPool(c.node()) {
		return nil
	}
	return h.reach(ctx, c, states.GoalManageable)
}

// change brings settings, traits and maintenance of the node to the configuration.
func (h *host) change(ctx context.Context, c *change) (err error) {
	want := c.config.hostSettings(ctx, c.before)
	want.Written, want.IsNew, want.Resends = c.written, c.state == nil, c.sendSecrets
	want.KeepsRetired, want.DropsReason = c.keepsQuarantine(), c.plan.RetiredReason.IsNull()
	want.Forgets = c.state != nil && c.before == nil || c.config.InspectTriggers.IsNull() // after an import, those of another configuration
	if c.todo.Has(enroll.DoInspectAgain) {
		want.Inspects = hardware.Fingerprint(framework.StringMap(c.plan.InspectTriggers))
	}
	if err := sharing.KeepsHardware(c.node(), want.Edits(c.node())); err != nil {
		return err
	}
	c.patched, err = enroll.ChangeHost(ctx, c.machine, want)
	return err
}

// prepare does the planned steps that touch the machine, except switching its power.
func (h *host) prepare(ctx context.Context, c *change) error {
	if !c.mayBePrepared() {
		return nil
	}
	for _, step := range c.todo.Steps {
		if err := h.prepareBy(ctx, c, step); err != nil {
			return err
		}
	}
	if c.todo.Goal == enroll.GoalEnroll || c.todo.Has(enroll.DoWalk, enroll.DoVerify) {
		return nil
	}
	return h.EndTemporary(ctx, c.node(), c.limit)
}

// prepareBy does a step that touches the machine; none of the others.
func (h *host) prepareBy(ctx context.Context, c *change, step enroll.Step) error {
	switch step.Do {
	case enroll.DoSetBoot:
		return h.setBoot(ctx, c, step)
	case enroll.DoConfigure, enroll.DoService:
		return h.configure(ctx, c, step)
	case enroll.DoInspect, enroll.DoInspectAgain:
		return h.inspect(ctx, c)
	case enroll.DoVerify, enroll.DoWalk:
		if !states.Settled(step.Goal, ironic.State(c.node().ProvisionState)) {
			if err := h.reach(ctx, c, step.Goal); err != nil {
				return err
			}
		} else if err := h.EndTemporary(ctx, c.node(), c.limit); err != nil {
			return err
		}
		if step.Goal == states.GoalAvailable && !c.todo.Has(enroll.DoSwitchPower) {
			return c.learnPower(ctx)
		}
	case enroll.DoLearnPower:
		return c.learnPower(ctx)
	case enroll.DoEnroll, enroll.DoLeavePool, enroll.DoWrite, enroll.DoEndTemporary, enroll.DoSwitchPower, enroll.DoKeepPower, enroll.DoRemove:
	}
	return nil
}

// learnPower switches a machine whose power state Ironic does not know, because it allocates none such. After cleaning the machine is off, or on
// if it is never off.
func (c *change) learnPower(ctx context.Context) error {
	node := c.node()
	if node.PowerState != "" || !machine.PowerManaged(node) || states.Deployed(node) {
		return nil
	}
	return c.machine.SetPower(ctx, node.DisablePowerOff, c.limit)
}

// reach walks the node to a goal. It then removes the temporary server profile that sharing.Pool.Check may have created on the
// way, even if the walk has failed. After an interruption the machine still needs the profile, and a later run removes it.
func (h *host) reach(ctx context.Context, c *change, goal states.Goal) error {
	err := c.machine.Reach(ctx, goal, c.limit)
	return errors.Join(err, h.EndTemporary(ctx, c.node(), c.limit))
}

// keepsQuarantine reports whether the plan keeps a host retired whose configuration does not say so.
func (c *change) keepsQuarantine() bool {
	return c.plan.Retired.ValueBool() && !c.config.Retired.ValueBool()
}
