package allocate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// inspection returns an inventory from JSON.
func inspection(text string) *ironic.Inventory {
	var i ironic.Inventory
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		panic(err)
	}
	return &i
}

// inspected returns an inventory of 32 CPUs, 128 GiB, an SSD of 894 GiB and a disk of 3726 GiB that rotates.
func inspected() *ironic.Inventory {
	return inspection(fmt.Sprintf(`{"cpu": {"count": 32, "architecture": "x86_64"}, "memory": {"physical_mb": 131072},
		"system_vendor": {"manufacturer": "Dell Inc.", "product_name": "PowerEdge R660"},
		"disks": [{"name": "/dev/sda", "size": %d, "rotational": false}, {"name": "/dev/sdb", "size": %d, "rotational": true}],
		"interfaces": [{"speed_mbps": -1}, {"speed_mbps": 25000}, {"speed_mbps": null}]}`, 894<<30, 3726<<30))
}

func TestRequirements_compareNodes(t *testing.T) {
	t.Parallel()
	group, none := "Rack1", ""
	poor := map[string]any{
		"cpus": 8.0, "memory_mb": "16384", "local_gb": 100.0, "cpu_arch": "aarch64", "vendor": "hpe",
		"capabilities": "boot_mode:uefi,cpu_vt:true",
	}
	for name, tc := range map[string]struct {
		require    Requirements
		properties map[string]any
		inventory  *ironic.Inventory
		want       verdict
	}{
		"nothing":                         {Requirements{}, nil, nil, verdict{}},
		"CPUs":                            {Requirements{MinCPUs: 32}, nil, inspected(), verdict{}},
		"too few CPUs":                    {Requirements{MinCPUs: 33}, nil, inspected(), verdict{lacks: "below min_cpus"}},
		"properties before the inventory": {Requirements{MinCPUs: 16}, poor, inspected(), verdict{lacks: "below min_cpus"}},
		"a number as text":                {Requirements{MinMemoryMB: 16384}, poor, nil, verdict{}},
		"memory unknown":                  {Requirements{MinMemoryMB: 1}, nil, nil, verdict{asks: "min_memory_mb"}},
		"the lack decides":                {Requirements{MinNICMbps: 1, MinCPUs: 9}, poor, nil, verdict{lacks: "below min_cpus"}},
		"disk by properties":              {Requirements{MinDiskGB: 100}, poor, nil, verdict{}},
		"disk too small by properties": {
			Requirements{MinDiskGB: 101, DiskType: DiskSSD},
			poor, nil,
			verdict{lacks: "below min_disk_gb"},
		},
		"largest disk":                    {Requirements{MinDiskGB: 3726}, nil, inspected(), verdict{}},
		"disk unknown":                    {Requirements{MinDiskGB: 1}, nil, &ironic.Inventory{}, verdict{asks: "min_disk_gb"}},
		"disk type by the inventory only": {Requirements{DiskType: DiskSSD}, poor, nil, verdict{asks: "disk_type"}},
		"SSD":                             {Requirements{DiskType: DiskSSD, MinDiskGB: 894}, nil, inspected(), verdict{}},
		"SSD too small": {
			Requirements{DiskType: DiskSSD, MinDiskGB: 895},
			nil, inspected(),
			verdict{lacks: "below min_disk_gb"},
		},
		"HDD":     {Requirements{DiskType: DiskHDD}, nil, inspected(), verdict{}},
		"no NVMe": {Requirements{DiskType: DiskNVMe}, nil, inspected(), verdict{lacks: "other disk_type"}},
		"NVMe is an SSD": {
			Requirements{DiskType: DiskSSD},
			nil,
			inspection(`{"disks": [{"name": "/dev/nvme0n1"}]}`),
			verdict{},
		},
		"network card":         {Requirements{MinNICMbps: 25000}, nil, inspected(), verdict{}},
		"slow network card":    {Requirements{MinNICMbps: 25001}, nil, inspected(), verdict{lacks: "below min_nic_mbps"}},
		"architecture":         {Requirements{CPUArch: "x86_64"}, poor, inspected(), verdict{lacks: "other cpu_arch"}},
		"manufacturer":         {Requirements{Manufacturer: regexp.MustCompile("^Dell")}, nil, inspected(), verdict{}},
		"vendor in properties": {Requirements{Manufacturer: regexp.MustCompile("(?i)^HPE")}, poor, nil, verdict{}},
		"a vendor proves no other": {
			Requirements{Manufacturer: regexp.MustCompile("^Hewlett")},
			poor, nil,
			verdict{asks: "manufacturer"},
		},
		"other product": {
			Requirements{Product: regexp.MustCompile("R7")},
			nil, inspected(),
			verdict{lacks: "other product"},
		},
		"capability": {Requirements{Capabilities: map[string]string{"boot_mode": "uefi"}}, poor, nil, verdict{}},
		"other capability": {
			Requirements{Capabilities: map[string]string{"boot_mode": "bios"}},
			poor, nil,
			verdict{lacks: "without capability boot_mode:bios"},
		},
		"conductor group":    {Requirements{ConductorGroup: &group}, nil, nil, verdict{}},
		"no conductor group": {Requirements{ConductorGroup: &none}, nil, nil, verdict{lacks: "other conductor_group"}},
		"excluded by name":   {Requirements{Exclude: []string{"n1"}}, nil, nil, verdict{lacks: "in exclude"}},
		"excluded by UUID":   {Requirements{Exclude: []string{"id"}}, nil, nil, verdict{lacks: "in exclude"}},
	} {
		node := &ironic.Node{UUID: "id", Name: "n1", ConductorGroup: "rack1", Properties: tc.properties}
		if got := tc.require.judge(node, tc.inventory, time.Time{}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// Right cabling is what the host of a node expects, and what the inspection has heard.
func TestRequirements_compareCables(t *testing.T) {
	t.Parallel()
	note := map[string]any{"52:54:00:aa:00:01": map[string]any{"switch": "leaf-1", "port": "Ethernet1/1"}}
	heard := func(port string, listened bool) *ironic.Inventory {
		i := inspection(`{"interfaces": [{"name": "eno1", "mac_address": "52:54:00:aa:00:01"}]}`)
		if listened {
			i.Neighbours = map[string]ironic.Neighbour{"eno1": {}}
		}
		if port != "" {
			i.Neighbours["eno1"] = ironic.Neighbour{SwitchName: "leaf-1", PortID: port}
		}
		return i
	}
	for name, tc := range map[string]struct {
		note      any
		inventory *ironic.Inventory
		want      verdict
	}{
		"right":                    {note, heard("Eth1/1", true), verdict{}},
		"wrong":                    {note, heard("Eth1/2", true), verdict{lacks: "wrong cabling"}},
		"silent":                   {note, heard("", true), verdict{lacks: "wrong cabling"}},
		"without LLDP":             {note, heard("", false), verdict{asks: "cabling"}},
		"without an inventory":     {note, nil, verdict{asks: "cabling"}},
		"nothing is expected":      {nil, heard("Eth1/1", true), verdict{lacks: "without expect_neighbor"}},
		"a note of another client": {"leaf-1", heard("Eth1/1", true), verdict{lacks: "without expect_neighbor"}},
	} {
		node := &ironic.Node{Extra: map[string]any{"terraform_metal_cabling": tc.note}}
		if got := (&Requirements{Cabling: true}).judge(node, tc.inventory, time.Time{}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A member of a group stays where it is, because only an inventory tells whether its cables are right.
func TestReservedNode_keepsItsCables(t *testing.T) {
	t.Parallel()
	if lacks := (ReservedNode{UUID: "n1"}).Lacks(&Requirements{Cabling: true}); lacks != "" {
		t.Errorf("the reserved node lacks %q", lacks)
	}
}

// A node has the hardware that its host expects if the host's apply has noted so, and no inspection has ended since.
func TestJudge_hardwareAsExpected(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		note  string
		since time.Duration // from the inspection of the note to the last one
		want  string
	}{
		{"", 0, "without expect_hardware or inventory"},
		{`{"inspected": "2026-11-29T08:00:00Z", "serial": "S1", "differences": []}`, 0, ""},
		{`{"inspected": "2026-11-29T08:00:00Z", "differences": ["a DIMM is missing"]}`, 0, "other hardware than expected"},
		{
			`{"inspected": "2026-11-29T08:00:00Z", "differences": []}`, time.Hour,
			"not compared with expect_hardware since their inspection",
		},
		{`"forged"`, 0, "without expect_hardware or inventory"},
	} {
		ended := at.Add(test.since)
		node := &ironic.Node{UUID: "n", InspectionFinishedAt: &ended, Extra: map[string]any{}}
		if test.note != "" {
			node.Extra[notes.KeyHardware] = json.RawMessage(test.note)
		}
		if v := (&Requirements{HardwareAsExpected: true}).judge(node, nil, time.Time{}); v.lacks != test.want || v.asks != "" {
			t.Errorf("%s: %+v, want %q", test.note, v, test.want)
		}
		if v := (&Requirements{}).judge(node, nil, time.Time{}); v.lacks != "" {
			t.Errorf("%s: nothing is required, and %+v", test.note, v)
		}
	}
}

// A machine is qualified if it has passed within the time, and is the same machine since. The inventory tells that after an inspection.
func TestJudge_qualifiedWithin(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	const passed = `{"passed": "2026-11-29T10:00:00Z", "inspected": "2026-11-29T08:00:00Z", "serial": "S1"}`
	const lacks = "not qualified within 1d"
	serial := func(number string) *ironic.Inventory {
		i := &ironic.Inventory{}
		i.System.Serial = number
		return i
	}
	for name, test := range map[string]struct {
		note      string
		since     time.Duration // from the inspection of the note to the last one
		inventory *ironic.Inventory
		age       time.Duration // from the inspection of the note to the question
		want      verdict
	}{
		"never":                      {"", 0, nil, 3 * time.Hour, verdict{lacks: lacks}},
		"forged":                     {`"yes"`, 0, nil, 3 * time.Hour, verdict{lacks: lacks}},
		"passed":                     {passed, 0, nil, 3 * time.Hour, verdict{}},
		"passed, lapsed":             {passed, 0, nil, 27 * time.Hour, verdict{lacks: lacks}},
		"passes in a time to come":   {passed, 0, nil, time.Hour, verdict{lacks: lacks}},
		"failed":                     {`{"failed": "2026-11-29T10:00:00Z"}`, 0, nil, 3 * time.Hour, verdict{lacks: lacks}},
		"in progress":                {`{"begun": "2026-11-29T10:00:00Z"}`, 0, nil, 3 * time.Hour, verdict{lacks: lacks}},
		"inspected since, not read":  {passed, time.Hour, nil, 3 * time.Hour, verdict{asks: "qualified_within"}},
		"inspected since, the same":  {passed, time.Hour, serial("S1"), 3 * time.Hour, verdict{}},
		"inspected since, another":   {passed, time.Hour, serial("S2"), 3 * time.Hour, verdict{lacks: lacks}},
		"inspected since, no serial": {passed, time.Hour, serial(""), 3 * time.Hour, verdict{lacks: lacks}},
	} {
		ended := at.Add(test.since)
		node := &ironic.Node{UUID: "n", InspectionFinishedAt: &ended, Extra: map[string]any{}}
		if test.note != "" {
			node.Extra[notes.KeyQualification] = json.RawMessage(test.note)
		}
		within := &Requirements{QualifiedWithin: "1d"}
		if v := within.judge(node, test.inventory, at.Add(test.age)); v != test.want {
			t.Errorf("%s: %+v, want %+v", name, v, test.want)
		}
		if v := (&Requirements{}).judge(node, nil, at); v.lacks != "" {
			t.Errorf("%s: nothing is required, and %+v", name, v)
		}
		if !within.needsAllFields() || (ReservedNode{UUID: "n"}).Lacks(within) != "" {
			t.Errorf("%s: a list without notes decides", name)
		}
	}
}
