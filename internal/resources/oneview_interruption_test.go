package resources_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

// taskOf is the path of tasks.
const taskOf = "^/rest/tasks/"

// moment is a request to the appliance at which something happens to the run that sends it: before it has an effect, which it
// then never has, or right after.
type moment struct {
	method, path string
	nth          int
	after        bool
}

// at runs the CLI with something happening to it at a moment of its work, and returns its output.
func (m moment) at(t *testing.T, o *acctest.OneView, w *acctest.Workspace, happens func(*acctest.Running), args ...string) string {
	t.Helper()
	started := make(chan *acctest.Running, 1)
	hook := func() { happens(<-started) }
	effect := fakeoneview.Effect{Before: hook, Refuse: &fakeoneview.Reply{Drop: true}}
	if m.after {
		effect = fakeoneview.RightAfter(hook)
	}
	w.Trace()
	hits := o.Fake.Inject(fakeoneview.Fault{Method: m.method, Path: m.path, Nth: m.nth, Effect: effect})
	running := w.Start(args...)
	started <- running
	output, _ := running.Wait()
	if hits() != 1 {
		t.Fatalf("the run never came to %+v:\n%s", m, output)
	}
	o.Fake.ClearFaults()
	return output
}

// switchedOn starts an appliance whose only blade is on, and whose tasks take some time.
func switchedOn(t *testing.T) *acctest.OneView {
	t.Helper()
	o := acctest.StartOneView(t, &fakeoneview.Server{StepTime: 300 * time.Millisecond}, 1)
	o.Fake.PowerOn(o.Blades.Hardware[0])
	return o
}

func TestAccOneView_killedCreateIsFinishedByTheNextApply(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]moment{
		"before the server is off":        {http.MethodPut, oneHardware[:len(oneHardware)-1] + "/powerState$", 1, true},
		"before the profile is asked":     {http.MethodPost, allProfiles, 1, false},
		"right after it is asked for":     {http.MethodPost, allProfiles, 1, true},
		"while it is applied":             {http.MethodGet, taskOf, 4, true},
		"when it is applied":              {http.MethodGet, oneProfile, 1, true},
		"when Ironic has been told of it": {http.MethodGet, oneProfile, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := switchedOn(t)
			node := addBlade(t, s, o, 1)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
			moment.at(t, o, w, (*acctest.Running).Kill, apply()...)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			noChanges(t, w)
			w.Must("destroy", "-auto-approve")
			wantFree(t, s, o, node)
		})
	}
}

// deletions are the moments of a deletion.
func deletions() map[string]moment {
	return map[string]moment{
		"when the server is off":       {http.MethodPut, "/powerState$", 1, true},
		"before the deletion is asked": {http.MethodDelete, oneProfile, 1, false},
		"right after it is asked for":  {http.MethodDelete, oneProfile, 1, true},
		"while the profile is deleted": {http.MethodGet, taskOf, 5, true},
		"when the profile is gone":     {http.MethodGet, oneProfile, 4, true},
	}
}

func TestAccOneView_killedDestroyIsFinishedByTheNextDestroy(t *testing.T) {
	t.Parallel()
	for name, moment := range deletions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := switchedOn(t)
			node := addBlade(t, s, o, 1)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
			w.Must("apply", "-auto-approve")
			o.Fake.PowerOn(o.Blades.Hardware[0])
			moment.at(t, o, w, (*acctest.Running).Kill, destroyAll()...)
			w.Must("destroy", "-auto-approve")
			wantNoProfile(t, o)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			w.Must("destroy", "-auto-approve")
			wantFree(t, s, o, node)
		})
	}
}

func TestAccOneView_killedDestroyIsUndoneByTheNextApply(t *testing.T) {
	t.Parallel()
	for name, moment := range deletions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := switchedOn(t)
			node := addBlade(t, s, o, 1)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
			w.Must("apply", "-auto-approve")
			o.Fake.PowerOn(o.Blades.Hardware[0])
			moment.at(t, o, w, (*acctest.Running).Kill, destroyAll()...)
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			noChanges(t, w)
			w.Must("destroy", "-auto-approve")
			wantFree(t, s, o, node)
		})
	}
}

