package deploy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A mistyped trait stays neither on a node that is released nor on one whose deployment is tried again without it.
func TestUndeploy_takesAMistypedTraitAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ allocated, gone bool }{
		"own reservation": {}, "allocation": {allocated: true}, "allocation that is gone by then": {allocated: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Reserved(t, time.Minute)
				client, allocation, want := sitetest.NewClient(fake), "", any(nil)
				if tt.allocated {
					spec := webAllocation()
					fake = ironictest.Fleet(2)
					client = sitetest.NewClient(fake)
					a, err := sitetest.Allocate(t.Context(), client, spec)
					if err != nil {
						t.Fatal(err)
					}
					id, instance, allocation = a.NodeUUID, spec.UUID, spec.UUID
					want = []any{"CUSTOM_NVME"}
				}
				wrong := sitetest.Debian("12")
				wrong.Traits = []string{"CUSTOM_TYPO"}
				_, _, err := client.Deploy(t.Context(), id, wrong, sitetest.OnceIn4h(instance))
				if err == nil || !strings.Contains(err.Error(), "Cannot specify instance traits that are not also set on the node") {
					t.Fatalf("error = %v", err)
				}
				if tt.gone {
					want, fake.Reject = nil, ironictest.Times(10, http.MethodGet, "/v1/allocations/"+allocation,
						ironictest.Fault(http.StatusNotFound, "Allocation could not be found."))
				}
				if _, err := client.Undeploy(t.Context(), id, instance, allocation, time.Hour); err != nil {
					t.Fatal(err)
				}
				left, _ := ironictest.NodeOf(t, fake, id).Raw["instance_info"].(map[string]any)
				if got := left[deploy.KeyTraits]; !ironic.SameJSON(got, want) {
					t.Errorf("instance_info.traits = %v, want %v", got, want)
				}
			})
		})
	}
}
