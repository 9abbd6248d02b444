package deploy_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// TestOwnership_takenInQueue: a verb may wait for hours, and would wipe the machine of its new user.
func TestOwnership_takenInQueue(t *testing.T) {
	t.Parallel()
	undeploy := func(ctx context.Context, client *sitetest.Client, id, instance string) error {
		_, err := client.Undeploy(ctx, id, instance, "", time.Hour)
		return err
	}
	start := func(other deploy.Other) func(ctx context.Context, client *sitetest.Client, id, instance string) error {
		return func(ctx context.Context, client *sitetest.Client, id, instance string) error {
			_, _, err := client.Deploy(ctx, id, sitetest.Debian("12"), deploy.DeployOptions{
				Instance: instance, Attempts: 3,
				Timeout: time.Hour, Other: other,
			})
			return err
		}
	}
	for name, tc := range map[string]struct {
		state   string
		do      func(ctx context.Context, client *sitetest.Client, id, instance string) error
		refused bool
	}{
		"undeploying": {"active", undeploy, false},
		"deploying":   {"available", start(deploy.RefuseOther), true},
		"rebuilding":  {"active", start(deploy.RebuildOther), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				id, instance := ironictest.NodeOf(t, fake, "node-000").UUID, ironic.NewUUID()
				fake.Set(id, "provision_state", tc.state)
				fake.Set(id, "instance_uuid", instance)
				fake.Set("node-001", "provision_state", "cleaning")
				time.AfterFunc(20*time.Minute, func() {
					fake.Set(id, "provision_state", "active")
					fake.Set(id, "instance_uuid", ironic.NewUUID())
					fake.Set("node-001", "provision_state", "available")
				})
				err := tc.do(t.Context(), sitetest.Run(fake, sitetest.UpTo(1)), id, instance)
				if failure.Is(err, machine.KindReserved) != tc.refused || (!tc.refused && err != nil) {
					t.Errorf("err = %v, want an error of KindReserved: %t", err, tc.refused)
				}
				if got := ironictest.Verbs(t, fake, id); len(got) > 0 {
					t.Errorf("the machine of another user was sent %v", got)
				}
			})
		})
	}
}

// TestOwnership_takenBetweenPolls: an undeploy can end, and the next tenant's deployment begin, within one interval.
func TestOwnership_takenBetweenPolls(t *testing.T) {
	t.Parallel()
	for name, tenant := range map[string]any{
		"a tenant":                           "6f2f6c4e-0000-4000-8000-000000000002",
		"another user without a reservation": nil,
	} {
		for _, state := range []string{"deploying", "wait call-back", "deploy failed", "active", "rescue"} {
			t.Run(name+" in "+state, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, id, instance := sitetest.Reserved(t, 10*time.Minute)
					fake.Set(id, "provision_state", "deploy failed")
					time.AfterFunc(10*time.Minute-time.Second, func() {
						fake.Set(id, "provision_state", state)
						fake.Set(id, "instance_uuid", tenant)
						fake.Set(id, "instance_info", map[string]any{"terraform_metal": map[string]any{"digest": "another run's"}})
					})
					if _, err := sitetest.NewClient(fake).Undeploy(t.Context(), id, instance, "", time.Hour); err != nil {
						t.Error(err)
					}
					if got := ironictest.Verbs(t, fake, id); len(got) != 1 {
						t.Errorf("verbs = %v, want the first one only", got)
					}
					if info, _ := ironictest.NodeOf(t, fake, id).Raw["instance_info"].(map[string]any); info["terraform_metal"] == nil {
						t.Error("the note of another run was taken away")
					}
				})
			})
		}
	}
}

// TestOwnership_takenBeforeAllocationIsRestored: with the note the allocation would still count as existing.
func TestOwnership_takenBeforeAllocationIsRestored(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		node := ironictest.NodeOf(t, fake, "node-000").UUID
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
		if _, err := client.Ironic.CreateAllocation(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if _, err := client.AwaitAllocation(t.Context(), spec, time.Hour); err != nil {
			t.Fatal(err)
		}
		fake.Set(node, "provision_state", "active")
		fake.StepTime = 10 * time.Minute
		time.AfterFunc(19*time.Minute, func() {
			if extra := ironictest.NodeOf(t, fake, node).Raw["extra"]; !ironic.SameJSON(
				extra.(map[string]any)["terraform_metal_allocation"].(map[string]any)["uuid"],
				spec.UUID) {
				t.Errorf("nothing was noted: %v", extra)
			}
		})
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if now, _ := fake.Node(node); now.ProvisionState == "available" && now.Raw["instance_uuid"] == nil {
				fake.Set(node, "instance_uuid", ironic.NewUUID())
			}
			return nil
		}
		done, err := client.Undeploy(t.Context(), node, spec.UUID, spec.UUID, 5*time.Hour)
		if err != nil || done.Lost == "" {
			t.Errorf("%+v, %v", done, err)
		}
		if extra := ironictest.NodeOf(t, fake, node).Raw["extra"]; !ironic.SameJSON(extra, map[string]any{}) {
			t.Errorf("extra is %v", extra)
		}
	})
}

