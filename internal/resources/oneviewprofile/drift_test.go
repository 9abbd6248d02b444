package oneviewprofile_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// held starts a site with a node whose blade has the profile "p", with further settings, and a workspace that has applied it.
func held(t *testing.T, settings ...string) (s *site.Site, o *site.OneView, w *acctest.Workspace, node string) {
	t.Helper()
	s = site.Start(t, nil)
	o = site.StartOneView(t, nil, 1)
	node = addBlade(t, s, o, 1)
	w = acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node), settings...))
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	return s, o, w, node
}

// release destroys the resources of held, and checks that no profile is left.
func release(t *testing.T, s *site.Site, o *site.OneView, w *acctest.Workspace, node string) {
	t.Helper()
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

// The refresh removes a profile from the state only if the appliance itself says that it does not exist.
func TestAccOneView_errorsKeepTheResource(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	for name, tt := range map[string]struct {
		fault fakeoneview.Fault
		want  string
	}{
		"no right": {
			fakeoneview.Fault{Path: oneProfile, Effect: fakeoneview.NotAuthorized()},
			"the user lacks the right to do this",
		},
		"login refused": {
			fakeoneview.Fault{Path: "^/rest/login-sessions$", Effect: fakeoneview.BadLogin()},
			"Check username, password and domain",
		},
		"down":             {fakeoneview.Fault{Path: oneProfile, Effect: fakeoneview.Unavailable(10 * time.Minute)}, "503"},
		"hardware unknown": {fakeoneview.Fault{Path: oneHardware, Effect: fakeoneview.Refuse(http.StatusNotFound, trouble)}, "404"},
		"a proxy's 404": {fakeoneview.Fault{Path: oneProfile, Effect: fakeoneview.Effect{
			Refuse: &fakeoneview.Reply{Status: http.StatusNotFound, Body: []byte("404 page not found")},
		}}, "not from OneView"},
	} {
		tt.fault.Count = fakeoneview.Always
		o.Fake.Inject(tt.fault)
		o.Fake.ResetRequests()
		output := acctest.Fails(t, w, []string{"apply", "-auto-approve", "-refresh-only"}, tt.want)
		if o.Fake.Count(http.MethodPost, "^/rest/login-sessions$") > 3 {
			t.Errorf("%s: the provider tried to log in %d times", name, o.Fake.Count(http.MethodPost, "^/rest/login-sessions$"))
		}
		if acctest.InState(t, w, profileAddress) == nil {
			t.Fatalf("%s: the resource is gone from the state:\n%s", name, output)
		}
		o.Fake.ClearFaults()
	}
	o.Fake.ExpireSessions()
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}

func TestAccOneView_deletedProfileIsCreatedAgain(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	o.GiveBack(1) // another user removes it
	output, _ := w.Plan()
	acctest.Mention(t, output, "Server profile is gone", "of node "+s.Name("blade1")+" ("+node+") does not exist in OneView any more",
		"1 to add, 0 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}

// If another user has replaced the profile, the apply fails and changes nothing.
func TestAccOneView_replacedProfileIsNotTouched(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	o.GiveBack(1)
	theirs := o.Take(1)
	output, _ := w.Plan()
	acctest.Mention(t, output, append(inUse(o, theirs), "Server profile is gone", "Server hardware is in use")...)
	acctest.Fails(t, w, acctest.Apply(), refusal(o, theirs)...)
	w.Must("destroy", "-auto-approve")
	if o.Hardware(1).ProfileURI == "" || o.Hardware(1).Power != fakeoneview.On {
		t.Errorf("the other user's server is %+v", o.Hardware(1))
	}
	o.GiveBack(1)
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

func TestAccOneView_renamedProfile(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	config := func(name string) string {
		return s.Provider(o.Setting()) + profile(acctest.Quoted(node), `name = `+acctest.Quoted(name))
	}
	rename := func(name string) {
		o.Fake.EditProfile(o.Profiles()[0].URI, func(document map[string]any) { document["name"] = name })
	}
	if name, want := o.Profiles()[0].Name, s.Name("blade1")+" ["+node+"]"; name != want {
		t.Errorf("the profile has the name %q, want %q", name, want)
	}
	rename("another name") // without a configured name, any name is fine
	acctest.NoChanges(t, w)
	w.Configure(config("web-0"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	if name := o.Profiles()[0].Name; name != "web-0" {
		t.Errorf("the profile has the name %q", name)
	}
	acctest.NoChanges(t, w)
	rename("another name")
	output, _ := w.Plan()
	acctest.Mention(t, output, `"another name" -> "web-0"`, "will be updated in-place")
	w.Must("apply", "-auto-approve")
	if name := o.Profiles()[0].Name; name != "web-0" {
		t.Errorf("the profile has the name %q", name)
	}
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

// differently is a change of a template or profile that requires the server to be off.
func differently(document map[string]any) {
	document["boot"] = map[string]any{"manageBoot": true, "complianceControl": "Checked", "order": []any{"HardDisk", "PXE"}}
}

func TestAccOneView_changedTemplateIsAppliedToIdleNode(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(o *site.OneView){
		"template": func(o *site.OneView) { o.Fake.EditTemplate(o.Blades.TemplateURI, differently) },
		"profile":  func(o *site.OneView) { o.Fake.EditProfile(o.Profiles()[0].URI, differently) }, // another user edits the profile
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o, w, node := held(t)
			before := o.Profiles()[0].URI
			edit(o)
			o.Fake.PowerOn(o.Blades.Hardware[0])
			output, _ := w.Plan()
			acctest.Mention(t, output, "Server profile template is applied", "Change boot as in the template",
				"OneView switches the server off if the change requires that", `"NonCompliant" -> (known after apply)`)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			if p := acctest.InState(t, w, profileAddress); p.Values["template_compliance"] != "Compliant" || p.Values["id"] != before {
				t.Errorf("the state has %+v", p)
			}
			acctest.NoChanges(t, w)
			release(t, s, o, w, node)
		})
	}
}

func TestAccOneView_changedTemplateIsNotAppliedToDeployedNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	other := o.Fake.AddTemplate(fakeoneview.Template{Name: "other", TypeURI: o.Blades.TypeURI, GroupURI: o.Blades.GroupURI})
	config := func(settings ...string) string {
		return s.Provider(o.Setting()) + profile(acctest.Quoted(node), settings...) + deployedProfile()
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	o.Fake.PowerOn(o.Blades.Hardware[0])
	o.Fake.EditTemplate(o.Blades.TemplateURI, differently)
	output, changes := w.Plan()
	acctest.Mention(t, output, "Server profile template is not applied", "Change boot as in the template")
	acctest.NeverMention(t, output, "in the template..")
	if n := strings.Count(output, "Warning:"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, output)
	}
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}

	// The plan refuses another template in the configuration, and the provider does not remove the profile.
	o.Fake.ResetRequests()
	w.Configure(config(`server_profile_template_uri = ` + acctest.Quoted(other)))
	acctest.Fails(t, w, []string{"plan"}, "Template cannot be changed now", `is in state "active"`,
		"applying another template switches the server off", "Destroy the metal_deployment of the node first")
	w.Configure(s.Provider(o.Setting()) + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	acctest.Fails(t, w, acctest.Apply(), "Could not remove server profile", `is in state "active"`, "destroy its metal_deployment first")
	w.Configure(config())
	w.Must("apply", "-auto-approve")
	if power := o.Hardware(1).Power; power != fakeoneview.On {
		t.Errorf("the server is %s", power)
	}
	for _, r := range o.Fake.Requests() {
		if r.Method != http.MethodGet && r.Path != "/rest/login-sessions" {
			t.Errorf("the provider has sent %s %s", r.Method, r.Path)
		}
	}
	wantHeld(t, s, o, w, node)

	// Once the node runs no deployment, the plan applies the template.
	w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	w.Must("apply", "-auto-approve")
	if p := acctest.InState(t, w, profileAddress); p.Values["template_compliance"] != "Compliant" {
		t.Errorf("the state has %+v", p)
	}
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}

// changedTemplate is held with a changed template. The function at runs a hook at the nth request for a node from its call on.
func changedTemplate(
	t *testing.T,
) (s *site.Site, o *site.OneView, w *acctest.Workspace, node string, at func(nth int32, do func() *fakeironic.Rejection)) {
	t.Helper()
	var left atomic.Int32
	var hook func() *fakeironic.Rejection
	s = site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if strings.HasPrefix(r.URL.Path, "/v1/nodes/") && left.Add(-1) == 0 {
			return hook()
		}
		return nil
	}})
	o = site.StartOneView(t, nil, 1)
	node = addBlade(t, s, o, 1)
	w = acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	o.Fake.EditTemplate(o.Blades.TemplateURI, differently)
	return s, o, w, node, func(nth int32, do func() *fakeironic.Rejection) {
		hook = do
		left.Store(nth)
	}
}

// If the node runs a deployment by the time of the apply, the apply warns that it does not apply the template. It may notice that when
// it plans again, or later.
func TestFakeOneView_applyWarnsOfPlannedTemplateOfRunningNode(t *testing.T) {
	t.Parallel()
	for nth := range int32(2) {
		s, o, w, node, at := changedTemplate(t)
		w.Must("plan", "-out=plan")
		at(nth+1, func() *fakeironic.Rejection {
			s.Fake.Set(node, "provision_state", "active")
			o.Fake.PowerOn(o.Blades.Hardware[0])
			return nil
		})
		acctest.Mention(t, w.Must("apply", "plan"), "Server profile template is not applied", "of node "+s.Name("blade1")+" ("+node+")",
			`in state "active"`)
		if p := acctest.InState(t, w, profileAddress); p.Values["template_compliance"] != "NonCompliant" ||
			o.Hardware(1).Power != fakeoneview.On {
			t.Errorf("the state has %+v; the server is %+v", p, o.Hardware(1))
		}
		s.Fake.Set(node, "provision_state", "available")
		w.Must("apply", "-auto-approve")
		acctest.NoChanges(t, w)
		release(t, s, o, w, node)
	}
}

// If the provider cannot ask Ironic whether the node runs a deployment, the apply fails.
func TestFakeOneView_plannedTemplateFailsWithoutAnswerOfIronic(t *testing.T) {
	t.Parallel()
	s, o, w, node, at := changedTemplate(t)
	for nth, doing := range []string{"Could not plan the server profile of node " + node, "Could not change the server profile of node " +
		s.Name("blade1")} {
		w.Must("plan", "-out=plan")
		at(int32(nth+1), func() *fakeironic.Rejection {
			return &fakeironic.Rejection{Status: http.StatusForbidden, Body: `{"error_message": "no right today"}`}
		})
		acctest.Fails(t, w, []string{"apply", "plan"}, doing, "no right today")
	}
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}

// Renaming the profile of a deployed node does not apply the template, not even the parts that OneView could change online.
func TestAccOneView_renameAppliesNoTemplate(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node))+deployedProfile())
	w.Must("apply", "-auto-approve")
	o.Fake.PowerOn(o.Blades.Hardware[0])
	for name, change := range map[string]func(map[string]any){
		"online": func(document map[string]any) {
			document["connectionSettings"] = map[string]any{"manageConnections": true, "connections": []any{}}
		},
		"offline": differently,
	} {
		o.Fake.EditTemplate(o.Blades.TemplateURI, change)
		w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(node), `name = `+acctest.Quoted("web-"+name)) + deployedProfile())
		w.Must("apply", "-auto-approve")
		if p := acctest.InState(t, w, profileAddress); p.Values["name"] != "web-"+name ||
			p.Values["template_compliance"] != "NonCompliant" {
			t.Errorf("%s: the state has %+v", name, p)
		}
		acctest.NoChanges(t, w)
	}
	if n := o.Fake.Count(http.MethodPatch, oneProfile); n != 0 || o.Hardware(1).Power != fakeoneview.On {
		t.Errorf("the template was applied %d times; the server is %+v", n, o.Hardware(1))
	}
	wantHeld(t, s, o, w, node)
	w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(node), `name = "web"`)) // this destroys the deployment first
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}

