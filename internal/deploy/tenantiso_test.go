package deploy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// Ironic 39 replaces a live ISO by virtual media and the boot device, or by an undeploy without cleaning. Users of projects who may not do
// all of that are refused with the rule that they lack, and their machine keeps its ISO.
func TestTenant_replacesLiveISO(t *testing.T) { //nolint:paralleltest // see TestTenant_lives
	for user, lacks := range map[string]string{ //nolint:paralleltest // see TestTenant_lives
		"a-admin": "", "a-manager": "", "a-member": "node:set_boot_device", "b-admin": "node:disable_cleaning",
		"b-manager": "node:disable_cleaning",
	} {
		t.Run(user, func(t *testing.T) {
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Booted(t, "1.115", sitetest.FromMedia)
				fake.Set(id, "owner", tenants["a"])
				fake.Set(id, "lessee", tenants["b"])
				fake.Identify = tenantOf
				_, _, err := behindKeystone(t, fake, user, fake).BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance))
				if lacks == "" {
					if err != nil {
						t.Fatal(err)
					}
					fake.Identify = nil
					wantBooted(t, fake, id, "2", 2)
					return
				}
				if !api.IsForbidden(err) || !strings.Contains(err.Error(), lacks) {
					t.Errorf("%v, want the rule %s", err, lacks)
				}
				for _, r := range fake.Requests() {
					if strings.HasSuffix(r.Path, "/vmedia") || r.Method != http.MethodGet && r.Status < http.StatusBadRequest {
						t.Errorf("the machine was touched: %s %s: %d", r.Method, r.Path, r.Status)
					}
				}
			})
		})
	}
}
