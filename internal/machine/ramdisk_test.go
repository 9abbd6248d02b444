package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// waiting is a state in which Ironic waits for its ramdisk, with the goal of a run that waits with it.
var waiting = map[string]states.Goal{
	"clean wait": states.GoalAvailable, "inspect wait": states.GoalInspected, "wait call-back": states.GoalDeployed,
	"rescue wait": states.GoalRescued,
}

func TestAbsence_isExplainedLongBeforeIronicGivesUp(t *testing.T) {
	t.Parallel()
	for state, goal := range waiting {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				var log sitetest.Logbook
				client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) { cfg.PollInterval = 10 * time.Second })
				id := fake.Nodes()[0].UUID
				fake.Set(id, "provision_state", state)
				fake.Set(id, "boot_interface", "ipxe")
				start := time.Now()
				_, err := client.Reach(t.Context(), id, goal, 25*time.Minute)
				warnings := log.Lines("level=WARN", "is in state "+state, "its ramdisk has not reported since", "boot interface ipxe",
					"DHCP", "TFTP", "52:54:00:", "Its console")
				if len(warnings) < 2 || len(warnings) > 4 {
					t.Fatalf("%d warnings: %q", len(warnings), log.Lines("level="))
				}
				_, detail := failure.Explain("prepare it", err)
				if !failure.Is(err, failure.KindTimeout) || !strings.Contains(detail, "52:54:00:") ||
					!strings.Contains(detail, "DHCP answers that card") ||
					strings.Contains(detail, "agent of Ironic's ramdisk has not reported") != !strings.HasPrefix(state, "inspect") {
					t.Errorf("the error is %v: %s", err, detail)
				}
				reads := 0
				for _, r := range since(fake, start) {
					if r.Method == http.MethodGet && r.Query == "" && strings.HasPrefix(r.Path, "/v1/nodes/") {
						reads++
					}
				}
				const lookups = 2 // of the node and its inventory, when it is too late
				if reads > len(warnings)+2+lookups {
					t.Errorf("%d reads of the node", reads)
				}
			})
		})
	}
}

func TestAbsence_ofMachineThatReports(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		var log sitetest.Logbook
		client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) { cfg.PollInterval = 10 * time.Second })
		id := fake.Nodes()[0].UUID
		fake.Set(id, "provision_state", "clean wait")
		reports := time.NewTicker(100 * time.Second)
		defer reports.Stop()
		done := make(chan struct{})
		go func() {
			for {
				select {
				case <-reports.C:
					fake.Set(id, "driver_internal_info", map[string]any{
						"agent_last_heartbeat": time.Now().UTC().Format("2006-01-02T15:04:05.000000"),
					})
				case <-done:
					return
				}
			}
		}()
		_, err := client.Reach(t.Context(), id, states.GoalAvailable, time.Hour)
		close(done)
		if got := log.Lines("level=WARN"); err == nil || len(got) > 0 {
			t.Errorf("%v; the log warns: %q", err, got)
		}
		if got := log.Lines("is still clean wait"); len(got) < 5 {
			t.Errorf("the log: %q", got)
		}
	})
}

// Ironic's texts are of 21.4 and 39.0.
func TestBootAdvice_afterTimeouts(t *testing.T) {
	t.Parallel()
	for lastError, want := range map[string]bool{
		"Timeout reached while waiting for callback for node 1be26c0b":                                                                true,
		"Timeout reached while cleaning the node. Please check if the ramdisk responsible for the cleaning is running on the node. …": true,
		"timeout reached while inspecting the node":                                                                                   true,
		"Timeout reached while waiting for rescue ramdisk callback for node":                                                          true,
		"Agent returned error for " +
			"clean step": false,
		"": false,
	} {
		n := &ironic.Node{UUID: "u", ProvisionState: "clean failed", LastError: lastError, BootInterface: "ipxe"}
		_, detail := failure.Explain("x", machine.FailedOn(n, states.GoalAvailable, "", []string{"52:54:00:00:00:01"}))
		if got := strings.Contains(detail, "DHCP answers that card"); got != want {
			t.Errorf("%q: %s", lastError, detail)
		}
		if _, detail = failure.ExplainAction("x", n, machine.FailedOn(n, "", "", nil), ""); strings.Contains(detail,
			"DHCP answers that card") != want {
			t.Errorf("in an action, %q: %s", lastError, detail)
		}
	}
	for state, want := range map[string]bool{"clean wait": true, "inspect wait": true, "cleaning": false, "active": false} {
		_, detail := failure.Explain("x", machine.Late(&ironic.Node{
			UUID: "u", ProvisionState: state,
			BootInterface: "redfish-virtual-media",
		}, "", time.Hour, nil))
		if got := strings.Contains(detail, "virtual drive"); got != want {
			t.Errorf("%s: %s", state, detail)
		}
	}
}
