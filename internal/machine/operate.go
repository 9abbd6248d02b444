package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
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

func (m *Machine) refuse(reason string, args ...any) error {
	return RefusedFor(m.node, fmt.Sprintf(reason, args...))
}

func (m *Machine) refuseBusy() error {
	if states.InProgress(m.State()) {
		return m.refuse("an operation on it is in progress. Try again when that has ended")
	}
	return nil
}

// UsedReason says why Ironic may not do something that is only for free machines, such as "cleans": something is deployed on the node, or
// it is reserved. It returns "" if the node is free.
func UsedReason(node *ironic.Node, doing string) string {
	switch {
	case states.IsOccupied(node):
		return fmt.Sprintf("something is deployed on it. Ironic %s a machine only while it is free: destroy its metal_deployment, or use "+
			"metal undeploy, first", doing)
	case node.InstanceUUID != "":
		return fmt.Sprintf("it is reserved by %s. Ironic %s a machine only while it is free: destroy its metal_allocation, or use metal "+
			"release, first", node.InstanceUUID, doing)
	}
	return ""
}

// refuseUsed returns an error of KindRefused unless the machine is free.
func (m *Machine) refuseUsed(doing string) error {
	if reason := UsedReason(m.node, doing); reason != "" {
		return m.refuse("%s", reason)
	}
	return nil
}

// BootFrom makes the machine boot from a device: from now on if persistent, else at its next start only.
func (m *Machine) BootFrom(ctx context.Context, device ironic.Device, persistent bool, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, "boot-device set")
	defer func() { m.end(traced, err) }()
	if err := m.refuseBusy(); err != nil {
		return err
	}
	if err := m.permitted(ctx, timeout); err != nil {
		return err
	}
	return m.ManageMedia(ctx, WhatBootDevice, time.Now().Add(timeout), func(ctx context.Context) error {
		return m.site.Ironic.SetBootDevice(ctx, m.node.UUID, device, persistent)
	})
}

// awaitEnd waits for the end of an operation in progress. timeout is the time-out that ends at the deadline.
func (m *Machine) awaitEnd(ctx context.Context, deadline time.Time, timeout time.Duration) error {
	for states.InProgress(m.State()) || states.IsLocked(m.node) {
		err := m.poll(ctx, deadline)
		if errors.Is(err, api.ErrNoPoll) {
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
		err = m.Reboot(ctx, OffHard, timeout)
	case ActionSoftReboot:
		err = m.Reboot(ctx, OffSoft, timeout)
	}
	switch {
	case isSoftUnsupported(err):
		return m.refuse("its driver, %s, cannot ask an operating system to shut down. Cut its power instead: \"off\" or \"reboot\", "+
			"without soft", m.node.Driver)
	case failure.Is(err, kindNeverOff):
		return m.refuse("disable_power_off is set on it. Use \"reboot\" without soft, or set disable_power_off = false on its " +
			"metal_host first")
	}
	return err
}

// Inspect inspects the free machine. If pool, it becomes available at the end, for which Ironic may clean it.
func (m *Machine) Inspect(ctx context.Context, pool bool, timeout time.Duration) error {
	if err := m.refuseUsed("inspects"); err != nil {
		return err
	}
	if !Preparable(m.node) {
		return m.refuse("%s", states.ReasonNoBMC)
	}
	if pool {
		defer m.KeepSlot()() // between the inspection and the cleaning no allocation can reserve it
	}
	err := m.Reach(ctx, states.GoalInspected, timeout)
	if err == nil && pool {
		err = m.Reach(ctx, states.GoalAvailable, timeout)
	}
	return err
}

// Service runs the steps of an order on the deployed machine. It refuses steps that erase disks.
func (m *Machine) Service(ctx context.Context, order ironic.Order, timeout time.Duration) error {
	if !states.Serviceable(m.State()) {
		return m.refuse("Ironic services only deployed machines. Clean a free one instead: the action metal_clean, or metal clean")
	}
	erasing, err := m.site.ErasingSteps(ctx, order)
	if err != nil {
		return err
	}
	if len(erasing) > 0 {
		return m.refuse("it is deployed, and %s would erase its disks", strings.Join(erasing, ", "))
	}
	defer m.NoteWork(ctx)
	return m.RunSteps(ctx, true, order, timeout)
}

// MayErase is the end of the sentence that refuses a cleaning with steps that erase disks.
const MayErase = " would erase its disks. If that is what you want, set erase = true, or use metal clean --erase"

// BurnsDisks is a step of Ironic's agent that writes to all disks, whatever skip_block_devices says (reference/ironic.md#burn-in).
const BurnsDisks = "deploy.burnin_disk"

// Clean runs the steps of an order on the free, manageable machine. It refuses steps that erase disks unless erase is true, and always
// those that would erase disks that the node keeps.
func (m *Machine) Clean(ctx context.Context, order ironic.Order, erase bool, timeout time.Duration) error {
	if err := m.awaitEnd(ctx, time.Now().Add(timeout), timeout); err != nil {
		return err
	}
	if err := m.refuseUsed("cleans"); err != nil {
		return err
	}
	if !states.Cleanable(m.State()) {
		return m.refuse("Ironic cleans only manageable machines with steps of your own. Make it so first: set target_state = " +
			"\"manageable\" on its metal_host, or use metal manage")
	}
	if err := m.refuseErasing(ctx, order, erase); err != nil {
		return err
	}
	return m.RunSteps(ctx, false, order, timeout)
}

// refuseErasing refuses steps that erase disks, unless erase, and those that would erase disks that the node keeps.
func (m *Machine) refuseErasing(ctx context.Context, order ironic.Order, erase bool) error {
	kept := disks.HintsOf(m.node.Properties)
	if erase && len(kept) == 0 {
		return nil
	}
	erasing, err := m.site.ErasingSteps(ctx, order)
	switch {
	case err != nil:
		return err
	case !erase && len(erasing) > 0:
		return m.refuse("%s", strings.Join(erasing, ", ")+MayErase)
	case slices.Contains(erasing, BurnsDisks):
		return m.refuse("%s would write to all its disks, also to those that skip_block_devices keeps: %s", BurnsDisks, disks.Names(kept))
	}
	return nil
}

// Abort ends an operation that waits for the machine or is held, and waits until Ironic has done that.
func (m *Machine) Abort(ctx context.Context, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, "abort")
	defer func() { m.end(traced, err) }()
	since, can := states.Abortable(m.State())
	if !can {
		return m.refuse("Ironic can end an operation only while it waits for the machine or is held, and there is none")
	}
	if err := m.site.Ironic.Requires(ctx, since, fmt.Sprintf("ending an operation in state %q", m.State())); err != nil {
		return err
	}
	if err := m.permitted(ctx, timeout); err != nil { // Ironic switches the machine off
		return err
	}
	if err := m.clearFault(ctx); err != nil {
		return err
	}
	from := m.State()
	if err := m.insistOn(ctx, nodes.TargetAbort, timeout); err != nil {
		return err
	}
	err = m.awaitLeft(ctx, from, time.Now().Add(timeout))
	if errors.Is(err, api.ErrNoPoll) {
		return Late(m.node, "", timeout, nil)
	}
	return err
}

