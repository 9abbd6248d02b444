package oneview_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// wreck is what goes wrong in a story, and how it must end.
type wreck struct {
	name   string
	server func(*fakeoneview.Server)       // how the appliance is, from the start
	faults func(*site) []fakeoneview.Fault // what happens on the way
	fails  string                          // what the error says; empty: it works all the same
}

// always are faults that need no site.
func always(faults ...fakeoneview.Fault) func(*site) []fakeoneview.Fault {
	return func(*site) []fakeoneview.Fault { return faults }
}

// Paths of the requests that are hit.
const (
	posting   = `/server-profiles$`
	profiles  = `/server-profiles/`
	powering  = `/powerState$`
	hardwares = `/server-hardware/[^/]+$`
	tasks     = `/tasks/`
	anything  = `^/rest/(server|tasks)`
	logins    = `/login-sessions$`
)

var (
	broken = fakeoneview.Problem{
		Code: "ServerProfileApplyFailed", Message: `Unable to apply to {"name":"Encl1, bay 1", "uri":"/rest/server-hardware/1"}.`,
		Actions: []string{"Reset the iLO."},
	}
	invalid = fakeoneview.Problem{Code: "MacTypeDiffGlobalMacType", Message: "When macType is not user defined, it should be the global one."}
)

// wrecks are the failures of an appliance (reference oneview.md 5) that both preparing and releasing have to survive.
func wrecks(method, path string) []wreck {
	hit := func(effect fakeoneview.Effect) func(*site) []fakeoneview.Fault {
		return always(fakeoneview.Fault{Method: method, Path: path, Effect: effect})
	}
	times := func(method, path string, n int, effect fakeoneview.Effect) func(*site) []fakeoneview.Fault {
		return always(fakeoneview.Fault{Method: method, Path: path, Count: n, Effect: effect})
	}
	return []wreck{
		{name: "the task ends with a warning", faults: hit(fakeoneview.Warn(invalid))},
		{name: "the task is slow", faults: hit(fakeoneview.SlowTask(20))},
		{name: "the task has aged out", faults: hit(fakeoneview.ForgetTask())},
		{name: "the answer has no body", faults: hit(fakeoneview.EmptyBody())},
		{name: "the answer has only a body", faults: hit(fakeoneview.NoLocation())},
		{name: "the task's URI is in X-Task-URI", faults: hit(fakeoneview.TaskURIHeader())},
		{name: "the Location is absolute", faults: hit(fakeoneview.LocationAt("https://oneview.test"))},
		{name: "the Location is on another host", faults: hit(fakeoneview.LocationAt("https://elsewhere.test"))},
		{name: "the answer names no task", faults: func(*site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: method, Path: path, Effect: fakeoneview.EmptyBody()}, {Method: method, Path: path, Effect: fakeoneview.NoLocation()}}
		}},
		{name: "a web page in the place of the answer", faults: hit(fakeoneview.HTML())},
		{name: "tasks are of a newer kind", faults: times("GET", tasks, fakeoneview.Always, fakeoneview.TaskType("TaskResourceV4"))},
		{name: "the answer is lost", faults: hit(fakeoneview.LoseAnswer())},
		{name: "the request is lost", faults: hit(fakeoneview.Drop())},
		{name: "locked for a while", faults: times(method, path, 3, fakeoneview.Locked())},
		{name: "too many requests", faults: times(method, path, 2, fakeoneview.TooManyRequests(7*time.Second))},
		{name: "not available for a while", faults: times(method, path, 2, fakeoneview.Unavailable(20*time.Second))},
		{name: "not available, and not for how long", faults: times(method, path, 2, fakeoneview.Unavailable(-1))},
		{name: "reads are not available for a while", faults: times("GET", anything, 4, fakeoneview.Unavailable(-1))},
		{name: "reads are web pages for a while", faults: times("GET", anything, 4, fakeoneview.HTML())},
		{name: "reads break off for a while", faults: times("GET", anything, 4, fakeoneview.Drop())},
		{name: "an internal error", faults: hit(fakeoneview.ServerError())},
		{name: "the session expires", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: method, Path: path, Effect: fakeoneview.Meanwhile(s.appliance.ExpireSessions)}}
		}},
		{name: "the session is said to have expired", faults: hit(fakeoneview.NotAuthorized())},
		{name: "the user lacks the right", faults: times(method, path, fakeoneview.Always, fakeoneview.NotAuthorized()), fails: "lacks the right"},
		{name: "the password is not right any more", faults: func(*site) []fakeoneview.Fault {
			return []fakeoneview.Fault{
				{Method: method, Path: path, Effect: fakeoneview.NotAuthorized()},
				{Method: "POST", Path: logins, Nth: 2, Count: fakeoneview.Always, Effect: fakeoneview.BadLogin()},
			}
		}, fails: "Check username, password"},
		{name: "the task is refused", faults: times(method, path, fakeoneview.Always, fakeoneview.FailValidation(invalid)), fails: "MacTypeDiffGlobalMacType"},
		{name: "the appliance restarts", faults: func(s *site) []fakeoneview.Fault {
			restart := func() { s.appliance.Restart(time.Minute) }
			return []fakeoneview.Fault{{Method: method, Path: path, Effect: fakeoneview.RightAfter(restart)}}
		}},
		{name: "pages lead back to themselves", faults: times("GET", posting, fakeoneview.Always, fakeoneview.PageLoop())},
		{name: "URIs are spelled otherwise", server: func(a *fakeoneview.Server) {
			a.SpellURI = func(uri string) string { return strings.ToUpper(uri[:len("/rest/")]) + uri[len("/rest/"):] + "/" }
		}},
		{name: "no profile is an empty text", server: func(a *fakeoneview.Server) { a.EmptyProfileURI = true }},
		{name: "the hardware shows its profile late", server: func(a *fakeoneview.Server) { a.LateProfileURI = true }},
		{name: "conflicts are answered at once", server: func(a *fakeoneview.Server) { a.PlainConflicts = true }},
		{name: "an old appliance", server: func(a *fakeoneview.Server) { a.CurrentVersion, a.MinimumVersion = 300, 200 }},
		{name: "a newer appliance", server: func(a *fakeoneview.Server) { a.CurrentVersion = 12000 }},
	}
}

