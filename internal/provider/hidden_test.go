package provider_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// startAppliance starts an appliance with a blade, for the node of an Ironic, and sets the environment for it.
func startAppliance(t *testing.T, ironic *fakeironic.Server, node string) *fakeoneview.Server {
	t.Helper()
	o := &fakeoneview.Server{Username: "ironic", Password: "tell-nobody-33cc"}
	blades := o.AddBlades(1)
	o.EditHardware(blades.Hardware[0], func(h *fakeoneview.Hardware) { h.MACs = []string{"52:54:00:00:00:00"} })
	authority, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(o)
	if server.TLS, err = authority.ServerConfig("127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	ironic.Set(node, "provision_state", "manageable")
	ironic.Set(node, "driver_info", map[string]any{"server_hardware_uri": blades.Hardware[0], "dynamic_allocation": true})
	ironic.Set(node, "properties", map[string]any{"capabilities": "server_hardware_type_uri:" + blades.TypeURI +
		",server_profile_template_uri:" + blades.TemplateURI + ",enclosure_group_uri:" + blades.GroupURI})
	for name, value := range map[string]string{"ENDPOINT": server.URL, "USERNAME": o.Username, "PASSWORD": o.Password, "CACERT_FILE": ca} {
		t.Setenv("ONEVIEW_"+name, value)
	}
	return o
}

// asAdmins puts a Keystone before an Ironic, and returns a function that configures the session for the admin of a tenant.
func (s *session) asAdmins(ironic *fakeironic.Server) func(tenant string) {
	s.Helper()
	keystone := fakekeystone.NewSite(s.url)
	server := httptest.NewServer(keystone)
	s.Cleanup(server.Close)
	ironic.Identify = func(token string) (fakeironic.Caller, bool) {
		id, ok := keystone.Identify(token)
		return fakeironic.Caller{Project: id.ProjectID, System: id.System, Roles: id.Roles}, ok
	}
	return func(tenant string) {
		s.Helper()
		for name, value := range map[string]string{
			"AUTH_URL": server.URL, "USERNAME": tenant + "-admin", "PASSWORD": fakekeystone.Password, "PROJECT_NAME": "tenant-" + tenant,
			"USER_DOMAIN_NAME": "Default", "PROJECT_DOMAIN_NAME": "Default", "CLOUD": "", "REGION_NAME": "",
		} {
			s.Setenv("OS_"+name, value)
		}
		s.configure(block{"auth_type": "keystone"})
	}
}

// refusesDestruction fails the test unless the destruction of a resource says something.
func (s *session) refusesDestruction(made *instance, want string) {
	s.Helper()
	none := s.dynamic(s.value(s.kind(made.kind), nil))
	gone, err := s.server.ApplyResourceChange(s.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: made.kind, Config: none,
		PriorState: made.state, PlannedState: none, PlannedPrivate: made.private,
	})
	if err != nil || !strings.Contains(describe(gone.Diagnostics), want) {
		s.Errorf("the destruction of %s says %q, %v", made.kind, describe(gone.Diagnostics), err)
	}
}

// A destruction without a refresh, with the credentials of another project, forgets no reservation.
func TestHidden_reservations(t *testing.T) {
	ironic := &fakeironic.Server{}
	s := startSessionOn(t, ironic, nil)
	ironic.AddFleet(3, "baremetal")
	for _, node := range ironic.Nodes() {
		ironic.Set(node.UUID, "owner", "tenant-a-id")
	}
	as := s.asAdmins(ironic)
	as("a")
	for kind, config := range map[string]map[string]any{
		"metal_allocation":       {"name": "one", "resource_class": "baremetal"},
		"metal_allocation_group": {"name": "web", "size": 2, "resource_class": "baremetal"},
	} {
		as("a")
		made, diagnostics := s.apply(kind, config, nil)
		if failed(diagnostics) {
			t.Fatal(describe(diagnostics))
		}
		made = s.read(made)
		as("b")
		s.refusesDestruction(made, "Not visible to this user")
	}
	for _, node := range ironic.Nodes() {
		if node.InstanceUUID == "" {
			t.Errorf("node %s lost its reservation", node.Name)
		}
	}
}

// A user who does not see the node of a server profile, because the credentials or the owner of the node are others now, does not remove
// the profile: that would switch the server off.
func TestHidden_nodeOfServerProfile(t *testing.T) {
	ironic := &fakeironic.Server{}
	s := startSessionOn(t, ironic, nil)
	ironic.AddFleet(1, "baremetal")
	node := ironic.Nodes()[0].UUID
	appliance := startAppliance(t, ironic, node)
	ironic.Set(node, "owner", "tenant-a-id")
	as := s.asAdmins(ironic)
	as("a")
	made, diagnostics := s.apply("metal_oneview_profile", map[string]any{"node_id": node}, nil)
	if failed(diagnostics) {
		t.Fatal(describe(diagnostics))
	}
	made = s.read(made)
	ironic.Set(node, "provision_state", "active")
	appliance.PowerOn(appliance.Hardware()[0].URI)

	destroy := func(want string) {
		t.Helper()
		s.refusesDestruction(made, want)
		if blade := appliance.Hardware()[0]; len(appliance.Profiles()) != 1 || blade.Power != fakeoneview.On {
			t.Errorf("%d profiles are left, and the server is %s", len(appliance.Profiles()), blade.Power)
		}
	}
	as("b")
	read, err := s.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: made.kind, CurrentState: made.state,
		Private: made.private, CurrentIdentity: made.identity,
	})
	if err != nil || !strings.Contains(describe(read.Diagnostics), "Not visible to this user") {
		t.Errorf("the refresh says %q, %v", describe(read.Diagnostics), err)
	}
	destroy("Not visible to this user")

	as("a")
	ironic.Set(node, "owner", "tenant-b-id") // an administrator has given it away
	destroy("Node is not visible in Ironic")
}
