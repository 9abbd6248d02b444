package doctor_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// run7 is the run that has left something.
const run7 = "7a7a7a7a-0000-4000-8000-000000000007"

// Each row is one thing that is wrong on a node. Two hours have passed since.
func TestDoctor_machines(t *testing.T) {
	t.Parallel()
	begun := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // virtual time begins then
	mark := func(fields string) string {
		return fmt.Sprintf(`{%q: {"since": %q%s}}`, run7, begun.Format(time.RFC3339), fields)
	}
	for name, tt := range map[string]struct {
		set    map[string]any
		check  string
		result doctor.Result
		says   []string
	}{
		"deploy failed": {
			map[string]any{"provision_state": "deploy failed", "last_error": "no space left"},
			"machine node-000",
			doctor.Problem,
			[]string{"deploy failed", "no space left", "The next apply deploys the node again; metal undeploy " +
				"node-000 frees it."},
		},
		"clean failed": {
			map[string]any{"provision_state": "clean failed"},
			"machine node-000", doctor.Problem,
			[]string{"cleans it again", "metal provide node-000"},
		},
		"fault": {
			map[string]any{"maintenance": true, "fault": "power failure"},
			"machine node-000", doctor.Problem,
			[]string{`has the fault "power failure"`, "metal validate node-000"},
		},
		"stuck": {
			map[string]any{"provision_state": "cleaning", "reservation": "c1"},
			"machine node-000", doctor.Problem,
			[]string{`state "cleaning" since 2h0m0s ago`, "log of the conductor c1"},
		},
		"waits for a ramdisk": {
			map[string]any{"provision_state": "wait call-back"},
			"machine node-000", doctor.Problem,
			[]string{"metal console node-000", "metal abort node-000"},
		},
		"without a conductor": {
			map[string]any{"provision_state": "deploying", "last_error": "thread died"},
			"machine node-000",
			doctor.Problem,
			[]string{"no conductor works on it"},
		},
		"held": {
			map[string]any{"provision_state": "clean hold"},
			"machine node-000", doctor.Warning,
			[]string{"metal unhold node-000", "metal abort node-000"},
		},
		"deploying": {
			map[string]any{"provision_state": "deploying", "reservation": "c1"},
			"provisioning limit", doctor.OK,
			[]string{"1 machine has", "deploying 1"},
		},
		"own parent": {
			map[string]any{"parent_node": "itself"},
			"defect", doctor.Problem,
			[]string{"its own parent", "Upgrade Ironic"},
		},
		"unknown driver": {map[string]any{"driver": "ilo"}, "drivers", doctor.Problem, []string{"node-000", "driver ilo"}},
		"unknown interface": {
			map[string]any{"boot_interface": "ilo-pxe"},
			"drivers", doctor.Problem,
			[]string{"boot interface ilo-pxe of driver fake-hardware"},
		},
		"changing interfaces": {
			map[string]any{"maintenance": true, "maintenance_reason": machine.ReasonChanging},
			"maintenance",
			doctor.Warning,
			[]string{"apply again, which ends the maintenance"},
		},
		"used by OneView": {
			map[string]any{"maintenance": true, "maintenance_reason": "node in use by OneView"},
			"maintenance",
			doctor.Warning,
			[]string{"metal oneview sync"},
		},
		"another's reason": {
			map[string]any{"maintenance": true, "maintenance_reason": "fan"},
			"maintenance", doctor.OK,
			[]string{"1 for other reasons"},
		},
		"unfinished creation": {
			map[string]any{"extra": `{"terraform_metal_creation": ` + mark("") + `}`},
			"marks", doctor.Warning,
			[]string{"the creation of its host by run " + run7, "apply the same configuration again"},
		},
		"finished creation": {
			map[string]any{"extra": `{"terraform_metal_creation": ` + mark(`, "done": "2000-01-01T00:10:00Z"`) + `}`},
			"marks", doctor.OK, nil,
		},
		"unfinished deploy": {
			map[string]any{"extra": `{"terraform_metal_reservation": ` + mark("") + `}`},
			"marks", doctor.Warning,
			[]string{"its deployment by run " + run7},
		},
		"still at work": {map[string]any{
			"provision_state": "deploying", "reservation": "c1",
			"extra": `{"terraform_metal_reservation": ` + mark("") + `}`,
		}, "marks", doctor.OK, nil},
		"turn": {map[string]any{"extra": `{"terraform_metal_turn": {"group": "db", "run": "` + run7 +
			`", "since": "2000-01-01T00:00:00Z"}}`}, "marks", doctor.Warning, []string{"rollout group db", "has not ended"}},
		"operation of metal": {map[string]any{
			"extra": `{"terraform_metal_operation": {"` + run7 +
				`": {"command": "power reboot --soft", "by": "ann@desk", "since": "2000-01-01T00:00:00Z", "goal": "power on"}}}`,
			"power_state": "power off",
		}, "marks", doctor.Warning, []string{
			"metal power reboot --soft of ann@desk",
			"run the same command",
		}},
		"failed operation": {map[string]any{"extra": `{"terraform_metal_operation": {"` + run7 +
			`": {"command": "power reboot --soft", "by": "ann@desk", "since": "2000-01-01T00:00:00Z", "failed": "2000-01-01T00:00:09Z", "goal": "power on"}}}`, "power_state": "power off"}, "marks", doctor.Warning, []string{"None of these runs is at work", "and failed at 2000-01-01T00:00:09Z: it was to be switched on again"}},
		"turn to come": {map[string]any{"extra": `{"terraform_metal_turn": {"group": "db", "run": "` + run7 +
			`", "until": "9999-01-01T00:00:00Z"}}`}, "marks", doctor.Warning, []string{
			"its note terraform_metal_turn counts for nothing: it is of 9999-01-01T00:00:00Z", "a time to come",
			"baremetal node unset node-000 --extra terraform_metal_turn",
		}},
		"turn in its pause": {map[string]any{"extra": `{"terraform_metal_turn": {"group": "db", "run": "` + run7 +
			`", "since": "2000-01-01T00:00:00Z", "until": "2000-01-01T06:00:00Z"}}`}, "marks", doctor.OK, []string{
			"the next member may be away in 4h0m0s", "metal ready node-000",
		}},
		"ready check": {map[string]any{"provision_state": "active", "extra": `{"terraform_metal_ready": {"target": "TCP port h:22", ` +
			`"since": "2000-01-01T01:30:00Z"}}`}, "marks", doctor.Warning, []string{
			"a run checks whether it is ready: TCP port h:22", "written 30m0s ago",
		}},
		"failed ready check": {map[string]any{"provision_state": "active", "extra": `{"terraform_metal_ready": {"target": ` +
			`"TCP port h:22", "since": "2000-01-01T01:00:00Z", "failed": "2000-01-01T01:10:00Z"}}`}, "marks", doctor.Warning, []string{
			"it was not ready: TCP port h:22", "written 50m0s ago",
		}},
		"turn past its pause": {map[string]any{"extra": `{"terraform_metal_turn": {"group": "db", "run": "` + run7 +
			`", "until": "2000-01-01T00:01:00Z"}}`}, "marks", doctor.Warning, []string{"the note is still there"}},
		"suspended allocation": {
			map[string]any{"extra": `{"terraform_metal_allocation": {"uuid": "u", "name": "db-1"}}`},
			"marks",
			doctor.Warning,
			[]string{"allocation db-1", "was not created again"},
		},
		"node of a test": {map[string]any{"name": ironic.ProbeName + "x"}, "marks", doctor.Warning, []string{"to test Ironic"}},
		"quarantine": {map[string]any{
			"retired": true, "retired_reason": "quarantine: the deployment for allocation db-1 failed on it at 2000-01-01T00:00:00Z",
			"extra": `{"terraform_metal_quarantine": {"allocation": "db-1", "instance": "i", "since": "2000-01-01T00:00:00Z", "failed": "2000-01-01T00:00:00Z"}}`,
		}, "quarantine", doctor.Warning, []string{"allocation db-1 failed", "metal unretire"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite()
				node, _ := s.ironic.Node("node-000")
				for _, field := range slices.Sorted(maps.Keys(tt.set)) { // a new state empties the reservation
					value := tt.set[field]
					if value == "itself" {
						value = node.UUID
					}
					s.ironic.Set(node.UUID, field, decoded(t, field, value))
				}
				s.ironic.Set(node.UUID, "provision_updated_at", begun.Format("2006-01-02T15:04:05+00:00"))
				time.Sleep(2 * time.Hour)
				want(t, s.run(t), tt.check, tt.result, tt.says...)
			})
		})
	}
}

