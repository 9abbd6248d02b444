package operate_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// attach is an operation that is noted, and whose note does not show whether the operation has reached its goal.
var attach = operate.Media(ironic.DeviceCDROM, "https://images.example.com/new.iso")

// drive returns a fake with a manageable machine that has a virtual drive.
func drive(t *testing.T) *fakeironic.Server {
	t.Helper()
	fake := &fakeironic.Server{}
	sitetest.AddBootable(t, fake, "node-000", sitetest.FromMedia)
	time.Sleep(time.Second)
	fake.Set("node-000", "provision_state", "manageable")
	return fake
}

// rejectPatches returns a Reject that answers the PATCH requests from the given one to the given one.
func rejectPatches(from, to int, answer *fakeironic.Rejection) func(*http.Request) *fakeironic.Rejection {
	patches := 0
	return func(r *http.Request) *fakeironic.Rejection {
		if r.Method != http.MethodPatch {
			return nil
		}
		if patches++; patches < from || patches > to {
			return nil
		}
		return answer
	}
}

// noteOf returns the note of an operation on the only machine of a fake; nil if there is none.
func noteOf(t *testing.T, fake *fakeironic.Server) *notes.Operation {
	t.Helper()
	return notes.OperationOf(nodeOf(t, fake))
}

// A conductor has locked the node when the operation has ended, as is usual after a request to a BMC.
func TestNote_goesWhenTheLockEnds(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := drive(t)
		fake.Reject = rejectPatches(2, 2+7, ironictest.Fault(http.StatusConflict,
			"Node node-000 is locked by host c1, please retry after the current operation is completed."))
		got := do(t.Context(), t, sitetest.NewClient(fake).Site, attach, "node-000")
		if got.Outcome != operate.Done || got.Note != "" || noteOf(t, fake) != nil {
			t.Errorf("%s: %v; note %q; on the node: %v", got.Outcome, got.Err, got.Note, noteOf(t, fake))
		}
	})
}

func TestNote_tellsThatItStays(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := drive(t)
		fake.Reject = rejectPatches(2, 1000, ironictest.Fault(http.StatusConflict,
			"Node node-000 is locked by host c1, please retry after the current operation is completed."))
		got := do(t.Context(), t, sitetest.NewClient(fake).Site, attach, "node-000")
		if got.Outcome != operate.Done || !strings.Contains(got.Note, "is locked by host c1") ||
			!strings.Contains(got.Note, "--extra terraform_metal_operation") {
			t.Errorf("%s: %v; note %q", got.Outcome, got.Err, got.Note)
		}
	})
}

// Ironic refuses the only request, so that the operation has not begun.
func TestNote_goesWithARefusedRequest(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := drive(t)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodDelete {
				return ironictest.Fault(http.StatusBadRequest, "Driver redfish does not support detach_virtual_media.")
			}
			return nil
		}
		if got := do(t.Context(), t, sitetest.NewClient(fake).Site, attach, "node-000"); got.Outcome != operate.Failed ||
			noteOf(t, fake) != nil {
			t.Errorf("%s: %v; on the node: %v", got.Outcome, got.Err, noteOf(t, fake))
		}
	})
}

// Nobody is at work after a failure that the command has reported. The note tells so until the command is run again.
func TestNote_tellsAFailure(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := drive(t)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/vmedia") {
				return ironictest.Fault(http.StatusBadRequest, "The image has no size.")
			}
			return nil
		}
		site := sitetest.NewClient(fake).Site
		if got := do(t.Context(), t, site, attach, "node-000"); got.Outcome != operate.Failed || noteOf(t, fake) == nil {
			t.Fatalf("%s: %v; on the node: %v", got.Outcome, got.Err, noteOf(t, fake))
		}
		nodes := []ironic.Node{*nodeOf(t, fake)}
		seen := operate.Look(t.Context(), site, nodes)
		task := operate.Tasks(operate.Power(machine.ActionOn), nodes, seen)[0]
		if task.Told.AtWork != "" || strings.Contains(task.Left, "at work") || !strings.Contains(task.Left, "failed at") {
			t.Errorf("the next command says %q, and that %q is at work", task.Left, task.Told.AtWork)
		}
		fake.Reject = nil
		if got := do(t.Context(), t, sitetest.NewClient(fake).Site, attach, "node-000"); got.Outcome != operate.Done ||
			noteOf(t, fake) != nil {
			t.Errorf("%s: %v; on the node: %v", got.Outcome, got.Err, noteOf(t, fake))
		}
	})
}

