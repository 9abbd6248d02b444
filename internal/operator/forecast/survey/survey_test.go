package survey_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast/survey"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// siteOf is a site for a fake.
func siteOf(fake *fakeironic.Server, limit int) *machine.Site {
	return machine.New(machine.Config{
		Config: api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake, PollInterval: ironictest.Poll},
		Limit:  throttle.Limit{Max: limit, Coordination: throttle.CoordinationIronic},
	})
}

// read reads the site of a fake.
func read(t *testing.T, fake *fakeironic.Server) *survey.Found {
	t.Helper()
	found, err := survey.Read(t.Context(), siteOf(fake, 0))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRead_machinesWithAnOperationInProgress(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(8)
	for i, state := range []string{"available", "active", "clean wait", "wait call-back", "deleting", "inspecting", "rescuing"} {
		fake.Set(fmt.Sprintf("node-%03d", i), "provision_state", state)
	}
	fake.Set("node-007", "provision_state", "active")
	fake.Set("node-007", "target_power_state", "power on")
	found := read(t, fake)
	got := map[string]string{}
	for _, o := range found.Site.Occupied {
		got[o.Name] = fmt.Sprint(o.Does)
		if o.Name == "node-007" && !o.Since.Equal(found.Site.Now) {
			t.Errorf("the restart counts since %s, not since now: it would be stuck", o.Since)
		}
	}
	want := map[string]string{
		"node-002": "[clean]", "node-003": "[deploy]", "node-004": "[undeploy clean]", "node-005": "[inspect]", "node-006": "[]",
		"node-007": "[power-on]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The time of a cleaning is the median of the notes of a class. A failed one does not count.
func TestRead_timesOfCleanings(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(4)
	began := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	for i, minutes := range []int{30, 10, 20, 90} {
		fake.Set(fmt.Sprintf("node-%03d", i), "extra", map[string]any{"terraform_metal_erasure": map[string]any{
			"run": "r", "steps": []any{"deploy.erase_devices"}, "failed": minutes == 90,
			"began": began.Format(time.RFC3339), "ended": began.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339),
		}})
	}
	found := read(t, fake)
	if d, known := found.Times.Of(forecast.Clean, "baremetal"); !known || d != 20*time.Minute {
		t.Errorf("%s, known: %t", d, known)
	}
	if _, known := found.Times.Of(forecast.Deploy, "baremetal"); known {
		t.Error("the time of a deployment is known")
	}
}

// Machines of another run that wait for a slot are in its words.
func TestRead_machinesThatWait(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		fake.StepTime = 10 * time.Minute
		run := siteOf(fake, 1)
		done := make(chan error, 3)
		for i := range 3 {
			go func() {
				m, err := run.Machine(t.Context(), ironictest.NodeOf(t, fake, fmt.Sprintf("node-%03d", i)).UUID)
				if err == nil {
					err = m.SetPower(t.Context(), true, time.Hour)
				}
				done <- err
			}()
		}
		<-time.After(2 * time.Minute)
		found := read(t, fake)
		if w := found.Site.Waiting; len(w) != 1 || w[0].Machines != 2 || w[0].Max != 1 {
			t.Errorf("%+v", w)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Members of a rollout group that a dead run has left failed are away. Reading that changes nothing.
func TestRead_membersThatAreAway(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(2)
	fake.Set("node-000", "provision_state", "active")
	fake.Set("node-000", "instance_uuid", "11111111-1111-4111-8111-111111111111")
	fake.Set("node-000", "extra", map[string]any{"terraform_metal_turn": map[string]any{
		"group": "db", "run": "22222222-2222-4222-8222-222222222222", "instance": "11111111-1111-4111-8111-111111111111", "failed": true,
	}})
	fake.ResetRequests()
	found := read(t, fake)
	if a := found.Site.Away["db"]; len(a) != 1 || !a[0].Failed || a[0].Name != "node-000" {
		t.Errorf("%+v", a)
	}
	if n := ironictest.Count(fake, "GET", ""); n != len(fake.Requests()) {
		t.Errorf("%d of %d requests only read", n, len(fake.Requests()))
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(2)
	fake.Set("node-000", "provision_state", "deploy failed")
	fake.Set("node-000", "extra", map[string]any{"terraform_metal_failures": 2.0})
	named := func(id string) *forecast.Target {
		m := &forecast.Target{}
		m.ID, m.Name = id, id
		return m
	}
	unknown := named("metal_deployment.u")
	unknown.Unknown = "known after apply"
	made := named("metal_host.new")
	made.New = true
	steps := []forecast.Step{
		{Address: "a", Machine: named("node-000"), Turn: &forecast.Turn{Change: rollout.Rebuild}},
		{Address: "b", Machine: named(ironictest.NodeOf(t, fake, "node-001").UUID), Turn: &forecast.Turn{Change: rollout.Rebuild}},
		{Address: "c", Machine: unknown},
		{Address: "d", Machine: made},
	}
	found := read(t, fake)
	if err := found.Complete(steps); err != nil {
		t.Fatal(err)
	}
	if m := steps[0].Machine; m.ID != ironictest.NodeOf(t, fake, "node-000").UUID || m.Class != "baremetal" || m.Failures != 2 ||
		!steps[0].Turn.Away {
		t.Errorf("%+v", m)
	}
	if m := steps[1].Machine; m.Name != "node-001" || steps[1].Turn.Away {
		t.Errorf("%+v", m)
	}
	prepared := []forecast.Step{
		{Address: "metal_host.a", Machine: named("node-000"), Prepares: true, Legs: []forecast.Leg{{forecast.Clean}}},
		{Address: "metal_host.b", Machine: named("node-001"), Prepares: true, Legs: []forecast.Leg{{forecast.Clean}}},
	}
	if err := found.Complete(prepared); err != nil || len(prepared[0].Legs) != 0 || len(prepared[1].Legs) != 1 {
		t.Errorf("%v: %+v", err, prepared)
	}
	if want := []string{"what hosts do to machines on which something is deployed is not counted: metal_host.a"}; !slices.Equal(found.Notes,
		want) {
		t.Errorf("the notes are %q", found.Notes)
	}
	err := found.Complete([]forecast.Step{{Address: "e", Machine: named("rack9-01")}})
	lacks := fault.AboutOf[[]string](err, forecast.KindUnknown)
	if !slices.ContainsFunc(lacks, func(l string) bool { return strings.Contains(l, "node rack9-01 of e: this Ironic has none") }) {
		t.Errorf("the error is %v", err)
	}
}
