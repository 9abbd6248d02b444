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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// KeyPowerChanged is when Ironic has last begun to change the power, in driver_internal_info.
const KeyPowerChanged = "last_power_state_change"

// LastPowerChange returns when Ironic last changed a node's power, in Ironic's format.
func LastPowerChange(n *ironic.Node) string {
	return cmp.Or(PowerChangedAt(n), "never")
}

// PowerChangedAt is LastPowerChange, or "" if the record does not tell.
func PowerChangedAt(n *ironic.Node) string {
	text, _ := n.DriverInternalInfo[KeyPowerChanged].(string)
	return text
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

// SoftOffTimeout is how long OffGraceful gives the operating system.
const SoftOffTimeout = 3 * time.Minute

// cutsPower reports whether a mode never asks the operating system.
func (how OffMode) cutsPower() bool { return how != OffSoft && how != OffGraceful }

// Power returns "on" or "off"; empty if Ironic does not know the power state.
func Power(n *ironic.Node) string { return strings.TrimPrefix(n.PowerState, "power ") }

// Started reports whether Ironic has accepted, in this call, a power change after which the machine is on.
func (m *Machine) Started() bool { return m.started }

// SetPower switches the machine on or off and waits for it. It sends nothing if the record shows the wanted power state.
func (m *Machine) SetPower(ctx context.Context, on bool, timeout time.Duration) error {
	return m.setPower(ctx, m.footing(), on, timeout)
}

// setPower is SetPower for a machine that still is as it was.
func (m *Machine) setPower(ctx context.Context, was footing, on bool, timeout time.Duration) error {
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
	return m.changePower(ctx, powerChange{was: was, to: target, want: want}, timeout)
}

// SwitchOff switches the machine off and waits for it. The time-out is that of the hard power-off, and of OffSoft.
func (m *Machine) SwitchOff(ctx context.Context, how OffMode, timeout time.Duration) error {
	if m.node.PowerState == powerOff && m.node.TargetPowerState == "" {
		return nil
	}
	was := m.footing()
	if err := m.awaitPowerChange(ctx, timeout); err != nil {
		return err
	}
	if m.node.PowerState == powerOn && !how.cutsPower() {
		if err := m.shutDown(ctx, how, powerChange{was: was, to: nodes.SoftPowerOff, want: powerOff}, timeout); err != nil {
			return err
		}
	}
	return m.setPower(ctx, was, false, timeout)
}

// shutDown asks the operating system of a machine that is on to shut down, and waits for that. With OffGraceful, a machine that stays on is
// no error: its power is to be cut, and PowerCut says why.
func (m *Machine) shutDown(ctx context.Context, how OffMode, change powerChange, timeout time.Duration) error {
	if how == OffGraceful {
		change.asks, timeout = SoftOffTimeout, SoftOffTimeout+time.Minute // Ironic ends it in time
	}
	err := m.changePower(ctx, change, timeout)
	unsupported, never := isSoftUnsupported(err), change.restarts && failure.Is(err, kindNeverOff)
	switch {
	case ctx.Err() != nil, !unsupported && !never && !failure.Is(err, KindPower):
		return err
	case m.node.PowerState == powerOff:
		return nil
	case how == OffSoft:
		return m.staysOn(err)
	case never:
		m.cut = "disable_power_off is set on it, so that Ironic never shuts it down"
	case unsupported:
		m.cut = fmt.Sprintf("the driver %s cannot ask an operating system to shut down", m.node.Driver)
	default:
		m.cut = fmt.Sprintf("its operating system did not shut down within %s", SoftOffTimeout)
	}
	m.logInfo(ctx, "loses its power: "+m.cut)
	return nil
}

func (m *Machine) staysOn(err error) *failure.Error {
	label := ironic.NodeLabel(m.node)
	switch {
	case isSoftUnsupported(err):
		return &failure.Error{Node: m.node, Err: err, Fact: fmt.Sprintf("node %s was not switched off: its driver, %s, cannot ask an "+
			"operating system to shut down. Set power_off_mode to graceful or hard",
			label, m.node.Driver)}
	case failure.Is(err, kindNeverOff):
		return &failure.Error{Kind: kindNeverOff, Node: m.node, Fact: fmt.Sprintf("node %s was not restarted, because disable_power_off "+
			"is set on it: Ironic never shuts it down. Set power_off_mode to graceful or hard, which cut its power", label)}
	}
	return &failure.Error{
		Kind: KindPower, Node: m.node, Fact: fmt.Sprintf("node %s is still on: Ironic has asked its operating system to shut down", label),
		Words: api.FirstLine(m.node.LastError),
		Advice: "Look at the machine's console. Then apply again; with power_off_mode = \"graceful\", that cuts the power of a machine " +
			"that does not shut down.",
		Action: "Look at the machine's console, and try again, or cut the power: \"off\" or \"reboot\", without soft.",
	}
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
	return []decide.Notice{decide.Warn(decide.At("power_off_mode"), "Power was cut",
		fmt.Sprintf("Node %s lost its power without a shutdown: %s.", ironic.NodeLabel(m.node), m.cut))}
}

// Reboot switches the machine off and on, or only on if it is off, and waits for it. OffSoft and OffGraceful switch it off as for
// SwitchOff: an operating system may ignore Ironic's "soft rebooting", which does not always show that (reference/ironic.md#soft-restarts).
func (m *Machine) Reboot(ctx context.Context, how OffMode, timeout time.Duration) error {
	return m.RebootOnce(ctx, how, timeout, func(context.Context) (bool, error) { return false, nil })
}

// RebootOnce is Reboot, unless done reports right before the first request, while the machine has a slot, that another run has begun to
// restart it: then RebootOnce waits for the end of that.
func (m *Machine) RebootOnce(
	ctx context.Context, how OffMode, timeout time.Duration, done func(context.Context) (bool, error),
) (err error) {
	was, others := m.footing(), false
	first := func(ctx context.Context) (bool, error) {
		others, err = done(ctx)
		return others, err
	}
	if err := m.awaitPowerChange(ctx, timeout); err != nil {
		return err
	}
	if m.node.PowerState == powerOn && !how.cutsPower() {
		defer m.KeepSlot()() // while it is off, it must not wait for a slot
		asks := powerChange{was: was, to: nodes.SoftPowerOff, want: powerOff, restarts: true, done: first}
		if err := m.shutDown(ctx, how, asks, timeout); err != nil {
			return m.leftDown(ctx, err)
		}
		first = nil
	}
	switch {
	case others:
	case m.node.PowerState == powerOff:
		err = m.leftDown(ctx, m.changePower(ctx, powerChange{was: was, to: nodes.PowerOn, want: powerOn, done: first}, timeout))
	default:
		err = m.changePower(ctx, powerChange{was: was, to: nodes.Rebooting, want: powerOn, restarts: true, done: first}, timeout)
	}
	if err == nil && others {
		return m.awaitPower(ctx, powerOn, true, timeout)
	}
	return err
}

// leftDown returns the error of a restart, as one of failure.KindDown if the machine was shut down for it, or still may be, and was not
// switched on again.
func (m *Machine) leftDown(ctx context.Context, err error) error {
	if err == nil || !m.down || m.started || m.node.PowerState == powerOn && ctx.Err() == nil {
		return err
	}
	return &failure.Error{
		Kind: failure.KindDown, Node: m.node, Err: err, Fact: fmt.Sprintf("node %s is off, and was not switched on again: %v",
			ironic.NodeLabel(m.node), err),
		Advice: "Apply again to switch it on.", Action: "Switch the machine on: metal_power with action = \"on\", or metal power on.",
	}
}

// awaitPowerChange waits for the end of a power change that an earlier run or another client has begun, because Ironic refuses
// any other change until then.
func (m *Machine) awaitPowerChange(ctx context.Context, timeout time.Duration) error {
	if m.node.TargetPowerState == "" {
		return nil
	}
	return m.AwaitUnlocked(ctx, time.Now().Add(timeout))
}

type powerChange struct {
	was      footing // the machine as it was when the change was wanted
	to       nodes.TargetPowerState
	want     string        // the power state that it leads to
	asks     time.Duration // how long Ironic waits for the operating system; zero: as its configuration says
	restarts bool          // it restarts the machine, or begins that
	// done reports right before the request that it is not needed any more; nil: it is
	done func(context.Context) (bool, error)
}

// changePower requests a power change and waits for its end; the time-out starts with the request.
func (m *Machine) changePower(ctx context.Context, c powerChange, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, string(c.to))
	defer func() { m.end(traced, err) }()
	if c.want == powerOff {
		if err := m.CheckOff(); err != nil {
			return err
		}
	}
	if m.down && c.want == powerOn {
		ctx = throttle.Completing(ctx) // otherwise the machine would stay off
	}
	again := c.to == nodes.Rebooting // it leads to the power state that the machine has
	needed := func() bool { return again || m.node.PowerState != c.want || m.node.TargetPowerState != "" }
	from := m.node.PowerState
	sent, err := m.order(ctx, c, c.call(again), timeout, needed, func(ctx context.Context) error {
		return m.site.Ironic.ChangePowerState(ctx, m.node.UUID, c.to, c.asks)
	})
	if err != nil || !sent {
		return err
	}
	m.logInfo(ctx, fmt.Sprintf("starts to change its power: %s -> %s", cmp.Or(from, "unknown"), c.to), "power", from,
		"target", string(c.to))
	if m.down = m.down || c.restarts && c.want == powerOff; c.want == powerOn {
		m.started = true
		defer m.site.limiter.Started(m.node.UUID)
	}
	return m.awaitPower(ctx, c.want, again, timeout)
}

