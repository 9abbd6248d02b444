package procedure_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sitetest"
)

// The mark of a creation ends with the first change by a later run. A change by the same run leaves it: until the state is saved, the
// run may still be killed.
func TestProcedure_changeRemovesTheMarkOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		body := map[string]any{"name": "CUSTOM_RAID1", "steps": []any{map[string]any{"interface": "bios", "step": "factory_reset", "args": map[string]any{}, "priority": 10}}}
		first := sitetest.NewClient(fake)
		made, _, err := procedure.CreateProcedure(t.Context(), first.Site, ironic.DeployTemplates, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := procedure.EndProcedure(t.Context(), first.Site, ironic.DeployTemplates, made, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, step := range []struct {
			by     *sitetest.Client
			name   string
			marked bool
		}{{first, "CUSTOM_A", true}, {sitetest.NewClient(fake), "CUSTOM_B", false}} {
			if err := procedure.UpdateProcedure(t.Context(), step.by.Site, ironic.DeployTemplates, made.UUID, body, map[string]any{"name": step.name, "steps": body["steps"]}); err != nil {
				t.Fatal(err)
			}
			now, err := ironic.ReadIn[ironic.Procedure](t.Context(), step.by.Ironic, ironic.DeployTemplates, made.UUID)
			if err != nil {
				t.Fatal(err)
			}
			if _, marked := now.Extra[string(marks.MarkCreation)]; marked != step.marked || now.Name != step.name {
				t.Errorf("%s: marked %t, want %t; %+v", step.name, marked, step.marked, now)
			}
		}
	})
}