// A command was killed a minute ago, or waits for a slot: only its lock record tells.
func TestDoctor_youngNotes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state  string
		waits  bool
		result doctor.Result
		says   []string
	}{
		"at work or killed": {"manageable", false, doctor.Warning, []string{"1 mark of unfinished runs", "metal inspect of ann@desk, " +
			"which began at 2000-01-01T00:00:00Z", "written 1m0s ago (2000-01-01T00:00:00Z); at work or killed", "run the same command"}},
		"waits for a slot": {"manageable", true, doctor.OK, []string{
			"1 mark of unfinished runs", "Known to be at work: 1.",
			"its machines wait for a slot",
		}},
		"in progress": {"inspecting", false, doctor.OK, []string{"Runs may be at work all the same"}},
		"not begun":   {"available", false, doctor.OK, []string{"Runs may be at work all the same"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite()
				s.ironic.Set("node-000", "provision_state", tt.state)
				s.ironic.Set("node-000", "extra", decoded(t, "extra", `{"terraform_metal_operation": {"`+run7+
					`": {"command": "inspect", "by": "ann@desk", "since": "2000-01-01T00:00:00Z", "goal": "available"}}}`))
				time.Sleep(time.Minute)
				if tt.waits {
					s.waiting(t, run7)
				}
				want(t, s.run(t), "marks", tt.result, tt.says...)
			})
		})
	}
}

