package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// byRunbook returns a site that cleans machines by the runbook "wipe", and a node in a state whose runbook is the given one.
func byRunbook(t *testing.T, runbook, state string) (*fakeironic.Server, *sitetest.Client) {
	t.Helper()
	fake := ironictest.Fleet(1)
	fake.CleansByRunbook, fake.StepTime = true, time.Minute
	client := sitetest.NewClient(fake)
	fake.Set("node-000", "provision_state", state)
	fake.Set("node-000", "driver_info", map[string]any{"cleaning_runbook": runbook})
	body := map[string]any{"name": "wipe", "steps": []any{map[string]any{
		"interface": "bios", "step": "factory_reset",
		"args": map[string]any{}, "order": 1,
	}}}
	if err := client.Ironic.Request(t.Context(), http.MethodPost, "runbooks", body, nil); err != nil {
		t.Fatal(err)
	}
	return fake, client
}

// wantWords fails a test unless an error explains itself with all the texts.
func wantWords(t *testing.T, err error, texts ...string) {
	t.Helper()
	_, detail := failure.Explain("make it available", err)
	for _, text := range texts {
		if !strings.Contains(detail, text) {
			t.Errorf("%q is missing in: %s", text, detail)
		}
	}
}

// Ironic answers the verb provide with a 404 if the cleaning runbook is missing, and with a 500 if it does not fit. Neither means that the
// node is gone.
func TestCleaningRunbook_isNamedWhenIronicRefusesIt(t *testing.T) {
	t.Parallel()
	for runbook, answer := range map[string]string{
		"none": "Runbook none could not be found.",
		"wipe": "Runbook has no traits configured.",
	} {
		t.Run(runbook, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, client := byRunbook(t, runbook, "manageable")
				_, err := client.Reach(t.Context(), "node-000", states.GoalAvailable, time.Hour)
				if api.IsNotFound(err) || !failure.Is(err, failure.KindInvalid) {
					t.Errorf("the error is %v", err)
				}
				wantWords(t, err, "Ironic cannot use its cleaning runbook", answer,
					"Correct cleaning_runbook of its metal_host, which is "+runbook)
				sent := 0
				for _, r := range fake.Requests() {
					if r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/states/provision") {
						sent++
					}
				}
				if sent != 1 {
					t.Errorf("the verb was sent %d times", sent)
				}
			})
		})
	}
}

// Ironic leaves a node in deleting if it cannot use the cleaning runbook after an undeployment.
func TestCleaningRunbook_isNamedWhenAnUndeploymentHangs(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		const instance = "11111111-1111-4111-8111-111111111111"
		fake, client := byRunbook(t, "none", "active")
		fake.Set("node-000", "instance_uuid", instance)
		_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
			return m.Walk(t.Context(), states.GoalUndeployed, instance, ironic.Order{}, time.Hour)
		})
		if !failure.Is(err, machine.KindStuck) {
			t.Errorf("the error is %v", err)
		}
		wantWords(t, err, `is in state "deleting", but no conductor works on it`,
			"Look at cleaning_runbook of its metal_host, which is none", "restart the conductor")
	})
}
