package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
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
		"young":                        {state: "clean wait", since: 3 * time.Minute},
		"never reported":               {state: "clean wait", since: 8 * time.Minute, want: "is in state clean wait, and its ramdisk has not reported since 11:52:00 UTC (8m0s ago)"},
		"reported for what was before": {state: "wait call-back", since: 8 * time.Minute, internal: map[string]any{KeyHeartbeat: "2026-11-23T11:50:00.1"}, want: "is in state wait call-back, and its ramdisk has not reported since 11:52:00 UTC (8m0s ago)"},
		"reports":                      {state: "clean wait", since: time.Hour, internal: map[string]any{KeyHeartbeat: "2026-11-23T11:58:30.1"}},
		"reports no more":              {state: "clean wait", since: time.Hour, internal: map[string]any{KeyHeartbeat: "2026-11-23T11:50:00.1"}, want: "is in state clean wait, and its ramdisk reported last at 11:50:00 UTC (10m0s ago)"},
		"the policy hides it":          {state: "clean wait", since: time.Hour, hidden: true},
		"the BMC works":                {state: "clean wait", since: time.Hour, step: "raid"},
		"a step of the ramdisk":        {state: "clean wait", since: 8 * time.Minute, step: "deploy", want: "is in state clean wait, and its ramdisk has not reported since 11:52:00 UTC (8m0s ago)"},
		"a conductor works":            {state: "cleaning", since: time.Hour},
	} {
		n := &ironic.Node{ProvisionState: tt.state, DriverInternalInfo: tt.internal, ProvisionUpdatedAt: now.Add(-tt.since)}
		n.Hidden.DriverInternalInfo = tt.hidden
		if tt.step != "" {
			n.CleanStep = map[string]any{"interface": tt.step, "step": "x"}
		}
		if got := absence(n, now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestCheckBoot_byInterface(t *testing.T) {
	t.Parallel()
	for boot, want := range map[string][]string{
		"ipxe":                        {"the card that boots has the MAC address 52:54:00:00:00:01", "iPXE loader on a TFTP server", "boot.ipxe"},
		"pxe":                         {"conductor's TFTP server"},
		"http":                        {"a boot file by HTTP"},
		"http-ipxe":                   {"a boot file by HTTP"},
		"redfish-virtual-media":       {"virtual drive", "[deploy]http_url"},
		"idrac-redfish-virtual-media": {"virtual drive"},
		"redfish-https":               {"UEFI HTTP boot"},
		"fake":                        {"Check how it boots"},
	} {
		got := checkBoot(&ironic.Node{UUID: "u", BootInterface: boot}, []string{"52:54:00:00:00:01"})
		for _, text := range append(want, "Ironic's API", "Its console") {
			if !strings.Contains(got, text) {
				t.Errorf("%s: %q lacks %q", boot, got, text)
			}
		}
		if BootsFromPort(boot) != strings.Contains(got, "DHCP") {
			t.Errorf("%s: %q", boot, got)
		}
	}
	if got := checkBoot(&ironic.Node{UUID: "u", BootInterface: "ipxe", ManagementInterface: "ipmitool", ConsoleEnabled: true}, nil); !strings.Contains(got, "boot device show u") || !strings.Contains(got, "console show u") {
		t.Error(got)
	}
}

// Ironic's texts are of 21.4 and 39.0.
func TestBootAdvice_afterTimeouts(t *testing.T) {
	t.Parallel()
	for lastError, want := range map[string]bool{
		"Timeout reached while waiting for callback for node 1be26c0b":                                                                true,
		"Timeout reached while cleaning the node. Please check if the ramdisk responsible for the cleaning is running on the node. …": true,
		"timeout reached while inspecting the node":                                                                                   true,
		"Timeout reached while waiting for rescue ramdisk callback for node":                                                          true,
		"Agent returned error for clean step":                                                                                         false,
		"":                                                                                                                            false,
	} {
		n := &ironic.Node{UUID: "u", ProvisionState: "clean failed", LastError: lastError, BootInterface: "ipxe"}
		_, detail := failure.Explain("x", FailedOn(n, states.GoalAvailable, "", []string{"52:54:00:00:00:01"}))
		if got := strings.Contains(detail, "DHCP answers that card"); got != want {
			t.Errorf("%q: %s", lastError, detail)
		}
		if _, detail = failure.ExplainAction("x", n, FailedOn(n, "", "", nil)); strings.Contains(detail, "DHCP answers that card") != want {
			t.Errorf("in an action, %q: %s", lastError, detail)
		}
	}
	for state, want := range map[string]bool{"clean wait": true, "inspect wait": true, "cleaning": false, "active": false} {
		_, detail := failure.Explain("x", Late(&ironic.Node{UUID: "u", ProvisionState: state, BootInterface: "redfish-virtual-media"}, "", time.Hour, nil))
		if got := strings.Contains(detail, "virtual drive"); got != want {
			t.Errorf("%s: %s", state, detail)
		}
	}
}
