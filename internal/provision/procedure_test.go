package provision_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// The mark of a creation ends with the first change by a later run. A change by the same run leaves it: until the state is saved, the
// run may still be killed.
func TestProcedure_changeRemovesTheMarkOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		body := map[string]any{"name": "CUSTOM_RAID1", "steps": []any{map[string]any{"interface": "bios", "step": "factory_reset", "args": map[string]any{}, "priority": 10}}}
		first := newClient(fake)
		made, _, err := first.CreateProcedure(t.Context(), ironic.DeployTemplates, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.EndProcedure(t.Context(), ironic.DeployTemplates, made, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, step := range []struct {
			by     *site
			name   string
			marked bool
		}{{first, "CUSTOM_A", true}, {newClient(fake), "CUSTOM_B", false}} {
			if err := step.by.UpdateProcedure(t.Context(), ironic.DeployTemplates, made.UUID, body, map[string]any{"name": step.name, "steps": body["steps"]}); err != nil {
				t.Fatal(err)
			}
			now, err := ironic.ReadIn[ironic.Procedure](t.Context(), step.by.Client, ironic.DeployTemplates, made.UUID)
			if err != nil {
				t.Fatal(err)
			}
			if _, marked := now.Extra[string(provision.MarkCreation)]; marked != step.marked || now.Name != step.name {
				t.Errorf("%s: marked %t, want %t; %+v", step.name, marked, step.marked, now)
			}
		}
	})
}
