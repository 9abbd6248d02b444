package deploy_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// webAllocation is an allocation with everything that must survive.
func webAllocation() ironic.AllocationSpec {
	return ironic.AllocationSpec{
		UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal", Traits: []string{"CUSTOM_NVME"},
		Extra: map[string]any{"team": "web"},
	}
}

// running is a fake with two nodes. One of them is allocated and deployed; running returns its UUID. Each step of an operation
// takes the given time.
func running(t *testing.T, spec ironic.AllocationSpec, step time.Duration) (*fakeironic.Server, *sitetest.Client, string) {
	t.Helper()
	fake := ironictest.Fleet(2)
	client := sitetest.NewClient(fake)
	a, err := sitetest.Allocate(t.Context(), client, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Deploy(t.Context(), a.NodeUUID, sitetest.Debian("12"), sitetest.OnceIn4h(spec.UUID)); err != nil {
		t.Fatal(err)
	}
	fake.StepTime = step
	fake.ResetRequests()
	return fake, client, a.NodeUUID
}

// wantRestored fails the test unless a node is free of what ran on it, and reserved by an allocation as before.
func wantRestored(t *testing.T, fake *fakeironic.Server, client *sitetest.Client, id string, spec ironic.AllocationSpec) {
	t.Helper()
	a, err := client.Ironic.Allocation(t.Context(), spec.UUID)
	if err != nil {
		t.Errorf("the allocation: %v", err)
		return
	}
	if a.State != ironic.AllocationActive || a.NodeUUID != id || a.Name != spec.Name || a.ResourceClass != spec.ResourceClass ||
		!slices.Equal(a.Traits, spec.Traits) || !ironic.SameJSON(sitetest.FirstExtra(a), spec.Extra) {
		t.Errorf("the allocation came back as %+v", a)
	}
	node := ironictest.NodeOf(t, fake, id)
	if node.ProvisionState != "available" || node.InstanceUUID != spec.UUID {
		t.Errorf("the node is %s and reserved by %s", node.ProvisionState, node.InstanceUUID)
	}
	for _, field := range []string{"extra", "instance_info"} {
		for key := range node.Raw[field].(map[string]any) {
			if strings.HasPrefix(key, "terraform_metal") {
				t.Errorf("%s.%s is left behind", field, key)
			}
		}
	}
}

func TestUndeploy_keepsAllocation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour)
		if err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		wantRestored(t, fake, client, id, spec)
	})
}

// Also what says that the machine was not ready: no later run checks it.
func TestUndeploy_deletesReservation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Reserved(t, time.Hour)
		client := sitetest.NewClient(fake)
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance)); err != nil {
			t.Fatal(err)
		}
		fake.Set(id, "extra", map[string]any{notes.KeyReady: map[string]any{"failed": true}})
		done, err := client.Undeploy(t.Context(), id, instance, "", 5*time.Hour)
		if err != nil || done.Lost != "" || done.Node.InstanceUUID != "" || done.Node.ProvisionState != "available" {
			t.Errorf("%+v, %v", done, err)
		}
		if note := done.Node.Extra[notes.KeyReady]; note != nil {
			t.Errorf("left on the node: %v", note)
		}
	})
}

func TestUndeploy_continuesInterruptedRun(t *testing.T) {
	t.Parallel()
	for name, interruption := range map[string]time.Duration{
		"while the instance is still there": 10 * time.Minute, "while the allocation is gone": 50 * time.Minute,
		"while cleaning": 90 * time.Minute,
	} {
		for how, again := range map[string]func(ctx context.Context, client *sitetest.Client, id string, spec ironic.AllocationSpec) error{
			"by undeploying again": func(ctx context.Context, client *sitetest.Client, id string, spec ironic.AllocationSpec) error {
				done, err := client.Undeploy(ctx, id, spec.UUID, spec.UUID, 5*time.Hour)
				if err == nil && done.Lost != "" {
					err = errors.New(done.Lost)
				}
				return err
			},
			"by deploying": func(ctx context.Context, client *sitetest.Client, id string, spec ironic.AllocationSpec) error {
				_, _, err := client.Deploy(ctx, id, sitetest.Debian("13"), sitetest.OnceIn4h(spec.UUID))
				return err
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					spec := webAllocation()
					fake, client, id := running(t, spec, time.Hour)
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(interruption, cancel)
					done, err := client.Undeploy(ctx, id, spec.UUID, spec.UUID, 5*time.Hour)
					if !api.IsInterrupted(err) || done.Node == nil {
						t.Fatalf("%+v, %v, want an interruption with the node", done, err)
					}
					node, err := client.Ironic.Node(t.Context(), id)
					if err != nil || deploy.LossReason(node, spec.UUID, spec.UUID) != "" {
						t.Errorf("meanwhile the deployment is lost: %v", err)
					}
					if err := again(t.Context(), sitetest.NewClient(fake), id, spec); err != nil {
						t.Fatal(err)
					}
					if how == "by deploying" {
						node, err := client.Ironic.Node(t.Context(), id)
						if err != nil || node.ProvisionState != "active" || node.InstanceUUID != spec.UUID ||
							!sitetest.Debian("13").DeployedWith(node) {
							t.Errorf("%+v, %v", node, err)
						}
						return
					}
					wantRestored(t, fake, client, id, spec)
				})
			})
		}
	}
}

