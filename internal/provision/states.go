package provision

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// trait is what holds in a provision state.
type trait uint

const (
	busy       trait = 1 << iota // the machine boots or writes (reference/limit.md#busy-states)
	works                        // Ironic has an operation in progress that leaves the machine alone
	awaits                       // Ironic waits for its ramdisk on the machine, and does not lock the node
	failure                      // the last operation has failed
	hold                         // a step holds the node until an operator ends that
	coming                       // on the way to available, or enrolled and may be
	rescue                       // a rescue interrupts what is deployed
	service                      // a service interrupts what is deployed
	deletes                      // Ironic deletes the node (reference/ironic.md#deleting-a-node)
	interfaces                   // Ironic accepts a change of interfaces (reference/ironic.md#changing-interfaces)
)

// traits has a row for each provision state.
var traits = map[ironic.State]trait{
	nodes.Enroll:       coming | deletes | interfaces,
	nodes.Verifying:    coming | works,
	nodes.Manageable:   deletes | interfaces,
	nodes.Available:    deletes | interfaces,
	nodes.Active:       0,
	nodes.Deploying:    busy,
	nodes.DeployWait:   busy | awaits,
	nodes.DeployDone:   0,
	nodes.Rebuild:      0,
	nodes.DeployFail:   failure,
	nodes.DeployHold:   hold,
	nodes.Deleting:     coming | busy,
	nodes.Deleted:      0,
	nodes.Error:        failure,
	nodes.Cleaning:     coming | busy,
	nodes.CleanWait:    coming | busy | awaits,
	nodes.CleanFail:    failure,
	nodes.CleanHold:    hold,
	nodes.Inspecting:   coming | busy | interfaces,
	nodes.InspectWait:  coming | busy | awaits | interfaces,
	nodes.InspectFail:  failure,
	nodes.Adopting:     works,
	nodes.AdoptFail:    failure | deletes,
	nodes.Rescuing:     rescue | busy,
	nodes.RescueWait:   rescue | busy | awaits,
	nodes.Rescue:       rescue,
	nodes.RescueFail:   rescue | failure,
	nodes.Unrescuing:   rescue | busy,
	nodes.UnrescueFail: rescue | failure,
	nodes.Servicing:    service | busy,
	nodes.ServiceWait:  service | busy | awaits,
	nodes.ServiceFail:  service | failure,
	nodes.ServiceHold:  service | hold,
}

// has reports whether one of some traits holds in a state.
func has(state ironic.State, some trait) bool { return traits[state]&some != 0 }

// Settled reports whether preparing a node in this state needs no step towards a goal: the goal is reached, or something is
// deployed on the node, which preparing must not disturb.
func Settled(goal Goal, state ironic.State) bool {
	m := nextMove(goal, state, false)
	return m.kind == done || m.kind == refuse
}

// occupied reports whether something runs, or may run, on a node in this state.
func occupied(state ironic.State) bool { return nextMove(GoalManageable, state, false).kind == refuse }

// Occupied reports whether something runs, or may run, on a node.
func Occupied(n *ironic.Node) bool { return occupied(ironic.State(n.ProvisionState)) }

// Finished reports whether a deployment in this state needs nothing more: it runs, or it is in a state (rescue, service, hold), or on
// the way into or out of it, that a deployment must not disturb.
func Finished(state ironic.State) bool {
	m := nextMove(GoalDeployed, state, false)
	return has(state, rescue|service) && has(state, busy) || m.kind == done || m.reason == reasonRescue || m.reason == reasonDeployed || m.reason == reasonHold
}

// keepsDeployment reports whether a deployment has ended in this state, also while a rescue or a service interrupts what it runs.
func keepsDeployment(state ironic.State) bool {
	return state == nodes.Active || has(state, rescue|service)
}

// Failed reports whether a deployment in this state has failed, so that the next walk starts it again.
func Failed(state ironic.State) bool { return nextMove(GoalDeployed, state, false).kind == repair }

// Parked reports whether other users may have the machine of a node in this state for a while: nothing runs on it, and no
// operation is in progress.
func Parked(state ironic.State) bool {
	kind := nextMove(GoalManageable, state, false).kind
	return kind == done || kind == send || kind == repair
}

// failed reports whether the last operation on a node in this state has failed.
func failed(state ironic.State) bool { return has(state, failure) }

// inProgress reports whether an operation is in progress in a state, also one that leaves the machine alone.
func inProgress(state ironic.State) bool { return has(state, busy|works) }

