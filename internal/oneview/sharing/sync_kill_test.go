package sharing

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// killSite returns a site with a node for each action of a pass: one whose server was taken, one whose server was freed, one with an
// unused temporary profile, and one that a pass does not change.
func killSite(t *testing.T) *poolSite {
	t.Helper()
	s := newPoolSite(t, 4)
	s.oneview.TakeHardware(s.hardware[0])
	s.ironic.Set(nodeName(1), "provision_state", "manageable")
	s.maintain(t, nodeName(1), maintenanceOurs)
	s.temporaryOn(t, 2, Cleaning)
	<-time.After(24 * hour)
	s.ironic.Set(nodeName(3), "provision_state", "manageable")
	s.maintain(t, nodeName(3), maintenanceForeign)
	s.forget()
	return s
}

// After a kill at any request, before it is sent or after it has taken effect, the next passes have the same result as one without a
// kill.
func TestKilledSyncIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	must := []string{
		"PUT /v1/nodes/*/maintenance", "PUT /v1/nodes/*/states/provision", "POST /rest/server-profiles",
		"DELETE /rest/server-profiles/*",
	}
	EveryKill(t, must, func(t *testing.T, m *Mortal) {
		t.Helper()
		inPoolTime(t, func(t *testing.T) {
			s := killSite(t)
			s.run(t, m, func(ctx context.Context, p *Pool) {
				_, err := p.Sync(ctx, SyncOptions{Parallel: 1})
				if ctx.Err() != nil && err == nil {
					t.Errorf("%s: no error", m)
				}
			})
			<-time.After(10 * time.Minute) // the appliance's operations have ended
			s.sync(t)
			s.sync(t)
			s.wantNode(t, 0, "manageable", ReasonInUse)
			if node := s.node(t, nodeName(1)); node.ProvisionState != "cleaning" || node.Maintenance {
				t.Errorf("%s: the freed node is %s, maintenance %t", m, node.ProvisionState, node.Maintenance)
			}
			s.wantNode(t, 3, "manageable", "disk swap")
			s.wantProfiles(t, m.String(), 0, 1)
		})
	})
}

// wantProfiles fails a test unless exactly the hardware of these nodes has profiles, and each profile is on hardware.
func (s *poolSite) wantProfiles(t *testing.T, when string, numbers ...int) {
	t.Helper()
	var want, got []string
	for _, i := range numbers {
		want = append(want, s.hardware[i])
	}
	for _, p := range s.oneview.Profiles() {
		got = append(got, p.HardwareURI)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: there are profiles on %q, want on %q", when, got, want)
	}
}

// A pass that is stopped between two requests ends soon. The next pass finishes its work.
func TestStoppedSyncStopsSoon(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 50)
		for _, uri := range s.hardware {
			s.oneview.TakeHardware(uri)
		}
		ctx, stop := context.WithCancel(t.Context())
		heard := &told{}
		_, err := s.pool(t).Sync(ctx, SyncOptions{Parallel: 2, Report: func(f Finding) {
			heard.hear(f)
			if len(heard.all) == 5 {
				stop()
			}
		}})
		if err == nil {
			t.Error("a stopped pass has no error")
		}
		if lines := heard.lines(Failed); len(lines) > 0 {
			t.Errorf("the stopped pass reports failures of nodes: %q", lines)
		}
		if done := len(heard.lines(Changed)); done > 8 {
			t.Errorf("the pass changed %d nodes, and was stopped after 5", done)
		}
		s.sync(t)
		for i := range s.hardware {
			s.wantNode(t, i, "manageable", ReasonInUse)
		}
	})
}

// A pass that is stopped ends within half a minute, even if Ironic and the appliance do not answer any more.
func TestStoppedSyncEndsThoughServersHang(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 50)
		for _, uri := range s.hardware {
			s.oneview.TakeHardware(uri)
		}
		ctx, stop := context.WithCancel(t.Context())
		var stopped time.Time
		until := func(server http.RoundTripper) http.RoundTripper {
			return ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				if ctx.Err() != nil {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return server.RoundTrip(r)
			})
		}
		heard := &told{}
		_, err := s.poolThrough(t, until(s.ironic), until(s.oneview)).Sync(ctx, SyncOptions{Parallel: 2, Report: func(f Finding) {
			if heard.hear(f); len(heard.all) == 5 {
				stopped = time.Now()
				stop()
			}
		}})
		if took := time.Since(stopped); err == nil || took > 30*time.Second {
			t.Errorf("%s after the stop: %v", took, err)
		}
	})
}

// A pass reads hardware in pages. It reads single hardware only before each change that it cannot undo.
func TestSyncOfManyNodesCostsPagesAndChanges(t *testing.T) {
	t.Parallel()
	for _, freed := range []int{20, 120} {
		t.Run(fmt.Sprintf("%d freed", freed), func(t *testing.T) {
			t.Parallel()
			passOverMany(t, freed)
		})
	}
}

