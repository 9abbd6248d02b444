package states

import (
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// The sets below are Ironic's, and are written without the table of moves: an edit of one cell breaks one of the rules that follow.
var (
	preparing = []Goal{GoalManageable, GoalAvailable, GoalInspected, GoalConfigured}

	// An operation in progress ends by itself.
	inProgress = []ironic.State{
		nodes.Verifying, nodes.Deploying, nodes.DeployWait, nodes.DeployDone, nodes.Rebuild, nodes.Deleting, nodes.Deleted, nodes.Cleaning,
		nodes.CleanWait,
		nodes.Inspecting, nodes.InspectWait, nodes.Adopting, nodes.Rescuing, nodes.RescueWait, nodes.Unrescuing, nodes.Servicing,
		nodes.ServiceWait,
	}

	// A hold ends when an operator ends it.
	holds = []ironic.State{nodes.DeployHold, nodes.CleanHold, nodes.ServiceHold}

	// An instance is deployed on the node, or is being deployed.
	withInstance = []ironic.State{
		nodes.Active, nodes.Deploying, nodes.DeployWait, nodes.DeployDone, nodes.Rebuild, nodes.DeployFail, nodes.DeployHold,
		nodes.Rescuing, nodes.RescueWait, nodes.Rescue, nodes.RescueFail, nodes.Unrescuing, nodes.UnrescueFail,
		nodes.Servicing, nodes.ServiceWait, nodes.ServiceFail, nodes.ServiceHold,
	}
)

// Ironic 39.0 has 33 provision states. 21.4 has all of them but those of a service and of a hold.
func TestGrid_hasEachStateOfIronic(t *testing.T) {
	t.Parallel()
	if len(grid) != 33 || len(traits) != len(grid) {
		t.Errorf("there are %d rows of moves and %d of traits, and Ironic has 33 provision states", len(grid), len(traits))
	}
}

// No preparation begins where an instance is or may be, or where an operator holds the node, and it refuses nowhere else.
func TestGrid_preparationSparesInstances(t *testing.T) {
	t.Parallel()
	eachMove(func(state ironic.State, goal Goal, m Move) {
		spares := slices.Contains(withInstance, state) || slices.Contains(holds, state) || state == nodes.Error
		if slices.Contains(preparing, goal) && (m.Kind == Refuse) != spares {
			t.Errorf("from %q to %s: %+v", state, goal, m)
		}
	})
}

// A walk waits for each operation in progress, unless it is a preparation, which refuses, or an undeploy, which ends some operations.
func TestGrid_waitsForOperationsInProgress(t *testing.T) {
	t.Parallel()
	eachMove(func(state ironic.State, goal Goal, m Move) {
		refuses := slices.Contains(preparing, goal) && slices.Contains(withInstance, state)
		ends := goal == GoalUndeployed && slices.Contains(accepted[state], nodes.TargetDeleted)
		if waits := slices.Contains(inProgress, state) && !refuses && !ends; (m.Kind == Wait) != waits {
			t.Errorf("from %q to %s: %+v", state, goal, m)
		}
	})
}

// An undeploy sends deleted wherever Ironic takes it.
func TestGrid_undeploysWhereIronicDoes(t *testing.T) {
	t.Parallel()
	for state := range grid {
		m, takes := NextMove(GoalUndeployed, state, false), slices.Contains(accepted[state], nodes.TargetDeleted)
		if (m.Verb == nodes.TargetDeleted) != takes {
			t.Errorf("from %q: %+v, and Ironic takes deleted: %t", state, m, takes)
		}
	}
}

// A goal is reached in these states. An inspection, a cleaning, a service, a rebuild and a rescue are reached by an operation of the walk.
func TestGrid_goalsAreReached(t *testing.T) {
	t.Parallel()
	reached := map[Goal][]ironic.State{
		GoalManageable: {nodes.Manageable},
		GoalAvailable:  {nodes.Available},
		GoalDeployed:   {nodes.Active},
		GoalAdopted:    {nodes.Active},
		GoalUnrescued:  {nodes.Active, nodes.ServiceFail},
		GoalUndeployed: {nodes.Enroll, nodes.Manageable, nodes.Available},
	}
	eachMove(func(state ironic.State, goal Goal, m Move) {
		if (m.Kind == Done) != slices.Contains(reached[goal], state) {
			t.Errorf("from %q to %s: %+v", state, goal, m)
		}
	})
}

// Each failure has a repair: a walk to the goals that it stands in the way of repeats what has failed, or makes the node manageable.
func TestGrid_failuresAreRepaired(t *testing.T) {
	t.Parallel()
	prepared := append(slices.Clone(preparing), GoalUndeployed)
	repaired := map[ironic.State][]Goal{
		nodes.DeployFail:   {GoalDeployed, GoalRebuilt},
		nodes.Error:        {GoalUndeployed},
		nodes.CleanFail:    prepared,
		nodes.InspectFail:  prepared,
		nodes.AdoptFail:    append(slices.Clone(prepared), GoalAdopted),
		nodes.RescueFail:   {GoalRescued, GoalUnrescued},
		nodes.UnrescueFail: {GoalRescued, GoalUnrescued},
		nodes.ServiceFail:  {GoalServiced},
	}
	eachMove(func(state ironic.State, goal Goal, m Move) {
		if (m.Kind == Repair) != slices.Contains(repaired[state], goal) {
			t.Errorf("from %q to %s: %+v", state, goal, m)
		}
	})
	for state := range grid {
		if name := string(state); Failed(state) != (repaired[state] != nil) || strings.HasSuffix(name, " failed") && !Failed(state) {
			t.Errorf("%q is a failure: %t", state, Failed(state))
		}
	}
}

// Each state in which Ironic waits for its ramdisk can be ended, and so can a hold.
func TestGrid_waitForRamdiskCanBeEnded(t *testing.T) {
	t.Parallel()
	for state := range grid {
		waits := strings.HasSuffix(string(state), " wait") || state == nodes.DeployWait
		if Has(state, awaits) != waits {
			t.Errorf("%q waits for the ramdisk: %t", state, !waits)
		}
		if _, can := Abortable(state); can != (waits || slices.Contains(holds, state) || state == nodes.ServiceFail) {
			t.Errorf("%q can be aborted: %t", state, can)
		}
		if waits && !slices.Contains(accepted[state], nodes.TargetAbort) &&
			NextMove(GoalUndeployed, state, false).Verb != nodes.TargetDeleted {
			t.Errorf("%q cannot be ended", state)
		}
	}
}

// A walk sends the verb of its goal if Ironic takes it; a preparation or an undeploy otherwise makes the node manageable first. An
// available node is deployed, not rebuilt.
func TestGrid_goalsHaveTheirVerb(t *testing.T) {
	t.Parallel()
	verbs := map[Goal]ironic.Verb{
		GoalManageable: nodes.TargetManage, GoalAvailable: nodes.TargetProvide, GoalInspected: nodes.TargetInspect,
		GoalConfigured: nodes.TargetClean,
		GoalDeployed:   nodes.TargetActive, GoalRebuilt: nodes.TargetRebuild, GoalUndeployed: nodes.TargetDeleted,
		GoalAdopted:  nodes.TargetAdopt,
		GoalServiced: nodes.TargetService, GoalRescued: nodes.TargetRescue, GoalUnrescued: nodes.TargetUnrescue,
	}
	eachMove(func(state ironic.State, goal Goal, m Move) {
		want, prepares := verbs[goal], slices.Contains(preparing, goal)
		switch {
		case goal == GoalRebuilt && state != nodes.Active:
			want = nodes.TargetActive
		case prepares && Failed(state), (prepares || goal == GoalUndeployed) && !slices.Contains(accepted[state], want):
			want = nodes.TargetManage
		}
		if sends := m.Kind == Send || m.Kind == Repair; sends && m.Verb != want || m.Kind == Refuse &&
			slices.Contains(accepted[state], want) {
			t.Errorf("from %q to %s: %+v, want %s", state, goal, m, want)
		}
	})
}

// A refusal says what is in the way.
func TestGrid_refusalsSayWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	rescued := []ironic.State{nodes.Rescue, nodes.RescueFail, nodes.UnrescueFail}
	needInstance := []Goal{GoalServiced, GoalRescued, GoalUnrescued}
	eachMove(func(state ironic.State, goal Goal, m Move) {
		if m.Kind != Refuse {
			return
		}
		want := ReasonNotReady
		switch {
		case slices.Contains(holds, state):
			want = reasonHold
		case state == nodes.Error:
			want = reasonUndeploy
		case slices.Contains(rescued, state):
			want = reasonRescue
		case slices.Contains(withInstance, state) && (state != nodes.DeployFail || goal != GoalRescued && goal != GoalUnrescued):
			want = ReasonDeployed
		case slices.Contains(needInstance, goal):
			want = reasonNoneRuns
		case goal == GoalAdopted:
			want = ReasonNoAdopt
		case state == nodes.AdoptFail:
			want = reasonAdopt
		}
		if m.Reason != want {
			t.Errorf("from %q to %s: %q, want %q", state, goal, m.Reason, want)
		}
	})
}
