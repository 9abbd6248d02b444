package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ErrNoSlot says that neither the provisioning limit nor Ironic's own limit had a free slot for the node within the time-out.
var ErrNoSlot = errors.New("no slot of the provisioning limit is free now")

// Manage sends a node the verb manage and does not wait for the result. The transition is immediate from available and clean
// failed; from enroll, Ironic verifies the BMC first. Unlike Reach it also moves a reserved node.
func (c *Site) Manage(ctx context.Context, node *ironic.Node) error {
	return c.putVerb(ctx, node, nodes.TargetManage)
}

// Provide sends a manageable node the verb provide as soon as it has a slot, and does not wait for the cleaning that follows. It
// waits for a slot at most for the time-out and then returns ErrNoSlot. guard replaces the site's own guard unless it is nil.
// Provide asks it again before the verb after a refusal by Ironic's own limit.
func (c *Site) Provide(ctx context.Context, node *ironic.Node, timeout time.Duration, guard Guard) error {
	if guard == nil {
		guard = c.guard
	}
	step := Step{Node: node, Verb: nodes.TargetProvide, Stage: BeforeQueue}
	if err := guard.Check(ctx, step); err != nil {
		return err
	}
	step.Stage = BeforeVerb
	queue, leave := context.WithCancel(ctx)
	defer leave()
	deadline := time.Now().Add(timeout)
	late := time.AfterFunc(timeout, leave)
	defer late.Stop()
	err := c.limiter.pass(queue, node, failures(node), func(ctx context.Context, _ *ironic.Node) error {
		late.Stop() // once started, the verb is sent to the end
		if err := guard.Check(ctx, step); err != nil {
			return err
		}
		err := c.putVerb(ctx, node, nodes.TargetProvide)
		if isCapacityError(err) {
			late.Reset(time.Until(deadline))
		}
		return err
	})
	if isCapacityError(err) || (queue.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled)) {
		return ErrNoSlot
	}
	return err
}

// putVerb sends a verb to a node that was just read. If the answer is lost, it reads the node to find out whether Ironic has
// accepted the verb.
func (c *Site) putVerb(ctx context.Context, node *ironic.Node, verb ironic.Verb) error {
	err := c.ChangeProvisionState(ctx, node.UUID, ironic.Order{Verb: verb})
	if !ironic.IsConnectionLoss(err) || ctx.Err() != nil {
		return err
	}
	after, lerr := c.Node(ctx, node.UUID)
	if lerr == nil && (after.ProvisionState != node.ProvisionState || !after.ProvisionUpdatedAt.Equal(node.ProvisionUpdatedAt)) {
		return nil
	}
	return err
}

// IsBusy reports whether Ironic refused a request because an operation on the node is in progress or the node's state has changed.
// The request may be repeated later.
func IsBusy(err error) bool {
	return ironic.IsStatus(err, http.StatusConflict, "") || ironic.IsStatus(err, http.StatusBadRequest, "while it is in state")
}

// Power states of nodes.
const (
	powerOn  = "power on"
	powerOff = "power off"
)

// Power returns "on" or "off"; empty if Ironic does not know the power state.
func Power(n *ironic.Node) string { return strings.TrimPrefix(n.PowerState, "power ") }

// Switched reports whether Ironic has accepted a power change of the machine in this call.
func (m *Machine) Switched() bool { return m.switched }

// SetPower switches the machine on or off and waits for it. It sends nothing if the record shows the wanted power state.
func (m *Machine) SetPower(ctx context.Context, on bool, timeout time.Duration) error {
	want, target := powerOff, nodes.PowerOff
	if on {
		want, target = powerOn, nodes.PowerOn
	}
	if m.node.PowerState == want && m.node.TargetPowerState == "" {
		return nil
	}
	if err := m.awaitPowerChange(ctx, timeout); err != nil {
		return err
	}
	if m.node.PowerState == want {
		return nil
	}
	return m.changePower(ctx, target, want, timeout)
}