// passOverMany makes passes over 500 nodes. OneView users have taken the servers of 40 nodes, and freed a number of them.
func passOverMany(t *testing.T, freed int) {
	t.Helper()
	inPoolTime(t, func(t *testing.T) {
		const nodes, taken, active = 500, 40, 300
		s := newPoolSite(t, nodes+active)
		for i := range taken {
			s.oneview.TakeHardware(s.hardware[i])
		}
		for i := taken; i < taken+freed; i++ {
			s.ironic.Set(nodeName(i), "provision_state", "manageable")
			s.maintain(t, nodeName(i), maintenanceOurs)
		}
		for i := nodes; i < nodes+active; i++ {
			s.ironic.Set(nodeName(i), "provision_state", "active")
			s.give(t, i, "web-"+nodeName(i))
		}
		s.forget()
		_, summary := s.sync(t, func(o *SyncOptions) { o.Budget = hour })
		if summary.Nodes != nodes || summary.Changed != taken+freed || summary.Failed+summary.Skipped != 0 {
			t.Errorf("summary %+v", summary)
		}
		pages := s.oneview.Count(http.MethodGet, "^/rest/server-hardware$")
		reads := s.oneview.Count(http.MethodGet, "^/rest/server-hardware")
		logins := s.oneview.Count(http.MethodPost, "^/rest/login-sessions$")
		t.Logf("first pass over %d nodes, %d taken and %d freed: %d requests to the appliance, %d of them reads of hardware (%d pages), "+
			"%d logins; %d requests to Ironic",
			nodes, taken, freed, len(s.oneview.Requests()), reads, pages, logins, len(s.ironic.Requests()))
		if most := pages + taken + 6*freed; reads > most || pages > 4 {
			t.Errorf("%d reads of hardware, want at most %d", reads, most)
		}
		if logins != 1 {
			t.Errorf("%d logins, want 1", logins)
		}

		s.forget()
		s.sync(t)
		t.Logf("a pass that finds nothing to do: %d requests to the appliance, %d to Ironic", len(s.oneview.Requests()),
			len(s.ironic.Requests()))
		if all := len(s.oneview.Requests()); all > 20 {
			t.Errorf("a pass without changes makes %d requests to the appliance", all)
		}
		for _, r := range s.ironic.Requests() {
			if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes/") {
				t.Errorf("the pass reads a single node: %s", r.Path)
			}
		}
	})
}

func TestSyncWithoutConcernedNodesReadsNoHardware(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 3)
		for i := range 3 {
			s.ironic.Set(nodeName(i), "provision_state", "active")
		}
		s.forget()
		s.sync(t)
		if reads := s.oneview.Count(http.MethodGet, "^/rest/server-hardware"); reads != 0 {
			t.Errorf("%d reads of hardware, want none", reads)
		}
	})
}

func TestSyncLogsInOnceAfterSessionEnd(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		pool := s.pool(t)
		for range 2 {
			if _, err := pool.Sync(t.Context(), SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			s.oneview.ExpireSessions()
		}
		if _, err := pool.Sync(t.Context(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		if logins := s.oneview.Count(http.MethodPost, "^/rest/login-sessions$"); logins != 3 {
			t.Errorf("%d logins in three sessions", logins)
		}
	})
}

// After a fault of the appliance during a pass, no profile is left over, no other user is harmed, and the next pass finishes the work.
func TestSyncWithstandsFaults(t *testing.T) {
	t.Parallel()
	wrong := fakeoneview.Problem{Code: "WRONG", Message: "Something is wrong."}
	for name, fault := range map[string]fakeoneview.Fault{
		"the list of hardware is locked": {
			Method: http.MethodGet, Path: "/rest/server-hardware$", Count: 2,
			Effect: fakeoneview.Locked(),
		},
		"the appliance restarts": {
			Method: http.MethodGet, Path: "/rest/server-hardware$",
			Effect: fakeoneview.Unavailable(30 * time.Second),
		},
		"nextPageUri is the page itself": {Method: http.MethodGet, Path: "/rest/server-hardware$", Effect: fakeoneview.PageLoop()},
		"a proxy answers":                {Method: http.MethodGet, Path: "/rest/server-hardware$", Effect: fakeoneview.HTML()},
		"the session has ended": {
			Method: http.MethodGet, Path: "/rest/server-hardware/",
			Effect: fakeoneview.NotAuthorized(),
		},
		"the profile cannot be applied": {
			Method: http.MethodPost, Path: "/rest/server-profiles$",
			Effect: fakeoneview.FailApply(wrong, false),
		},
		"apply fails without a profile URI": {
			Method: http.MethodPost, Path: "/rest/server-profiles$",
			Effect: fakeoneview.FailApply(wrong, true),
		},
		"the profile is refused": {
			Method: http.MethodPost, Path: "/rest/server-profiles$",
			Effect: fakeoneview.FailValidation(wrong),
		},
		"the answer to the create is lost": {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.LoseAnswer()},
		"the answer to a delete is lost": {
			Method: http.MethodDelete, Path: "/rest/server-profiles/",
			Effect: fakeoneview.LoseAnswer(),
		},
		"the eTag of a profile is old":        {Method: http.MethodDelete, Path: "/rest/server-profiles/", Effect: fakeoneview.StaleETag()},
		"the task ends with a warning":        {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.Warn(wrong)},
		"the task is forgotten":               {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.ForgetTask()},
		"temporary profiles cannot be listed": {Method: http.MethodGet, Path: "/rest/server-profiles$", Effect: fakeoneview.ServerError()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inPoolTime(t, func(t *testing.T) {
				s := killSite(t)
				hits := s.oneview.Inject(fault)
				_, err := s.pool(t).Sync(t.Context(), SyncOptions{})
				if hits() == 0 {
					t.Error("the fault has hit no request")
				}
				s.sync(t)
				s.sync(t)
				s.wantNode(t, 0, "manageable", ReasonInUse)
				s.wantNode(t, 1, "cleaning", "")
				s.wantNode(t, 3, "manageable", "disk swap")
				s.wantProfiles(t, fmt.Sprintf("after %v", err), 0, 1)
			})
		})
	}
}
