package provision

import (
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Goal is what a walk brings a node to.
type Goal string

// The goals. Each is reached by a walk over provision states, whose steps nextMove decides.
const (
	// GoalManageable: Ironic can reach the BMC; nothing is erased.
	GoalManageable Goal = "manageable"
	// GoalAvailable: ready to be allocated. Ironic cleans the node on the way.
	GoalAvailable Goal = "available"
	// GoalInspected: inspected by this walk, and manageable.
	GoalInspected Goal = "inspected"
	// GoalConfigured: the steps of a manual cleaning by this walk have run; manageable.
	GoalConfigured Goal = "configured"
	// GoalServiced: the steps of a service by this walk have run; active.
	GoalServiced Goal = "serviced"
	// GoalRescued: in Ironic's rescue ramdisk, with the password of this walk.
	GoalRescued Goal = "rescued"
	// GoalUnrescued: active again after a rescue.
	GoalUnrescued Goal = "unrescued"
	// GoalDeployed: active with the instance that the caller has prepared.
	GoalDeployed Goal = "deployed"
	// GoalRebuilt: active after a rebuild by this walk.
	GoalRebuilt Goal = "rebuilt"
	// GoalAdopted: active with what the machine runs already; nothing is written to its disks.
	GoalAdopted Goal = "adopted"
	// GoalUndeployed: without an instance, and the cleaning that follows in Ironic has ended.
	GoalUndeployed Goal = "undeployed"
)

// Doing returns the goal as an activity, for messages.
func (g Goal) Doing() string {
	switch g {
	case GoalManageable:
		return "making it manageable"
	case GoalAvailable:
		return "making it available"
	case GoalInspected:
		return "inspecting it"
	case GoalConfigured:
		return "changing its hardware settings"
	case GoalServiced:
		return "servicing it"
	case GoalRescued:
		return "booting its rescue system"
	case GoalUnrescued:
		return "ending its rescue"
	case GoalDeployed:
		return "deploying it"
	case GoalRebuilt:
		return "rebuilding it"
	case GoalAdopted:
		return "adopting it"
	case GoalUndeployed:
		return "undeploying it"
	}
	return string(g)
}

type moveKind int

const (
	done   moveKind = iota // the goal is reached
	wait                   // an operation is in progress
	send                   // send the verb
	repair                 // an operation has failed: repeat it with the verb if an earlier run left the failure, else report it
	refuse                 // the provider may not continue; reason says why
)

// move is the next step of a walk.
type move struct {
	kind   moveKind
	verb   ironic.Verb
	reason string
}

// Reasons to refuse, each with what to do.
const (
	reasonDeployed = "something is deployed on it. Destroy its metal_deployment, or undeploy it, first"
	reasonRescue   = "it is in rescue mode. Unrescue it first"
	reasonHold     = "an operator holds it there. Unhold or abort it first"
	reasonAdopt    = "its adoption failed. Adopt it again or manage it first"
	reasonNotReady = "it cannot be deployed from there. Make it available first (metal_host target_state = \"available\")"
	reasonNoBMC    = "Ironic knows no BMC of it, so it cannot become available. Give its metal_host a bmc, or a driver with driver_info"
	reasonNoAdopt  = "no deployment to adopt runs on it. If the machine runs something, make the node manageable first (metal_host target_state = \"manageable\"). To deploy an image, set image instead of adopt"
	reasonNoneRuns = "nothing is deployed on it any more. Run terraform plan again first"
	reasonBusy     = "an operation on it is in progress. Apply again when it is available"
	reasonNoGoal   = "the provider does not know how to continue from there"
)

// reasonDeployedSince is the reason not to undeploy a machine because of a failure before its present deployment.
const reasonDeployedSince = "another client has deployed it since its deployment failed. Undeploy it first if nothing on it is needed (baremetal node undeploy), and apply again"

// nextMove says what to do with a node in a state to reach a goal. It is the only table over provision states
// (reference/ironic.md#provision-states). sent says whether this walk has sent the goal's own verb. It has no default case, so
// that the linter reports a state that gophercloud adds.
func nextMove(goal Goal, state ironic.State, sent bool) move {
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
		if goal == GoalAdopted {
			return move{kind: repair, verb: nodes.TargetAdopt}
		}
		return byGoal(goal, move{kind: repair, verb: nodes.TargetManage}, move{kind: refuse, reason: reasonAdopt})
	case nodes.Error:
		return instanceGone(goal)
	case nodes.Rescue, nodes.RescueFail, nodes.UnrescueFail:
		return fromRescue(goal, state, sent)
	case nodes.ServiceFail:
		return fromServiceFail(goal)
	case nodes.CleanHold, nodes.DeployHold, nodes.ServiceHold:
		return move{kind: refuse, reason: reasonHold}
	}
	return move{kind: wait} // a state of a newer Ironic: wait until it changes
}

