package machine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// PatchHost reports whether Ironic has applied the change, also if the node cannot leave maintenance.
func TestInterfaces_arrivedPatch(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]struct{ arrives bool }{http.MethodPatch: {false}, http.MethodDelete: {true}, "nothing": {true}} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "provision_state", "active")
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if r.Method == refused && strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
					return &fakeironic.Rejection{Status: http.StatusBadRequest}
				}
				return nil
			}
			client := sitetest.NewClient(fake)
			before, err := client.Ironic.Node(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID)
			if err != nil {
				t.Fatal(err)
			}
			node, err := client.PatchHost(t.Context(), before, sitetest.Setting("/bios_interface", "no-bios"))
			if (err == nil) != (refused == "nothing") || (node != nil) != want.arrives {
				t.Errorf("%+v, %v", node, err)
			}
			if now := ironictest.NodeOf(t, fake, "node-000"); now.Maintenance != (refused == http.MethodDelete) || node != nil &&
				node.Maintenance != now.Maintenance {
				t.Errorf("maintenance is %t, and said to be that of %+v", now.Maintenance, node)
			}
		})
	}
}

// The user stops the run while the node is in maintenance for the change: the node leaves maintenance all the same.
func TestInterfaces_interruptedPatchLeavesNoMaintenance(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Set("node-000", "provision_state", "active")
	ctx, stop := context.WithCancel(t.Context())
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch {
			stop()
		}
		return nil
	}
	client := sitetest.NewClient(fake)
	before, err := client.Ironic.Node(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.PatchHost(ctx, before, sitetest.Setting("/bios_interface", "no-bios")) // whether it arrives does not matter here
	if now := ironictest.NodeOf(t, fake, "node-000"); ctx.Err() == nil || now.Maintenance {
		t.Errorf("the run was stopped: %v; maintenance is %t", ctx.Err(), now.Maintenance)
	}
}
