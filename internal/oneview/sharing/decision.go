package sharing

import (
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Reasons of the maintenance that this package sets. Ironic's former OneView drivers and their migration tool used the same
// reasons, so that this package continues their unfinished work.
const (
	ReasonInUse     = "node in use by OneView"
	ReasonMigrating = "Migrating to dynamic allocation"
)

type maintenance string

// The kinds of maintenance.
const (
	// maintenanceNone: the node is not in maintenance.
	maintenanceNone maintenance = "none"
	// maintenanceLifted: a pass has ended the maintenance to send provide, and was interrupted.
	maintenanceLifted maintenance = "lifted"
	// maintenanceOurs: the reason is ReasonInUse, and driver_info has the mark of a pass.
	maintenanceOurs maintenance = "ours"
	// maintenanceClaimed: the reason is ReasonInUse, without the mark. More users may write the reason than may have the node cleaned.
	maintenanceClaimed maintenance = "claimed"
	// maintenanceFault: Ironic itself has set it because a clean step failed.
	maintenanceFault maintenance = "fault"
	// maintenanceForeign: another user has set it, with or without a reason.
	maintenanceForeign maintenance = "foreign"
)

// OwnershipUnknown says that the hardware could not be read. A pass does not change such a node.
const OwnershipUnknown Ownership = "unknown"

// Action is the operation of a pass on a node.
type Action string

// The actions. Each skips the steps that an interrupted pass has done already.
const (
	// Leave does nothing.
	Leave Action = "leave"
	// TakeOut takes a node out of service: first maintenance with ReasonInUse, then the verb manage.
	TakeOut Action = "take-out"
	// Return returns a node to service: first maintenance off, then the verb provide, which cleans the node.
	Return Action = "return"
	// Report changes nothing and warns the operator, who must act first.
	Report Action = "report"
)

// rule is one row of the decision table: an action for each user of the hardware.
type rule struct {
	state       ironic.State
	maintenance []maintenance

	free, ironic, oneview Action
}

// action returns the action for an owner. It is Leave if the hardware could not be read.
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

// decisions is the decision table of the three periodic tasks of the specification "dynamic allocation". The first matching rule
// applies (reference/oneview.md#decision-table). A pass sets maintenance on nodes that have none. It changes maintenance that a pass has
// set, and maintenance that Ironic has set because the cleaning failed. It never overwrites another reason. Without a rule a pass leaves
// the node alone: the operator sends the next verb, Ironic has an operation in progress, or the node is deployed, and OneView neither
// switches off nor removes hardware in use.
var decisions = []rule{
	// A OneView user has taken an available node.
	{nodes.Available, of(maintenanceNone, maintenanceClaimed), Leave, Leave, TakeOut},
	// A pass was interrupted between maintenance and manage. A OneView user had the server, so the node must be cleaned in any case.
	{nodes.Available, of(maintenanceOurs), TakeOut, TakeOut, TakeOut},
	// The OneView user has freed the server.
	{nodes.Manageable, of(maintenanceOurs), Return, Return, Leave},
	// Nothing proves that a pass has taken the node out of service, so that none may have it cleaned.
	{nodes.Manageable, of(maintenanceClaimed), Report, Report, Leave},
	// A pass was interrupted between maintenance off and provide. A OneView user may have taken the server since.
	{nodes.Manageable, of(maintenanceLifted), Return, Return, TakeOut},
	// A OneView user has taken the server while Ironic cleaned it. If not, the operator must handle the failure.
	{nodes.CleanFail, of(maintenanceNone, maintenanceFault, maintenanceClaimed), Leave, Leave, TakeOut},
	{nodes.CleanFail, of(maintenanceOurs), TakeOut, TakeOut, TakeOut},
	// No verb of Ironic takes the node out of service without switching off and erasing the server, because Ironic does not know OneView.
	{nodes.DeployFail, of(maintenanceNone, maintenanceFault), Leave, Leave, Report},
}

func of(kinds ...maintenance) []maintenance { return kinds }

func actionFor(owner Ownership, state ironic.State, maintenance maintenance) Action {
	for _, r := range decisions {
		if r.state == state && slices.Contains(r.maintenance, maintenance) {
			return r.action(owner)
		}
	}
	return Leave
}

// concerns reports whether a pass must read the hardware of a node, because the action depends on its user.
func concerns(state ironic.State, maintenance maintenance) bool {
	for _, owner := range []Ownership{Free, UsedByIronic, UsedByOneView} {
		if actionFor(owner, state, maintenance) != Leave {
			return true
		}
	}
	return false
}

// passStates returns the states with an action other than Leave.
func passStates() []ironic.State {
	var states []ironic.State
	for _, r := range decisions {
		if !slices.Contains(states, r.state) {
			states = append(states, r.state)
		}
	}
	return states
}

// keyOut is the key in driver_info of a node that a pass or an apply has taken out of service. Only who may change the hardware of a node
// writes it: notes in extra, and a reason, may be of others, and what a pass does by it may erase disks.
const keyOut = "oneview_out_of_service"

// markedFor is how long a mark may be older than the state of the node. The verb manage follows it at once.
const markedFor = time.Hour

const outSince = "since "

// outMark returns the value of keyOut for a node that is taken out of service now.
func outMark(now time.Time) string { return outSince + now.UTC().Format(time.RFC3339) }

// returningMark returns the value of keyOut for a node in its present state whose maintenance a pass has ended, and to which it must still
// send provide. It has the time of the last state change, so that the mark does not apply after the next one.
func returningMark(node *ironic.Node) string {
	return "returning " + node.ProvisionUpdatedAt.UTC().Format(time.RFC3339)
}

// isMarked reports whether the node was taken out of service, and has not left its state since.
func isMarked(node *ironic.Node) bool {
	mark, _ := node.DriverInfo[keyOut].(string)
	since, err := time.Parse(time.RFC3339, strings.TrimPrefix(mark, outSince))
	return err == nil && strings.HasPrefix(mark, outSince) && !node.ProvisionUpdatedAt.After(since.Add(markedFor))
}

// MarkOut is the patch that must come before a maintenance with ReasonInUse.
func MarkOut(now time.Time) (patch ironic.Patch) {
	patch.Set("/driver_info/"+keyOut, outMark(now))
	return patch
}

func maintenanceOf(node *ironic.Node) maintenance {
	switch {
	case !node.Maintenance && node.DriverInfo[keyOut] == returningMark(node):
		return maintenanceLifted
	case !node.Maintenance:
		return maintenanceNone
	case node.MaintenanceReason == ReasonInUse && isMarked(node):
		return maintenanceOurs
	case node.MaintenanceReason == ReasonInUse:
		return maintenanceClaimed
	case node.Fault == machine.FaultClean:
		return maintenanceFault
	}
	return maintenanceForeign
}

// MayLeaveService reports whether a node whose hardware OneView uses can be taken out of service by a maintenance with ReasonInUse, so that
// a later pass makes it available again. It cannot while it is in another user's maintenance.
func MayLeaveService(node *ironic.Node) bool {
	return actionFor(Free, ironic.State(node.ProvisionState), maintenanceOurs) != Leave &&
		!slices.Contains(of(maintenanceForeign, maintenanceOurs, maintenanceClaimed), maintenanceOf(node))
}

// OutOfService reports whether a node is out of service because OneView uses its hardware, as far as its maintenance says. An apply leaves
// it alone then.
func OutOfService(node *ironic.Node) bool {
	return node.Maintenance && node.MaintenanceReason == ReasonInUse
}

// TakenOut reports whether a pass or an apply has taken a node out of service: a later pass ends that.
func TakenOut(node *ironic.Node) bool { return maintenanceOf(node) == maintenanceOurs }

// Ownership says who may use server hardware.
type Ownership string

// The users of server hardware, as Owner determines them.
const (
	// Free: no server profile is applied to it.
	Free Ownership = "free"
	// UsedByIronic: the server profile that is applied to it is the one in its node's driver_info.
	UsedByIronic Ownership = "ironic"
	// UsedByOneView: another server profile is applied to it. This package does not change such hardware.
	UsedByOneView Ownership = "oneview"
)

// Owner says who uses server hardware. It only compares the serverProfileUri of the hardware with applied_server_profile_uri in the
// driver_info of its node. The comparison of URIs ignores case, a slash at the end, and the appliance's address before the path.
func Owner(hardwareProfileURI, appliedProfileURI string) Ownership {
	switch {
	case strings.TrimSpace(hardwareProfileURI) == "":
		return Free
	case oneview.SameURI(hardwareProfileURI, appliedProfileURI):
		return UsedByIronic
	}
	return UsedByOneView
}
