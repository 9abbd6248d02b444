package watch_test

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

func TestList_tellsWhatMachinesDo(t *testing.T) {
	t.Parallel()
	const (
		rests = iota
		inProgress
		failed
		pending
	)
	for name, tc := range map[string]struct {
		set  map[string]any
		want int
	}{
		"at rest":        {map[string]any{"provision_state": "available"}, rests},
		"deployed":       {map[string]any{"provision_state": "active", "instance_uuid": "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11"}, rests},
		"an operation":   {map[string]any{"provision_state": "clean wait"}, inProgress},
		"a verification": {map[string]any{"provision_state": "verifying"}, inProgress},
		"a power change": {map[string]any{"target_power_state": "power on"}, inProgress},
		"a failure":      {map[string]any{"provision_state": "clean failed", "last_error": "first\nsecond"}, failed},
		"a failure whose reason is not there yet": {
			map[string]any{"provision_state": "deploy failed", "reservation": "conductor-1"},
			inProgress,
		},
		"a fault":                        {map[string]any{"maintenance": true, "fault": "power failure", "last_error": "first"}, failed},
		"a verification that failed":     {map[string]any{"provision_state": "enroll", "last_error": "first"}, failed},
		"reserved, and not deployed yet": {map[string]any{"instance_uuid": "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11"}, pending},
		"held":                           {map[string]any{"provision_state": "deploy hold"}, pending},
		"its creation is not finished": {map[string]any{
			"provision_state": "manageable",
			"extra": map[string]any{"terraform_metal_creation": map[string]any{"7c5f2b5e-7a0c-4a55-9d0e-3f6f5e8f4a11": map[string]any{
				"since": "2026-11-22T14:00:00Z",
			}}},
		}, pending},
		"its creation is finished": {map[string]any{
			"provision_state": "manageable",
			"extra": map[string]any{"terraform_metal_creation": map[string]any{"7c5f2b5e-7a0c-4a55-9d0e-3f6f5e8f4a11": map[string]any{
				"since": "2026-11-22T14:00:00Z", "done": "2026-11-22T14:01:00Z",
			}}},
		}, rests},
		"a ready check":                {checked(30*time.Minute, time.Hour), inProgress},
		"what a killed run has left":   {checked(61*time.Minute, 2*time.Hour), rests},
		"a rebuild after a killed run": {checked(30*time.Minute, 10*time.Minute), rests},
		"a failure after a killed run": {map[string]any{
			"provision_state": "deploy failed", "last_error": "first",
			"extra": checked(time.Minute, 0)["extra"],
		}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{StepTime: time.Hour}
			fake.AddFleet(1, "baremetal")
			setAll(fake, tc.set)
			s, err := watch.List(t.Context(), clientOf(fake), selection.Selection{}.Follow())
			if err != nil || len(s.Machines) != 1 {
				t.Fatalf("%+v, %v", s, err)
			}
			m := s.Machines[0]
			if got := []bool{m.InProgress, m.Failed, !m.InProgress && m.Pending}; !slices.Equal(got,
				[]bool{tc.want == inProgress, tc.want == failed, tc.want == pending}) {
				t.Errorf("%+v", m)
			}
			if want := map[bool]string{true: "first"}[m.Failed]; m.Why.Words != want || m.Name != "node-000" {
				t.Errorf("reason %q, name %q", m.Why.Words, m.Name)
			}
		})
	}
}

// setAll sets fields of a machine in their order: a new provision_state comes before its time and the reservation, which it would replace.
func setAll(fake *fakeironic.Server, fields map[string]any) {
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		fake.Set("node-000", field, fields[field])
	}
}

// checked is a deployed machine with a note of a ready check: how long ago that began, and how long ago the machine became active.
func checked(begun, active time.Duration) map[string]any {
	return map[string]any{
		"provision_state": "active", "provision_updated_at": time.Now().Add(-active).UTC().Format(time.RFC3339),
		"extra": map[string]any{"terraform_metal_ready": map[string]any{
			"since":  time.Now().Add(-begun).UTC().Format(time.RFC3339),
			"target": "TCP port 198.51.100.11:22",
		}},
	}
}

// notReady is checked with a check that has failed.
func notReady(begun, active time.Duration) map[string]any {
	set := checked(begun, active)
	note, _ := set["extra"].(map[string]any)["terraform_metal_ready"].(map[string]any)
	note["failed"] = time.Now().Add(time.Second - begun).UTC().Format(time.RFC3339)
	return set
}