func TestAccOneView_otherTemplateIsAppliedInPlace(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	other := o.Fake.AddTemplate(fakeoneview.Template{Name: "other", TypeURI: o.Blades.TypeURI, GroupURI: o.Blades.GroupURI})
	o.Fake.EditTemplate(other, differently)
	rack := o.Fake.AddRackServers(1)
	before := o.Profiles()[0].URI
	o.Fake.PowerOn(o.Blades.Hardware[0])

	w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(node), `server_profile_template_uri = `+acctest.Quoted(rack.TemplateURI)))
	acctest.Fails(t, w, acctest.Apply(), "is for server hardware type "+rack.TypeURI)
	if p := acctest.InState(t, w, profileAddress); p == nil || p.Values["server_profile_template_uri"] != o.Blades.TemplateURI {
		t.Errorf("the state has %+v", p)
	}
	w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(node), `server_profile_template_uri = `+acctest.Quoted(other)))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Server profile template is applied", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	if p := o.Profiles()[0]; p.URI != before || p.TemplateURI != other {
		t.Errorf("the profile is %+v", p)
	}
	if p := acctest.InState(t, w, profileAddress); p.Values["template_compliance"] != "Compliant" ||
		p.Values["server_profile_template_uri"] != other {
		t.Errorf("the state has %+v", p)
	}
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}

