package resources_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

// held starts a site with a node whose blade has the profile "p", with further settings, and a workspace that has applied it.
func held(t *testing.T, settings ...string) (s *acctest.Site, o *acctest.OneView, w *acctest.Workspace, node string) {
	t.Helper()
	s = acctest.Start(t, nil)
	o = acctest.StartOneView(t, nil, 1)
	node = addBlade(t, s, o, 1)
	w = acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node), settings...))
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	return s, o, w, node
}

// release destroys what held has made, of which nothing may be left.
func release(t *testing.T, s *acctest.Site, o *acctest.OneView, w *acctest.Workspace, node string) {
	t.Helper()
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

// Only the appliance's own word that a profile does not exist drops it from the state.
func TestAccOneView_troubleNeverDropsAResource(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	for name, tt := range map[string]struct {
		fault fakeoneview.Fault
		want  string
	}{
		"no right":            {fakeoneview.Fault{Path: oneProfile, Effect: fakeoneview.NotAuthorized()}, "the user lacks the right to do this"},
		"nobody is logged in": {fakeoneview.Fault{Path: "^/rest/login-sessions$", Effect: fakeoneview.BadLogin()}, "Check username, password and domain"},
		"down":                {fakeoneview.Fault{Path: oneProfile, Effect: fakeoneview.Unavailable(10 * time.Minute)}, "503"},
		"hardware unknown":    {fakeoneview.Fault{Path: oneHardware, Effect: fakeoneview.Refuse(http.StatusNotFound, trouble)}, "404"},
		"a proxy's 404": {fakeoneview.Fault{Path: oneProfile, Effect: fakeoneview.Effect{
			Refuse: &fakeoneview.Reply{Status: http.StatusNotFound, Body: []byte("404 page not found")},
		}}, "not from OneView"},
	} {
		tt.fault.Count = fakeoneview.Always
		o.Fake.Inject(tt.fault)
		o.Fake.ResetRequests()
		output := fails(t, w, []string{"apply", "-auto-approve", "-refresh-only"}, tt.want)
		if o.Fake.Count(http.MethodPost, "^/rest/login-sessions$") > 3 {
			t.Errorf("%s: the login was tried %d times", name, o.Fake.Count(http.MethodPost, "^/rest/login-sessions$"))
		}
		if inState(t, w, profileAddress) == nil {
			t.Fatalf("%s: the resource is gone from the state:\n%s", name, output)
		}
		o.Fake.ClearFaults()
	}
	o.Fake.ExpireSessions()
	noChanges(t, w)
	release(t, s, o, w, node)
}

func TestAccOneView_deletedProfileIsMadeAnew(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	o.GiveBack(1) // somebody removes it
	output, _ := w.Plan()
	mention(t, output, "Server profile is gone", "of node "+s.Name("blade1")+" ("+node+") does not exist in OneView any more", "1 to add, 0 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	noChanges(t, w)
	release(t, s, o, w, node)
}

// A profile that was removed and whose hardware has another one is neither brought back nor fought for.
func TestAccOneView_replacedProfileIsLeftToItsUser(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	o.GiveBack(1)
	theirs := o.Take(1)
	output, _ := w.Plan()
	mention(t, output, append(inUse(o, theirs), "Server profile is gone", "Server hardware is in use")...)
	fails(t, w, apply(), refusal(o, theirs)...)
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
		return s.Provider(o.Setting()) + profile(quoted(node), `name = `+quoted(name))
	}
	rename := func(name string) {
		o.Fake.EditProfile(o.Profiles()[0].URI, func(document map[string]any) { document["name"] = name })
	}
	if name, want := o.Profiles()[0].Name, s.Name("blade1")+" ["+node+"]"; name != want {
		t.Errorf("the profile is called %q, want %q", name, want)
	}
	rename("another name") // without a name in the configuration, that is as good as any
	noChanges(t, w)
	w.Configure(config("web-0"))
	mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	if name := o.Profiles()[0].Name; name != "web-0" {
		t.Errorf("the profile is called %q", name)
	}
	noChanges(t, w)
	rename("another name")
	output, _ := w.Plan()
	mention(t, output, `"another name" -> "web-0"`, "will be updated in-place")
	w.Must("apply", "-auto-approve")
	if name := o.Profiles()[0].Name; name != "web-0" {
		t.Errorf("the profile is called %q", name)
	}
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

// differently is a change of a template, or of a profile, for which a server has to be off.
func differently(document map[string]any) {
	document["boot"] = map[string]any{"manageBoot": true, "complianceControl": "Checked", "order": []any{"HardDisk", "PXE"}}
}

func TestAccOneView_changedTemplateIsAppliedWhenNothingRuns(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(o *acctest.OneView){
		"template": func(o *acctest.OneView) { o.Fake.EditTemplate(o.Blades.TemplateURI, differently) },
		"profile":  func(o *acctest.OneView) { o.Fake.EditProfile(o.Profiles()[0].URI, differently) }, // somebody has edited ours
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o, w, node := held(t)
			before := o.Profiles()[0].URI
			edit(o)
			o.Fake.PowerOn(o.Blades.Hardware[0])
			output, _ := w.Plan()
			mention(t, output, "Server profile differs from its template", "Change boot as in the template", "Server profile template is applied",
				"if that needs it, the server is switched off", `"NonCompliant" -> (known after apply)`)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			if p := inState(t, w, profileAddress); p.Values["template_compliance"] != "Compliant" || p.Values["id"] != before {
				t.Errorf("in state is %+v", p)
			}
			noChanges(t, w)
			release(t, s, o, w, node)
		})
	}
}

