package host_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// importOnly is a configuration that only imports the host.
func importOnly(s *site.Site, host string) string {
	return s.Provider() + "import {\n  to = metal_host.h\n  id = " + acctest.Quoted(host) + "\n}\n"
}

// The configuration that the CLI generates for an imported host plans nothing.
func TestAccHost_generatedConfigurationPlansNothing(t *testing.T) {
	redfish := map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media", "driver_info": map[string]any{
			"redfish_address": "https://192.0.2.41", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
			"redfish_password": "hunter22", "redfish_verify_ca": false, "deploy_kernel": "http://k",
		},
	}
	for name, tt := range map[string]struct {
		node map[string]any
		walk []string // verbs and the states that they lead to
	}{
		"redfish": {redfish, nil},
		"idrac": {map[string]any{
			"driver": "idrac", "boot_interface": "idrac-redfish-virtual-media", "bios_interface": "idrac-redfish",
			"management_interface": "idrac-redfish", "power_interface": "idrac-redfish", "raid_interface": "idrac-redfish",
			"vendor_interface": "idrac-redfish",
			"driver_info": map[string]any{
				"redfish_address":   "https://192.0.2.45",
				"redfish_system_id": "/redfish/v1/Systems/System.Embedded.1",
			},
		}, nil},
		"IPMI over IPv6": {map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "2001:db8::46"}}, nil},
		"certificate": {map[string]any{"driver": "redfish", "driver_info": map[string]any{
			"redfish_address":   "https://192.0.2.42",
			"redfish_verify_ca": "/etc/ssl/ca.pem",
		}}, nil},
		"ipmi": {map[string]any{"driver": "ipmi", "driver_info": map[string]any{
			"ipmi_address": "192.0.2.43", "ipmi_port": 6230,
			"ipmi_username": "admin", "ipmi_password": "hunter22", "ipmi_priv_level": "OPERATOR",
		}}, nil},
		"no BMC":          {map[string]any{"driver": "ipmi"}, nil},
		"another address": {map[string]any{"driver": "redfish", "driver_info": map[string]any{"redfish_address": "192.0.2.44"}}, nil},
		"manageable": {map[string]any{
			"driver": "fake-hardware", "description": "by hand", "lessee": "carol", "automated_clean": false, "retired": true,
			"properties": map[string]any{
				"cpus": 4, "memory_mb": 1024, "capabilities": "boot_mode:uefi",
				"root_device": map[string]any{"serial": "D1", "rotational": false},
			},
			"extra": map[string]any{
				"rack": map[string]any{"row": 3, "free": true}, "note": "mine", "nothing": nil,
				"list": []any{"a", 1},
			},
		}, []string{"manage", "manageable"}},
		"available": {map[string]any{"driver": "fake-hardware"}, []string{"manage", "manageable", "provide", "available"}},
		"active": {map[string]any{"driver": "fake-hardware"}, []string{
			"manage", "manageable", "provide", "available",
			"active", "active",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			host := s.Name("h")
			tt.node["name"], tt.node["resource_class"] = host, s.Class()
			s.Must(http.MethodPost, "nodes", tt.node)
			w := acctest.NewWorkspace(t, importOnly(s, host))
			if !strings.Contains(w.Must("version"), "OpenTofu") { // 1.12 does not quote MAC addresses, the keys of ports
				s.Must(http.MethodPost, "ports", map[string]any{
					"node_uuid": s.Node(host)["uuid"], "address": s.MAC(1), "physical_network": "prov",
					"local_link_connection": map[string]any{"switch_id": "00:11:22:33:44:55", "port_id": "Eth1"},
				})
				s.Must(http.MethodPost, "ports", map[string]any{
					"node_uuid": s.Node(host)["uuid"], "address": s.MAC(2),
					"pxe_enabled": false,
				})
			}
			site.AddTrait(s, host, "CUSTOM_NVME")
			for i := 0; i < len(tt.walk); i += 2 {
				s.Verb(host, tt.walk[i], tt.walk[i+1])
			}
			before := s.Node(host)

			defer func() {
				if name == "active" {
					s.Verb(host, "deleted", "available")
				}
				acctest.Destroy(t, s, w)
			}()
			generated := acctest.GenerateConfig(t, w)
			acctest.NeverMention(t, generated, "hunter22", "******")
			if name == "redfish" {
				acctest.Mention(t, generated, `driver = "redfish"`, `redfish_address = "https://192.0.2.41"`, `redfish_username = "root"`,
					`deploy_kernel = "http://k"`)
			}
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
			acctest.NoChanges(t, w)
			if after := s.Node(host); after["updated_at"] != before["updated_at"] {
				t.Errorf("the node was changed: %v, before %v", after, before)
			}
		})
	}
}

func TestFakeHostByAgent_generatedConfigurationPlansNothing(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{FastTrack: true})
	id := s.Fake.Discover(s.Machine(1))
	made := acctest.NewWorkspace(t, s.Provider()+imported(id)+acctest.HostBlock(s.Name("h"), byAgent, acctest.Target("available")))
	made.Must(acctest.Apply()...)
	w := acctest.NewWorkspace(t, importOnly(s, id))
	if strings.Contains(w.Must("version"), "OpenTofu") {
		t.Skip("OpenTofu 1.12 does not quote MAC addresses, the keys of ports")
	}
	acctest.Mention(t, acctest.GenerateConfig(t, w), `power_control = "agent"`)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
}