// With many machines, the report names some and counts the others.
func TestDoctor_manyMachines(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.ironic.AddFleet(50, "baremetal")
	for _, n := range s.ironic.Nodes() {
		s.ironic.Set(n.UUID, "provision_state", "deploy failed")
	}
	report := s.run(t)
	want(t, report, "machines", doctor.Problem, "53 failed", "The first 20 follow")
	if n := len(of(report, "machine ")); n != 20 {
		t.Errorf("%d machines are named", n)
	}
}

func TestDoctor_allocations(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		ironictest.AsOther(t, s.ironic, http.MethodPost, "allocations", map[string]any{"name": "db-1", "resource_class": "none"})
		time.Sleep(time.Hour)
		want(t, s.run(t), "allocations", doctor.Warning, "of which 1 failed", "db-1, class none")
	})
}

// A run holds a lock and another was killed. --remove-stale deletes the record of the latter only.
func TestDoctor_lockRecords(t *testing.T) {
	t.Parallel()
	for user, kind := range map[string]string{"sys-admin": "chassis", "a-member": "allocation"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite().behindKeystone(user)
				killed, kill := context.WithCancel(t.Context())
				s.take(t, "a killed run's", func(r *http.Request) error { return killed.Err() })
				kill()
				time.Sleep(2 * time.Minute)
				release := s.take(t, "a living run's", func(*http.Request) error { return nil })
				defer release()
				report := s.run(t)
				want(t, report, "lock records", doctor.Warning, "2 lock records, of which 1 stale", "a killed run's lock; held by run ",
					"--remove-stale", kind+" ")
				s.options.RemoveStale = true
				want(t, s.run(t), "lock records", doctor.OK, "deleted now", "a living run's lock; held by run ")
				want(t, s.run(t), "lock records", doctor.OK, "There is 1 lock record, of which 0 stale", "a living run's lock")
			})
		})
	}
}

