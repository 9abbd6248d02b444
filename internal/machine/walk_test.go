package machine_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestReach_newNodeBecomesAvailable(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: 3 * time.Hour}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		start := time.Now()
		node, err := client.Reach(t.Context(), id, states.GoalAvailable, 24*time.Hour)
		if err != nil || node.ProvisionState != "available" {
			t.Fatalf("Reach = %+v, %v", node, err)
		}
		ironictest.WantNear(t, "verifying and cleaning", time.Since(start), 6*time.Hour)
		if got, want := ironictest.Verbs(t, fake, id), []string{"manage", "provide"}; !slices.Equal(got, want) {
			t.Errorf("verbs = %v, want %v", got, want)
		}
	})
}

func TestReach_returnsWholeNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		node, err := client.Reach(t.Context(), id, states.GoalManageable, 2*time.Hour)
		if err != nil || node.Driver != "fake-hardware" || node.ResourceClass != "baremetal" {
			t.Errorf("Reach = %+v, %v: want what polling does not ask for, too", node, err)
		}
	})
}

func TestReach_needsNoVerb(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := sitetest.NewClient(fake)
	id := ironictest.NodeOf(t, fake, "node-000").UUID
	if _, err := client.Reach(t.Context(), id, states.GoalAvailable, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := ironictest.Verbs(t, fake, id); got != nil {
		t.Errorf("verbs = %v, want none", got)
	}
}

func TestReach_inspection(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = time.Hour
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		node, err := client.Reach(t.Context(), id, states.GoalInspected, 4*time.Hour)
		if err != nil || node.ProvisionState != "manageable" {
			t.Fatalf("Reach = %+v, %v", node, err)
		}
		if got, want := ironictest.Verbs(t, fake, id), []string{"manage", "inspect"}; !slices.Equal(got, want) {
			t.Errorf("verbs = %v, want %v", got, want)
		}
		if machine.InspectedAt(node).IsZero() {
			t.Error("the node was not inspected")
		}
	})
}

func TestReach_silentBMC(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Minute, UnlockDelay: 30 * time.Second}
		fake.Fail = func(fakeironic.Node, string) string {
			return "Failed to get power state: no route to host\nTraceback: ..."
		}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		node, err := client.Reach(t.Context(), id, states.GoalAvailable, time.Hour)
		if !failure.Is(err, failure.KindFailed) || failure.As(err, failure.KindFailed).Node.ProvisionState != "enroll" {
			t.Fatalf("Reach = %v, want an error of KindFailed in enroll", err)
		}
		if !strings.HasSuffix(err.Error(), "no route to host Traceback: ...") {
			t.Errorf("error %q: want all lines of last_error, which is written only when the lock is released", err)
		}
		if node == nil || node.LastError == "" {
			t.Errorf("node = %+v, want the node as last seen", node)
		}
		if got, want := ironictest.Verbs(t, fake, id), []string{"manage"}; !slices.Equal(got, want) {
			t.Errorf("verbs = %v, want %v", got, want)
		}
	})
}

func TestReach_failedCleaning(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Minute}
		fake.Fail = func(node fakeironic.Node, _ string) string {
			if node.ProvisionState == "cleaning" {
				return "disk is broken"
			}
			return ""
		}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		_, err := client.Reach(t.Context(), id, states.GoalAvailable, time.Hour)
		if !failure.Is(err, failure.KindFailed) || failure.As(err, failure.KindFailed).Node.ProvisionState != "clean failed" {
			t.Fatalf("Reach = %v, want an error of KindFailed in clean failed", err)
		}
		if got, want := ironictest.Verbs(t, fake, id), []string{"manage", "provide"}; !slices.Equal(got, want) {
			t.Errorf("verbs = %v, want %v: nothing is repaired behind a failure of our own", got, want)
		}
		_, err = client.Reach(t.Context(), id, states.GoalAvailable, time.Hour)
		if got, want := ironictest.Verbs(t, fake, id), []string{"manage", "provide", "manage", "provide"}; err == nil ||
			!slices.Equal(got, want) {
			t.Errorf("the next walk sent %v (%v), want one repair and one more failure: %v", got, err, want)
		}
	})
}

