package machine_test

import (
	"cmp"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A write of the provider takes the note of a killed command along once it no longer matters.
func TestPatch_removesNotesThatAreOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		goal    notes.Goal
		age     time.Duration
		then    map[string]any // after the note
		removed bool
	}{
		"unfinished":      {notes.GoalAvailable, time.Hour, map[string]any{"provision_state": "manageable"}, false},
		"unfinished, old": {notes.GoalAvailable, 25 * time.Hour, map[string]any{"provision_state": "manageable"}, true},
		"available again": {
			notes.GoalAvailable, time.Hour,
			map[string]any{"provision_state": "manageable", "target": "provide"},
			true,
		},
		"not yet begun":          {notes.GoalAvailable, time.Hour, nil, false},
		"reserved":               {notes.GoalAvailable, time.Hour, map[string]any{"instance_uuid": ironic.NewUUID()}, true},
		"to be retired":          {notes.GoalRetired, time.Hour, map[string]any{"provision_state": "manageable"}, false},
		"retired":                {notes.GoalRetired, time.Hour, map[string]any{"provision_state": "manageable", "retired": true}, true},
		"off":                    {notes.GoalPowerOn, time.Hour, map[string]any{"power_state": "power off"}, false},
		"on":                     {notes.GoalPowerOn, time.Hour, map[string]any{"power_state": "power on"}, true},
		"virtual media attached": {notes.GoalMedia + "cdrom", time.Hour, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				id := noted(fake, tt.goal)
				time.Sleep(tt.age)
				for field, value := range tt.then {
					if field != "target" {
						fake.Set(id, field, value)
					}
				}
				if verb := tt.then["target"]; verb != nil {
					ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/provision", map[string]any{"target": verb})
					time.Sleep(time.Hour)
				}
				m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
				if err == nil {
					err = m.Patch(t.Context(), sitetest.Setting("/description", "new"))
				}
				node := ironictest.NodeOf(t, fake, id)
				extra, _ := node.Raw["extra"].(map[string]any)
				if err != nil || node.Raw["description"] != "new" || (extra[notes.KeyOperation] == nil) != tt.removed {
					t.Errorf("%v; extra: %v", err, extra)
				}
			})
		})
	}
}

// The command removes its note itself while the provider waits with an older record: the write of the provider succeeds all the same.
func TestPatch_succeedsWithoutTheNote(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := noted(fake, notes.GoalPowerOn)
		fake.Set(id, "power_state", "power on")
		m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		fake.Set(id, "extra", map[string]any{})
		if err == nil {
			err = m.Patch(t.Context(), sitetest.Setting("/description", "new"))
		}
		if err != nil || ironictest.NodeOf(t, fake, id).Raw["description"] != "new" {
			t.Error(err)
		}
	})
}

// noted leaves the note of a command with a goal on the only node of a fake, and returns its UUID.
func noted(fake *fakeironic.Server, goal notes.Goal) string {
	command := map[notes.Goal]string{
		notes.GoalAvailable: "inspect", notes.GoalPowerOn: "power reboot --soft",
		notes.GoalRetired: "retire",
	}[goal]
	note := map[string]any{
		"command": cmp.Or(command, "virtual-media attach"), "by": "eve@desk",
		"since": time.Now().UTC().Format(time.RFC3339), "goal": string(goal),
	}
	fake.Set("node-000", "extra", map[string]any{notes.KeyOperation: map[string]any{ironic.NewUUID(): note}})
	node, _ := fake.Node("node-000")
	return node.UUID
}
