// Package states says what the provision states of Ironic mean for this provider, and has the table of moves: from a goal and a state to
// the next step. It is pure: it makes no request.
package states

import (
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// StatusOf describes the state of a node, such as "node rack1-01: active, power on".
func StatusOf(n *ironic.Node) string {
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

// TextOf returns a text of a map; "" if the key is missing, or has another type.
func TextOf(properties map[string]any, key string) string {
	text, _ := properties[key].(string)
	return text
}

// StepName returns the name of a step of Ironic; "" if there is none.
func StepName(step map[string]any) string {
	if TextOf(step, "interface") == "" || TextOf(step, "step") == "" {
		return ""
	}
	return TextOf(step, "interface") + "." + TextOf(step, "step")
}

// trait is what holds in a provision state.
type trait uint

// The traits.
const (
	Busy       trait = 1 << iota // the machine boots or writes (reference/limit.md#busy-states)
	works                        // Ironic has an operation in progress that leaves the machine alone
	awaits                       // Ironic waits for its ramdisk on the machine, and does not lock the node
	Failure                      // the last operation has failed
	hold                         // a step holds the node until an operator ends that
	Coming                       // on the way to available, or enrolled and may be
	Rescue                       // a rescue interrupts what is deployed
	Service                      // a service interrupts what is deployed
	deletes                      // Ironic deletes the node (reference/ironic.md#deleting-a-node)
	interfaces                   // Ironic accepts a change of interfaces (reference/ironic.md#changing-interfaces)
)

// traits has a row for each provision state.
var traits = map[ironic.State]trait{
	nodes.Enroll:       Coming | deletes | interfaces,
	nodes.Verifying:    Coming | works,
	nodes.Manageable:   deletes | interfaces,
	nodes.Available:    deletes | interfaces,
	nodes.Active:       0,
	nodes.Deploying:    Busy,
	nodes.DeployWait:   Busy | awaits,
	nodes.DeployDone:   0,
	nodes.Rebuild:      0,
	nodes.DeployFail:   Failure,
	nodes.DeployHold:   hold,
	nodes.Deleting:     Coming | Busy,
	nodes.Deleted:      0,
	nodes.Error:        Failure,
	nodes.Cleaning:     Coming | Busy,
	nodes.CleanWait:    Coming | Busy | awaits,
	nodes.CleanFail:    Failure,
	nodes.CleanHold:    hold,
	nodes.Inspecting:   Coming | Busy | interfaces,
	nodes.InspectWait:  Coming | Busy | awaits | interfaces,
	nodes.InspectFail:  Failure,
	nodes.Adopting:     works,
	nodes.AdoptFail:    Failure | deletes,
	nodes.Rescuing:     Rescue | Busy,
	nodes.RescueWait:   Rescue | Busy | awaits,
	nodes.Rescue:       Rescue,
	nodes.RescueFail:   Rescue | Failure,
	nodes.Unrescuing:   Rescue | Busy,
	nodes.UnrescueFail: Rescue | Failure,
	nodes.Servicing:    Service | Busy,
	nodes.ServiceWait:  Service | Busy | awaits,
	nodes.ServiceFail:  Service | Failure,
	nodes.ServiceHold:  Service | hold,
}

// All returns the names of all provision states, sorted.
func All() (names []string) {
	for state := range traits {
		names = append(names, string(state))
	}
	slices.Sort(names)
	return names
}

// Has reports whether one of some traits holds in a state.
func Has(state ironic.State, some trait) bool { return traits[state]&some != 0 }

// Settled reports whether preparing a node in this state needs no step towards a goal: the goal is reached, or something is
// deployed on the node, which preparing must not disturb.
func Settled(goal Goal, state ironic.State) bool {
	m := NextMove(goal, state, false)
	return m.Kind == Done || m.Kind == Refuse
}

// Occupied reports whether something runs, or may run, on a node in this state.
func Occupied(state ironic.State) bool { return NextMove(GoalManageable, state, false).Kind == Refuse }

// IsOccupied reports whether something runs, or may run, on a node.
func IsOccupied(n *ironic.Node) bool { return Occupied(ironic.State(n.ProvisionState)) }

// Finished reports whether a deployment in this state needs nothing more: it runs, or it is in a state (rescue, service, hold), or on
// the way into or out of it, that a deployment must not disturb.
func Finished(state ironic.State) bool {
	m := NextMove(GoalDeployed, state, false)
	return Has(state, Rescue|Service) && Has(state, Busy) || m.Kind == Done || m.Reason == reasonRescue || m.Reason == ReasonDeployed ||
		m.Reason == reasonHold
}

// KeepsDeployment reports whether a deployment has ended in this state, also while a rescue or a service interrupts what it runs.
func KeepsDeployment(state ironic.State) bool {
	return state == nodes.Active || Has(state, Rescue|Service)
}

// DeployFailed reports whether a deployment in this state has failed, so that the next walk starts it again.
func DeployFailed(state ironic.State) bool {
	return NextMove(GoalDeployed, state, false).Kind == Repair
}

// Parked reports whether other users may have the machine of a node in this state for a while: nothing runs on it, and no
// operation is in progress.
func Parked(state ironic.State) bool {
	kind := NextMove(GoalManageable, state, false).Kind
	return kind == Done || kind == Send || kind == Repair
}

// Failed reports whether the last operation on a node in this state has failed.
func Failed(state ironic.State) bool { return Has(state, Failure) }

// InProgress reports whether an operation is in progress in a state, also one that leaves the machine alone.
func InProgress(state ironic.State) bool { return Has(state, Busy|works) }

// IsInProgress reports whether Ironic has an operation in progress on a node, power changes included.
func IsInProgress(n *ironic.Node) bool {
	return InProgress(ironic.State(n.ProvisionState)) || n.TargetPowerState != ""
}

// AwaitsAgent reports whether Ironic waits in a state for its ramdisk on the machine. It does not lock the node then.
func AwaitsAgent(state ironic.State) bool { return Has(state, awaits) }

// IsLocked reports whether a conductor has locked a node. If Ironic hides that from the user, an operation in progress tells it; of the
// short locks that remain, only the refusal of a request tells.
func IsLocked(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	return n.Reservation != "" || n.Hidden.Reservation && (n.TargetPowerState != "" || InProgress(state) && !AwaitsAgent(state))
}

// IsUnattended reports whether a node is in the middle of an operation, and no conductor has locked it. Ironic locks a node while it works
// on it, so this lasts moments only, unless the operation has lost its conductor (reference/ironic.md#operations-without-a-conductor).
func IsUnattended(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	return InProgress(state) && !AwaitsAgent(state) && n.Reservation == "" && !n.Hidden.Reservation
}

// IsStuck reports whether no conductor works any more on the operation of a node: Ironic empties last_error when an operation begins, and
// ends the operation, or goes on, when it writes one.
func IsStuck(n *ironic.Node) bool { return IsUnattended(n) && n.LastError != "" }

// OperationFailed reports whether the last operation on a node has failed. A failed verification leads back to enroll.
func OperationFailed(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	return Failed(state) || n.Fault != "" || (state == nodes.Enroll && n.LastError != "")
}

// InPool reports whether a node is in the pool of nodes that allocations reserve. Ironic retires no such node
// (reference/ironic.md#retired-nodes).
func InPool(n *ironic.Node) bool { return ironic.State(n.ProvisionState) == nodes.Available }

// BeingInspected reports whether a node in this state is being inspected.
func BeingInspected(state ironic.State) bool {
	return state == nodes.Inspecting || state == nodes.InspectWait
}

// BeingDeployed reports whether a node in this state is being deployed or rebuilt.
func BeingDeployed(state ironic.State) bool {
	return state == nodes.Deploying || state == nodes.DeployWait
}

// LosesReservation reports whether a node has lost its reservation or is about to. Ironic removes the reservation halfway through an
// undeploy.
func LosesReservation(node *ironic.Node) bool {
	return node.InstanceUUID == "" || ironic.State(node.ProvisionState) == nodes.Deleting
}

// UndeployFailed reports whether undeploying a node has failed. Ironic has removed the reservation by then.
func UndeployFailed(node *ironic.Node) bool {
	return node.InstanceUUID == "" && ironic.State(node.ProvisionState) == nodes.Error
}

// UndeployUnfinished reports whether the undeploy of a node without a reservation has not ended yet.
func UndeployUnfinished(node *ironic.Node) bool {
	if node.InstanceUUID != "" {
		return false
	}
	state := ironic.State(node.ProvisionState)
	return state == nodes.Deleting || UndeployFailed(node) || (InCleaning(node) && node.TargetProvisionState == string(nodes.Available))
}

// RunsUnreserved reports whether something runs on a node without a reservation: another client has deployed it so. Notes of this provider
// about an earlier instance then mean nothing.
func RunsUnreserved(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	return node.InstanceUUID == "" && Occupied(state) && state != nodes.Error && state != nodes.CleanHold
}

// InCleaning reports whether a node is being cleaned or its cleaning has failed.
func InCleaning(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	return state == nodes.Cleaning || state == nodes.CleanWait || state == nodes.CleanFail
}

// InterfacesChangeable reports whether Ironic accepts a change of interfaces in a state.
func InterfacesChangeable(state ironic.State) bool { return Has(state, interfaces) }

// PortsChangeable reports whether Ironic accepts a change of a port's connectivity in a state (reference/ironic.md#changing-a-port).
func PortsChangeable(state ironic.State) bool {
	return state != nodes.Available && InterfacesChangeable(state)
}

// ReachesGoal reports whether sending a verb reaches a goal that the state alone does not show.
func ReachesGoal(sent ironic.Verb, goal Goal) bool {
	return (goal == GoalInspected && sent == nodes.TargetInspect) || (goal == GoalRebuilt && InstallsInstance(sent)) ||
		(goal == GoalRescued && sent == nodes.TargetRescue) || (goal == GoalConfigured && sent == nodes.TargetClean) ||
		(goal == GoalServiced && sent == nodes.TargetService)
}

// RunsSteps reports whether a verb runs the steps of its order.
func RunsSteps(verb ironic.Verb) bool {
	return verb == nodes.TargetClean || verb == nodes.TargetService
}

// Abortable returns since which API version Ironic ends an operation that is in a state; false if it cannot.
func Abortable(state ironic.State) (since api.Microversion, can bool) {
	switch {
	case state == nodes.DeployWait:
		return api.VersionAbortDeploy, true
	case state == nodes.ServiceFail:
		return api.VersionServiceAbort, true
	case Held(state):
		return api.VersionUnhold, true
	}
	return 0, Has(state, awaits)
}

// Held reports whether a step holds a node until an operator ends that.
func Held(state ironic.State) bool { return Has(state, hold) }

// Cleanable reports whether a manual cleaning begins in a state without a way that changes the node: a failed one may be repeated.
func Cleanable(state ironic.State) bool { return state == nodes.Manageable || state == nodes.CleanFail }

// Serviceable reports whether steps can run on a deployed node in this state, or after the service in progress on it.
func Serviceable(state ironic.State) bool {
	switch m := NextMove(GoalServiced, state, false); m.Kind {
	case Send, Repair:
		return true
	case Wait:
		return state == nodes.Servicing || state == nodes.ServiceWait
	case Done, Refuse:
	}
	return false
}

// InstallsInstance reports whether a verb deploys or rebuilds a node.
func InstallsInstance(verb ironic.Verb) bool {
	return verb == nodes.TargetActive || verb == nodes.TargetRebuild
}

// TouchesHardware reports whether a verb makes a machine boot or write. Such a verb needs a slot of the provisioning limit and the
// guard's permission.
func TouchesHardware(verb ironic.Verb) bool {
	return verb != nodes.TargetManage && verb != nodes.TargetAbort && verb != nodes.TargetAdopt
}

// Adoptable reports whether Ironic adopts a node from this state, or is adopting it.
func Adoptable(state ironic.State) bool {
	return NextMove(GoalAdopted, state, false).Verb == nodes.TargetAdopt || state == nodes.Adopting
}

// Deployed reports whether something runs or may run on a node, or the node is reserved for a deployment.
func Deployed(n *ironic.Node) bool {
	return n.InstanceUUID != "" || Occupied(ironic.State(n.ProvisionState))
}

// Deletable reports whether Ironic deletes a node in its present state.
func Deletable(n *ironic.Node) bool { return Has(ironic.State(n.ProvisionState), deletes) }

// UseOf says how the machine of a node is in use, such as "deployed"; "" if it is free.
func UseOf(n *ironic.Node) string {
	state := ironic.State(n.ProvisionState)
	switch {
	case state == nodes.Active:
		return "deployed"
	case BeingDeployed(state):
		return "being deployed"
	case Has(state, Rescue):
		return "in rescue"
	case Has(state, Service):
		return "in service"
	case state == nodes.Adopting, state == nodes.AdoptFail:
		return "being adopted"
	case IsOccupied(n):
		return "in state " + n.ProvisionState
	case n.InstanceUUID != "":
		return "reserved"
	case n.Protected:
		return "protected"
	}
	return ""
}
