package sharing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// wreck is a problem of the appliance, and the expected result.
type wreck struct {
	name   string
	server func(*fakeoneview.Server)       // settings of the appliance; nil: the defaults
	faults func(*site) []fakeoneview.Fault // faults of requests; nil: none
	fails  string                          // text of the error; empty: the operation succeeds
	once   func(*site) int                 // counts the requests, of which there must be one; nil: any number
}

// always returns the same faults for every site.
func always(faults ...fakeoneview.Fault) func(*site) []fakeoneview.Fault {
	return func(*site) []fakeoneview.Fault { return faults }
}

// Paths of requests that faults are injected into.
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
	invalid = fakeoneview.Problem{Code: "MacTypeDiffGlobalMacType", Message: "When macType is not user defined, it should be " +
		"the global one."}
)

// wrecks returns the problems of an appliance (reference/oneview.md#what-goes-wrong-on-an-appliance) that Prepare and Release must handle.
func wrecks(method, path string) []wreck {
	hit := func(effect fakeoneview.Effect) func(*site) []fakeoneview.Fault {
		return always(fakeoneview.Fault{Method: method, Path: path, Effect: effect})
	}
	times := func(method, path string, n int, effect fakeoneview.Effect) func(*site) []fakeoneview.Fault {
		return always(fakeoneview.Fault{Method: method, Path: path, Count: n, Effect: effect})
	}
	requests := func(s *site) int { return s.appliance.Count(method, path) }
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
			return []fakeoneview.Fault{
				{Method: method, Path: path, Effect: fakeoneview.EmptyBody()},
				{Method: method, Path: path, Effect: fakeoneview.NoLocation()},
			}
		}},
		{name: "the answer is a web page", faults: hit(fakeoneview.HTML())},
		{name: "tasks have a newer type", faults: times("GET", tasks, fakeoneview.Always, fakeoneview.TaskType("TaskResourceV4"))},
		{name: "the answer is lost", faults: hit(fakeoneview.LoseAnswer()), once: requests},
		{name: "the request is lost", faults: hit(fakeoneview.Drop())},
		{name: "executed a moment after a 504", faults: hit(fakeoneview.Late(300 * time.Millisecond)), once: requests},
		{name: "executed late after a 504", faults: hit(fakeoneview.Late(70 * time.Second)), once: requests},
		{name: "locked for a while", faults: times(method, path, 3, fakeoneview.Locked())},
		{name: "too many requests", faults: times(method, path, 2, fakeoneview.TooManyRequests(7*time.Second))},
		{name: "not available for a while", faults: times(method, path, 2, fakeoneview.Unavailable(20*time.Second))},
		{name: "not available, without Retry-After", faults: times(method, path, 2, fakeoneview.Unavailable(-1))},
		{name: "reads are not available for a while", faults: times("GET", anything, 4, fakeoneview.Unavailable(-1))},
		{name: "reads are web pages for a while", faults: times("GET", anything, 4, fakeoneview.HTML())},
		{name: "connections break during reads for a while", faults: times("GET", anything, 4, fakeoneview.Drop())},
		{name: "an internal error", faults: hit(fakeoneview.ServerError())},
		{name: "the session expires", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: method, Path: path, Effect: fakeoneview.Meanwhile(s.appliance.ExpireSessions)}}
		}},
		{name: "the appliance answers once that the session has expired", faults: hit(fakeoneview.NotAuthorized())},
		{
			name: "the user lacks a permission", faults: times(method, path, fakeoneview.Always, fakeoneview.NotAuthorized()),
			fails: "lacks the right",
		},
		{name: "the password has changed", faults: func(*site) []fakeoneview.Fault {
			return []fakeoneview.Fault{
				{Method: method, Path: path, Effect: fakeoneview.NotAuthorized()},
				{Method: "POST", Path: logins, Nth: 2, Count: fakeoneview.Always, Effect: fakeoneview.BadLogin()},
			}
		}, fails: "Check username, password"},
		{
			name: "the task is refused", faults: times(method, path, fakeoneview.Always, fakeoneview.FailValidation(invalid)),
			fails: "MacTypeDiffGlobalMacType",
		},
		{name: "the appliance restarts", faults: func(s *site) []fakeoneview.Fault {
			restart := func() { s.appliance.Restart(time.Minute) }
			return []fakeoneview.Fault{{Method: method, Path: path, Effect: fakeoneview.RightAfter(restart)}}
		}},
		{name: "nextPageUri of a page is the page itself", faults: times("GET", posting, fakeoneview.Always, fakeoneview.PageLoop())},
		{name: "URIs have another spelling", server: func(a *fakeoneview.Server) {
			a.SpellURI = func(uri string) string { return strings.ToUpper(uri[:len("/rest/")]) + uri[len("/rest/"):] + "/" }
		}},
		{name: "serverProfileUri is empty instead of null", server: func(a *fakeoneview.Server) { a.EmptyProfileURI = true }},
		{name: "the hardware shows its profile late", server: func(a *fakeoneview.Server) { a.LateProfileURI = true }},
		{name: "the appliance answers conflicts at once", server: func(a *fakeoneview.Server) { a.PlainConflicts = true }},
		{name: "an old appliance", server: func(a *fakeoneview.Server) { a.CurrentVersion, a.MinimumVersion = 300, 200 }},
		{name: "a newer appliance", server: func(a *fakeoneview.Server) { a.CurrentVersion = 12000 }},
	}
}

