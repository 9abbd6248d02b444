package machine_test

import (
	"context"
	"fmt"
	"net/http"
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

// What passes by itself is tried again, three times, and the log says each; nothing else is, and no steps that the user has ordered.
func TestWalk_triesAgainWhatPasses(t *testing.T) {
	t.Parallel()
	const (
		bmcBusy   = "Redfish exception occurred. Error: HTTP GET https://b/redfish/v1 returned code 503. Base.1.0.GeneralError: Wait."
		refused   = "Redfish exception occurred. Error: HTTP POST https://b/redfish/v1 returned code 400. ActionNotSupported"
		restarted = "The %s state can't be resumed by conductor c1. Moving to fail state."
		locked    = "Node n is locked by host c1, please retry after the current operation is completed."
	)
	steps := ironic.Order{Steps: []ironic.CleanStep{{Interface: "bios", Step: "factory_reset"}}}
	for name, tt := range map[string]struct {
		state string
		goal  states.Goal
		words string
		fails int // how often
		tries int // that are logged
		ends  bool
	}{
		"cleaning, no worker":              {"manageable", states.GoalAvailable, noWorker, 1, 1, true},
		"cleaning, the BMC is busy":        {"manageable", states.GoalAvailable, bmcBusy, 3, 3, true},
		"cleaning, and it does not pass":   {"manageable", states.GoalAvailable, bmcBusy, 4, 3, false},
		"cleaning, a restart":              {"manageable", states.GoalAvailable, restarted, 2, 2, true},
		"inspection, locked":               {"manageable", states.GoalInspected, locked, 1, 1, true},
		"verification, the BMC is busy":    {"enroll", states.GoalManageable, bmcBusy, 2, 2, true},
		"deployment, a restart":            {"available", states.GoalDeployed, restarted, 2, 2, true},
		"undeployment, no worker":          {"active", states.GoalUndeployed, noWorker, 1, 1, true},
		"end of a rescue, the BMC is busy": {"rescue", states.GoalUnrescued, bmcBusy, 1, 1, true},
		"cleaning, the BMC refuses":        {"manageable", states.GoalAvailable, refused, 1, 0, false},
		"ordered steps":                    {"manageable", states.GoalConfigured, noWorker, 1, 0, false},
		"a service":                        {"active", states.GoalServiced, noWorker, 1, 0, false},
		"cleaning, a disk":                 {"manageable", states.GoalAvailable, brokenDisk, 1, 0, false},
		"cleaning, a text nobody knows":    {"manageable", states.GoalAvailable, "It broke.", 1, 0, false},
		"deployment, no image":             {"available", states.GoalDeployed, noImage, 1, 0, false},
		"deployment, the ramdisk is late":  {"available", states.GoalDeployed, neverCalled, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = time.Minute
				id, left := fake.Nodes()[0].UUID, tt.fails
				fake.Set(id, "provision_state", tt.state)
				instance := ""
				if tt.state == "active" || tt.state == "rescue" || tt.state == "available" {
					instance = ironic.NewUUID()
					fake.Set(id, "instance_uuid", instance)
				}
				fake.Fail = func(n fakeironic.Node, _ string) string {
					if left--; left < 0 {
						return ""
					}
					return strings.ReplaceAll(tt.words, "%s", n.ProvisionState)
				}
				log := &sitetest.Logbook{}
				client := sitetest.NewClient(fake, log.Record)
				order := ironic.Order{}
				if tt.goal == states.GoalConfigured || tt.goal == states.GoalServiced {
					order = steps
				}
				node, err := client.Of(t.Context(), id, func(m *machine.Machine) error {
					return m.Walk(t.Context(), tt.goal, instance, order, time.Hour)
				})
				if (err == nil) != tt.ends {
					t.Fatalf("in state %s: %v", node.ProvisionState, err)
				}
				if said := log.Lines("passes by itself"); len(said) != tt.tries {
					t.Errorf("%d tries, want %d: %q", len(said), tt.tries, said)
				}
				more := fmt.Sprintf("also when tried %d more times", tt.tries)
				if _, detail := failure.Explain("x", orNothing(err)); !tt.ends && strings.Contains(detail, more) != (tt.tries > 0) {
					t.Error(detail)
				}
			})
		})
	}
}

// orNothing returns an error, or one that says nothing.
func orNothing(err error) error {
	if err == nil {
		return fmt.Errorf("nothing")
	}
	return err
}

// A failure stays one though the user stops the run in the pause before it is tried again; a try that was not made is not counted.
func TestWalk_stoppedBeforeItTriesAgain(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Second)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		fake.Fail = func(fakeironic.Node, string) string {
			time.AfterFunc(12*time.Second, stop)
			return noWorker
		}
		id := fake.Nodes()[0].UUID
		_, err := sitetest.NewClient(fake).Reach(ctx, id, states.GoalAvailable, time.Hour)
		_, detail := failure.Explain("clean", orNothing(err))
		if ctx.Err() == nil || !failure.Is(err, failure.KindFailed) || failure.IsInterrupted(err) ||
			!strings.Contains(detail, noWorker) || strings.Contains(detail, "more times") {
			t.Errorf("%v: %s", err, detail)
		}
	})
}

// A try goes on though Ironic does not answer for a moment.
func TestWalk_triesAgainThoughIronicDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Second)
		failed := time.Time{}
		fake.Fail = func(fakeironic.Node, string) string {
			if failed.IsZero() {
				failed = time.Now()
				return noWorker
			}
			return ""
		}
		client := sitetest.NewClient(fake)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if since := time.Since(failed); r.Method == "GET" && !failed.IsZero() && since > 14*time.Second && since < 5*time.Minute {
				return &fakeironic.Rejection{Status: http.StatusServiceUnavailable}
			}
			return nil
		}
		if node, err := client.Reach(t.Context(), fake.Nodes()[0].UUID, states.GoalAvailable, time.Hour); err != nil {
			t.Errorf("in state %s: %v", node.ProvisionState, err)
		}
	})
}
