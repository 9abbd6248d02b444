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

// maintenance says who has put a node into maintenance.
type maintenance string

// The kinds of maintenance.
const (
	// maintenanceNone: the node is not in maintenance.
	maintenanceNone maintenance = "none"
	// maintenanceLifted: a pass has ended the maintenance to send provide, and was interrupted.
	maintenanceLifted maintenance = "lifted"
	// maintenanceOurs: the reason is ReasonInUse.
	maintenanceOurs maintenance = "ours"
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
	{nodes.Available, of(maintenanceNone), Leave, Leave, TakeOut},
	// A pass was interrupted between maintenance and manage. A OneView user had the server, so the node must be cleaned in any case.
	{nodes.Available, of(maintenanceOurs), TakeOut, TakeOut, TakeOut},
	// The OneView user has freed the server.
	{nodes.Manageable, of(maintenanceOurs), Return, Return, Leave},
	// A pass was interrupted between maintenance off and provide. A OneView user may have taken the server since.
	{nodes.Manageable, of(maintenanceLifted), Return, Return, TakeOut},
	// A OneView user has taken the server while Ironic cleaned it. If not, the operator must handle the failure.
	{nodes.CleanFail, of(maintenanceNone, maintenanceFault), Leave, Leave, TakeOut},
	{nodes.CleanFail, of(maintenanceOurs), TakeOut, TakeOut, TakeOut},
	// No verb of Ironic takes the node out of service without switching off and erasing the server, because Ironic does not know OneView.
	{nodes.DeployFail, of(maintenanceNone, maintenanceFault), Leave, Leave, Report},
}

func of(kinds ...maintenance) []maintenance { return kinds }

// actionFor returns the action for a node by its provision state, its maintenance and the user of its hardware.
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

// keyReturning is the key in extra of a node which says that a pass has ended its maintenance and must still send provide. The
// value is the time of the node's last state change, so that the mark does not apply after the next one.
const keyReturning = "metal_oneview_returning"

// returningMark returns the value of keyReturning for a node in its present state.
func returningMark(node *ironic.Node) string {
	return node.ProvisionUpdatedAt.UTC().Format(time.RFC3339)
}

// maintenanceOf returns the kind of maintenance that a node is in.
func maintenanceOf(node *ironic.Node) maintenance {
	switch {
	case !node.Maintenance && node.Extra[keyReturning] == returningMark(node):
		return maintenanceLifted
	case !node.Maintenance:
		return maintenanceNone
	case node.MaintenanceReason == ReasonInUse:
		return maintenanceOurs
	case node.Fault == machine.FaultClean:
		return maintenanceFault
	}
	return maintenanceForeign
}

// MayLeaveService reports whether a node whose hardware OneView uses can be taken out of service by a maintenance with ReasonInUse, so that
// a later pass makes it available again. It cannot while it is in another user's maintenance.
func MayLeaveService(node *ironic.Node) bool {
	kind := maintenanceOf(node)
	return actionFor(Free, ironic.State(node.ProvisionState), maintenanceOurs) != Leave && kind != maintenanceForeign &&
		kind != maintenanceOurs
}

// OutOfService reports whether a pass has taken a node out of service because OneView uses its hardware. Only a later pass may make
// it available again.
func OutOfService(node *ironic.Node) bool { return maintenanceOf(node) == maintenanceOurs }

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