// TestOwnership_slowVerb: a conductor may take longer for a verb than a turn in the queue lasts. An interruption is said in a
// warning, and the apply would count as done.
func TestOwnership_slowVerb(t *testing.T) {
	t.Parallel()
	for _, body := range []bool{false, true} {
		t.Run(fmt.Sprintf("the answer begins: %t", body), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Reserved(t, 20*time.Minute)
				client := sitetest.NewClient(fake, func(c *machine.Config) {
					c.Transport, c.Limit = &sluggish{RoundTripper: fake, body: body}, sitetest.UpTo(1)
				})
				node, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
				if err != nil || node.ProvisionState != "active" {
					t.Errorf("%+v, %v", node, err)
				}
				if got := ironictest.Verbs(t, fake, id); len(got) != 1 {
					t.Errorf("verbs = %v", got)
				}
			})
		})
	}
}

// sluggish is an Ironic that never answers the first verb.
type sluggish struct {
	http.RoundTripper
	body bool // or only its header
	done atomic.Bool
}

func (s *sluggish) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || s.done.Swap(true) {
		return s.RoundTripper.RoundTrip(r)
	}
	if s.body {
		answer, err := s.RoundTripper.RoundTrip(r)
		if err == nil {
			answer.StatusCode, answer.Body = http.StatusServiceUnavailable, endless{r.Context()}
		}
		return answer, err
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// endless is the body of an answer that never comes.
type endless struct{ ctx context.Context } //nolint:containedctx // the request's

func (e endless) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (e endless) Close() error { return nil }

// TestInterruption_knowsCreatedObjects: Ironic may have executed the request when the user stops the run. An object that no run records is
// an orphan: a machine that stays reserved without a user.
func TestInterruption_knowsCreatedObjects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, path string
		make         func(ctx context.Context, client *sitetest.Client, node string) error
	}{
		"a node": {http.MethodPost, "/v1/nodes", func(ctx context.Context, client *sitetest.Client, _ string) error {
			_, err := host.Enroll(ctx, client.Site, ironic.NewUUID(), ironic.Settings{"name": "web", "driver": "fake-hardware"})
			return err
		}},
		"an allocation": {http.MethodPost, "/v1/allocations", func(ctx context.Context, client *sitetest.Client, _ string) error {
			_, err := client.Ironic.CreateAllocation(ctx, ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"})
			return err
		}},
		"a reservation": {http.MethodPatch, "/v1/nodes/", func(ctx context.Context, client *sitetest.Client, node string) error {
			_, err := client.ReserveNode(ctx, node, ironic.NewUUID())
			return err
		}},
	} {
		for how, rejection := range map[string]*fakeironic.Rejection{
			"answered": nil, "answer lost": ironictest.Lost(),
			"gateway timeout": {Status: http.StatusGatewayTimeout, After: true},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := ironictest.Fleet(1)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if r.Method != tc.method || len(r.URL.Path) < len(tc.path) || r.URL.Path[:len(tc.path)] != tc.path {
							return nil
						}
						cancel()
						return rejection
					}
					if err := tc.make(ctx, sitetest.NewClient(fake), ironictest.NodeOf(t, fake, "node-000").UUID); err != nil {
						t.Errorf("it was made, and the run was told: %v", err)
					}
				})
			})
		}
	}
}

// TestInterruption_waitsSecondsForAnswer: Ironic may never answer.
func TestInterruption_waitsSecondsForAnswer(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = deaf{fake} })
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := client.ReserveNode(ctx, id, ironic.NewUUID())
		if took := time.Since(start); err == nil || took > 15*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// deaf is an Ironic that never answers what changes something.
type deaf struct{ http.RoundTripper }

func (d deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return d.RoundTripper.RoundTrip(r)
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}
