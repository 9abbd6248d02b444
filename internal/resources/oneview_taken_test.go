package resources_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

// refusal is what every refusal of taken hardware says: that it is in use, and that nothing has happened.
func refusal(o *acctest.OneView, theirs string) []string {
	return append(inUse(o, theirs), "Nothing was done to either")
}

// inUse is what is said of taken hardware: which it is, whose profile is on it, and what to do.
func inUse(o *acctest.OneView, theirs string) []string {
	return []string{
		"its server hardware " + o.Hardware(1).Name + " (" + o.Blades.Hardware[0] + ") is used by OneView: server profile " + theirs,
		"Wait until its user removes the profile, or choose another node",
	}
}

// unmoved returns a check that Ironic was sent nothing that moves, switches or prepares a node since then.
func unmoved(t *testing.T, s *acctest.Site, node string) func() {
	t.Helper()
	attributes := []string{"provision_state", "provision_updated_at", "power_state", "instance_uuid", "instance_info"}
	before := s.Node(node)
	forgetVerbs(s)
	return func() {
		t.Helper()
		wantVerbs(t, s, text(before["uuid"]))
		after := s.Node(node)
		for _, attribute := range attributes {
			if fmt.Sprint(after[attribute]) != fmt.Sprint(before[attribute]) {
				t.Errorf("%s of the node is %v, was %v", attribute, after[attribute], before[attribute])
			}
		}
	}
}

func TestAccOneView_takenHardwareGetsNoProfile(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
	theirs := o.Take(1)
	unmoved := unmoved(t, s, node)
	output, _ := w.Plan()
	mention(t, output, append(inUse(o, theirs), "Server hardware is in use", "As it is now, the apply will fail")...)
	if strings.Contains(output, "Nothing was done") {
		t.Errorf("a plan says what was done:\n%s", output)
	}
	fails(t, w, apply(), refusal(o, theirs)...)
	if p := inState(t, w, profileAddress); p != nil {
		t.Errorf("in state is %+v", p)
	}
	unmoved()

	o.GiveBack(1)
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_takenHardwareIsNotDeployed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	for name, config := range map[string]string{
		"node":       deployment(quoted(node), image("v1")),
		"allocation": allocation(s) + allocated(image("v1")),
		"live ISO":   deployment(quoted(node), `live_iso = { url = "`+images+`x.iso" }`),
	} {
		w := acctest.NewWorkspace(t, s.Provider(o.Setting())+config)
		theirs := o.Take(1)
		if name == "allocation" {
			w.Must("apply", "-auto-approve", "-target=metal_allocation.a")
		}
		unmoved := unmoved(t, s, node)
		fails(t, w, apply(), refusal(o, theirs)...)
		if d := inState(t, w, deploymentAddress); d != nil {
			t.Errorf("%s: in state is %+v", name, d)
		}
		unmoved()
		o.GiveBack(1)
		w.Must("destroy", "-auto-approve")
	}
}

func TestAccOneView_hardwareWithoutAProfileIsNotDeployed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+deployment(quoted(node), image("v1")))
	unmoved := unmoved(t, s, node)
	fails(t, w, apply(), "has no server profile", "Give it a metal_oneview_profile, and let its metal_deployment depend on that")
	if d := inState(t, w, deploymentAddress); d != nil {
		t.Errorf("in state is %+v", d)
	}
	unmoved()

	w.Configure(s.Provider(o.Setting()) + profile(quoted(node)) + deployedProfile())
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_takenHardwareOfADeploymentIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	config := func(version, power string) string {
		return s.Provider(o.Setting()) + profile(quoted(node)) +
			deployment("metal_oneview_profile.p.node_id", image(version), `power_state = `+quoted(power))
	}
	w := acctest.NewWorkspace(t, config("v1", "on"))
	w.Must("apply", "-auto-approve")
	o.GiveBack(1) // somebody removes our profile, whatever runs there
	theirs := o.Take(1)
	w.Must("state", "rm", profileAddress)
	w.Configure(s.Provider(o.Setting()) + deployment(quoted(node), image("v1"), `power_state = "on"`))
	w.Must("apply", "-auto-approve")
	unmoved := unmoved(t, s, node)
	for _, tt := range []struct{ name, config string }{
		{"rebuild", deployment(quoted(node), image("v2"), `power_state = "on"`)},
		{"power", deployment(quoted(node), image("v1"), `power_state = "off"`)},
		{"undeploy", ""},
	} {
		w.Configure(s.Provider(o.Setting()) + tt.config)
		for range 2 { // also when it is tried again
			fails(t, w, apply(), refusal(o, theirs)...)
			unmoved()
			if d := inState(t, w, deploymentAddress); d == nil || d.Tainted || d.Values["provision_state"] != "active" || imageInState(t, w) != images+"v1.qcow2" {
				t.Errorf("%s: in state is %+v", tt.name, d)
			}
		}
	}
	if power := o.Hardware(1).Power; power != fakeoneview.On {
		t.Errorf("the other user's server is %s", power)
	}
	o.GiveBack(1)
	w.Must("destroy", "-auto-approve")
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil)
}

