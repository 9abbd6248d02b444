package sharing

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// cell is one cell of the decision table, and its node.
type cell struct {
	owner       Ownership
	state       ironic.State
	maintenance maintenance
	action      Action
}

// tableSite is a site with a node in every cell of the decision table.
func tableSite(t *testing.T) (*poolSite, []cell) {
	t.Helper()
	var cells []cell
	expectedActions(func(owner Ownership, state ironic.State, maintenance maintenance, want Action) {
		cells = append(cells, cell{owner, state, maintenance, want})
	})
	s := newPoolSite(t, len(cells))
	for i, c := range cells {
		s.ironic.Set(nodeName(i), "provision_state", string(c.state))
		s.maintain(t, nodeName(i), c.maintenance)
		switch c.owner {
		case Free:
		case UsedByIronic:
			s.give(t, i, "ours-"+nodeName(i))
		case UsedByOneView:
			s.oneview.TakeHardware(s.hardware[i])
		case OwnershipUnknown:
		}
	}
	s.forget()
	return s, cells
}

func TestSyncFollowsTable(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s, cells := tableSite(t)
		heard, summary := s.sync(t)
		if failed := heard.lines(Failed); len(failed) > 0 {
			t.Errorf("failed: %q", failed)
		}
		changed, reported := 0, 0
		for i, c := range cells {
			id := s.node(t, nodeName(i)).UUID
			s.wantAction(t, i, c, s.writes(id))
			if c.action == Report {
				reported++
			} else if c.action != Leave {
				changed++
			}
		}
		if summary.Changed != changed {
			t.Errorf("%d nodes were changed, want %d", summary.Changed, changed)
		}
		if summary.Warned != reported || reported == 0 {
			t.Errorf("%d nodes were reported, want %d", summary.Warned, reported)
		}
	})
}

// wantAction fails a test unless a pass has sent the requests of the cell's action for its node, in the right order.
func (s *poolSite) wantAction(t *testing.T, i int, c cell, writes []string) {
	t.Helper()
	about := fmt.Sprintf("node %d (%s, %q, %s)", i, c.owner, c.state, c.maintenance)
	const mark, manage, provide = `PUT /maintenance {"reason":"node in use by OneView"}`, `PUT /states/provision {"target":"manage"}`,
		`PUT /states/provision {"target":"provide"}`
	var want []string
	switch c.action {
	case Leave, Report:
	case TakeOut:
		want = append(want, "PATCH  …oneview_out_of_service")
		if c.maintenance != maintenanceOurs {
			want = append(want, mark)
		}
		if c.state != "manageable" {
			want = append(want, manage)
		}
		s.wantNode(t, i, "manageable", ReasonInUse)
	case Return:
		if c.owner == Free {
			want = append(want, "PATCH  …applied_server_profile_uri")
		}
		if c.maintenance != maintenanceLifted {
			want = append(want, "PATCH  …/maintenance")
		}
		want = append(want, provide)
		s.wantNode(t, i, "cleaning", "")
	}
	for j := range writes {
		for _, key := range []string{"applied_server_profile_uri", "/maintenance", "oneview_out_of_service"} {
			if strings.HasPrefix(writes[j], "PATCH") && strings.Contains(writes[j], key) {
				writes[j] = "PATCH  …" + key
			}
		}
	}
	if c.state == "available" && c.maintenance == maintenanceLifted && len(writes) == 1 && strings.Contains(writes[0], "remove") {
		writes = nil // the pass removes a mark that does not apply in this state
	}
	if !slices.Equal(writes, want) {
		t.Errorf("%s: requests %q, want %q", about, writes, want)
	}
}

func TestSyncDryRun(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s, _ := tableSite(t)
		would, _ := s.sync(t, dryRun)
		if writes := slices.Concat(s.writes(""), s.appliance()); len(writes) > 0 {
			t.Errorf("a dry run changed something: %q", writes)
		}
		did, _ := s.sync(t)
		if !slices.Equal(would.lines(""), did.lines("")) {
			t.Errorf("the dry run told\n%s\nand the run\n%s", strings.Join(would.lines(""), "\n"), strings.Join(did.lines(""), "\n"))
		}
	})
}

