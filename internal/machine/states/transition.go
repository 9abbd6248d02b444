package states

import (
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Goal is what a walk brings a node to.
type Goal string

// The goals. Each is reached by a walk over provision states, one move after the other.
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
	// GoalUnrescued: active again after a rescue. A live ISO boots again (reference/live-iso.md#end-of-a-rescue).
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

// doings are the goals as activities, for messages.
var doings = map[Goal]string{
	GoalManageable: "making it manageable",
	GoalAvailable:  "making it available",
	GoalInspected:  "inspecting it",
	GoalConfigured: "changing its hardware settings",
	GoalServiced:   "servicing it",
	GoalRescued:    "booting its rescue system",
	GoalUnrescued:  "ending its rescue",
	GoalDeployed:   "deploying it",
	GoalRebuilt:    "rebuilding it",
	GoalAdopted:    "adopting it",
	GoalUndeployed: "undeploying it",
}

// Doing returns the goal as an activity, for messages.
func (g Goal) Doing() string { return doings[g] }

// goalOperations are what brings a node to the goals, as the spans of traces name them.
var goalOperations = map[Goal]string{
	GoalManageable: "manage",
	GoalAvailable:  "provide",
	GoalInspected:  "inspect",
	GoalConfigured: "clean",
	GoalServiced:   "service",
	GoalRescued:    "rescue",
	GoalUnrescued:  "unrescue",
	GoalDeployed:   "deploy",
	GoalRebuilt:    "rebuild",
	GoalAdopted:    "adopt",
	GoalUndeployed: "undeploy",
}

// Operation returns what brings a node to the goal, in one word.
func (g Goal) Operation() string { return goalOperations[g] }

// Move is the next step of a walk.
type Move struct {
	Kind   MoveKind
	Verb   ironic.Verb // of send and repair
	once   bool        // a walk that has sent the verb has reached its goal when the node is in this state again
	Reason Reason      // of refuse
}

// MoveKind is what a walk does next.
type MoveKind int

// The kinds of moves.
const (
	Refuse MoveKind = iota // the provider may not continue
	Done                   // the goal is reached
	Wait                   // an operation is in progress
	Send                   // send the verb
	Repair                 // an operation has failed: repeat it with the verb if an earlier run left the failure, else report it
)

// Reason says why a walk may not continue.
type Reason string

// The reasons, as the table of moves has them.
const (
	ReasonDeployed   Reason = "deployed"
	reasonRescue     Reason = "rescue"
	reasonHold       Reason = "held"
	reasonAdopt      Reason = "adopt"
	ReasonNotReady   Reason = "unready"
	ReasonNoAdopt    Reason = "noadopt"
	reasonNoneRuns   Reason = "none"
	reasonUndeploy   Reason = "undeploy"
	ReasonNoBMC      Reason = "nobmc" // in place of ReasonNotReady
	ReasonBusy       Reason = "busy"
	ReasonOtherSince Reason = "since"
)

// reasons are the reasons in words, each with what to do.
var reasons = map[Reason]string{
	ReasonDeployed: "something is deployed on it. Destroy its metal_deployment, or undeploy it, first",
	reasonRescue:   "it is in rescue mode. Unrescue it first",
	reasonHold:     "an operator holds it there. Unhold or abort it first",
	reasonAdopt:    "its adoption failed. Adopt it again or manage it first",
	ReasonNotReady: "it cannot be deployed from there. Make it available first: apply its metal_host with target_state = \"available\"",
	ReasonNoBMC:    "Ironic knows no BMC of it, so it cannot become available. Give its metal_host a bmc, or a driver with driver_info",
	ReasonNoAdopt: "no deployment to adopt runs on it. If the machine runs something, make the node manageable first (metal_host " +
		"target_state = \"manageable\"). To deploy an image, set image instead of adopt",
	reasonNoneRuns: "nothing is deployed on it any more. With Terraform, run terraform plan again first",
	reasonUndeploy: "undeploying it failed. Undeploy it again first",
	ReasonBusy:     "an operation on it is in progress. Apply again when it is available",
	ReasonOtherSince: "another client has deployed it since its deployment failed. Undeploy it first if nothing on it is needed (metal " +
		"undeploy), and apply again",
}

// String returns the reason in words.
func (r Reason) String() string { return reasons[r] }

// columns are the goals in the order of the table of moves.
var columns = []Goal{
	GoalManageable, GoalAvailable, GoalInspected, GoalConfigured, GoalDeployed, GoalRebuilt, GoalUndeployed, GoalAdopted, GoalServiced,
	GoalRescued, GoalUnrescued,
}

// grid says what to do with a node in a state to reach a goal (reference/ironic.md#provision-states): "done"; "wait" for the operation in
// progress; a verb to send; a verb to send and, once this walk has sent it, "/done"; a verb with "!" that repairs a failure which an
// earlier run has left; or "-" with the reason to refuse. Preparing a node never waits for a deployment, and only undeploying ends an
// instance.
var grid = map[ironic.State]string{
	//                   manageable  available  inspected     configured  deployed   rebuilt       undeployed  adopted    serviced      rescued      unrescued
	nodes.Enroll: "manage      manage     manage        manage      -unready   -unready      done        -noadopt   -none " +
		"        -none        -none",
	nodes.Verifying: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.Manageable: "done        provide    inspect/done  clean/done  -unready   -unready      done        adopt      -none " +
		"        -none        -none",
	nodes.Available: "manage      done       manage        manage      active     active        done        -noadopt   -none " +
		"        -none        -none",
	nodes.Active: "-deployed   -deployed  -deployed     -deployed   done       rebuild/done  deleted     done       service/done " +
		" rescue       done",
	nodes.Deploying: "-deployed   -deployed  -deployed     -deployed   wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.DeployWait: "-deployed   -deployed  -deployed     -deployed   wait       wait          deleted     wait       wait " +
		"         wait         wait",
	nodes.DeployDone: "-deployed   -deployed  -deployed     -deployed   wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.Rebuild: "-deployed   -deployed  -deployed     -deployed   wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.DeployFail: "-deployed   -deployed  -deployed     -deployed   active!    active!       deleted     -deployed  -deployed " +
		"    -none        -none",
	nodes.DeployHold: "-held       -held      -held         -held       -held      -held         -held       -held      -held " +
		"        -held        -held",
	nodes.Deleting: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.Deleted: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.Error: "-undeploy   -undeploy  -undeploy     -undeploy   -undeploy  -undeploy     deleted!    -undeploy  -undeploy " +
		"    -undeploy    -undeploy",
	nodes.Cleaning: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.CleanWait: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.CleanFail: "manage!     manage!    manage!       manage!     -unready   -unready      manage!     -noadopt   -none " +
		"        -none        -none",
	nodes.CleanHold: "-held       -held      -held         -held       -held      -held         -held       -held      -held " +
		"        -held        -held",
	nodes.Inspecting: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.InspectWait: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.InspectFail: "manage!     manage!    manage!       manage!     -unready   -unready      manage!     -noadopt   -none " +
		"        -none        -none",
	nodes.Adopting: "wait        wait       wait          wait        wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.AdoptFail: "manage!     manage!    manage!       manage!     -adopt     -adopt        manage!     adopt!     -none " +
		"        -none        -none",
	nodes.Rescuing: "-deployed   -deployed  -deployed     -deployed   wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.RescueWait: "-deployed   -deployed  -deployed     -deployed   wait       wait          deleted     wait       wait " +
		"         wait         wait",
	nodes.Rescue: "-rescue     -rescue    -rescue       -rescue     -rescue    -rescue       deleted     -rescue    -rescue " +
		"      rescue/done  unrescue",
	nodes.RescueFail: "-rescue     -rescue    -rescue       -rescue     -rescue    -rescue       deleted     -rescue    -rescue " +
		"      rescue!      unrescue!",
	nodes.Unrescuing: "-deployed   -deployed  -deployed     -deployed   wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.UnrescueFail: "-rescue     -rescue    -rescue       -rescue     -rescue    -rescue       deleted     -rescue    -rescue " +
		"      rescue!      unrescue!",
	nodes.Servicing: "-deployed   -deployed  -deployed     -deployed   wait       wait          wait        wait       wait " +
		"         wait         wait",
	nodes.ServiceWait: "-deployed   -deployed  -deployed     -deployed   wait       wait          deleted     wait       wait " +
		"         wait         wait",
	nodes.ServiceFail: "-deployed   -deployed  -deployed     -deployed   -deployed  -deployed     deleted     -deployed  service! " +
		"     rescue       done",
	nodes.ServiceHold: "-held       -held      -held         -held       -held      -held         -held       -held      -held " +
		"        -held        -held",
}

// moves is the grid by state and goal.
var moves = func() map[ironic.State]map[Goal]Move {
	all := make(map[ironic.State]map[Goal]Move, len(grid))
	for state, row := range grid {
		all[state] = make(map[Goal]Move, len(columns))
		for i, cell := range strings.Fields(row) {
			all[state][columns[i]] = moveOf(cell)
		}
	}
	return all
}()

// moveOf reads a cell of the grid.
func moveOf(cell string) Move {
	verb, once := strings.CutSuffix(cell, "/done")
	verb, repairs := strings.CutSuffix(verb, "!")
	why, refuses := strings.CutPrefix(cell, "-")
	switch {
	case refuses:
		return Move{Kind: Refuse, Reason: Reason(why)}
	case cell == "done":
		return Move{Kind: Done}
	case cell == "wait":
		return Move{Kind: Wait}
	case repairs:
		return Move{Kind: Repair, Verb: ironic.Verb(verb)}
	}
	return Move{Kind: Send, Verb: ironic.Verb(verb), once: once}
}

// NextMove says what to do with a node in a state to reach a goal. sent says whether this walk has sent the goal's own verb. In a state of
// a newer Ironic it waits until that changes.
func NextMove(goal Goal, state ironic.State, sent bool) Move {
	row, known := moves[state]
	switch m := row[goal]; {
	case !known:
		return Move{Kind: Wait}
	case sent && m.once:
		return Move{Kind: Done}
	default:
		return m
	}
}
