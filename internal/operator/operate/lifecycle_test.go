package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

// nodeIn returns a node in a state.
func nodeIn(state string, change func(*ironic.Node)) *ironic.Node {
	n := &ironic.Node{UUID: "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", Name: "rack1-07", ProvisionState: state, RescueInterface: "agent"}
	if change != nil {
		change(n)
	}
	return n
}

// allocated reserves a node by an allocation.
func allocated(n *ironic.Node) { n.InstanceUUID, n.AllocationUUID = "a1", "a1" }

// suspended notes on a node that an allocation is to be created again.
func suspended(n *ironic.Node) {
	n.Extra = map[string]any{notes.KeyAllocation: map[string]any{"uuid": "a1", "name": "web-3"}}
}

// planned is what a test wants of a plan.
type planned struct {
	nothing bool
	harm    operate.Harm
	says    string // in Does, or why it is refused
	refused bool
}

// check compares a plan with what a test wants.
func (want planned) check(t *testing.T, got operate.Plan) {
	t.Helper()
	text := got.Does
	if want.refused {
		text = got.Refused
	}
	if got.Nothing != want.nothing || got.Harm != want.harm || (got.Refused != "") != want.refused || !strings.Contains(text, want.says) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestUndeploy_decides(t *testing.T) {
	t.Parallel()
	no := false
	for name, tt := range map[string]struct {
		node    *ironic.Node
		release bool
		want    planned
	}{
		"deployed": {
			nodeIn("active", allocated), false,
			planned{harm: operate.Erases, says: "erases its disks, and keeps allocation a1"},
		},
		"deployed, released": {
			nodeIn("active", allocated), true,
			planned{harm: operate.Erases, says: "and gives up allocation a1"},
		},
		"without an allocation": {nodeIn("active", func(n *ironic.Node) {
			n.InstanceUUID = "i1"
		}), false, planned{harm: operate.Erases, says: "undeploys it, which erases its disks"}},
		"without a reservation": {nodeIn("active", nil), false, planned{refused: true, says: "without a reservation"}},
		"not cleaned": {nodeIn("active", func(n *ironic.Node) {
			allocated(n)
			n.AutomatedClean = &no
		}), false, planned{harm: operate.Cuts, says: "keep their data"}},
		"failed":                {nodeIn("deploy failed", allocated), false, planned{harm: operate.Erases}},
		"in rescue mode":        {nodeIn("rescue", allocated), false, planned{harm: operate.Erases}},
		"waits for its ramdisk": {nodeIn("wait call-back", allocated), false, planned{harm: operate.Erases}},
		"protected": {nodeIn("active", func(n *ironic.Node) {
			n.Protected, n.ProtectedReason = true, "holds the keys"
		}), false, planned{refused: true, says: "it is protected in Ironic (holds the keys). If the machine may be wiped, first apply " +
			"protected = false"}},
		"held": {nodeIn("deploy hold", allocated), false, planned{refused: true, says: "Unhold or abort it first"}},
		"without a BMC": {nodeIn("active", func(n *ironic.Node) {
			n.PowerInterface = "agent"
		}), false, planned{refused: true, says: "no BMC credentials"}},
		"begins to undeploy": {
			nodeIn("deleting", allocated), false,
			planned{says: "waits for the end of its undeployment, and creates allocation a1 again"},
		},
		"undeploys": {
			nodeIn("deleting", suspended), false,
			planned{says: "waits for the end of its undeployment, and creates allocation a1 again"},
		},
		"undeploying failed": {
			nodeIn("error", suspended), false,
			planned{harm: operate.Erases, says: "and creates allocation a1 again"},
		},
		"cleaning failed": {nodeIn("clean failed", func(n *ironic.Node) {
			n.TargetProvisionState = "available"
		}), false, planned{harm: operate.Erases}},
		"left before the cleaning": {
			nodeIn("manageable", suspended), false,
			planned{harm: operate.Erases, says: "creates allocation a1 again"},
		},
		"left before the allocation": {
			nodeIn("available", suspended), false,
			planned{says: "ends its undeployment, and creates allocation a1 again"},
		},
		"left, released": {nodeIn("available", suspended), true, planned{says: "gives up allocation a1"}},
		"left the note": {nodeIn("available", func(n *ironic.Node) {
			allocated(n)
			suspended(n)
		}), false, planned{says: "removes what its undeployment has left on it, and keeps allocation a1"}},
		"free":                {nodeIn("available", nil), true, planned{nothing: true}},
		"reserved":            {nodeIn("available", allocated), false, planned{nothing: true}},
		"allocated, released": {nodeIn("available", allocated), true, planned{refused: true, says: "run: metal release a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.check(t, operate.Undeploy(nil, tt.release).Decide(tt.node))
		})
	}
}

// TestUndeploy_neverErasesSilently: whatever the state, a machine on which something may run needs its name typed.
func TestUndeploy_neverErasesSilently(t *testing.T) {
	t.Parallel()
	for _, state := range states.All() {
		n := nodeIn(state, allocated)
		plan := operate.Undeploy(nil, false).Decide(n)
		if states.IsOccupied(n) && plan.Refused == "" && plan.Harm < operate.Cuts {
			t.Errorf("%s: %+v", state, plan)
		}
		if !states.IsOccupied(n) && !plan.Nothing && state != "deleting" {
			t.Errorf("%s, on which nothing runs: %+v", state, plan)
		}
	}
}

func TestRescue_decides(t *testing.T) {
	t.Parallel()
	rescue, unrescue := operate.Rescue("secret"), operate.Unrescue()
	for name, tt := range map[string]struct {
		op   operate.Operation
		node *ironic.Node
		want planned
	}{
		"deployed":          {rescue, nodeIn("active", nil), planned{harm: operate.Cuts, says: "keep their data"}},
		"rescued":           {rescue, nodeIn("rescue", nil), planned{harm: operate.Cuts, says: "with the new password"}},
		"failed":            {rescue, nodeIn("rescue failed", nil), planned{harm: operate.Cuts}},
		"free":              {rescue, nodeIn("available", nil), planned{refused: true, says: "nothing runs on this one"}},
		"deployment failed": {rescue, nodeIn("deploy failed", nil), planned{refused: true, says: "nothing runs on this one"}},
		"busy":              {rescue, nodeIn("deploying", nil), planned{refused: true, says: "in progress"}},
		"no rescue mode": {rescue, nodeIn("active", func(n *ironic.Node) {
			n.RescueInterface = "no-rescue"
		}), planned{refused: true, says: "rescue_kernel"}},
		"unrescue":               {unrescue, nodeIn("rescue", nil), planned{harm: operate.Cuts, says: "starts what is deployed"}},
		"unrescue, failed":       {unrescue, nodeIn("unrescue failed", nil), planned{harm: operate.Cuts}},
		"unrescue, not rescued":  {unrescue, nodeIn("active", nil), planned{nothing: true}},
		"unrescue, being undone": {unrescue, nodeIn("unrescuing", nil), planned{refused: true, says: "in progress"}},
		"unrescue, free":         {unrescue, nodeIn("available", nil), planned{refused: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.check(t, tt.op.Decide(tt.node))
		})
	}
}

// runMark is the mark of a run that has not finished.
func runMark(key notes.Mark, instance string) map[string]any {
	mark := &notes.Creation{
		Run: "7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11", Since: time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC),
		Instance: instance,
	}
	return map[string]any{string(key): mark.Value()}
}