func TestUndeploy_whileDeploying(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"while deploying": 10 * time.Minute, "while it boots": 90 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				fake.Set("node-001", "deploy_interface", "direct")
				client, spec := sitetest.NewClient(fake), webAllocation()
				a, err := sitetest.Allocate(t.Context(), client, spec)
				if err != nil {
					t.Fatal(err)
				}
				fake.StepTime = time.Hour
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(after, cancel)
				if _, _, err := client.Deploy(ctx, a.NodeUUID, sitetest.Debian("12"),
					sitetest.OnceIn4h(spec.UUID)); !api.IsInterrupted(err) {
					t.Fatal(err)
				}
				if done, err := client.Undeploy(t.Context(), a.NodeUUID, spec.UUID, spec.UUID, 9*time.Hour); err != nil || done.Lost != "" {
					t.Fatalf("%+v, %v", done, err)
				}
				wantRestored(t, fake, client, a.NodeUUID, spec)
			})
		})
	}
}

func TestUndeploy_failedCleaningIsRepeated(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		broken := true
		fake.Fail = func(node fakeironic.Node, _ string) string {
			if broken && node.ProvisionState == "cleaning" {
				return "disk is broken"
			}
			return ""
		}
		done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour)
		if !failure.Is(err, failure.KindFailed) || done.Node.ProvisionState != "clean failed" {
			t.Fatalf("%+v, %v, want a failure in clean failed", done, err)
		}
		if _, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); !failure.Is(err, failure.KindFailed) {
			t.Fatalf("still broken, and yet: %v", err)
		}
		broken = false
		if done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		wantRestored(t, fake, client, id, spec)
		if last := fake.Walk(id); !slices.Contains(last[len(last)-3:], "cleaning") {
			t.Errorf("it was not cleaned again: %v", last)
		}
	})
}

// A run is killed when it has made a node manageable whose cleaning had failed, and before it cleans the node again.
func TestUndeploy_killedBeforeCleaningIsRepeated(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		broken := true
		fake.Fail = func(node fakeironic.Node, _ string) string {
			if broken && node.ProvisionState == "cleaning" {
				broken = false
				return "disk is broken"
			}
			return ""
		}
		if _, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err == nil {
			t.Fatal("cleaning did not fail")
		}
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/provision", map[string]any{"target": "manage"})
		time.Sleep(5 * time.Minute)
		if done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		wantRestored(t, fake, client, id, spec)
		if last := fake.Walk(id); !slices.Contains(last[len(last)-3:], "cleaning") {
			t.Errorf("it was not cleaned again: %v", last)
		}
	})
}

func TestUndeploy_foreignCleaningFails(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Reserved(t, time.Hour)
		client := sitetest.NewClient(fake)
		if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance)); err != nil {
			t.Fatal(err)
		}
		fake.Fail = func(node fakeironic.Node, _ string) string {
			if node.ProvisionState == "cleaning" {
				return "disk is broken"
			}
			return ""
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(90*time.Minute, cancel)
		if _, err := client.Undeploy(ctx, id, instance, "", 5*time.Hour); !api.IsInterrupted(err) {
			t.Fatal(err)
		}
		_, err := client.Undeploy(t.Context(), id, instance, "", 9*time.Hour)
		if !failure.Is(err, failure.KindFailed) {
			t.Errorf("%v: the node may still hold data", err)
		}
	})
}

func TestUndeploy_failureIsRepeated(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		broken := true
		fake.Fail = func(node fakeironic.Node, _ string) string {
			if broken && node.ProvisionState == "deleting" {
				return "no power"
			}
			return ""
		}
		if done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err == nil ||
			done.Node.ProvisionState != "error" {
			t.Fatalf("%+v, %v, want a failure", done, err)
		}
		broken = false
		if done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		wantRestored(t, fake, client, id, spec)
	})
}

func TestUndeploy_nodeOfOtherUser(t *testing.T) {
	t.Parallel()
	ours := "6f2f6c4e-0000-4000-8000-000000000001"
	for name, node := range map[string]struct {
		state    string
		target   any
		instance any
	}{
		"taken by another user":           {"active", nil, "6f2f6c4e-0000-4000-8000-000000000002"},
		"running without our reservation": {"active", nil, nil},
		"undeployed by another client":    {"available", nil, nil},
		"inspected by another client":     {"inspect failed", "manageable", nil},
		"cleaned by another client":       {"clean failed", "manageable", nil},
		"back in enroll":                  {"enroll", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "provision_state", node.state)
			fake.Set("node-000", "target_provision_state", node.target)
			fake.Set("node-000", "instance_uuid", node.instance)
			for _, instance := range []string{ours, ""} {
				if done, err := sitetest.NewClient(fake).Undeploy(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, instance, "",
					time.Hour); err != nil || done.Node == nil {
					t.Errorf("%+v, %v", done, err)
				}
			}
			for _, r := range fake.Requests() {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s %s was sent", r.Method, r.Path, r.Body)
				}
			}
		})
	}
}