// call returns the request of the power change. Ironic records when it begins one, also when the machine is restarted, after which it has
// the same power state.
func (c powerChange) call(again bool) Call {
	doing := "switch the machine off"
	switch {
	case again:
		doing = "restart the machine"
	case c.want == powerOn:
		doing = "switch the machine on"
	}
	return Call{doing: doing, trace: func(before, now *ironic.Node, sent time.Time) trace {
		last, begun := LastPowerChange(now), ironic.InternalTime(now, KeyPowerChanged)
		switch {
		case now.TargetPowerState != "", !again && now.PowerState == c.want:
			return traceFound
		case now.Hidden.DriverInternalInfo:
			return traceHidden
		case last == LastPowerChange(before):
			return traceNone
		case begun.Before(sent.Add(-clock.Slack)): // perhaps another client's: before may be older than the last full read
			return traceHidden
		}
		return traceFound
	}}
}

// order sends a request that changes a machine's power, if the guard allows it, and reports whether it was still needed then. A change that
// starts the machine, or begins to restart it, waits for a slot. order returns an error of KindRefused if the machine's instance or
// provision state is another than when the change was wanted. It repeats a request without an answer only if Ironic has not executed it,
// and waits while Ironic refuses it because the node is locked: another client may have begun to change the power.
func (m *Machine) order(ctx context.Context, change powerChange, c Call, timeout time.Duration, needed func() bool,
	send func(context.Context) error,
) (sent bool, err error) {
	deadline := time.Now().Add(timeout)
	ctx = throttle.InPlaceOf(ctx, time.Now())
	err = m.asItWas(ctx, change.was, &deadline, func() error {
		return m.untilSettled(ctx, timeout, &deadline, func() error {
			return m.orderOnce(ctx, change, timeout, &deadline, func(ctx context.Context) error {
				if change.done != nil {
					if done, err := change.done(ctx); done || err != nil {
						return err
					}
				}
				if sent = needed(); !sent {
					return nil
				}
				return m.ask(ctx, c, send)
			})
		})
	})
	return sent, err
}