// If another client removes applied_server_profile_uri, the mark in the profile still says that the profile was made for the node.
func TestAccOneView_forgottenProfileIsTakenBack(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	uri := o.Profiles()[0].URI
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Unfinished server profile is completed", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	if p := o.Profiles()[0]; p.URI != uri {
		t.Errorf("the profile is %+v", p)
	}
	acctest.NoChanges(t, w)
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
	release(t, s, o, w, node)
}

// A node is deleted from Ironic. Destroying the resource removes its profile.
func TestAccOneView_profileOfDeletedNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	host := s.Provider(o.Setting()) + blade(s, o)
	w := acctest.NewWorkspace(t, host+profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Server profile without a node", "does not exist in Ironic any more, but its server profile "+s.Name("h"))
	w.Must("destroy", "-auto-approve")
	wantNoProfile(t, o)
}

// Another user has moved the profile to another server. The provider does not remove it, even if the node is gone.
func TestAccOneView_movedProfileStays(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *site.Site){
		"node gone": func(s *site.Site) { s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil) },
		"node without hardware": func(s *site.Site) {
			s.Patch(s.Name("h"), "remove", "/driver_info/server_hardware_uri", nil)
		},
		"node unchanged": func(*site.Site) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			o := site.StartOneView(t, nil, 2)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o)+profile("metal_host.h.id"))
			w.Must("apply", "-auto-approve")
			uri := o.Profiles()[0].URI
			o.Fake.MoveProfile(uri, o.Blades.Hardware[1])
			w.Plan() // this plan warns, and must keep the hardware in the state
			w.Run("apply", "-refresh-only", "-auto-approve")
			if p := acctest.InState(t, w, profileAddress); p.Values["server_hardware_uri"] != o.Blades.Hardware[0] {
				t.Errorf("the state has %+v", p)
			}
			lose(s)
			w.Run("apply", "-refresh-only", "-auto-approve")
			acctest.Mention(t, w.Must("destroy", "-auto-approve", "-refresh=false"), "Server profile is not removed", uri,
				"it is on "+o.Blades.Hardware[1]+" now, not on the node's hardware "+o.Blades.Hardware[0], "delete it in OneView")
			if h := o.Hardware(2); h.ProfileURI != uri || h.Power != fakeoneview.On {
				t.Errorf("the other user's server is %+v", h)
			}
		})
	}
}