func TestPrepareSurvivesWhateverTheApplianceDoes(t *testing.T) {
	t.Parallel()
	take := func(hardware int, how func(func()) fakeoneview.Effect) func(*site) []fakeoneview.Fault {
		return func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{
				Method: "POST", Path: posting, Effect: how(func() { s.appliance.TakeHardware(s.blades.Hardware[hardware]) }),
			}}
		}
	}
	all := append(wrecks("POST", posting), wrecks("PUT", powering)...)
	all = append(
		all,
		wreck{name: "applying fails", faults: always(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(broken, false)}), fails: "Encl1, bay 1 (/rest/server-hardware/1)"},
		wreck{name: "applying fails, and the task does not say what of", faults: always(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(broken, true)}), fails: "Reset the iLO"},
		wreck{name: "the hardware is taken before the create", faults: take(0, fakeoneview.Meanwhile), fails: "is used by OneView"},
		wreck{name: "the hardware is taken before the create, and that is a conflict", faults: take(0, fakeoneview.Meanwhile), fails: "is used by OneView", server: func(a *fakeoneview.Server) { a.PlainConflicts = true }},
		wreck{name: "the hardware is taken before the task runs", faults: take(0, fakeoneview.BeforeRunning), fails: "is used by OneView"},
		wreck{name: "the server is switched on before the create", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "POST", Path: posting, Effect: fakeoneview.Meanwhile(func() { s.appliance.PowerOn(s.blades.Hardware[0]) })}}
		}},
		wreck{name: "the profile is taken off again, and the hardware taken", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "POST", Path: posting, Effect: fakeoneview.BeforeEnd(func() {
				s.appliance.ReleaseHardware(s.blades.Hardware[0])
				s.appliance.TakeHardware(s.blades.Hardware[0])
			})}}
		}, fails: "is used by OneView"},
	)
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.appliance.PowerOn(s.blades.Hardware[0])
				s.befall(tt)
				pool := s.pool(t)
				_, err := pool.Prepare(t.Context(), oneview.PrepareOptions{NodeID: s.nodes[0]})
				if tt.fails == "" {
					if err != nil {
						t.Fatalf("it failed: %v", err)
					}
					s.wantHeld(t)
					s.wantOneSession(t, tt)
					return
				}
				wantWords(t, err, tt.fails)
				wantNoSecret(t, err)
				s.wantNothing(t)
			})
		})
	}
}