func TestAccOneView_changedTemplateDoesNotDisturbWhatRuns(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	other := o.Fake.AddTemplate(fakeoneview.Template{Name: "other", TypeURI: o.Blades.TypeURI, GroupURI: o.Blades.GroupURI})
	config := func(settings ...string) string {
		return s.Provider(o.Setting()) + profile(quoted(node), settings...) + deployedProfile()
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	o.Fake.PowerOn(o.Blades.Hardware[0])
	o.Fake.EditTemplate(o.Blades.TemplateURI, differently)
	output, changes := w.Plan()
	mention(t, output, "Server profile differs from its template", "Change boot as in the template")
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}

	// Another template in the configuration is refused before anything happens; nor may the profile go.
	o.Fake.ResetRequests()
	w.Configure(config(`server_profile_template_uri = ` + quoted(other)))
	fails(t, w, []string{"plan"}, "Template cannot be changed now", `is in state "active"`, "applying another template switches the server off", "Undeploy it first")
	w.Configure(s.Provider(o.Setting()) + deployment(quoted(node), image("v1")))
	fails(t, w, apply(), "Could not remove server profile", `is in state "active"`, "destroy its metal_deployment first")
	w.Configure(config())
	w.Must("apply", "-auto-approve")
	if power := o.Hardware(1).Power; power != fakeoneview.On {
		t.Errorf("the server is %s", power)
	}
	for _, r := range o.Fake.Requests() {
		if r.Method != http.MethodGet && r.Path != "/rest/login-sessions" {
			t.Errorf("%s %s was sent", r.Method, r.Path)
		}
	}
	wantHeld(t, s, o, w, node)

	// As soon as nothing runs, the plan has it.
	w.Configure(s.Provider(o.Setting()) + profile(quoted(node)))
	w.Must("apply", "-auto-approve")
	w.Must("apply", "-auto-approve")
	if p := inState(t, w, profileAddress); p.Values["template_compliance"] != "Compliant" {
		t.Errorf("in state is %+v", p)
	}
	noChanges(t, w)
	release(t, s, o, w, node)
}

