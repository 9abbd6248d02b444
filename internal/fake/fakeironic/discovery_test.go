package fakeironic_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

const callback = "/v1/continue_inspection"

// discover posts the data of a ramdisk and returns the UUID of the new node.
func (a *api) discover(data map[string]any) string {
	a.t.Helper()
	body := a.must(http.StatusAccepted, http.MethodPost, callback, data)
	node, _ := body["node"].(map[string]any)
	return uuidOf(a.t, node)
}

func (a *api) inventory(uuid string) (inventory, pluginData map[string]any) {
	a.t.Helper()
	body := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/inventory", nil)
	inventory, _ = body["inventory"].(map[string]any)
	pluginData, _ = body["plugin_data"].(map[string]any)
	return inventory, pluginData
}

// ports lists the MAC addresses of a node's ports, with * after those with pxe_enabled.
func (a *api) ports(uuid string) []string {
	a.t.Helper()
	macs := []string{}
	for _, item := range list(a.t, a.must(http.StatusOK, http.MethodGet, "/v1/ports/detail?node="+uuid, nil), "ports") {
		port, _ := item.(map[string]any)
		mac := fmt.Sprint(port["address"])
		if port["pxe_enabled"] == true {
			mac += "*"
		}
		macs = append(macs, mac)
	}
	return macs
}

func with(data map[string]any, change func(inventory map[string]any)) map[string]any {
	inventory, _ := data["inventory"].(map[string]any)
	change(inventory)
	return data
}

// card returns the nth network card in an inventory.
func card(inventory map[string]any, n int) map[string]any {
	cards, _ := inventory["interfaces"].([]any)
	found, _ := cards[n].(map[string]any)
	return found
}

func TestDiscovery_createsANodeWithoutName(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true, DefaultResourceClass: "discovered"})
	data := with(fakeironic.SampleInventory(7), func(inventory map[string]any) { card(inventory, 0)["mac_address"] = "52:55:00:00:07:00" })
	uuid := a.discover(data)

	node := a.state(uuid, "enroll")
	want := map[string]any{
		"name": nil, "driver": "fake-hardware", "driver_info": map[string]any{}, "extra": map[string]any{}, "resource_class": "discovered",
		"inspect_interface": "agent", "power_state": "power off", "properties": map[string]any{"cpu_arch": "x86_64"}, "last_error": nil,
		"inspection_finished_at": nil, "provision_updated_at": nil, "reservation": nil, "instance_uuid": nil, "conductor_group": "",
	}
	for key, value := range want {
		if !reflect.DeepEqual(node[key], value) {
			t.Errorf("%s = %v, want %v", key, node[key], value)
		}
	}
	if got := a.ports(uuid); fmt.Sprint(got) != "[52:55:00:00:07:00*]" {
		t.Errorf("ports = %v, want the card that the machine booted from", got)
	}
	inventory, plugin := a.inventory(uuid)
	if !reflect.DeepEqual(inventory, data["inventory"]) {
		t.Errorf("inventory = %v, want what was posted", inventory)
	}
	if plugin["auto_discovered"] != true || plugin["boot_interface"] != "52:55:00:00:07:00" || plugin["inventory"] != nil {
		t.Errorf("plugin_data = %v, want the rest of what was posted", plugin)
	}
	all, _ := plugin["all_interfaces"].(map[string]any)
	valid, _ := plugin["valid_interfaces"].(map[string]any)
	eno1, _ := valid["eno1"].(map[string]any)
	if len(all) != 2 || len(valid) != 1 || eno1["pxe_enabled"] != true || eno1["ipv6_address"] != "fe80::1" {
		t.Errorf("all_interfaces = %v, valid_interfaces = %v", all, valid)
	}
}

func TestDiscovery_portsAreLowerCase(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true})
	uuid := a.discover(with(fakeironic.SampleInventory(10), func(inventory map[string]any) {
		card(inventory, 0)["mac_address"] = "52:55:00:00:0A:00"
		inventory["boot"] = map[string]any{"pxe_interface": "01-52-55-00-00-0A-00"}
	}))
	if got := a.ports(uuid); fmt.Sprint(got) != "[52:55:00:00:0a:00*]" {
		t.Errorf("ports = %v", got)
	}
	if _, plugin := a.inventory(uuid); fmt.Sprint(plugin["macs"]) != "[52:55:00:00:0A:00]" {
		t.Errorf("macs = %v", plugin["macs"])
	}

	older := newAPI(t, &fakeironic.Server{Discovery: true, MaxMicroversion: "1.96"})
	uuid = older.discover(with(fakeironic.SampleInventory(10), func(inventory map[string]any) {
		card(inventory, 0)["mac_address"] = "52:55:00:00:0A:00"
	}))
	if got := older.ports(uuid); fmt.Sprint(got) != "[52:55:00:00:0a:00]" {
		t.Errorf("ports of Ironic 29 = %v, want pxe_enabled lost", got)
	}
}

