package resources_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// emptyImport checks that an import plans no change.
func emptyImport() resource.ImportPlanChecks {
	return resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

func TestAccHost_isImportedByAnyOfItsNames(t *testing.T) {
	s := acctest.Start(t, nil)
	address := s.Name("bmc") + ".example.com"
	config := enrolled(s, bmc("redfish://"+address+"/redfish/v1/Systems/1"), `ports = { `+quoted(s.MAC(1))+` = {}, `+quoted(s.MAC(2))+` = {} }`)
	steps := []resource.TestStep{{Config: config}}
	for _, id := range []string{s.Name("h"), s.MAC(2), "bmc:" + address} {
		steps = append(steps, resource.TestStep{
			ResourceName: hostAddress, ImportState: true, ImportStateId: id, ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"bmc", "driver_info"}, // what of driver_info comes from bmc cannot be known
		})
	}
	for id, want := range map[string]string{
		"no-such-node":                         "no-such-node could not be found",
		"6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21": "could not be found",
		"52:00:00:00:00:01":                    "no port has the MAC address 52:00:00:00:00:01",
		"bmc:nowhere.example.com":              "no node has the BMC address nowhere.example.com",
	} {
		steps = append(steps, resource.TestStep{
			ResourceName: hostAddress, ImportState: true, ImportStateId: id, ExpectError: regexp.MustCompile("(?i)" + wrapped(want)),
		})
	}
	test(t, steps...)
}

func TestFakeHost_importOfAnAmbiguousBMCNamesTheNodes(t *testing.T) {
	s := acctest.StartFake(t, nil)
	second := s.Provider() + hostBlock(s.Name("h"), target("enroll"), bmc("ipmi://192.0.2.1:6230")) +
		"resource \"metal_host\" \"i\" {\n  name = \"twin\"\n  target_state = \"enroll\"\n  " + bmc("ipmi://192.0.2.1:6231") + "\n}\n"
	test(t,
		resource.TestStep{Config: second},
		resource.TestStep{
			ResourceName: hostAddress, ImportState: true, ImportStateId: "bmc:192.0.2.1",
			ExpectError: regexp.MustCompile(wrapped("2 nodes have the BMC address 192.0.2.1, such as") + `[\s\S]*` + wrapped("name one by its UUID")),
		},
	)
}

// A host that somebody else has prepared in every way is taken over as it is: with a configuration that says little,
// nothing is planned at all.
func TestAccHost_importOfAPreparedHostTouchesNothing(t *testing.T) {
	for _, state := range []string{"enroll", "manageable", "available", "active"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			name := s.Name("h")
			s.Must(http.MethodPost, "nodes", map[string]any{
				"name": name, "driver": "fake-hardware", "resource_class": s.Class(), "description": "by hand", "lessee": "carol", "automated_clean": false,
				"properties": map[string]any{"cpus": 4, "memory_mb": 1024, "capabilities": "boot_mode:uefi", "root_device": map[string]any{"serial": "D1"}},
				"extra":      map[string]any{"rack": map[string]any{"row": 3, "free": true}, "note": "mine", "nothing": nil}, "retired": state == "manageable",
				"driver_info": map[string]any{"deploy_kernel": "http://k", "fake_password": "hunter22"},
			})
			s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": s.Node(name)["uuid"], "address": s.MAC(1), "physical_network": "prov"})
			addTrait(s, name, "CUSTOM_NVME")
			for _, walk := range []struct{ verb, to string }{{"manage", "manageable"}, {"provide", "available"}, {"active", "active"}} {
				if s.Node(name)["provision_state"] == state {
					break
				}
				s.Verb(name, walk.verb, walk.to)
			}
			before := s.Node(name)
			forgetVerbs(s)

			w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_host.h\n  id = "+quoted(name)+"\n}\n"+hostBlock(name, `driver = "fake-hardware"`))
			defer func() {
				if state == "active" {
					s.Verb(name, "deleted", "available")
				}
				destroy(t, s, w)
			}()
			output := w.Must("apply", "-auto-approve")
			mention(t, output, "1 imported, 0 added, 0 changed, 0 destroyed")
			noChanges(t, w)
			if after := s.Node(name); after["updated_at"] != before["updated_at"] {
				t.Errorf("the node was changed: %v, before %v", after, before)
			}
			if s.Fake != nil && slices.ContainsFunc(s.Fake.Requests(), func(r fakeironic.Request) bool { return r.Method != http.MethodGet }) {
				t.Errorf("Ironic was asked for changes: %v", s.Fake.Requests())
			}
		})
	}
}

// A configuration that says in full what there is plans nothing either.
func TestAccHost_importWithAFullConfigurationPlansNothing(t *testing.T) {
	s := acctest.Start(t, nil)
	var first []string
	for _, one := range settings(s) {
		first = append(first, one.first)
	}
	config := hostConfig(s, append(first, `ports = { `+quoted(s.MAC(1))+` = { pxe_enabled = false, local_link_connection = { port_id = "Eth1", switch_id = "00:11:22:33:44:55" } } }`)...)
	test(t,
		resource.TestStep{Config: config},
		resource.TestStep{ResourceName: hostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportPlanChecks: emptyImport()},
		resource.TestStep{ResourceName: hostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateId: s.Name("h"), ImportPlanChecks: emptyImport()},
	)
}

// The credentials of an imported host are not known: a configuration that has some sends them, and does nothing else.
func TestFakeHost_importWithABMCOnlySendsTheCredentials(t *testing.T) {
	s := acctest.StartFake(t, nil)
	name := s.Name("h")
	s.Must(http.MethodPost, "nodes", map[string]any{
		"name": name, "driver": "redfish", "driver_info": map[string]any{
			"redfish_address": "https://192.0.2.1", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root", "redfish_password": "old-password",
		},
	})
	s.Verb(name, "manage", "manageable")
	s.Verb(name, "provide", "available")
	config := s.Provider() + "import {\n  to = metal_host.h\n  id = \"bmc:192.0.2.1\"\n}\n" +
		hostBlock(name, bmc("redfish://192.0.2.1/redfish/v1/Systems/1", withPassword("new-password", 1)), target("available"))
	id := text(s.Node(name)["uuid"])
	test(t, resource.TestStep{
		PreConfig:        func() { forgetVerbs(s) },
		Config:           config,
		ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
		ConfigStateChecks: []statecheck.StateCheck{
			hostIs("id", knownvalue.StringExact(id)), hostIs("provision_state", knownvalue.StringExact("available")),
			sends{s, "new-password", []string{http.MethodPatch}},
		},
		Check: func(*terraform.State) error {
			if sent := verbs(s, id); len(sent) > 0 {
				return fmt.Errorf("the node was sent %v", sent)
			}
			return nil
		},
	})
}