// A machine whose ready check has failed counts as failed also if its rollout has no note, although Ironic shows it as active.
func TestRun_endsWithTheMachineThatIsNotReady(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		active time.Duration // how long ago the machine became active
		failed bool
	}{
		"not ready":                {21 * time.Hour, true},
		"deployed again, no check": {time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				setAll(fake, notReady(20*time.Hour, tc.active))
				var told strings.Builder
				end, err := watch.Run(t.Context(), watch.NewModel("active", 0), watch.Options{
					List: func(ctx context.Context) (watch.Sample, error) {
						return watch.List(ctx, clientOf(fake), selection.Selection{}.Follow())
					},
					MayPass: api.MayPass, Interval: 10 * time.Second, UntilIdle: time.Minute,
					Displays: []watch.Display{&watch.Lines{Out: &told, Err: &told}},
				})
				if err != nil || (len(end.Failed) == 1) != tc.failed || end.Done == 1 == tc.failed {
					t.Fatalf("%d done, failed: %+v, %v", end.Done, end.Failed, err)
				}
				if strings.Contains(told.String(), "node-000  active, not ready for 19h59m: the ready check has failed: TCP port "+
					"198.51.100.11:22\n") != tc.failed {
					t.Errorf("it tells\n%s", told.String())
				}
			})
		})
	}
}

func clientOf(fake *fakeironic.Server) *ironic.Client {
	return ironic.New(api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake}, ironic.Polls{})
}

// A list of thousands is one request for each page, with few fields.
func TestList_isOneShortList(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(500, "baremetal")
	client := clientOf(fake)
	if _, err := client.Microversion(t.Context()); err != nil {
		t.Fatal(err)
	}
	fake.ResetRequests()
	s, err := watch.List(t.Context(), client, selection.Selection{Class: "baremetal", Name: regexp.MustCompile("7$")}.Follow())
	if err != nil || len(s.Machines) != 50 {
		t.Fatalf("%d machines, %v", len(s.Machines), err)
	}
	if sent := fake.Requests(); len(sent) != 1 || !strings.Contains(sent[0].Query, "fields=uuid") ||
		!strings.Contains(sent[0].Query, "resource_class=baremetal") {
		t.Errorf("requests: %+v", sent)
	}
}

// What a node's note of a rollout says is shown as long as it counts.
func TestList_tellsTurns(t *testing.T) {
	t.Parallel()
	const reserved = "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11"
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	in := func(state string, note map[string]any) map[string]any {
		note["group"], note["run"] = "databases", "7c5f2b5e-7a0c-4a55-9d0e-3f6f5e8f4a11"
		if note["instance"] == nil {
			note["instance"] = reserved
		}
		return map[string]any{"provision_state": state, "instance_uuid": reserved, "extra": map[string]any{"terraform_metal_turn": note}}
	}
	for name, tc := range map[string]struct {
		set   map[string]any
		turn  string
		stops string
	}{
		"in progress":                {in("deploying", map[string]any{}), "turn of databases", ""},
		"a canary":                   {in("deploying", map[string]any{"canary": true}), "canary of databases", ""},
		"undeployed, to be replaced": {in("deleting", map[string]any{"instance": "another"}), "turn of databases", ""},
		"what a killed run has left": {in("active", map[string]any{}), "", ""},
		"failed":                     {in("deploy failed", map[string]any{"failed": true}), "databases waits for it", "databases"},
		"not ready":                  {in("active", map[string]any{"failed": true}), "databases waits for it", "databases"},
		"it is being repaired":       {in("deploying", map[string]any{"failed": true}), "turn of databases", ""},
		"failed, and deployed anew":  {in("active", map[string]any{"failed": true, "instance": "another"}), "", ""},
		"a pause": {
			in("active", map[string]any{"since": time.Now().UTC().Format(time.RFC3339), "until": until.UTC().Format(time.RFC3339)}),
			"pause of databases until " + until.Format("15:04:05"), "",
		},
		"a pause that is made up":           {in("active", map[string]any{"until": "9999-01-01T00:00:00Z"}), "", ""},
		"a pause that has ended":            {in("active", map[string]any{"until": "2020-01-01T00:00:00Z"}), "", ""},
		"an operation of others in a pause": {in("deploying", map[string]any{"until": until.UTC().Format(time.RFC3339)}), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{}
			fake.AddFleet(1, "baremetal")
			setAll(fake, tc.set)
			s, err := watch.List(t.Context(), clientOf(fake), selection.Selection{}.Follow())
			if err != nil || len(s.Machines) != 1 {
				t.Fatalf("%+v, %v", s, err)
			}
			m := s.Machines[0]
			if m.Turn != tc.turn || m.Stops != tc.stops || tc.stops != "" && (!m.Failed || m.Why.Words == "" && m.State == "active") {
				t.Errorf("it says %q, and stops %q: %+v", m.Turn, m.Stops, m)
			}
		})
	}
}

