package provision

import (
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// moves is what nextMove must say, for a walk that has not sent its goal's verb yet: a verb to send, "VERB!" for a repair,
// done, wait, or "-REASON" for a refusal.
const moves = `
state           | manageable | available | inspected | deployed  | rebuilt   | undeployed | configured | serviced  | rescued   | unrescued | adopted
enroll          | manage     | manage    | manage    | -unready  | -unready  | done       | manage     | -none     | -none     | -none     | -noadopt
verifying       | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
manageable      | done       | provide   | inspect   | -unready  | -unready  | done       | clean      | -none     | -none     | -none     | adopt
available       | manage     | done      | manage    | active    | active    | done       | manage     | -none     | -none     | -none     | -noadopt
active          | -deployed  | -deployed | -deployed | done      | rebuild   | deleted    | -deployed  | service   | rescue    | done      | done
deploying       | -deployed  | -deployed | -deployed | wait      | wait      | wait       | -deployed  | wait      | wait      | wait      | wait
wait call-back  | -deployed  | -deployed | -deployed | wait      | wait      | deleted    | -deployed  | wait      | wait      | wait      | wait
deploy complete | -deployed  | -deployed | -deployed | wait      | wait      | wait       | -deployed  | wait      | wait      | wait      | wait
rebuild         | -deployed  | -deployed | -deployed | wait      | wait      | wait       | -deployed  | wait      | wait      | wait      | wait
deploy failed   | -deployed  | -deployed | -deployed | active!   | active!   | deleted    | -deployed  | -deployed | -none     | -none     | -deployed
deploy hold     | -held      | -held     | -held     | -held     | -held     | -held      | -held      | -held     | -held     | -held     | -held
deleting        | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
deleted         | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
error           | -undeploy  | -undeploy | -undeploy | -undeploy | -undeploy | deleted!   | -undeploy  | -undeploy | -undeploy | -undeploy | -undeploy
cleaning        | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
clean wait      | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
clean failed    | manage!    | manage!   | manage!   | -unready  | -unready  | manage!    | manage!    | -none     | -none     | -none     | -noadopt
clean hold      | -held      | -held     | -held     | -held     | -held     | -held      | -held      | -held     | -held     | -held     | -held
inspecting      | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
inspect wait    | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
inspect failed  | manage!    | manage!   | manage!   | -unready  | -unready  | manage!    | manage!    | -none     | -none     | -none     | -noadopt
adopting        | wait       | wait      | wait      | wait      | wait      | wait       | wait       | wait      | wait      | wait      | wait
adopt failed    | manage!    | manage!   | manage!   | -adopt    | -adopt    | manage!    | manage!    | -none     | -none     | -none     | adopt!
rescuing        | -deployed  | -deployed | -deployed | wait      | wait      | wait       | -deployed  | wait      | wait      | wait      | wait
rescue wait     | -deployed  | -deployed | -deployed | wait      | wait      | deleted    | -deployed  | wait      | wait      | wait      | wait
rescue          | -rescue    | -rescue   | -rescue   | -rescue   | -rescue   | deleted    | -rescue    | -rescue   | rescue    | unrescue  | -rescue
rescue failed   | -rescue    | -rescue   | -rescue   | -rescue   | -rescue   | deleted    | -rescue    | -rescue   | rescue!   | unrescue! | -rescue
unrescuing      | -deployed  | -deployed | -deployed | wait      | wait      | wait       | -deployed  | wait      | wait      | wait      | wait
unrescue failed | -rescue    | -rescue   | -rescue   | -rescue   | -rescue   | deleted    | -rescue    | -rescue   | rescue!   | unrescue! | -rescue
servicing       | -deployed  | -deployed | -deployed | wait      | wait      | wait       | -deployed  | wait      | wait      | wait      | wait
service wait    | -deployed  | -deployed | -deployed | wait      | wait      | deleted    | -deployed  | wait      | wait      | wait      | wait
service failed  | -deployed  | -deployed | -deployed | -deployed | -deployed | deleted    | -deployed  | service!  | rescue    | done      | -deployed
service hold    | -held      | -held     | -held     | -held     | -held     | -held      | -held      | -held     | -held     | -held     | -held
`

// notes are the reasons by their short names in the table.
var notes = map[string]string{
	reasonNotReady: "unready", reasonNoneRuns: "none", reasonDeployed: "deployed", reasonHold: "held", reasonRescue: "rescue", reasonAdopt: "adopt", reasonNoAdopt: "noadopt",
	"undeploying it failed. Undeploy it again first": "undeploy",
}

// tabled writes a move as the table does.
func tabled(m move) string {
	switch m.kind {
	case done:
		return "done"
	case wait:
		return "wait"
	case send:
		return string(m.verb)
	case repair:
		return string(m.verb) + "!"
	case refuse:
		return "-" + notes[m.reason]
	}
	return "?"
}

// expectedMoves calls f for every cell of the table.
func expectedMoves(f func(state ironic.State, goal Goal, want string)) {
	var goals []string
	for line := range strings.Lines(strings.TrimSpace(moves)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if goals == nil {
			goals = cells
			continue
		}
		for i := 1; i < len(cells); i++ {
			f(ironic.State(cells[0]), Goal(goals[i]), cells[i])
		}
	}
}

func TestTransition_table(t *testing.T) {
	t.Parallel()
	cells := 0
	expectedMoves(func(state ironic.State, goal Goal, want string) {
		cells++
		if got := tabled(nextMove(goal, state, false)); got != want {
			t.Errorf("from %q to %s: %s, want %s", state, goal, got, want)
		}
	})
	const states, goals = 33, 11 // all of gophercloud, all of ours
	if cells != states*goals {
		t.Errorf("the table has %d cells, want %d", cells, states*goals)
	}
}

func TestTransition_verbIsNotRepeated(t *testing.T) {
	t.Parallel()
	expectedMoves(func(state ironic.State, goal Goal, want string) {
		switch {
		case goal == GoalRescued && state == nodes.Rescue:
			want = "done"
		case (goal == GoalInspected || goal == GoalConfigured) && state == nodes.Manageable, (goal == GoalRebuilt || goal == GoalServiced) && state == nodes.Active:
			want = "done"
		}
		if got := tabled(nextMove(goal, state, true)); got != want {
			t.Errorf("from %q to %s after sending: %s, want %s", state, goal, got, want)
		}
	})
}

// accepted is which verbs Ironic takes in which state, as its own state machine has it (reference/ironic.md#provision-states), on
// every version that the provider supports.
var accepted = map[ironic.State][]ironic.Verb{
	nodes.Enroll:       {nodes.TargetManage},
	nodes.Manageable:   {nodes.TargetProvide, nodes.TargetClean, nodes.TargetInspect, nodes.TargetAdopt},
	nodes.Available:    {nodes.TargetActive, nodes.TargetManage},
	nodes.DeployWait:   {nodes.TargetDeleted},
	nodes.Active:       {nodes.TargetDeleted, nodes.TargetRebuild, nodes.TargetRescue, nodes.TargetService}, // service since API 1.87, which its attribute needs
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
	expectedMoves(func(state ironic.State, goal Goal, _ string) {
		for _, sent := range []bool{false, true} {
			m := nextMove(goal, state, sent)
			if (m.kind == send || m.kind == repair) && !slices.Contains(accepted[state], m.verb) {
				t.Errorf("from %q to %s: %s, but Ironic takes only %v there", state, goal, m.verb, accepted[state])
			}
		}
	})
}

func TestTransition_onlyUndeployEndsInstance(t *testing.T) {
	t.Parallel()
	expectedMoves(func(state ironic.State, goal Goal, _ string) {
		m := nextMove(goal, state, false)
		if m.verb == nodes.TargetDeleted && goal != GoalUndeployed {
			t.Errorf("from %q to %s: %s", state, goal, m.verb)
		}
		if InstallsInstance(m.verb) && goal != GoalDeployed && goal != GoalRebuilt {
			t.Errorf("from %q to %s: %s", state, goal, m.verb)
		}
	})
}

func TestTransition_refusalsAdvise(t *testing.T) {
	t.Parallel()
	expectedMoves(func(state ironic.State, goal Goal, _ string) {
		if m := nextMove(goal, state, false); m.kind == refuse && !strings.Contains(m.reason, " first") {
			t.Errorf("from %q to %s: %q", state, goal, m.reason)
		}
	})
}

func TestTransition_unknownState(t *testing.T) {
	t.Parallel()
	if m := nextMove(GoalAvailable, "polishing", false); m.kind != wait {
		t.Errorf("from an unknown state: %s, want wait", tabled(m))
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
		if got := Failed(tc.state); got != tc.failed {
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