func TestReach_endsOwnMaintenanceOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault any
		ended bool
	}{
		"after a clean failure": {"clean failure", true},
		"after a power failure": {"power failure", false},
		"set by an operator":    {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "provision_state", "clean failed")
			fake.Set("node-000", "maintenance", true)
			fake.Set("node-000", "fault", tc.fault)
			client := sitetest.NewClient(fake)
			if _, err := client.Reach(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, states.GoalManageable,
				time.Hour); err != nil {
				t.Fatal(err)
			}
			if node := ironictest.NodeOf(t, fake, "node-000"); node.ProvisionState != "manageable" || node.Maintenance == tc.ended {
				t.Errorf("the node is %s, maintenance %t", node.ProvisionState, node.Maintenance)
			}
		})
	}
}

func TestReach_timeOut(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: 10 * time.Hour}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		start := time.Now()
		node, err := client.Reach(t.Context(), id, states.GoalAvailable, 45*time.Minute)
		if !failure.Is(err, failure.KindTimeout) || !strings.Contains(err.Error(), "after 45m0s") ||
			failure.As(err, failure.KindTimeout).Node.ProvisionState != "verifying" {
			t.Fatalf("Reach = %v, want an error of KindTimeout after 45m in verifying", err)
		}
		if node == nil || node.Driver == "" {
			t.Errorf("node = %+v, want the whole node", node)
		}
		ironictest.WantNear(t, "timing out", time.Since(start), 45*time.Minute)
	})
}

// A time-out before the first poll after a verb tells the state that the verb has led to, and does not wait until Ironic unlocks the node.
func TestReach_timeOutBeforeThePoll(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, 10*time.Hour)
		start := time.Now()
		_, err := sitetest.Run(fake, sitetest.UpTo(1)).Reach(t.Context(), fake.Nodes()[0].UUID, states.GoalAvailable, time.Millisecond)
		if !failure.Is(err, failure.KindTimeout) || failure.As(err, failure.KindTimeout).Node.ProvisionState != "cleaning" {
			t.Fatalf("Reach = %v, want a time-out in cleaning", err)
		}
		ironictest.WantNear(t, "timing out", time.Since(start), 0)
	})
}

func TestReach_interrupted(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: 10 * time.Hour}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour+time.Second, cancel)
		start := time.Now()
		node, err := client.Reach(ctx, id, states.GoalAvailable, 45*time.Hour)
		if !api.IsInterrupted(err) || node == nil || node.ProvisionState != "verifying" {
			t.Errorf("Reach = %+v, %v, want the node and an interruption", node, err)
		}
		if took := time.Since(start); took != time.Hour+time.Second {
			t.Errorf("it returned after %s", took)
		}
	})
}

func TestReach_interruptedWhileRetrying(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		if _, err := client.Ironic.Node(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		fake.Reject = func(*http.Request) *fakeironic.Rejection { return &fakeironic.Rejection{Status: http.StatusBadGateway} }
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := client.Ironic.Node(ctx, id); !api.IsInterrupted(err) {
			t.Errorf("Node = %v, want an interruption", err)
		}
	})
}

func TestReach_deletedNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: 10 * time.Hour}
		client := sitetest.NewClient(fake)
		id := sitetest.Enrolled(t, client, "web")
		time.AfterFunc(time.Hour, func() {
			fake.Set(id, "provision_state", "enroll") // and with that it is not locked any more
			ironictest.AsOther(t, fake, http.MethodDelete, "nodes/"+id, nil)
		})
		if _, err := client.Reach(t.Context(), id, states.GoalAvailable, 45*time.Hour); !failure.IsUnwatched(err) || api.IsNotFound(err) {
			t.Errorf("Reach = %v, want that it can no longer be watched: Ironic hides nodes by the same answer", err)
		}
	})
}