// Unhold continues an operation that a step holds, and waits for its end.
func (m *Machine) Unhold(ctx context.Context, timeout time.Duration) (err error) {
	if !states.Held(m.State()) {
		return m.refuse("no step holds it")
	}
	ctx, traced := m.begin(ctx, "unhold")
	defer func() { m.end(traced, err) }()
	w := &walk{Machine: m, timeout: timeout, deadline: time.Now().Add(timeout), failures: notes.Failures(m.node)}
	m.site.limiter.Begin(m.node.UUID)
	defer m.site.limiter.End()
	from := m.State()
	err = m.untilSettled(ctx, timeout, &w.deadline, func() error {
		return w.admitted(ctx, nodes.TargetUnhold, func(ctx context.Context) error {
			return m.put(ctx, ironic.Order{Verb: nodes.TargetUnhold})
		})
	})
	if errors.Is(err, errMoved) {
		return m.refuse("its state has changed meanwhile")
	}
	if err == nil {
		err = m.awaitLeft(ctx, from, w.deadline)
	}
	if errors.Is(err, api.ErrNoPoll) {
		return Late(m.node, "", timeout, nil)
	}
	if err == nil {
		err = m.awaitEnd(ctx, w.deadline, timeout)
	}
	if err == nil && states.Failed(m.State()) {
		return FailedOn(m.node, "", "", nil)
	}
	return err
}

// SendNMI sends the machine a non-maskable interrupt (reference/ironic.md#nmi).
func (m *Machine) SendNMI(ctx context.Context, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, "nmi")
	defer func() { m.end(traced, err) }()
	if err := m.refuseBusy(); err != nil {
		return err
	}
	if m.node.PowerState == powerOff {
		return m.refuse("it is switched off, so that an NMI has no effect")
	}
	if err := m.permitted(ctx, timeout); err != nil {
		return err
	}
	err = m.Insist(ctx, CallWithoutTrace("send an NMI to the machine"), max(timeout, settleFor), func(ctx context.Context) error {
		return m.site.Ironic.InjectNMI(ctx, m.node.UUID)
	})
	if api.IsStatus(err, http.StatusBadRequest, "does not support inject_nmi") {
		return &failure.Error{Node: m.node, Fact: fmt.Sprintf("node %s: its management interface, %s, cannot send an NMI",
			ironic.NodeLabel(m.node), m.node.ManagementInterface), Err: err}
	}
	return err
}

// permitted waits until no conductor has locked the machine, asks the guard about an operation that changes neither power nor provision
// state, and reads the machine.
func (m *Machine) permitted(ctx context.Context, timeout time.Duration) error {
	if _, err := m.Thawed(ctx, timeout); err != nil {
		return err
	}
	if err := m.AwaitUnlocked(ctx, time.Now().Add(timeout)); err != nil { // a killed run may have begun to change it
		return err
	}
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

// ChangeMedia inserts an image into a virtual device of the machine, in place of another, and waits for that. An empty image empties the
// device.
func (m *Machine) ChangeMedia(ctx context.Context, device ironic.Device, image string, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, map[bool]string{true: "virtual-media detach", false: "virtual-media attach"}[image == ""])
	defer func() { m.end(traced, err) }()
	if err := m.refuseBusy(); err != nil {
		return err
	}
	if runs, _ := m.node.InstanceInfo[KeyBootISO].(string); runs != "" && device == ironic.DeviceCDROM && states.Occupied(m.State()) {
		return m.refuse("it runs a live ISO, which may be in its virtual CD drive. Use another device, or change live_iso of its " +
			"metal_deployment")
	}
	if err := m.permitted(ctx, timeout); err != nil {
		return err
	}
	deadline, id := time.Now().Add(timeout), m.node.UUID
	err = m.ManageMedia(ctx, WhatDetach, deadline, func(ctx context.Context) error { return m.site.Ironic.DetachMedia(ctx, id, device) })
	if err == nil && image != "" {
		err = m.ManageMedia(ctx, WhatAttach, deadline, func(ctx context.Context) error {
			return m.site.Ironic.AttachMedia(ctx, id, device, image)
		})
	}
	return err
}
