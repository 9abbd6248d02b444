package hardware_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
)

// inventoryOf reads an inventory that a ramdisk has posted; without: what is replaced in its text.
func inventoryOf(t *testing.T, name string, replace ...string) *ironic.Inventory {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(replace, 2) {
		if !strings.Contains(string(text), pair[0]) {
			t.Fatalf("%s has no %q", name, pair[0])
		}
	}
	var inventory ironic.Inventory
	if err := json.Unmarshal([]byte(strings.NewReplacer(replace...).Replace(string(text))), &inventory); err != nil {
		t.Fatal(err)
	}
	return &inventory
}

// Inventories of several vendors give the facts that people order, and each machine has the hardware of its own model.
func TestOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"poweredge-r640": `{"manufacturer":"Dell Inc.","product":"PowerEdge R640","cpu_arch":"x86_64","cpus":80,"memory_mb":196608,` +
			`"disks":[{"count":1,"size_gb":480,"type":"ssd"},{"count":1,"size_gb":1600,"type":"nvme"}],` +
			`"nics":[{"count":2},{"count":1,"speed_mbps":10000}],"firmware":{"bios":"2.10.2"}}`,
		"poweredge-m630": `{"manufacturer":"Dell Inc.","product":"PowerEdge M630","cpu_arch":"x86_64","cpus":48,"memory_mb":131072,` +
			`"disks":[{"count":1,"size_gb":299,"type":"hdd"}],"nics":[{"count":2}]}`,
		"poweredge-r320": `{"manufacturer":"Dell Inc.","product":"PowerEdge R320","cpu_arch":"x86_64","cpus":16,"memory_mb":81920,` +
			`"disks":[{"count":1,"size_gb":600,"type":"hdd"}],"nics":[{"count":4}]}`,
		"system-x3650-m5": `{"manufacturer":"LENOVO","product":"System x3650 M5: -[8871AC1]-","cpu_arch":"x86_64","cpus":32,` +
			`"memory_mb":131072,"disks":[],"nics":[{"count":2}]}`,
	} {
		machine := hardware.Of(inventoryOf(t, name), nil, nil)
		if machine.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, machine.Model, want)
		}
		if all := machine.Differences(machine); len(all) > 0 {
			t.Errorf("%s differs from itself: %+v", name, all)
		}
		if joined := join(machine.Model); !reflect.DeepEqual(joined, machine.Model) {
			t.Errorf("%s: the facts together are\n%s", name, joined)
		}
		again, err := hardware.Parse(json.RawMessage(machine.String()))
		if err != nil || again.String() != want {
			t.Errorf("%s is read as %s, %v", name, again, err)
		}
	}
}

func join(m hardware.Model) (all hardware.Model) {
	for _, fact := range m.Facts() {
		all = all.With(fact)
	}
	return all
}

// GPUs are told from the other devices of either kind of inspection; without a list of devices they are not known.
func TestOf_gpus(t *testing.T) {
	t.Parallel()
	const nic, display, gpu = `{"class": "020000", "vendor_id": "8086", "product_id": "1563"}`,
		`{"class": "030000", "vendor_id": "102b", "product_id": "0536"}`, `{"class": "030200", "vendor_id": "10de", "product_id": "20b5"}`
	const redfish = `{"class": "displaycontroller", "vendor_id": "10de", "product_id": "20b5"}`
	for devices, want := range map[string]string{
		"[" + nic + "," + gpu + "," + display + "," + gpu + "]": `[{"count":2,"vendor_id":"10de","product_id":"20b5"}]`,
		"[" + redfish + `, {"class": "bridge"}]`:                `[{"count":1,"vendor_id":"10de","product_id":"20b5"}]`,
		"[" + nic + "]":                                         `[]`,
		"null":                                                  `null`,
	} {
		var inventory ironic.Inventory
		if err := json.Unmarshal([]byte(`{"pci_devices": `+devices+`}`), &inventory); err != nil {
			t.Fatal(err)
		}
		gpus := hardware.Of(&inventory, nil, nil).GPUs
		if text, _ := json.Marshal(gpus); string(text) != want {
			t.Errorf("%s: %s, want %s", devices, text, want)
		}
	}
}

