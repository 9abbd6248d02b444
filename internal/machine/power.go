package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// KeyPowerChanged is when Ironic has last begun to change the power, in driver_internal_info.
const KeyPowerChanged = "last_power_state_change"

// LastPowerChange returns when Ironic last changed a node's power, in Ironic's format.
func LastPowerChange(n *ironic.Node) string {
	if text, _ := n.DriverInternalInfo[KeyPowerChanged].(string); text != "" {
		return text
	}
	return "never"
}

// Power states of nodes.
const (
	powerOn  = "power on"
	powerOff = "power off"
)

// OffMode says how a machine is switched off.
type OffMode string

// The modes. All but OffHard need VersionSoftPower.
const (
	OffHard     OffMode = "hard"     // cuts the power
	OffSoft     OffMode = "soft"     // asks the operating system to shut down, and fails if the machine stays on
	OffGraceful OffMode = "graceful" // asks the operating system, and cuts the power if the machine stays on for 3 minutes
)

// softOffTimeout is how long OffGraceful gives the operating system.
const softOffTimeout = 3 * time.Minute

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
	return m.changePower(ctx, target, want, timeout, 0)
}

// SwitchOff switches the machine off and waits for it. The time-out is that of the hard power-off, and of OffSoft.
func (m *Machine) SwitchOff(ctx context.Context, how OffMode, timeout time.Duration) error {
	if m.node.PowerState == powerOff && m.node.TargetPowerState == "" {
		return nil
	}
	if err := m.awaitPowerChange(ctx, timeout); err != nil {
		return err
	}
	if m.node.PowerState != powerOn || how == OffHard || how == "" {
		return m.SetPower(ctx, false, timeout)
	}
	if how == OffSoft {
		err := m.changePower(ctx, nodes.SoftPowerOff, powerOff, timeout, 0)
		if isSoftUnsupported(err) {
			return &failure.Error{Node: m.node, Err: err, Fact: fmt.Sprintf("node %s was not switched off: its driver, %s, cannot ask an operating system to shut down. Set power_off_mode to graceful or hard",
				ironic.NodeLabel(m.node), m.node.Driver)}
		}
		return err
	}
	err := m.changePower(ctx, nodes.SoftPowerOff, powerOff, softOffTimeout+time.Minute, softOffTimeout) // Ironic ends it in time
	switch {
	case isSoftUnsupported(err):
		m.cut = fmt.Sprintf("the driver %s cannot ask an operating system to shut down", m.node.Driver)
	case failure.Is(err, KindPower):
		m.cut = fmt.Sprintf("its operating system did not shut down within %s", softOffTimeout)
	default:
		return err
	}
	m.logInfo(ctx, "loses its power: "+m.cut)
	return m.SetPower(ctx, false, timeout)
}

// CheckOff returns an error if disable_power_off keeps Ironic from switching the machine off.
func (m *Machine) CheckOff() error {
	if m.node.DisablePowerOff {
		return NeverOff(m.node)
	}
	return nil
}

// isSoftUnsupported reports whether Ironic has refused a soft power change because the power interface has none
// (reference/ironic.md#power-off).
func isSoftUnsupported(err error) bool {
	return api.IsStatus(err, http.StatusBadRequest, "does not support the power state")
}

// PowerCut says that SwitchOff with OffGraceful has cut the power in this call, and why; nothing if it has not.
func (m *Machine) PowerCut() []decide.Notice {
	if m.cut == "" {
		return nil
	}
	return []decide.Notice{decide.Warn(decide.At("power_state"), "Power was cut", fmt.Sprintf("Node %s was switched off without a shutdown: %s.", ironic.NodeLabel(m.node), m.cut))}
}

// Reboot switches the machine off and on, or only on if it is off, and waits for it.
func (m *Machine) Reboot(ctx context.Context, timeout time.Duration) error {
	return m.reboot(ctx, nodes.Rebooting, timeout)
}