// Nothing is said of what Ironic has not shown: a reader would take the lock for free.
func TestDoctor_refusedLogin(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
			if strings.Count(r.URL.Path, "/") < 2 || r.URL.Path == "/v1/" {
				return nil
			}
			return ironictest.Fault(http.StatusUnauthorized, "Incorrect username or password")
		}
		report := s.run(t)
		for _, name := range []string{"lock records", "rights"} {
			want(t, report, name, doctor.Unknown, "Incorrect username or password (401 Unauthorized).")
		}
		for _, c := range report.Checks {
			if strings.Contains(c.Fact, "There is none") || strings.Contains(c.Fact, "may do everything") ||
				strings.Count(c.Fact, "Incorrect") > 1 {
				t.Errorf("%s: %s", c.Name, c.Fact)
			}
		}
	})
}

// take lets a run take a lock. Requests fail when fails says so, as those of a killed run.
func (s *site) take(t *testing.T, name string, fails func(*http.Request) error) (release func()) {
	t.Helper()
	cfg := s.options.Site
	cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		if err := fails(r); err != nil {
			return nil, err
		}
		return s.RoundTrip(r)
	})
	taken, done, ended := make(chan error, 1), make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		lock := throttle.Lock{Name: name, Description: "terraform-provider-metal: " + name + " lock", For: "test"}
		if err := machine.New(cfg).Locks().With(t.Context(), lock, func(ctx context.Context) error {
			taken <- nil
			select {
			case <-done:
			case <-ctx.Done():
			}
			return nil
		}); err != nil {
			taken <- err
		}
	}()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	return func() { close(done); <-ended }
}

var freezeRecord = ironic.UUID5("2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21", throttle.FreezeName)

// The report names a freeze, who has made it, and why.
func TestDoctor_freeze(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		f := throttle.Freeze{Reason: "the switch\x1b[2J burns", By: "eve@desk", Since: time.Now(), Until: time.Now().Add(time.Hour)}
		if _, err := machine.New(s.options.Site).Freezes().Set(t.Context(), f, false); err != nil {
			t.Fatal(err)
		}
		want(t, s.run(t), "freeze", doctor.Warning, "eve@desk", "burns", "until 2000-01-01T01:00:00Z")
		want(t, s.run(t), "lock records", doctor.OK, "There is none")
		time.Sleep(time.Hour)
		for _, c := range s.run(t).Checks {
			if c.Name == "freeze" {
				t.Errorf("a freeze that is over counts: %+v", c)
			}
		}
	})
}

// A run takes the record over while metal doctor reads it again, or deletes it: the run keeps it.
func TestDoctor_leavesRecordThatIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, reads := range map[string]bool{"before the second read": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite()
				killed, kill := context.WithCancel(t.Context())
				s.take(t, "the", func(*http.Request) error { return killed.Err() })
				kill()
				time.Sleep(2 * time.Minute)
				release := func() {}
				s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
					lock := strings.HasPrefix(r.URL.Path, "/v1/chassis/") && !strings.HasSuffix(r.URL.Path, freezeRecord)
					if lock && reads == (r.Method == http.MethodGet) {
						s.ironic.Reject = nil
						release = s.take(t, "the", func(*http.Request) error { return nil })
					}
					return nil
				}
				s.options.RemoveStale = true
				want(t, s.run(t), "lock records", doctor.OK, "1 lock record, of which 0 stale",
					"a run has taken it over, or deleted it, meanwhile")
				s.options.RemoveStale = false
				want(t, s.run(t), "lock records", doctor.OK, "the lock; held by run", "of which 0 stale")
				release()
			})
		})
	}
}

