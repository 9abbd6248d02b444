package oneviewprofile_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// trouble is the error of a failed task of the appliance.
var trouble = fakeoneview.Problem{
	Code: "ApplyConnectionFailure", Message: "The connection could not be applied.", Actions: []string{"Check the interconnect."},
}

func TestAccOneView_profileWithAWarningIsApplied(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		o.Fake.Inject(fakeoneview.Fault{
			Method: method, Path: "^/rest/server-profiles", Count: fakeoneview.Always,
			Effect: fakeoneview.Warn(trouble),
		})
	}
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

// A profile that can be neither applied nor removed stays in state. The error names it, and the next apply removes it.
func TestAccOneView_leftoverIsRemovedByNextApply(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	o.Fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: allProfiles, Effect: fakeoneview.FailApply(trouble, false)})
	o.Fake.Inject(fakeoneview.Fault{
		Method: http.MethodDelete, Path: oneProfile, Count: fakeoneview.Always,
		Effect: fakeoneview.FailValidation(trouble),
	})
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	output := acctest.Fails(t, w, acctest.Apply(), "The connection could not be applied", "because it could not be removed")
	left := o.Profiles()
	if len(left) != 1 {
		t.Fatalf("profiles are left: %+v", left)
	}
	acctest.Mention(t, output, `Server profile "`+left[0].Name+`" (`+left[0].URI+`) is left on server hardware `+o.Hardware(1).Name,
		"delete it in OneView; switch the server off first")
	if p := acctest.InState(t, w, profileAddress); p == nil || !p.Tainted || p.Values["id"] != left[0].URI {
		t.Errorf("the state has %+v", p)
	}
	o.Fake.ClearFaults()
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A profile that cannot be deleted stays in state.
func TestAccOneView_failedDeletionKeepsTheResource(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	o.Fake.Inject(fakeoneview.Fault{
		Method: http.MethodDelete, Path: oneProfile, Count: fakeoneview.Always,
		Effect: fakeoneview.FailValidation(trouble),
	})
	acctest.Fails(t, w, destroyAll(), "Could not remove server profile", "of node "+s.Name("blade1")+" ("+node+")",
		"The connection could not be applied")
	wantHeld(t, s, o, w, node)
	o.Fake.ClearFaults()
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_mismatchIsRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 2)
	rack := o.Fake.AddRackServers(1)
	virtual := o.Fake.AddTemplate(fakeoneview.Template{Name: "virtual MACs", TypeURI: o.Blades.TypeURI, GroupURI: o.Blades.GroupURI})
	o.Fake.EditTemplate(virtual, func(document map[string]any) { document["macType"] = "Virtual" })
	o.Fake.AddProfile(fakeoneview.NewProfile{Name: "theirs", HardwareURI: o.Blades.Hardware[1]})
	o.Fake.MarkOthers(o.Hardware(2).ProfileURI)
	node := addBlade(t, s, o, 1)
	other := site.AddNode(t, s, "other", map[string]any{"driver_info": bladeInfo(o, 1), "properties": map[string]any{
		"capabilities": "server_profile_template_uri:" + o.Blades.TemplateURI + ",enclosure_group_uri:/rest/enclosure-groups/NO-SUCH",
	}})
	bare := site.AddNode(t, s, "bare", map[string]any{"driver_info": bladeInfo(o, 1)})
	foreign := site.AddNode(t, s, "foreign", nil)
	gone := site.AddNode(t, s, "gone", map[string]any{"driver_info": map[string]any{"server_hardware_uri": "/rest/server-hardware/none"}})
	mac := addBlade(t, s, o, 2)
	s.Patch(mac, "add", "/driver_info/server_hardware_uri", o.Blades.Hardware[0])
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": mac, "address": s.MAC(1)})
	for _, tt := range []struct {
		name, config string
		want         []string
	}{
		{"another type", profile(acctest.Quoted(node), `server_profile_template_uri = `+acctest.Quoted(rack.TemplateURI)), []string{
			"cannot get a server profile on " + o.Hardware(1).Name, "is for server hardware type " + rack.TypeURI,
			"the hardware is of type " + o.Blades.TypeURI,
			"is for enclosure group (none), the hardware is in group " + o.Blades.GroupURI,
		}},
		{
			"virtual MACs", profile(acctest.Quoted(node), `server_profile_template_uri = `+acctest.Quoted(virtual)),
			[]string{"template virtual MACs", "set macType to Physical"},
		},
		{
			"another group", profile(acctest.Quoted(other)),
			[]string{"the node's capabilities say enclosure_group_uri /rest/enclosure-groups/NO-SUCH"},
		},
		{"other MACs", profile(acctest.Quoted(mac)), []string{"the node has ports [" + s.MAC(1) + "]", "none is the same"}},
		{"no template", profile(acctest.Quoted(bare)), []string{"has no server profile template", "server_profile_template_uri"}},
		{
			"no such template", profile(acctest.Quoted(bare), `server_profile_template_uri = "/rest/server-profile-templates/none"`),
			[]string{"/rest/server-profile-templates/none", "404"},
		},
		{"no hardware", profile(acctest.Quoted(foreign)), []string{"driver_info.server_hardware_uri is missing"}},
		{"other hardware than the node", profile(acctest.Quoted(node), `server_hardware_uri = `+acctest.Quoted(rack.Hardware[0])), []string{
			"its driver_info.server_hardware_uri is " + o.Blades.Hardware[0] + ", not " + rack.Hardware[0] + ". Correct one of the two",
		}},
		{"no such hardware", profile(acctest.Quoted(gone)), []string{"/rest/server-hardware/none", "404"}},
		{"name of another", profile(acctest.Quoted(node), `name = "theirs"`), []string{
			"there is another server profile named theirs",
			"which is applied to " + o.Blades.Hardware[1], "Choose another name",
		}},
		{
			"no such node", profile(acctest.Quoted("6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21")),
			[]string{"Ironic has no node 6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"},
		},
	} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+tt.config)
		acctest.Fails(t, w, acctest.Apply(), tt.want...)
		if p := acctest.InState(t, w, profileAddress); p != nil {
			t.Errorf("%s: the state has %+v", tt.name, p)
		}
	}
	if posted := o.Fake.Count(http.MethodPost, allProfiles); posted != 0 {
		t.Errorf("%d profiles were requested", posted)
	}
}

