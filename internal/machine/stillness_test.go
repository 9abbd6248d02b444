package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
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
		if len(lines) < 6 || len(lines) > 8 || !strings.Contains(lines[0], "after 2") && !strings.Contains(lines[0], "after 30s") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// A database that was locked at the wrong moment leaves a node in a transient state without a conductor that works on it: seen on Ironic 21.4.
func TestStillness_operationWithoutConductorIsAnError(t *testing.T) {
	t.Parallel()
	for state, tt := range map[string]struct {
		goal  states.Goal
		error string // last_error
		stuck bool
	}{
		"deploying":      {states.GoalDeployed, "(sqlite3.OperationalError) database is locked", true},
		"cleaning":       {states.GoalAvailable, "(sqlite3.OperationalError) database is locked", true},
		"deleting":       {states.GoalUndeployed, "(sqlite3.OperationalError) database is locked", true},
		"wait call-back": {states.GoalDeployed, "an older error", false},
		"verifying":      {states.GoalManageable, "", false},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				var log sitetest.Logbook
				client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) { cfg.PollInterval = 10 * time.Second })
				fake.Set("node-000", "provision_state", state)
				fake.Set("node-000", "last_error", tt.error)
				start := time.Now()
				_, err := client.Reach(t.Context(), "node-000", tt.goal, time.Hour)
				if failure.Is(err, machine.KindStuck) != tt.stuck {
					t.Fatalf("the error is %v", err)
				}
				if took := time.Since(start); tt.stuck != (took < 3*time.Minute) {
					t.Errorf("it took %s", took)
				}
				if len(log.Lines("is still "+state)) == 0 || tt.stuck != (len(log.Lines("is still "+state, "no conductor works on it any more: (sqlite3")) > 0) {
					t.Errorf("the log: %q", log.Lines("is still"))
				}
			})
		})
	}
}
