package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The plan of a destruction says if it finishes the quarantine of a killed run, and says nothing of one that another client has overtaken.
func TestReservation_planOfDestroyTellsQuarantine(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	s.fake.AddFleet(2, "baremetal")
	failedAt := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	for kind, config := range map[string]map[string]any{
		"metal_allocation":       {"name": "web", "resource_class": "baremetal"},
		"metal_allocation_group": {"name": "db", "resource_class": "baremetal", "size": 1},
	} {
		made, diagnostics := s.apply(kind, config, nil)
		if failed(diagnostics) {
			t.Fatal(describe(diagnostics))
		}
		var node, allocation string
		for _, n := range s.fake.Nodes() {
			if n.InstanceUUID != "" && n.ProvisionState == "available" {
				node, allocation = n.UUID, n.InstanceUUID
			}
		}
		s.fake.Set(node, "retired", true)
		s.fake.Set(node, "retired_reason", "quarantine: the deployment for allocation web failed on it at "+failedAt)
		s.fake.Set(node, "extra", map[string]any{"terraform_metal_quarantine": map[string]any{
			"allocation": "web", "instance": allocation, "since": failedAt, "failed": failedAt,
		}})
		for state, want := range map[string]bool{"deploy failed": true, "active": false} {
			s.fake.Set(node, "provision_state", state)
			s.fake.Set(node, "provision_updated_at", failedAt)
			s.configure(nil) // a new run
			if says := describe(s.planDestroy(made)); strings.Contains(says, "Quarantine is finished") != want {
				t.Errorf("%s, node in state %s: %q", kind, state, says)
			}
		}
	}
}

// A node is renamed by the apply that changes its group: the result is what the plan has promised, and the next refresh shows the new name.
func TestReservation_groupOfRenamedNode(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	s.fake.AddFleet(1, "baremetal")
	config := map[string]any{"name": "db", "resource_class": "baremetal", "size": 1}
	made, diagnostics := s.apply("metal_allocation_group", config, nil)
	if failed(diagnostics) {
		t.Fatal(describe(diagnostics))
	}
	s.call("PATCH", "/v1/nodes/node-000", patch("replace", "/name", "renamed"))
	config["spread_by"] = "conductor_group"
	changed, diagnostics := s.apply("metal_allocation_group", config, made)
	if failed(diagnostics) || s.memberName(changed, "db-0") != "node-000" {
		t.Errorf("the member is on node %s, and the plan said node-000: %s", s.memberName(changed, "db-0"), describe(diagnostics))
	}
	s.configure(nil) // a new run
	if now := s.memberName(s.read(changed), "db-0"); now != "renamed" {
		t.Errorf("the refresh shows node %s", now)
	}
}

// memberName is the name of the node of a member.
func (s *session) memberName(group *instance, key string) (name string) {
	s.Helper()
	members := map[string]tftypes.Value{}
	if err := fields(s.of(group.kind, group.state))["members"].As(&members); err != nil {
		s.Fatal(err)
	}
	if err := fields(members[key])["node_name"].As(&name); err != nil {
		s.Fatal(err)
	}
	return name
}

// A list of candidates that changes is no difference once nodes are reserved, and counts again for the next search.
func TestReservation_changedListOfCandidates(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	s.fake.AddFleet(4, "baremetal")
	lists := [][]any{{"node-000", "node-001", "node-002"}, {"node-003"}}
	for kind, config := range map[string]map[string]any{
		"metal_allocation":       {"name": "web", "resource_class": "baremetal"},
		"metal_allocation_group": {"name": "db", "resource_class": "baremetal", "size": 1},
	} {
		config["candidate_nodes"] = lists[0]
		made, diagnostics := s.apply(kind, config, nil)
		if failed(diagnostics) {
			t.Fatal(describe(diagnostics))
		}
		s.configure(nil) // a new run
		made = s.read(made)
		for _, list := range [][]any{{}, lists[1]} { // the reserved nodes leave a list of available ones
			config["candidate_nodes"] = list
			req := s.planRequest(kind, config, made)
			plan, err := s.server.PlanResourceChange(t.Context(), req)
			if err != nil || len(plan.Diagnostics) > 0 || !s.of(kind, plan.PlannedState).Equal(s.of(kind, req.PriorState)) {
				t.Errorf("%s: the changed list %v is a difference: %v %s", kind, list, err, describe(plan.Diagnostics))
			}
			valid, err := s.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: kind,
				Config:   req.Config,
			})
			if err != nil || len(valid.Diagnostics) > 0 {
				t.Errorf("%s: the list %v is not valid: %v %s", kind, list, err, describe(valid.Diagnostics))
			}
		}
		if kind != "metal_allocation_group" {
			continue
		}
		config["candidate_nodes"] = []any{}
		if _, diagnostics := s.apply(kind, config, nil); !strings.Contains(describe(diagnostics), "candidate_nodes is empty") {
			t.Errorf("a new group without candidates: %s", describe(diagnostics))
		}
		config["candidate_nodes"], config["size"] = lists[1], 2
		if made, diagnostics = s.apply(kind, config, made); failed(diagnostics) || s.memberName(made, "db-1") != "node-003" {
			t.Errorf("the new member is on node %s: %s", s.memberName(made, "db-1"), describe(diagnostics))
		}
	}
}
