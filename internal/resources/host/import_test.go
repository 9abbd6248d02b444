package host_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccHost_importByUUIDNameMACAndBMC(t *testing.T) {
	s := site.Start(t, nil)
	address := s.Name("bmc") + ".example.com"
	config := enrolled(s, bmc.Block("redfish://"+address+"/redfish/v1/Systems/1"), `ports = { `+acctest.Quoted(s.MAC(1))+` = {}, `+
		acctest.Quoted(s.MAC(2))+` = {} }`)
	steps := []resource.TestStep{{Config: config}}
	for _, id := range []string{s.Name("h"), s.MAC(2), "bmc:" + address} {
		steps = append(steps, resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateId: id, ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"bmc", "driver_info"}, // an import cannot know which keys of driver_info come from bmc
		})
	}
	for id, want := range map[string]string{
		"no-such-node":                         "no-such-node could not be found",
		"6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21": "could not be found",
		"52:00:00:00:00:01":                    "no port has the MAC address 52:00:00:00:00:01",
		"bmc:nowhere.example.com":              "(│|host bmc:nowhere.example.com) No node has the BMC address nowhere.example.com.", // no answer of Ironic
		"bmc:192.0.2.11/24":                    "has a prefix length: write redfish://192.0.2.11",
	} {
		steps = append(steps, resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateId: id,
			ExpectError: regexp.MustCompile("(?i)" + acctest.Wrapped(want)),
		})
	}
	acctest.Test(t, steps...)
}

func TestFakeHost_importByAmbiguousBMC(t *testing.T) {
	s := site.StartFake(t, nil)
	second := s.Provider() + acctest.HostBlock(s.Name("h"), acctest.Target("enroll"), bmc.Block("ipmi://192.0.2.39:6230")) +
		"resource \"metal_host\" \"i\" {\n  name = \"twin\"\n  target_state = \"enroll\"\n  " +
		bmc.Block("ipmi://192.0.2.39:6231") + "\n}\n"
	acctest.Test(t,
		resource.TestStep{Config: second},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateId: "bmc:192.0.2.39",
			ExpectError: regexp.MustCompile(acctest.Wrapped("2 nodes have the BMC address 192.0.2.39, such as") + `[\s\S]*` +
				acctest.Wrapped("name one by its UUID")),
		},
	)
}

// A host that another client of Ironic has prepared is imported as it is. With a short configuration, the plan is empty.
func TestAccHost_importWithShortConfigurationPlansNothing(t *testing.T) {
	for _, state := range []string{"enroll", "manageable", "available", "active"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			name := s.Name("h")
			s.Must(http.MethodPost, "nodes", map[string]any{
				"name": name, "driver": "fake-hardware", "resource_class": s.Class(), "description": "by hand", "lessee": "carol",
				"automated_clean": false,
				"properties": map[string]any{
					"cpus": 4, "memory_mb": 1024, "capabilities": "boot_mode:uefi",
					"root_device": map[string]any{"serial": "D1"},
				},
				"extra":       map[string]any{"rack": map[string]any{"row": 3, "free": true}, "note": "mine", "nothing": nil},
				"retired":     state == "manageable",
				"driver_info": map[string]any{"deploy_kernel": "http://k", "fake_password": "hunter22"},
			})
			s.Must(http.MethodPost, "ports", map[string]any{
				"node_uuid": s.Node(name)["uuid"], "address": s.MAC(1),
				"physical_network": "prov",
			})
			site.AddTrait(s, name, "CUSTOM_NVME")
			for _, walk := range []struct{ verb, to string }{{"manage", "manageable"}, {"provide", "available"}, {"active", "active"}} {
				if s.Node(name)["provision_state"] == state {
					break
				}
				s.Verb(name, walk.verb, walk.to)
			}
			before := s.Node(name)
			site.ForgetVerbs(s)

			w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_host.h\n  id = "+acctest.Quoted(name)+"\n}\n"+
				acctest.HostBlock(name, `driver = "fake-hardware"`))
			defer func() {
				if state == "active" {
					s.Verb(name, "deleted", "available")
				}
				acctest.Destroy(t, s, w)
			}()
			output := w.Must("apply", "-auto-approve")
			acctest.Mention(t, output, "1 imported, 0 added, 0 changed, 0 destroyed")
			acctest.NoChanges(t, w)
			if after := s.Node(name); after["updated_at"] != before["updated_at"] {
				t.Errorf("the node was changed: %v, before %v", after, before)
			}
			if s.Fake != nil && slices.ContainsFunc(s.Fake.Requests(), func(r fakeironic.Request) bool {
				return r.Method != http.MethodGet
			}) {
				t.Errorf("changes sent to Ironic: %v", s.Fake.Requests())
			}
		})
	}
}

