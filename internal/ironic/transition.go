package ironic

import "github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

// State is a provision state of Ironic.
type State = nodes.ProvisionState

// Verb is what one asks a node to do (PUT states/provision).
type Verb = nodes.TargetProvisionState

// Goal is where a node shall get to.
type Goal string

// The goals. Each is reached by a walk over provision states in which nextMove says every step.
const (
	// GoalManageable: Ironic can reach the BMC; nothing is erased.
	GoalManageable Goal = "manageable"
	// GoalAvailable: ready to be allocated. Getting there cleans the node.
	GoalAvailable Goal = "available"
	// GoalInspected: inspected by this walk, and manageable.
	GoalInspected Goal = "inspected"
	// GoalDeployed: active with the instance that the caller has prepared.
	GoalDeployed Goal = "deployed"
	// GoalRebuilt: active after a rebuild by this walk.
	GoalRebuilt Goal = "rebuilt"
	// GoalUndeployed: no instance on it, and whatever follows in Ironic (cleaning) has ended.
	GoalUndeployed Goal = "undeployed"
)

// Doing is the goal as something that happens, for messages.
func (g Goal) Doing() string {
	switch g {
	case GoalManageable:
		return "making it manageable"
	case GoalAvailable:
		return "making it available"
	case GoalInspected:
		return "inspecting it"
	case GoalDeployed:
		return "deploying it"
	case GoalRebuilt:
		return "rebuilding it"
	case GoalUndeployed:
		return "undeploying it"
	}
	return string(g)
}

type moveKind int

const (
	done   moveKind = iota // the goal is reached
	wait                   // Ironic is at work
	send                   // send the verb
	repair                 // a failure: one that an earlier run left is mended with the verb, one of this walk is the user's
	refuse                 // the way to the goal is not ours to go; reason says why
)

// move is the next step of a walk.
type move struct {
	kind   moveKind
	verb   Verb
	reason string
}

// Reasons to refuse, each with what to do.
const (
	reasonDeployed = "something is deployed on it. Destroy its metal_deployment, or undeploy it, first"
	reasonRescue   = "it is in rescue mode. Unrescue it first"
	reasonHold     = "somebody holds it there. Unhold or abort it first"
	reasonAdopt    = "its adoption failed. Adopt it again, or manage it, first"
	reasonNotReady = "it cannot be deployed from there. Make it available first (metal_host target_state = \"available\")"
	reasonBusy     = "Ironic is at work on it. Apply again when it is available"
	reasonNoGoal   = "no walk leads from there"
)

// nextMove is the one table over provision states (the machine of reference ironic-facts.md 3.1): what to do with a node
// in a state to reach a goal. sent says whether this walk has sent the goal's own verb. There is no default on purpose:
// a state that gophercloud learns makes the linter ask for its line.
func nextMove(goal Goal, state State, sent bool) move {
	switch state {
	case nodes.Verifying, nodes.Cleaning, nodes.CleanWait, nodes.Inspecting, nodes.InspectWait, nodes.Deploying,
		nodes.DeployWait, nodes.DeployDone, nodes.Deleting, nodes.Deleted, nodes.Adopting, nodes.Rescuing, nodes.RescueWait,
		nodes.Unrescuing, nodes.Servicing, nodes.ServiceWait, nodes.Rebuild:
		return inTransit(goal, state)
	case nodes.Enroll:
		return byGoal(goal, move{kind: send, verb: nodes.TargetManage}, move{kind: refuse, reason: reasonNotReady})
	case nodes.Manageable:
		return fromManageable(goal, sent)
	case nodes.Available:
		return fromAvailable(goal)
	case nodes.Active:
		return fromActive(goal, sent)
	case nodes.DeployFail:
		return fromDeployFail(goal)
	case nodes.CleanFail, nodes.InspectFail:
		return byGoal(goal, move{kind: repair, verb: nodes.TargetManage}, move{kind: refuse, reason: reasonNotReady})
	case nodes.AdoptFail:
		return byGoal(goal, move{kind: repair, verb: nodes.TargetManage}, move{kind: refuse, reason: reasonAdopt})
	case nodes.Error:
		return instanceGone(goal)
	case nodes.Rescue, nodes.RescueFail, nodes.UnrescueFail:
		return running(goal, reasonRescue)
	case nodes.ServiceFail:
		return running(goal, reasonDeployed)
	case nodes.CleanHold, nodes.DeployHold, nodes.ServiceHold:
		return move{kind: refuse, reason: reasonHold}
	}
	return move{kind: wait} // a state of a newer Ironic: time tells
}

