package deploy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
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
	Connections VIFConnections

	// Known is the footprint of the node when the state was last known to match it. With RebuildOther, Deploy keeps a node that a
	// killed run has deployed with the deployment since then.
	Known Footprint

	// Creates says that the deployment is new in Terraform: the node gets the mark of its creation.
	Creates bool
}

// Name gives the instance on the machine a name. It sends nothing if the record shows the name.
func Name(ctx context.Context, m *machine.Machine, name string) error {
	patch := nameEdits(m.Node(), name)
	if len(patch) == 0 {
		return nil
	}
	return m.Patch(ctx, patch)
}

// nameEdits returns the edits that give the instance a name; none if it has it, or if there is none to give. An undeployment removes the
// name (reference/ironic.md#name-of-an-instance).
func nameEdits(node *ironic.Node, name string) (patch ironic.Patch) {
	if name != "" && name != node.InstanceName {
		patch.Set("/instance_name", name)
	}
	return patch
}

// protectedReason is the protected_reason of a node that this provider protects.
const protectedReason = "protected by Terraform"

// Protect sets Ironic's flag that keeps the node from being rebuilt, undeployed and deleted, or clears it. It sends nothing if the
// record shows the wanted flag. Ironic sets the flag only on a node in state active or rescue.
func Protect(ctx context.Context, m *machine.Machine, on bool) error {
	if m.Node().Protected == on {
		return nil
	}
	var patch ironic.Patch
	patch.Set("/protected", on)
	if on {
		patch.Set("/protected_reason", protectedReason)
	}
	return m.Patch(ctx, patch)
}

// ProtectNew protects a machine that was just deployed. If that is impossible it warns: an error would taint the resource, and the
// next apply would wipe the machine.
func ProtectNew(ctx context.Context, m *machine.Machine) []decide.Notice {
	err := Protect(ctx, m, true)
	if err == nil {
		return nil
	}
	summary, detail := failure.Explain("protect node "+ironic.NodeLabel(m.Node()), err)
	return []decide.Notice{decide.Warn(nil, summary, detail+"\n\nThe machine is deployed, and not protected. The next plan shows that, "+
		"and its apply protects the machine.")}
}

// Deploy deploys a reserved machine and returns the number of attempts. It waits for a deployment that an earlier run has started,
// and keeps one that has succeeded. The caller must have just read the node, because Deploy decides by that record what to write.
func Deploy(ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions) (attempts int, err error) {
	if err := m.CheckDeploy(ctx); err != nil {
		return 0, err
	}
	return deployNow(ctx, m, d, o)
}

// deployNow is Deploy for a node that was just read and that may be deployed.
func deployNow(ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions) (attempts int, err error) {
	if err := endUndeploy(ctx, m, o); err != nil {
		return 0, err
	}
	if !states.UndeployUnfinished(m.Node()) && machine.CheckReservation(m.Node(), o.Instance) == nil {
		if err := CleanAgain(ctx, m); err != nil {
			return 0, err
		}
	}
	if attempts, err = attempt(ctx, m, d, o); err != nil {
		return attempts, err
	}
	registerOf(m.Site()).proven.Add(ImageSource(m.Node()))
	if err := CleanAgain(ctx, m); err != nil { // the node is deployed, so that it was not cleaned does not matter any more
		m.Site().Ironic.Logger().WarnContext(ctx, "could not remove the note that a node needs cleaning; it is ignored while the node "+
			"is deployed", append(machine.NodeAttributes(m.Node()), "error", err)...)
	}
	return attempts, nil
}

func attempt(ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions) (attempts int, err error) {
	for {
		todo, err := decideDeploy(m.Node(), d, o, attempts)
		if err != nil {
			return attempts, err
		}
		goal, ended := states.GoalDeployed, func(context.Context, error) {}
		if m.State() == nodes.Active {
			goal = states.GoalRebuilt
		}
		switch {
		case todo == deployKept:
			return attempts, ConnectVIFs(ctx, m, o.Connections)
		case todo == deployDone:
			return max(attempts, 1), ConnectVIFs(ctx, m, o.Connections)
		case todo == deployPrepared && goal == states.GoalRebuilt:
			if ended, err = prepareRebuild(ctx, m, d, o); err != nil {
				return attempts, err
			}
		case todo == deployPrepared:
			if err := prepare(ctx, m, d, o); err != nil {
				return attempts, err
			}
		}
		attempts++
		err = m.Walk(ctx, goal, o.Instance, orderOf(d), o.Timeout)
		if ended(ctx, err); err == nil && todo == deployAwaited {
			continue // the operation has ended: decide again
		}
		failed := failure.As(err, failure.KindFailed)
		if failed == nil || attempts >= o.Attempts || (todo == deployPrepared && m.State() != nodes.DeployFail) ||
			failed.Why != nil && (failed.Why.Blame == reason.Request || failed.Why.Passes) {
			// the next attempt would ask for the same, or the walk has made several already
			return attempts, err
		}
	}
}

