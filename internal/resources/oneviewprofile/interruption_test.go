package oneviewprofile_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// taskOf is the path of tasks.
const taskOf = "^/rest/tasks/"

// moment is a request to the appliance at which a test interrupts or kills the run: before the request, which then has no effect, or
// right after its effect.
type moment struct {
	method, path string
	after        bool
	when         func(*site.OneView) bool // condition for the request; nil: the first request; only with after
}

// at runs the CLI, calls happens at the moment, and returns the output.
func (m moment) at(t *testing.T, o *site.OneView, w *acctest.Workspace, happens func(*acctest.Running), args ...string) string {
	t.Helper()
	started := make(chan *acctest.Running, 1)
	var met atomic.Bool
	hook := func() {
		if (m.when == nil || m.when(o)) && met.CompareAndSwap(false, true) {
			happens(<-started)
		}
	}
	fault := fakeoneview.Fault{
		Method: m.method, Path: m.path,
		Effect: fakeoneview.Effect{Before: hook, Refuse: &fakeoneview.Reply{Drop: true}},
	}
	if m.after {
		fault.Count, fault.Effect = fakeoneview.Always, fakeoneview.RightAfter(hook)
	}
	w.Trace()
	o.Fake.Inject(fault)
	running := w.Start(args...)
	started <- running
	output, _ := running.Wait()
	if !met.Load() {
		t.Fatalf("the run has not sent %s %s:\n%s", m.method, m.path, output)
	}
	o.Fake.ClearFaults()
	return output
}

// isApplying reports whether the run has requested a profile. The next poll of a task is that of its task.
func isApplying(o *site.OneView) bool { return o.Fake.Count(http.MethodPost, allProfiles) > 0 }

// isApplied reports whether the appliance has applied a profile.
func isApplied(o *site.OneView) bool {
	made := o.Profiles()
	return len(made) == 1 && !made[0].InProgress
}

// switchedOn starts an appliance whose only blade is on, and whose tasks take some time.
func switchedOn(t *testing.T) *site.OneView {
	t.Helper()
	o := site.StartOneView(t, &fakeoneview.Server{StepTime: 300 * time.Millisecond}, 1)
	o.Fake.PowerOn(o.Blades.Hardware[0])
	return o
}

func TestAccOneView_killedCreateIsFinishedByTheNextApply(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]moment{
		"before the server is off":        {http.MethodPut, oneHardware[:len(oneHardware)-1] + "/powerState$", true, nil},
		"before the profile is asked":     {http.MethodPost, allProfiles, false, nil},
		"right after it is asked for":     {http.MethodPost, allProfiles, true, nil},
		"while it is applied":             {http.MethodGet, taskOf, true, isApplying},
		"when it is applied":              {http.MethodGet, taskOf, true, isApplied},
		"when Ironic has been told of it": {http.MethodGet, oneProfile, true, isApplied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			o := switchedOn(t)
			node := addBlade(t, s, o, 1)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
			moment.at(t, o, w, (*acctest.Running).Kill, acctest.Apply()...)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
			wantFree(t, s, o, node)
		})
	}
}

// Ctrl-C leads to a warning, and the state has all that the next apply needs.
func TestAccOneView_interruptedCreateIsAWarning(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]moment{
		"right after it is asked for": {http.MethodPost, allProfiles, true, nil},
		"while it is applied":         {http.MethodGet, taskOf, true, isApplying},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			o := switchedOn(t)
			node := addBlade(t, s, o, 1)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
			output := moment.at(t, o, w, (*acctest.Running).InterruptProvider, acctest.Apply()...)
			acctest.Mention(t, output, "Warning: Interrupted: give node "+node+" a server profile", "the next apply continues from there")
			made := o.Profiles()
			if p := acctest.InState(t, w, profileAddress); len(made) != 1 || p == nil || p.Tainted || p.Values["id"] != made[0].URI ||
				p.Values["status"] != "Unfinished" {
				t.Errorf("the state has %+v; in OneView, %+v", p, made)
			}
			if got := applied(s, node); len(made) != 1 || got != made[0].URI {
				t.Errorf("applied_server_profile_uri is %q", got)
			}
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
			wantFree(t, s, o, node)
		})
	}
}

