package oneview

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

// killSite has a node for each thing that a pass does: one was taken, one was freed, one has a profile that nobody uses any
// more, and one is none of its business.
func killSite(t *testing.T) *poolSite {
	t.Helper()
	s := newPoolSite(t, 4)
	s.oneview.TakeHardware(s.hardware[0])
	s.ironic.Set(nodeName(1), "provision_state", "manageable")
	s.maintain(t, nodeName(1), MaintenanceOurs)
	s.temporaryOn(t, 2, Cleaning)
	<-time.After(24 * hour)
	s.ironic.Set(nodeName(3), "provision_state", "manageable")
	s.maintain(t, nodeName(3), MaintenanceForeign)
	s.forget()
	return s
}

// Whatever request a pass is killed at, before it leaves or after it took effect, the passes after it bring every node to
// where an undisturbed pass does.
func TestAPassThatIsKilledIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			died := false
			inPoolTime(t, func(t *testing.T) {
				s := killSite(t)
				died = s.untilKilled(t, n, late, func(ctx context.Context, p *Pool) {
					_, err := p.Sync(ctx, SyncOptions{Parallel: 1})
					if died := ctx.Err() != nil; died && err == nil {
						t.Errorf("killed at request %d: no error", n)
					}
				})
				<-time.After(10 * time.Minute) // what the appliance had begun is over
				s.sync(t)
				s.sync(t)
				s.wantNode(t, 0, "manageable", ReasonInUse)
				if node := s.node(t, nodeName(1)); node.ProvisionState != "cleaning" || node.Maintenance {
					t.Errorf("killed at request %d, late %t: the freed node is %s, maintenance %t", n, late, node.ProvisionState, node.Maintenance)
				}
				s.wantNode(t, 3, "manageable", "disk swap")
				s.wantProfiles(t, fmt.Sprintf("killed at request %d, late %t", n, late), 0, 1)
			})
			if !died || t.Failed() {
				if n < 20 {
					t.Errorf("the pass had only %d requests", n)
				}
				break
			}
		}
	}
}

// wantProfiles fails the test unless exactly the hardware of these nodes has profiles, and no profile is on none.
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

// A user who stops the program between two requests leaves nothing that the next pass does not finish; that it does not
// finish the pass is the point.
func TestAStoppedPassStopsSoon(t *testing.T) {
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
			t.Errorf("to be stopped is a failure of nodes: %q", lines)
		}
		if done := len(heard.lines(Changed)); done > 8 {
			t.Errorf("%d nodes were worked on after 5 were done", done)
		}
		s.sync(t)
		for i := range s.hardware {
			s.wantNode(t, i, "manageable", ReasonInUse)
		}
	})
}

// Cost. A pass reads hardware in pages, and singly only what it changes: before each thing that cannot be undone.
func TestAPassOverManyNodesCostsItsPagesAndWhatItChanges(t *testing.T) {
	t.Parallel()
	for _, freed := range []int{20, 120} {
		t.Run(fmt.Sprintf("%d freed", freed), func(t *testing.T) {
			t.Parallel()
			passOverMany(t, freed)
		})
	}
}

// passOverMany makes passes over 500 nodes, of which 40 were taken and so many freed.
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
			s.maintain(t, nodeName(i), MaintenanceOurs)
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
		t.Logf("first pass over %d nodes, %d taken and %d freed: %d requests to the appliance, %d of them reads of hardware (%d pages), %d logins; %d requests to Ironic",
			nodes, taken, freed, len(s.oneview.Requests()), reads, pages, logins, len(s.ironic.Requests()))
		if most := pages + taken + 6*freed; reads > most || pages > 4 {
			t.Errorf("%d reads of hardware, want at most %d", reads, most)
		}
		if logins != 1 {
			t.Errorf("%d logins, want 1", logins)
		}

		s.forget()
		s.sync(t)
		t.Logf("a pass that finds nothing to do: %d requests to the appliance, %d to Ironic", len(s.oneview.Requests()), len(s.ironic.Requests()))
		if all := len(s.oneview.Requests()); all > 20 {
			t.Errorf("a pass that finds nothing to do makes %d requests to the appliance", all)
		}
		for _, r := range s.ironic.Requests() {
			if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes/") {
				t.Errorf("it reads a single node: %s", r.Path)
			}
		}
	})
}

func TestAPassWithoutConcernedNodesReadsNoHardware(t *testing.T) {
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

func TestAPassLogsInAgainOnceWhenTheSessionHasEnded(t *testing.T) {
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

// Faults of the appliance in the middle of a pass: none leads to a leak, or to harm, and the next pass finishes.
func TestAPassWithstandsFaultsOfTheAppliance(t *testing.T) {
	t.Parallel()
	wrong := fakeoneview.Problem{Code: "WRONG", Message: "Something is wrong."}
	for name, fault := range map[string]fakeoneview.Fault{
		"the list of hardware is locked":      {Method: http.MethodGet, Path: "/rest/server-hardware$", Count: 2, Effect: fakeoneview.Locked()},
		"the appliance restarts":              {Method: http.MethodGet, Path: "/rest/server-hardware$", Effect: fakeoneview.Unavailable(30 * time.Second)},
		"a page leads back to itself":         {Method: http.MethodGet, Path: "/rest/server-hardware$", Effect: fakeoneview.PageLoop()},
		"a proxy answers":                     {Method: http.MethodGet, Path: "/rest/server-hardware$", Effect: fakeoneview.HTML()},
		"the session has ended":               {Method: http.MethodGet, Path: "/rest/server-hardware/", Effect: fakeoneview.NotAuthorized()},
		"the profile cannot be applied":       {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.FailApply(wrong, false)},
		"it cannot, and nobody says which":    {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.FailApply(wrong, true)},
		"the profile is refused":              {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.FailValidation(wrong)},
		"the answer to the create is lost":    {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.LoseAnswer()},
		"the answer to a delete is lost":      {Method: http.MethodDelete, Path: "/rest/server-profiles/", Effect: fakeoneview.LoseAnswer()},
		"a profile is stale":                  {Method: http.MethodDelete, Path: "/rest/server-profiles/", Effect: fakeoneview.StaleETag()},
		"the task is warned of":               {Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.Warn(wrong)},
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
					t.Error("the fault did not come up")
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
