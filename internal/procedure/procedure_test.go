package procedure_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// The mark of a creation ends with the first change by a later run. A change by the same run leaves it: until the state is saved, the
// run may still be killed.
func TestProcedure_changeRemovesTheMarkOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		body := map[string]any{
			"name":  "CUSTOM_RAID1",
			"steps": []any{map[string]any{"interface": "bios", "step": "factory_reset", "args": map[string]any{}, "priority": 10}},
		}
		first := sitetest.NewClient(fake)
		made, err := procedure.Create(t.Context(), first.Site, ironic.DeployTemplates, body, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := made.End(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, step := range []struct {
			by     *sitetest.Client
			name   string
			marked bool
		}{{first, "CUSTOM_A", true}, {sitetest.NewClient(fake), "CUSTOM_B", false}} {
			if err := procedure.Update(t.Context(), step.by.Site, ironic.DeployTemplates, made.UUID, body,
				map[string]any{"name": step.name, "steps": body["steps"]}); err != nil {
				t.Fatal(err)
			}
			now, err := ironic.ReadIn[ironic.Procedure](t.Context(), step.by.Ironic, ironic.DeployTemplates, made.UUID)
			if err != nil {
				t.Fatal(err)
			}
			if _, marked := now.Extra[string(notes.MarkCreation)]; marked != step.marked || now.Name != step.name {
				t.Errorf("%s: marked %t, want %t; %+v", step.name, marked, step.marked, now)
			}
		}
	})
}

// permutations returns all orders of some steps.
func permutations(of []ironic.RunbookStep) (all [][]ironic.RunbookStep) {
	if len(of) == 0 {
		return [][]ironic.RunbookStep{nil}
	}
	for i, first := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]ironic.RunbookStep{first}, rest...))
		}
	}
	return all
}

// stepNames returns the names of the steps of a runbook, in the order in which Ironic runs them.
func stepNames(t *testing.T, client *sitetest.Client, id string) (names string, orders []int64) {
	t.Helper()
	p, err := ironic.ReadIn[ironic.Procedure](t.Context(), client.Ironic, ironic.Runbooks, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		names, orders = names+step.Step+" ", append(orders, step.Order)
	}
	return names, orders
}

// Ironic stores what a new list of steps changes after the rest, sorted by name. Whatever order a runbook had, it gets that of the list,
// and no request leaves a step out on the way.
func TestRunbook_stepsAreInTheWantedOrder(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		step := func(kind, name string) ironic.RunbookStep {
			return ironic.RunbookStep{Interface: kind, Step: name, Args: map[string]any{}, Order: 1}
		}
		steps := []ironic.RunbookStep{
			step("deploy", "erase_devices_metadata"), step("bios", "factory_reset"),
			step("raid", "delete_configuration"), step("deploy", "erase_devices"),
		}
		body := map[string]any{"name": "CUSTOM_WIPE", "steps": steps}
		made, err := procedure.Create(t.Context(), client.Site, ironic.Runbooks, body, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wanted := range permutations(steps) {
			now := map[string]any{"name": "CUSTOM_WIPE", "steps": wanted}
			if err := procedure.Update(t.Context(), client.Site, ironic.Runbooks, made.UUID, body, now); err != nil {
				t.Fatal(err)
			}
			body = now
			want := ""
			for _, step := range wanted {
				want += step.Step + " "
			}
			if got, orders := stepNames(t, client, made.UUID); got != want || !slices.IsSorted(orders) {
				t.Errorf("the steps are %s%v, want %s", got, orders, want)
			}
		}
		for _, r := range fake.Requests() {
			if body := r.Body; r.Method == http.MethodPatch && strings.Contains(body, "/steps") &&
				strings.Count(body, `"step"`) != len(steps) {
				t.Errorf("a request leaves out a step: %s", body)
			}
		}
	})
}