// A role may have the right to an operation, and not to extra.
func TestNote_needsNoRight(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op   operate.Operation
		done func(fake *fakeironic.Server) bool
	}{
		"virtual-media attach": {attach, func(fake *fakeironic.Server) bool {
			return fake.Drive("node-000") == "https://images.example.com/new.iso"
		}},
		"power reboot --soft": {operate.Power(machine.ActionSoftReboot), func(fake *fakeironic.Server) bool {
			return fake.PowerCycles("node-000") > 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := drive(t)
				fake.Set("node-000", "power_state", "power on")
				fake.Reject = rejectPatches(1, 1000, ironictest.Fault(http.StatusForbidden,
					"Access was denied to the following resource: baremetal:node:update_extra"))
				got := do(t.Context(), t, sitetest.NewClient(fake).Site, tt.op, "node-000")
				if got.Outcome != operate.Done || !strings.Contains(got.Note, "baremetal:node:update_extra") || !tt.done(fake) {
					t.Errorf("%s: %v; note %q; done: %t", got.Outcome, got.Err, got.Note, tt.done(fake))
				}
			})
		})
	}
}

// A killed inspection was done, and its note would count for a day: the user reads how it is removed.
func TestNote_ofWhatWasDoneIsNamedIfItStays(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		note := map[string]any{
			"command": "inspect", "by": "eve@desk", "goal": "available", "since": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
		}
		fake.Set("node-000", "extra", map[string]any{notes.KeyOperation: map[string]any{ironic.NewUUID(): note}})
		fake.Set("node-000", "inspection_finished_at", time.Now().Add(-time.Minute).UTC().Format(time.RFC3339))
		fake.Reject = rejectPatches(1, 1000, ironictest.Fault(http.StatusForbidden,
			"Access was denied to the following resource: baremetal:node:update_extra"))
		got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Inspect(nil), "node-000")
		if got.Outcome != operate.Done || !strings.Contains(got.Note, "had inspected it already") ||
			!strings.Contains(got.Note, "--extra terraform_metal_operation") || len(ironictest.Verbs(t, fake, "node-000")) > 0 {
			t.Errorf("%s: %v; note %q", got.Outcome, got.Err, got.Note)
		}
	})
}

// What the guard refuses is refused before anything is written.
func TestGuard_refusesBeforeTheNote(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op    operate.Operation
		state string
	}{
		"virtual-media attach": {attach, "manageable"},
		"power reboot --soft":  {operate.Power(machine.ActionSoftReboot), "manageable"},
		"power off":            {operate.Power(machine.ActionOff), "manageable"},
		"inspect":              {operate.Inspect(nil), "available"},
		"qualify":              {operate.Qualify(nil, burnIn), "available"},
		"abort":                {operate.Abort(), "clean wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := drive(t)
				fake.Set("node-000", "power_state", "power on")
				fake.Set("node-000", "provision_state", tt.state)
				fake.Set("node-000", "driver_info", map[string]any{
					"server_hardware_uri": "/rest/server-hardware/1",
					"dynamic_allocation":  true,
				})
				fake.ResetRequests()
				site := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Guard = sharing.NotConfigured{} }).Site
				got := do(t.Context(), t, site, tt.op, "node-000")
				if got.Outcome != operate.Refused || got.Err == nil || !strings.Contains(got.Err.Error(), "no OneView is configured") {
					t.Errorf("%s: %v, want refused by the guard", got.Outcome, got.Err)
				}
				for _, r := range fake.Requests() {
					if r.Method != http.MethodGet {
						t.Errorf("%s %s was sent", r.Method, r.Path)
					}
				}
			})
		})
	}
}

