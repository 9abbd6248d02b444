package oneviewprofile_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// withProfile gives the first blade a profile that Ironic uses, as after metal oneview migrate, and returns its URI.
func withProfile(s *site.Site, o *site.OneView, node string) string {
	uri := o.Fake.AddProfile(fakeoneview.NewProfile{Name: "by hand", HardwareURI: o.Blades.Hardware[0], TemplateURI: o.Blades.TemplateURI})
	s.Patch(node, "add", "/driver_info/applied_server_profile_uri", uri)
	return uri
}

func TestAccOneView_importByURIAndNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	s.Must("POST", "ports", map[string]any{"node_uuid": node, "address": s.MAC(1)})
	uri := withProfile(s, o, node)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	for _, id := range []string{uri, node, s.Name("blade1"), s.MAC(1)} {
		w.Must("import", profileAddress, id)
		if p := acctest.InState(t, w, profileAddress); p == nil || p.Values["id"] != uri || p.Values["node_id"] != node ||
			p.Values["name"] != "by hand" ||
			p.Values["server_hardware_uri"] != o.Blades.Hardware[0] || p.Values["server_profile_template_uri"] != o.Blades.TemplateURI ||
			p.Values["ownership"] != "ironic" || p.Values["template_compliance"] != "Compliant" {
			t.Errorf("imported by %s: the state has %+v", id, p)
		}
		acctest.NoChanges(t, w)
		w.Must("state", "rm", profileAddress)
	}
	w.Must("import", profileAddress, uri)
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_importPlansNothing(t *testing.T) {
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	acctest.Test(t,
		resource.TestStep{Config: s.Provider(o.Setting()) + blade(s, o) + profile("metal_host.h.id")},
		resource.TestStep{ResourceName: profileAddress, ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: profileAddress, ImportState: true, ImportStateVerify: true, ImportStateId: s.Name("h")},
		resource.TestStep{
			ResourceName: profileAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportPlanChecks: acctest.EmptyImport(),
		},
	)
}

func TestAccOneView_profilesOfOthersAreNotImported(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	o.Take(1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	for id, want := range map[string][]string{
		o.Hardware(1).ProfileURI: {
			"No node of this Ironic has it as driver_info.applied_server_profile_uri",
			"run metal oneview migrate first",
		},
		node:                         {"has no driver_info.applied_server_profile_uri: Ironic has applied no server profile to it"},
		"/rest/server-profiles/none": {"Cannot import non-existent remote object"},
		"no-such-node":               {"no-such-node could not be found"},
		"/rest/server-hardware/x":    {"Could not import the server profile of node /rest/server-hardware/x"},
	} {
		acctest.Fails(t, w, []string{"import", profileAddress, id}, want...)
	}
	if p := acctest.InState(t, w, profileAddress); p != nil {
		t.Errorf("the state has %+v", p)
	}
}

// The rules of OneView do not apply to pre-allocated nodes.
func TestAccOneView_preAllocatedNodes(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]any{"false": false, "no": "no", "missing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			o := site.StartOneView(t, nil, 1)
			theirs := o.Fake.AddProfile(fakeoneview.NewProfile{
				Name: "pre-allocated", HardwareURI: o.Blades.Hardware[0],
				TemplateURI: o.Blades.TemplateURI,
			})
			o.Fake.MarkOthers(theirs)
			info := `server_hardware_uri = ` + acctest.Quoted(o.Blades.Hardware[0])
			if flag != nil {
				info += "\n    dynamic_allocation = " + acctest.Quoted(name)
			}
			host := s.Provider(o.Setting()) + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("available"),
				`inspect = true`,
				"driver_info = {\n    "+info+"\n  }", "capabilities = { server_profile_template_uri = "+
					acctest.Quoted(o.Blades.TemplateURI)+" }")
			w := acctest.NewWorkspace(t, host+acctest.Deployment("metal_host.h.id", acctest.Image("v1"), `power_state = "on"`))
			w.Must("apply", "-auto-approve")
			acctest.NoChanges(t, w)
			w.Configure(host + acctest.Deployment("metal_host.h.id", acctest.Image("v2"), `power_state = "off"`))
			w.Must("apply", "-auto-approve")
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, site.Text(s.Node(s.Name("h"))["uuid"]), "manage", "inspect", "provide", "active", "rebuild")
			want := []string{
				"is pre-allocated (driver_info.dynamic_allocation is false)",
				"Move the node to dynamic allocation first, with metal oneview migrate",
			}
			if flag == nil {
				want = []string{
					"is used by OneView: server profile pre-allocated",
					"if the profile is the node's own, from pre-allocation, run metal oneview migrate for the node first",
				}
			}
			w.Configure(host + acctest.Deployment("metal_host.h.id", acctest.Image("v2"), `power_state = "off"`) +
				profile("metal_host.h.id"))
			acctest.Fails(t, w, acctest.Apply(), want...)
			w.Configure(host)
			w.Must("apply", "-auto-approve")
			acctest.NoChanges(t, w)
			acctest.Destroy(t, s, w)
			for _, r := range o.Fake.Requests() {
				if r.Method != "GET" && r.Path != "/rest/login-sessions" {
					t.Errorf("the provider has sent %s %s", r.Method, r.Path)
				}
			}
			if o.Hardware(1).ProfileURI != theirs {
				t.Errorf("the hardware is %+v", o.Hardware(1))
			}
		})
	}
}

// An invalid dynamic_allocation is an error, because the provider cannot know who uses the machine.
func TestAccOneView_invalidFlagIsAnError(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	s.Patch(node, "add", "/driver_info/dynamic_allocation", "maybe")
	unmoved := unmoved(t, s, node)
	for _, config := range []string{profile(acctest.Quoted(node)), acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"))} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+config)
		acctest.Fails(t, w, acctest.Apply(), `driver_info.dynamic_allocation: "maybe" is neither true nor false`)
		unmoved()
	}
}