// byGoal picks the move for the goals of a node without an instance, or the one for deploying. An undeployed node it is
// in either case.
func byGoal(goal Goal, prepare, deploy move) move {
	switch goal {
	case GoalManageable, GoalAvailable, GoalInspected:
		return prepare
	case GoalDeployed, GoalRebuilt:
		return deploy
	case GoalUndeployed:
		if prepare.kind == repair {
			return prepare
		}
		return move{kind: done}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

// inTransit waits wherever Ironic is at work, except that preparing a node never waits for somebody's deployment.
func inTransit(goal Goal, state State) move {
	deploys := state == nodes.Deploying || state == nodes.DeployWait || state == nodes.DeployDone || state == nodes.Rescuing || state == nodes.RescueWait ||
		state == nodes.Unrescuing || state == nodes.Servicing || state == nodes.ServiceWait || state == nodes.Rebuild
	if deploys && (goal == GoalManageable || goal == GoalAvailable || goal == GoalInspected) {
		return move{kind: refuse, reason: reasonDeployed}
	}
	if goal == GoalUndeployed && (state == nodes.DeployWait || state == nodes.RescueWait || state == nodes.ServiceWait) {
		return move{kind: send, verb: nodes.TargetDeleted}
	}
	return move{kind: wait}
}

func fromManageable(goal Goal, sent bool) move {
	switch goal {
	case GoalManageable, GoalUndeployed: // a retired node is undeployed to manageable
		return move{kind: done}
	case GoalAvailable:
		return move{kind: send, verb: nodes.TargetProvide}
	case GoalInspected:
		if sent {
			return move{kind: done}
		}
		return move{kind: send, verb: nodes.TargetInspect}
	case GoalDeployed, GoalRebuilt:
		return move{kind: refuse, reason: reasonNotReady}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

func fromAvailable(goal Goal) move {
	switch goal {
	case GoalAvailable, GoalUndeployed:
		return move{kind: done}
	case GoalManageable, GoalInspected:
		return move{kind: send, verb: nodes.TargetManage}
	case GoalDeployed, GoalRebuilt:
		return move{kind: send, verb: nodes.TargetActive}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

func fromActive(goal Goal, sent bool) move {
	switch goal {
	case GoalDeployed:
		return move{kind: done}
	case GoalRebuilt:
		if sent {
			return move{kind: done}
		}
		return move{kind: send, verb: nodes.TargetRebuild}
	case GoalManageable, GoalAvailable, GoalInspected, GoalUndeployed:
		return running(goal, reasonDeployed)
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

func fromDeployFail(goal Goal) move {
	switch goal {
	case GoalDeployed, GoalRebuilt:
		return move{kind: repair, verb: nodes.TargetActive}
	case GoalUndeployed:
		return move{kind: send, verb: nodes.TargetDeleted}
	case GoalManageable, GoalAvailable, GoalInspected:
		return move{kind: refuse, reason: reasonDeployed}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

// instanceGone is state error: undeploying failed, and only undeploying again leads out.
func instanceGone(goal Goal) move {
	if goal == GoalUndeployed {
		return move{kind: repair, verb: nodes.TargetDeleted}
	}
	return move{kind: refuse, reason: "undeploying it failed. Undeploy it again first"}
}

// running is a node with an instance that only undeploying may end.
func running(goal Goal, reason string) move {
	if goal == GoalUndeployed {
		return move{kind: send, verb: nodes.TargetDeleted}
	}
	return move{kind: refuse, reason: reason}
}

// Settled reports whether a node in this state needs no step towards a goal: it is there, or something is deployed on it,
// which preparing it must not disturb.
func Settled(goal Goal, state State) bool {
	m := nextMove(goal, state, false)
	return m.kind == done || m.kind == refuse
}

// occupied reports whether something is, or may be, running on a node in this state.
func occupied(state State) bool { return nextMove(GoalManageable, state, false).kind == refuse }

// Occupied reports whether something is, or may be, running on a node.
func Occupied(n *Node) bool { return occupied(State(n.ProvisionState)) }

// Finished reports whether a deployment in this state needs nothing more: it runs, or somebody works on it beside us
// (rescue, service, hold) in a way that a deployment must not disturb.
func Finished(state State) bool {
	m := nextMove(GoalDeployed, state, false)
	return m.kind == done || m.reason == reasonRescue || m.reason == reasonDeployed || m.reason == reasonHold
}

// Failed reports whether a deployment in this state has failed, and is begun again by the next walk.
func Failed(state State) bool { return nextMove(GoalDeployed, state, false).kind == repair }

// Parked reports whether a node in this state can spare its machine for a while: nothing runs on it, nothing may run on it, and
// Ironic is not at work on it.
func Parked(state State) bool {
	switch nextMove(GoalManageable, state, false).kind {
	case done, send, repair:
		return true
	case wait, refuse:
	}
	return false
}

// failed reports whether what a node in this state was last told has failed.
func failed(state State) bool {
	switch state { //nolint:exhaustive // only failures
	case nodes.DeployFail, nodes.CleanFail, nodes.InspectFail, nodes.AdoptFail, nodes.RescueFail, nodes.UnrescueFail, nodes.ServiceFail, nodes.Error:
		return true
	}
	return false
}

// BeingDeployed reports whether a node in this state is on its way to run what it was given.
func BeingDeployed(state State) bool { return state == nodes.Deploying || state == nodes.DeployWait }
