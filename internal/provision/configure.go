package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// HardwareChange is a change of a machine's hardware configuration.
type HardwareChange struct {
	Want, Applied Hardware
	Live          bool // change the deployed machine, by a service; else a manual cleaning
	NoRamdisk     bool // run the steps without booting Ironic's ramdisk
}

// Configure gives the machine the wanted hardware configuration and reads it back. It does not send what the machine already has.
// Unless Live is set, it leaves the machine manageable. The time-out applies to each walk. open lists the parts that may not be on
// the machine afterwards.
func (m *Machine) Configure(ctx context.Context, c HardwareChange, timeout time.Duration) (open []Part, err error) {
	open = c.Want.Work(c.Applied, Seen{}).Parts()
	if len(open) == 0 {
		return nil, nil
	}
	if !c.Live && InPool(m.node) { // leaving the pool costs a cleaning
		seen, err := m.site.SeeHardware(ctx, m.node, open)
		if err != nil {
			return open, err
		}
		if open = c.Want.Work(c.Applied, seen).Parts(); len(open) == 0 {
			return nil, nil
		}
	}
	if err := m.reachRest(ctx, c.Live, timeout); err != nil {
		return open, err
	}
	seen, err := m.site.SeeHardware(ctx, m.node, open)
	if err != nil {
		return open, err
	}
	if unfit := c.Want.Only(open).Unfit(seen); len(unfit) > 0 {
		return open, unfitError(m.node, unfit)
	}
	work := c.Want.Work(c.Applied, seen)
	open = work.Parts()
	if len(open) == 0 {
		return nil, nil
	}
	if work.RAID != nil && len(work.RAID.Volumes) > 0 {
		if err := m.site.SetRAID(ctx, m.node.UUID, work.RAID.Volumes); err != nil {
			return open, err
		}
	}
	server, err := m.site.Highest(ctx)
	if err != nil {
		return open, err
	}
	for _, part := range work.operations(server) {
		if err := m.runSteps(ctx, c.Live, ironic.Order{Steps: part.Steps(seen), NoRamdisk: c.NoRamdisk}, timeout); err != nil {
			return open, err
		}
	}
	return m.readBack(ctx, work)
}

// operations divides a configuration into what one cleaning can apply: all of it, or RAID and the rest. On older servers, a step that
// restarts the machine never ends after a RAID step that needed no restart (reference/ironic.md#steps-after-raid).
func (h Hardware) operations(server ironic.Microversion) []Hardware {
	raid, rest := h.Only([]Part{PartRAID}), h.Only([]Part{PartBIOS, PartFirmware})
	if server >= ironic.StepsAfterRAID || len(raid.Parts()) == 0 || len(rest.Parts()) == 0 {
		return []Hardware{h}
	}
	return []Hardware{raid, rest}
}

// reachRest brings the machine to a state from which steps can run: manageable, or the present state if the machine stays deployed.
// It also waits for what an interrupted run has begun.
func (m *Machine) reachRest(ctx context.Context, live bool, timeout time.Duration) error {
	switch {
	case !live:
		return m.Reach(ctx, GoalManageable, timeout)
	case !inProgress(m.state()):
		return nil
	}
	err := m.walk(ctx, GoalDeployed, m.node.InstanceUUID, ironic.Order{}, timeout)
	if m.state() == nodes.ServiceFail {
		return nil // the walk of the service repairs it
	}
	return err
}

// runSteps runs the steps of an order in a manual cleaning or, if the machine stays deployed, in a service. After a failed service it
// brings the machine back to active.
func (m *Machine) runSteps(ctx context.Context, live bool, order ironic.Order, timeout time.Duration) error {
	goal := GoalConfigured
	if live {
		goal = GoalServiced
	}
	err := m.walk(ctx, goal, m.node.InstanceUUID, order, timeout)
	failed := As(err, KindFailed)
	switch {
	case ironic.IsForbidden(err):
		return stepsForbidden(m.node, order, err)
	case live && failed != nil && m.state() == nodes.ServiceFail:
		left := m.leaveService(ctx, timeout)
		return serviceFailed(failed.Node, order, m.state(), left)
	}
	return err
}

// leaveService ends a failed service: it ends the maintenance that Ironic has set, and aborts the service, so that the machine is
// active again. Ironic can do that since API 1.97; older versions keep the node in service failed.
func (m *Machine) leaveService(ctx context.Context, timeout time.Duration) error {
	if version, err := m.site.Highest(ctx); err != nil || version < ironic.VersionServiceAbort {
		return err
	}
	if err := m.clearFault(ctx); err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	if err := m.insistOn(ctx, nodes.TargetAbort, timeout); err != nil {
		return err
	}
	return m.awaitLeft(ctx, nodes.ServiceFail, deadline)
}

// awaitLeft waits until the machine has left a state and no conductor has locked it.
func (m *Machine) awaitLeft(ctx context.Context, from ironic.State, deadline time.Time) error {
	for m.state() == from || isLocked(m.node) {
		if err := m.poll(ctx, deadline); err != nil {
			return err
		}
	}
	return nil
}

