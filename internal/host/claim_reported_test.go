package host_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A host without ports gets no second node for a machine that Ironic has discovered: the inventory says which BMC the machine has.
func TestAdmit_knowsTheBMCOfADiscoveredMachine(t *testing.T) {
	t.Parallel()
	const bmc = "198.18.0.1" // of machine 1
	behind := func(address string, macs ...string) host.Candidate {
		return host.Candidate{
			UUID: ironic.NewUUID(), Name: "rack1-01", DriverInfo: map[string]any{"redfish_address": "https://" + address},
			Addresses: macs,
		}
	}
	for _, tt := range []struct {
		name   string
		who    host.Candidate
		rename string // of the discovered node
		taken  bool   // the host takes the node over
		fails  bool
	}{
		{name: "without ports", who: behind(bmc), taken: true},
		{name: "with a port of the machine", who: behind(bmc, "52:55:00:00:01:01"), taken: true},
		{name: "with other ports", who: behind(bmc, "52:54:00:00:00:99"), fails: true},
		{name: "of a node with a name", who: behind(bmc), rename: "web", fails: true},
		{name: "another BMC", who: behind("198.18.0.99")},
		{name: "a BMC with a name", who: behind("bmc-1.example")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{}
			id := fake.Discover(fakeironic.SampleInventory(1))
			fake.Discover(fakeironic.SampleInventory(2))
			if tt.rename != "" {
				fake.Set(id, "name", tt.rename)
				fake.Set(id, "extra", map[string]any{"terraform_metal_discovery": map[string]any{
					"v": 1, "owner": "rack12",
					"name": tt.rename,
				}})
			}
			site := sitetest.NewClient(fake)
			planned := host.WouldTakeOver(t.Context(), site.Site, tt.who)
			found, err := host.Admit(t.Context(), site.Site, tt.who, sitetest.InAnHour())
			if (found != nil) != tt.taken || failure.Is(err, host.KindTaken) != tt.fails || (err != nil) != tt.fails ||
				(planned != nil) != tt.taken {
				t.Fatalf("found %+v, %v; planned %+v", found, err, planned)
			}
			if tt.taken && (found.Node.UUID != id || planned.Node.UUID != id) || tt.fails && host.TakenOf(err).Node.UUID != id {
				t.Errorf("found %+v, %v; planned %+v; want node %s", found, err, planned, id)
			}
			inventories := 0
			for _, r := range fake.Requests() {
				if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/inventory") {
					inventories++
				}
			}
			if inventories > 5 {
				t.Errorf("%d inventories were read of 2 machines", inventories)
			}
		})
	}
}
