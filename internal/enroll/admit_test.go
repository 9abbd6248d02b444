package enroll_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sitetest"
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
	want := cabling.Wanted{
		Ports:   map[string]ironic.PortSpec{macOf(1): {Address: macOf(1)}, macOf(2): {Address: macOf(2)}},
		Members: map[string]string{macOf(1): "bond0", macOf(2): "bond1"},
		Groups:  map[string]ironic.PortGroupSpec{"bond0": {Address: macOf(8)}, "bond1": {Address: macOf(9)}},
	}
	if _, err := cabling.Apply(t.Context(), m, want, true); err != nil {
		t.Fatal(err)
	}
	if err := enroll.GiveUp(t.Context(), m, enroll.Release{Name: true, Addresses: []string{macOf(1)}, Bonds: []string{macOf(8)}}); err != nil {
		t.Fatal(err)
	}
	has, err := cabling.Read(t.Context(), client.Site, id, true)
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(has.Ports)), []string{macOf(2)}) || has.Groups["bond0"].Address != "" || has.Groups["bond1"].Address != macOf(9) {
		t.Errorf("the node has %+v, %v", has, err)
	}
	if name := m.Node().Name; name != enroll.TemporaryName(id) {
		t.Errorf("the node is named %q", name)
	}
}

// Ironic may refuse a port that the list of ports does not show. The node that was made for it goes again, and the error names the node that has
// the address.
func TestEnrollHost_refusedPortLeavesNoNode(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	settings := ironic.Settings{"name": "web", "driver": "fake-hardware"}
	want := cabling.Wanted{Ports: map[string]ironic.PortSpec{macOf(1): {Address: macOf(1)}}}
	m, found, err := enroll.EnrollHost(t.Context(), client.Site, settings, want, time.Minute)
	if err != nil || found != nil {
		t.Fatal(found, err)
	}
	other := sitetest.Enrolled(t, sitetest.NewClient(fake), "other") // of another run, just now
	if _, err := sitetest.NewClient(fake).Ironic.CreatePort(t.Context(), other, ironic.PortSpec{Address: macOf(1)}); err != nil {
		t.Fatal(err)
	}
	_, failed := cabling.Apply(t.Context(), m, want, true)
	gone, why := enroll.Unmake(t.Context(), m, failed)
	wantTakenBy(t, why, enroll.SharedAddress, other)
	if _, left := fake.Node("web"); !gone || left {
		t.Errorf("gone is %v, and the node is there: %v", gone, left)
	}
	if gone, why := enroll.Unmake(t.Context(), m, api.ErrNoPoll); gone || why != api.ErrNoPoll { //nolint:errorlint // the very error
		t.Errorf("another failure: %v, %v", gone, why)
	}
}

// Another client takes the name between the list and the request: the second try sees that.
func TestEnrollHost_nameTakenMeanwhileIsSeen(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := sitetest.NewClient(fake)
	other := ""
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/nodes" && other == "" {
			other = "made"
			other, _ = ironictest.AsOther(t, fake, http.MethodPost, "nodes", map[string]any{"name": "web", "driver": "ipmi"})["uuid"].(string)
		}
		return nil
	}
	_, _, err := enroll.EnrollHost(t.Context(), client.Site, ironic.Settings{"name": "web", "driver": "fake-hardware"}, cabling.Wanted{}, time.Millisecond)
	wantTakenBy(t, err, enroll.SharedName, other)
	if len(fake.Nodes()) != 1 {
		t.Errorf("%d nodes", len(fake.Nodes()))
	}
}
