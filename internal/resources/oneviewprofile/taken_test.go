package oneviewprofile_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// refusal returns the texts that every refusal of taken hardware contains: that it is in use, and that nothing has changed.
func refusal(o *site.OneView, theirs string) []string {
	return append(inUse(o, theirs), "Server and profile are unchanged")
}

// inUse returns the texts that every message on taken hardware contains: the hardware, its profile, and what to do.
func inUse(o *site.OneView, theirs string) []string {
	return []string{
		"its server hardware " + o.Hardware(1).Name + " (" + o.Blades.Hardware[0] + ") is used by OneView: server profile " + theirs,
		"Wait until its user removes the profile, or choose another node",
	}
}

// unmoved returns a check that Ironic has got no verb, power change or preparation of a node since then.
func unmoved(t *testing.T, s *site.Site, node string) func() {
	t.Helper()
	attributes := []string{"provision_state", "provision_updated_at", "power_state", "instance_uuid", "instance_info"}
	before := s.Node(node)
	site.ForgetVerbs(s)
	return func() {
		t.Helper()
		site.WantVerbs(t, s, site.Text(before["uuid"]))
		after := s.Node(node)
		for _, attribute := range attributes {
			if fmt.Sprint(after[attribute]) != fmt.Sprint(before[attribute]) {
				t.Errorf("%s of the node is %v, was %v", attribute, after[attribute], before[attribute])
			}
		}
	}
}

func TestAccOneView_takenHardwareIsNotDeployed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	s.Patch(node, "add", "/boot_interface", "ipxe") // which boots live ISOs
	for name, config := range map[string]string{
		"node":       acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")),
		"allocation": acctest.Allocation(s) + acctest.Allocated(acctest.Image("v1")),
		"live ISO":   acctest.Deployment(acctest.Quoted(node), `live_iso = { url = "`+acctest.Images+`x.iso" }`),
	} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+config)
		theirs := o.Take(1)
		if name == "allocation" {
			w.Must("apply", "-auto-approve", "-target=metal_allocation.a")
		}
		unmoved := unmoved(t, s, node)
		acctest.Fails(t, w, acctest.Apply(), refusal(o, theirs)...)
		if d := acctest.InState(t, w, acctest.DeploymentAddress); d != nil {
			t.Errorf("%s: the state has %+v", name, d)
		}
		unmoved()
		o.GiveBack(1)
		w.Must("destroy", "-auto-approve")
	}
}

func TestAccOneView_takenHardwareOfDeploymentIsNotTouched(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	config := func(version, power string) string {
		return s.Provider(o.Setting()) + profile(acctest.Quoted(node)) +
			acctest.Deployment("metal_oneview_profile.p.node_id", acctest.Image(version), `power_state = `+acctest.Quoted(power))
	}
	w := acctest.NewWorkspace(t, config("v1", "on"))
	w.Must("apply", "-auto-approve")
	o.GiveBack(1) // another user removes the profile of a deployed node
	theirs := o.Take(1)
	w.Must("state", "rm", profileAddress)
	w.Configure(s.Provider(o.Setting()) + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "on"`))
	w.Must("apply", "-auto-approve")
	unmoved := unmoved(t, s, node)
	for _, tt := range []struct{ name, config string }{
		{"rebuild", acctest.Deployment(acctest.Quoted(node), acctest.Image("v2"), `power_state = "on"`)},
		{"power", acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "off"`)},
		{"undeploy", ""},
	} {
		w.Configure(s.Provider(o.Setting()) + tt.config)
		for range 2 { // a second try is refused too
			acctest.Fails(t, w, acctest.Apply(), refusal(o, theirs)...)
			unmoved()
			if d := acctest.InState(t, w, acctest.DeploymentAddress); d == nil || d.Tainted || d.Values["provision_state"] != "active" ||
				acctest.ImageInState(t, w) != acctest.Images+"v1.qcow2" {
				t.Errorf("%s: the state has %+v", tt.name, d)
			}
		}
	}
	if power := o.Hardware(1).Power; power != fakeoneview.On {
		t.Errorf("the other user's server is %s", power)
	}
	o.GiveBack(1)
	w.Must("destroy", "-auto-approve") // cleans with a temporary profile
	wantFree(t, s, o, node)
}

func TestAccOneView_takenHardwareIsNotPrepared(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(`target_state = "manageable"`))
	w.Must("apply", "-auto-approve")
	theirs := o.Take(1)
	unmoved := unmoved(t, s, s.Name("h"))
	for name, settings := range map[string][]string{
		"provide without maintenance": {acctest.Target("available"), `maintenance = false`},
		"inspect":                     {`inspect = true`, `target_state = "manageable"`},
		"power":                       {`power_state = "on"`, `target_state = "manageable"`},
	} {
		w.Configure(config(settings...))
		acctest.Fails(t, w, acctest.Apply(), refusal(o, theirs)...)
		if h := acctest.InState(t, w, acctest.HostAddress); h == nil || h.Tainted || h.Values["provision_state"] != "manageable" {
			t.Errorf("%s: the state has %+v", name, h)
		}
		unmoved()
	}
	w.Configure(config(acctest.Target("available"), `maintenance = false`, `description = "spare"`))
	acctest.Fails(t, w, acctest.Apply(), refusal(o, theirs)...) // changes that do not concern the machine are applied
	if got := s.Node(s.Name("h"))["description"]; got != "spare" {
		t.Errorf("the description is %v", got)
	}
	o.GiveBack(1)
	w.Must("apply", "-auto-approve")
	if now := s.Node(s.Name("h"))["provision_state"]; now != "available" {
		t.Errorf("the host is %v", now)
	}
	wantFree(t, s, o, s.Name("h"))
	acctest.NoChanges(t, w)
	o.Take(1)
	acctest.Destroy(t, s, w) // deleting the node does not touch the machine
}