// After the undeployment, another tenant gets the machine. Its deployment is none of the watch's.
func TestList_leavesTheMachineToTheNextAllocation(t *testing.T) {
	t.Parallel()
	for _, goal := range []watch.Goal{"", "active", watch.GoalDeleted} {
		t.Run(string(goal), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = time.Minute
				ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{"name": "web-1", "resource_class": "baremetal"})
				fake.Set("node-000", "provision_state", "active")
				time.AfterFunc(time.Minute, func() {
					ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/provision", map[string]any{"target": "deleted"})
				})
				time.AfterFunc(10*time.Minute, func() {
					ironictest.AsOther(t, fake, http.MethodPost, "allocations",
						map[string]any{"name": "theirs", "resource_class": "baremetal"})
				})
				time.AfterFunc(11*time.Minute, func() {
					ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/provision", map[string]any{"target": "active"})
				})
				client, followed := clientOf(fake), selection.Selection{Allocations: []string{"web-1"}}.Follow()
				var told strings.Builder
				end, err := watch.Run(t.Context(), watch.NewModel(goal, 0), watch.Options{
					List:    func(ctx context.Context) (watch.Sample, error) { return watch.List(ctx, client, followed) },
					MayPass: api.MayPass, Interval: 10 * time.Second, UntilIdle: 20 * time.Minute,
					Displays: []watch.Display{&watch.Lines{Out: &told, Err: &told}},
				})
				if err != nil || end.Done != 0 || end.Total != 0 || end.Selected != 0 {
					t.Errorf("%d of %d done, %d selected, %v", end.Done, end.Total, end.Selected, err)
				}
				if !strings.Contains(told.String(), "node-000  available -> reserved by others\n") ||
					strings.Contains(told.String(), "deploying") {
					t.Errorf("it tells\n%s", told.String())
				}
				if ironictest.NodeOf(t, fake, "node-000").ProvisionState != "active" {
					t.Error("the other tenant has not deployed the machine")
				}
			})
		})
	}
}

// Ironic deletes the allocation when the machine is undeployed. The watch goes on to the end of its cleaning.
func TestList_followsTheMachineOfAnAllocationThatGoes(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		fake.StepTime = time.Minute
		ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
			"name": "web-1", "resource_class": "baremetal",
			"candidate_nodes": []string{"node-001"},
		})
		fake.Set("node-001", "provision_state", "active")
		time.AfterFunc(time.Minute, func() {
			ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-001/states/provision", map[string]any{"target": "deleted"})
		})
		client, followed := clientOf(fake), selection.Selection{Allocations: []string{"web-1"}}.Follow()
		var told strings.Builder
		end, err := watch.Run(t.Context(), watch.NewModel("available", 0), watch.Options{
			List:    func(ctx context.Context) (watch.Sample, error) { return watch.List(ctx, client, followed) },
			MayPass: api.MayPass, Interval: 10 * time.Second, UntilIdle: 10 * time.Minute,
			Displays: []watch.Display{&watch.Lines{Out: &told, Err: &told}},
		})
		if err != nil || end.Done != 1 || end.Total != 1 || !strings.Contains(told.String(), "node-001  cleaning -> available") {
			t.Errorf("%d of %d done, %v:\n%s", end.Done, end.Total, err, told.String())
		}
		if _, err := client.Allocation(t.Context(), "web-1"); !api.IsNotFound(err) {
			t.Errorf("the allocation still exists: %v", err)
		}
	})
}

// The reason of a failure stays after Ironic has emptied last_error; one that was emptied before is read from the history, once.
func TestWithCauses_keepsWhatIronicEmpties(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(2)
	const words = "Failed to deploy: Writing image to device /dev/sda failed with exit code 1"
	fake.Set("node-000", "provision_state", "deploy failed")
	fake.Set("node-000", "last_error", words)
	fake.Set("node-001", "provision_state", "clean failed")
	client := clientOf(fake)
	list := watch.WithCauses(client, func(ctx context.Context) (watch.Sample, error) {
		return watch.List(ctx, client, selection.Selection{}.Follow())
	})
	for i, emptied := range []bool{false, true, true} {
		if emptied {
			fake.Set("node-000", "last_error", nil)
		}
		fake.ResetRequests()
		s, err := list(t.Context())
		if err != nil || len(s.Machines) != 2 {
			t.Fatal(s, err)
		}
		for _, m := range s.Machines {
			if m.Name == "node-000" && (m.Why.Reason != "image-write" || m.Why.Words != words) {
				t.Errorf("%d: %+v", i, m.Why)
			}
		}
		if n := ironictest.Count(fake, "GET", "/v1/nodes/"+fake.Nodes()[1].UUID+"/history"); n > 0 == emptied {
			t.Errorf("%d: the history was read %d times", i, n)
		}
	}
}