// changedTemplate is held with a changed template, and with the means to do something at the nth request for a node from now on.
func changedTemplate(t *testing.T) (s *acctest.Site, o *acctest.OneView, w *acctest.Workspace, node string, at func(nth int32, do func() *fakeironic.Rejection)) {
	t.Helper()
	var left atomic.Int32
	var hook func() *fakeironic.Rejection
	s = acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if strings.HasPrefix(r.URL.Path, "/v1/nodes/") && left.Add(-1) == 0 {
			return hook()
		}
		return nil
	}})
	o = acctest.StartOneView(t, nil, 1)
	node = addBlade(t, s, o, 1)
	w = acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
	w.Must("apply", "-auto-approve")
	o.Fake.EditTemplate(o.Blades.TemplateURI, differently)
	return s, o, w, node, func(nth int32, do func() *fakeironic.Rejection) {
		hook = do
		left.Store(nth)
	}
}

// What was planned for an idle node may not be done to one that runs something by now; nor may it be lost without a word,
// whether the apply finds that out when it plans again or later.
func TestFakeOneView_plannedTemplateThatIsNotAppliedIsTold(t *testing.T) {
	t.Parallel()
	for nth := range int32(2) {
		s, o, w, node, at := changedTemplate(t)
		w.Must("plan", "-out=plan")
		at(nth+1, func() *fakeironic.Rejection {
			s.Fake.Set(node, "provision_state", "active")
			o.Fake.PowerOn(o.Blades.Hardware[0])
			return nil
		})
		mention(t, w.Must("apply", "plan"), "Server profile template is not applied", "of node "+s.Name("blade1")+" ("+node+")", `in state "active"`)
		if p := inState(t, w, profileAddress); p.Values["template_compliance"] != "NonCompliant" || o.Hardware(1).Power != fakeoneview.On {
			t.Errorf("in state is %+v; the server is %+v", p, o.Hardware(1))
		}
		s.Fake.Set(node, "provision_state", "available")
		w.Must("apply", "-auto-approve")
		noChanges(t, w)
		release(t, s, o, w, node)
	}
}

// Whether something runs on a node, Ironic has to say. That it cannot be asked is an error, not a reason to do nothing.
func TestFakeOneView_plannedTemplateIsNotForgottenInTrouble(t *testing.T) {
	t.Parallel()
	s, o, w, node, at := changedTemplate(t)
	for nth, doing := range []string{"Could not plan the server profile of node " + node, "Could not change the server profile of node " + s.Name("blade1")} {
		w.Must("plan", "-out=plan")
		at(int32(nth+1), func() *fakeironic.Rejection {
			return &fakeironic.Rejection{Status: http.StatusForbidden, Body: `{"error_message": "no right today"}`}
		})
		fails(t, w, []string{"apply", "plan"}, doing, "No right today")
	}
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	release(t, s, o, w, node)
}

// A rename is planned as a rename, and does nothing else to what runs, not even what OneView could change while it runs.
func TestAccOneView_renameOfWhatRunsAppliesNoTemplate(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node))+deployedProfile())
	w.Must("apply", "-auto-approve")
	o.Fake.PowerOn(o.Blades.Hardware[0])
	for name, change := range map[string]func(map[string]any){
		"online": func(document map[string]any) {
			document["connectionSettings"] = map[string]any{"manageConnections": true, "connections": []any{}}
		},
		"offline": differently,
	} {
		o.Fake.EditTemplate(o.Blades.TemplateURI, change)
		w.Configure(s.Provider(o.Setting()) + profile(quoted(node), `name = `+quoted("web-"+name)) + deployedProfile())
		w.Must("apply", "-auto-approve")
		if p := inState(t, w, profileAddress); p.Values["name"] != "web-"+name || p.Values["template_compliance"] != "NonCompliant" {
			t.Errorf("%s: in state is %+v", name, p)
		}
		noChanges(t, w)
	}
	if n := o.Fake.Count(http.MethodPatch, oneProfile); n != 0 || o.Hardware(1).Power != fakeoneview.On {
		t.Errorf("the template was applied %d times; the server is %+v", n, o.Hardware(1))
	}
	wantHeld(t, s, o, w, node)
	w.Configure(s.Provider(o.Setting()) + profile(quoted(node), `name = "web"`)) // which ends the deployment first
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
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

	w.Configure(s.Provider(o.Setting()) + profile(quoted(node), `server_profile_template_uri = `+quoted(rack.TemplateURI)))
	fails(t, w, apply(), "is for server hardware type "+rack.TypeURI)
	if p := inState(t, w, profileAddress); p == nil || p.Values["server_profile_template_uri"] != o.Blades.TemplateURI {
		t.Errorf("in state is %+v", p)
	}
	w.Configure(s.Provider(o.Setting()) + profile(quoted(node), `server_profile_template_uri = `+quoted(other)))
	output, _ := w.Plan()
	mention(t, output, "Server profile template is applied", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	if p := o.Profiles()[0]; p.URI != before || p.TemplateURI != other {
		t.Errorf("the profile is %+v", p)
	}
	if p := inState(t, w, profileAddress); p.Values["template_compliance"] != "Compliant" || p.Values["server_profile_template_uri"] != other {
		t.Errorf("in state is %+v", p)
	}
	noChanges(t, w)
	release(t, s, o, w, node)
}

