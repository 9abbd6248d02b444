package sharing

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// preAllocated makes a node pre-allocated, in a state, with a profile that was made for it in advance. It returns the profile's URI.
func (s *poolSite) preAllocated(t *testing.T, i int, state string) string {
	t.Helper()
	s.driverInfo(t, i, keyDynamic, nil)
	s.ironic.Set(nodeName(i), "provision_state", state)
	return s.oneview.AddProfile(fakeoneview.NewProfile{
		Name: "pre-" + nodeName(i), HardwareURI: s.hardware[i], TemplateURI: s.template,
		Unlinked: true,
	})
}

// migrate runs a migration in a new process, and returns its findings.
func (s *poolSite) migrate(t *testing.T, o MigrateOptions) (*told, MigrateSummary) {
	t.Helper()
	heard := &told{}
	o.Report = heard.hear
	summary, err := s.pool(t).Migrate(t.Context(), o)
	if err != nil {
		t.Fatalf("Migrate: %v", err)
	}
	return heard, summary
}

// wantMigrated fails a test unless a node has dynamic allocation, and its driver_info names this profile ("": none).
func (s *poolSite) wantMigrated(t *testing.T, i int, applied string) {
	t.Helper()
	node := s.read(t, nodeName(i))
	have, _ := node.DriverInfo[keyApplied].(string)
	if node.DriverInfo[keyDynamic] != true || have != applied || node.Extra[keyMigrating] != nil {
		t.Errorf("node %d has %v and extra %v, want dynamic allocation with profile %q", i, node.DriverInfo, node.Extra, applied)
	}
}

func TestMigrateDeployedNode(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 3)
		active := s.preAllocated(t, 0, "active")
		reserved := s.preAllocated(t, 1, "available")
		s.ironic.Set(nodeName(1), "instance_uuid", "11111111-1111-1111-1111-111111111111")
		maintained := s.preAllocated(t, 2, "active")
		s.maintain(t, nodeName(2), maintenanceForeign)
		s.forget()
		_, summary := s.migrate(t, MigrateOptions{All: true})
		if summary.Nodes != 3 || summary.Changed != 3 {
			t.Errorf("summary %+v", summary)
		}
		s.wantMigrated(t, 0, active)
		s.wantMigrated(t, 1, reserved)
		s.wantMigrated(t, 2, maintained)
		s.wantNode(t, 2, "active", "disk swap")
		if changes := s.appliance(); len(changes) > 0 {
			t.Errorf("the appliance was asked for %q", changes)
		}
		for _, write := range s.writes("") {
			if !strings.HasPrefix(write, "PATCH") {
				t.Errorf("the node was also asked for %s", write)
			}
		}
	})
}

func TestMigrateRemovesProvenProfile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		own  func(t *testing.T, s *poolSite, uri string)
	}{
		{"Ironic names it", func(t *testing.T, s *poolSite, uri string) {
			t.Helper()
			s.driverInfo(t, 0, keyApplied, uri)
			s.driverInfo(t, 0, keyDynamic, false)
		}},
		{"it carries the mark of this program", func(t *testing.T, s *poolSite, uri string) {
			t.Helper()
			id := s.node(t, nodeName(0)).UUID
			s.oneview.EditProfile(uri, func(document map[string]any) { document["description"] = mark("pre-node-000", id) })
		}},
		{"it has the name of a temporary one", func(t *testing.T, s *poolSite, uri string) {
			t.Helper()
			id := s.node(t, nodeName(0)).UUID
			s.oneview.EditProfile(uri, func(document map[string]any) { document["name"] = temporaryName(Cleaning, id) })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, state := range []string{"enroll", "manageable", "available", "inspect failed", "clean failed"} {
				inPoolTime(t, func(t *testing.T) {
					s := newPoolSite(t, 1)
					tt.own(t, s, s.preAllocated(t, 0, state))
					s.oneview.PowerOn(s.hardware[0])
					s.forget()
					heard, summary := s.migrate(t, MigrateOptions{All: true})
					if summary.Changed != 1 || summary.Failed != 0 {
						t.Errorf("from %s: summary %+v, told %q", state, summary, heard.lines(""))
					}
					s.wantMigrated(t, 0, "")
					s.wantNode(t, 0, state, "")
					s.wantProfiles(t, "from "+state)
					writes := s.writes(s.node(t, nodeName(0)).UUID)
					if len(writes) == 0 || !strings.Contains(writes[0], ReasonMigrating) {
						t.Errorf("from %s: the first write is not its maintenance: %q", state, writes)
					}
				})
			}
		})
	}
}