func TestAccOneView_wrongArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, "")
	for setting, want := range map[string]string{
		`server_hardware_uri = "Encl1, bay 1"`:                               "must be a URI such as /rest/server-hardware/...",
		`server_hardware_uri = "/rest/server-profiles/x"`:                    "must be a URI such as /rest/server-hardware/...",
		`server_profile_template_uri = "/rest/server-profile-templates/a/b"`: "must be a URI such as /rest/server-profile-templates/...",
		`name = ""`:           "string length must be between 1 and 100",
		`name = "web's node"`: "must have no quotes, and no spaces at its ends",
		`name = "web "`:       "must have no quotes, and no spaces at its ends",
	} {
		w.Configure(s.Provider(o.Setting()) + profile(`"n1"`, setting))
		acctest.Fails(t, w, []string{"validate"}, want)
	}
	if asked := o.Fake.Requests(); len(asked) > 0 {
		t.Errorf("validate has sent requests to OneView: %v", asked)
	}
}

// Without a configured appliance, the resource names the missing setting. All other resources work.
func TestAccOneView_missingSettingIsNamed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	host := blade(s, o)
	w := acctest.NewWorkspace(t, s.Provider()+host)
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + host + profile("metal_host.h.id"))
	acctest.Fails(t, w, []string{"plan"}, "OneView is not configured", "Set oneview in the provider block, or ONEVIEW_ENDPOINT, "+
		"ONEVIEW_USERNAME and ONEVIEW_PASSWORD in the environment")
	acctest.Fails(t, w, []string{"import", profileAddress, s.Name("h")}, "OneView is not configured")
	w.Must("validate")
	w.Configure(s.Provider() + host)
	acctest.Destroy(t, s, w)
	if asked := o.Fake.Requests(); len(asked) > 0 {
		t.Errorf("the provider has sent requests to OneView: %v", asked)
	}
}
