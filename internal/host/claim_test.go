package host_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// macOf is the MAC address of the nth port.
func macOf(n int) string { return fmt.Sprintf("52:54:01:00:00:%02x", n) }

// A node gives up what another host of the run gets, and nothing else.
func TestGiveUp_releasesNamePortsAndBonds(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	id := sitetest.Enrolled(t, client, "web")
	m, err := client.Machine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := host.WantedCables{
		Ports:   map[string]ironic.PortSpec{macOf(1): {Address: macOf(1)}, macOf(2): {Address: macOf(2)}},
		Members: map[string]string{macOf(1): "bond0", macOf(2): "bond1"},
		Groups:  map[string]ironic.PortGroupSpec{"bond0": {Address: macOf(8)}, "bond1": {Address: macOf(9)}},
	}
	if _, err := host.ApplyPorts(t.Context(), m, want, true); err != nil {
		t.Fatal(err)
	}
	if err := host.GiveUp(t.Context(), m, host.Release{Name: true, Addresses: []string{macOf(1)}, Bonds: []string{macOf(8)}}); err != nil {
		t.Fatal(err)
	}
	has, err := host.ReadCables(t.Context(), client.Site, id, true)
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(has.Ports)), []string{macOf(2)}) || has.Groups["bond0"].Address != "" ||
		has.Groups["bond1"].Address != macOf(9) {
		t.Errorf("the node has %+v, %v", has, err)
	}
	if name := m.Node().Name; name != host.TemporaryName(id) {
		t.Errorf("the node is named %q", name)
	}
}

// Ironic may refuse a port that the list of ports does not show. The node that was made for it goes again, and the error names the node
// that has the address.
func TestClaim_refusedPortLeavesNoNode(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	settings := ironic.Settings{"name": "web", "driver": "fake-hardware"}
	want := host.WantedCables{Ports: map[string]ironic.PortSpec{macOf(1): {Address: macOf(1)}}}
	m, found, err := host.Claim(t.Context(), client.Site, settings, want, time.Minute)
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	other := sitetest.Enrolled(t, sitetest.NewClient(fake), "other") // of another run, just now
	if _, err := sitetest.NewClient(fake).Ironic.CreatePort(t.Context(), other, ironic.PortSpec{Address: macOf(1)}); err != nil {
		t.Fatal(err)
	}
	_, failed := host.ApplyPorts(t.Context(), m, want, true)
	gone, why := host.Unmake(t.Context(), m, failed)
	wantTakenBy(t, why, identity.Address, other)
	if _, left := fake.Node("web"); !gone || left {
		t.Errorf("gone is %v, and the node is there: %v", gone, left)
	}
	if gone, why := host.Unmake(t.Context(), m, api.ErrNoPoll); gone || why != api.ErrNoPoll { //nolint:errorlint // the very error
		t.Errorf("another failure: %v, %v", gone, why)
	}
}

// Another client takes the name between the list and the request: the second try sees that.
func TestClaim_nameTakenMeanwhileIsSeen(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	other := ""
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/nodes" && other == "" {
			other = "made"
			other, _ = ironictest.AsOther(t, fake, http.MethodPost, "nodes",
				map[string]any{"name": "web", "driver": "ipmi"})["uuid"].(string)
		}
		return nil
	}
	_, _, err := host.Claim(t.Context(), client.Site, ironic.Settings{"name": "web", "driver": "fake-hardware"}, host.WantedCables{},
		time.Millisecond)
	wantTakenBy(t, err, identity.Name, other)
	if len(fake.Nodes()) != 1 {
		t.Errorf("%d nodes", len(fake.Nodes()))
	}
}

func TestAdmit_takesOverWhatWasDiscovered(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, testTakeOver)
}

