package discoveryimport_test

import (
	"net/url"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The BMC address of a discovered machine, with credentials, makes it a working host: one apply names and imports the machine,
// verifies its BMC, and switches it on.
func TestAccDiscoverBMC_addressLeadsToAWorkingHost(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	server, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	data := s.Machine(1)
	inventory(data)["bmc_address"] = server.Hostname()
	id := s.Discover(data)
	username, password := b.Credentials()
	settings := `target_state = "manageable"
  power_state = "on"
  bmc = {
    address  = "redfish-virtualmedia+http://${each.value.bmc_address}:` + server.Port() + b.Path() + `"
    username = ` + acctest.Quoted(username) + `
    password = ` + acctest.Quoted(password) + `
  }`
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", s.Name("rack"), bySerial(""))+rackImport+rackHosts(settings))
	w.Must("apply", "-auto-approve")
	if node := s.Node(id); node["provision_state"] != "manageable" || node["driver"] != "redfish" {
		t.Errorf("the node is %v with driver %v", node["provision_state"], node["driver"])
	}
	site.Until(t, "the machine to be on", b.On)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
