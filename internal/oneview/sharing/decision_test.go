package sharing

import (
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// actions has the expected results of actionFor, by the user of the hardware. The maintenance * stands for all without a row.
const actions = `
state           | maintenance | free     | ironic   | oneview
available       | none        | leave    | leave    | take-out
available       | ours        | take-out | take-out | take-out
available       | lifted      | leave    | leave    | leave
available       | fault       | leave    | leave    | leave
available       | foreign     | leave    | leave    | leave
available       | claimed     | leave    | leave    | take-out
manageable      | none        | leave    | leave    | leave
manageable      | lifted      | return   | return   | take-out
manageable      | ours        | return   | return   | leave
manageable      | fault       | leave    | leave    | leave
manageable      | foreign     | leave    | leave    | leave
manageable      | claimed     | report   | report   | leave
clean failed    | none        | leave    | leave    | take-out
clean failed    | lifted      | leave    | leave    | leave
clean failed    | ours        | take-out | take-out | take-out
clean failed    | fault       | leave    | leave    | take-out
clean failed    | foreign     | leave    | leave    | leave
clean failed    | claimed     | leave    | leave    | take-out
enroll          | *           | leave    | leave    | leave
verifying       | *           | leave    | leave    | leave
inspecting      | *           | leave    | leave    | leave
inspect wait    | *           | leave    | leave    | leave
inspect failed  | *           | leave    | leave    | leave
cleaning        | *           | leave    | leave    | leave
clean wait      | *           | leave    | leave    | leave
clean hold      | *           | leave    | leave    | leave
deploying       | *           | leave    | leave    | leave
wait call-back  | *           | leave    | leave    | leave
deploy complete | *           | leave    | leave    | leave
deploy hold     | *           | leave    | leave    | leave
deploy failed   | none        | leave    | leave    | report
deploy failed   | lifted      | leave    | leave    | leave
deploy failed   | ours        | leave    | leave    | leave
deploy failed   | fault       | leave    | leave    | report
deploy failed   | foreign     | leave    | leave    | leave
deploy failed   | claimed     | leave    | leave    | leave
rebuild         | *           | leave    | leave    | leave
active          | *           | leave    | leave    | leave
deleting        | *           | leave    | leave    | leave
deleted         | *           | leave    | leave    | leave
error           | *           | leave    | leave    | leave
adopting        | *           | leave    | leave    | leave
adopt failed    | *           | leave    | leave    | leave
rescuing        | *           | leave    | leave    | leave
rescue wait     | *           | leave    | leave    | leave
rescue          | *           | leave    | leave    | leave
rescue failed   | *           | leave    | leave    | leave
unrescuing      | *           | leave    | leave    | leave
unrescue failed | *           | leave    | leave    | leave
servicing       | *           | leave    | leave    | leave
service wait    | *           | leave    | leave    | leave
service failed  | *           | leave    | leave    | leave
service hold    | *           | leave    | leave    | leave
`

var (
	owners       = []Ownership{Free, UsedByIronic, UsedByOneView}
	maintenances = []maintenance{
		maintenanceNone, maintenanceLifted, maintenanceOurs, maintenanceFault, maintenanceForeign,
		maintenanceClaimed,
	}
)

// expectedActions calls f for every cell of the table.
func expectedActions(f func(owner Ownership, state ironic.State, maintenance maintenance, want Action)) {
	for line := range strings.Lines(strings.TrimSpace(actions)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == "state" {
			continue
		}
		kinds := []maintenance{maintenance(cells[1])}
		if cells[1] == "*" {
			kinds = maintenances
		}
		for _, kind := range kinds {
			for i, owner := range owners {
				f(owner, ironic.State(cells[0]), kind, Action(cells[2+i]))
			}
		}
	}
}

func TestActionForFollowsTable(t *testing.T) {
	t.Parallel()
	rows := 0
	expectedActions(func(owner Ownership, state ironic.State, maintenance maintenance, want Action) {
		rows++
		if got := actionFor(owner, state, maintenance); got != want {
			t.Errorf("actionFor(%s, %q, %s) = %s, want %s", owner, state, maintenance, got, want)
		}
	})
	if want := 33 * len(owners) * len(maintenances); rows != want {
		t.Errorf("the table has %d cells, want %d: a state is missing", rows, want)
	}
}

func TestUnreadHardwareIsLeft(t *testing.T) {
	t.Parallel()
	expectedActions(func(_ Ownership, state ironic.State, maintenance maintenance, _ Action) {
		if got := actionFor(OwnershipUnknown, state, maintenance); got != Leave {
			t.Errorf("actionFor(unknown, %q, %s) = %s, want leave", state, maintenance, got)
		}
	})
}

func TestUnknownStateIsLeft(t *testing.T) {
	t.Parallel()
	if got := actionFor(UsedByOneView, "levitating", maintenanceNone); got != Leave {
		t.Errorf("actionFor = %s, want leave", got)
	}
}

// Rule 2 of the reference: a pass never changes another user's maintenance, or a node in it.
func TestForeignMaintenanceIsLeft(t *testing.T) {
	t.Parallel()
	expectedActions(func(owner Ownership, state ironic.State, _ maintenance, _ Action) {
		if got := actionFor(owner, state, maintenanceForeign); got != Leave {
			t.Errorf("actionFor(%s, %q, foreign) = %s, want leave", owner, state, got)
		}
	})
}

// Rule 4: a pass does not change a node while Ironic has an operation in progress on it.
func TestOperationInProgressIsLeft(t *testing.T) {
	t.Parallel()
	rest := map[ironic.State]bool{nodes.Available: true, nodes.Manageable: true, nodes.CleanFail: true, nodes.DeployFail: true}
	expectedActions(func(owner Ownership, state ironic.State, maintenance maintenance, _ Action) {
		if got := actionFor(owner, state, maintenance); got != Leave && !rest[state] {
			t.Errorf("actionFor(%s, %q, %s) = %s, want leave", owner, state, maintenance, got)
		}
	})
	states := passStates()
	if len(states) != len(rest) {
		t.Errorf("a pass lists nodes in %v, want the %d states with an action other than leave", states, len(rest))
	}
	for _, state := range states {
		if !rest[state] {
			t.Errorf("a pass lists nodes in state %q", state)
		}
	}
}

// Rule 5: no pass repeats a cleaning that has failed on free hardware.
func TestFailedCleaningOfFreeHardwareIsLeft(t *testing.T) {
	t.Parallel()
	for _, maintenance := range []maintenance{maintenanceNone, maintenanceFault} {
		if concern := concerns(nodes.CleanFail, maintenance); !concern {
			t.Errorf("a pass does not read the hardware of a clean failed node with maintenance %s", maintenance)
		}
		if got := actionFor(Free, nodes.CleanFail, maintenance); got != Leave {
			t.Errorf("actionFor(free, clean failed, %s) = %s, want leave", maintenance, got)
		}
	}
}

func TestConcernedStates(t *testing.T) {
	t.Parallel()
	expectedActions(func(_ Ownership, state ironic.State, maintenance maintenance, _ Action) {
		matters := false
		for _, owner := range owners {
			matters = matters || actionFor(owner, state, maintenance) != Leave
		}
		if got := concerns(state, maintenance); got != matters {
			t.Errorf("concerns(%q, %s) = %t, want %t", state, maintenance, got, matters)
		}
	})
}

func TestMaintenanceOf(t *testing.T) {
	t.Parallel()
	marked := func(node ironic.Node) ironic.Node {
		node.DriverInfo = map[string]any{keyOut: returningMark(&node)}
		return node
	}
	out := func(node ironic.Node) ironic.Node {
		node.DriverInfo = map[string]any{keyOut: outMark(node.ProvisionUpdatedAt)}
		return node
	}
	later := func(node ironic.Node) ironic.Node {
		node.ProvisionUpdatedAt = node.ProvisionUpdatedAt.AddDate(1, 0, 0)
		return node
	}
	moved := later(marked(ironic.Node{}))
	for _, tt := range []struct {
		name string
		node ironic.Node
		want maintenance
	}{
		{"no maintenance", ironic.Node{}, maintenanceNone},
		{"our reason", out(ironic.Node{Maintenance: true, MaintenanceReason: ReasonInUse}), maintenanceOurs},
		{
			"our reason over a fault",
			out(ironic.Node{Maintenance: true, MaintenanceReason: ReasonInUse, Fault: machine.FaultClean}),
			maintenanceOurs,
		},
		{"our reason, of others", ironic.Node{Maintenance: true, MaintenanceReason: ReasonInUse}, maintenanceClaimed},
		{"our reason, after an old mark", later(out(ironic.Node{Maintenance: true, MaintenanceReason: ReasonInUse})), maintenanceClaimed},
		{
			"our reason, after a return", marked(ironic.Node{Maintenance: true, MaintenanceReason: ReasonInUse}), maintenanceClaimed,
		},
		{
			"lifted, in extra, by others",
			ironic.Node{Extra: map[string]any{"metal_oneview_returning": "0001-01-01T00:00:00Z", keyOut: returningMark(&ironic.Node{})}},
			maintenanceNone,
		},
		{"our reason without maintenance", ironic.Node{MaintenanceReason: ReasonInUse}, maintenanceNone},
		{"our reason with more to it", ironic.Node{Maintenance: true, MaintenanceReason: ReasonInUse + ", says Bob"}, maintenanceForeign},
		{"another user's reason", ironic.Node{Maintenance: true, MaintenanceReason: "disk swap"}, maintenanceForeign},
		{"no reason", ironic.Node{Maintenance: true}, maintenanceForeign},
		{"being migrated", ironic.Node{Maintenance: true, MaintenanceReason: ReasonMigrating}, maintenanceForeign},
		{
			"a failed clean step",
			ironic.Node{Maintenance: true, MaintenanceReason: "step failed", Fault: machine.FaultClean},
			maintenanceFault,
		},
		{"a power failure", ironic.Node{Maintenance: true, MaintenanceReason: "no power", Fault: "power failure"}, maintenanceForeign},
		{"lifted by a pass", marked(ironic.Node{}), maintenanceLifted},
		{
			"lifted by a pass, and set again by another user", marked(ironic.Node{Maintenance: true, MaintenanceReason: "disk swap"}),
			maintenanceForeign,
		},
		{"lifted by a pass, and moved on since", moved, maintenanceNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := maintenanceOf(&tt.node); got != tt.want {
				t.Errorf("maintenanceOf = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestNotesOnTheNodeAreReservedKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{keyMigrating} {
		if !notes.OwnKey(key) {
			t.Errorf("an import takes %s for the user's", key)
		}
	}
}