func TestReach_foreignStates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state, instance string
		goal            states.Goal
		says            string
	}{
		{"active", "", states.GoalAvailable, "Destroy its metal_deployment"},
		{"deploying", "", states.GoalManageable, "Destroy its metal_deployment"},
		{"deploy failed", "", states.GoalInspected, "Destroy its metal_deployment"},
		{"rescue", "", states.GoalAvailable, "Unrescue it first"},
		{"clean hold", "", states.GoalAvailable, "Unhold or abort it"},
		{"error", "", states.GoalAvailable, "Undeploy it again"},
		{"manageable", "", states.GoalDeployed, "Make it available first"},
		{"available", "6f2f6c4e-0000-4000-8000-000000000001", states.GoalManageable, "reserved by 6f2f6c4e-0000-4000-8000-000000000001"},
	} {
		t.Run(tc.state+" to "+string(tc.goal), func(t *testing.T) {
			t.Parallel()
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "provision_state", tc.state)
			if tc.instance != "" {
				fake.Set("node-000", "instance_uuid", tc.instance)
			}
			client := sitetest.NewClient(fake)
			node, err := client.Reach(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, tc.goal, time.Hour)
			if !failure.Is(err, machine.KindRefused) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Reach = %v, want a refusal with %q", err, tc.says)
			}
			if node == nil {
				t.Error("no node was returned")
			}
			if ironictest.Count(fake, http.MethodPut, "/") != 0 {
				t.Errorf("something was sent: %v", fake.Requests())
			}
		})
	}
}

// Ironic takes verbs that clean or boot a reserved machine. Only one that an allocation has taken from the pool returns there.
func TestReach_leavesReservedMachinesAlone(t *testing.T) {
	t.Parallel()
	for _, goal := range []states.Goal{states.GoalAvailable, states.GoalInspected} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{}
			site := sitetest.NewClient(fake)
			id := sitetest.Enrolled(t, site, "rack1-01")
			ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/provision", map[string]any{"target": "manage"})
			time.Sleep(time.Minute)
			ironictest.AsOther(t, fake, http.MethodPatch, "nodes/"+id,
				[]map[string]any{{"op": "add", "path": "/instance_uuid", "value": ironic.NewUUID()}})
			on, err := site.Machine(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if on.Node().ProvisionState != "manageable" {
				t.Fatalf("the node is %s", on.Node().ProvisionState)
			}
			fake.ResetRequests()
			if err := on.Reach(t.Context(), goal, time.Hour); !failure.Is(err, machine.KindRefused) {
				t.Errorf("%s: %v", goal, err)
			}
			if sent := ironictest.Verbs(t, fake, id); len(sent) > 0 {
				t.Errorf("%s: sent %v", goal, sent)
			}
		})
	}
}

// What has locked the node may be the end of this instance and the deployment of another.
func TestReach_looksAtTheInstanceAfterALock(t *testing.T) {
	t.Parallel()
	for goal, verb := range map[states.Goal]string{
		states.GoalUndeployed: "deleted", states.GoalRebuilt: "rebuild", states.GoalServiced: "service", states.GoalRescued: "rescue",
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				id, ours, theirs := fake.Nodes()[0].UUID, ironic.NewUUID(), ironic.NewUUID()
				fake.Set(id, "provision_state", "active")
				fake.Set(id, "instance_uuid", ours)
				sent := 0
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/states/provision") {
						return nil
					}
					if sent++; sent > 1 {
						return nil
					}
					fake.Set(id, "instance_uuid", theirs)
					return ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host conductor-1, please retry after the "+
						"current operation is completed.")
				}
				m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				err = m.Walk(t.Context(), goal, ours, ironic.Order{}, time.Hour)
				if goal != states.GoalUndeployed && err == nil {
					t.Error("it did not refuse the machine of another instance")
				}
				if sent != 1 {
					t.Errorf("%q was sent %d times, want once: %v", verb, sent, err)
				}
			})
		})
	}
}
