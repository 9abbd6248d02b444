package provision

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Other says what Deploy does with a node that runs something other than the deployment.
type Other int

// What Deploy may do with a node that runs something else.
const (
	RefuseOther  Other = iota // return an error of KindRefused
	KeepOther                 // keep what it runs, which is what the configuration means as far as the record shows
	RebuildOther              // rebuild it, which erases its root disk
)

// DeployOptions say how to deploy.
type DeployOptions struct {
	Instance string        // the reservation that must exist: the UUID of an allocation or of Reserve
	Other    Other         // what to do with a node that runs something else
	Attempts int           // how often to try; at least once
	Timeout  time.Duration // for each attempt, without the time spent waiting for a slot

	// Connections are made before Ironic deploys the node, and on a node that runs the deployment already.
	Connections Connections

	// Known is the footprint of the node when the state was last known to match it. With RebuildOther, Deploy keeps a node that a
	// killed run has deployed with the deployment since then.
	Known Footprint

	// Creates says that the deployment is new in Terraform: the node gets the mark of its creation.
	Creates bool
}

// Deployable returns the error that prevents a new deployment on a node, a ReservedError or a RefusedError; nil if there is none.
// instance is the reservation of the caller, or "" if it has none yet.
func Deployable(node *ironic.Node, instance string) error {
	if err := CheckReservation(node, instance); err != nil {
		return err
	}
	if ironic.State(node.ProvisionState) != nodes.Available {
		return refusal(node)
	}
	if node.Maintenance {
		return RefusedFor(node, "it is in maintenance"+inBrackets(node.MaintenanceReason)+". Take it out of maintenance first")
	}
	return nil
}

// inBrackets returns " (text)", or "" for an empty text.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// refusal returns the error for a node that cannot be deployed because it is not available.
func refusal(node *ironic.Node) error {
	m := nextMove(GoalDeployed, ironic.State(node.ProvisionState), false)
	if m.kind == wait {
		m.reason = reasonBusy
	}
	if m.reason == "" {
		m.reason = reasonDeployed
	}
	return refused(node, m.reason)
}

// protectedReason is the protected_reason of a node that this provider protects.
const protectedReason = "protected by Terraform"

// Protect sets Ironic's flag that keeps the node from being rebuilt, undeployed and deleted, or clears it. It sends nothing if the
// record shows the wanted flag. Ironic sets the flag only on a node in state active or rescue.
func (m *Machine) Protect(ctx context.Context, on bool) error {
	if m.node.Protected == on {
		return nil
	}
	var patch ironic.Patch
	patch.Set("/protected", on)
	if on {
		patch.Set("/protected_reason", protectedReason)
	}
	return m.Patch(ctx, patch)
}

// Deploy deploys a reserved machine and returns the number of attempts. It waits for a deployment that an earlier run has started,
// and keeps one that has succeeded. The caller must have just read the node, because Deploy decides by that record what to write.
func (m *Machine) Deploy(ctx context.Context, d Deployment, o DeployOptions) (attempts int, err error) {
	if err := m.CheckDeploy(ctx); err != nil {
		return 0, err
	}
	return m.deployNow(ctx, d, o)
}

// deployNow is Deploy for a node that was just read and that may be deployed.
func (m *Machine) deployNow(ctx context.Context, d Deployment, o DeployOptions) (attempts int, err error) {
	if err := m.endUndeploy(ctx, o); err != nil {
		return 0, err
	}
	if !undeployUnfinished(m.node) && CheckReservation(m.node, o.Instance) == nil {
		if err := m.cleanAgain(ctx); err != nil {
			return 0, err
		}
	}
	if attempts, err = m.attempt(ctx, d, o); err != nil {
		return attempts, err
	}
	if err := m.cleanAgain(ctx); err != nil { // the node is deployed, so that it was not cleaned does not matter any more
		m.site.Logger().WarnContext(ctx, "could not remove the note that a node needs cleaning; it is ignored while the node is deployed", append(nodeAttributes(m.node), "error", err)...)
	}
	return attempts, nil
}

