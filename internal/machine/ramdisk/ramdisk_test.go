package ramdisk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
)

func TestAbsence(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		state    string
		since    time.Duration
		internal map[string]any
		hidden   bool   // by the policy
		step     string // interface of the clean step
		want     string
	}{
		"young": {state: "clean wait", since: 3 * time.Minute},
		"never reported": {
			state: "clean wait", since: 8 * time.Minute,
			want: "is in state clean wait, and its ramdisk has not reported since 11:52:00 UTC (8m0s ago)",
		},
		"reported for what was before": {
			state: "wait call-back", since: 8 * time.Minute,
			internal: map[string]any{ramdisk.KeyHeartbeat: "2026-11-23T11:50:00.1"},
			want:     "is in state wait call-back, and its ramdisk has not reported since 11:52:00 UTC (8m0s ago)",
		},
		"reports": {
			state: "clean wait", since: time.Hour,
			internal: map[string]any{ramdisk.KeyHeartbeat: "2026-11-23T11:58:30.1"},
		},
		"reports no more": {
			state: "clean wait", since: time.Hour,
			internal: map[string]any{ramdisk.KeyHeartbeat: "2026-11-23T11:50:00.1"},
			want:     "is in state clean wait, and its ramdisk reported last at 11:50:00 UTC (10m0s ago)",
		},
		"the policy hides it": {state: "clean wait", since: time.Hour, hidden: true},
		"the BMC works":       {state: "clean wait", since: time.Hour, step: "raid"},
		"a step of the ramdisk": {
			state: "clean wait", since: 8 * time.Minute, step: "deploy",
			want: "is in state clean wait, and its ramdisk has not reported since 11:52:00 UTC (8m0s ago)",
		},
		"a conductor works": {state: "cleaning", since: time.Hour},
	} {
		n := &ironic.Node{ProvisionState: tt.state, DriverInternalInfo: tt.internal, ProvisionUpdatedAt: now.Add(-tt.since)}
		n.Hidden.DriverInternalInfo = tt.hidden
		if tt.step != "" {
			n.CleanStep = map[string]any{"interface": tt.step, "step": "x"}
		}
		if got := ramdisk.Absence(n, now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestCheckBoot_byInterface(t *testing.T) {
	t.Parallel()
	for boot, want := range map[string][]string{
		"ipxe": {
			"the card that boots has the MAC address 52:54:00:00:00:01",
			"iPXE loader on a TFTP server", "boot.ipxe",
		},
		"pxe":                         {"conductor's TFTP server"},
		"http":                        {"a boot file by HTTP"},
		"http-ipxe":                   {"a boot file by HTTP"},
		"redfish-virtual-media":       {"virtual drive", "[deploy]http_url"},
		"idrac-redfish-virtual-media": {"virtual drive"},
		"redfish-https":               {"UEFI HTTP boot"},
		"fake":                        {"Check how it boots"},
	} {
		got := ramdisk.CheckBoot(&ironic.Node{UUID: "u", BootInterface: boot}, []string{"52:54:00:00:00:01"})
		for _, text := range append(want, "Ironic's API", "Its console") {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q lacks %q", boot, got, text)
			}
		}
		if ramdisk.BootsFromPort(boot) != strings.Contains(got, "DHCP") {
			t.Errorf("%s: %q", boot, got)
		}
	}
	if got := ramdisk.CheckBoot(&ironic.Node{UUID: "u", BootInterface: "ipxe", ManagementInterface: "ipmitool", ConsoleEnabled: true},
		nil); !strings.Contains(got, "metal boot-device show u") || !strings.Contains(got, "metal console u") {
		t.Error(got)
	}
}

func TestNetworkBoot_lacks(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const none, closed = "has no port, so Ironic does not know the network card that boots", "has one port, with pxe_enabled = false"
	for name, tt := range map[string]struct {
		boot  string
		ports map[string]*bool
		open  bool
		want  string
	}{
		"ipxe without ports":      {boot: "ipxe", want: none},
		"pxe without ports":       {boot: "pxe", want: none},
		"http without ports":      {boot: "http", want: none},
		"http-ipxe without ports": {boot: "http-ipxe", want: none},
		"ilo-ipxe without ports":  {boot: "ilo-ipxe", want: none},
		"a port that may boot":    {boot: "ipxe", ports: map[string]*bool{"a": &yes}},
		"a port that may not":     {boot: "ipxe", ports: map[string]*bool{"a": &no}, want: closed},
		"two that may not, as in a bond": {
			boot: "ipxe", ports: map[string]*bool{"a": &no, "b": &no},
			want: "has 2 ports, all with pxe_enabled = false",
		},
		"one of two":                      {boot: "ipxe", ports: map[string]*bool{"a": &no, "b": &yes}},
		"a port that is not known":        {boot: "ipxe", ports: map[string]*bool{"a": &no, "b": nil}},
		"ports that an inspection brings": {boot: "ipxe", open: true},
		"virtual media":                   {boot: "redfish-virtual-media"},
		"virtual media of Dell":           {boot: "idrac-redfish-virtual-media"},
		"an address that the BMC is told": {boot: "redfish-https"},
		"a fake":                          {boot: "fake"},
		"an interface that is not known":  {},
		"an interface of others":          {boot: "acme-boot"},
	} {
		if got := (ramdisk.NetworkBoot{Interface: tt.boot, Ports: tt.ports, Open: tt.open}).Lacks(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