// InProgress reports whether Ironic has an operation in progress on a node, power changes included.
func InProgress(n *ironic.Node) bool {
	return inProgress(ironic.State(n.ProvisionState)) || n.TargetPowerState != ""
}

// OperationFailed reports whether the last operation on a node has failed. A failed verification leads back to enroll.
func OperationFailed(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	return failed(state) || n.Fault != "" || (state == nodes.Enroll && n.LastError != "")
}

// Pending reports whether a node at rest still has an operation to come: its creation by a run is not finished, it is reserved and not
// deployed yet, or it is held between two steps.
func Pending(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	mark := creationOf(n.Extra, MarkCreation)
	return (mark != nil && mark.Done.IsZero()) || (state == nodes.Available && n.InstanceUUID != "") ||
		held(state)
}

// InPool reports whether a node is in the pool of nodes that allocations reserve. Ironic retires no such node
// (reference/ironic.md#retired-nodes).
func InPool(n *ironic.Node) bool { return ironic.State(n.ProvisionState) == nodes.Available }

// BeingDeployed reports whether a node in this state is being deployed or rebuilt.
func BeingDeployed(state ironic.State) bool {
	return state == nodes.Deploying || state == nodes.DeployWait
}

// losesReservation reports whether a node has lost its reservation or is about to. Ironic removes the reservation halfway through an
// undeploy.
func losesReservation(node *ironic.Node) bool {
	return node.InstanceUUID == "" || ironic.State(node.ProvisionState) == nodes.Deleting
}

// undeployFailed reports whether undeploying a node has failed. Ironic has removed the reservation by then.
func undeployFailed(node *ironic.Node) bool {
	return node.InstanceUUID == "" && ironic.State(node.ProvisionState) == nodes.Error
}

// undeployUnfinished reports whether the undeploy of a node without a reservation has not ended yet.
func undeployUnfinished(node *ironic.Node) bool {
	if node.InstanceUUID != "" {
		return false
	}
	state := ironic.State(node.ProvisionState)
	return state == nodes.Deleting || undeployFailed(node) || (inCleaning(node) && node.TargetProvisionState == string(nodes.Available))
}

// runsUnreserved reports whether something runs on a node without a reservation: another client has deployed it so. Notes of this provider
// about an earlier instance then mean nothing.
func runsUnreserved(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	return node.InstanceUUID == "" && occupied(state) && state != nodes.Error && state != nodes.CleanHold
}

// inCleaning reports whether a node is being cleaned or its cleaning has failed.
func inCleaning(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	return state == nodes.Cleaning || state == nodes.CleanWait || state == nodes.CleanFail
}

// unmanaged reports whether a node in enroll is not reserved, claimed or managed.
func unmanaged(n *ironic.Node) bool {
	d := DiscoveryOf(n)
	return n.InstanceUUID == "" && ironic.State(n.ProvisionState) == nodes.Enroll && (d == nil || !d.Taken)
}

// interfacesChangeable reports whether Ironic accepts a change of interfaces in a state.
func interfacesChangeable(state ironic.State) bool { return has(state, interfaces) }

// portsChangeable reports whether Ironic accepts a change of a port's connectivity in a state (reference/ironic.md#changing-a-port).
func portsChangeable(state ironic.State) bool {
	return state != nodes.Available && interfacesChangeable(state)
}

// reachesGoal reports whether sending a verb reaches a goal that the state alone does not show.
func reachesGoal(sent ironic.Verb, goal Goal) bool {
	return (goal == GoalInspected && sent == nodes.TargetInspect) || (goal == GoalRebuilt && InstallsInstance(sent)) ||
		(goal == GoalRescued && sent == nodes.TargetRescue) || (goal == GoalConfigured && sent == nodes.TargetClean) || (goal == GoalServiced && sent == nodes.TargetService)
}

// runsSteps reports whether a verb runs the steps of its order.
func runsSteps(verb ironic.Verb) bool {
	return verb == nodes.TargetClean || verb == nodes.TargetService
}

// abortable returns since which API version Ironic ends an operation that is in a state; false if it cannot.
func abortable(state ironic.State) (since ironic.Microversion, can bool) {
	switch {
	case state == nodes.DeployWait:
		return ironic.VersionAbortDeploy, true
	case state == nodes.ServiceFail:
		return ironic.VersionServiceAbort, true
	case held(state):
		return ironic.VersionUnhold, true
	}
	return 0, has(state, awaits)
}

// held reports whether a step holds a node until an operator ends that.
func held(state ironic.State) bool { return has(state, hold) }

