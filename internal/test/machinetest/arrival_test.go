package machinetest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// TestMetal_anUnknownMachineIsDiscoveredNamedAndDeployed powers a machine on that Ironic does not know.
func TestMetal_anUnknownMachineIsDiscoveredNamedAndDeployed(t *testing.T) {
	t.Parallel()
	startRack(t, provisioning).machine(1).arrive()
}

// arrive powers the machine on, as a person in front of it does, and follows it to a running system.
func (c *computer) arrive() {
	r, t := c.rack, c.rack.t
	t.Helper()
	if !c.network {
		if err := c.Insert("Cd", r.image("discovery.iso")); err != nil {
			t.Fatal(err)
		}
	}
	r.step("discover", func() {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		r.await("the machine to be discovered", func() bool {
			list, _ := r.Must(http.MethodGet, "ports?address="+c.mac, nil)["ports"].([]any)
			return len(list) == 1
		})
	})
	config := func(settings string) string {
		return r.Provider() + fmt.Sprintf(`
resource "metal_discovery_import" "rack" {
  name          = %q
  include       = [%q]
  name_template = { hardware_details = "serial-number" }
}
import {
  for_each = metal_discovery_import.rack.hosts
  to       = metal_host.h[each.key]
  id       = each.value.id
}
resource "metal_host" "h" {
  for_each = metal_discovery_import.rack.hosts
  name     = each.key
  %s
}
`, r.Name("rack"), c.mac, settings)
	}
	name := r.Name("sn1")
	w := r.workspace(config(""))
	defer acctest.Destroy(t, r.Site, w)
	r.step("name", func() { w.Must(acctest.Apply()...) })
	acctest.NoChanges(t, w)

	known := config(c.hardware() + "\n  " + acctest.Target("available"))
	w.Configure(known)
	r.step("credentials, and clean", func() { w.Must(acctest.Apply()...) })
	acctest.NoChanges(t, w)

	w.Configure(known + c.deployment(fmt.Sprintf("metal_host.h[%q].id", name), "one", "found"))
	r.step("deploy", func() { w.Must(acctest.Apply()...) })
	r.step("boot from disk", func() { c.want(c.await("one"), "one", "found") })
	acctest.NoChanges(t, w)
	c.wantDisk()
}
