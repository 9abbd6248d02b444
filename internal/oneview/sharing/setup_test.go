package sharing_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// inVirtualTime runs a test with a virtual clock.
func inVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Hour) }()
		test(t)
	})
}

// step is the duration of each state of a task.
const step = 5 * time.Second

const password = "correct horse"

// site is a fake Ironic and a fake appliance with the same machines: the nth node is the nth blade.
type site struct {
	ironic    *fakeironic.Server
	appliance *fakeoneview.Server
	blades    fakeoneview.Fleet
	nodes     []string // UUIDs
}

// newSite returns a site of n manageable nodes on free hardware.
func newSite(t *testing.T, n int) *site {
	t.Helper()
	s := &site{
		ironic:    &fakeironic.Server{},
		appliance: &fakeoneview.Server{Username: "ironic", Password: password, StepTime: step},
	}
	s.blades = s.appliance.AddBlades(n)
	s.ironic.AddFleet(n, "baremetal")
	for i, node := range s.ironic.Nodes() {
		s.nodes = append(s.nodes, node.UUID)
		s.ironic.Set(node.UUID, "provision_state", "manageable")
		s.ironic.Set(node.UUID, "driver_info", map[string]any{"server_hardware_uri": s.blades.Hardware[i], "dynamic_allocation": true})
		s.ironic.Set(node.UUID, "properties", map[string]any{"capabilities": fmt.Sprintf(
			"boot_mode:uefi,server_hardware_type_uri:%s,server_profile_template_uri:%s,enclosure_group_uri:%s",
			s.blades.TypeURI, s.blades.TemplateURI, s.blades.GroupURI)})
		s.appliance.EditHardware(s.blades.Hardware[i], func(h *fakeoneview.Hardware) {
			h.MACs = []string{fmt.Sprintf("52:54:00:00:%02X:00", i)}
		})
	}
	return s
}

// pool returns the pool of a new process. Each process has its own session.
func (s *site) pool(t *testing.T, through ...func(http.RoundTripper) http.RoundTripper) *sharing.Pool {
	t.Helper()
	var toIronic, toAppliance http.RoundTripper = s.ironic, s.appliance
	for _, wrap := range through {
		toIronic, toAppliance = wrap(toIronic), wrap(toAppliance)
	}
	client, err := oneview.New(oneview.Config{
		Endpoint: "https://oneview.test", Username: "ironic", Password: password, Transport: toAppliance,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &sharing.Pool{
		OneView: client,
		Site: machine.New(machine.Config{Config: api.Config{
			Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: toIronic, PollInterval: time.Minute,
		}}),
	}
}

// node reads a node from Ironic.
func (s *site) node(t *testing.T, id string) *ironic.Node {
	t.Helper()
	node, err := s.pool(t).Site.Ironic.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// applied returns applied_server_profile_uri of a node.
func (s *site) applied(t *testing.T, id string) string {
	t.Helper()
	node, ok := s.ironic.Node(id)
	if !ok {
		t.Fatalf("there is no node %s", id)
	}
	info, _ := node.Raw["driver_info"].(map[string]any)
	uri, _ := info["applied_server_profile_uri"].(string)
	return uri
}

// setApplied sets applied_server_profile_uri directly in the fake Ironic.
func (s *site) setApplied(t *testing.T, id, uri string) {
	t.Helper()
	node, ok := s.ironic.Node(id)
	if !ok {
		t.Fatalf("there is no node %s", id)
	}
	info, _ := node.Raw["driver_info"].(map[string]any)
	info["applied_server_profile_uri"] = uri
	s.ironic.Set(id, "driver_info", info)
}

// profiles returns the profiles that do not belong to another user.
func (s *site) profiles() []fakeoneview.Profile {
	var ours []fakeoneview.Profile
	for _, p := range s.appliance.Profiles() {
		if !p.Others {
			ours = append(ours, p)
		}
	}
	return ours
}

// wantHeld fails a test unless the first node has the only profile of ours, and its driver_info names that profile.
func (s *site) wantHeld(t *testing.T) {
	t.Helper()
	profiles, hardware := s.profiles(), s.appliance.HardwareAt(s.blades.Hardware[0])
	switch {
	case len(profiles) != 1:
		t.Errorf("there are %d profiles of ours, want the one of the node: %+v", len(profiles), profiles)
	case profiles[0].HardwareURI != hardware.URI || hardware.ProfileURI != profiles[0].URI || profiles[0].InProgress:
		t.Errorf("profile %+v is not the one applied to hardware %+v", profiles[0], hardware)
	case s.applied(t, s.nodes[0]) != profiles[0].URI:
		t.Errorf("applied_server_profile_uri = %q, want %q", s.applied(t, s.nodes[0]), profiles[0].URI)
	}
	s.wantNoHarm(t)
}

// wantNothing fails a test if a profile of ours or its URI in driver_info is left.
func (s *site) wantNothing(t *testing.T) {
	t.Helper()
	if left := s.profiles(); len(left) > 0 {
		t.Errorf("profiles are left: %+v", left)
	}
	if uri := s.applied(t, s.nodes[0]); uri != "" {
		t.Errorf("applied_server_profile_uri is left: %q", uri)
	}
	s.wantNoHarm(t)
}

// wantNoHarm fails a test if another user's profile or server has changed.
func (s *site) wantNoHarm(t *testing.T) {
	t.Helper()
	for _, harm := range s.appliance.Harm() {
		t.Errorf("another user was harmed: %s", harm)
	}
}

// mustPrepare gives a node a profile.
func (s *site) mustPrepare(t *testing.T, id string) *sharing.Applied {
	t.Helper()
	applied, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: id})
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	return applied
}

// wantWords fails a test unless an error contains all words.
func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}