// prepareRebuild prepares a machine that runs for a rebuild. What it runs stands in instance_info, by which others rebuild it, so that is
// written with the verb, unless Ironic connects the machine by traits in it. After a failure, ended puts it back, if it was written and
// Ironic has not begun.
func prepareRebuild(
	ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions,
) (ended func(context.Context, error), err error) {
	var before *ironic.Node // nil: nothing is written
	restore := func(ctx context.Context) {
		if before != nil {
			restoreInstanceInfo(ctx, m, before)
			before = nil
		}
	}
	write := func(ctx context.Context, patch func(context.Context, ironic.Patch) error) error {
		before = cmp.Or(before, m.Node())
		return writePreparation(ctx, m, d, o, Losses{}, patch)
	}
	if len(o.Connections.Wanted) > 0 && d.Traits != nil && !ironic.SameJSON(m.Node().InstanceInfo[KeyTraits], d.Traits) {
		err = write(ctx, m.Patch)
	}
	if err == nil {
		err = reconnectVIFs(ctx, m, o.Connections, nil)
	}
	if err != nil {
		restore(ctx)
		return nil, err
	}
	end := m.Preparing(machine.Preparation{Undo: restore, Write: func(ctx context.Context) error {
		return write(ctx, func(ctx context.Context, patch ironic.Patch) error { return m.PatchWithin(ctx, patch, 0) })
	}})
	return func(ctx context.Context, failed error) {
		if end(); failed != nil {
			restore(ctx)
		}
	}, nil
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
	if states.UndeployUnfinished(n) { // an earlier run was killed while it undeployed the node
		return 0, notDeployable(n)
	}
	if err := machine.CheckReservation(n, o.Instance); err != nil {
		return 0, err
	}
	switch move := states.NextMove(states.GoalDeployed, state, false); {
	case move.Kind == states.Wait && !states.Occupied(state):
		return 0, notDeployable(n) // for example, it is being cleaned: continuing from there would deploy it without an image
	case move.Kind == states.Wait:
		return deployAwaited, nil
	case move.Kind == states.Refuse:
		return 0, notDeployable(n)
	case state != nodes.Active:
		return deployPrepared, nil
	case d.RunsOn(n, o.Known), d.DeployedWith(n) && (attempts > 0 || o.Other != RebuildOther):
		return deployDone, nil
	}
	switch o.Other {
	case KeepOther:
		return deployKept, nil
	case RefuseOther:
		return 0, machine.RefusedFor(n, "it runs something that this resource did not deploy. "+
			"Import it (terraform import <address of the metal_deployment> "+ironic.NodeArgument(n)+"), or undeploy it first")
	case RebuildOther:
	}
	return deployPrepared, nil
}

// endUndeploy finishes an undeploy that an earlier run started in order to deploy the node again for the same instance, or that has
// failed, and restores the reservation.
func endUndeploy(ctx context.Context, m *machine.Machine, o DeployOptions) error {
	spec := notes.SuspendedAllocation(m.Node())
	suspended := spec != nil && spec.UUID == o.Instance
	if !states.LosesReservation(m.Node()) || (!suspended && !states.UndeployFailed(m.Node()) && !deployedAgain(m.Node(), o.Instance)) {
		return nil
	}
	allocation := ""
	if suspended {
		allocation = o.Instance
	}
	if _, err := undeploy(ctx, m, o.Instance, allocation, o.Timeout); err != nil {
		return err
	}
	if suspended {
		return m.Refresh(ctx)
	}
	return Reserve(ctx, m, o.Instance)
}

func orderOf(d Deployment) ironic.Order {
	return ironic.Order{DeploySteps: d.DeploySteps, ConfigDrive: d.ConfigDrive}
}