func TestSyncReportsFailedDeploymentOnTakenHardware(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 2)
		s.ironic.Set(nodeName(0), "provision_state", "deploy failed")
		s.oneview.TakeHardware(s.hardware[0])
		heard, _ := s.sync(t)
		lines := heard.lines(Warned)
		if len(lines) != 1 || !strings.Contains(lines[0], nodeName(0)) || !strings.Contains(lines[0], "is in use by OneView") ||
			!strings.Contains(lines[0], "Do not undeploy the node") {
			t.Errorf("the pass warns of %q", lines)
		}
		all, err := s.pool(t).Status(t.Context())
		if err != nil || len(all) != 2 || all[0].Next != Report || all[1].Next != Leave {
			t.Errorf("status: %+v, %v", all, err)
		}
	})
}

func TestSyncReturnsFreedNodeCleaned(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		taken := s.oneview.TakeHardware(s.hardware[0])
		s.sync(t)
		s.wantNode(t, 0, "manageable", ReasonInUse)

		s.forget()
		s.sync(t)
		if writes := slices.Concat(s.writes(""), s.appliance()); len(writes) > 0 {
			t.Errorf("the pass wrote to a node in use: %q", writes)
		}

		s.oneview.ReleaseHardware(s.hardware[0])
		s.sync(t)
		s.wantNode(t, 0, "cleaning", "")
		id := s.node(t, nodeName(0)).UUID
		if applied := s.oneview.Profiles(); len(applied) != 1 || applied[0].Name != "Ironic Cleaning ["+id+"]" || applied[0].URI == taken {
			t.Errorf("the node is cleaned with the profiles %+v", applied)
		}

		s.forget()
		s.sync(t)
		if writes := slices.Concat(s.writes(""), s.appliance()); len(writes) > 0 {
			t.Errorf("the pass wrote to a node in cleaning: %q", writes)
		}

		<-time.After(3 * hour)
		s.sync(t)
		s.wantNode(t, 0, "available", "")
		if left := s.oneview.Profiles(); len(left) > 0 {
			t.Errorf("after the cleaning the profiles %+v are left", left)
		}
		s.sync(t)
		node := s.read(t, nodeName(0))
		if node.DriverInfo[keyApplied] != nil || node.DriverInfo[keyOut] != nil {
			t.Errorf("the node still has notes: %v %v", node.DriverInfo, node.Extra)
		}
	})
}

func TestSyncSkipsReservedNode(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 2)
		for i := range 2 {
			s.oneview.TakeHardware(s.hardware[i])
		}
		s.ironic.Set(nodeName(0), "reservation", "conductor-1")
		heard, summary := s.sync(t)
		if summary.Skipped != 1 || summary.Failed != 0 || summary.Changed != 1 {
			t.Errorf("summary %+v, told %q", summary, heard.lines(""))
		}
		s.wantNode(t, 0, "available", "")
		s.ironic.Set(nodeName(0), "reservation", nil)
		s.sync(t)
		s.wantNode(t, 0, "manageable", ReasonInUse)
	})
}

func TestSyncSkipsLockedNode(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.oneview.TakeHardware(s.hardware[0])
		s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPut {
				return &fakeironic.Rejection{
					Status: http.StatusConflict,
					Body:   `{"error_message": "{\"faultstring\": \"Node U is locked by host h, please retry after the current operation is completed.\"}"}`,
				}
			}
			return nil
		}
		_, summary := s.sync(t)
		if summary.Skipped != 1 || summary.Failed != 0 {
			t.Errorf("summary %+v", summary)
		}
	})
}

func TestSyncContinuesAfterBadNode(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 8)
		for i := range 8 {
			s.oneview.TakeHardware(s.hardware[i])
		}
		s.driverInfo(t, 0, keyHardware, "/rest/server-hardware/NONE")
		s.driverInfo(t, 1, keyHardware, "somewhere else")
		s.driverInfo(t, 2, keyDynamic, "perhaps")
		broken := s.node(t, nodeName(3)).UUID
		s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, broken) {
				return &fakeironic.Rejection{Status: http.StatusInternalServerError, Body: "boom"}
			}
			return nil
		}
		s.oneview.Inject(fakeoneview.Fault{
			Method: http.MethodGet, Path: s.hardware[4] + "$", Count: fakeoneview.Always,
			Effect: fakeoneview.ServerError(),
		})
		heard, summary := s.sync(t)
		if summary.Failed != 5 || summary.Changed != 3 {
			t.Errorf("summary %+v, told\n%s", summary, strings.Join(heard.lines(""), "\n"))
		}
		for i := range 5 {
			s.wantNode(t, i, "available", "")
		}
		for i := 5; i < 8; i++ {
			s.wantNode(t, i, "manageable", ReasonInUse)
		}
	})
}

