package operate_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// leave puts the note of a command that was killed so long ago on the node of a fake.
func leave(fake *fakeironic.Server, command string, goal notes.Goal, ago time.Duration) {
	note := map[string]any{
		"command": command, "by": "eve@desk", "since": time.Now().Add(-ago).UTC().Format(time.RFC3339),
		"goal": string(goal),
	}
	fake.Set("node-000", "extra", map[string]any{notes.KeyOperation: map[string]any{ironic.NewUUID(): note}})
}

// What a command has left long ago does not come to life again, and the next command removes it.
func TestNote_doesNotCountWhenOld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op      operate.Operation
		command string
		goal    notes.Goal
		state   string
		power   string
	}{
		"inspect":   {operate.Inspect(nil), "inspect", notes.GoalAvailable, "manageable", "power on"},
		"power off": {operate.Power(machine.ActionOff), "power reboot --soft", notes.GoalPowerOn, "active", "power on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.Set("node-000", "provision_state", tt.state)
				fake.Set("node-000", "power_state", tt.power)
				leave(fake, tt.command, tt.goal, 25*time.Hour)
				if left := operate.Tasks(tt.op, []ironic.Node{*nodeOf(t, fake)}, operate.Seen{Now: time.Now()})[0].Left; left != "" {
					t.Errorf("the command names it: %s", left)
				}
				if got := do(t.Context(), t, sitetest.NewClient(fake).Site, tt.op, "node-000"); got.Outcome != operate.Done {
					t.Fatalf("%s: %v", got.Outcome, got.Err)
				}
				node := ironictest.NodeOf(t, fake, "node-000")
				if extra, _ := node.Raw["extra"].(map[string]any); node.ProvisionState != tt.state || len(extra) > 0 {
					t.Errorf("the machine is %s, with the notes %v", node.ProvisionState, extra)
				}
			})
		})
	}
}

// A machine was to be retired, and that is not wanted any more.
func TestUnretire_endsAKilledRetire(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "provision_state", "manageable")
		leave(fake, "retire", notes.GoalRetired, 2*time.Hour)
		fake.ResetRequests()
		site := sitetest.NewClient(fake).Site
		if got := do(t.Context(), t, site, operate.Unretire(), "node-000"); got.Outcome != operate.Done {
			t.Fatalf("%s: %v", got.Outcome, got.Err)
		}
		if extra, _ := ironictest.NodeOf(t, fake, "node-000").Raw["extra"].(map[string]any); len(extra) > 0 {
			t.Errorf("the notes are %v", extra)
		}
		if got := do(t.Context(), t, site, operate.Unretire(), "node-000"); got.Outcome != operate.Unchanged {
			t.Errorf("again: %s, %v", got.Outcome, got.Err)
		}
	})
}

// The operation does not go on with a machine on which another run has begun to work since the question: that was not confirmed.
func TestRun_refusesWhereSomebodyHasBegunSince(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "provision_state", "active")
		fake.Set("node-000", "power_state", "power on")
		client, off := sitetest.NewClient(fake), operate.Power(machine.ActionOff)
		machines := []ironic.Node{*nodeOf(t, fake)}
		tasks := operate.Tasks(off, machines, operate.Look(t.Context(), client.Site, machines))
		leave(fake, "virtual-media attach", notes.GoalMedia+"cdrom", time.Second)
		runner := &operate.Runner{Site: client.Site, Parallel: 1}
		got := runner.Run(t.Context(), off, tasks)[0]
		if got.Outcome != operate.Refused || ironictest.NodeOf(t, fake, "node-000").PowerState != "power on" {
			t.Errorf("%s, %v", got.Outcome, got.Err)
		}
	})
}

// Every machine that a run has created keeps the mark of that until its next change: no command has to ask for the lock records of the site
// for each of them.
func TestLook_asksOnlyAboutUnfinishedWork(t *testing.T) {
	t.Parallel()
	for done, asked := range map[string]bool{"": true, "2000-01-01T00:00:00Z": false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			mark := map[string]any{"since": "2000-01-01T00:00:00Z"}
			if done != "" {
				mark["done"] = done
			}
			fake.Set("node-000", "extra", map[string]any{
				string(notes.MarkCreation): map[string]any{"22222222-2222-4222-8222-222222222222": mark},
			})
			operate.Look(t.Context(), sitetest.NewClient(fake).Site, []ironic.Node{*nodeOf(t, fake)})
			if got := ironictest.Count(fake, http.MethodGet, "/v1/chassis") > 0; got != asked {
				t.Errorf("done %q: asked %t, want %t", done, got, asked)
			}
		})
	}
}

// A role may have the right to retire machines, and not to extra. What others have left there keeps it from nothing.
func TestNote_ofOthersNeedsNoRight(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]map[string]any{
		"of a command": {notes.KeyOperation: map[string]any{"22222222-2222-4222-8222-222222222222": map[string]any{
			"command": "power reboot --soft", "by": "eve@desk", "since": "2000-01-01T00:00:00Z", "goal": string(notes.GoalPowerOn),
		}}},
		"of a creation": {string(notes.MarkCreation): map[string]any{"22222222-2222-4222-8222-222222222222": map[string]any{
			"since": "1999-12-30T00:00:00Z", "done": "1999-12-30T00:00:00Z",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.Set("node-000", "provision_state", "manageable")
				fake.Set("node-000", "power_state", "power on")
				fake.Set("node-000", "extra", extra)
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method != http.MethodPatch {
						return nil
					}
					body, err := io.ReadAll(r.Body)
					if r.Body = io.NopCloser(bytes.NewReader(body)); err == nil && !bytes.Contains(body, []byte("/extra")) {
						return nil
					}
					return ironictest.Fault(http.StatusForbidden,
						"Access was denied to the following resource: baremetal:node:update_extra")
				}
				got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Retire("old"), "node-000")
				if got.Outcome != operate.Done || !nodeOf(t, fake).Retired {
					t.Errorf("%s: %v", got.Outcome, got.Err)
				}
			})
		})
	}
}