// A node that is renamed outside Terraform keeps its profile. Destroying the resource removes the profile.
func TestAccOneView_profileOfRenamedNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	for _, refresh := range []string{"-refresh=true", "-refresh=false"} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(site.Text(s.Node(node)["name"]))))
		w.Must("apply", "-auto-approve")
		s.Patch(node, "replace", "/name", s.Name("renamed"+refresh[9:]))
		acctest.Fails(t, w, []string{"plan"}, "No such node")
		w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(s.Name("renamed"+refresh[9:]))))
		if refresh == "-refresh=true" {
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			acctest.NoChanges(t, w)
		}
		w.Must("destroy", "-auto-approve", refresh)
		wantFree(t, s, o, node)
	}
}

// A change of node_id to another node keeps the profile, because a list may have changed. With -replace it moves to the other hardware.
func TestAccOneView_otherNodeKeepsProfile(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 2)
	first, second := addBlade(t, s, o, 1), addBlade(t, s, o, 2)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(first)))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider(o.Setting()) + profile(acctest.Quoted(second)))
	acctest.NoChanges(t, w)
	acctest.Mention(t, w.Must("plan"), "Server profile stays on its node")
	acctest.Mention(t, w.Must("apply", "-auto-approve", "-replace="+profileAddress), "1 added, 0 changed, 1 destroyed")
	if o.Hardware(1).ProfileURI != "" || applied(s, first) != "" {
		t.Errorf("the first blade is %+v; driver_info names %q", o.Hardware(1), applied(s, first))
	}
	if o.Hardware(2).ProfileURI != applied(s, second) || applied(s, second) == "" {
		t.Errorf("the second blade is %+v; driver_info names %q", o.Hardware(2), applied(s, second))
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A change of node_id from the name to the UUID of the same node changes nothing.
func TestAccOneView_nameOrUUIDOfSameNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	byName, byUUID := s.Provider(o.Setting())+profile(acctest.Quoted(s.Name("blade1"))), s.Provider(o.Setting())+
		profile(acctest.Quoted(node))
	w := acctest.NewWorkspace(t, byName)
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	uri := o.Profiles()[0].URI
	o.Fake.PowerOn(o.Blades.Hardware[0])
	for _, config := range []string{byUUID, byName} {
		w.Configure(config)
		acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
		acctest.NoChanges(t, w)
	}
	w.Must("state", "rm", profileAddress)
	w.Must("import", profileAddress, uri) // the import writes the UUID into the state
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	wantHeld(t, s, o, w, node)
	if p := o.Hardware(1); p.ProfileURI != uri || p.Power != fakeoneview.On {
		t.Errorf("the server is %+v", p)
	}
	w.Configure(s.Provider(o.Setting()) + profile(`"no-such-node"`))
	acctest.Fails(t, w, []string{"plan"}, "No such node", "Ironic has no node no-such-node")
	w.Configure(byName)
	release(t, s, o, w, node)
}

// The plan of a destroy says that the server is switched off.
func TestAccOneView_planWarnsOfRemoval(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	w.Configure(s.Provider(o.Setting()))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Server profile is removed", "of node "+s.Name("blade1")+" ("+node+
		") is removed. OneView switches the server off for that")
	o.GiveBack(1)
	o.Take(1)
	if output, _ := w.Plan(); strings.Contains(output, "Server profile is removed") {
		t.Errorf("the plan warns of the removal of another user's profile:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	o.GiveBack(1)
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
}
