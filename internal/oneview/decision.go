package oneview

import (
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Reasons of maintenance by which this package knows its own again. They are those of Ironic's former OneView drivers and
// of their migration tool, so that what these have begun is taken up.
const (
	ReasonInUse     = "node in use by OneView"
	ReasonMigrating = "Migrating to dynamic allocation"
)

// Maintenance is whose maintenance a node is in.
type Maintenance string

// Whose maintenance it can be.
const (
	// MaintenanceNone: the node is not in maintenance.
	MaintenanceNone Maintenance = "none"
	// MaintenanceLifted: it is not any more, because a pass has lifted it to send provide, and was interrupted.
	MaintenanceLifted Maintenance = "lifted"
	// MaintenanceOurs: the reason is ReasonInUse.
	MaintenanceOurs Maintenance = "ours"
	// MaintenanceFault: Ironic itself has set it because a clean step failed.
	MaintenanceFault Maintenance = "fault"
	// MaintenanceForeign: somebody else has set it, with or without a reason.
	MaintenanceForeign Maintenance = "foreign"
)

// OwnershipUnknown says that the hardware could not be read. Nothing is done to such a node.
const OwnershipUnknown Ownership = "unknown"

// Action is what a pass does with a node.
type Action string

// The actions. Each is finished where an interrupted pass has begun it: what is so already is not done again.
const (
	// Leave does nothing.
	Leave Action = "leave"
	// Withdraw takes a node from Ironic's users: maintenance with ReasonInUse first, then the verb manage.
	Withdraw Action = "withdraw"
	// Return gives it back to them: maintenance off first, then the verb provide, which cleans it.
	Return Action = "return"
)

// rule is one row of the decision table: the actions by who uses the hardware.
type rule struct {
	states      []ironic.State
	maintenance []Maintenance // nil: any

	free, ironic, oneview Action
}

// action picks the column. Of hardware that cannot be read nothing is known, and nothing is done.
func (r rule) action(owner Ownership) Action {
	switch owner {
	case Free:
		return r.free
	case UsedByIronic:
		return r.ironic
	case UsedByOneView:
		return r.oneview
	case OwnershipUnknown:
	}
	return Leave
}

// decisions is the decision table of the three periodic tasks of the specification "dynamic allocation": the first rule
// that fits is taken (reference oneview.md 6, column spec). Maintenance is touched only where it is ours, where there is
// none, or where Ironic itself has set it because the cleaning failed; nobody else's reason is ever overwritten.
var decisions = []rule{
	// Taken by a OneView user while it was available.
	{in(nodes.Available), of(MaintenanceNone), Leave, Leave, Withdraw},
	// A pass was interrupted between maintenance and manage. Somebody had it, so it goes through cleaning in any case.
	{in(nodes.Available), of(MaintenanceOurs), Withdraw, Withdraw, Withdraw},
	// Given back by the OneView user.
	{in(nodes.Manageable), of(MaintenanceOurs), Return, Return, Leave},
	// A pass was interrupted between maintenance off and provide; the node may have been taken again since.
	{in(nodes.Manageable), of(MaintenanceLifted), Return, Return, Withdraw},
	// Taken while Ironic was deploying or cleaning it. Not taken, it is a failure like any other, and the operator's.
	{in(nodes.CleanFail), of(MaintenanceNone, MaintenanceFault), Leave, Leave, Withdraw},
	{in(nodes.CleanFail), of(MaintenanceOurs), Withdraw, Withdraw, Withdraw},
	// What is in these states otherwise is the operator's: all manageable nodes, and all in somebody's maintenance.
	{in(nodes.Available, nodes.Manageable, nodes.CleanFail), nil, Leave, Leave, Leave},
	// The operator's verb decides: manage, inspect, adopt.
	{in(nodes.Enroll, nodes.InspectFail, nodes.AdoptFail), nil, Leave, Leave, Leave},
	// Something runs there. Taken hardware is not powered and not torn down in OneView; the rest is for its owner to see.
	{in(nodes.Active, nodes.Rescue, nodes.RescueFail, nodes.UnrescueFail, nodes.ServiceFail, nodes.Error), nil, Leave, Leave, Leave},
	// Undeploying it leads to cleaning, which fails on taken hardware; then it is one of those above.
	{in(nodes.DeployFail), nil, Leave, Leave, Leave},
	// Ironic is at work, or somebody holds it there.
	{in(nodes.Verifying, nodes.Inspecting, nodes.InspectWait, nodes.Cleaning, nodes.CleanWait, nodes.CleanHold), nil, Leave, Leave, Leave},
	{in(nodes.Deploying, nodes.DeployWait, nodes.DeployDone, nodes.DeployHold, nodes.Rebuild, nodes.Adopting), nil, Leave, Leave, Leave},
	{in(nodes.Deleting, nodes.Deleted, nodes.Rescuing, nodes.RescueWait, nodes.Unrescuing), nil, Leave, Leave, Leave},
	{in(nodes.Servicing, nodes.ServiceWait, nodes.ServiceHold), nil, Leave, Leave, Leave},
}

func in(states ...ironic.State) []ironic.State { return states }

func of(kinds ...Maintenance) []Maintenance { return kinds }

// Decide says what a pass does with a node in a provision state, given whose maintenance it is in and who uses its
// hardware. A state that the table does not know is left alone.
func Decide(owner Ownership, state ironic.State, maintenance Maintenance) Action {
	for _, r := range decisions {
		if slices.Contains(r.states, state) && (r.maintenance == nil || slices.Contains(r.maintenance, maintenance)) {
			return r.action(owner)
		}
	}
	return Leave
}

// concerns reports whether a pass has to look at the hardware of a node: whether who uses it makes a difference.
func concerns(state ironic.State, maintenance Maintenance) bool {
	for _, owner := range []Ownership{Free, UsedByIronic, UsedByOneView} {
		if Decide(owner, state, maintenance) != Leave {
			return true
		}
	}
	return false
}

// passStates are the states of which some row says more than Leave.
func passStates() []ironic.State {
	var states []ironic.State
	for _, r := range decisions {
		if r.free == Leave && r.ironic == Leave && r.oneview == Leave {
			continue
		}
		for _, state := range r.states {
			if !slices.Contains(states, state) {
				states = append(states, state)
			}
		}
	}
	return states
}

// keyReturning is where extra of a node says that a pass has lifted its maintenance and owes it a provide. The value is
// the time since when the node is in its state, so that the mark means nothing any more once the node has left it.
const keyReturning = "metal_oneview_returning"

// returningMark is the value of keyReturning for a node as it is.
func returningMark(node *ironic.Node) string {
	return node.ProvisionUpdatedAt.UTC().Format(time.RFC3339)
}

// maintenanceOf says whose maintenance a node is in.
func maintenanceOf(node *ironic.Node) Maintenance {
	switch {
	case !node.Maintenance && node.Extra[keyReturning] == returningMark(node):
		return MaintenanceLifted
	case !node.Maintenance:
		return MaintenanceNone
	case node.MaintenanceReason == ReasonInUse:
		return MaintenanceOurs
	case node.Fault == ironic.FaultClean:
		return MaintenanceFault
	}
	return MaintenanceForeign
}

// Withdrawn reports whether a pass has taken a node from Ironic's users because its hardware is used by OneView. A later pass
// gives it back: it is for nobody else to make it available.
func Withdrawn(node *ironic.Node) bool { return maintenanceOf(node) == MaintenanceOurs }