// What differs is said in words that send a technician to the right place, and what every machine of a model may have is no difference.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, model string
		replace     []string // in the inventory of the R640
		want        string
	}{
		{"a DIMM", `{"memory_mb": 196608}`, []string{"196608", "180224"}, "176 of 192 GiB of memory: a DIMM is missing"},
		{"one DIMM of 48", `{"memory_mb": 786432}`, []string{"196608", "770048"}, "752 of 768 GiB of memory: a DIMM is missing"},
		{"memory that the firmware reserves", `{"memory_mb": 524288}`, []string{"196608", "515000"}, ""},
		{"more memory", `{"memory_mb": 131072}`, nil, "192 of 128 GiB of memory: more than expected"},
		{"memory is not known", `{"memory_mb": 524288}`, []string{"196608", "0"}, ""},
		{"half of the CPUs", `{"cpus": 160}`, nil, "80 of 160 CPUs: a processor is missing, or multithreading is off"},
		{
			"a disk", `{"disks": [{"count": 2, "size_gb": 480, "type": "ssd"}, {"count": 1, "size_gb": 1600, "type": "nvme"}]}`, nil,
			"1 of 2 disks of 480 GB (ssd): 1 missing",
		},
		{
			"another size", `{"disks": [{"count": 1, "size_gb": 960}, {"count": 1, "size_gb": 1600, "type": "nvme"}]}`, nil,
			"0 of 1 disk of 960 GB: 1 missing; 1 disk of 480 GB (ssd) more than expected",
		},
		{"sizes of another vendor", `{"disks": [{"count": 1, "size_gb": 1587}, {"count": 1, "size_gb": 485}]}`, nil, ""},
		{"any disks", `{"disks": [{"count": 2}]}`, nil, ""},
		{"no disks", `{"disks": []}`, nil, "1 disk of 480 GB (ssd) more than expected; 1 disk of 1600 GB (nvme) more than expected"},
		{"links that are down", `{"nics": [{"count": 2, "speed_mbps": 10000}, {"count": 1}]}`, nil, ""},
		{
			"slower links", `{"nics": [{"count": 3, "speed_mbps": 25000}]}`, nil, "2 of 3 network cards of 25000 Mbit/s: 1 missing; " +
				"1 network card of 10000 Mbit/s more than expected",
		},
		{"a card", `{"nics": [{"count": 4}]}`, nil, "3 of 4 network cards: 1 missing"},
		{"devices that were not listed", `{"gpus": [{"count": 4, "vendor_id": "10de"}]}`, nil, ""},
		{"another model", `{"product": "PowerEdge R750"}`, nil, `the product is "PowerEdge R640", not "PowerEdge R750"`},
		{"the SKU", `{"product": "PowerEdge R640 (SKU=1)", "manufacturer": "DELL INC."}`, nil, ""},
		{"an old BIOS", `{"firmware": {"bios": "2.11.0", "bmc": "7"}}`, nil, `the firmware of bios has version "2.10.2", not "2.11.0"`},
		{"settings that Ironic does not list", `{"bios": {"BootMode": "Uefi"}}`, nil, ""},
	} {
		model, err := hardware.Parse(json.RawMessage(test.model))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var texts []string
		for _, d := range model.Differences(hardware.Of(inventoryOf(t, "poweredge-r640", test.replace...), nil, nil)) {
			texts = append(texts, d.Text)
		}
		if got := strings.Join(texts, "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// BIOS settings are compared as bios_settings are; what machines cannot have in common is no fact of a model.
func TestDifferences_bios(t *testing.T) {
	t.Parallel()
	yes := true
	machine := hardware.Of(nil, map[string]ironic.BIOSSetting{
		"BootMode": {Name: "BootMode", Value: "Bios", Type: "Enumeration"}, "Sriov": {Name: "Sriov", Value: "1", Type: "Boolean"},
		"AssetTag": {Name: "AssetTag", Value: "A1", Unique: &yes}, "Serial": {Name: "Serial", Value: "S1", ReadOnly: true},
		"SetupPassword": {Name: "SetupPassword", Value: "x", Type: "Password"}, "Untold": {Name: "Untold"},
	}, map[string]string{"bmc": "7.0", "nic": ""})
	if want := `{"bios":{"BootMode":"Bios","Sriov":"true"},"firmware":{"bmc":"7.0"}}`; machine.String() != want {
		t.Errorf("%s, want %s", machine.Model, want)
	}
	model := hardware.Model{BIOS: map[string]string{"BootMode": "Uefi", "Sriov": "true", "SetupPassword": "y", "Untold": "z"}}
	all := model.Differences(machine)
	if len(all) != 1 || all[0] != (hardware.Difference{
		Fact: "bios.BootMode", Expected: "Uefi", Found: "Bios", Text: `BIOS setting BootMode is "Bios", not "Uefi"`,
	}) {
		t.Errorf("%+v", all)
	}
}

// A model that cannot be is refused, with the place of the fault.
func TestParse_faults(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{"memroy_mb": 1}`:            `unknown key "memroy_mb"; the keys are manufacturer, `,
		`{"PowerEdge R640": {}}`:      `unknown key "PowerEdge R640"`,
		`{"disks": [{"siez_gb": 1}]}`: `unknown key "siez_gb"`,
		`{"cpus": "80"}`:              "cpus is a JSON string",
		`{"cpus": 80.5}`:              "cpus is a JSON number 80.5",
		`[]`:                          "the value is a JSON array",
		`{"cpus": -1}`:                "must be positive",
		`{"disks": [{"size_gb": 1}]}`: "a count of at least 1",
		`{"disks": [{"count": 1, "type": "floppy"}]}`: "hdd, ssd, nvme",
		`{"nics": [{"count": 0}]}`:                    "a count of at least 1",
	} {
		if _, err := hardware.Parse(json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
	if m, err := hardware.Parse(json.RawMessage(`{"cpus": null, "disks": null}`)); err != nil || !m.IsEmpty() {
		t.Errorf("nulls: %s, %v", m, err)
	}
}
