package provider_test

import (
	"strings"
	"testing"
	"time"

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
		s.fake.Set(node, "provision_updated_at", failedAt)
		s.fake.Set(node, "extra", map[string]any{"terraform_metal_quarantine": map[string]any{
			"allocation": "web", "instance": allocation, "since": failedAt, "failed": failedAt,
		}})
		for state, want := range map[string]bool{"deploy failed": true, "active": false} {
			s.fake.Set(node, "provision_state", state)
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