// Ctrl-C is a warning, and the state has all that the next apply has to know.
func TestAccOneView_interruptedCreateIsAWarning(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]moment{
		"right after it is asked for": {http.MethodPost, allProfiles, 1, true},
		"while it is applied":         {http.MethodGet, taskOf, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			o := switchedOn(t)
			node := addBlade(t, s, o, 1)
			w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
			output := moment.at(t, o, w, (*acctest.Running).InterruptProvider, apply()...)
			mention(t, output, "Warning: Interrupted: give node "+node+" a server profile", "the next apply takes it up again")
			made := o.Profiles()
			if p := inState(t, w, profileAddress); len(made) != 1 || p == nil || p.Tainted || p.Values["id"] != made[0].URI || p.Values["status"] != "Unfinished" {
				t.Errorf("in state is %+v; in OneView, %+v", p, made)
			}
			if got := applied(s, node); len(made) != 1 || got != made[0].URI {
				t.Errorf("applied_server_profile_uri is %q", got)
			}
			w.Must("apply", "-auto-approve")
			wantHeld(t, s, o, w, node)
			noChanges(t, w)
			w.Must("destroy", "-auto-approve")
			wantFree(t, s, o, node)
		})
	}
}

// Before anything was made there is nothing to record, and nothing is wrong with the provider.
func TestAccOneView_interruptedBeforeAnythingWasMade(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := switchedOn(t)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
	output := moment{http.MethodGet, "/new-profile$", 1, false}.at(t, o, w, (*acctest.Running).InterruptProvider, apply()...)
	mention(t, output, "Could not give node "+node+" a server profile", "The run was interrupted")
	for _, word := range []string{"issue in the provider", "bug", "unexpectedly"} {
		if strings.Contains(output, word) {
			t.Errorf("the provider is blamed:\n%s", output)
		}
	}
	if p := inState(t, w, profileAddress); p != nil {
		t.Errorf("in state is %+v", p)
	}
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	w.Must("destroy", "-auto-approve")
}

func TestAccOneView_interruptedDestroyKeepsTheResource(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := switchedOn(t)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node)))
	w.Must("apply", "-auto-approve")
	output := moment{http.MethodDelete, oneProfile, 1, true}.at(t, o, w, (*acctest.Running).InterruptProvider, destroyAll()...)
	mention(t, output, "Could not remove server profile", "The run was interrupted")
	if p := inState(t, w, profileAddress); p == nil || p.Tainted {
		t.Errorf("in state is %+v", p)
	}
	w.Must("destroy", "-auto-approve")
	wantNoProfile(t, o)
}

// A run that dies before it has removed a temporary profile leaves it. The next plan says so, and the apply removes it.
func TestAccOneView_temporaryProfileOfAStoppedRunIsRemoved(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, target(state)) }
	w := acctest.NewWorkspace(t, config("manageable"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("available"))
	name := "Ironic Cleaning [" + text(s.Node(s.Name("h"))["uuid"]) + "]"
	for end, stop := range map[string]func(*acctest.Running){"killed": (*acctest.Running).Kill, "interrupted": (*acctest.Running).InterruptProvider} {
		output := moment{http.MethodDelete, oneProfile, 1, false}.at(t, o, w, stop, apply()...)
		if left := o.Profiles(); len(left) != 1 || left[0].Name != name || applied(s, s.Name("h")) != left[0].URI {
			t.Fatalf("%s: left are %+v, and %q", end, left, applied(s, s.Name("h")))
		}
		if end == "interrupted" {
			mention(t, output, "Warning: Interrupted: prepare node "+s.Name("h"))
			if h := inState(t, w, hostAddress); h.Tainted || h.Values["provision_state"] != "available" {
				t.Errorf("in state is %+v", h)
			}
		}
		output, changes := w.Plan()
		if !changes {
			t.Errorf("%s: the plan is empty:\n%s", end, output)
		}
		mention(t, output, "Temporary server profile is removed", "An interrupted run has left server profile "+name)
		w.Must("apply", "-auto-approve")
		wantFree(t, s, o, s.Name("h"))
		noChanges(t, w)
		s.Verb(s.Name("h"), "manage", "manageable") // once more
	}
	w.Must("apply", "-auto-approve")
	destroy(t, s, w)
}

// A host that was killed in its making is imported, and rid of its temporary profile.
func TestAccOneView_killedHostIsImportedWithoutItsTemporaryProfile(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, target("available")))
	moment{http.MethodDelete, oneProfile, 1, false}.at(t, o, w, (*acctest.Running).Kill, apply()...)
	w.Must("import", hostAddress, s.Name("h"))
	w.Must("apply", "-auto-approve")
	wantFree(t, s, o, s.Name("h"))
	noChanges(t, w)
	destroy(t, s, w)
}

// Or it is deleted, and the temporary profile with it.
func TestAccOneView_deletedHostTakesItsTemporaryProfileAlong(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, target("available")))
	moment{http.MethodDelete, oneProfile, 1, false}.at(t, o, w, (*acctest.Running).InterruptProvider, apply()...)
	destroy(t, s, w)
	wantNoProfile(t, o)
}