// A host whose server is taken holds up nothing: it is enrolled and out of service, and metal oneview sync returns it.
func TestAccOneView_takenHardwareLeavesService(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(acctest.Target("available"), `power_state = "on"`, `inspect = true`)+
		"resource \"terraform_data\" \"pool\" {\n  depends_on = [metal_host.h]\n}\n")
	theirs := o.Take(1)
	output, _ := w.Plan()
	acctest.Mention(t, output, append(inUse(o, theirs), "Server hardware is in use", "takes host "+s.Name("h")+" out of service")...)
	acctest.NeverMention(t, output, "the apply will fail")
	output = w.Must(acctest.Apply()...)
	acctest.Mention(t, output, append(inUse(o, theirs), "Host is used by OneView", "has taken host "+s.Name("h")+" out of service")...)
	if h := acctest.InState(t, w, acctest.HostAddress); h == nil || h.Tainted || h.Values["provision_state"] != "manageable" {
		t.Errorf("the state has %+v", h)
	}
	node := s.Node(s.Name("h"))
	if node["maintenance"] != true || node["maintenance_reason"] != "node in use by OneView" {
		t.Errorf("the node is %v", node)
	}
	if acctest.InState(t, w, "terraform_data.pool") == nil {
		t.Error("what depends on the host was not applied")
	}
	if s.Fake != nil {
		site.WantVerbs(t, s, site.Text(node["uuid"]), "manage")
	}
	output = w.Must(acctest.Apply()...) // neither replaces the host nor fails
	acctest.Mention(t, output, "Host is used by OneView", "Host "+s.Name("h")+" is out of service, because a OneView user has its server")
	if again := s.Node(s.Name("h")); again["uuid"] != node["uuid"] {
		t.Errorf("the node was replaced: %v", again)
	}
	o.GiveBack(1)
	acctest.Destroy(t, s, w)
}

// Another user takes the hardware while its host waits for a slot or for its temporary profile. The provider does not touch it then.
func TestAccOneView_takenWhileAHostIsPrepared(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakeoneview.Fault{
		"before the temporary profile": {Method: http.MethodPost, Path: allProfiles},
		"right before the verb":        {Method: http.MethodGet, Path: oneHardware, Nth: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			o := site.StartOneView(t, nil, 1)
			theirs := ""
			fault.Effect = fakeoneview.Meanwhile(func() { theirs = o.Take(1) })
			settings := []string{acctest.Target("available")}
			if fault.Nth > 0 { // without cleaning the provider reads the hardware twice: before and after waiting for a slot
				settings = append(settings, `automated_clean = false`)
			}
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, settings...))
			o.Fake.Inject(fault)
			acctest.Mention(t, w.Must(acctest.Apply()...), append(inUse(o, theirs), "Host is used by OneView")...)
			if h := acctest.InState(t, w, acctest.HostAddress); h == nil || h.Values["provision_state"] != "manageable" {
				t.Errorf("the state has %+v", h)
			}
			if left := o.Profiles(); len(left) > 0 || applied(s, s.Name("h")) != "" {
				t.Errorf("profiles are left: %+v and %q", left, applied(s, s.Name("h")))
			}
			if s.Fake != nil {
				site.WantVerbs(t, s, site.Text(s.Node(s.Name("h"))["uuid"]), "manage")
			}
			acctest.Destroy(t, s, w)
		})
	}
}

// The plan says that the apply will fail if OneView users have the hardware of a host to be cleaned or inspected.
func TestAccOneView_planWarnsOfTakenHardware(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(acctest.Target("available"), `maintenance = false`))
	theirs := o.Take(1)
	says := func() {
		t.Helper()
		output, _ := w.Plan()
		acctest.Mention(t, output, append(refusal(o, theirs), "Server hardware is in use",
			"As things are now, the apply will fail for host "+s.Name("h"))...)
		acctest.NeverMention(t, output, "Cleaning erases data", "Inspection boots the machine")
	}
	says() // of a new host
	w.Configure(config(acctest.Target("manageable")))
	w.Must(acctest.Apply()...) // this does not touch the machine
	w.Configure(config(acctest.Target("available"), `maintenance = false`, `inspect = true`))
	says()
	acctest.Fails(t, w, acctest.Apply(), refusal(o, theirs)...)

	o.GiveBack(1)
	w.Configure(config(acctest.Target("available")))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Cleaning erases data")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must(destroyAll()...)
}
