package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// ReachRest brings the machine to a state from which steps can run: manageable, or the present state if the machine stays deployed.
// It also waits for what an interrupted run has begun.
func (m *Machine) ReachRest(ctx context.Context, live bool, timeout time.Duration) error {
	m.serves = live
	switch {
	case !live:
		return m.Reach(ctx, states.GoalManageable, timeout)
	case !states.InProgress(m.State()):
		return nil
	}
	err := m.Walk(ctx, states.GoalDeployed, m.node.InstanceUUID, ironic.Order{}, timeout)
	if m.State() == nodes.ServiceFail {
		return nil // the walk of the service repairs it
	}
	return err
}

// RunSteps runs the steps of an order in a manual cleaning or, if the machine stays deployed, in a service. After a failed service it
// brings the machine back to active.
func (m *Machine) RunSteps(ctx context.Context, live bool, order ironic.Order, timeout time.Duration) error {
	goal := states.GoalConfigured
	if live {
		goal, m.serves = states.GoalServiced, true
	}
	err := m.Walk(ctx, goal, m.node.InstanceUUID, order, timeout)
	failed := failure.As(err, failure.KindFailed)
	switch {
	case api.IsForbidden(err):
		return stepsForbidden(m.node, order, err)
	case live && failed != nil && m.State() == nodes.ServiceFail:
		left := m.leaveService(ctx, timeout)
		return serviceFailed(failed.Node, order, m.State(), left)
	}
	return err
}

// leaveService ends a failed service: it ends the maintenance that Ironic has set, and aborts the service, so that the machine is
// active again. Ironic can do that since API 1.97; older versions keep the node in service failed.
func (m *Machine) leaveService(ctx context.Context, timeout time.Duration) error {
	if version, err := m.site.Ironic.Highest(ctx); err != nil || version < api.VersionServiceAbort {
		return err
	}
	if err := m.clearFault(ctx); err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	if err := m.insistOn(throttle.Completing(ctx), nodes.TargetAbort, timeout); err != nil {
		return err
	}
	return m.awaitLeft(ctx, nodes.ServiceFail, deadline)
}

// stepsForbidden says that Ironic's policy does not let the user run steps. err is Ironic's answer.
func stepsForbidden(node *ironic.Node, order ironic.Order, err error) *failure.Error {
	const ask = "Ask for the right to run these steps (baremetal:node:set_provision_state:clean_steps, or service_steps)"
	e := &failure.Error{
		Node: node, Err: err, Fact: fmt.Sprintf("Ironic's policy does not allow %s on node %s: %v", StepNames(order),
			ironic.NodeLabel(node), err),
		Advice: ask + ", or remove the setting.", Action: ask + ".",
	}
	if refusal := api.RefusalBy(err); refusal != nil && refusal.Rule != "" {
		e.Advice = failure.AdviseRefusal(refusal) + " Or remove the setting."
	}
	return e
}

// KindService is the kind of an error which says that a service has failed. The cause is why the node could not return to active.
const KindService failure.Kind = "service"

// serviceFailed returns such an error. node is as the service has left it, and is in a state now. err is nil if the node is active again.
func serviceFailed(node *ironic.Node, order ironic.Order, state ironic.State, err error) *failure.Error {
	fact := fmt.Sprintf("servicing node %s with %s failed. The node is in state %q now", ironic.NodeLabel(node), StepNames(order), state)
	if err != nil {
		fact += ". It could not return to active: " + strings.TrimSuffix(err.Error(), ".")
	}
	return &failure.Error{
		Kind: KindService, Node: node, Err: err, Fact: fact, Words: api.FirstLine(node.LastError),
		Advice: "Check that the machine runs. Fix the cause and apply again, which repeats the service; or wait with hardware_changes " +
			"= { on_active = \"wait\" }.",
		Action: "Check that the machine runs. Fix the cause and try again.",
	}
}

// StepNames names the steps of an order, or its runbook.
func StepNames(order ironic.Order) string {
	return strings.Join(stepsOf(order), ", ")
}

// stepsOf returns the names of the steps of an order, or that of its runbook.
func stepsOf(order ironic.Order) []string {
	if order.Runbook != "" {
		return []string{"runbook " + order.Runbook}
	}
	names := make([]string, len(order.Steps))
	for i, step := range order.Steps {
		names[i] = step.String()
	}
	return names
}

// ErasingSteps returns the names of the steps of an order that erase disks, or replace volumes. It reads a runbook.
func (c *Site) ErasingSteps(ctx context.Context, order ironic.Order) (names []string, err error) {
	steps := order.Steps
	if order.Runbook != "" {
		runbook, err := ironic.ReadIn[ironic.Procedure](ctx, c.Ironic, ironic.Runbooks, order.Runbook)
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

// Erasing returns the names of the steps that erase disks. Those of a runbook are not known before Ironic is asked.
func Erasing(steps []ironic.CleanStep) (names []string) {
	for _, step := range steps {
		if Erases(step) {
			names = append(names, step.String())
		}
	}
	return names
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
