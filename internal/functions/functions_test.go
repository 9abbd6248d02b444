package functions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// outputs are the values of the outputs in the state.
func outputs(t *testing.T, w *acctest.Workspace) map[string]any {
	t.Helper()
	var state struct {
		Outputs map[string]struct{ Value any }
	}
	content, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
	if err == nil {
		err = json.Unmarshal(content, &state)
	}
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	for name, output := range state.Outputs {
		values[name] = output.Value
	}
	return values
}

// Functions need neither a provider block nor a server. The argument may have the types that a configuration makes: objects and maps,
// tuples and sets, numbers as texts, and null for what is left out.
func TestAccFunctions_networkData(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, `
locals {
  machine = { macs = tolist(["52:54:00:aa:00:01"]), vlan = "7", mtu = null, search = null }
}

output "recorded" {
  value = jsondecode(provider::metal::network_data(jsondecode(file("network.json"))))
}

output "typed" {
  value = jsondecode(provider::metal::network_data({
    interfaces = { for i, mac in local.machine.macs : "nic${i}" => { mac = mac, mtu = local.machine.mtu, dhcp4 = i == 0 } }
    vlans      = tomap({ seven = { link = "nic0", id = local.machine.vlan, addresses = toset(["192.0.2.7/24"]) } })
    search     = local.machine.search
  }))
}
`)
	content, err := os.ReadFile("testdata/top-of-rack/network.json")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.Dir, "network.json"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Must(acctest.Apply()...)
	values := outputs(t, w)
	if got, want := inJSON(t, values["recorded"]), inJSON(t, readJSON(t, "testdata/top-of-rack", built)); got != want {
		t.Errorf("the function returns\n%s\nwant\n%s", got, want)
	}
	const typed = `{"links":[{"ethernet_mac_address":"52:54:00:aa:00:01","id":"nic0","mtu":1500,"type":"phy"},` +
		`{"id":"nic0.7","mtu":1500,"type":"vlan","vlan_id":7,"vlan_link":"nic0","vlan_mac_address":"52:54:00:aa:00:01"}],` +
		`"networks":[{"id":"nic0-ipv4_dhcp","link":"nic0","network_id":"nic0-ipv4_dhcp","routes":[],"type":"ipv4_dhcp"},` +
		`{"id":"nic0.7-ipv4-0","ip_address":"192.0.2.7","link":"nic0.7","netmask":"255.255.255.0","network_id":"nic0.7-ipv4-0","routes":[],"type":"ipv4"}],"services":[]}`
	if got := inJSON(t, values["typed"]); got != typed {
		t.Errorf("the function returns\n%s\nwant\n%s", got, typed)
	}
	acctest.NoChanges(t, w)
}

// Mistakes are found without a server, also by validate, and all at once.
func TestAccFunctions_errorsSayWhere(t *testing.T) {
	t.Parallel()
	for call, want := range map[string][]string{
		`network_data({ interfaces = { nic0 = { mac = "52:54:00:aa:00:01", addresses = ["192.0.2.21"], gateway = "192.0.2.1" } } })`: {
			`Invalid value for "network" parameter`, `interfaces.nic0.gateway: is not known; known are mac`,
			`interfaces.nic0.addresses[0]: "192.0.2.21" has no prefix length, such as /24.`,
		},
		`network_data("eth0")`: {`Invalid value for "network" parameter: the argument: must be an object.`},
		`network_data(null)`:   {`Invalid value for "network" parameter: argument must not be null.`},
		`bmc("redfish://root:calvin@192.0.2.11")`: {
			`Invalid value for "address" parameter: the address of a BMC must not contain credentials; use username and password_wo.`,
		},
		`bmc("ilo4://192.0.2.11")`: {`which is gone from Ironic; use redfish, such as "redfish://192.0.2.11".`},
	} {
		w := acctest.NewWorkspace(t, fmt.Sprintf("output \"result\" {\n  value = provider::metal::%s\n}\n", call))
		for _, command := range []string{"validate", "plan"} {
			output, code := w.Run(command)
			if code != 1 {
				t.Errorf("%s of %s: exit code %d\n%s", command, call, code, output)
			}
			acctest.Mention(t, output, append(want, "Error: Invalid function argument")...)
		}
	}
}

// A part that is not known yet makes the result unknown, and a sensitive part makes it sensitive.
func TestAccFunctions_unknownAndSensitive(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, `
resource "terraform_data" "mac" {
  input = "52:54:00:aa:00:01"
}

resource "terraform_data" "network" {
  input = provider::metal::network_data({ interfaces = { nic0 = { mac = terraform_data.mac.output } } })
}

resource "terraform_data" "secret" {
  input = provider::metal::network_data({ interfaces = { nic0 = { mac = "52:54:00:aa:00:02", addresses = [sensitive("192.0.2.77/24")] } } })
}

resource "terraform_data" "bmc" {
  input = provider::metal::bmc("ipmi://${terraform_data.mac.id}.example.com").driver
}
`)
	output := w.Must("plan")
	acctest.NeverMention(t, output, "192.0.2.77")
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "192.0.2.77")
	acctest.NoChanges(t, w)
	acctest.Mention(t, w.State(), `\"ethernet_mac_address\":\"52:54:00:aa:00:01\"`, `\"ip_address\":\"192.0.2.77\"`, `"ipmi"`)
	if strings.Count(output, "(known after apply)") < 3 {
		t.Errorf("the plan knows too much:\n%s", output)
	}
}

func TestAccFunctions_bmc(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"redfish-virtualmedia+http://[fd00::1]:8000/redfish/v1/Systems/1": `{"driver":"redfish","driver_info":{"redfish_address":"http://[fd00::1]:8000","redfish_system_id":"/redfish/v1/Systems/1"},` +
			`"hardware_interfaces":{"boot":"redfish-virtual-media"},"host":"fd00::1","port":8000,"privilege_level":null,"scheme":"redfish-virtualmedia","system":"/redfish/v1/Systems/1","transport":"http"}`,
		"idrac-redfish://bmc.example.com": `{"driver":"idrac","driver_info":{"redfish_address":"https://bmc.example.com"},"hardware_interfaces":{"bios":"idrac-redfish",` +
			`"management":"idrac-redfish","power":"idrac-redfish","raid":"idrac-redfish","vendor":"idrac-redfish"},"host":"bmc.example.com","port":null,"privilege_level":null,"scheme":"idrac-redfish","system":null,"transport":"https"}`,
		"192.0.2.13:6230?privilegelevel=OPERATOR": `{"driver":"ipmi","driver_info":{"ipmi_address":"192.0.2.13","ipmi_port":"6230","ipmi_priv_level":"OPERATOR"},"hardware_interfaces":{},"host":"192.0.2.13",` +
			`"port":6230,"privilege_level":"OPERATOR","scheme":"ipmi","system":null,"transport":null}`,
	}
	var config strings.Builder
	names := map[string]string{}
	for address := range want {
		names[address] = fmt.Sprintf("bmc%d", len(names))
		fmt.Fprintf(&config, "output %q {\n  value = provider::metal::bmc(%q)\n}\n", names[address], address)
	}
	w := acctest.NewWorkspace(t, config.String())
	w.Must(acctest.Apply()...)
	values := outputs(t, w)
	for address, result := range want {
		if got := inJSON(t, values[names[address]]); got != result {
			t.Errorf("%s is\n%s\nwant\n%s", address, got, result)
		}
	}
}