func TestMigrateKeepsUnprovenProfile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 2)
		s.preAllocated(t, 0, "available")
		s.driverInfo(t, 1, keyDynamic, false)
		s.oneview.TakeHardware(s.hardware[1])
		s.forget()
		heard, summary := s.migrate(t, MigrateOptions{All: true})
		if summary.Failed != 2 || summary.Changed != 0 {
			t.Errorf("summary %+v", summary)
		}
		if writes := slices.Concat(s.writes(""), s.appliance()); len(writes) > 0 {
			t.Errorf("something was changed: %q", writes)
		}
		for _, line := range heard.lines(Failed) {
			if !strings.Contains(line, "-release-unknown") {
				t.Errorf("what to do is not said: %s", line)
			}
		}
	})
}

func TestReleaseUnknownKeepsProfilesInUse(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 3)
		for i := range 3 {
			uri := s.preAllocated(t, i, "available")
			if i > 0 {
				s.oneview.MarkOthers(uri)
			}
		}
		s.oneview.PowerOn(s.hardware[1])
		s.ironic.Set(nodeName(2), "provision_state", "manageable")
		s.maintain(t, nodeName(2), maintenanceOurs)
		heard, summary := s.migrate(t, MigrateOptions{All: true, ReleaseUnknown: true})
		if summary.Failed != 2 || summary.Changed != 1 {
			t.Errorf("summary %+v, told %q", summary, heard.lines(""))
		}
		s.wantMigrated(t, 0, "")
		s.wantProfiles(t, "with -release-unknown", 1, 2)
		s.wantNode(t, 0, "available", "")
		s.wantNode(t, 1, "available", "")
		s.wantNode(t, 2, "manageable", ReasonInUse)
	})
}

func TestMigrateKeepsForeignMaintenance(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 2)
		for i := range 2 {
			s.preAllocated(t, i, "available")
			s.maintain(t, nodeName(i), maintenanceForeign)
		}
		s.oneview.ReleaseHardware(s.hardware[1]) // free
		_, summary := s.migrate(t, MigrateOptions{All: true, ReleaseUnknown: true})
		if summary.Changed != 2 {
			t.Errorf("summary %+v", summary)
		}
		for i := range 2 {
			s.wantMigrated(t, i, "")
			s.wantNode(t, i, "available", "disk swap")
		}
		s.wantProfiles(t, "afterwards")
	})
}

func TestMigrateDryRun(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 7)
		s.preAllocated(t, 0, "active")
		s.preAllocated(t, 1, "available")
		s.driverInfo(t, 2, keyDynamic, false)                         // free
		s.driverInfo(t, 3, keyHardware, "/rest/server-hardware/NONE") // dynamic already
		s.driverInfo(t, 4, keyDynamic, "maybe")                       // invalid
		s.preAllocated(t, 5, "cleaning")                              // operation in progress
		s.preAllocated(t, 6, "active")                                // has no profile
		s.oneview.ReleaseHardware(s.hardware[6])
		o := MigrateOptions{All: true, ReleaseUnknown: true, DryRun: true}
		s.forget()
		would, _ := s.migrate(t, o)
		if writes := slices.Concat(s.writes(""), s.appliance()); len(writes) > 0 {
			t.Errorf("a dry run changed something: %q", writes)
		}
		o.DryRun = false
		did, summary := s.migrate(t, o)
		if !slices.Equal(would.lines(""), did.lines("")) {
			t.Errorf("the dry run told\n%s\nand the run\n%s", strings.Join(would.lines(""), "\n"), strings.Join(did.lines(""), "\n"))
		}
		if want := (Tally{Changed: 4, Warned: 1, Skipped: 1, Failed: 1}); summary.Tally != want {
			t.Errorf("tally %+v, want %+v", summary.Tally, want)
		}
	})
}