func TestDiscovery_everyCardIsAPortWithoutBootInterface(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true})
	uuid := a.discover(with(fakeironic.SampleInventory(1), func(inventory map[string]any) { inventory["boot"] = map[string]any{} }))
	if got := a.ports(uuid); fmt.Sprint(got) != "[52:55:00:00:01:00 52:55:00:00:01:01]" {
		t.Errorf("ports = %v, want both cards, none for PXE", got)
	}
}

func TestDiscovery_knownMachineIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true})
	uuid := a.discover(fakeironic.SampleInventory(1))
	a.refused(http.StatusNotFound, "Resource could not be found.", http.MethodPost, callback, fakeironic.SampleInventory(1))
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/nodes/"+uuid, nil)
	if again := a.discover(fakeironic.SampleInventory(1)); again == uuid {
		t.Error("a machine that comes back after its node was deleted has its old UUID")
	}
}

func TestDiscovery_simultaneousPostsCreateGhosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeironic.Server{Discovery: true, StepTime: time.Second}
		a := newAPI(t, fake)
		var uuids []string
		for range 3 {
			uuids = append(uuids, a.discover(fakeironic.SampleInventory(1)))
		}
		uuids = append(uuids, fake.DiscoverGhost(fakeironic.SampleInventory(1)))
		<-time.After(time.Second)
		for i, uuid := range uuids {
			if inventory, _ := a.inventory(uuid); inventory["hostname"] != "machine-1" {
				t.Errorf("node %d: inventory = %v", i, inventory)
			}
			if got, want := len(a.ports(uuid)), map[bool]int{true: 1}[i == 0]; got != want {
				t.Errorf("node %d has %d ports, want %d", i, got, want)
			}
		}
	})
}

func TestDiscovery_needsVersionAndSetting(t *testing.T) {
	t.Parallel()
	machine := fakeironic.SampleInventory(1)
	newAPI(t, &fakeironic.Server{}).refused(http.StatusNotFound, "Resource could not be found.", http.MethodPost, callback, machine)
	newAPI(t, &fakeironic.Server{Discovery: true, MaxMicroversion: "1.89"}).
		refused(http.StatusNotFound, "Resource could not be found.", http.MethodPost, callback, machine)
	newAPI(t, &fakeironic.Server{Discovery: true, MaxMicroversion: "1.82"}).refused(http.StatusNotFound, "", http.MethodPost,
		callback, machine)

	a := newAPI(t, &fakeironic.Server{Discovery: true})
	for _, version := range []string{"1.2", "1.83"} {
		a.at(version).refused(http.StatusNotFound, "API version 1.84 or newer is required", http.MethodPost, callback, machine)
	}
	uuidOf(t, a.at("").must(http.StatusAccepted, http.MethodPost, callback, machine)) // ironic-inspector's format
}

func TestDiscovery_postNeedsNoCredentials(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true, Username: "admin", Password: "secret"})
	a.must(http.StatusAccepted, http.MethodPost, callback, fakeironic.SampleInventory(1))
	old := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82", Username: "admin", Password: "secret"})
	old.must(http.StatusUnauthorized, http.MethodPost, callback, fakeironic.SampleInventory(1))
}