// cleanable reports whether a manual cleaning begins in a state without a way that changes the node: a failed one may be repeated.
func cleanable(state ironic.State) bool { return state == nodes.Manageable || state == nodes.CleanFail }

// Serviceable reports whether steps can run on a deployed node in this state, or after the service in progress on it.
func Serviceable(state ironic.State) bool {
	switch m := nextMove(GoalServiced, state, false); m.kind {
	case send, repair:
		return true
	case wait:
		return state == nodes.Servicing || state == nodes.ServiceWait
	case done, refuse:
	}
	return false
}

// InstallsInstance reports whether a verb deploys or rebuilds a node.
func InstallsInstance(verb ironic.Verb) bool {
	return verb == nodes.TargetActive || verb == nodes.TargetRebuild
}

// touchesHardware reports whether a verb makes a machine boot or write. Such a verb needs a slot of the provisioning limit and the
// guard's permission.
func touchesHardware(verb ironic.Verb) bool {
	return verb != nodes.TargetManage && verb != nodes.TargetAbort && verb != nodes.TargetAdopt
}

// Adoptable reports whether Ironic adopts a node from this state, or is adopting it.
func Adoptable(state ironic.State) bool {
	return nextMove(GoalAdopted, state, false).verb == nodes.TargetAdopt || state == nodes.Adopting
}

// Deployed reports whether something runs or may run on a node, or the node is reserved for a deployment.
func Deployed(n *ironic.Node) bool {
	return n.InstanceUUID != "" || occupied(ironic.State(n.ProvisionState))
}

// deletable reports whether Ironic deletes a node in its present state.
func deletable(n *ironic.Node) bool { return has(ironic.State(n.ProvisionState), deletes) }

// stateLog logs each change of a machine's provision state once, however many records see it. It is safe for concurrent use.
type stateLog struct {
	mu   sync.Mutex
	last map[string]logged
}

func statesOf(s *Site) *stateLog {
	return kept(s, func(*Site) *stateLog { return &stateLog{last: map[string]logged{}} })
}

// logged is the state of a machine that the log has told last.
type logged struct {
	state string
	since time.Time
}

// begin remembers the state of a machine that the log does not know yet.
func (l *stateLog) begin(n *ironic.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.last[n.UUID]; known {
		return
	}
	l.last[n.UUID] = logged{n.ProvisionState, n.ProvisionUpdatedAt}
}

// change records the state of a machine. It returns the state before, and false unless the state is new. Times are compared in whole
// seconds, because answers to writes have no others.
func (l *stateLog) change(n *ironic.Node) (before logged, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.last[n.UUID]
	if !known || before.state == n.ProvisionState || n.ProvisionUpdatedAt.Unix() < before.since.Unix() {
		return before, false
	}
	l.last[n.UUID] = logged{n.ProvisionState, n.ProvisionUpdatedAt}
	return before, true
}

// logState logs the provision state of the machine if it has changed. It waits for the reason of a failure, which Ironic writes
// after the state (reference/ironic.md#state-and-lock).
func (m *Machine) logState(ctx context.Context) {
	m.tellState()
	unsuccessful := failed(m.state()) || m.state() == nodes.Enroll
	if unsuccessful && m.node.Reservation != "" && m.node.LastError == "" {
		return
	}
	before, changed := statesOf(m.site).change(m.node)
	if !changed {
		return
	}
	text := fmt.Sprintf("changed state: %s -> %s", before.state, m.node.ProvisionState)
	if after := m.node.ProvisionUpdatedAt.Sub(before.since); inProgress(ironic.State(before.state)) && after > 0 && !before.since.IsZero() {
		text += fmt.Sprintf(" after %s", after.Round(time.Second))
	}
	if unsuccessful && m.node.LastError != "" {
		text += ": " + ironic.FirstLine(m.node.LastError)
	}
	m.logInfo(ctx, text, "from", before.state, "state", m.node.ProvisionState)
}

// logInfo logs what the machine does. The text is a predicate. It has all facts, because Terraform writes attributes in no order.
func (m *Machine) logInfo(ctx context.Context, text string, args ...any) {
	m.site.Logger().InfoContext(ctx, "machine "+ironic.NodeLabel(m.node)+" "+text, append(nodeAttributes(m.node), args...)...)
}

// nodeAttributes are the attributes of a log line that identify a node.
func nodeAttributes(n *ironic.Node) []any { return []any{"node", n.Name, "uuid", n.UUID} }
