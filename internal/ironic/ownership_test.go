package ironic_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// TestWhoeverTakesANodeFromTheQueueKeepsIt: a verb may wait for hours, and wipes a machine whoever owns it by then.
func TestWhoeverTakesANodeFromTheQueueKeepsIt(t *testing.T) {
	t.Parallel()
	undeploy := func(ctx context.Context, client *ironic.Client, id, instance string) error {
		_, err := client.Undeploy(ctx, id, instance, "", time.Hour)
		return err
	}
	deploy := func(other ironic.Other) func(ctx context.Context, client *ironic.Client, id, instance string) error {
		return func(ctx context.Context, client *ironic.Client, id, instance string) error {
			_, _, err := client.Deploy(ctx, id, debian("12"), ironic.DeployOptions{Instance: instance, Attempts: 3, Limit: time.Hour, Other: other})
			return err
		}
	}
	for name, tc := range map[string]struct {
		state   string
		do      func(ctx context.Context, client *ironic.Client, id, instance string) error
		refused bool
	}{
		"undeploying": {"active", undeploy, false},
		"deploying":   {"available", deploy(ironic.RefuseOther), true},
		"rebuilding":  {"active", deploy(ironic.RebuildOther), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := fleet(2)
				id, instance := nodeOf(t, fake, "node-000").UUID, ironic.NewUUID()
				fake.Set(id, "provision_state", tc.state)
				fake.Set(id, "instance_uuid", instance)
				fake.Set("node-001", "provision_state", "cleaning")
				time.AfterFunc(20*time.Minute, func() {
					fake.Set(id, "provision_state", "active")
					fake.Set(id, "instance_uuid", ironic.NewUUID())
					fake.Set("node-001", "provision_state", "available")
				})
				err := tc.do(t.Context(), run(fake, upTo(1)), id, instance)
				var reserved *ironic.ReservedError
				if errors.As(err, &reserved) != tc.refused || (!tc.refused && err != nil) {
					t.Errorf("err = %v, want a ReservedError: %t", err, tc.refused)
				}
				if got := verbs(t, fake, id); len(got) > 0 {
					t.Errorf("the machine of somebody else was sent %v", got)
				}
			})
		})
	}
}

// TestWhoeverTakesANodeBetweenTwoLooksKeepsIt: undeploying ends in one interval, and the next tenant's deploying begins in it.
func TestWhoeverTakesANodeBetweenTwoLooksKeepsIt(t *testing.T) {
	t.Parallel()
	for name, tenant := range map[string]any{"a tenant": "6f2f6c4e-0000-4000-8000-000000000002", "somebody without a reservation": nil} {
		for _, state := range []string{"deploying", "wait call-back", "deploy failed", "active", "rescue"} {
			t.Run(name+" in "+state, func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					fake, id, instance := reserved(t, 10*time.Minute)
					fake.Set(id, "provision_state", "deploy failed")
					time.AfterFunc(10*time.Minute-time.Second, func() {
						fake.Set(id, "provision_state", state)
						fake.Set(id, "instance_uuid", tenant)
						fake.Set(id, "instance_info", map[string]any{"terraform_metal": map[string]any{"digest": "another run's"}})
					})
					if _, err := newClient(fake).Undeploy(t.Context(), id, instance, "", time.Hour); err != nil {
						t.Error(err)
					}
					if got := verbs(t, fake, id); len(got) != 1 {
						t.Errorf("verbs = %v, want the first one only", got)
					}
					if info, _ := nodeOf(t, fake, id).Raw["instance_info"].(map[string]any); info["terraform_metal"] == nil {
						t.Error("the note of another run was taken away")
					}
				})
			})
		}
	}
}

// TestAnInterruptedRunKnowsWhatItHasMade: Ironic may have obeyed by the time the user stops the run. What nobody records is an
// orphan: a machine that is reserved for nobody.
func TestAnInterruptedRunKnowsWhatItHasMade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, path string
		make         func(ctx context.Context, client *ironic.Client, node string) error
	}{
		"a node": {http.MethodPost, "/v1/nodes", func(ctx context.Context, client *ironic.Client, _ string) error {
			_, err := client.Enroll(ctx, ironic.Enrollment{UUID: ironic.NewUUID(), Name: "web", Driver: "fake-hardware"})
			return err
		}},
		"an allocation": {http.MethodPost, "/v1/allocations", func(ctx context.Context, client *ironic.Client, _ string) error {
			_, err := client.CreateAllocation(ctx, ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"})
			return err
		}},
		"a reservation": {http.MethodPatch, "/v1/nodes/", func(ctx context.Context, client *ironic.Client, node string) error {
			_, err := client.ReserveNode(ctx, node, ironic.NewUUID())
			return err
		}},
	} {
		for how, rejection := range map[string]*fakeironic.Rejection{"answered": nil, "answer lost": lost(), "gateway timeout": {Status: http.StatusGatewayTimeout, After: true}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					fake := fleet(1)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if r.Method != tc.method || len(r.URL.Path) < len(tc.path) || r.URL.Path[:len(tc.path)] != tc.path {
							return nil
						}
						cancel()
						return rejection
					}
					if err := tc.make(ctx, newClient(fake), nodeOf(t, fake, "node-000").UUID); err != nil {
						t.Errorf("it was made, and the run was told: %v", err)
					}
				})
			})
		}
	}
}

// TestAnInterruptedRunWaitsForAnAnswerNoLongerThanSeconds: Ironic may be dead.
func TestAnInterruptedRunWaitsForAnAnswerNoLongerThanSeconds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		client := newClient(fake, func(c *ironic.Config) { c.Transport = deaf{fake} })
		id := nodeOf(t, fake, "node-000").UUID
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