// A profile that is edited in the very moment of its deletion is read again, and is still ours.
func TestAccOneView_editDuringDeletion(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	uri := o.Profiles()[0].URI
	o.Fake.Inject(fakeoneview.Fault{Method: http.MethodDelete, Path: oneProfile, Effect: fakeoneview.Meanwhile(func() { o.Fake.EditProfile(uri, differently) })})
	release(t, s, o, w, node)
	if tried := o.Fake.Count(http.MethodDelete, oneProfile); tried != 2 {
		t.Errorf("the deletion was sent %d times, want it refused once", tried)
	}
}

// Somebody who takes the applied profile out of driver_info has not given it to another user: its mark says whose it is.
func TestAccOneView_forgottenProfileIsTakenBack(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	uri := o.Profiles()[0].URI
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
	output, _ := w.Plan()
	mention(t, output, "Unfinished server profile is completed", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	if p := o.Profiles()[0]; p.URI != uri {
		t.Errorf("the profile is %+v", p)
	}
	noChanges(t, w)
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
	release(t, s, o, w, node)
}

// A node that is gone from Ironic leaves a profile that is destroyed.
func TestAccOneView_profileOfANodeThatIsGone(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	host := s.Provider(o.Setting()) + blade(s, o)
	w := acctest.NewWorkspace(t, host+profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil)
	output, _ := w.Plan()
	mention(t, output, "Server profile without a node", "does not exist in Ironic any more; its server profile "+s.Name("h"))
	w.Must("destroy", "-auto-approve")
	wantNoProfile(t, o)
}

// Once others have moved a profile to another server, it is theirs, and stays there even if its node is gone.
func TestAccOneView_movedProfileIsLeftToItsUser(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *acctest.Site){
		"node gone": func(s *acctest.Site) { s.Must(http.MethodDelete, "nodes/"+s.Name("h"), nil) },
		"node without hardware": func(s *acctest.Site) {
			s.Patch(s.Name("h"), "remove", "/driver_info/server_hardware_uri", nil)
		},
		"node as it was": func(*acctest.Site) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := acctest.StartOneView(t, nil, 2)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o)+profile("metal_host.h.id"))
			w.Must("apply", "-auto-approve")
			uri := o.Profiles()[0].URI
			o.Fake.MoveProfile(uri, o.Blades.Hardware[1])
			w.Plan() // which says that something is wrong, and must not forget where the profile was applied
			w.Run("apply", "-refresh-only", "-auto-approve")
			if p := inState(t, w, profileAddress); p.Values["server_hardware_uri"] != o.Blades.Hardware[0] {
				t.Errorf("in state is %+v", p)
			}
			lose(s)
			w.Run("apply", "-refresh-only", "-auto-approve")
			mention(t, w.Must("destroy", "-auto-approve", "-refresh=false"), "Server profile is left", uri,
				"it is on "+o.Blades.Hardware[1]+" now, not on "+o.Blades.Hardware[0]+", the node's", "delete it in OneView")
			if h := o.Hardware(2); h.ProfileURI != uri || h.Power != fakeoneview.On {
				t.Errorf("the other user's server is %+v", h)
			}
		})
	}
}