func TestPrepareWithstandsFaults(t *testing.T) {
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
		wreck{name: "applying fails", faults: always(fakeoneview.Fault{
			Method: "POST", Path: posting,
			Effect: fakeoneview.FailApply(broken, false),
		}), fails: "Encl1, bay 1 (/rest/server-hardware/1)"},
		wreck{name: "applying fails, and the task does not say what of", faults: always(fakeoneview.Fault{
			Method: "POST", Path: posting,
			Effect: fakeoneview.FailApply(broken, true),
		}), fails: "Reset the iLO"},
		wreck{name: "the hardware is taken before the create", faults: take(0, fakeoneview.Meanwhile), fails: "is used by OneView"},
		wreck{
			name: "the hardware is taken before the create, and that is a conflict", faults: take(0, fakeoneview.Meanwhile),
			fails: "is used by OneView", server: func(a *fakeoneview.Server) { a.PlainConflicts = true },
		},
		wreck{name: "the hardware is taken before the task runs", faults: take(0, fakeoneview.BeforeRunning), fails: "is used by OneView"},
		wreck{name: "the server is switched on before the create", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "POST", Path: posting, Effect: fakeoneview.Meanwhile(func() {
				s.appliance.PowerOn(s.blades.Hardware[0])
			})}}
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
				_, err := pool.Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0]})
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

func TestReleaseWithstandsFaults(t *testing.T) {
	t.Parallel()
	all := append(wrecks("DELETE", profiles), wrecks("PUT", powering)...)
	all = append(
		all,
		wreck{
			name:   "the profile's version is refused once",
			faults: always(fakeoneview.Fault{Method: "DELETE", Path: profiles, Effect: fakeoneview.StaleETag()}),
		},
		wreck{name: "another user edits the profile meanwhile", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "DELETE", Path: profiles, Effect: fakeoneview.Meanwhile(func() {
				s.appliance.EditProfile(s.profiles()[0].URI, func(d map[string]any) { d["affinity"] = "BayAndServer" })
			})}}
		}},
		wreck{name: "removing fails", faults: always(fakeoneview.Fault{
			Method: "DELETE", Path: profiles,
			Effect: fakeoneview.FailApply(broken, false),
		})},
		wreck{name: "the server is switched on before the delete", faults: func(s *site) []fakeoneview.Fault {
			return []fakeoneview.Fault{{Method: "DELETE", Path: profiles, Effect: fakeoneview.Meanwhile(func() {
				s.appliance.PowerOn(s.blades.Hardware[0])
			})}}
		}},
		wreck{name: "another user is faster, and takes the hardware", faults: func(s *site) []fakeoneview.Fault {
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
				err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: s.profiles()[0].URI})
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
				if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
					t.Errorf("release again: %v", err)
				}
				s.wantNothing(t)
			})
		})
	}
}

// befall applies a wreck to the site's appliance.
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

// wantOneSession fails a test if a pool has opened more sessions than it needed.
func (s *site) wantOneSession(t *testing.T, w wreck) {
	t.Helper()
	if w.once != nil && w.once(s) != 1 {
		t.Errorf("%d requests were sent, want 1", w.once(s))
	}
	if n := s.appliance.Sessions(); n > 1 {
		t.Errorf("%d sessions are open", n)
	}
}

// wantNoSecret fails a test if an error contains the password.
func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), password) {
		t.Errorf("the error tells the password: %v", err)
	}
}

func TestFailedRollbackNamesTheProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(broken, false)})
		s.appliance.Inject(fakeoneview.Fault{
			Method: "DELETE", Path: profiles, Count: fakeoneview.Always,
			Effect: fakeoneview.Refuse(http.StatusBadRequest, invalid),
		})
		var recorded string
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Record: func(uri string) { recorded = uri }})
		if !failure.Is(err, sharing.KindLeftover) {
			t.Fatalf("err = %v, want KindLeftover", err)
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

func TestStuckTaskEndsWithTheTimeout(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.StuckTask()})
		_, err := s.pool(t).Prepare(t.Context(), sharing.ProfileSpec{NodeID: s.nodes[0], Limit: 5 * time.Minute})
		if !fault.Is(err, oneview.KindTimeout) {
			t.Fatalf("err = %v, want KindTimeout", err)
		}
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], Limit: 5 * time.Minute}); !fault.Is(err,
			oneview.KindTimeout) {
			t.Fatalf("release during the stuck task: %v, want KindTimeout", err)
		}
		s.wantHeldInProgress(t)
		s.appliance.Restart(time.Minute) // this ends the stuck task
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

// wantHeldInProgress fails a test unless there is one profile, and driver_info names it.
func (s *site) wantHeldInProgress(t *testing.T) {
	t.Helper()
	if found := s.profiles(); len(found) != 1 || s.applied(t, s.nodes[0]) != found[0].URI {
		t.Errorf("profiles %+v, applied %q, want one that Ironic knows", found, s.applied(t, s.nodes[0]))
	}
	s.wantNoHarm(t)
}