// reboot is Reboot with a power change that restarts a machine.
func (m *Machine) reboot(ctx context.Context, how nodes.TargetPowerState, timeout time.Duration) error {
	if err := m.awaitPowerChange(ctx, timeout); err != nil {
		return err
	}
	if m.node.PowerState == powerOff {
		return m.changePower(ctx, nodes.PowerOn, powerOn, timeout, 0)
	}
	return m.changePower(ctx, how, powerOn, timeout, 0)
}

// awaitPowerChange waits for the end of a power change that an earlier run or another client has begun, because Ironic refuses
// any other change until then.
func (m *Machine) awaitPowerChange(ctx context.Context, timeout time.Duration) error {
	if m.node.TargetPowerState == "" {
		return nil
	}
	return m.AwaitUnlocked(ctx, time.Now().Add(timeout))
}

// changePower requests a power change and waits for its end; the time-out starts with the request. soft is how long Ironic waits
// for the operating system; zero: as its configuration says.
func (m *Machine) changePower(ctx context.Context, target nodes.TargetPowerState, want string, timeout, soft time.Duration) error {
	if want == powerOff {
		if err := m.CheckOff(); err != nil {
			return err
		}
	}
	restarts := target == nodes.Rebooting || target == nodes.SoftRebooting
	needed := func() bool { return restarts || m.node.PowerState != want || m.node.TargetPowerState != "" }
	from := m.node.PowerState
	sent, err := m.order(ctx, target, callOfPower(target, want), timeout, needed, func(ctx context.Context) error {
		return m.site.Ironic.ChangePowerState(ctx, m.node.UUID, target, soft)
	})
	if err != nil || !sent {
		return err
	}
	m.switched = true
	m.logInfo(ctx, fmt.Sprintf("starts to change its power: %s -> %s", cmp.Or(from, "unknown"), target), "power", from, "target", string(target))
	if want == powerOn {
		defer m.site.limiter.Started(m.node.UUID)
	}
	return m.awaitPower(ctx, want, restarts, timeout)
}

// callOfPower returns the request of a power change that leads to the wanted power state. Ironic records when it begins one, also when the
// machine is restarted, after which it has the same power state.
func callOfPower(target nodes.TargetPowerState, want string) Call {
	restarts := target == nodes.Rebooting || target == nodes.SoftRebooting
	doing := "switch the machine off"
	switch {
	case restarts:
		doing = "restart the machine"
	case want == powerOn:
		doing = "switch the machine on"
	}
	return Call{doing: doing, trace: func(before, now *ironic.Node, sent time.Time) trace {
		last, begun := LastPowerChange(now), ironic.InternalTime(now, KeyPowerChanged)
		switch {
		case now.TargetPowerState != "", !restarts && now.PowerState == want:
			return traceFound
		case now.Hidden.DriverInternalInfo:
			return traceHidden
		case last == LastPowerChange(before):
			return traceNone
		case begun.Before(sent.Add(-marks.ClockSlack)): // perhaps another client's: before may be older than the last full read
			return traceHidden
		}
		return traceFound
	}}
}

// order sends a request that changes a machine's power, if the guard allows it, and reports whether it was still needed then. A change
// that starts the machine waits for a slot. order returns an error if the machine's instance or provision state has changed since the
// record was made. It repeats a request without an answer only if Ironic has not executed it, and waits while Ironic refuses it because
// the node is locked: another client may have begun to change the power.
func (m *Machine) order(ctx context.Context, target nodes.TargetPowerState, c Call, timeout time.Duration, needed func() bool, send func(context.Context) error) (sent bool, err error) {
	for deadline := time.Now().Add(timeout); ; {
		err = m.untilSettled(ctx, timeout, func() error {
			return m.orderOnce(ctx, target, timeout, func(ctx context.Context) error {
				if sent = needed(); !sent {
					return nil
				}
				return m.ask(ctx, c, send)
			})
		})
		if !api.IsLocked(err) || time.Now().After(deadline) {
			return sent, err
		}
		if err := m.Refresh(ctx); err != nil {
			return sent, err
		}
		if err := m.AwaitUnlocked(ctx, deadline); err != nil {
			return sent, err
		}
	}
}

