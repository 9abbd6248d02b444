package discoveryimport_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A refresh right after an apply changes nothing, whether all machines of the site have a name or one is pending. The test is not
// parallel: on a real Ironic, machines of other tests arrive meanwhile, and a refresh records what has arrived.
func TestAccDiscoverRefresh_afterApplyFindsNoDrift(t *testing.T) {
	s := site.StartDiscovery(t)
	s.Discover(s.Machine(1))
	w := acctest.NewWorkspace(t, rack(s, s.Name("rack"), bySerial("r-"), "max_hosts = 2"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)

	s.DiscoverAll(s.Machine(2), s.Machine(3)) // one of them stays pending
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)
}