// Even one that Ironic does not know of, because the run was killed when it had ordered it.
func TestAccOneView_deletedHostTakesAnUntoldTemporaryProfileAlong(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, target(state)) }
	w := acctest.NewWorkspace(t, config("manageable"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("available"))
	moment{http.MethodPost, allProfiles, 1, true}.at(t, o, w, (*acctest.Running).Kill, apply()...)
	acctest.Until(t, "the profile is on the hardware", func() bool { return o.Hardware(1).ProfileURI != "" })
	if got := applied(s, s.Name("h")); got != "" {
		t.Fatalf("Ironic knows of %s", got)
	}
	destroy(t, s, w)
	wantNoProfile(t, o)
}

// What concerns no machine is done even while the appliance does not answer.
func TestAccOneView_sharedHostIsChangedWithoutTheAppliance(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider(o.Setting()) + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(target("manageable")))
	w.Must("apply", "-auto-approve")
	o.Fake.Inject(fakeoneview.Fault{Path: "^/rest/", Count: fakeoneview.Always, Effect: fakeoneview.Refuse(http.StatusNotImplemented, trouble)})
	w.Configure(config(target("manageable"), `description = "spare"`))
	w.Must("apply", "-auto-approve")
	if got := s.Node(s.Name("h"))["description"]; got != "spare" {
		t.Errorf("the description is %v", got)
	}
	o.Fake.ClearFaults()
	destroy(t, s, w)
}

// While the machine is still being cleaned it needs its temporary profile: the next apply waits, and removes it then.
func TestFakeOneView_stoppedCleaningKeepsItsTemporaryProfile(t *testing.T) {
	t.Parallel()
	for end, stop := range map[string]func(*acctest.Running){"killed": (*acctest.Running).Kill, "interrupted": (*acctest.Running).Interrupt} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			s := acctest.StartFake(t, &fakeironic.Server{StepTime: 4 * time.Second})
			o := acctest.StartOneView(t, nil, 1)
			seen := lifeline(s, o, s.Name("h"))
			config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, target(state)) }
			w := acctest.NewWorkspace(t, config("manageable"))
			w.Must("apply", "-auto-approve")
			w.Configure(config("available"))
			running := w.Start("apply", "-auto-approve")
			awaitState(t, s, s.Name("h"), busyCleaning()...)
			stop(running)
			output, _ := running.Wait()
			if h := inState(t, w, hostAddress); h == nil || h.Tainted {
				t.Errorf("in state is %+v\n%s", h, output)
			}
			w.Must("apply", "-auto-approve")
			wantFree(t, s, o, s.Name("h"))
			noChanges(t, w)
			wantVerbs(t, s, text(s.Node(s.Name("h"))["uuid"]), "manage", "provide")
			if want := []string{"made while manageable", "deleted while available"}; !slices.Equal(*seen, want) {
				t.Errorf("profiles were %q, want %q", *seen, want)
			}
			destroy(t, s, w)
		})
	}
}

// The temporary profile of a cleaning that failed is removed at once: others may use the machine until it is cleaned again.
func TestFakeOneView_failedCleaningLeavesNoTemporaryProfile(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := acctest.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "provide" && broken.Load() {
			return "no answer from the ramdisk"
		}
		return ""
	}})
	o := acctest.StartOneView(t, nil, 1)
	config := func(state string) string { return s.Provider(o.Setting()) + blade(s, o, target(state)) }
	w := acctest.NewWorkspace(t, config("manageable"))
	w.Must("apply", "-auto-approve")
	broken.Store(true)
	w.Configure(config("available"))
	fails(t, w, apply(), "no answer from the ramdisk")
	wantFree(t, s, o, s.Name("h"))
	broken.Store(false)
	w.Must("apply", "-auto-approve")
	wantFree(t, s, o, s.Name("h"))
	noChanges(t, w)
	destroy(t, s, w)
}

// A host that is inspected gets a temporary profile, too.
func TestAccOneView_inspectionHasATemporaryProfile(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	var names []string
	o.Fake.Inject(fakeoneview.Fault{Method: http.MethodDelete, Path: oneProfile, Count: fakeoneview.Always, Effect: fakeoneview.Meanwhile(func() {
		for _, p := range o.Profiles() {
			names = append(names, p.Name)
		}
	})})
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+blade(s, o, target("manageable"), `inspect = true`))
	w.Must("apply", "-auto-approve")
	if want := "Ironic Inspecting [" + text(s.Node(s.Name("h"))["uuid"]) + "]"; len(names) != 1 || names[0] != want {
		t.Errorf("deleted were %q, want %q", names, want)
	}
	wantFree(t, s, o, s.Name("h"))
	noChanges(t, w)
	destroy(t, s, w)
}
