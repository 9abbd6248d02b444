package watch_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Each display names the allocation beside the node, also of what has failed and of what its undeployment has freed.
func TestDisplays_nameTheAllocation(t *testing.T) {
	t.Parallel()
	held := func(n int, state string, since int, allocation string) watch.Machine {
		m := machine(n, state, since)
		m.Allocation, m.Instance = allocation, "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11"
		return m
	}
	samples := []watch.Sample{
		{Taken: at(0), Machines: []watch.Machine{
			held(1, "deploy failed", -50, "web-1"), held(2, "deploying", -5, "web-2"),
			held(3, "deleting", -5, "web-3"), held(4, "deploying", -5, "rack1-04"), machine(5, "cleaning", -5),
		}},
		{Taken: at(20), Machines: []watch.Machine{
			held(1, "deploy failed", -50, "web-1"), held(2, "wait call-back", 10, "web-2"),
			machine(3, "cleaning", 12), held(4, "active", 15, "rack1-04"), machine(5, "available", 15),
		}},
	}
	var lines, screen bytes.Buffer
	file, record := filepath.Join(t.TempDir(), "page.html"), filepath.Join(t.TempDir(), "record.jsonl")
	tell(t, &watch.Lines{Out: &lines, Err: io.Discard}, watch.NewModel("", 0), samples...)
	tell(t, &watch.Screen{Out: &screen, Size: func() (int, int) { return 120, 24 }}, watch.NewModel("", 0), samples...)
	tell(t, &watch.Page{File: file}, watch.NewModel("", 0), samples...)
	model := watch.NewModel("", 0)
	tell(t, &watch.Recorder{File: record, Model: model}, model, samples...)
	for what, tc := range map[string]struct {
		text string
		want []string
	}{
		"the lines": {lines.String(), []string{
			"rack1-01 (web-1)  deploy failed", "rack1-02 (web-2)  deploying -> wait call-back",
			"rack1-03 (web-3)  deleting -> cleaning", "rack1-04  deploying -> active", "rack1-05  cleaning -> available",
		}},
		"the screen": {screen.String(), []string{
			"rack1-01 (web-1)  deploy failed", "rack1-02 (web-2)  wait call-back",
			"rack1-03          cleaning", "rack1-04  active", "rack1-05  available",
		}},
		"the page": {read(t, file), []string{
			"<td>rack1-01 (web-1)</td>", `<span title="rack1-02 (web-2)">`, `<span title="rack1-03">`,
			`<span title="rack1-04">`, `<span title="rack1-05">`,
		}},
		"the record": {read(t, record), []string{
			`"name":"rack1-02","state":"wait call-back","from":"deploying","seconds":15,"instance":"8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11","allocation":"web-2"}`,
		}},
	} {
		for _, want := range tc.want {
			if !strings.Contains(tc.text, want) {
				t.Errorf("%s do not have %q:\n%s", what, want, tc.text)
			}
		}
	}
}

// A node without a name is known by its UUID, which leaves no room: the name of the allocation is the last that is cut.
func TestScreen_cutsTheNodeBeforeTheAllocation(t *testing.T) {
	t.Parallel()
	m := machine(1, "deploying", -5)
	m.Name, m.Allocation = "3769e0bf-e63c-4aaa-b037-f65b6864cba5", "database-primary"
	var out bytes.Buffer
	tell(t, &watch.Screen{Out: &out, Size: func() (int, int) {
		return 80, 24
	}}, watch.NewModel("", 0), watch.Sample{Taken: at(0), Machines: []watch.Machine{m}})
	if want := "  3769e0bf-e63c-4a… (database-primary)  deploying"; !strings.Contains(out.String(), want) {
		t.Errorf("the screen does not show %q:\n%q", want, out.String())
	}
}

// The names come from Ironic's allocations. Without the right to list them, the lines have the names of nodes, and the watch goes on.
func TestRun_namesAllocations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refused bool
		want    string
	}{
		"the user may see allocations": {false, "node-000 (web-1)  available -> deploying\n"},
		"the user may not":             {true, "node-000  available -> deploying\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = time.Minute
				ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{"name": "web-1", "resource_class": "baremetal"})
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if tc.refused && strings.HasSuffix(r.URL.Path, "/allocations") {
						return ironictest.Fault(http.StatusForbidden, "Access was denied")
					}
					return nil
				}
				time.AfterFunc(time.Minute, func() {
					ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/provision", map[string]any{"target": "active"})
				})
				client, followed := clientOf(fake), selection.Selection{}.Follow()
				var told, trouble strings.Builder
				end, err := watch.Run(t.Context(), watch.NewModel("active", 0), watch.Options{
					List:    func(ctx context.Context) (watch.Sample, error) { return watch.List(ctx, client, followed) },
					MayPass: api.MayPass, Interval: 10 * time.Second, UntilIdle: 5 * time.Minute,
					Displays: []watch.Display{&watch.Lines{Out: &told, Err: &trouble}},
				})
				if err != nil || end.Done != 1 || trouble.Len() > 0 || !strings.Contains(told.String(), tc.want) {
					t.Errorf("%d done, %v, want %q:\n%s%s", end.Done, err, tc.want, told.String(), trouble.String())
				}
			})
		})
	}
}
