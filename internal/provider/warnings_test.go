package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// shown plans a configuration, and returns what Terraform shows.
func (s *session) shown(kind string, config object, prior *instance) string {
	s.Helper()
	resp, err := s.server.PlanResourceChange(s.Context(), s.planRequest(kind, config, prior))
	if err != nil || failed(resp.Diagnostics) {
		s.Fatalf("plan: %v %s", err, describe(resp.Diagnostics))
	}
	return describe(resp.Diagnostics)
}

// again starts another process of the provider, which knows nothing of former plans.
func (s *session) again() {
	s.Helper()
	s.server = provider.NewServer("test")
	s.configure(nil)
}

func mentions(t *testing.T, what, text, phrase string, want bool) {
	t.Helper()
	if strings.Contains(text, phrase) != want {
		t.Errorf("%s: %q in it is %t, want %t:\n%s", what, phrase, !want, want, text)
	}
}

// A plan does not warn of what a change of the host in the same plan mends.
func TestPlan_warnsOnlyOfWhatStays(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host := object{"name": "r1", "driver": "fake-hardware", "target_state": "enroll", "hardware_interfaces": object{"network": "noop"}}
	made, said := s.apply("metal_host", host, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	id := s.text(made, "id")
	adoption := object{
		"node_id": id, "adopt": true, "on_destroy": "forget",
		"vifs": []any{object{"id": "0f3c1d5e-5f0f-4b43-8a2d-3e1f1d7d8f11"}},
	}
	alone := s.shown("metal_deployment", adoption, nil)
	mentions(t, "a node in enroll", alone, "Node cannot be adopted", true)
	mentions(t, "a node without networks", alone, "VIFs have no effect", true)

	host["target_state"], host["hardware_interfaces"] = "manageable", object{"network": "neutron"}
	s.shown("metal_host", host, made)
	together := s.shown("metal_deployment", adoption, nil)
	mentions(t, "a node that becomes manageable", together, "Node cannot be adopted", false)
	mentions(t, "a node that becomes manageable", together, "Machine is adopted", true)
	mentions(t, "a node that gets networks", together, "VIFs have no effect", false)
}

// A new deployment of a node on which something runs destroys nothing, unless Terraform has that deployment in state.
func TestPlan_newDeploymentOfADeployedNode(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host, said := s.apply("metal_host", object{"name": "r1", "driver": "fake-hardware", "target_state": "available"}, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	config := object{"node_id": s.text(host, "id"), "image": object{
		"url":      "http://images.example.com/a.qcow2",
		"checksum": strings.Repeat("0", 64),
	}}
	made, said := s.apply("metal_deployment", config, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	other := object{"node_id": s.text(host, "id"), "image": object{
		"url":      "http://images.example.com/b.qcow2",
		"checksum": strings.Repeat("1", 64),
	}}
	s.again()
	text := s.shown("metal_deployment", other, nil)
	mentions(t, "a node of others", text, "Node is deployed already", true)
	mentions(t, "a node of others", text, "Destroying undeploys", false)
	s.read(made)
	mentions(t, "a tainted deployment", s.shown("metal_deployment", other, nil), "Destroying undeploys the machine", true)
}

// An imported host has a password that Ironic does not tell: only a new host, or one whose password gets another key, needs one.
func TestPlan_missingPasswordOfABMC(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	if status := s.call(http.MethodPost, "/v1/nodes",
		object{"name": "r1", "driver": "ipmi", "driver_info": object{
			"ipmi_address": "10.0.0.5", "ipmi_username": "root",
			"ipmi_password": "hunter2",
		}}); status != http.StatusCreated {
		t.Fatalf("the node was not made: %d", status)
	}
	config := func(address string) object {
		return object{"name": "r1", "target_state": "enroll", "bmc": object{"address": address, "username": "root"}}
	}
	const warning = "BMC without a password"
	host := s.imported("metal_host", "r1")
	mentions(t, "an import", s.shown("metal_host", config("ipmi://10.0.0.5"), host), warning, false)
	mentions(t, "another driver", s.shown("metal_host", config("redfish://10.0.0.5/redfish/v1/Systems/1"), host), warning, true)
	mentions(t, "a new host", s.shown("metal_host", object{"name": "r2", "bmc": object{"address": "ipmi://10.0.0.6", "username": "root"}},
		nil), warning, true)
}

// imported imports a resource and refreshes it.
func (s *session) imported(kind, id string) *instance {
	s.Helper()
	resp, err := s.server.ImportResourceState(s.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: kind, ID: id})
	if err != nil || failed(resp.Diagnostics) || len(resp.ImportedResources) != 1 {
		s.Fatalf("import: %v %s", err, describe(resp.Diagnostics))
	}
	found := resp.ImportedResources[0]
	return s.read(&instance{kind: kind, state: found.State, private: found.Private, identity: found.Identity})
}
