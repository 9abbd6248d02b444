package datasources_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDiscoveredHosts_reportsMachines(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	odd := s.Machine(2)
	inventory, _ := odd["inventory"].(map[string]any)
	vendor, _ := inventory["system_vendor"].(map[string]any)
	vendor["serial_number"] = "To Be Filled By O.E.M."
	ids := s.DiscoverAll(s.Machine(1), odd)
	config := func(more string) string {
		return s.Provider() + fmt.Sprintf(`
			data "metal_discovered_hosts" "all" {
			  name_template = { prefix = "r12-", hardware_details = "serial-number" }
			  filter        = { product = "^%s$", bmc_cidr = "198.18.0.0/15", driver = "." }
			}
			data "metal_discovered_hosts" "dns" {
			  name_template = { hardware_details = "boot-mac" }
			  name_style    = "dns"
			  filter        = { product = "^%[1]s$", manufacturer = "Nobody" }
			}
			output "all" { value = data.metal_discovered_hosts.all }
			output "dns" { value = data.metal_discovered_hosts.dns }
			%s`, s.Product(), more)
	}
	type report struct {
		Hosts   map[string]map[string]any
		Pending map[string]string
	}
	w := acctest.NewWorkspace(t, config(""))
	reports := func() (all, dns report) {
		t.Helper()
		w.Must("apply", "-auto-approve")
		var outputs map[string]struct{ Value report }
		if err := json.Unmarshal([]byte(w.Must("output", "-json")), &outputs); err != nil {
			t.Fatal(err)
		}
		return outputs["all"].Value, outputs["dns"].Value
	}
	all, dns := reports()
	if len(all.Hosts) != 1 || len(dns.Hosts) != 0 || len(dns.Pending) != 0 {
		t.Errorf("hosts are %v, and with another filter %v, %v", all.Hosts, dns.Hosts, dns.Pending)
	}
	serial := s.Name("SN") + "-1"
	for key, want := range map[string]any{
		"proposed_name": "r12-" + serial, "boot_mac": s.MAC(1), "bmc_address": "198.18.0.1", "serial_number": serial,
		"manufacturer": "Example Systems",
		"product":      s.Product(), "hostname": "host-" + s.Name("")[1:] + "-1", "ip": "198.19.0.1", "cpus": 32.0, "memory_mb": 131072.0,
	} {
		if got := all.Hosts[ids[0]][key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if len(all.Pending) != 1 || !strings.Contains(all.Pending[ids[1]], "To Be Filled By O.E.M.") {
		t.Errorf("pending are %v", all.Pending)
	}
	for _, id := range ids {
		if node := s.Node(id); node["name"] != nil || node["instance_uuid"] != nil {
			t.Errorf("the report has changed node %v", node)
		}
	}

	w.Configure(config(`
		resource "metal_discovery_import" "rack" {
		  name          = "` + s.Name("rack") + `"
		  name_template = { hardware_details = "serial-number" }
		  filter        = { product = "^` + s.Product() + `$" }
		}`))
	w.Must("apply", "-auto-approve")
	if all, _ := reports(); len(all.Hosts) != 0 {
		t.Errorf("the report has a machine with a name: %v", all.Hosts)
	}
}

func TestFakeDiscoveredHosts_wrongTemplate(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for _, tt := range []struct{ settings, says string }{
		{`name_template = { prefix = "a/", hardware_details = "hostname" }`, `prefix "a/" has characters other than`},
		{`name_template = { hardware_details = "provisioning-id" }`, "needs a prefix or a suffix"},
		{`name_template = { hardware_details = "colour" }`, "value must be one of"},
		{
			"name_template = { hardware_details = \"hostname\" }\n filter = { bmc_cidr = \"10.12\" }",
			"must be a network such as 10.12.0.0/24",
		},
		{"name_template = { hardware_details = \"hostname\" }\n filter = { product = \"(\" }", "regular expression"},
	} {
		w := acctest.NewWorkspace(t, s.Provider()+"data \"metal_discovered_hosts\" \"all\" {\n  "+tt.settings+"\n}\n")
		output, code := w.Run("plan")
		if flat := strings.Join(strings.Fields(strings.ReplaceAll(output, "│", " ")), " "); code != 1 || !strings.Contains(flat, tt.says) {
			t.Errorf("%s: exit code %d, want an error that says %q\n%s", tt.settings, code, tt.says, output)
		}
	}
}
