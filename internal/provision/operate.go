package provision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// PowerAction is a change of a machine's power that an action requests.
type PowerAction string

// The power actions. The soft ones ask the operating system, and need VersionSoftPower.
const (
	ActionOn         PowerAction = "on"
	ActionOff        PowerAction = "off"
	ActionReboot     PowerAction = "reboot"
	ActionSoftOff    PowerAction = "soft_off"
	ActionSoftReboot PowerAction = "soft_reboot"
)

// Operate reads a machine that an action operates. Until the caller calls done, another call for the same machine waits.
func (c *Site) Operate(ctx context.Context, ref string) (m *Machine, done func(), err error) {
	m, err = c.Machine(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	done, waited, err := c.Hold(ctx, m.node.UUID)
	if err == nil && waited {
		if err = m.Refresh(ctx); err != nil {
			done()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return m, done, nil
}

// Tell calls tell with the state of the machine now and after each change that the record sees, and if the machine waits for a slot. tell
// must be safe for concurrent use.
func (m *Machine) Tell(tell func(status string)) {
	m.tell = tell
	m.tellState()
}

// tellState tells the state of the machine, unless it has been told.
func (m *Machine) tellState() {
	if m.tell == nil {
		return
	}
	if now := statusOf(m.node); now != m.told {
		m.told = now
		m.tell(now)
	}
}

// statusOf describes the state of a node, such as "node rack1-01: active, power on".
func statusOf(n *ironic.Node) string {
	text := fmt.Sprintf("node %s: %s", ironic.NodeLabel(n), n.ProvisionState)
	if n.PowerState != "" {
		text += ", " + n.PowerState
	}
	if n.TargetPowerState != "" {
		text += ", changing to " + n.TargetPowerState
	}
	if n.Maintenance {
		text += ", in maintenance"
	}
	return text
}

// queuedAfter is how long a machine waits for a slot before tellQueued says so.
const queuedAfter = 5 * time.Second

// tellQueued tells that the machine waits for a slot unless admitted is called soon. admitted may be called more than once.
func (m *Machine) tellQueued() (admitted func()) {
	if m.tell == nil {
		return func() {}
	}
	tell, text := m.tell, fmt.Sprintf("node %s: waits for a slot of the provisioning limit", ironic.NodeLabel(m.node))
	var once sync.Once
	timer := time.AfterFunc(queuedAfter, func() { once.Do(func() { tell(text) }) })
	return func() {
		timer.Stop()
		once.Do(func() {})
	}
}

// refuse returns an error of KindRefused.
func (m *Machine) refuse(reason string, args ...any) error {
	return RefusedFor(m.node, fmt.Sprintf(reason, args...))
}

// refuseBusy returns an error of KindRefused while Ironic has an operation in progress on the machine.
func (m *Machine) refuseBusy() error {
	if inProgress(m.state()) {
		return m.refuse("an operation on it is in progress. Invoke the action again when that has ended")
	}
	return nil
}

// refuseUsed returns an error of KindRefused if something is deployed on the machine, or if it is reserved.
func (m *Machine) refuseUsed(doing string) error {
	switch {
	case occupied(m.state()):
		return m.refuse("something is deployed on it. Ironic %s a machine only while it is free: destroy its metal_deployment first", doing)
	case m.node.InstanceUUID != "":
		return m.refuse("it is reserved by %s. Ironic %s a machine only while it is free: destroy its metal_allocation first", m.node.InstanceUUID, doing)
	}
	return nil
}

// awaitEnd waits for the end of an operation in progress. timeout is the time-out that ends at the deadline.
func (m *Machine) awaitEnd(ctx context.Context, deadline time.Time, timeout time.Duration) error {
	for inProgress(m.state()) || isLocked(m.node) {
		err := m.poll(ctx, deadline)
		if errors.Is(err, ironic.ErrNoPoll) {
			return Late(m.node, "", timeout, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ChangePower does a power action and waits for its end.
func (m *Machine) ChangePower(ctx context.Context, action PowerAction, timeout time.Duration) (err error) {
	if err := m.refuseBusy(); err != nil {
		return err
	}
	switch action {
	case ActionOn:
		err = m.SetPower(ctx, true, timeout)
	case ActionOff:
		err = m.SetPower(ctx, false, timeout)
	case ActionSoftOff:
		err = m.SwitchOff(ctx, OffSoft, timeout)
	case ActionReboot:
		err = m.Reboot(ctx, timeout)
	case ActionSoftReboot:
		err = m.reboot(ctx, nodes.SoftRebooting, timeout)
	}
	switch {
	case isSoftUnsupported(err):
		return m.refuse("its driver, %s, cannot ask an operating system to shut down. Use action = \"off\" or \"reboot\"", m.node.Driver)
	case Is(err, kindNeverOff):
		return m.refuse("disable_power_off is set on it. Use action = \"reboot\", or set disable_power_off = false on its metal_host first")
	}
	return err
}

// Service runs the steps of an order on the deployed machine. It refuses steps that erase disks.
func (m *Machine) Service(ctx context.Context, order ironic.Order, timeout time.Duration) error {
	if !Serviceable(m.state()) {
		return m.refuse("Ironic services only deployed machines. For a free one, use the action metal_clean")
	}
	erasing, err := m.site.ErasingSteps(ctx, order)
	if err != nil {
		return err
	}
	if len(erasing) > 0 {
		return m.refuse("it is deployed, and %s would erase its disks", strings.Join(erasing, ", "))
	}
	return m.runSteps(ctx, true, order, timeout)
}

// Clean runs the steps of an order on the free, manageable machine. It refuses steps that erase disks unless erase is true.
func (m *Machine) Clean(ctx context.Context, order ironic.Order, erase bool, timeout time.Duration) error {
	if err := m.awaitEnd(ctx, time.Now().Add(timeout), timeout); err != nil {
		return err
	}
	if err := m.refuseUsed("cleans"); err != nil {
		return err
	}
	if !cleanable(m.state()) {
		return m.refuse("Ironic cleans only manageable machines with steps of your own. Set target_state = \"manageable\" on its metal_host first")
	}
	if !erase {
		erasing, err := m.site.ErasingSteps(ctx, order)
		if err != nil {
			return err
		}
		if len(erasing) > 0 {
			return m.refuse("%s would erase its disks. If that is what you want, set erase = true", strings.Join(erasing, ", "))
		}
	}
	return m.runSteps(ctx, false, order, timeout)
}

// ErasingSteps returns the names of the steps of an order that erase disks, or replace volumes. It reads a runbook.
func (c *Site) ErasingSteps(ctx context.Context, order ironic.Order) (names []string, err error) {
	steps := order.Steps
	if order.Runbook != "" {
		runbook, err := ironic.ReadIn[ironic.Procedure](ctx, c.Client, ironic.Runbooks, order.Runbook)
		if err != nil {
			return nil, err
		}
		for _, step := range runbook.Steps {
			steps = append(steps, ironic.CleanStep{Interface: step.Interface, Step: step.Step})
		}
	}
	for _, step := range steps {
		if Erases(step) {
			names = append(names, step.String())
		}
	}
	return names, nil
}

// Erases reports whether a step erases disks or replaces volumes, as far as its name tells.
func Erases(step ironic.CleanStep) bool {
	if step.Interface == "raid" {
		return true
	}
	name := strings.ToLower(step.Step) // drivers of other makers name theirs as they like
	return slices.ContainsFunc([]string{"erase", "wipe", "sanitize", "format", "burnin_disk", "write_image"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// Inspect inspects the free machine. A machine that was available becomes available again, for which Ironic may clean it.
func (m *Machine) Inspect(ctx context.Context, timeout time.Duration) error {
	if err := m.refuseUsed("inspects"); err != nil {
		return err
	}
	if !Preparable(m.node) {
		return m.refuse("%s", reasonNoBMC)
	}
	pool := InPool(m.node)
	err := m.Reach(ctx, GoalInspected, timeout)
	if err == nil && pool {
		err = m.Reach(ctx, GoalAvailable, timeout)
	}
	return err
}

// Abort ends an operation that waits for the machine or is held, and waits until Ironic has done that.
func (m *Machine) Abort(ctx context.Context, timeout time.Duration) error {
	since, can := abortable(m.state())
	if !can {
		return m.refuse("Ironic can end an operation only while it waits for the machine or is held, and there is none")
	}
	if err := m.site.Requires(ctx, since, fmt.Sprintf("ending an operation in state %q", m.state())); err != nil {
		return err
	}
	if err := m.clearFault(ctx); err != nil {
		return err
	}
	from, deadline := m.state(), time.Now().Add(timeout)
	if err := m.insistOn(ctx, nodes.TargetAbort, timeout); err != nil {
		return err
	}
	err := m.awaitLeft(ctx, from, deadline)
	if errors.Is(err, ironic.ErrNoPoll) {
		return Late(m.node, "", timeout, nil)
	}
	return err
}

// Unhold continues an operation that a step holds, and waits for its end.
func (m *Machine) Unhold(ctx context.Context, timeout time.Duration) error {
	if !held(m.state()) {
		return m.refuse("no step holds it")
	}
	w := &walk{Machine: m, timeout: timeout, deadline: time.Now().Add(timeout), failures: failures(m.node)}
	m.site.limiter.Begin(m.node.UUID)
	defer m.site.limiter.End()
	from := m.state()
	err := m.untilSettled(ctx, timeout, func() error {
		return w.admitted(ctx, nodes.TargetUnhold, func(ctx context.Context) error { return m.put(ctx, ironic.Order{Verb: nodes.TargetUnhold}) })
	})
	if errors.Is(err, errMoved) {
		return m.refuse("its state has changed meanwhile")
	}
	if err == nil {
		err = m.awaitLeft(ctx, from, w.deadline)
	}
	if errors.Is(err, ironic.ErrNoPoll) {
		return Late(m.node, "", timeout, nil)
	}
	if err == nil {
		err = m.awaitEnd(ctx, w.deadline, timeout)
	}
	if err == nil && failed(m.state()) {
		return FailedOn(m.node, "", "", nil)
	}
	return err
}

// keyBootISO is the key of instance_info with the URL of a live ISO.
const keyBootISO = "boot_iso"

// ChangeMedia inserts an image into a virtual device of the machine, in place of another, and waits for that. An empty image empties the
// device.
func (m *Machine) ChangeMedia(ctx context.Context, device ironic.Device, image string, timeout time.Duration) error {
	if err := m.refuseBusy(); err != nil {
		return err
	}
	if runs, _ := m.node.InstanceInfo[keyBootISO].(string); runs != "" && device == ironic.DeviceCDROM && occupied(m.state()) {
		return m.refuse("it runs a live ISO, which may be in its virtual CD drive. Use another device, or change live_iso of its metal_deployment")
	}
	if err := m.permitted(ctx, timeout); err != nil {
		return err
	}
	deadline, id := time.Now().Add(timeout), m.node.UUID
	err := m.manageMedia(ctx, whatDetach, deadline, func(ctx context.Context) error { return m.site.DetachMedia(ctx, id, device) })
	if err == nil && image != "" {
		err = m.manageMedia(ctx, whatAttach, deadline, func(ctx context.Context) error { return m.site.AttachMedia(ctx, id, device, image) })
	}
	return err
}

// SendNMI sends the machine a non-maskable interrupt (reference/ironic.md#nmi).
func (m *Machine) SendNMI(ctx context.Context, timeout time.Duration) error {
	if err := m.refuseBusy(); err != nil {
		return err
	}
	if m.node.PowerState == powerOff {
		return m.refuse("it is switched off, so that an NMI has no effect")
	}
	if err := m.permitted(ctx, timeout); err != nil {
		return err
	}
	err := m.insist(ctx, callWithoutTrace("send an NMI to the machine"), max(timeout, settleFor), func(ctx context.Context) error {
		return m.site.InjectNMI(ctx, m.node.UUID)
	})
	if ironic.IsStatus(err, http.StatusBadRequest, "does not support inject_nmi") {
		return &Error{Node: m.node, Fact: fmt.Sprintf("node %s: its management interface, %s, cannot send an NMI", ironic.NodeLabel(m.node), m.node.ManagementInterface), Err: err}
	}
	return err
}

// permitted asks the guard about an operation that changes neither power nor provision state, and reads the machine.
func (m *Machine) permitted(ctx context.Context, timeout time.Duration) error {
	if err := m.site.guard.Check(ctx, Step{Node: m.node, Stage: BeforeQueue, Limit: timeout}); err != nil {
		return err
	}
	if err := m.confirmUnchanged(ctx, nil); err != nil {
		if errors.Is(err, errMoved) {
			return m.refuse("its state has changed meanwhile")
		}
		return err
	}
	return m.site.guard.Check(ctx, Step{Node: m.node, Stage: BeforeVerb})
}