// Another client begins to deploy the machine. If nothing was sent before, the operation is refused; it has failed if it was half done.
func TestRun_tellsRefusedFromHalfDone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		action machine.PowerAction
		want   operate.Outcome
	}{"nothing sent": {machine.ActionReboot, operate.Refused}, "shut down before": {machine.ActionSoftReboot, operate.Failed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = time.Minute
				fake.Set("node-000", "power_state", "power on")
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method != http.MethodPut || tt.want == operate.Failed &&
						ironictest.NodeOf(t, fake, "node-000").PowerState == "power on" {
						return nil
					}
					fake.Set("node-000", "provision_state", "wait call-back")
					return ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host c1, please retry after the current "+
						"operation is completed.")
				}
				got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Power(tt.action), "node-000")
				if got.Outcome != tt.want || got.Err == nil || !strings.Contains(got.Err.Error(), `it is in state "wait call-back"`) {
					t.Errorf("%s: %v, want %s", got.Outcome, got.Err, tt.want)
				}
			})
		})
	}
}

// A conductor has locked the node for longer than the time-out, or for less.
func TestRecord_keepsTheTimeout(t *testing.T) {
	t.Parallel()
	unretired := func(n *ironic.Node) bool { return !n.Retired }
	for name, tt := range map[string]struct {
		op   operate.Operation
		done func(n *ironic.Node) bool
	}{
		"maintenance on": {fan, func(n *ironic.Node) bool { return n.Maintenance }},
		"retire":         {operate.Retire("new"), func(n *ironic.Node) bool { return n.RetiredReason == "new" }},
		"unretire":       {operate.Unretire(), unretired},
	} {
		for timeout, want := range map[time.Duration]operate.Outcome{3 * time.Minute: operate.Failed, 40 * time.Minute: operate.Done} {
			t.Run(name+", "+timeout.String(), func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					const locked = 25 * time.Minute
					fake := ironictest.Fleet(1)
					fake.Set("node-000", "provision_state", "manageable")
					fake.Set("node-000", "retired", true)
					began := time.Now()
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if r.Method == http.MethodGet || time.Since(began) > locked {
							return nil
						}
						return ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host c1, please retry after the current "+
							"operation is completed.")
					}
					site := sitetest.NewClient(fake).Site
					runner := operate.Runner{Site: site, Parallel: 1, Timeout: timeout}
					got := runner.Run(t.Context(), tt.op, operate.Tasks(tt.op, []ironic.Node{*nodeOf(t, fake)},
						operate.Seen{Now: site.Ironic.ServerNow()}))[0]
					if got.Outcome != want || tt.done(nodeOf(t, fake)) != (want == operate.Done) {
						t.Errorf("%s after %s: %v, want %s", got.Outcome, got.Took, got.Err, want)
					}
					if want == operate.Failed && got.Took > timeout+time.Minute {
						t.Errorf("it took %s", got.Took)
					}
				})
			})
		}
	}
}

// A command is stopped by Ctrl-C after each of its requests. The next command names what it has left half done, also if Ironic does that
// only later.
func TestNote_namesWhatIsStopped(t *testing.T) {
	t.Parallel()
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for stopAt, more := 1, true; more; stopAt++ {
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := drive(t)
					if err := sitetest.NewClient(fake).Ironic.AttachMedia(t.Context(), "node-000", ironic.DeviceCDROM,
						"https://images.example.com/old.iso"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					fake.StepTime = 5 * time.Second // a lock ends before the command has given up
					for field, value := range life.prepare {
						fake.Set("node-000", field, value)
					}
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					requests := 0
					site := sitetest.NewClient(fake, func(c *machine.Config) {
						c.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
							answer, err := fake.RoundTrip(r)
							if requests++; requests == stopAt+1 { // the first one is before the command
								stop()
							}
							return answer, err
						})
					}).Site
					result := do(ctx, t, site, life.op(), "node-000")
					more = result.Outcome != operate.Done
					time.Sleep(5 * time.Minute)
					left := ironictest.NodeOf(t, fake, "node-000")
					if life.begun(fake, left) && notes.UnfinishedOperation(nodeOf(t, fake), time.Now()) == nil {
						t.Errorf("stopped at request %d: %s: nobody names that the machine is %v, %v. %v", stopAt, result.Outcome,
							left.Raw["provision_state"], left.Raw["power_state"], result.Err)
					}
				})
			}
		})
	}
}