// orderOnce is order without the search for the result; send may find that the request is not needed.
func (m *Machine) orderOnce(ctx context.Context, target nodes.TargetPowerState, timeout time.Duration, send func(context.Context) error) error {
	if err := m.site.guard.Check(ctx, Step{Node: m.node, Power: target, Stage: BeforeQueue, Limit: timeout}); err != nil {
		return err
	}
	admitted := m.tellQueued()
	defer admitted()
	put := func(ctx context.Context, seen *ironic.Node) error {
		admitted()
		if err := m.confirmUnchanged(ctx, seen); err != nil {
			return err
		}
		if err := m.site.guard.Check(ctx, Step{Node: m.node, Power: target, Stage: BeforeVerb}); err != nil {
			return err
		}
		return send(ctx)
	}
	var err error
	if target == nodes.PowerOff || target == nodes.SoftPowerOff {
		err = put(ctx, nil)
	} else {
		err = m.site.limiter.PassStart(ctx, m.node, marks.Failures(m.node), put)
	}
	if errors.Is(err, errMoved) {
		err = fmt.Errorf("node %s was not switched, because it has changed: it is in state %q, reserved by %q. Run terraform plan again", ironic.NodeLabel(m.node), m.node.ProvisionState, m.node.InstanceUUID)
	}
	return err
}

// awaitPower waits until a power change has ended, and is the one place that judges how: Ironic tells a failure by last_error only, which
// it clears when a change begins (reference/ironic.md#requests-without-an-answer). A machine has the same power state before and after a restart, also a failed one.
func (m *Machine) awaitPower(ctx context.Context, want string, restart bool, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		err := m.poll(ctx, deadline)
		if err == nil && m.node.TargetPowerState == "" {
			err = m.learnError(ctx)
		}
		switch {
		case errors.Is(err, api.ErrNoPoll):
			return fmt.Errorf("node %s is still %q after %s. Check the machine's BMC and console; if it needs longer, raise timeouts; then apply again", ironic.NodeLabel(m.node), m.node.PowerState, timeout)
		case err != nil:
			return err
		case m.node.TargetPowerState != "" || restart && states.IsLocked(m.node):
		case m.node.PowerState == want && m.node.LastError == "":
			m.logInfo(ctx, "has changed its power: "+m.node.PowerState, "power", m.node.PowerState)
			return nil
		case !states.IsLocked(m.node):
			return powerFailed(m.node, want, restart)
		}
	}
}

// KindPower is the kind of an error which says that a power change has failed.
const KindPower failure.Kind = "power"

// powerFailed returns such an error with the power state and Ironic's reason.
func powerFailed(node *ironic.Node, want string, restart bool) *failure.Error {
	label := ironic.NodeLabel(node)
	e := &failure.Error{
		Kind: KindPower, Node: node, Fact: fmt.Sprintf("node %s: Ironic could not change its power", label), Words: api.FirstLine(node.LastError),
		Advice: "Check the machine's BMC, then apply again." + failure.OrAskIPMI(node), Action: "Check the machine's BMC, and invoke the action again." + failure.OrAskIPMI(node),
	}
	switch {
	case node.PowerState != want:
		e.Fact = fmt.Sprintf("node %s is %q, not %q", label, node.PowerState, want)
	case restart:
		e.Fact = fmt.Sprintf("node %s was not restarted", label)
	}
	return e
}

// kindNeverOff is the kind of an error which says that Ironic never switches a machine off.
const kindNeverOff failure.Kind = "never off"

// NeverOff says that Ironic must never switch a node off.
func NeverOff(node *ironic.Node) *failure.Error {
	return &failure.Error{Kind: kindNeverOff, Node: node, Fact: fmt.Sprintf("Ironic never switches node %s off, because disable_power_off is set on it. Remove power_state = \"off\", or set disable_power_off = false on its metal_host first", ironic.NodeLabel(node))}
}