func TestMigrateNamedNodes(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 5)
		first, second := s.preAllocated(t, 0, "active"), s.preAllocated(t, 1, "active")
		s.preAllocated(t, 2, "active")
		s.ironic.Set(nodeName(4), "driver_info", map[string]any{})
		s.forget()
		heard, summary := s.migrate(t, MigrateOptions{Nodes: []string{
			nodeName(0), s.node(t, nodeName(1)).UUID, nodeName(3),
			nodeName(4), "unknown",
		}})
		if want := (Tally{Changed: 2, Unchanged: 1, Failed: 2}); summary.Tally != want {
			t.Errorf("tally %+v, told %q", summary.Tally, heard.lines(""))
		}
		s.wantMigrated(t, 0, first)
		s.wantMigrated(t, 1, second)
		if s.read(t, nodeName(2)).DriverInfo[keyDynamic] != nil {
			t.Error("a node that was not named was migrated")
		}
	})
}

func TestMigrateNeedsSelection(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		if _, err := s.pool(t).Migrate(t.Context(), MigrateOptions{}); err == nil {
			t.Error("it migrated something")
		}
	})
}

func TestMigrateRefusesOtherAppliedProfile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.preAllocated(t, 0, "active")
		s.driverInfo(t, 0, keyApplied, "/rest/server-profiles/another")
		s.driverInfo(t, 0, keyDynamic, false)
		heard, summary := s.migrate(t, MigrateOptions{All: true})
		if summary.Failed != 1 || summary.Changed != 0 {
			t.Errorf("summary %+v, told %q", summary, heard.lines(""))
		}
	})
}

func TestMigrateKeepsDynamicProfile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		uri := s.preAllocated(t, 0, "available")
		s.driverInfo(t, 0, keyApplied, uri)
		s.migrate(t, MigrateOptions{All: true})
		s.wantMigrated(t, 0, uri)
		s.wantProfiles(t, "afterwards", 0)
	})
}

func TestMigrateFinishesFormerTool(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 2)
		for i := range 2 { // with dynamic allocation or with free hardware, but still in the tool's maintenance
			s.ironic.Set(nodeName(i), "maintenance", true)
			s.ironic.Set(nodeName(i), "maintenance_reason", ReasonMigrating)
		}
		s.driverInfo(t, 1, keyDynamic, nil)
		s.migrate(t, MigrateOptions{All: true})
		for i := range 2 {
			s.wantMigrated(t, i, "")
			s.wantNode(t, i, "available", "")
		}
	})
}

func TestMigrateContinuesAfterBadNode(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 3)
		for i := range 3 {
			s.preAllocated(t, i, "active")
		}
		s.driverInfo(t, 0, keyHardware, "/rest/server-hardware/NONE")
		locked := s.node(t, nodeName(1)).UUID
		s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, locked) {
				return &fakeironic.Rejection{
					Status: http.StatusConflict,
					Body:   `{"error_message": "{\"faultstring\": \"Node U is locked by host h.\"}"}`,
				}
			}
			return nil
		}
		_, summary := s.migrate(t, MigrateOptions{All: true})
		if want := (Tally{Changed: 1, Skipped: 1, Failed: 1}); summary.Tally != want {
			t.Errorf("tally %+v, want %+v", summary.Tally, want)
		}
	})
}

// After a kill at any request, the next migration has the same result as one without a kill.
func TestKilledMigrationIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	o := MigrateOptions{All: true, ReleaseUnknown: true, Parallel: 1}
	EveryKill(t, []string{"PUT /v1/nodes/*/maintenance", "PATCH /v1/nodes/*", "DELETE /rest/server-profiles/*"},
		func(t *testing.T, m *Mortal) {
			t.Helper()
			inPoolTime(t, func(t *testing.T) {
				s := newPoolSite(t, 3)
				s.preAllocated(t, 0, "available")
				s.preAllocated(t, 1, "available")
				s.maintain(t, nodeName(1), maintenanceForeign)
				active := s.preAllocated(t, 2, "active")
				s.run(t, m, func(ctx context.Context, p *Pool) { _, _ = p.Migrate(ctx, o) })
				<-time.After(10 * time.Minute)
				heard, _ := s.migrate(t, o)
				if failed := heard.lines(Failed); len(failed) > 0 {
					t.Errorf("%s: then failed %q", m, failed)
				}
				s.wantMigrated(t, 0, "")
				s.wantNode(t, 0, "available", "")
				s.wantMigrated(t, 1, "")
				s.wantNode(t, 1, "available", "disk swap")
				s.wantMigrated(t, 2, active)
				s.wantProfiles(t, m.String(), 2)
			})
		})
}