// The clock of the site was set forward, so that the record of a living run looks old: it is renewed while metal doctor watches it.
func TestDoctor_leavesRecordOfALivingRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		release := s.take(t, "the", func(*http.Request) error { return nil })
		defer release()
		s.options.Site.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			resp, err := s.RoundTrip(r)
			if err == nil {
				resp.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			}
			return resp, err
		})
		want(t, s.run(t), "lock records", doctor.Warning, "of which 1 stale")
		s.options.RemoveStale = true
		want(t, s.run(t), "lock records", doctor.OK, "a run has taken it over, or deleted it, meanwhile")
	})
}

// Machines wait for a slot: the record of the limit says how many.
func TestDoctor_waitingMachines(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		s.waiting(t, "w")
		time.Sleep(20 * time.Second)
		report := s.run(t)
		want(t, report, "provisioning limit", doctor.OK, "4 machines wait for a slot", "run w waits with 4 machines", "its limit is 2")
		want(t, report, "lock records", doctor.OK, "released by run "+run7)
	})
}

// Ironic refuses one of the two lists of lock records: who waits is not known, or not all of them.
func TestDoctor_saysWhichWaitsItMayNotSee(t *testing.T) {
	t.Parallel()
	for refused, fact := range map[string]string{
		"/v1/chassis":     "Whether machines wait for a slot is not known: see lock records.",
		"/v1/allocations": "At least 4 machines wait for a slot: see lock records.",
	} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite()
				s.waiting(t, "w")
				s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.URL.Path == refused {
						return ironictest.Fault(http.StatusForbidden, "Access was denied")
					}
					return nil
				}
				want(t, s.run(t), "provisioning limit", doctor.OK, fact)
			})
		})
	}
}

// waiting leaves the record of the limit, in which a run says that four of its machines wait for a slot.
func (s *site) waiting(t *testing.T, run string) {
	t.Helper()
	ironictest.AsOther(t, s.ironic, http.MethodPost, "chassis", map[string]any{
		"uuid": "2e9c9d9e-6f0a-5a9e-9d0e-6d6574616c21", "description": "terraform-provider-metal: admission lock, held for seconds",
		"extra": map[string]any{"holders": map[string]any{"h": 3}, "released": true, "run": run7, "waiting": []any{
			map[string]any{"run": run, "machines": 4, "max": 2, "since": time.Now().UTC(), "renewed": time.Now().UTC()},
		}},
	})
}

// decoded returns the value of a field of a node. extra is given as JSON.
func decoded(t *testing.T, field string, value any) any {
	t.Helper()
	text, is := value.(string)
	if field != "extra" || !is {
		return value
	}
	return object(t, text)
}

// A killed run has left a temporary profile on the appliance. Another Ironic's is not ours to judge.
func TestDoctor_temporaryProfiles(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		appliance := &fakeoneview.Server{Username: "ironic", Password: "hidden-in-url"}
		client, err := oneview.New(oneview.Config{
			Endpoint: "https://oneview.test", Username: "ironic", Password: "hidden-in-url",
			Transport: appliance,
		})
		if err != nil {
			t.Fatal(err)
		}
		if report := s.run(t); len(of(report, "OneView")) != 0 {
			t.Errorf("without an appliance: %+v", report)
		}
		s.options.OneView = client
		want(t, s.run(t), "OneView", doctor.OK, "no temporary server profile")
		node, _ := s.ironic.Node("node-000")
		fleet := appliance.AddBlades(2)
		for i, id := range []string{node.UUID, ironic.NewUUID()} {
			appliance.AddProfile(fakeoneview.NewProfile{Name: "Ironic Cleaning [" + id + "]", HardwareURI: fleet.Hardware[i]})
		}
		want(t, s.run(t), "OneView", doctor.OK)
		time.Sleep(2 * time.Hour)
		want(t, s.run(t), "OneView", doctor.Warning, "1 temporary server profile.", "of node-000", "made 2h", "sync --once")
		appliance.Password = "other"
		if err := client.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, s.run(t), "OneView", doctor.Unknown)
	})
}
