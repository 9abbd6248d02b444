package watch_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// in is a machine in a state since a second of the story, with an operation.
func in(operation, state string, since int) watch.Machine {
	m := machine(1, state, since)
	m.Operation, m.Step = operation, "deploy.write_image"
	return m
}

func TestModel_tellsHowOperationsEnd(t *testing.T) {
	t.Parallel()
	rest := in("", "available", -50)
	for name, tc := range map[string]struct {
		life []watch.Machine // one sample each ten seconds
		want []watch.Ended
	}{
		"it succeeds": {[]watch.Machine{
			rest, in("deploy", "deploying", 8), in("deploy", "wait call-back", 15),
			in("", "active", 29),
		}, []watch.Ended{{Operation: "deploy", Took: 21 * time.Second}}},
		"it was held": {[]watch.Machine{
			rest, in("deploy", "deploying", 8), in("deploy", "deploy hold", 15),
			in("deploy", "deploying", 25), in("", "active", 38),
		}, []watch.Ended{{Operation: "deploy", Took: 30 * time.Second}}},
		"it fails": {
			[]watch.Machine{rest, in("deploy", "deploying", 8), in("", "deploy failed", 18)},
			[]watch.Ended{{Operation: "deploy", Took: 10 * time.Second, Failed: true, Step: "deploy.write_image"}},
		},
		"it fails at once": {
			[]watch.Machine{rest, in("", "deploy failed", 8)},
			[]watch.Ended{{Failed: true, Step: "deploy.write_image"}},
		},
		"it had failed before": {[]watch.Machine{in("", "deploy failed", -50), in("", "deploy failed", -50)}, nil},
		"it had begun before": {
			[]watch.Machine{in("deploy", "deploying", -500), in("", "active", 8)},
			[]watch.Ended{{Operation: "deploy"}},
		},
		"another one follows": {[]watch.Machine{
			in("", "active", -50), in("undeploy", "deleting", 8), in("clean", "cleaning", 15),
			in("", "available", 28),
		}, []watch.Ended{
			{Operation: "undeploy", Took: 7 * time.Second},
			{Operation: "clean", Took: 13 * time.Second},
		}},
		"the machine is deleted": {[]watch.Machine{rest, in("clean", "cleaning", 8), {}}, nil},
		"it is tried once more": {[]watch.Machine{in("", "deploy failed", -50), in("deploy", "deploying", 8), in("", "deploy failed",
			18)}, []watch.Ended{{Operation: "deploy", Took: 10 * time.Second, Failed: true, Step: "deploy.write_image"}}},
		"nothing but a new state": {[]watch.Machine{in("", "manageable", -50), rest}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := watch.NewModel("", 0)
			var got []watch.Ended
			for i, one := range tc.life {
				s := watch.Sample{Taken: at(10 * i), Machines: []watch.Machine{one}}
				if one.ID == "" {
					s.Machines = nil
				}
				for _, c := range m.Add(s) {
					if c.Ended != nil {
						if !c.Ended.Failed {
							c.Ended.Step = ""
						}
						got = append(got, *c.Ended)
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("ended %+v, want %+v", got, tc.want)
			}
		})
	}
}

// A service that runs for months remembers a day.
func TestModel_forgets(t *testing.T) {
	t.Parallel()
	m := watch.NewModel("", 0)
	states := []string{"available", "deploying", "active", "deleting"}
	for i := range 100 {
		m.Add(watch.Sample{Taken: at(10 * i), Machines: []watch.Machine{machine(1, states[i%4], 10*i-1), machine(100+i, "available", 0)}})
		m.Forget(at(10*i - 100))
	}
	v := m.View(at(1000))
	if len(v.Moved) != 13 || v.Began != at(890) {
		t.Errorf("it remembers %d machines since %s", len(v.Moved), v.Began)
	}
	for _, row := range v.Moved {
		if len(row.Spans) > 12 {
			t.Errorf("%s: %d spans", row.Name, len(row.Spans))
		}
	}
	if v.Sample.Machines[0].State != "deleting" {
		t.Errorf("the last sample is %+v", v.Sample)
	}
}

func TestRun_patientlyWaitsForTheFirstList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &show{}
		o := options(d, 0, func(list int) error {
			if list < 4 {
				return errPasses
			}
			return nil
		})
		o.Patient, o.UntilIdle, o.Keep = true, 4*time.Minute, time.Minute
		v, err := watch.Run(t.Context(), watch.NewModel("active", 0), o)
		if err != nil || v.Done != 1 || d.troubles != 3 {
			t.Errorf("%d done, told %+v, %v", v.Done, d, err)
		}
	})
}

func TestSite_tellsOperationsClassesAndSlots(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Hour}
		fake.AddFleet(4, "baremetal")
		fake.Set("node-000", "resource_class", "gpu")
		fake.Set("node-000", "conductor_group", "rack1")
		fake.Set("node-000", "provision_state", "deploying")
		fake.Set("node-001", "provision_state", "clean wait")
		fake.Set("node-002", "provision_state", "clean failed")
		fake.Set("node-002", "last_error", "Clean step raid.delete_configuration failed on node")
		fake.Set("node-003", "target_power_state", "power off")
		site := &watch.Site{Client: clientOf(fake), Limit: throttle.Limit{Max: 2}}
		s, err := site.List(t.Context(), selection.Selection{Class: "gpu"}.Follow())
		if err != nil || len(s.Machines) != 1 || s.Machines[0].Class != "gpu" || s.Machines[0].Group != "rack1" ||
			s.Machines[0].Operation != "deploy" {
			t.Fatalf("%+v, %v", s, err)
		}
		if !maps.Equal(s.Slots.Used, map[string]int{"": 2}) || s.Slots.Waiting == nil || len(s.Slots.Waiting) > 0 {
			t.Errorf("the slots are %+v", s.Slots)
		}
		fake.ResetRequests()
		if s, err = site.List(t.Context(), selection.Selection{}.Follow()); err != nil || len(s.Machines) != 4 {
			t.Fatalf("%+v, %v", s, err)
		}
		var does []string
		for _, m := range s.Machines {
			does = append(does, m.Operation+"|"+m.Step)
		}
		if got := strings.Join(does, " "); got != "deploy| clean| |raid.delete_configuration power|" {
			t.Errorf("the machines do %q", got)
		}
		if sent := fake.Requests(); len(sent) != 3 {
			t.Errorf("requests: %+v", sent)
		}
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if strings.HasSuffix(r.URL.Path, "/chassis") || strings.HasSuffix(r.URL.Path, "/allocations") {
				return ironictest.Fault(http.StatusForbidden, "Access was denied to the following resource: baremetal:chassis:get")
			}
			return nil
		}
		if s, err = site.List(t.Context(), selection.Selection{}.Follow()); err != nil || s.Slots.Waiting != nil || s.Slots.Used[""] != 2 {
			t.Errorf("without rights: %+v, %v", s.Slots, err)
		}
	})
}