// byGoal returns one of two moves: prepare for the goals of a node without an instance, deploy for the goals of a deployment. An
// undeployed node has reached its goal in both cases.
func byGoal(goal Goal, prepare, deploy move) move {
	switch goal {
	case GoalManageable, GoalAvailable, GoalInspected, GoalConfigured:
		return prepare
	case GoalDeployed, GoalRebuilt:
		return deploy
	case GoalServiced, GoalRescued, GoalUnrescued:
		return move{kind: refuse, reason: reasonNoneRuns}
	case GoalAdopted:
		return move{kind: refuse, reason: reasonNoAdopt}
	case GoalUndeployed:
		if prepare.kind == repair {
			return prepare
		}
		return move{kind: done}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

// inTransit waits for the operation in progress, except that preparing a node never waits for a deployment.
func inTransit(goal Goal, state ironic.State) move {
	deploys := state == nodes.Deploying || state == nodes.DeployWait || state == nodes.DeployDone || state == nodes.Rescuing || state == nodes.RescueWait ||
		state == nodes.Unrescuing || state == nodes.Servicing || state == nodes.ServiceWait || state == nodes.Rebuild
	if deploys && (goal == GoalManageable || goal == GoalAvailable || goal == GoalInspected || goal == GoalConfigured) {
		return move{kind: refuse, reason: reasonDeployed}
	}
	if goal == GoalUndeployed && (state == nodes.DeployWait || state == nodes.RescueWait || state == nodes.ServiceWait) {
		return move{kind: send, verb: nodes.TargetDeleted}
	}
	return move{kind: wait}
}

func fromManageable(goal Goal, sent bool) move {
	switch goal {
	case GoalManageable, GoalUndeployed: // Ironic undeploys a retired node to manageable
		return move{kind: done}
	case GoalAvailable:
		return move{kind: send, verb: nodes.TargetProvide}
	case GoalInspected:
		if sent {
			return move{kind: done}
		}
		return move{kind: send, verb: nodes.TargetInspect}
	case GoalConfigured:
		if sent {
			return move{kind: done}
		}
		return move{kind: send, verb: nodes.TargetClean}
	case GoalAdopted:
		return move{kind: send, verb: nodes.TargetAdopt}
	case GoalDeployed, GoalRebuilt:
		return move{kind: refuse, reason: reasonNotReady}
	case GoalServiced, GoalRescued, GoalUnrescued:
		return move{kind: refuse, reason: reasonNoneRuns}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

func fromAvailable(goal Goal) move {
	switch goal {
	case GoalAvailable, GoalUndeployed:
		return move{kind: done}
	case GoalManageable, GoalInspected, GoalConfigured:
		return move{kind: send, verb: nodes.TargetManage}
	case GoalDeployed, GoalRebuilt:
		return move{kind: send, verb: nodes.TargetActive}
	case GoalAdopted:
		return move{kind: refuse, reason: reasonNoAdopt}
	case GoalServiced, GoalRescued, GoalUnrescued:
		return move{kind: refuse, reason: reasonNoneRuns}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

func fromActive(goal Goal, sent bool) move {
	switch goal {
	case GoalDeployed, GoalAdopted, GoalUnrescued:
		return move{kind: done}
	case GoalRescued:
		return move{kind: send, verb: nodes.TargetRescue}
	case GoalRebuilt:
		if sent {
			return move{kind: done}
		}
		return move{kind: send, verb: nodes.TargetRebuild}
	case GoalServiced:
		if sent {
			return move{kind: done}
		}
		return move{kind: send, verb: nodes.TargetService}
	case GoalManageable, GoalAvailable, GoalInspected, GoalConfigured, GoalUndeployed:
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
	case GoalManageable, GoalAvailable, GoalInspected, GoalConfigured, GoalServiced, GoalAdopted:
		return move{kind: refuse, reason: reasonDeployed}
	case GoalRescued, GoalUnrescued:
		return move{kind: refuse, reason: reasonNoneRuns}
	}
	return move{kind: refuse, reason: reasonNoGoal}
}

// fromRescue handles a node in rescue mode, also one that could not enter or leave it. A rescue system that this walk has not booted
// may have another password, so it is booted again.
func fromRescue(goal Goal, state ironic.State, sent bool) move {
	kind := send
	if state != nodes.Rescue {
		kind = repair
	}
	switch {
	case goal == GoalRescued && state == nodes.Rescue && sent:
		return move{kind: done}
	case goal == GoalRescued:
		return move{kind: kind, verb: nodes.TargetRescue}
	case goal == GoalUnrescued:
		return move{kind: kind, verb: nodes.TargetUnrescue}
	}
	return running(goal, reasonRescue)
}

// fromServiceFail handles a node whose service has failed. Its instance is still deployed.
func fromServiceFail(goal Goal) move {
	switch goal { //nolint:exhaustive // running decides the others
	case GoalServiced:
		return move{kind: repair, verb: nodes.TargetService}
	case GoalRescued:
		return move{kind: send, verb: nodes.TargetRescue}
	case GoalUnrescued:
		return move{kind: done}
	}
	return running(goal, reasonDeployed)
}

// instanceGone handles state error: undeploying has failed, and only undeploying again continues from there.
func instanceGone(goal Goal) move {
	if goal == GoalUndeployed {
		return move{kind: repair, verb: nodes.TargetDeleted}
	}
	return move{kind: refuse, reason: "undeploying it failed. Undeploy it again first"}
}

// running handles a node with an instance that only undeploying may end.
func running(goal Goal, reason string) move {
	if goal == GoalUndeployed {
		return move{kind: send, verb: nodes.TargetDeleted}
	}
	return move{kind: refuse, reason: reason}
}
