package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestStillness_isToldMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		var log sitetest.Logbook
		client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) { cfg.PollInterval = 10 * time.Second })
		id := sitetest.Enrolled(t, client, "rack1-01")
		if _, err := client.Reach(t.Context(), id, states.GoalManageable, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		lines := log.Lines("is still verifying after", "conductor ", "works on it")
		if len(lines) < 6 || len(lines) > 9 || !strings.Contains(lines[0], "after 2") && !strings.Contains(lines[0], "after 30s") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// A failed write to the database leaves a node in a transient state without a conductor that works on it: seen on Ironic 21.4 and 39.0.
func TestStillness_operationWithoutConductorIsAnError(t *testing.T) {
	t.Parallel()
	const locked = "(sqlite3.OperationalError) database is locked"
	for name, tt := range map[string]struct {
		state, lastError string
		clears           bool // Ironic empties last_error after a minute, as 39.0 does when it looks at the power of the machine
		goal             states.Goal
		after            time.Duration // zero: it waits on
	}{
		"deploying":                     {"deploying", locked, false, states.GoalDeployed, 2 * time.Minute},
		"cleaning":                      {"cleaning", locked, false, states.GoalAvailable, 2 * time.Minute},
		"deleting":                      {"deleting", locked, false, states.GoalUndeployed, 2 * time.Minute},
		"deploying, and Ironic forgets": {"deploying", locked, true, states.GoalDeployed, 2 * time.Minute},
		"verifying without an error":    {"verifying", "", false, states.GoalManageable, 10 * time.Minute},
		"inspecting without an error":   {"inspecting", "", false, states.GoalInspected, 0},
		"waiting for the ramdisk":       {"wait call-back", "an older error", false, states.GoalDeployed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				var log sitetest.Logbook
				client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) { cfg.PollInterval = 10 * time.Second })
				fake.Set("node-000", "provision_state", tt.state)
				fake.Set("node-000", "last_error", tt.lastError)
				if tt.clears {
					time.AfterFunc(time.Minute, func() { fake.Set("node-000", "last_error", nil) })
				}
				start := time.Now()
				_, err := client.Reach(t.Context(), "node-000", tt.goal, time.Hour)
				if failure.Is(err, machine.KindStuck) != (tt.after > 0) || tt.after > 0 && !strings.Contains(err.Error(), tt.lastError) {
					t.Fatalf("the error is %v", err)
				}
				if took := time.Since(start); tt.after > 0 && (took < tt.after || took > tt.after+time.Minute) || tt.after == 0 &&
					took < time.Hour {
					t.Errorf("it took %s", took)
				}
				told := len(log.Lines("is still "+tt.state, "no conductor works on it any more: (sqlite3")) > 0
				if len(log.Lines("is still "+tt.state)) == 0 || told != (tt.lastError == locked) {
					t.Errorf("the log: %q", log.Lines("is still"))
				}
			})
		})
	}
}

// An action does not wait for an operation without a conductor either.
func TestStillness_actionsGiveUpToo(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		fake.Set("node-000", "provision_state", "cleaning")
		fake.Set("node-000", "last_error", "(sqlite3.OperationalError) database is locked")
		m, err := client.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err = m.Clean(t.Context(), ironic.Order{Steps: []ironic.CleanStep{{Interface: "bios", Step: "factory_reset"}}}, false, time.Hour)
		if !failure.Is(err, machine.KindStuck) || time.Since(start) > 3*time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