func TestAccOneView_takenHardwareIsNotPrepared(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(`target_state = "manageable"`))
	w.Must("apply", "-auto-approve")
	theirs := o.Take(1)
	unmoved := unmoved(t, s, s.Name("h"))
	for name, settings := range map[string][]string{
		"provide": {target("available")}, "provide without cleaning": {target("available"), `automated_clean = false`},
		"inspect": {`inspect = true`}, "power": {`power_state = "on"`},
	} {
		w.Configure(config(settings...))
		fails(t, w, apply(), refusal(o, theirs)...)
		if h := inState(t, w, hostAddress); h == nil || h.Tainted || h.Values["provision_state"] != "manageable" {
			t.Errorf("%s: in state is %+v", name, h)
		}
		unmoved()
	}
	w.Configure(config(target("available"), `description = "spare"`))
	fails(t, w, apply(), refusal(o, theirs)...) // what needs no machine is done all the same
	if got := s.Node(s.Name("h"))["description"]; got != "spare" {
		t.Errorf("the description is %v", got)
	}
	o.GiveBack(1)
	w.Must("apply", "-auto-approve")
	if now := s.Node(s.Name("h"))["provision_state"]; now != "available" {
		t.Errorf("the host is %v", now)
	}
	wantFree(t, s, o, s.Name("h"))
	noChanges(t, w)
	o.Take(1)
	destroy(t, s, w) // the node can be deleted: that touches no machine
}

func TestAccOneView_takenBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, target("available"), `resource_class = `+quoted(s.Class())))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider(o.Setting()) + blade(s, o, target("available"), `resource_class = `+quoted(s.Class())) + profile("metal_host.h.id") + deployedProfile())
	w.Must("plan", "-out=plan")
	unmoved := unmoved(t, s, s.Name("h"))
	theirs := o.Take(1)
	fails(t, w, []string{"apply", "plan"}, refusal(o, theirs)...)
	if inState(t, w, profileAddress) != nil || inState(t, w, deploymentAddress) != nil {
		t.Errorf("in state is\n%s", w.State())
	}
	unmoved()
	destroy(t, s, w)
}

// The appliance is the only arbiter of who was first. Whoever comes second is told so, and leaves nothing.
func TestAccOneView_lostRaces(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]func(take func()) fakeoneview.Effect{
		"before the post":          fakeoneview.Meanwhile,
		"between post and running": fakeoneview.BeforeRunning,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := acctest.StartOneView(t, nil, 1)
			theirs := ""
			o.Fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: allProfiles, Effect: effect(func() { theirs = o.Take(1) })})
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, `resource_class = `+quoted(s.Class()))+profile("metal_host.h.id"))
			output := fails(t, w, apply())
			mention(t, output, refusal(o, theirs)...)
			if p := inState(t, w, profileAddress); p != nil {
				t.Errorf("in state is %+v", p)
			}
			if left := o.Profiles(); len(left) > 0 || applied(s, s.Name("h")) != "" {
				t.Errorf("left are %+v and %q", left, applied(s, s.Name("h")))
			}
			o.GiveBack(1)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, s.Name("h"))
			destroy(t, s, w)
		})
	}
}

// Hardware that is taken while its host waits for its turn, or for its temporary profile, is not touched any more.
func TestAccOneView_takenWhileAHostIsPrepared(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakeoneview.Fault{
		"before the temporary profile": {Method: http.MethodPost, Path: allProfiles},
		"right before the verb":        {Method: http.MethodGet, Path: oneHardware, Nth: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := acctest.StartOneView(t, nil, 1)
			theirs := ""
			fault.Effect = fakeoneview.Meanwhile(func() { theirs = o.Take(1) })
			settings := []string{target("available")}
			if fault.Nth > 0 { // without cleaning the hardware is looked at twice: before the queue, and after it
				settings = append(settings, `automated_clean = false`)
			}
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, settings...))
			o.Fake.Inject(fault)
			output := fails(t, w, apply())
			mention(t, output, refusal(o, theirs)...)
			if h := inState(t, w, hostAddress); h == nil || h.Values["provision_state"] != "manageable" {
				t.Errorf("in state is %+v", h)
			}
			if left := o.Profiles(); len(left) > 0 || applied(s, s.Name("h")) != "" {
				t.Errorf("left are %+v and %q", left, applied(s, s.Name("h")))
			}
			if s.Fake != nil {
				wantVerbs(t, s, text(s.Node(s.Name("h"))["uuid"]), "manage")
			}
			destroy(t, s, w)
		})
	}
}

// A plan that would clean or inspect what OneView users have says that it will not come to that.
func TestAccOneView_planSaysThatTakenHardwareIsNotPrepared(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(target("available")))
	theirs := o.Take(1)
	says := func() {
		t.Helper()
		output, _ := w.Plan()
		mention(t, output, append(refusal(o, theirs), "Server hardware is in use", "As it is now, the apply will fail for host "+s.Name("h"))...)
		for _, warning := range []string{"Cleaning erases data", "Inspection boots the machine"} {
			if strings.Contains(output, warning) {
				t.Errorf("the plan warns of %q:\n%s", warning, output)
			}
		}
	}
	says() // of a new host
	w.Configure(config(target("manageable")))
	w.Must(apply()...) // which does nothing to the machine
	w.Configure(config(target("available"), `inspect = true`))
	says()
	fails(t, w, apply(), refusal(o, theirs)...)

	o.GiveBack(1)
	w.Configure(config(target("available")))
	output, _ := w.Plan()
	mention(t, output, "Cleaning erases data")
	w.Must(apply()...)
	noChanges(t, w)
	w.Must(destroyAll()...)
}