// A killed migration with ReleaseUnknown leaves no proof that the profile was made for the node. If its user switches the server on
// before the next run, that run does not remove the profile, with the flag or without.
func TestKilledMigrationProvesNoProfile(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		EveryKill(t, []string{"DELETE /rest/server-profiles/*"}, func(t *testing.T, m *Mortal) {
			t.Helper()
			inPoolTime(t, func(t *testing.T) {
				s := newPoolSite(t, 1)
				s.driverInfo(t, 0, keyApplied, "/rest/server-profiles/gone")
				s.driverInfo(t, 0, keyDynamic, false)
				uri := s.oneview.AddProfile(fakeoneview.NewProfile{Name: "esx-07", HardwareURI: s.hardware[0]})
				s.run(t, m, func(ctx context.Context, p *Pool) {
					_, _ = p.Migrate(ctx, MigrateOptions{All: true, ReleaseUnknown: true})
				})
				<-time.After(10 * time.Minute)
				if len(s.oneview.Profiles()) == 0 {
					return // the killed run has removed the profile already, while the server was off
				}
				s.oneview.MarkOthers(uri)
				s.oneview.PowerOn(s.hardware[0])
				heard, _ := s.migrate(t, MigrateOptions{All: true, ReleaseUnknown: again})
				if failed := heard.lines(Failed); len(failed) != 1 || !strings.Contains(failed[0], "no proof that server profile esx-07") {
					t.Errorf("%s, with the flag again %t: failed %q", m, again, failed)
				}
			})
		})
	}
}

// The user of the profile may switch the server on during the migration.
func TestMigrateKeepsProfileOfServerSwitchedOn(t *testing.T) {
	t.Parallel()
	for _, request := range []fakeoneview.Fault{
		{Method: http.MethodGet, Path: "/rest/server-profiles/", Nth: 1}, // after the migration has read that the server is off
		{Method: http.MethodGet, Path: "/rest/server-profiles/", Nth: 2}, // after the maintenance
		{Method: http.MethodDelete, Path: "/rest/server-profiles/"},
	} {
		inPoolTime(t, func(t *testing.T) {
			s := newPoolSite(t, 1)
			uri := s.preAllocated(t, 0, "available")
			request.Effect = fakeoneview.Meanwhile(func() { s.oneview.PowerOn(s.hardware[0]) })
			hits := s.oneview.Inject(request)
			heard, _ := s.migrate(t, MigrateOptions{All: true, ReleaseUnknown: true})
			if failed := heard.lines(Failed); hits() != 1 || len(failed) != 1 ||
				!strings.Contains(failed[0], "the server is not off (On)") {
				t.Errorf("hit %d times, failed %q", hits(), failed)
			}
			if h := s.oneview.HardwareAt(s.hardware[0]); h.ProfileURI != uri || h.Power != fakeoneview.On {
				t.Errorf("the server is %+v", h)
			}
			s.wantNode(t, 0, "available", "")
			if info := s.read(t, nodeName(0)).DriverInfo; info[keyApplied] != nil || info[keyDynamic] != nil {
				t.Errorf("the node has %v", info)
			}
		})
	}
}

func TestMigrateKeepsProfileOfNodeDeployedMeanwhile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		uri := s.preAllocated(t, 0, "available")
		s.oneview.Inject(fakeoneview.Fault{Method: http.MethodGet, Path: uri, Effect: fakeoneview.Meanwhile(func() {
			s.ironic.Set(nodeName(0), "provision_state", "deploying")
		})})
		heard, summary := s.migrate(t, MigrateOptions{All: true, ReleaseUnknown: true})
		if summary.Skipped != 1 || len(s.oneview.Profiles()) != 1 {
			t.Errorf("told %q; profiles %+v", heard.lines(""), s.oneview.Profiles())
		}
		s.wantNode(t, 0, "deploying", "")
	})
}

func TestMigrateKeepsMaintenanceSetMeanwhile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.preAllocated(t, 0, "available")
		s.oneview.Inject(fakeoneview.Fault{
			Method: http.MethodDelete, Path: "/rest/server-profiles/",
			Effect: fakeoneview.RightAfter(func() {
				s.maintain(t, nodeName(0), maintenanceForeign)
			}),
		})
		s.migrate(t, MigrateOptions{All: true, ReleaseUnknown: true})
		s.wantMigrated(t, 0, "")
		s.wantNode(t, 0, "available", "disk swap")
	})
}