func testTakeOver(t *testing.T) {
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	machine := func(n int, fields map[string]any) string {
		id := fake.Discover(fakeironic.SampleInventory(n))
		for key, value := range fields {
			fake.Set(id, key, value)
		}
		return id
	}
	marked := func(m notes.Discovery) map[string]any { return map[string]any{"terraform_metal_discovery": m} }
	mark := notes.Discovery{Version: 1, Owner: "rack12", Name: "web", From: "serial-number", At: "2026-01-01T00:00:00Z"}
	taken := mark
	taken.Taken = true
	unnamed := machine(1, nil)
	web := machine(2, map[string]any{"name": "web", "extra": marked(mark)})
	machine(3, map[string]any{"name": "db"})
	machine(4, map[string]any{"instance_uuid": ironic.NewUUID()})
	machine(5, map[string]any{"name": "ready", "extra": marked(mark), "provision_state": "manageable"})
	machine(6, map[string]any{"name": "taken", "extra": marked(taken)})
	ruled := machine(7, map[string]any{"driver_info": map[string]any{"redfish_address": "https://192.0.2.7", "redfish_password": "calvin"}})
	byHand, err := host.Enroll(t.Context(), client.Site, ironic.NewUUID(), ironic.Settings{
		"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.8", "ipmi_password": "calvin"},
	})
	if err == nil {
		fake.Set(byHand.UUID, "extra", map[string]any{}) // as others enroll
		_, err = client.Ironic.CreatePort(t.Context(), byHand.UUID, ironic.PortSpec{Address: "52:54:00:00:00:08"})
	}
	nameless, err2 := host.Enroll(t.Context(), client.Site, ironic.NewUUID(), ironic.Settings{"driver": "ipmi"})
	if err2 == nil {
		_, err2 = client.Ironic.CreatePort(t.Context(), nameless.UUID, ironic.PortSpec{Address: "52:54:00:00:00:09"})
	}
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	mac := func(n int) string { return fmt.Sprintf("52:55:00:00:%02x:00", n) }
	for _, tt := range []struct {
		what, name string
		addresses  []string
		want       string // "MAC", "name": an error
	}{
		{"nothing asked for", "", nil, ""},
		{"no such name", "mail", nil, ""},
		{"a discovered name", "web", nil, web},
		{"a name of another node", "db", nil, "name"},
		{"a name that was discovered and has gone further", "ready", nil, "name"},
		{"a name that another host has", "taken", nil, "name"},
		{"the address of an unnamed one", "mail", []string{"52:00:00:00:00:01", mac(1)}, unnamed},
		{"the address of one with another name", "mail", []string{mac(2)}, "MAC"},
		{"the address and name of one", "web", []string{mac(2)}, web},
		{"an address of another node", "mail", []string{mac(3)}, "MAC"},
		{"the address of one in use", "mail", []string{mac(4)}, "MAC"},
		{"the address of one and the name of another", "web", []string{mac(1)}, "MAC"},
		{"the addresses of two", "mail", []string{mac(1), mac(3)}, "MAC"},
		{"the address of one that rules have told of its BMC", "mail", []string{mac(7)}, ruled},
		{"the address of one enrolled by hand", "mail", []string{"52:54:00:00:00:08"}, "MAC"},
		{"the address of a host without a name", "mail", []string{"52:54:00:00:00:09"}, "MAC"},
	} {
		client := sitetest.NewClient(fake) // each is a run of its own
		id := ironic.NewUUID()
		found, err := host.Admit(t.Context(), client.Site, host.Candidate{UUID: id, Name: tt.name, Addresses: tt.addresses},
			sitetest.InAnHour())
		got := ""
		switch {
		case failure.Is(err, host.KindTaken) && host.TakenOf(err).What == identity.Name && host.TakenOf(err).Value == tt.name:
			got = "name"
		case failure.Is(err, host.KindTaken) && host.TakenOf(err).What == identity.Address &&
			slices.Contains(tt.addresses, host.TakenOf(err).Value):
			got = "MAC"
		case err != nil:
			t.Error(tt.what, err)
		case found != nil:
			got = found.Node.UUID
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