// attempt deploys as often as the options allow.
func (m *Machine) attempt(ctx context.Context, d Deployment, o DeployOptions) (attempts int, err error) {
	for {
		before := m.node
		todo, err := decideDeploy(m.node, d, o, attempts)
		if err != nil {
			return attempts, err
		}
		switch todo {
		case deployKept:
			return attempts, m.Connect(ctx, o.Connections)
		case deployDone:
			return max(attempts, 1), m.Connect(ctx, o.Connections)
		case deployPrepared:
			if err := m.prepare(ctx, d, o); err != nil {
				if m.state() == nodes.Active {
					m.restoreInstanceInfo(ctx, before)
				}
				return attempts, err
			}
		case deployAwaited:
		}
		goal := GoalDeployed
		if m.state() == nodes.Active {
			goal = GoalRebuilt
		}
		attempts++
		err = m.walk(ctx, goal, o.Instance, orderOf(d), o.Timeout)
		if err != nil && todo == deployPrepared && goal == GoalRebuilt {
			m.restoreInstanceInfo(ctx, before)
		}
		if err == nil && todo == deployAwaited {
			continue // the operation has ended: decide again
		}
		if !Is(err, KindFailed) || attempts >= o.Attempts || (todo == deployPrepared && m.state() != nodes.DeployFail) {
			return attempts, err
		}
	}
}

// todo says what to do with a machine to deploy it.
type todo int

const (
	deployPrepared todo = iota // write the deployment, then deploy or rebuild
	deployAwaited              // a deployment is in progress: wait for its end
	deployDone                 // the machine runs the deployment
	deployKept                 // the machine runs something else, which is kept
)

// decideDeploy decides what to do with a node, which was just read, so that it runs a deployment. attempts is how often this run
// has tried.
func decideDeploy(n *ironic.Node, d Deployment, o DeployOptions, attempts int) (todo, error) {
	state := ironic.State(n.ProvisionState)
	if undeployUnfinished(n) { // an earlier run was killed while it undeployed the node
		return 0, refusal(n)
	}
	if err := CheckReservation(n, o.Instance); err != nil {
		return 0, err
	}
	switch move := nextMove(GoalDeployed, state, false); {
	case move.kind == wait && !occupied(state):
		return 0, refusal(n) // for example, it is being cleaned: continuing from there would deploy it without an image
	case move.kind == wait:
		return deployAwaited, nil
	case move.kind == refuse:
		return 0, refusal(n)
	case state != nodes.Active:
		return deployPrepared, nil
	case d.RunsOn(n, o.Known), d.DeployedWith(n) && (attempts > 0 || o.Other != RebuildOther):
		return deployDone, nil
	}
	switch o.Other {
	case KeepOther:
		return deployKept, nil
	case RefuseOther:
		return 0, RefusedFor(n, "it runs something that this resource did not deploy. "+
			"Import it (terraform import <address of the metal_deployment> "+n.UUID+"), or undeploy it first")
	case RebuildOther:
	}
	return deployPrepared, nil
}

// endUndeploy finishes an undeploy that an earlier run started in order to deploy the node again for the same instance, or that has
// failed, and restores the reservation.
func (m *Machine) endUndeploy(ctx context.Context, o DeployOptions) error {
	spec := SuspendedAllocation(m.node)
	suspended := spec != nil && spec.UUID == o.Instance
	if !losesReservation(m.node) || (!suspended && !undeployFailed(m.node) && !deployedAgain(m.node, o.Instance)) {
		return nil
	}
	allocation := ""
	if suspended {
		allocation = o.Instance
	}
	if _, err := m.undeploy(ctx, o.Instance, allocation, o.Timeout); err != nil {
		return err
	}
	if suspended {
		return m.Refresh(ctx)
	}
	return m.Reserve(ctx, o.Instance)
}

func orderOf(d Deployment) ironic.Order {
	return ironic.Order{DeploySteps: d.DeploySteps, ConfigDrive: d.ConfigDrive}
}

// deploymentKeys are keys of instance_info that belong to every deployment, besides those of its image.
var deploymentKeys = []string{"root_device", "capabilities"}

