package states

import (
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// eachMove calls f for every cell of the table of moves, for a walk that has not sent its goal's verb yet.
func eachMove(f func(state ironic.State, goal Goal, m Move)) {
	for state := range grid {
		for _, goal := range columns {
			f(state, goal, NextMove(goal, state, false))
		}
	}
}

func TestTransition_tableIsWhole(t *testing.T) {
	t.Parallel()
	if len(columns) != len(doings) {
		t.Errorf("%d columns for %d goals", len(columns), len(doings))
	}
	for state, row := range grid {
		if cells := strings.Fields(row); len(cells) != len(columns) {
			t.Errorf("%q has %d cells, want %d", state, len(cells), len(columns))
		}
	}
}

// These goals are reached in a state in which the walk also begins.
func TestTransition_verbIsNotRepeated(t *testing.T) {
	t.Parallel()
	eachMove(func(state ironic.State, goal Goal, m Move) {
		switch {
		case goal == GoalRescued && state == nodes.Rescue, (goal == GoalInspected || goal == GoalConfigured) && state == nodes.Manageable,
			(goal == GoalRebuilt || goal == GoalServiced) && state == nodes.Active:
			m = Move{Kind: Done}
		}
		if got := NextMove(goal, state, true); got != m {
			t.Errorf("from %q to %s after sending: %+v, want %+v", state, goal, got, m)
		}
	})
}

// accepted is which verbs Ironic takes in which state, as its own state machine has it (reference/ironic.md#provision-states), on
// every version that the provider supports.
var accepted = map[ironic.State][]ironic.Verb{
	nodes.Enroll:     {nodes.TargetManage},
	nodes.Manageable: {nodes.TargetProvide, nodes.TargetClean, nodes.TargetInspect, nodes.TargetAdopt},
	nodes.Available:  {nodes.TargetActive, nodes.TargetManage},
	nodes.DeployWait: {nodes.TargetDeleted},
	// service since API 1.87, which its attribute needs
	nodes.Active:       {nodes.TargetDeleted, nodes.TargetRebuild, nodes.TargetRescue, nodes.TargetService},
	nodes.DeployFail:   {nodes.TargetActive, nodes.TargetRebuild, nodes.TargetDeleted},
	nodes.Error:        {nodes.TargetRebuild, nodes.TargetDeleted},
	nodes.CleanWait:    {nodes.TargetAbort},
	nodes.CleanFail:    {nodes.TargetManage},
	nodes.InspectWait:  {nodes.TargetAbort},
	nodes.InspectFail:  {nodes.TargetInspect, nodes.TargetManage},
	nodes.AdoptFail:    {nodes.TargetAdopt, nodes.TargetManage},
	nodes.Rescue:       {nodes.TargetRescue, nodes.TargetUnrescue, nodes.TargetDeleted},
	nodes.RescueWait:   {nodes.TargetAbort, nodes.TargetDeleted},
	nodes.RescueFail:   {nodes.TargetRescue, nodes.TargetUnrescue, nodes.TargetDeleted},
	nodes.UnrescueFail: {nodes.TargetRescue, nodes.TargetUnrescue, nodes.TargetDeleted},
	nodes.ServiceWait:  {nodes.TargetAbort, nodes.TargetDeleted},
	nodes.ServiceFail:  {nodes.TargetService, nodes.TargetRescue, nodes.TargetDeleted},
}

func TestTransition_verbsAreValid(t *testing.T) {
	t.Parallel()
	eachMove(func(state ironic.State, goal Goal, _ Move) {
		for _, sent := range []bool{false, true} {
			m := NextMove(goal, state, sent)
			if (m.Kind == Send || m.Kind == Repair) && !slices.Contains(accepted[state], m.Verb) {
				t.Errorf("from %q to %s: %s, but Ironic takes only %v there", state, goal, m.Verb, accepted[state])
			}
		}
	})
}

func TestTransition_onlyUndeployEndsInstance(t *testing.T) {
	t.Parallel()
	eachMove(func(state ironic.State, goal Goal, m Move) {
		if m.Verb == nodes.TargetDeleted && goal != GoalUndeployed {
			t.Errorf("from %q to %s: %s", state, goal, m.Verb)
		}
		if InstallsInstance(m.Verb) && goal != GoalDeployed && goal != GoalRebuilt {
			t.Errorf("from %q to %s: %s", state, goal, m.Verb)
		}
	})
}

func TestTransition_refusalsAdvise(t *testing.T) {
	t.Parallel()
	eachMove(func(state ironic.State, goal Goal, m Move) {
		if m.Kind == Refuse && !strings.Contains(m.Reason.String(), " first") {
			t.Errorf("from %q to %s: %q", state, goal, m.Reason)
		}
	})
}

func TestTransition_unknownState(t *testing.T) {
	t.Parallel()
	if m := NextMove(GoalAvailable, "polishing", false); m.Kind != Wait {
		t.Errorf("from an unknown state: %+v, want wait", m)
	}
}

func TestTransition_deploymentStates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state            ironic.State
		finished, failed bool
	}{
		{nodes.Active, true, false},
		{nodes.Rescue, true, false},
		{nodes.Rescuing, true, false}, // by an operator, or by an earlier run: it is not deployed again
		{nodes.RescueWait, true, false},
		{nodes.Unrescuing, true, false},
		{nodes.UnrescueFail, true, false},
		{nodes.Servicing, true, false},
		{nodes.ServiceFail, true, false},
		{nodes.DeployHold, true, false},
		{nodes.DeployFail, false, true},
		{nodes.Deploying, false, false},
		{nodes.DeployWait, false, false},
		{nodes.Available, false, false},
		{nodes.Manageable, false, false},
		{nodes.Error, false, false}, // an undeploy that failed: the next apply must say so
		{nodes.Deleting, false, false},
	} {
		if got := Finished(tc.state); got != tc.finished {
			t.Errorf("Finished(%q) = %t", tc.state, got)
		}
		if got := DeployFailed(tc.state); got != tc.failed {
			t.Errorf("Failed(%q) = %t", tc.state, got)
		}
	}
}

func TestTransition_settled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		goal  Goal
		state ironic.State
		want  bool
	}{
		{GoalAvailable, nodes.Available, true},
		{GoalAvailable, nodes.Active, true},
		{GoalAvailable, nodes.Deploying, true},
		{GoalAvailable, nodes.Manageable, false},
		{GoalAvailable, nodes.Cleaning, false},
		{GoalAvailable, nodes.CleanFail, false},
		{GoalManageable, nodes.Manageable, true},
		{GoalManageable, nodes.Enroll, false},
	} {
		if got := Settled(tc.goal, tc.state); got != tc.want {
			t.Errorf("Settled(%s, %q) = %t", tc.goal, tc.state, got)
		}
	}
}
