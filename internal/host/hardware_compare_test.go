package host_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// settings are BIOS settings as Ironic has cached them.
func settings(all ...ironic.BIOSSetting) host.HardwareSeen {
	seen := host.HardwareSeen{BIOS: map[string]ironic.BIOSSetting{"Other": {Name: "Other", Value: "x"}}}
	for _, s := range all {
		seen.BIOS[s.Name] = s
	}
	return seen
}

// The differences between a configuration that was applied and what Ironic has cached; "" if there is none.
func TestDifferences(t *testing.T) {
	t.Parallel()
	bios := func(value string) host.Hardware {
		return host.Hardware{BIOS: map[string]string{"A": value}}
	}
	has := func(value any, kind string) host.HardwareSeen {
		return settings(ironic.BIOSSetting{Name: "A", Value: value, Type: kind})
	}
	volumes := func(deletes bool, all ...ironic.LogicalDisk) host.Hardware {
		return host.Hardware{RAID: &host.RAID{Volumes: all, DeleteExisting: deletes}}
	}
	found := func(all ...ironic.LogicalDisk) host.HardwareSeen { return host.HardwareSeen{RAID: all} }
	firmware := func(version string) host.Hardware {
		return host.Hardware{Firmware: map[string]host.Firmware{"bios": {URL: "http://f/1", Version: version}}}
	}
	for name, tt := range map[string]struct {
		want host.Hardware
		seen host.HardwareSeen
		says string
	}{
		"the same text":                 {bios("Enabled"), has("Enabled", "Enumeration"), ""},
		"another text":                  {bios("Enabled"), has("Disabled", "Enumeration"), `BIOS setting A is "Disabled", not "Enabled"`},
		"another case":                  {bios("enabled"), has("Enabled", "Enumeration"), `BIOS setting A is "Enabled", not "enabled"`},
		"a text of a stale registry":    {bios("Enabled"), has("Disabled", ""), `BIOS setting A is "Disabled", not "Enabled"`},
		"a boolean as a number":         {bios("true"), has("1", "Boolean"), ""},
		"a boolean without a type":      {bios("true"), has("True", ""), ""},
		"another one without a type":    {bios("true"), has("0", ""), `BIOS setting A is "0", not "true"`},
		"a text that looks like a flag": {bios("true"), has("1", "String"), `BIOS setting A is "1", not "true"`},
		"a number":                      {bios("07"), has("7", "Integer"), ""},
		"a number without a type":       {bios("7"), has(7.0, ""), ""},
		"another number":                {bios("8"), has("7", "Integer"), `BIOS setting A is "7", not "8"`},
		"a password":                    {bios("secret"), has("", "Password"), ""},
		"a value that is not known":     {bios("Enabled"), has(nil, "Enumeration"), ""},
		"a setting that is gone":        {bios("Enabled"), settings(), "the machine has no BIOS setting A any more"},
		"no settings at all":            {bios("Enabled"), host.HardwareSeen{}, ""},
		"a read-only setting": {
			bios("B"), settings(ironic.BIOSSetting{Name: "A", Value: "C", ReadOnly: true}),
			`BIOS setting A is "C", not "B", and read-only`,
		},
		"a value that is refused now": {bios("B"), settings(ironic.BIOSSetting{
			Name: "A", Value: "C", Type: "Enumeration",
			Allowed: []string{"C", "D"},
		}), `BIOS setting A is "C", not "B", which the BIOS does not accept any more`},

		"the same version": {firmware("2.0"), host.HardwareSeen{Firmware: map[string]string{"bios": "2.0"}}, ""},
		"another version": {
			firmware("2.0"),
			host.HardwareSeen{Firmware: map[string]string{"bios": "2.1"}},
			`the firmware of bios has version "2.1", not "2.0"`,
		},
		"a version that is not configured": {firmware(""), host.HardwareSeen{Firmware: map[string]string{"bios": "2.1"}}, ""},
		"a component that is not listed":   {firmware("2.0"), host.HardwareSeen{Firmware: map[string]string{"bmc": "2.1"}}, ""},

		"volumes that were never read": {volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: "MAX"}), found(), ""},
		"a rounded volume": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: int64(100), Name: "os", Root: true}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: 99.0}), "",
		},
		"a volume with the rest": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: "MAX", Root: true}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: 447.0}), "",
		},
		"a volume as the ramdisk reports it": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: "MAX"}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: "MAX"}), "",
		},
		"a smaller volume": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: int64(100)}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: 98.0}), "the volumes are RAID 1 of 98 GiB, not RAID 1 of 100 GiB",
		},
		"another level": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: "MAX"}),
			found(ironic.LogicalDisk{Level: "0", SizeGB: 100.0}), "the volumes are RAID 0 of 100 GiB, not RAID 1 of the rest of the space",
		},
		"another name": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: "MAX", Name: "os"}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: json.Number("1000000"), Name: "data"}), "the volumes are RAID 1 of 1000000 GiB, not RAID 1 of the " +
				"rest of the space",
		},
		"a volume more": {
			volumes(false, ironic.LogicalDisk{Level: "1", SizeGB: "MAX"}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: 100.0}, ironic.LogicalDisk{Level: "0", SizeGB: 9.0}), "",
		},
		"a volume more, after a deletion": {
			volumes(true, ironic.LogicalDisk{Level: "1", SizeGB: int64(100)}),
			found(ironic.LogicalDisk{Level: "1", SizeGB: 100.0}, ironic.LogicalDisk{Level: "0", SizeGB: 9.0}),
			"the volumes are RAID 1 of 100 GiB and RAID 0 of 9 GiB, not RAID 1 of 100 GiB",
		},
	} {
		says := ""
		for _, d := range tt.want.Differences(tt.seen) {
			says += d.String()
			if !tt.want.Has(d) {
				t.Errorf("%s: the configuration does not have %+v", name, d)
			}
		}
		if says != tt.says {
			t.Errorf("%s: %q, want %q", name, says, tt.says)
		}
	}
}