// After Ctrl-C before the creation, the state has no profile, and the error does not say that the provider has a bug.
func TestAccOneView_interruptedBeforeCreate(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := switchedOn(t)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	output := moment{http.MethodGet, "/new-profile$", false, nil}.at(t, o, w, (*acctest.Running).InterruptProvider, acctest.Apply()...)
	acctest.Mention(t, output, "Could not give node "+node+" a server profile", "The run was interrupted")
	for _, word := range []string{"issue in the provider", "bug", "unexpectedly"} {
		if strings.Contains(output, word) {
			t.Errorf("the error says that the provider has a bug:\n%s", output)
		}
	}
	if p := acctest.InState(t, w, profileAddress); p != nil {
		t.Errorf("the state has %+v", p)
	}
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
}

func TestAccOneView_interruptedDestroyKeepsTheResource(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := switchedOn(t)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	output := moment{http.MethodDelete, oneProfile, true, nil}.at(t, o, w, (*acctest.Running).InterruptProvider, destroyAll()...)
	acctest.Mention(t, output, "Could not remove server profile", "The run was interrupted")
	if p := acctest.InState(t, w, profileAddress); p == nil || p.Tainted {
		t.Errorf("the state has %+v", p)
	}
	w.Must("destroy", "-auto-approve")
	wantNoProfile(t, o)
}

// While OneView still deletes a profile, the plan says so, and does not call the profile unfinished.
func TestAccOneView_profileThatIsBeingDeletedIsReplaced(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	o.Fake.Inject(fakeoneview.Fault{Method: http.MethodDelete, Path: oneProfile, Effect: fakeoneview.Effect{StuckTask: true}})
	moment{http.MethodDelete, oneProfile, true, nil}.at(t, o, w, (*acctest.Running).InterruptProvider, destroyAll()...)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Deleted server profile is replaced", "OneView is deleting the server profile of node")
	acctest.NeverMention(t, output, "Unfinished server profile is completed")
	o.GiveBack(1) // the deletion ends
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
	wantNoProfile(t, o)
}

// A killed run has not removed its temporary profile. The next plan says so, and its apply removes the profile.
func TestAccOneView_temporaryProfileOfKilledRunIsRemoved(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, acctest.Target(state)) }
	w := acctest.NewWorkspace(t, config("manageable"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("available"))
	name := "Ironic Cleaning [" + site.Text(s.Node(s.Name("h"))["uuid"]) + "]"
	for end, stop := range map[string]func(*acctest.Running){
		"killed":      (*acctest.Running).Kill,
		"interrupted": (*acctest.Running).InterruptProvider,
	} {
		output := moment{http.MethodDelete, oneProfile, false, nil}.at(t, o, w, stop, acctest.Apply()...)
		if left := o.Profiles(); len(left) != 1 || left[0].Name != name || applied(s, s.Name("h")) != left[0].URI {
			t.Fatalf("%s: profiles are left: %+v, and %q", end, left, applied(s, s.Name("h")))
		}
		if end == "interrupted" {
			acctest.Mention(t, output, "Warning: Interrupted: prepare node "+s.Name("h"))
			if h := acctest.InState(t, w, acctest.HostAddress); h.Tainted || h.Values["provision_state"] != "available" {
				t.Errorf("the state has %+v", h)
			}
		}
		output, changes := w.Plan()
		if !changes {
			t.Errorf("%s: the plan is empty:\n%s", end, output)
		}
		acctest.Mention(t, output, "Temporary server profile is removed", "An interrupted run has left server profile "+name)
		w.Must("apply", "-auto-approve")
		wantFree(t, s, o, s.Name("h"))
		acctest.NoChanges(t, w)
		s.Verb(s.Name("h"), "manage", "manageable") // once more
	}
	w.Must("apply", "-auto-approve")
	acctest.Destroy(t, s, w)
}

