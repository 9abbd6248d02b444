package doctor_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// The doctor lists nodes with some fields, metal show reads one with all: their advice is the same.
func TestDoctor_advisesAsShow(t *testing.T) {
	t.Parallel()
	s := newSite()
	ironictest.AsOther(t, s.ironic, http.MethodPost, "allocations", map[string]any{
		"name": "db-1", "resource_class": "baremetal",
		"candidate_nodes": []string{"node-000"},
	})
	client := ironic.New(s.options.Site.Config, ironic.Polls{})
	for _, state := range states.All() {
		if !states.Failed(ironic.State(state)) {
			continue
		}
		for field, value := range map[string]any{
			"provision_state": state, "last_error": "Timeout reached while waiting for callback: IPMI call failed: power status.",
			"console_enabled": true,
			"driver_info":     map[string]any{"ipmi_address": "192.0.2.7", "ipmi_username": "admin"},
		} {
			s.ironic.Set("node-000", field, value)
		}
		node, err := client.Node(t.Context(), "node-000")
		if err != nil || node.AllocationUUID == "" {
			t.Fatalf("%v: %+v", err, node)
		}
		want(t, s.run(t), "machine node-000", doctor.Problem, rest.OneLine(strings.Join(show.NextSteps(node, client.ServerNow()), " ")))
	}
}

// Two machines and more that have failed for one reason are one check, with their names, Ironic's words and what was looked up. Words that
// a reading of the power state has cleared are those of the history.
func TestDoctor_tellsAReasonOnce(t *testing.T) {
	t.Parallel()
	s := newSite()
	const words = "Failed to deploy: No suitable device was found for deployment using these hints {'serial': 's== X'}."
	for _, node := range []string{"node-000", "node-001"} {
		s.ironic.Set(node, "provision_state", "deploy failed")
		s.ironic.Set(node, "last_error", words)
	}
	report := s.run(t)
	want(t, report, "reason root-device-none", doctor.Problem, "2 machines have failed for this reason: ")
	want(t, report, "machines", doctor.Problem, "Ironic shows 3 machines, of which 2 failed")
	for _, c := range report.Checks {
		if strings.HasPrefix(c.Name, "machine node") {
			t.Errorf("also told alone: %+v", c)
		}
		if all := strings.Join(c.Details, "\n"); c.Name == "reason root-device-none" && (!strings.Contains(all, "node-001") ||
			!strings.Contains(all, "Ironic says of node-000") || !strings.Contains(all, words) || !strings.Contains(all, "inspect")) {
			t.Errorf("%s", all)
		}
	}
}

// What failed machines have in common is told, conductors included, which lists with few fields do not show.
func TestDoctor_tellsWhatFailedMachinesShare(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.ironic.AddFleet(16, "baremetal")
	for i, n := range s.ironic.Nodes() {
		s.ironic.Set(n.UUID, "conductor", "c1")
		if i >= 13 {
			s.ironic.Set(n.UUID, "conductor", "c2")
			s.ironic.Set(n.UUID, "provision_state", "deploy failed")
			s.ironic.Set(n.UUID, "last_error", "Failed to deploy: Writing image to device /dev/sda failed with exit code 1")
		}
	}
	want(t, s.run(t), "reason image-write", doctor.Problem, "failed: conductor c2; 0 of ")
}

// A health that is not known is not OK: the doctor says nothing of it.
func TestDoctor_tellsTheHealthThatBMCsReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		healths []string // of node-000 and node-001
		want    doctor.Result
		fact    string
	}{
		{nil, "", ""},
		{[]string{"OK"}, doctor.OK, "Ironic tells the health of 1 machine. That of 0 is not OK."},
		{[]string{"OK", "Warning"}, doctor.Warning, "Ironic tells the health of 2 machines. That of 1 is not OK."},
		{[]string{"Critical", "Warning"}, doctor.Problem, "That of 2 is not OK."},
	} {
		s := newSite()
		for i, health := range tt.healths {
			s.ironic.Set([]string{"node-000", "node-001"}[i], "health", health)
		}
		report := s.run(t)
		i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Name == "health" })
		if tt.want == "" {
			if i >= 0 {
				t.Errorf("it tells of a health that is not known: %+v", report.Checks[i])
			}
			continue
		}
		want(t, report, "health", tt.want, tt.fact)
		c, named := report.Checks[i], strings.Join(report.Checks[i].Details, " ")
		for _, health := range tt.healths {
			if health != "OK" && (c.Next != show.LookAtBMC || !strings.Contains(named, ": "+health)) {
				t.Errorf("%+v", c)
			}
		}
	}
	s := newSite()
	s.ironic.MaxMicroversion = "1.108"
	s.ironic.Set("node-000", "health", "Critical")
	for _, c := range s.run(t).Checks {
		if c.Name == "health" {
			t.Errorf("an API without the health tells %+v", c)
		}
	}
}
