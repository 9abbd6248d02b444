package resources_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

// withProfile gives the first blade a profile that Ironic uses, as metal-oneview migrate leaves it, and returns its URI.
func withProfile(s *acctest.Site, o *acctest.OneView, node string) string {
	uri := o.Fake.AddProfile(fakeoneview.NewProfile{Name: "by hand", HardwareURI: o.Blades.Hardware[0], TemplateURI: o.Blades.TemplateURI})
	s.Patch(node, "add", "/driver_info/applied_server_profile_uri", uri)
	return uri
}

func TestAccOneView_profileIsImportedByAnyOfItsNames(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	s.Must("POST", "ports", map[string]any{"node_uuid": node, "address": s.MAC(1)})
	uri := withProfile(s, o, node)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
	for _, id := range []string{uri, node, s.Name("blade1"), s.MAC(1)} {
		w.Must("import", profileAddress, id)
		if p := inState(t, w, profileAddress); p == nil || p.Values["id"] != uri || p.Values["node_id"] != node || p.Values["name"] != "by hand" ||
			p.Values["server_hardware_uri"] != o.Blades.Hardware[0] || p.Values["server_profile_template_uri"] != o.Blades.TemplateURI ||
			p.Values["ownership"] != "ironic" || p.Values["template_compliance"] != "Compliant" {
			t.Errorf("imported by %s: in state is %+v", id, p)
		}
		noChanges(t, w)
		w.Must("state", "rm", profileAddress)
	}
	w.Must("import", profileAddress, uri)
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_madeProfileIsImportedAsItIs(t *testing.T) {
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	test(t,
		resource.TestStep{Config: s.Provider(o.Setting()) + blade(s, o) + profile("metal_host.h.id")},
		resource.TestStep{ResourceName: profileAddress, ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: profileAddress, ImportState: true, ImportStateVerify: true, ImportStateId: s.Name("h")},
		resource.TestStep{
			ResourceName: profileAddress, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportPlanChecks: emptyImport(),
		},
	)
}

func TestAccOneView_whatIsNotIronicsIsNotImported(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	o.Take(1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
	for id, want := range map[string][]string{
		o.Hardware(1).ProfileURI:     {"No node of this Ironic has it as driver_info.applied_server_profile_uri", "it is another user's, or metal-oneview migrate has to take it over first"},
		node:                         {"has no driver_info.applied_server_profile_uri: Ironic has applied no server profile to it"},
		"/rest/server-profiles/none": {"Cannot import non-existent remote object"},
		"no-such-node":               {"no-such-node could not be found"},
		"/rest/server-hardware/x":    {"Could not import the server profile of node /rest/server-hardware/x"},
	} {
		fails(t, w, []string{"import", profileAddress, id}, want...)
	}
	if p := inState(t, w, profileAddress); p != nil {
		t.Errorf("in state is %+v", p)
	}
}

// Nodes that have a profile of somebody's all the time go on as if there were no OneView.
func TestAccOneView_preAllocatedNodesAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]any{"false": false, "no": "no", "missing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := acctest.StartOneView(t, nil, 1)
			theirs := o.Fake.AddProfile(fakeoneview.NewProfile{Name: "pre-allocated", HardwareURI: o.Blades.Hardware[0], TemplateURI: o.Blades.TemplateURI})
			o.Fake.MarkOthers(theirs)
			info := `server_hardware_uri = ` + quoted(o.Blades.Hardware[0])
			if flag != nil {
				info += "\n    dynamic_allocation = " + quoted(name)
			}
			host := s.Provider(o.Setting()) + hostBlock(s.Name("h"), `driver = "fake-hardware"`, target("available"), `inspect = true`,
				"driver_info = {\n    "+info+"\n  }", "capabilities = { server_profile_template_uri = "+quoted(o.Blades.TemplateURI)+" }")
			w := acctest.NewWorkspace(t, host+deployment("metal_host.h.id", image("v1"), `power_state = "on"`))
			w.Must("apply", "-auto-approve")
			noChanges(t, w)
			w.Configure(host + deployment("metal_host.h.id", image("v2"), `power_state = "off"`))
			w.Must("apply", "-auto-approve")
			noChanges(t, w)
			wantVerbs(t, s, text(s.Node(s.Name("h"))["uuid"]), "manage", "inspect", "provide", "active", "rebuild")
			want := []string{"is pre-allocated (driver_info.dynamic_allocation is false)", "Move it to dynamic allocation first, with metal-oneview migrate"}
			if flag == nil {
				want = []string{"is used by OneView: server profile pre-allocated", "if the profile is the node's own, from pre-allocation, run metal-oneview migrate for the node first"}
			}
			w.Configure(host + deployment("metal_host.h.id", image("v2"), `power_state = "off"`) + profile("metal_host.h.id"))
			fails(t, w, apply(), want...)
			w.Configure(host)
			w.Must("apply", "-auto-approve")
			noChanges(t, w)
			destroy(t, s, w)
			for _, r := range o.Fake.Requests() {
				if r.Method != "GET" && r.Path != "/rest/login-sessions" {
					t.Errorf("%s %s was sent", r.Method, r.Path)
				}
			}
			if o.Hardware(1).ProfileURI != theirs {
				t.Errorf("the hardware is %+v", o.Hardware(1))
			}
		})
	}
}

// A flag that says neither is an error: whose machine it is must not be guessed.
func TestAccOneView_unclearFlagStopsEverything(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	s.Patch(node, "add", "/driver_info/dynamic_allocation", "maybe")
	unmoved := unmoved(t, s, node)
	for _, config := range []string{profile(quoted(node)), deployment(quoted(node), image("v1"))} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+config)
		fails(t, w, apply(), `driver_info.dynamic_allocation: "maybe" is neither true nor false`)
		unmoved()
	}
}