func TestReleaseSurvivesWhateverTheApplianceDoes(t *testing.T) {
	t.Parallel()
	all := append(wrecks("DELETE", profiles), wrecks("PUT", powering)...)
	all = append(
		all,
		wreck{name: "the profile's version is refused once", faults: always(fakeoneview.Fault{Method: "DELETE", Path: profiles, Effect: fakeoneview.StaleETag()})},
		wreck{name: "somebody edits the profile meanwhile", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "DELETE", Path: profiles, Effect: fakeoneview.Meanwhile(func() {
				s.appliance.EditProfile(s.profiles()[0].URI, func(d map[string]any) { d["affinity"] = "BayAndServer" })
			})}}
		}},
		wreck{name: "removing fails", faults: always(fakeoneview.Fault{Method: "DELETE", Path: profiles, Effect: fakeoneview.FailApply(broken, false)})},
		wreck{name: "the server is switched on before the delete", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "DELETE", Path: profiles, Effect: fakeoneview.Meanwhile(func() { s.appliance.PowerOn(s.blades.Hardware[0]) })}}
		}},
		wreck{name: "somebody is faster, and takes the hardware", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "GET", Path: hardwares, Nth: 2, Effect: fakeoneview.Meanwhile(func() {
				s.appliance.ReleaseHardware(s.blades.Hardware[0])
				s.appliance.TakeHardware(s.blades.Hardware[0])
			})}}
		}},
	)
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.mustPrepare(t, s.nodes[0])
				s.appliance.PowerOn(s.blades.Hardware[0])
				s.befall(tt)
				s.appliance.ExpireSessions()
				err := s.pool(t).Release(t.Context(), oneview.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: s.profiles()[0].URI})
				if tt.fails == "" {
					if err != nil {
						t.Fatalf("it failed: %v", err)
					}
					s.wantNothing(t)
					s.wantOneSession(t, tt)
					return
				}
				wantWords(t, err, tt.fails)
				wantNoSecret(t, err)
				s.wantHeld(t)
				s.appliance.ClearFaults()
				if err := s.pool(t).Release(t.Context(), oneview.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
					t.Errorf("release again: %v", err)
				}
				s.wantNothing(t)
			})
		})
	}
}

// befall lets a wreck happen to the site's appliance.
func (s *site) befall(w wreck) {
	if w.server != nil {
		w.server(s.appliance)
	}
	if w.faults != nil {
		for _, fault := range w.faults(s) {
			s.appliance.Inject(fault)
		}
	}
}

// wantOneSession fails if a pool has opened more sessions than it needed.
func (s *site) wantOneSession(t *testing.T, w wreck) {
	t.Helper()
	if n := s.appliance.Sessions(); n > 1 {
		t.Errorf("%d sessions are open", n)
	}
}

// wantNoSecret fails if an error tells the password.
func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), password) {
		t.Errorf("the error tells the password: %v", err)
	}
}

func TestWhatCannotBeRolledBackIsNamed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(broken, false)})
		s.appliance.Inject(fakeoneview.Fault{Method: "DELETE", Path: profiles, Count: fakeoneview.Always, Effect: fakeoneview.Refuse(http.StatusBadRequest, invalid)})
		var recorded string
		_, err := s.pool(t).Prepare(t.Context(), oneview.PrepareOptions{NodeID: s.nodes[0], Record: func(uri string) { recorded = uri }})
		var leftover *oneview.LeftoverError
		if !errors.As(err, &leftover) {
			t.Fatalf("err = %v, want a LeftoverError", err)
		}
		left := s.profiles()[0]
		if recorded != left.URI {
			t.Errorf("recorded %q, want %q, which is left", recorded, left.URI)
		}
		wantWords(t, err, left.URI, left.Name, "Encl1, bay 1", s.blades.Hardware[0], "ServerProfileApplyFailed", "MacTypeDiffGlobalMacType")
		s.appliance.ClearFaults()
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestAStuckTaskEndsWithTheLimitAndLeavesNothingForeignTouched(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.StuckTask()})
		_, err := s.pool(t).Prepare(t.Context(), oneview.PrepareOptions{NodeID: s.nodes[0], Limit: 5 * time.Minute})
		var timeout *oneview.TimeoutError
		if !errors.As(err, &timeout) {
			t.Fatalf("err = %v, want a TimeoutError", err)
		}
		if err := s.pool(t).Release(t.Context(), oneview.ReleaseOptions{NodeID: s.nodes[0], Limit: 5 * time.Minute}); !errors.As(err, &timeout) {
			t.Fatalf("release of what is stuck: %v, want a TimeoutError", err)
		}
		s.wantHeldInProgress(t)
		s.appliance.Restart(time.Minute) // which ends what was stuck
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

// wantHeldInProgress fails unless there is one profile, which Ironic knows.
func (s *site) wantHeldInProgress(t *testing.T) {
	t.Helper()
	if found := s.profiles(); len(found) != 1 || s.applied(t, s.nodes[0]) != found[0].URI {
		t.Errorf("profiles %+v, applied %q, want one that Ironic knows", found, s.applied(t, s.nodes[0]))
	}
	s.wantNoHarm(t)
}
