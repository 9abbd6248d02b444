package seed

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

// interrupted are the states in which a node is after its conductor was restarted in the middle of an operation
// (reference/ironic.md#operations-without-a-conductor). Ironic lets those that wait for the ramdisk wait; the fake has no ramdisk for them.
// Other states have no operation in progress.
//
//exhaustive:ignore
var interrupted = map[conductor.State]conductor.State{
	conductor.Verifying: conductor.Enroll, conductor.Adopting: conductor.AdoptFail, conductor.Deleting: conductor.Errored,
	conductor.Cleaning: conductor.CleanFail, conductor.CleanWait: conductor.CleanFail,
	conductor.Deploying: conductor.DeployFail, conductor.DeployWait: conductor.DeployFail,
	conductor.Inspecting: conductor.InspectFail, conductor.InspectWait: conductor.InspectFail,
	conductor.Rescuing: conductor.RescueFail, conductor.RescueWait: conductor.RescueFail, conductor.Unrescuing: conductor.UnrescueFail,
	conductor.Servicing: conductor.ServiceFail, conductor.ServiceWait: conductor.ServiceFail,
}

// settleState puts a node into a state without an operation in progress, and gives it a power state if Ironic has one in that state.
func (s *Seed) settleState(node map[string]any) {
	state := conductor.State(api.Text(node["provision_state"]))
	switch after := interrupted[state]; {
	case after != "":
		s.note("node %s was %s: the fake does not go on with that, and has it in %s", label(node), state, after)
		node["last_error"] = "The operation in state " + string(state) + " can't be resumed by conductor " + conductor.Host +
			". Moving to fail state."
		state = after
	case state == "":
		state = conductor.Available
	case !state.Known():
		s.note("node %s is in state %q, which the fake does not know: it has it in manageable", label(node), string(state))
		state = conductor.Manageable
	}
	node["provision_state"] = string(state)
	if settled := []conductor.State{
		conductor.Enroll, conductor.Manageable, conductor.Available, conductor.Active,
		conductor.Rescued,
	}; slices.Contains(settled, state) {
		node["target_provision_state"] = nil
	}
	if power := api.Text(node["power_state"]); power == conductor.PowerOn || power == conductor.PowerOff || state == conductor.Enroll {
		return
	}
	was, given := node["power_state"]
	node["power_state"] = conductor.PowerOff
	if api.Text(node["instance_uuid"]) != "" || state == conductor.Active {
		node["power_state"] = conductor.PowerOn
	}
	if given {
		s.note("node %s has power_state %s: the BMC of the fake answers, so the fake has it in %q", label(node), api.PyRepr(was),
			api.Text(node["power_state"]))
	}
}