func TestDiscovery_hookFailureSetsLastError(t *testing.T) {
	t.Parallel()
	burning := func() map[string]any {
		data := fakeironic.SampleInventory(1)
		data["error"] = "disk on fire"
		return data
	}
	tests := map[string]struct {
		fake  *fakeironic.Server
		data  map[string]any
		error string
		ports int
	}{
		"the ramdisk reports an error": {
			&fakeironic.Server{}, burning(),
			"Async execution of continue_inspection failed with error: Failed to inspect hardware. Reason: failed to run inspection " +
				"hooks: Failed to inspect hardware. Reason: The following failures happened while running preprocess hooks for node " +
				"UUID:\nError in preprocess hook ramdisk-error: Failed to inspect hardware. Reason: Ramdisk reported error: disk on fire",
			0,
		},
		"the machine stays on": {
			&fakeironic.Server{DiscoveryKeepsPower: true}, burning(), "Failed to finish inspection: Failed to inspect hardware.", 0,
		},
		"the card that booted is not in the inventory": {
			&fakeironic.Server{},
			with(fakeironic.SampleInventory(1), func(inventory map[string]any) {
				inventory["boot"] = map[string]any{"pxe_interface": "52:00:00:00:00:01"}
			}),
			"no network interfaces match the configuration (add_ports set to \"pxe\")", 0,
		},
		"no card has a valid address": {
			&fakeironic.Server{},
			with(fakeironic.SampleInventory(1), func(inventory map[string]any) {
				card(inventory, 0)["mac_address"], card(inventory, 1)["mac_address"] = "x", "y"
			}),
			"no valid network interfaces", 0,
		},
		"the CPU is missing": {
			&fakeironic.Server{}, with(fakeironic.SampleInventory(1), func(inventory map[string]any) { delete(inventory, "cpu") }),
			"Inventory has malformed or missing CPU architecture information: None for node UUID.", 1,
		},
		"the ramdisk reports an error to Ironic 29": {
			&fakeironic.Server{MaxMicroversion: "1.96"}, burning(),
			"failed to run inspection hooks: Failed to inspect hardware. Reason: The following failures happened while", 0,
		},
		"Ironic 29 cannot switch the machine off": {
			&fakeironic.Server{MaxMicroversion: "1.96", DiscoveryDriver: "ipmi"}, fakeironic.SampleInventory(1),
			"Failed to change power state to 'power off': Missing the following IPMI credentials in node's driver_info: ['ipmi_address'].",
			1,
		},
		"the machine cannot be switched off": {
			&fakeironic.Server{DiscoveryDriver: "ipmi"}, fakeironic.SampleInventory(1),
			"Inspection clean up failed: unable to power off the node: Missing the following IPMI credentials in node's driver_info: " +
				"['ipmi_address'].", 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.fake.Discovery = true
			a := newAPI(t, test.fake)
			uuid := a.discover(test.data)
			got, _ := a.state(uuid, "enroll")["last_error"].(string)
			if !strings.Contains(strings.ReplaceAll(got, uuid, "UUID"), test.error) {
				t.Errorf("last_error = %q, want %q", got, test.error)
			}
			if ports := a.ports(uuid); len(ports) != test.ports {
				t.Errorf("ports = %v, want %d", ports, test.ports)
			}
			a.refused(http.StatusNotFound, "could not be found", http.MethodGet, "/v1/nodes/"+uuid+"/inventory", nil)
		})
	}
}

func TestDiscovery_keepingPowerNeedsNoCredentials(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true, DiscoveryDriver: "ipmi", DiscoveryKeepsPower: true})
	uuid := a.discover(fakeironic.SampleInventory(1))
	if node := a.state(uuid, "enroll"); node["power_state"] != nil || node["last_error"] != nil {
		t.Errorf("power_state = %v, last_error = %v, want neither", node["power_state"], node["last_error"])
	}
	a.inventory(uuid)
}

func TestDiscovery_nodeIsLockedDuringProcessing(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{Discovery: true, StepTime: time.Hour}
	a := newAPI(t, fake)
	uuid := a.discover(fakeironic.SampleInventory(1))
	if a.state(uuid, "enroll")["reservation"] != "localhost" {
		t.Error("the node is not locked")
	}
	a.refused(http.StatusConflict, "is locked by host", http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/name", "n1"))
}

func TestDiscovery_nodeCanBecomeAvailable(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Discovery: true})
	uuid := a.discover(fakeironic.SampleInventory(1))
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/"+uuid, patch("add", "/name", "n1"))
	a.provision("n1", "manage")
	a.state("n1", "manageable")
	a.provision("n1", "provide")
	a.state("n1", "available")
	if inventory, _ := a.inventory("n1"); inventory["hostname"] != "machine-1" {
		t.Errorf("inventory = %v, want it to survive", inventory)
	}
}

func TestSampleInventory_isUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range 1000 {
		with(fakeironic.SampleInventory(n), func(inventory map[string]any) {
			vendor, _ := inventory["system_vendor"].(map[string]any)
			for _, identity := range []any{
				inventory["hostname"], inventory["bmc_address"], vendor["serial_number"], card(inventory, 0)["mac_address"],
				card(inventory, 1)["mac_address"], card(inventory, 0)["ipv4_address"],
			} {
				if other, taken := seen[fmt.Sprint(identity)]; taken {
					t.Errorf("machines %d and %d share %v", other, n, identity)
				}
				seen[fmt.Sprint(identity)] = n
			}
		})
	}
}