// orderOnce is order without the search for the result; send may find that the request is not needed. The wait for a slot puts the deadline
// off.
func (m *Machine) orderOnce(ctx context.Context, change powerChange, timeout time.Duration, deadline *time.Time,
	send func(context.Context) error,
) error {
	if m.footing() != change.was { // since an earlier request whose answer was lost, or which an operation in progress delayed
		return m.AsItIs()
	}
	if err := m.site.guard.Check(ctx, Step{Node: m.node, Power: change.to, Stage: BeforeQueue, Limit: timeout}); err != nil {
		return err
	}
	admitted := m.tellQueued()
	defer admitted()
	queued := time.Now()
	put := func(ctx context.Context, seen *ironic.Node) error {
		admitted()
		*deadline, queued = deadline.Add(time.Since(queued)), time.Now()
		if err := m.confirmAs(ctx, change.was, seen); err != nil {
			return err
		}
		if err := m.site.guard.Check(ctx, Step{Node: m.node, Power: change.to, Stage: BeforeVerb}); err != nil {
			return err
		}
		return send(ctx)
	}
	var err error
	switch {
	case change.want == powerOff && change.restarts:
		err = m.site.limiter.Pass(ctx, m.node, notes.Failures(m.node), put)
	case change.want == powerOff:
		err = put(ctx, nil)
	default:
		err = m.site.limiter.PassStart(ctx, m.node, notes.Failures(m.node), put)
	}
	if errors.Is(err, errMoved) {
		return m.AsItIs()
	}
	return err
}

// awaitPower waits until a power change has ended, and is the one place that judges how: Ironic tells a failure by last_error only, which
// it clears when a change begins (reference/ironic.md#requests-without-an-answer). A machine has the same power state before and after a
// restart, also a failed one.
func (m *Machine) awaitPower(ctx context.Context, want string, restart bool, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		err := m.poll(ctx, deadline)
		if err == nil && m.node.TargetPowerState == "" {
			err = m.learnError(ctx)
		}
		switch {
		case errors.Is(err, api.ErrNoPoll):
			return powerLate(m.node, timeout)
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

func powerLate(node *ironic.Node, after time.Duration) *failure.Error {
	const check = "Check the machine's BMC and console. If it needs longer, "
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("node %s is still %q after %s", ironic.NodeLabel(node), node.PowerState, after),
		Advice: check + "raise timeouts. Then apply again.", Action: check + "raise the time-out (timeouts, or --timeout). Then try again.",
	}
}

// KindPower is the kind of an error which says that a power change has failed.
const KindPower failure.Kind = "power"

// powerFailed returns such an error with the power state and Ironic's reason.
func powerFailed(node *ironic.Node, want string, restart bool) *failure.Error {
	label := ironic.NodeLabel(node)
	e := &failure.Error{
		Kind: KindPower, Node: node, Fact: fmt.Sprintf("node %s: Ironic could not change its power", label),
		Words:  api.FirstLine(node.LastError),
		Advice: "Check the machine's BMC, then apply again." + failure.OrAskIPMI(node), Action: "Check the machine's BMC, and try again." +
			failure.OrAskIPMI(node),
	}
	switch {
	case node.PowerState == "":
		e.Fact = fmt.Sprintf("Ironic does not know the power state of node %s, which must be %q", label, want)
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
	return &failure.Error{
		Kind: kindNeverOff, Node: node,
		Fact: fmt.Sprintf("Ironic never switches node %s off, because disable_power_off is set on it. Remove power_state = \"off\", or "+
			"set disable_power_off = false on its metal_host first", ironic.NodeLabel(node)),
	}
}
