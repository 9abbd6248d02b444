package provision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

func TestStillness_isToldMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		var log logbook
		client := newClient(fake, log.record, func(cfg *provision.Config) { cfg.PollInterval = 10 * time.Second })
		id := enrolled(t, client, "rack1-01")
		if _, err := client.Reach(t.Context(), id, provision.GoalManageable, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		lines := log.lines("is still verifying after", "conductor ", "works on it")
		if len(lines) < 6 || len(lines) > 8 || !strings.Contains(lines[0], "after 2") && !strings.Contains(lines[0], "after 30s") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// A database that was locked at the wrong moment leaves a node in a transient state without a conductor that works on it: seen on Ironic 21.4.
func TestStillness_operationWithoutConductorIsAnError(t *testing.T) {
	t.Parallel()
	for state, tt := range map[string]struct {
		goal  provision.Goal
		error string // last_error
		stuck bool
	}{
		"deploying":      {provision.GoalDeployed, "(sqlite3.OperationalError) database is locked", true},
		"cleaning":       {provision.GoalAvailable, "(sqlite3.OperationalError) database is locked", true},
		"deleting":       {provision.GoalUndeployed, "(sqlite3.OperationalError) database is locked", true},
		"wait call-back": {provision.GoalDeployed, "an older error", false},
		"verifying":      {provision.GoalManageable, "", false},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := fleet(1)
				var log logbook
				client := newClient(fake, log.record, func(cfg *provision.Config) { cfg.PollInterval = 10 * time.Second })
				fake.Set("node-000", "provision_state", state)
				fake.Set("node-000", "last_error", tt.error)
				start := time.Now()
				_, err := client.Reach(t.Context(), "node-000", tt.goal, time.Hour)
				if provision.Is(err, provision.KindStuck) != tt.stuck {
					t.Fatalf("the error is %v", err)
				}
				if took := time.Since(start); tt.stuck != (took < 3*time.Minute) {
					t.Errorf("it took %s", took)
				}
				if len(log.lines("is still "+state)) == 0 || tt.stuck != (len(log.lines("is still "+state, "no conductor works on it any more: (sqlite3")) > 0) {
					t.Errorf("the log: %q", log.lines("is still"))
				}
			})
		})
	}
}