// A comparison holds while the node has not moved, while an operation moves it, and after a failure.
func TestComparison_holdsWhileTheNodeRests(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 5, 0, 0, 0, time.UTC)
	h := host.Hardware{BIOS: map[string]string{"A": "1"}}
	node := func(state string, moved time.Time, fault string) *ironic.Node {
		return &ironic.Node{UUID: "n", ProvisionState: state, ProvisionUpdatedAt: moved, Fault: fault}
	}
	first, err := host.Hardware{RAID: &host.RAID{}}.Compare(t.Context(), nil, node("manageable", at, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		of   host.Hardware
		node *ironic.Node
		want bool
	}{
		"the node has not moved":       {host.Hardware{RAID: &host.RAID{}}, node("manageable", at.Add(time.Millisecond), ""), true},
		"the node has moved":           {host.Hardware{RAID: &host.RAID{}}, node("available", at.Add(time.Second), ""), false},
		"another configuration":        {h, node("manageable", at, ""), false},
		"the node moves":               {h, node("cleaning", at.Add(time.Second), ""), true},
		"the last operation failed":    {h, node("clean failed", at.Add(time.Second), ""), true},
		"Ironic has reported a fault":  {h, node("manageable", at.Add(time.Second), "clean failure"), true},
		"a step waits for an operator": {h, node("clean hold", at.Add(time.Second), ""), true},
	} {
		if got := first.Holds(tt.node, tt.of); got != tt.want {
			t.Errorf("%s: holds = %v, want %v", name, got, tt.want)
		}
	}
}

// A fleet of 1,000 hosts that rests costs no request. Two requests are needed for each host that has moved.
func TestCompare_requestsOfAFleet(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		const hosts = 1000
		fake := ironictest.Fleet(hosts)
		site := sitetest.NewClient(fake).Site
		want := host.Hardware{
			BIOS:     map[string]string{"BootMode": "Uefi"},
			Firmware: map[string]host.Firmware{"bios": {URL: "http://f/1", Version: "2.19.1"}},
		}
		last := map[string]*host.HardwareComparison{}
		compare := func() (requests int) {
			nodes, err := site.Ironic.ListNodesByID(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fake.ResetRequests()
			for id, node := range nodes {
				if last[id], err = want.Compare(t.Context(), site, node, last[id]); err != nil {
					t.Fatal(err)
				}
			}
			return len(fake.Requests())
		}
		if first, then := compare(), compare(); first != 2*hosts || then != 0 {
			t.Errorf("%d requests for a fleet that was never compared, then %d; want %d and 0", first, then, 2*hosts)
		}
		for i := range hosts {
			fake.Set(fmt.Sprintf("node-%03d", i), "provision_updated_at", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
		}
		if moved, then := compare(), compare(); moved != 2*hosts || then != 0 {
			t.Errorf("%d requests for a fleet that has moved, then %d; want %d and 0", moved, then, 2*hosts)
		}
	})
}
