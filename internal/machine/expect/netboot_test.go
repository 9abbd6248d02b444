package expect_test

import (
	"errors"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestInspectionBringsPorts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		driver, inspect string
		want            bool
	}{
		{"redfish", "redfish", true},
		{"redfish", "agent", true}, // Ironic creates ports before it boots the machine
		{"idrac", "idrac-redfish", true},
		{"redfish", "", true},
		{"ipmi", "agent", false},
		{"ipmi", "inspector", false},
		{"ipmi", "", true}, // not known
		{"manual-management", "agent", false},
	} {
		if got := machine.InspectionBringsPorts(tt.driver, tt.inspect); got != tt.want {
			t.Errorf("%s with %s: %v", tt.driver, tt.inspect, got)
		}
	}
}

// A plan of many deployments must not ask for the ports of each node.
func TestLacksBootPort_sharesLists(t *testing.T) {
	t.Parallel()
	const machines = 50
	fake := ironictest.Fleet(machines)
	client := sitetest.NewClient(fake)
	all := fake.Nodes()
	for i, node := range all {
		fake.Set(node.UUID, "boot_interface", "ipxe")
		fake.Set(node.UUID, "provision_state", "manageable")
		ports, err := client.Ironic.Ports(t.Context(), node.UUID)
		for _, port := range ports {
			switch i {
			case 0:
				err = errors.Join(err, client.Ironic.DeletePort(t.Context(), port))
			case 1:
				_, refused := client.Ironic.UpdatePort(t.Context(), port, ironic.PortSpec{PXEEnabled: new(false)})
				err = errors.Join(err, refused)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	client = sitetest.NewClient(fake)
	before := len(fake.Requests())
	for i, node := range all {
		seen, err := client.Ironic.NodeForRefresh(t.Context(), node.UUID)
		if err != nil {
			t.Fatal(err)
		}
		got := expect.LacksBootPort(t.Context(), client.Site, seen)
		if want := i <= 1; (got != "") != want {
			t.Errorf("machine %d: %q", i, got)
		}
		expect.ExpectHost(client.Site, expect.ExpectedHost{ID: node.UUID, BootPort: true})
		if got := expect.LacksBootPort(t.Context(), client.Site, seen); got != "" {
			t.Errorf("machine %d, of which this plan changes the ports: %q", i, got)
		}
	}
	if asked := len(fake.Requests()) - before; asked > 8 {
		t.Errorf("%d requests", asked)
	}
}

func TestDefaultsOf(t *testing.T) {
	t.Parallel()
	client := sitetest.NewClient(&fakeironic.Server{})
	if got := expect.DefaultsOf(t.Context(), client.Site, "ipmi"); got.Defaults["boot"] != "ipxe" || got.Defaults["inspect"] != "agent" {
		t.Errorf("got %+v", got)
	}
	if got := expect.DefaultsOf(t.Context(), client.Site, "nope"); got.Name != "nope" || len(got.Defaults) > 0 {
		t.Errorf("got %+v", got)
	}
}