// Reboot switches the machine off and on, or only on if it is off, and waits for it.
func (m *Machine) Reboot(ctx context.Context, timeout time.Duration) error {
	if err := m.awaitPowerChange(ctx, timeout); err != nil {
		return err
	}
	if m.node.PowerState == powerOff {
		return m.changePower(ctx, nodes.PowerOn, powerOn, timeout)
	}
	return m.changePower(ctx, nodes.Rebooting, powerOn, timeout)
}

// awaitPowerChange waits for the end of a power change that an earlier run or another client has begun, because Ironic refuses
// any other change until then.
func (m *Machine) awaitPowerChange(ctx context.Context, timeout time.Duration) error {
	if m.node.TargetPowerState == "" {
		return nil
	}
	return m.awaitUnlocked(ctx, time.Now().Add(timeout))
}

// changePower requests a power change and waits for its end; the time-out starts with the request. A change that starts the
// machine waits for a slot. It sends nothing if the machine has the wanted power state by then, and returns an error if the
// machine's instance or provision state has changed since the record was made.
func (m *Machine) changePower(ctx context.Context, target nodes.TargetPowerState, want string, timeout time.Duration) error {
	step := Step{Node: m.node, Power: target, Stage: BeforeQueue, Limit: timeout}
	if err := m.site.guard.Check(ctx, step); err != nil {
		return err
	}
	sent := false
	put := func(ctx context.Context, seen *ironic.Node) error {
		if err := m.confirmUnchanged(ctx, seen); err != nil {
			return err
		}
		if target != nodes.Rebooting && m.node.PowerState == want && m.node.TargetPowerState == "" {
			return nil
		}
		if err := m.site.guard.Check(ctx, Step{Node: m.node, Power: target, Stage: BeforeVerb}); err != nil {
			return err
		}
		sent = true
		err := m.site.ChangePowerState(ctx, m.node.UUID, target)
		if err == nil {
			m.switched = true
			m.logInfo(ctx, fmt.Sprintf("starts to change its power: %s -> %s", cmp.Or(m.node.PowerState, "unknown"), target), "power", m.node.PowerState, "target", string(target))
		}
		return err
	}
	var err error
	if target == nodes.PowerOff {
		err = put(ctx, nil)
	} else {
		err = m.site.limiter.passStart(ctx, m.node, failures(m.node), put)
	}
	if errors.Is(err, errMoved) {
		return fmt.Errorf("node %s was not switched, because it has changed: it is in state %q, reserved by %q. Run terraform plan again", ironic.NodeLabel(m.node), m.node.ProvisionState, m.node.InstanceUUID)
	}
	if err != nil || !sent {
		return err
	}
	if target != nodes.PowerOff {
		defer m.site.limiter.Started(m.node.UUID)
	}
	return m.awaitPower(ctx, want, timeout)
}

// awaitPower waits until the machine has the wanted power state and no power change is in progress.
func (m *Machine) awaitPower(ctx context.Context, want string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		err := m.poll(ctx, deadline)
		switch {
		case errors.Is(err, ironic.ErrNoPoll):
			return fmt.Errorf("node %s is still %q after %s. Check the machine's BMC and console; if it needs longer, raise timeouts; then apply again", ironic.NodeLabel(m.node), m.node.PowerState, timeout)
		case err != nil:
			return err
		case m.node.TargetPowerState == "" && m.node.PowerState == want:
			m.logInfo(ctx, "has changed its power: "+m.node.PowerState, "power", m.node.PowerState)
			return nil
		case m.node.TargetPowerState == "" && m.node.Reservation == "":
			return fmt.Errorf("node %s is %q, not %q: %s. Check the machine's BMC, then apply again", ironic.NodeLabel(m.node), m.node.PowerState, want, ironic.FirstLine(m.node.LastError))
		}
	}
}