// A run was killed while it created a host. The next apply takes the host over and removes the temporary profile.
func TestAccOneView_killedHostLosesTemporaryProfile(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, acctest.Target("available")))
	moment{http.MethodDelete, oneProfile, false, nil}.at(t, o, w, (*acctest.Running).Kill, acctest.Apply()...)
	w.Must("apply", "-auto-approve")
	wantFree(t, s, o, s.Name("h"))
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}

// A change that does not concern the machine works while the appliance does not answer.
func TestAccOneView_sharedHostIsChangedWithoutTheAppliance(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(acctest.Target("manageable")))
	w.Must("apply", "-auto-approve")
	o.Fake.Inject(fakeoneview.Fault{
		Path: "^/rest/", Count: fakeoneview.Always,
		Effect: fakeoneview.Refuse(http.StatusNotImplemented, trouble),
	})
	w.Configure(config(acctest.Target("manageable"), `description = "spare"`))
	w.Must("apply", "-auto-approve")
	if got := s.Node(s.Name("h"))["description"]; got != "spare" {
		t.Errorf("the description is %v", got)
	}
	o.Fake.ClearFaults()
	acctest.Destroy(t, s, w)
}

// A machine needs its temporary profile as long as it is cleaned. The next apply waits for the cleaning, then removes the profile.
func TestFakeOneView_interruptedCleaningKeepsTemporaryProfile(t *testing.T) {
	t.Parallel()
	for end, stop := range map[string]func(*acctest.Running){
		"killed":      (*acctest.Running).Kill,
		"interrupted": (*acctest.Running).Interrupt,
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, nil)
			o := site.StartOneView(t, nil, 1)
			seen := lifeline(s, o, s.Name("h"))
			config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, acctest.Target(state)) }
			w := acctest.NewWorkspace(t, config("manageable"))
			w.Must("apply", "-auto-approve")
			w.Configure(config("available"))
			release := s.Hold(site.BusyCleaning()...)
			running := w.Start("apply", "-auto-approve")
			site.AwaitState(t, s, s.Name("h"), site.BusyCleaning()...)
			stop(running)
			output, _ := running.Wait()
			if h := acctest.InState(t, w, acctest.HostAddress); h == nil || h.Tainted {
				t.Errorf("the state has %+v\n%s", h, output)
			}
			acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
			wantFree(t, s, o, s.Name("h"))
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, site.Text(s.Node(s.Name("h"))["uuid"]), "manage", "provide")
			if want := []string{"made while manageable", "deleted while available"}; !slices.Equal(*seen, want) {
				t.Errorf("profiles were %q, want %q", *seen, want)
			}
			acctest.Destroy(t, s, w)
		})
	}
}

// The temporary profile of a failed cleaning is removed at once, so that others can use the machine until it is cleaned again.
func TestFakeOneView_failedCleaningLeavesNoTemporaryProfile(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "provide" && broken.Load() {
			return "no answer from the ramdisk"
		}
		return ""
	}})
	o := site.StartOneView(t, nil, 1)
	config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, acctest.Target(state)) }
	w := acctest.NewWorkspace(t, config("manageable"))
	w.Must("apply", "-auto-approve")
	broken.Store(true)
	w.Configure(config("available"))
	acctest.Fails(t, w, acctest.Apply(), "no answer from the ramdisk")
	wantFree(t, s, o, s.Name("h"))
	broken.Store(false)
	w.Must("apply", "-auto-approve")
	wantFree(t, s, o, s.Name("h"))
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}

// An inspected host gets a temporary profile too.
func TestAccOneView_inspectionHasATemporaryProfile(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	var names []string
	o.Fake.Inject(fakeoneview.Fault{
		Method: http.MethodDelete, Path: oneProfile, Count: fakeoneview.Always,
		Effect: fakeoneview.Meanwhile(func() {
			for _, p := range o.Profiles() {
				names = append(names, p.Name)
			}
		}),
	})
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, acctest.Target("manageable"), `inspect = true`))
	w.Must("apply", "-auto-approve")
	if want := "Ironic Inspecting [" + site.Text(s.Node(s.Name("h"))["uuid"]) + "]"; len(names) != 1 || names[0] != want {
		t.Errorf("deleted were %q, want %q", names, want)
	}
	wantFree(t, s, o, s.Name("h"))
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}
