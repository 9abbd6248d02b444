package deploy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// quarantined returns a fake with a node that an allocation reserves and on which its deployment has failed. A run was killed after it had
// noted the quarantine and before it undeployed the node.
func quarantined(t *testing.T) (fake *fakeironic.Server, id, allocation string) {
	t.Helper()
	fake = ironictest.Fleet(2)
	made, err := sitetest.Allocate(t.Context(), sitetest.NewClient(fake), ironic.AllocationSpec{
		UUID: ironic.NewUUID(), Name: "web",
		ResourceClass: "baremetal",
	})
	if err != nil {
		t.Fatal(err)
	}
	id = made.NodeUUID
	failed := time.Now().UTC().Truncate(time.Second)
	fake.Set(id, "provision_state", "deploy failed")
	fake.Set(id, "target_provision_state", "active")
	fake.Set(id, "provision_updated_at", failed.Format(time.RFC3339))
	fake.Set(id, "retired", true)
	fake.Set(id, "retired_reason", "quarantine: the deployment for allocation web failed on it at "+failed.Format(time.RFC3339))
	fake.Set(id, "extra", map[string]any{"terraform_metal_quarantine": map[string]any{
		"allocation": "web", "instance": made.UUID, "since": failed.Format(time.RFC3339), "failed": failed.Format(time.RFC3339),
	}})
	time.Sleep(time.Minute)
	return fake, id, made.UUID
}

// A release finishes the quarantine of a killed run, and leaves alone what another client has deployed since, also while the release waits
// for a slot.
func TestRelease_quarantineOfKilledRun(t *testing.T) {
	t.Parallel()
	change := func(state string, later time.Duration) func(fake *fakeironic.Server, id string) {
		return func(fake *fakeironic.Server, id string) {
			fake.Set(id, "provision_state", state)
			fake.Set(id, "provision_updated_at", time.Now().Add(later).UTC().Format(time.RFC3339))
		}
	}
	for name, tc := range map[string]struct {
		before, waiting func(fake *fakeironic.Server, id string) // what other clients do before the release, and while it waits for a slot
		undeploys       bool
	}{
		"nothing has changed":                     {undeploys: true},
		"deployed since":                          {before: change("active", 0)},
		"in rescue mode since":                    {before: change("rescue", 0)},
		"being deployed since":                    {before: change("wait call-back", 0)},
		"failed again since":                      {before: change("deploy failed", 0)},
		"deployed while the release waits":        {waiting: change("active", 0)},
		"another deployment fails while it waits": {waiting: change("deploy failed", 0)},
		"deployed by others without a reservation": {before: func(fake *fakeironic.Server, id string) {
			change("active", 0)(fake, id)
			fake.Set(id, "instance_uuid", nil)
		}},
		"deployed by others with their reservation": {before: func(fake *fakeironic.Server, id string) {
			change("active", 0)(fake, id)
			fake.Set(id, "instance_uuid", ironic.NewUUID())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, allocation := quarantined(t)
				if tc.before != nil {
					tc.before(fake, id)
				}
				if tc.waiting != nil {
					other := fake.Nodes()[0].UUID
					if other == id {
						other = fake.Nodes()[1].UUID
					}
					fake.Set(other, "provision_state", "cleaning")
					time.AfterFunc(20*time.Minute, func() {
						tc.waiting(fake, id)
						fake.Set(other, "provision_state", "available")
					})
				}
				err := allocate.Release(t.Context(), sitetest.Run(fake, sitetest.UpTo(1)).Site, allocation, id, deploy.EndLeftQuarantine)
				if reserves := ironictest.NodeOf(t, fake, id).InstanceUUID == allocation; failure.Is(err,
					machine.KindRefused) != reserves && !tc.undeploys {
					t.Errorf("the allocation reserves the node: %t; %v", reserves, err)
				}
				if got := ironictest.Verbs(t, fake, id); slices.Contains(got, "deleted") != tc.undeploys || tc.undeploys && err != nil {
					t.Errorf("verbs %v, %v", got, err)
				}
			})
		})
	}
}

// Notes about an earlier instance mean nothing while something else runs on the node.
func TestUndeploy_staleNotes(t *testing.T) {
	t.Parallel()
	ours := ironic.NewUUID()
	notes := map[string]any{
		"terraform_metal_allocation": map[string]any{"uuid": ours, "name": "web", "resource_class": "baremetal"},
		"terraform_metal_boot":       map[string]any{"image": "x", "again": map[string]any{"instance": ours, "clean": "true"}},
	}
	for key, note := range notes {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.Set("node-000", "provision_state", "active")
				fake.Set("node-000", "extra", map[string]any{key: note})
				id := ironictest.NodeOf(t, fake, "node-000").UUID
				client := sitetest.NewClient(fake)
				if done, err := client.Undeploy(t.Context(), id, ours, ours, time.Hour); err != nil || done.Lost != "" {
					t.Errorf("%+v, %v", done, err)
				}
				if suspended, err := client.IsSuspended(t.Context(), ours, id); err != nil || suspended {
					t.Errorf("the allocation will be created again: %t, %v", suspended, err)
				}
				node, err := client.Ironic.Node(t.Context(), id)
				if err != nil || deploy.LossReason(node, ours, ours) == "" {
					t.Errorf("the deployment counts as ours, %v", err)
				}
				if got := ironictest.Verbs(t, fake, id); len(got) > 0 || ironictest.Count(fake, http.MethodPost, "/v1/allocations") > 0 {
					t.Errorf("verbs %v", got)
				}
			})
		})
	}
}

// Maintenance that another client sets before or during a change of interfaces stays.
func TestInterfaces_maintenanceOfOthersStays(t *testing.T) {
	t.Parallel()
	for _, during := range []bool{false, true} {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "provision_state", "active")
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		theirs := func() {
			fake.Set(id, "maintenance", true)
			fake.Set(id, "maintenance_reason", "their disk")
		}
		if during {
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
					theirs()
				}
				return nil
			}
		}
		client := sitetest.NewClient(fake)
		before, err := client.Ironic.Node(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !during {
			theirs()
		}
		if _, err := client.PatchHost(t.Context(), before, sitetest.Setting("/bios_interface", "no-bios")); err != nil {
			t.Error(err)
		}
		if now := ironictest.NodeOf(t, fake, id); !now.Maintenance || now.Raw["maintenance_reason"] != "their disk" {
			t.Errorf("during the change: %t; maintenance is %t (%v)", during, now.Maintenance, now.Raw["maintenance_reason"])
		}
	}
}