func TestSyncFailsWithoutAppliance(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.oneview.Inject(fakeoneview.Fault{Count: fakeoneview.Always, Effect: fakeoneview.ServerError()})
		if _, err := s.pool(t).Sync(t.Context(), SyncOptions{}); err == nil {
			t.Error("the pass succeeded")
		}
		if writes := s.writes(""); len(writes) > 0 {
			t.Errorf("the pass wrote although the appliance did not answer: %q", writes)
		}
	})
}

func TestSyncKeepsProfileInPreparation(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.oneview.StepTime = time.Minute // the profile exists long before driver_info names it
		s.oneview.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: "/rest/server-profiles$", Effect: fakeoneview.StuckTask()})
		id := s.node(t, nodeName(0)).UUID
		ctx, stop := context.WithCancel(t.Context())
		s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPatch { // the run dies before it can write driver_info
				stop()
				return &fakeironic.Rejection{Drop: true}
			}
			return nil
		}
		_, err := s.pool(t).Prepare(ctx, ProfileSpec{NodeID: id})
		if err == nil || len(s.oneview.Profiles()) != 1 {
			t.Fatalf("Prepare: %v, profiles %+v", err, s.oneview.Profiles())
		}
		s.ironic.Reject = nil
		s.forget()
		heard, _ := s.sync(t)
		if writes := s.writes(""); len(writes) > 0 {
			t.Errorf("the pass wrote %q", writes)
		}
		s.wantNode(t, 0, "available", "")
		if failed := heard.lines(Failed); len(failed) > 0 {
			t.Errorf("failed: %q", failed)
		}
	})
}

func TestSyncSkipsPreAllocatedNodes(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 3)
		for i := range 3 {
			s.oneview.TakeHardware(s.hardware[i])
		}
		s.driverInfo(t, 0, keyDynamic, false)
		s.driverInfo(t, 1, keyDynamic, nil)
		s.forget()
		_, summary := s.sync(t)
		if summary.PreAllocated != 2 || summary.Changed != 1 {
			t.Errorf("summary %+v", summary)
		}
		s.wantNode(t, 0, "available", "")
		s.wantNode(t, 1, "available", "")
	})
}

func TestSyncWarnsOfNodeThatIsNotErased(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.ironic.Set(nodeName(0), "automated_clean", false)
		s.oneview.TakeHardware(s.hardware[0])
		taken, _ := s.sync(t)
		s.oneview.ReleaseHardware(s.hardware[0])
		freed, _ := s.sync(t)
		for _, heard := range []*told{taken, freed} {
			if lines := heard.lines(Warned); len(lines) != 1 || !strings.Contains(lines[0], "erase") {
				t.Errorf("warnings %q, want one of disks that are not erased", lines)
			}
		}
		s.wantNode(t, 0, "available", "")
		s.wantProfiles(t, "without a cleaning")
	})
}

// Without a profile the server would boot without OneView's networks, and any user could take it while Ironic erases its disks.
func TestSyncDoesNotReturnNodeWithoutTemplate(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 3)
		for i := range 3 {
			s.ironic.Set(nodeName(i), "provision_state", "manageable")
			s.ironic.Set(nodeName(i), "properties", map[string]any{}) // no template
			s.maintain(t, nodeName(i), maintenanceOurs)
		}
		s.ironic.Set(nodeName(1), "automated_clean", false)
		s.give(t, 2, "web-2") // this node has a profile already
		would, _ := s.sync(t, dryRun)
		did, _ := s.sync(t)
		for _, heard := range []*told{would, did} {
			if failed := heard.lines(Failed); len(failed) != 1 || !strings.Contains(failed[0], "node-000: return it to service") ||
				!strings.Contains(failed[0], "has no server_profile_template_uri. Add it, or set automated_clean = false") {
				t.Errorf("failed %q", failed)
			}
		}
		s.wantNode(t, 0, "manageable", ReasonInUse)
		s.wantNode(t, 1, "available", "")
		s.wantNode(t, 2, "cleaning", "")
	})
}

