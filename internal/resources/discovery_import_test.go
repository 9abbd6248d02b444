package resources_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// rack is a discovery with the hosts that it finds.
func rack(site *acctest.Site, name, settings string) string {
	return site.Provider() + fmt.Sprintf(`
		resource "metal_discovery_import" "rack" {
		  name          = %q
		  name_template = { prefix = "r12-", hardware_details = "serial-number" }
		  %s
		}
		import {
		  for_each = metal_discovery_import.rack.hosts
		  to       = metal_host.rack[each.key]
		  id       = each.value.id
		}
		resource "metal_host" "rack" {
		  for_each = metal_discovery_import.rack.hosts
		  name     = each.key
		}`, name, settings)
}

func TestFakeDiscovery_aRackIsNamedImportedAndManagedInOneApply(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{Discovery: true}
	site := acctest.StartFake(t, fake)
	for n := range 40 {
		fake.Discover(fakeironic.SampleInventory(n))
	}
	w := acctest.NewWorkspace(t, rack(site, "rack12", ""))
	output := w.Must("apply", "-auto-approve")
	if !strings.Contains(output, "40 to import, 1 to add, 40 to change, 0 to destroy") {
		t.Error(output)
	}
	if output, changes := w.Plan(); changes {
		t.Errorf("the second plan is not empty\n%s", output)
	}
	fake.Discover(fakeironic.SampleInventory(40))
	output = w.Must("apply", "-auto-approve")
	if !strings.Contains(output, "1 to import, 0 to add, 2 to change, 0 to destroy") {
		t.Error(output)
	}
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan after the 41st machine is not empty\n%s", output)
	}
}