// prepare writes instance_info and the marker, and connects the machine. Ironic validates them when it receives the verb.
func prepare(ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions) error {
	lost := Lost(ctx, m, o.Instance)
	if err := writePreparation(ctx, m, d, o, lost, m.Patch); err != nil {
		return err
	}
	return reconnectVIFs(ctx, m, o.Connections, lost.VIFs)
}

// writePreparation writes instance_info and the marker, with what the node has lost.
func writePreparation(
	ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions, lost Losses, write func(context.Context, ironic.Patch) error,
) error {
	node, want := m.Node(), d.AsInstanceInfo()
	before := InstanceMarkerOf(node)
	if _, given := want[KeyTraits]; !given && slices.Contains(before.Keys, KeyTraits) && node.AllocationUUID != "" {
		a, err := m.Site().Ironic.Allocation(ctx, node.AllocationUUID)
		if err != nil {
			return err
		}
		want[KeyTraits] = a.Traits // the traits at the time of the reservation
	}
	stale := slices.Concat(ownKeys(), before.Keys)
	if d.ConfigDrive == nil {
		stale = append(stale, KeyConfigDrive)
	}
	want[notes.KeyMarker] = InstanceMarker{
		Digest: d.Digest(), State: m.State(), Since: deployedSince(node),
		Keys: slices.Sorted(maps.Keys(want)), Restart: startFor(m, d.Restart, ""), VIFs: idsOf(o.Connections.Wanted),
	}
	for key, value := range lost.Info {
		if _, given := want[key]; !given {
			want[key] = value
		}
	}
	patch := slices.Concat(editsOf(node.InstanceInfo, want, stale), nameEdits(node, d.Name))
	if d.LiveISO != nil {
		if d.ConfigDrive != nil && !carriesConfigDrive(node) {
			return NoConfigDrive(node)
		}
		patch.Set("/extra/"+notes.KeyBoot, bootNoteFor(node, d.LiveISO.Artifacts))
	}
	notes.EndQuarantine(&patch, node) // an operator has returned the node
	if mark := notes.CreationOf(node.Extra, notes.MarkReservation); o.Creates && (mark == nil || mark.Run != m.Site().Run.ID) {
		mine := m.Site().Run.Begun()
		if mine.Instance = o.Instance; mark != nil && mark.Instance == o.Instance {
			mine.Origin = mark.Origin
		}
		patch.Set("/extra/"+string(notes.MarkReservation), mine.Value())
	}
	return write(ctx, patch)
}

// restoreInstanceInfo gives instance_info the values that it had before prepare, unless Ironic has begun to rebuild the machine. The
// machine runs what the old values describe, and a rebuild by another client must not install anything else. The function leaves
// values that Ironic masks as they are, gives up after five seconds, and only logs a failure.
func restoreInstanceInfo(ctx context.Context, m *machine.Machine, before *ironic.Node) {
	if m.AwaitsAnswer() {
		return // Ironic may begin to rebuild it later
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := m.Refresh(ctx) // polls do not contain instance_info
	if err == nil {
		if m.State() != nodes.Active || !m.Node().ProvisionUpdatedAt.Truncate(time.Second).
			Equal(before.ProvisionUpdatedAt.Truncate(time.Second)) || m.Node().InstanceUUID != before.InstanceUUID {
			return
		}
		now, was := maps.Clone(m.Node().InstanceInfo), maps.Clone(before.InstanceInfo)
		for key := range m.Node().InstanceInfo {
			if now[key] == ironic.Masked || was[key] == ironic.Masked {
				delete(now, key)
				delete(was, key)
			}
		}
		maps.DeleteFunc(was, func(_ string, value any) bool { return value == ironic.Masked })
		patch := editsOf(now, was, slices.Collect(maps.Keys(now)))
		if note, exists := before.Extra[notes.KeyBoot]; exists && !ironic.SameJSON(m.Node().Extra[notes.KeyBoot], note) {
			patch.Set("/extra/"+notes.KeyBoot, note)
		}
		err = m.Patch(ctx, patch)
	}
	if err != nil {
		m.Site().Ironic.Logger().WarnContext(ctx, "could not restore instance_info of a node that was not rebuilt",
			append(machine.NodeAttributes(m.Node()), "error", err)...)
	}
}