func TestSyncDoesNotReturnNodeThatLosesProfile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.ironic.Set(nodeName(0), "provision_state", "manageable")
		s.maintain(t, nodeName(0), maintenanceOurs)
		id := s.node(t, nodeName(0)).UUID
		s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection { // another user removes the profile as soon as driver_info names it
			info, _ := s.node(t, id).Raw["driver_info"].(map[string]any)
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, id) && info[keyApplied] != nil {
				s.oneview.ReleaseHardware(s.hardware[0])
			}
			return nil
		}
		heard, summary := s.sync(t)
		if summary.Skipped != 1 || summary.Failed != 0 {
			t.Errorf("told %q", heard.lines(""))
		}
		s.wantNode(t, 0, "manageable", ReasonInUse)
	})
}

func TestSyncDoesNotReturnRetiredNode(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.ironic.Set(nodeName(0), "provision_state", "manageable")
		s.ironic.Set(nodeName(0), "retired", true)
		s.maintain(t, nodeName(0), maintenanceOurs)
		s.forget()
		_, summary := s.sync(t)
		if summary.Skipped != 1 || len(s.writes("")) > 0 || len(s.appliance()) > 0 {
			t.Errorf("summary %+v, requests %q %q", summary, s.writes(""), s.appliance())
		}
	})
}

func TestSyncReturnsWithinLimit(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 6)
		s.limit = hosts(2)
		for i := range 6 {
			s.ironic.Set(nodeName(i), "provision_state", "manageable")
			s.maintain(t, nodeName(i), maintenanceOurs)
		}
		start := time.Now()
		heard, summary := s.sync(t)
		if summary.Changed != 2 || summary.Skipped != 4 || summary.Failed != 0 {
			t.Errorf("summary %+v, told %q", summary, heard.lines(""))
		}
		if took := time.Since(start); took > DefaultBudget+2*time.Minute {
			t.Errorf("the pass took %s: it waited for the cleaning", took)
		}
		kept := 0
		for _, node := range s.ironic.Nodes() {
			if node.Maintenance && node.MaintenanceReason == ReasonInUse {
				kept++
			}
		}
		if kept != 4 {
			t.Errorf("%d nodes that wait for a slot are in maintenance, want 4", kept)
		}
		for range 4 {
			<-time.After(2 * hour)
			s.sync(t)
		}
		<-time.After(2 * hour)
		s.sync(t)
		if peak := s.ironic.MaxBusy("cleaning", "clean wait"); peak != 2 {
			t.Errorf("%d nodes were cleaned at once, want 2", peak)
		}
		for i := range 6 {
			s.wantNode(t, i, "available", "")
		}
		if left := s.oneview.Profiles(); len(left) > 0 {
			t.Errorf("profiles are left: %+v", left)
		}
	})
}

func TestSyncDoesNotReturnNodeTakenAgain(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.ironic.Set(nodeName(0), "provision_state", "manageable")
		s.ironic.Set(nodeName(0), "automated_clean", false) // no temporary profile, so that the other user can take the server
		s.maintain(t, nodeName(0), maintenanceOurs)
		s.forget()
		looks := 0
		s.oneview.Inject(fakeoneview.Fault{
			Method: http.MethodGet, Path: s.hardware[0], Count: fakeoneview.Always, Effect: fakeoneview.Meanwhile(func() {
				if looks++; looks == 2 {
					s.oneview.TakeHardware(s.hardware[0])
				}
			}),
		})
		_, summary := s.sync(t)
		if summary.Changed != 0 || summary.Failed != 0 {
			t.Errorf("summary %+v", summary)
		}
		s.wantNode(t, 0, "manageable", ReasonInUse)
		if writes := s.writes(""); len(writes) > 0 {
			t.Errorf("the pass wrote %q", writes)
		}
	})
}

func TestSyncKeepsMaintenanceSetMeanwhile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 2)
		s.oneview.TakeHardware(s.hardware[0])
		s.ironic.Set(nodeName(1), "provision_state", "manageable")
		s.maintain(t, nodeName(1), maintenanceOurs)
		s.oneview.Inject(fakeoneview.Fault{Method: http.MethodGet, Path: "/rest/server-hardware$", Effect: fakeoneview.RightAfter(func() {
			for i := range 2 {
				s.maintain(t, nodeName(i), maintenanceForeign)
			}
		})})
		s.forget()
		_, summary := s.sync(t)
		if summary.Changed != 0 || summary.Failed != 0 {
			t.Errorf("summary %+v", summary)
		}
		if writes := s.writes(""); len(writes) > 0 {
			t.Errorf("the pass wrote %q", writes)
		}
	})
}