// prepare writes instance_info and the marker, and connects the machine. Ironic validates them when it receives the verb.
func (m *Machine) prepare(ctx context.Context, d Deployment, o DeployOptions) error {
	node, want := m.node, d.instanceInfo()
	before, lost := markerOf(node), m.lost(ctx, o.Instance)
	if _, given := want[keyTraits]; !given && slices.Contains(before.Keys, keyTraits) && node.AllocationUUID != "" {
		a, err := m.site.Allocation(ctx, node.AllocationUUID)
		if err != nil {
			return err
		}
		want[keyTraits] = a.Traits // the traits at the time of the reservation
	}
	stale := slices.Concat(deploymentKeys, imageKeys, before.Keys)
	if d.ConfigDrive == nil {
		stale = append(stale, keyConfigDrive)
	}
	want[keyMarker] = marker{Digest: d.Digest(), State: m.state(), Since: since(node), Keys: slices.Sorted(maps.Keys(want))}
	for key, value := range lost.Info {
		if _, given := want[key]; !given {
			want[key] = value
		}
	}
	patch := editsOf(node.InstanceInfo, want, stale)
	if d.LiveISO != nil {
		if d.ConfigDrive != nil && !CarriesConfigDrive(node) {
			return NoConfigDrive(node)
		}
		patch.Set("/extra/"+keyBoot, bootNoteFor(node, *d.LiveISO))
	}
	EndQuarantine(&patch, node) // an operator has returned the node
	if mark := creationOf(node.Extra, MarkReservation); o.Creates && (mark == nil || mark.Run != m.site.Run.id) {
		mine := m.site.Run.begun()
		if mine.Instance = o.Instance; mark != nil && mark.Instance == o.Instance {
			mine.Origin = mark.Origin
		}
		patch.Set("/extra/"+string(MarkReservation), mine.value())
	}
	if err := m.Patch(ctx, patch); err != nil {
		return err
	}
	return m.connect(ctx, o.Connections, lost.VIFs)
}

// restoreInstanceInfo gives instance_info the values that it had before prepare, unless Ironic has begun to rebuild the machine. The
// machine runs what the old values describe, and a rebuild by another client must not install anything else. The function leaves
// values that Ironic masks as they are, gives up after five seconds, and only logs a failure.
func (m *Machine) restoreInstanceInfo(ctx context.Context, before *ironic.Node) {
	if m.awaitsAnswer() {
		return // Ironic may begin to rebuild it later
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := m.Refresh(ctx) // polls do not contain instance_info
	if err == nil {
		if m.state() != nodes.Active || !m.node.ProvisionUpdatedAt.Truncate(time.Second).Equal(before.ProvisionUpdatedAt.Truncate(time.Second)) || m.node.InstanceUUID != before.InstanceUUID {
			return
		}
		now, was := maps.Clone(m.node.InstanceInfo), maps.Clone(before.InstanceInfo)
		for key := range m.node.InstanceInfo {
			if now[key] == ironic.Masked || was[key] == ironic.Masked {
				delete(now, key)
				delete(was, key)
			}
		}
		maps.DeleteFunc(was, func(_ string, value any) bool { return value == ironic.Masked })
		patch := editsOf(now, was, slices.Collect(maps.Keys(now)))
		if note, exists := before.Extra[keyBoot]; exists && !ironic.SameJSON(m.node.Extra[keyBoot], note) {
			patch.Set("/extra/"+keyBoot, note)
		}
		err = m.Patch(ctx, patch)
	}
	if err != nil {
		m.site.Logger().WarnContext(ctx, "could not restore instance_info of a node that was not rebuilt", append(nodeAttributes(m.node), "error", err)...)
	}
}

// editsOf returns the edits that give instance_info the wanted values and remove stale keys that are not wanted.
func editsOf(info, want map[string]any, stale []string) (patch ironic.Patch) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !ironic.SameJSON(info[key], want[key]) {
			patch.Set("/instance_info/"+key, want[key])
		}
	}
	slices.Sort(stale)
	for _, key := range slices.Compact(stale) {
		_, wanted := want[key]
		if _, exists := info[key]; exists && !wanted {
			patch.Remove("/instance_info/" + key)
		}
	}
	return patch
}