// A configuration that sets every attribute to the node's value plans nothing either.
func TestAccHost_importWithFullConfigurationPlansNothing(t *testing.T) {
	s := site.Start(t, nil)
	var first []string
	for _, one := range settings(s) {
		if !strings.HasPrefix(one.first, "hardware_interfaces") { // an import cannot know which are configured
			first = append(first, one.first)
		}
	}
	config := hostConfig(s, append(first, `ports = { `+acctest.Quoted(s.MAC(1))+
		` = { pxe_enabled = false, local_link_connection = { port_id = "Eth1", switch_id = "00:11:22:33:44:55" } } }`)...)
	acctest.Test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportPlanChecks: acctest.EmptyImport(),
		},
		resource.TestStep{
			ResourceName: acctest.HostAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportStateId: s.Name("h"), ImportPlanChecks: acctest.EmptyImport(),
		},
	)
}

// An import cannot know which hardware interfaces are configured: the first plan says so, and the apply sends nothing.
func TestFakeHost_importWithInterfacesOnlyRecordsThem(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	name := s.Name("h")
	s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "fake-hardware", "deploy_interface": "direct"})
	w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_host.h\n  id = "+acctest.Quoted(name)+"\n}\n"+
		acctest.HostBlock(name, `driver = "fake-hardware"`, `hardware_interfaces = { deploy = "direct" }`))
	defer acctest.Destroy(t, s, w)
	s.Fake.ResetRequests()
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 1 changed, 0 destroyed")
	if slices.ContainsFunc(s.Fake.Requests(), func(r fakeironic.Request) bool { return r.Method != http.MethodGet }) {
		t.Errorf("changes sent to Ironic: %v", s.Fake.Requests())
	}
	acctest.NoChanges(t, w)
}

// An import cannot read credentials. The first apply sends the configured ones, and does nothing else.
func TestFakeHost_importWithBMCSendsCredentialsOnly(t *testing.T) {
	s := site.StartFake(t, nil)
	name := s.Name("h")
	s.Must(http.MethodPost, "nodes", map[string]any{
		"name": name, "driver": "redfish", "driver_info": map[string]any{
			"redfish_address": "https://192.0.2.40", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
			"redfish_password": "old-password",
		},
	})
	s.Verb(name, "manage", "manageable")
	s.Verb(name, "provide", "available")
	config := s.Provider() + "import {\n  to = metal_host.h\n  id = \"bmc:192.0.2.40\"\n}\n" +
		acctest.HostBlock(name, bmc.Block("redfish://192.0.2.40/redfish/v1/Systems/1", withPassword("new-password", 1)),
			acctest.Target("available"))
	id := site.Text(s.Node(name)["uuid"])
	acctest.Test(t, resource.TestStep{
		PreConfig:        func() { site.ForgetVerbs(s) },
		Config:           config,
		ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
		ConfigStateChecks: []statecheck.StateCheck{
			hostIs("id", knownvalue.StringExact(id)), hostIs("provision_state", knownvalue.StringExact("available")),
			sends{s, "new-password", []string{http.MethodPatch}},
		},
		Check: func(*terraform.State) error {
			if sent := site.Verbs(s, id); len(sent) > 0 {
				return fmt.Errorf("the node was sent %v", sent)
			}
			return nil
		},
	})
}

// A BMC that the configuration omits stays as it is: the plan of the import is empty. A bmc that comes later takes over its settings.
func TestAccHost_importWithoutBMCPlansNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Name("h")
	s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "redfish", "driver_info": map[string]any{
		"redfish_address": "https://" + name + ".example.com", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
		"deploy_kernel": "http://k",
	}})
	config := func(settings ...string) string {
		return s.Provider() + "import {\n  to = metal_host.h\n  id = " + acctest.Quoted(name) + "\n}\n" +
			acctest.HostBlock(name, append(settings, acctest.Target("enroll"))...)
	}
	w := acctest.NewWorkspace(t, config())
	defer acctest.Destroy(t, s, w)
	acctest.Mention(t, w.Must(acctest.Apply()...), "1 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	for _, system := range []string{"1", "2"} {
		w.Configure(config(bmc.Block("redfish://"+name+".example.com/redfish/v1/Systems/"+system, `username = "root"`)))
		acctest.Mention(t, w.Must(acctest.Apply()...), "0 added, 1 changed, 0 destroyed")
		acctest.NoChanges(t, w)
		acctest.NoDrift(t, w)
		if info, _ := s.Node(name)["driver_info"].(map[string]any); info["redfish_system_id"] != "/redfish/v1/Systems/"+system ||
			info["deploy_kernel"] != "http://k" {
			t.Errorf("driver_info is %v", info)
		}
	}
}