// readBack compares the machine with what was sent, because Ironic leaves some steps out without an error
// (reference/ironic.md#skipped-steps).
func (m *Machine) readBack(ctx context.Context, sent Hardware) (open []Part, err error) {
	if err := m.Refresh(ctx); err != nil {
		return sent.Parts(), err
	}
	seen, err := m.site.SeeHardware(ctx, m.node, sent.Parts())
	if err != nil {
		return sent.Parts(), err
	}
	lacks := sent.lacks(seen)
	if len(lacks) == 0 {
		return nil, nil
	}
	var facts []string
	for _, l := range lacks {
		facts = append(facts, l.fact)
		if !slices.Contains(open, l.part) {
			open = append(open, l.part)
		}
	}
	return open, skippedError(m.node, open, facts)
}

// SeeHardware reads what Ironic knows about parts of a machine's hardware. RAID is in the node itself, which must be complete.
func (s *Site) SeeHardware(ctx context.Context, node *ironic.Node, parts []Part) (seen Seen, err error) {
	for _, part := range parts {
		switch part {
		case PartRAID:
			seen.RAID = raidOf(node)
		case PartBIOS:
			seen.BIOS, err = s.BIOS(ctx, node.UUID)
		case PartFirmware:
			seen.Firmware, err = s.Firmware(ctx, node.UUID)
		}
		if err != nil {
			return seen, fmt.Errorf("read %s: %w", part, err)
		}
	}
	return seen, nil
}

// raidOf returns the volumes in a node's raid_config, as far as they can be read.
func raidOf(node *ironic.Node) []ironic.LogicalDisk {
	var config struct {
		LogicalDisks []ironic.LogicalDisk `json:"logical_disks"`
	}
	text, err := json.Marshal(node.RAIDConfig)
	if err == nil {
		_ = json.Unmarshal(text, &config) // drivers may add what they like
	}
	return config.LogicalDisks
}

// unfitError says that a machine's BIOS registry refuses settings. Nothing was sent.
func unfitError(node *ironic.Node, unfit []Unfit) *Error {
	reasons := make([]string, len(unfit))
	for i, u := range unfit {
		reasons[i] = u.Reason
	}
	return &Error{
		Node: node, Fact: fmt.Sprintf("the BIOS of node %s does not accept bios_settings, and nothing was changed. %s", ironic.NodeLabel(node), strings.Join(reasons, " ")),
		Advice: "Correct bios_settings. `baremetal node bios setting list --long` shows what the BIOS accepts.",
	}
}

// skippedError says that Ironic reported success, but the machine does not have what was to be changed.
func skippedError(node *ironic.Node, parts []Part, facts []string) *Error {
	kinds := ironic.InterfacesOf(node)
	var used []string
	for _, part := range parts {
		kind, _, _ := strings.Cut(string(part), "_")
		used = append(used, fmt.Sprintf("%s = %q", kind, kinds[kind]))
	}
	return &Error{
		Node: node, Fact: fmt.Sprintf("node %s: Ironic reported success, but %s", ironic.NodeLabel(node), strings.Join(facts, ", and ")),
		Advice: fmt.Sprintf("Ironic skips steps that the node's interface does not have, without an error. Check that the node's interfaces (%s) can do this, and the conductor's log. The next apply tries again.",
			strings.Join(used, ", ")),
	}
}

// stepsForbidden says that Ironic's policy does not let the user run steps. err is Ironic's answer.
func stepsForbidden(node *ironic.Node, order ironic.Order, err error) *Error {
	const ask = "Ask for the right to run these steps (baremetal:node:set_provision_state:clean_steps, or service_steps)"
	e := &Error{
		Node: node, Err: err, Fact: fmt.Sprintf("Ironic's policy does not allow %s on node %s: %v", stepNames(order), ironic.NodeLabel(node), err),
		Advice: ask + ", or remove the setting.", Action: ask + ".",
	}
	if refusal := ironic.RefusalBy(err); refusal != nil && refusal.Rule != "" {
		e.Advice = adviseRefusal(refusal) + " Or remove the setting."
	}
	return e
}

// KindService is the kind of an error which says that a service has failed. The cause is why the node could not return to active.
const KindService Kind = "service"

// serviceFailed returns such an error. node is as the service has left it, and is in a state now. err is nil if the node is active again.
func serviceFailed(node *ironic.Node, order ironic.Order, state ironic.State, err error) *Error {
	fact := fmt.Sprintf("servicing node %s with %s failed. The node is in state %q now", ironic.NodeLabel(node), stepNames(order), state)
	if err != nil {
		fact += ". It could not return to active: " + strings.TrimSuffix(err.Error(), ".")
	}
	return &Error{
		Kind: KindService, Node: node, Err: err, Fact: fact, Words: ironic.FirstLine(node.LastError),
		Advice: "Check that the machine runs. Fix the cause and apply again, which repeats the service; or wait with hardware_changes = { on_active = \"wait\" }.",
		Action: "Check that the machine runs. Fix the cause and invoke the action again.",
	}
}

// stepNames names the steps of an order, or its runbook.
func stepNames(order ironic.Order) string {
	if order.Runbook != "" {
		return "runbook " + order.Runbook
	}
	names := make([]string, len(order.Steps))
	for i, step := range order.Steps {
		names[i] = step.String()
	}
	return strings.Join(names, ", ")
}