func TestRelease_decides(t *testing.T) {
	t.Parallel()
	allocation := &ironic.Allocation{UUID: "a1", Name: "web-3"}
	marked := &ironic.Allocation{UUID: "a1", Extra: runMark(notes.MarkCreation, "")}
	own := func(n *ironic.Node) { n.InstanceUUID, n.Extra = "i1", runMark(notes.MarkReservation, "i1") }
	for name, tt := range map[string]struct {
		allocation *ironic.Allocation
		node       *ironic.Node
		want       planned
	}{
		"free": {
			allocation, nodeIn("available", allocated),
			planned{harm: operate.Restarts, says: "makes node rack1-07 (1be26c0b-03f2-4d2e-ae87-c02d7f33c123) free for others"},
		},
		"of a run": {marked, nodeIn("available", allocated), planned{
			harm: operate.Cuts,
			says: "run 7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11, which began at 2026-05-01T03:00:00Z, is at work on it or was killed",
		}},
		"without a node": {allocation, nil, planned{harm: operate.Restarts, says: "has no node"}},
		"lost":           {allocation, nodeIn("active", nil), planned{harm: operate.Restarts, says: "has lost its node"}},
		"deployed": {
			allocation, nodeIn("active", allocated),
			planned{refused: true, says: "metal undeploy --release rack1-07"},
		},
		"deployed, in maintenance": {allocation, nodeIn("active", func(n *ironic.Node) {
			allocated(n)
			n.Maintenance = true
		}), planned{refused: true, says: "metal undeploy --release rack1-07"}},
		"being deployed": {
			allocation, nodeIn("deploying", allocated),
			planned{refused: true, says: "metal undeploy --release rack1-07"},
		},
		"power changes": {allocation, nodeIn("available", func(n *ironic.Node) {
			allocated(n)
			n.TargetPowerState = "power on"
		}), planned{refused: true, says: "in progress"}},
		"no allocation": {nil, nodeIn("available", own), planned{harm: operate.Cuts, says: "is at work on it or was killed"}},
		"of another client": {nil, nodeIn("available", func(n *ironic.Node) {
			n.InstanceUUID = "i1"
		}), planned{harm: operate.Cuts, says: "removes instance UUID i1"}},
		"of another, stale mark": {nil, nodeIn("available", func(n *ironic.Node) {
			own(n)
			n.InstanceUUID = "i2"
		}), planned{harm: operate.Cuts, says: "removes instance UUID i2"}},
		"of another project": {
			nil, nodeIn("available", allocated),
			planned{refused: true, says: "allocation a1 has reserved it, which Ironic does not show to this user"},
		},
		"no allocation, deployed": {nil, nodeIn("active", own), planned{refused: true, says: "metal undeploy --release rack1-07"}},
		"not reserved":            {nil, nodeIn("available", nil), planned{nothing: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.check(t, operate.DecideRelease(operate.Reservation{Allocation: tt.allocation, Node: tt.node}))
		})
	}
}