// A node that is renamed behind Terraform's back keeps its profile, and loses it when the resource is destroyed.
func TestAccOneView_profileOfANodeThatIsRenamed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	for _, refresh := range []string{"-refresh=true", "-refresh=false"} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(text(s.Node(node)["name"]))))
		w.Must("apply", "-auto-approve")
		s.Patch(node, "replace", "/name", s.Name("renamed"+refresh[9:]))
		fails(t, w, []string{"plan"}, "No such node")
		w.Configure(s.Provider(o.Setting()) + profile(quoted(s.Name("renamed"+refresh[9:]))))
		if refresh == "-refresh=true" {
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			noChanges(t, w)
		}
		w.Must("destroy", "-auto-approve", refresh)
		wantFree(t, s, o, node)
	}
}

// A change of the node makes the profile anew, on other hardware.
func TestAccOneView_otherNodeMeansAnotherProfile(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 2)
	first, second := addBlade(t, s, o, 1), addBlade(t, s, o, 2)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(first)))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider(o.Setting()) + profile(quoted(second)))
	mention(t, w.Must("apply", "-auto-approve"), "forces replacement", "1 added, 0 changed, 1 destroyed",
		"Server profile is removed", "of node "+s.Name("blade1")+" ("+first+") is removed. For that its server is switched off")
	if o.Hardware(1).ProfileURI != "" || applied(s, first) != "" {
		t.Errorf("the first blade is %+v; Ironic has %q", o.Hardware(1), applied(s, first))
	}
	if o.Hardware(2).ProfileURI != applied(s, second) || applied(s, second) == "" {
		t.Errorf("the second blade is %+v; Ironic has %q", o.Hardware(2), applied(s, second))
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A node may be called by its name or by its UUID. Both are the same node, whose profile stays.
func TestAccOneView_anotherNameForTheSameNodeChangesNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	byName, byUUID := s.Provider(o.Setting())+profile(quoted(s.Name("blade1"))), s.Provider(o.Setting())+profile(quoted(node))
	w := acctest.NewWorkspace(t, byName)
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	uri := o.Profiles()[0].URI
	o.Fake.PowerOn(o.Blades.Hardware[0])
	for _, config := range []string{byUUID, byName} {
		w.Configure(config)
		mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
		noChanges(t, w)
	}
	w.Must("state", "rm", profileAddress)
	w.Must("import", profileAddress, uri) // which writes the UUID into the state
	mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	wantHeld(t, s, o, w, node)
	if p := o.Hardware(1); p.ProfileURI != uri || p.Power != fakeoneview.On {
		t.Errorf("the server is %+v", p)
	}
	w.Configure(s.Provider(o.Setting()) + profile(`"no-such-node"`))
	fails(t, w, []string{"plan"}, "No such node", "Ironic has no node no-such-node")
	w.Configure(byName)
	release(t, s, o, w, node)
}

// What a destruction does to the server is said before.
func TestAccOneView_aRemovalIsAnnounced(t *testing.T) {
	t.Parallel()
	s, o, w, node := held(t)
	w.Configure(s.Provider(o.Setting()))
	output, _ := w.Plan()
	mention(t, output, "Server profile is removed", "of node "+s.Name("blade1")+" ("+node+") is removed. For that its server is switched off; then it is free for all users of OneView")
	o.GiveBack(1)
	o.Take(1)
	if output, _ := w.Plan(); strings.Contains(output, "Server profile is removed") {
		t.Errorf("another user's profile is said to be removed:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	o.GiveBack(1)
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
}