func TestUndeploy_missingNode(t *testing.T) {
	t.Parallel()
	if done, err := sitetest.NewClient(ironictest.Fleet(1)).Undeploy(t.Context(), ironic.NewUUID(), ironic.NewUUID(), "",
		time.Hour); err != nil || done.Node != nil {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestUndeploy_retiredNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		fake.Set(id, "retired", true)
		done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour)
		if err != nil || !strings.Contains(done.Lost, "1 not available (1 manageable)") {
			t.Fatalf("%+v, %v, want to be told that the allocation is lost", done, err)
		}
		if _, err := client.Ironic.Allocation(t.Context(), spec.UUID); !api.IsNotFound(err) {
			t.Errorf("the allocation: %v, want it gone", err)
		}
		if node, err := client.Ironic.Node(t.Context(), id); err != nil || notes.SuspendedAllocation(node) != nil {
			t.Errorf("%+v, %v: the note is left on the node", node, err)
		}
	})
}

func TestUndeploy_neverDeployed(t *testing.T) {
	t.Parallel()
	t.Run("releases our reservation", func(t *testing.T) {
		t.Parallel()
		fake, id, instance := sitetest.Reserved(t, 0)
		if done, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, instance, "", time.Hour); err != nil ||
			done.Node.InstanceUUID != "" {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("leaves the allocation", func(t *testing.T) {
		t.Parallel()
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, spec := ironictest.Fleet(2), webAllocation()
			client := sitetest.NewClient(fake)
			a, err := sitetest.Allocate(t.Context(), client, spec)
			if err != nil {
				t.Fatal(err)
			}
			if done, err := client.Undeploy(t.Context(), a.NodeUUID, spec.UUID, spec.UUID, time.Hour); err != nil || done.Lost != "" {
				t.Errorf("%+v, %v", done, err)
			}
			wantRestored(t, fake, client, a.NodeUUID, spec)
			if got := ironictest.Verbs(t, fake, a.NodeUUID); got != nil {
				t.Errorf("verbs = %v, want none", got)
			}
		})
	})
}

func TestUndeploy_protectedNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		fake.Set(id, "protected", true)
		_, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour)
		if _, detail := failure.Explain("undeploy it", err); err == nil || !strings.Contains(detail, "protected = false") {
			t.Errorf("detail %q", detail)
		}
		if a, err := client.Ironic.Allocation(t.Context(), spec.UUID); err != nil || a.State != ironic.AllocationActive {
			t.Errorf("the allocation: %+v, %v", a, err)
		}
	})
}

// Another client edits an allocation after the run has listed it, and before the run notes it.
func TestUndeploy_keepsEditOfAnotherClient(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		if _, err := client.Ironic.AllocationsForPlan(t.Context()); err != nil {
			t.Fatal(err)
		}
		ironictest.AsOther(t, fake, http.MethodPatch, "allocations/"+spec.UUID,
			[]any{map[string]any{"op": "add", "path": "/extra/team", "value": "db"}})
		if done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		spec.Extra = map[string]any{"team": "db"}
		wantRestored(t, fake, client, id, spec)
	})
}

// Ironic ends an undeploy that an earlier run has requested, and deletes the allocation, right before the allocation is read.
func TestUndeploy_restoresAllocationThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Minute)
		release := fake.Hold("deleting")
		earlier, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		if _, err := client.Undeploy(earlier, id, spec.UUID, spec.UUID, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want the end of the run", err)
		}
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/allocations") {
				release()
				time.Sleep(time.Second)
			}
			return nil
		}
		if done, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, spec.UUID, spec.UUID, time.Hour); err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		wantRestored(t, fake, client, id, spec)
	})
}

// An allocation is edited in the run that undeploys its machine: the edit waits until the allocation exists again, and is not lost.
func TestUndeploy_keepsEditOfTheAllocation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		spec := webAllocation()
		fake, client, id := running(t, spec, time.Hour)
		edited := make(chan error)
		go func() {
			time.Sleep(30 * time.Minute)
			done, _, err := client.Hold(t.Context(), spec.UUID)
			if err == nil {
				defer done()
				err = client.Ironic.UpdateAllocation(t.Context(), spec.UUID, nil, map[string]any{"team": "db"}, nil)
			}
			edited <- err
		}()
		if done, err := client.Undeploy(t.Context(), id, spec.UUID, spec.UUID, 5*time.Hour); err != nil || done.Lost != "" {
			t.Fatalf("%+v, %v", done, err)
		}
		if err := <-edited; err != nil {
			t.Fatal(err)
		}
		spec.Extra = map[string]any{"team": "db"}
		wantRestored(t, fake, client, id, spec)
	})
}
