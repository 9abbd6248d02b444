package provision_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// begin creates the node of a candidate as the first request of a run does, and returns the machine's record.
func begin(t *testing.T, run *site, who provision.Candidate) *provision.Machine {
	t.Helper()
	node, err := run.Enroll(t.Context(), who.UUID, ironic.Settings{
		"name": who.Name, "driver": who.Driver, "driver_info": who.DriverInfo, "resource_class": "baremetal",
	})
	if err != nil {
		t.Fatal(err)
	}
	return run.Record(node)
}

// theSame is a candidate of another run that wants to create the same machine.
func theSame(who provision.Candidate) provision.Candidate {
	who.UUID = ironic.NewUUID()
	return who
}

// machineOf is a candidate with a driver that the fake has.
func machineOf(n int) provision.Candidate {
	who := candidate(n)
	who.Driver = "redfish"
	return who
}

// extraOf reads the extra of a node.
func extraOf(t *testing.T, fake *fakeironic.Server, node string) map[string]any {
	t.Helper()
	n, err := newClient(fake).Node(context.WithoutCancel(t.Context()), node)
	if err != nil {
		t.Fatal(err)
	}
	return n.Extra
}

// markRun returns the run that the mark of a node names, and whether the creation is finished.
func markRun(t *testing.T, fake *fakeironic.Server, node string, key provision.Mark) (run string, done bool) {
	t.Helper()
	runs, _ := extraOf(t, fake, node)[string(key)].(map[string]any)
	for name, value := range runs {
		mark, _ := value.(map[string]any)
		return name, mark["done"] != nil
	}
	return "", false
}

// soon is a deadline before which a machine that is busy does not come to rest.
func soon() time.Time { return time.Now().Add(time.Second) }

func TestCreation_nextRunFinishesWhatKilledRunBegan(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *fakeironic.Server, *provision.Machine){
		"right after its creation": func(*testing.T, *fakeironic.Server, *provision.Machine) {},
		"finished, but not saved": func(t *testing.T, _ *fakeironic.Server, m *provision.Machine) {
			if err := m.EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
				t.Error(err)
			}
			time.Sleep(14 * time.Minute)
		},
		"hours ago": func(*testing.T, *fakeironic.Server, *provision.Machine) { time.Sleep(23 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, machineOf(1)
				prepare(t, fake, begin(t, newClient(fake), who))
				time.Sleep(time.Second)
				next := newClient(fake)
				found, err := next.Admit(t.Context(), theSame(who), later())
				if err != nil || found == nil || found.Node.UUID != who.UUID || found.By == nil {
					t.Fatalf("%+v, %v; want the node of the killed run", found, err)
				}
				run, done := markRun(t, fake, who.Name, provision.MarkCreation)
				if run == found.By.Run || done {
					t.Errorf("the mark is of %s, finished: %t; want one of the new run, which has just begun", run, done)
				}
				if left := count(fake, http.MethodPost, "/v1/chassis") - count(fake, http.MethodDelete, "/v1/chassis/"); left != 0 {
					t.Errorf("%d lock records are left", left)
				}
				m := next.Record(found.Node)
				if err := m.EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
					t.Error(err)
				}
				if _, done := markRun(t, fake, who.Name, provision.MarkCreation); !done {
					t.Error("the mark does not say that the creation is finished")
				}
			})
		})
	}
}

func TestCreation_otherNodesAreNotTakenOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*testing.T, *fakeironic.Server, *provision.Machine, *provision.Candidate)
	}{
		"no mark": {func(_ *testing.T, fake *fakeironic.Server, _ *provision.Machine, who *provision.Candidate) {
			fake.Set(who.Name, "extra", map[string]any{})
		}},
		"another BMC": {func(_ *testing.T, _ *fakeironic.Server, _ *provision.Machine, who *provision.Candidate) {
			who.DriverInfo = maps.Clone(who.DriverInfo)
			who.DriverInfo["redfish_address"] = "https://192.0.2.99"
		}},
		"another driver": {func(_ *testing.T, _ *fakeironic.Server, _ *provision.Machine, who *provision.Candidate) {
			who.Driver = "idrac"
		}},
		"finished long ago": {func(t *testing.T, _ *fakeironic.Server, m *provision.Machine, _ *provision.Candidate) {
			if err := m.EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
				t.Error(err)
			}
			time.Sleep(16 * time.Minute)
		}},
		"busy for too long": {func(_ *testing.T, fake *fakeironic.Server, _ *provision.Machine, who *provision.Candidate) {
			fake.Set(who.Name, "provision_state", "clean wait")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, machineOf(1)
				first := begin(t, newClient(fake), who)
				wanted := theSame(who)
				tt.change(t, fake, first, &wanted)
				before := extraOf(t, fake, who.Name)
				time.Sleep(time.Second)
				if found, err := newClient(fake).Admit(t.Context(), wanted, soon()); err == nil {
					t.Errorf("node %+v was taken over", found)
				}
				if after := extraOf(t, fake, who.Name); !ironic.SameJSON(before, after) {
					t.Errorf("extra was %v and is %v", before, after)
				}
			})
		})
	}
}

// A run that has begun after this one is alive: it is the one that creates the node.
func TestCreation_runsOfTheSameMomentStayApart(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, machineOf(1)
		first, second := newClient(fake), newClient(fake)
		time.Sleep(time.Second)
		m := begin(t, first, who)
		_, err := second.Admit(t.Context(), theSame(who), later())
		if !provision.Is(err, provision.KindTaken) || provision.TakenOf(err).Making == nil {
			t.Errorf("%v, want an error that names the other run", err)
		}
		if err := m.EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
			t.Errorf("the first run: %v", err)
		}
	})
}

func TestCreation_liveRunStopsWhenAnotherTakesOver(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(context.Context, *provision.Machine) error{
		"before a verb": func(ctx context.Context, m *provision.Machine) error {
			return m.Reach(ctx, provision.GoalAvailable, time.Hour)
		},
		"at its end": func(ctx context.Context, m *provision.Machine) error {
			return m.EndCreation(ctx, provision.MarkCreation, nil)
		},
		"before a deletion": func(ctx context.Context, m *provision.Machine) error { return m.CheckCreation(ctx) },
		"before an edit": func(ctx context.Context, m *provision.Machine) error {
			return m.Patch(ctx, setting("/description", "late"))
		},
		"after a failure": func(ctx context.Context, m *provision.Machine) error {
			return m.EndCreation(ctx, provision.MarkCreation, errors.New("some step failed"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, machineOf(1)
				m := begin(t, newClient(fake, func(cfg *provision.Config) { cfg.Limit = upTo(1) }), who)
				fake.Set(who.Name, "provision_state", "manageable")
				if err := m.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				other := newClient(fake)
				found, err := other.Admit(t.Context(), theSame(who), later())
				if err != nil || found == nil {
					t.Fatalf("%+v, %v", found, err)
				}
				if err := next(t.Context(), m); !provision.IsSuperseded(err) {
					t.Errorf("%v, want a SupersededError", err)
				}
				if sent := verbs(t, fake, who.UUID); len(sent) > 0 {
					t.Errorf("the verbs %v were sent", sent)
				}
				if err := other.Record(found.Node).EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
					t.Errorf("the run that took over: %v", err)
				}
			})
		})
	}
}

func TestCreation_oneOfManyRunsTakesOver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, machineOf(1)
		begin(t, newClient(fake), who)
		time.Sleep(time.Second)
		var all sync.WaitGroup
		var mu sync.Mutex
		owners := 0
		for range 5 {
			next := newClient(fake)
			all.Go(func() {
				found, err := next.Admit(t.Context(), theSame(who), later())
				mu.Lock()
				defer mu.Unlock()
				if err == nil && found != nil {
					owners++
				}
			})
		}
		all.Wait()
		if owners != 1 {
			t.Errorf("%d runs have taken the node over, want 1", owners)
		}
	})
}

func TestCreation_waitsForOperationInProgress(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{StepTime: 5 * time.Minute}, machineOf(1)
		m := begin(t, newClient(fake), who)
		ctx, kill := context.WithTimeout(t.Context(), time.Second)
		_ = m.Reach(ctx, provision.GoalManageable, time.Hour)
		kill()
		found, err := newClient(fake).Admit(t.Context(), theSame(who), later())
		if err != nil || found == nil || found.Node.ProvisionState != "manageable" {
			t.Errorf("%+v, %v; want the node after its verification", found, err)
		}
	})
}

func TestCreation_reservedByItsOwnKilledRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, machineOf(1)
		killed := newClient(fake)
		m := begin(t, killed, who)
		fake.Set(who.Name, "provision_state", "available")
		fake.Set(who.Name, "power_state", "power off")
		if err := m.EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
			t.Fatal(err)
		}
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal"}
		a, _, err := killed.Allocate(t.Context(), &provision.Request{AllocationSpec: spec})
		if err == nil {
			_, err = killed.Site.AwaitAllocation(t.Context(), provision.Request{AllocationSpec: spec}, a, time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if found, err := newClient(fake).Admit(t.Context(), theSame(who), later()); err != nil || found == nil {
			t.Errorf("%+v, %v; want the node, which the killed run has also allocated", found, err)
		}
	})
}

func TestCreation_reservationOfKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		killed, err := newClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		instance, by, err := killed.ReserveNew(t.Context(), provision.Deployment{}, "", later())
		if err != nil || by != nil {
			t.Fatal(by, err)
		}
		time.Sleep(time.Second)
		next, err := newClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		again, by, err := next.ReserveNew(t.Context(), provision.Deployment{}, "", later())
		if err != nil || by == nil || again != instance {
			t.Fatalf("%s, %v, %v; want the reservation %s of the killed run", again, by, err, instance)
		}
		if err := killed.EndCreation(t.Context(), provision.MarkReservation, nil); !provision.IsSuperseded(err) {
			t.Errorf("the first run: %v, want a SupersededError", err)
		}
		if err := next.EndCreation(t.Context(), provision.MarkReservation, nil); err != nil {
			t.Error(err)
		}
		if _, done := markRun(t, fake, "node-000", provision.MarkReservation); !done {
			t.Error("the mark does not say that the reservation is finished")
		}
	})
}

// A machine that runs another deployment may be in the state of another configuration.
func TestCreation_deploymentOfOtherContentIsNotTakenOver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		killed := newClient(fake)
		m, err := killed.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		content := func(url string) provision.Deployment {
			return provision.Deployment{Image: &provision.Image{URL: url, Checksum: "http://images.test/SUMS"}}
		}
		instance, _, err := m.ReserveNew(t.Context(), content("http://images.test/a"), "", later())
		if err == nil {
			_, err = m.Deploy(t.Context(), content("http://images.test/a"), provision.DeployOptions{Instance: instance, Creates: true, Attempts: 1, Timeout: time.Hour})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for url, taken := range map[string]bool{"http://images.test/b": false, "http://images.test/a": true} {
			next, err := newClient(fake).Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			_, by, err := next.ReserveNew(t.Context(), content(url), "", later())
			if taken != (err == nil && by != nil) || taken == provision.Is(err, provision.KindReserved) {
				t.Errorf("deploy %s: %v, %v; want it taken over: %t", url, by, err, taken)
			}
		}
	})
}

// Terraform saves nothing while one deployment is in progress, so that what was finished long before may be lost, too.
func TestCreation_finishedBeforeALongDeploymentIsTakenOver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, machineOf(1)
		killed := newClient(fake)
		m := begin(t, killed, who)
		if _, err := killed.CreatePort(t.Context(), who.UUID, ironic.PortSpec{Address: who.Addresses[0]}); err != nil {
			t.Fatal(err)
		}
		fake.Set(who.Name, "provision_state", "available")
		fake.Set(who.Name, "power_state", "power off")
		if err := m.EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
			t.Fatal(err)
		}
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal"}
		a, _, err := killed.Allocate(t.Context(), &provision.Request{AllocationSpec: spec})
		if err == nil {
			a, err = killed.Site.AwaitAllocation(t.Context(), provision.Request{AllocationSpec: spec}, a, time.Minute)
		}
		if err == nil {
			err = killed.EndAllocation(t.Context(), a, nil)
		}
		if err == nil {
			err = m.Refresh(t.Context())
		}
		d := provision.Deployment{Image: &provision.Image{URL: "http://images.test/a", Checksum: "http://images.test/SUMS"}}
		if err == nil {
			_, err = m.Deploy(t.Context(), d, provision.DeployOptions{Instance: a.UUID, Creates: true, Attempts: 1, Timeout: time.Hour})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		next := newClient(fake)
		if found, err := next.Admit(t.Context(), theSame(who), later()); err != nil || found == nil {
			t.Errorf("the host: %+v, %v; want it taken over", found, err)
		}
		again := spec
		again.UUID = ironic.NewUUID()
		// The deployment's mark is that of the killed run still, so the allocation is lost as well.
		if found, by, err := next.Allocate(t.Context(), &provision.Request{AllocationSpec: again}); err != nil || by == nil || found.UUID != a.UUID {
			t.Errorf("the allocation: %+v, %v, %v; want it taken over", found, by, err)
		}
		machine, err := next.Machine(t.Context(), who.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, by, err := machine.ReserveNew(t.Context(), d, a.UUID, later()); err != nil || by == nil {
			t.Errorf("the deployment: %v, %v; want it taken over", by, err)
		}
	})
}

// A resource that is created before another one is deleted may take over the very object, for example after its key has changed.
func TestCreation_takenOverInTheSameRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, machineOf(1)
		begin(t, newClient(fake), who)
		time.Sleep(time.Second)
		next := newClient(fake)
		if next.Run.HasTakenOver(provision.MarkCreation, who.UUID) {
			t.Error("the run has taken over the node before it did")
		}
		if found, err := next.Admit(t.Context(), theSame(who), later()); err != nil || found == nil {
			t.Fatalf("%+v, %v", found, err)
		}
		if !next.Run.HasTakenOver(provision.MarkCreation, who.UUID) {
			t.Error("the run does not know that it has taken over the node")
		}
	})
}

func TestCreation_lostAnswerToTheTakeOver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, machineOf(1)
		begin(t, newClient(fake), who)
		time.Sleep(time.Second)
		fake.Reject = once(http.MethodPatch, "/v1/nodes/"+who.UUID, lost())
		if found, err := newClient(fake).Admit(t.Context(), theSame(who), later()); err != nil || found == nil {
			t.Errorf("%+v, %v; want the node", found, err)
		}
	})
}

func TestCreation_reservationOfOthersStays(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.Set("node-000", "instance_uuid", ironic.NewUUID())
		m, err := newClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.ReserveNew(t.Context(), provision.Deployment{}, "", later()); !provision.Is(err, provision.KindReserved) {
			t.Errorf("%v, want a ReservedError", err)
		}
	})
}

func TestCreation_allocationOfKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	spec := ironic.AllocationSpec{Name: "web-0", ResourceClass: "baremetal", Traits: []string{"CUSTOM_NVME"}, CandidateNodes: []string{"node-003"}}
	for name, tt := range map[string]struct {
		change func(*ironic.AllocationSpec)
		wait   time.Duration
		taken  bool
	}{
		"the same":                 {func(*ironic.AllocationSpec) {}, time.Second, true},
		"the same, hours later":    {func(*ironic.AllocationSpec) {}, 23 * time.Hour, true},
		"the same, a day later":    {func(*ironic.AllocationSpec) {}, 25 * time.Hour, false},
		"another class":            {func(s *ironic.AllocationSpec) { s.ResourceClass = "storage" }, time.Second, false},
		"other traits":             {func(s *ironic.AllocationSpec) { s.Traits = nil }, time.Second, false},
		"other candidates":         {func(s *ironic.AllocationSpec) { s.CandidateNodes = nil }, time.Second, false},
		"made at the same moment":  {func(*ironic.AllocationSpec) {}, 0, false},
		"candidates by their UUID": {nil, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := fleet(5)
				next := newClient(fake)
				if tt.wait == 0 {
					time.Sleep(time.Second)
				}
				first := spec
				first.UUID = ironic.NewUUID()
				made, _, err := newClient(fake).Allocate(t.Context(), &provision.Request{AllocationSpec: first})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.wait)
				if tt.wait > 0 {
					next = newClient(fake)
				}
				second := spec
				second.UUID = ironic.NewUUID()
				if tt.change != nil {
					tt.change(&second)
				} else {
					second.CandidateNodes = []string{nodeOf(t, fake, "node-003").UUID}
				}
				a, by, err := next.Allocate(t.Context(), &provision.Request{AllocationSpec: second})
				if taken := err == nil && by != nil && a.UUID == made.UUID; taken != tt.taken {
					t.Fatalf("%+v, %v, %v; want it taken over: %t", a, by, err, tt.taken)
				}
				if !tt.taken {
					return
				}
				if a, err = next.Site.AwaitAllocation(t.Context(), provision.Request{AllocationSpec: second}, a, time.Minute); err != nil {
					t.Fatal(err)
				}
				if err := next.EndAllocation(t.Context(), a, nil); err != nil {
					t.Error(err)
				}
				now, err := next.Allocation(t.Context(), "web-0")
				if err != nil {
					t.Fatal(err)
				}
				runs, _ := now.Extra[string(provision.MarkCreation)].(map[string]any)
				for _, value := range slices.Collect(maps.Values(runs)) {
					if mark, _ := value.(map[string]any); mark["done"] == nil {
						t.Errorf("the mark of the allocation is %v; want it finished", now.Extra)
					}
				}
			})
		})
	}
}

func TestCreation_unnamedAllocationOfKilledRunIsNamed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(5)
		old := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
		if _, _, err := newClient(fake).Allocate(t.Context(), &provision.Request{AllocationSpec: old}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		next := newClient(fake)
		for class, want := range map[string]int{"baremetal": 1, "storage": 0} {
			left, err := next.LeftAllocations(t.Context(), ironic.AllocationSpec{ResourceClass: class})
			if err != nil || len(left) != want {
				t.Errorf("class %s: %+v, %v; want %d", class, left, err, want)
			}
		}
	})
}

func TestCreation_takenOverOnceByARun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		killed, err := newClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := killed.ReserveNew(t.Context(), provision.Deployment{}, "", later()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		next := newClient(fake)
		var all sync.WaitGroup
		var mu sync.Mutex
		owners := 0
		for range 3 { // resources that describe the same machine
			all.Go(func() {
				m, err := next.Machine(t.Context(), "node-000")
				if err != nil {
					t.Error(err)
					return
				}
				_, by, err := m.ReserveNew(t.Context(), provision.Deployment{}, "", later())
				mu.Lock()
				defer mu.Unlock()
				if err == nil && by != nil {
					owners++
				}
			})
		}
		all.Wait()
		if owners != 1 || !next.Run.HasTakenOver(provision.MarkReservation, nodeOf(t, fake, "node-000").UUID) {
			t.Errorf("%d resources have taken the reservation over, want 1, and the run must know it", owners)
		}
	})
}

func TestCreation_forgettingRemovesOnlyItsOwnMark(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		run := newClient(fake)
		m, err := run.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		instance, _, err := m.ReserveNew(t.Context(), provision.Deployment{}, "", later())
		if err != nil {
			t.Fatal(err)
		}
		run.ForgetDeployment(t.Context(), "node-000", ironic.NewUUID())
		if by, _ := markRun(t, fake, "node-000", provision.MarkReservation); by == "" {
			t.Error("the mark of another instance was removed")
		}
		run.ForgetDeployment(t.Context(), "node-000", instance)
		if by, _ := markRun(t, fake, "node-000", provision.MarkReservation); by != "" {
			t.Error("the mark stays on the node")
		}
	})
}

// A host that was forgotten is no creation that was interrupted.
func TestCreation_forgottenHostIsNotTakenOver(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		maker, who := newClient(fake), candidate(1)
		who.Driver = "redfish"
		node, err := maker.Enroll(t.Context(), who.UUID, ironic.Settings{"name": who.Name, "driver": who.Driver, "driver_info": who.DriverInfo})
		if err != nil {
			t.Fatal(err)
		}
		if err := maker.Record(node).EndCreation(t.Context(), provision.MarkCreation, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		again := who
		again.UUID = ironic.NewUUID()
		if found := newClient(fake).WouldTakeOver(t.Context(), again); found == nil {
			t.Fatal("the node of a run that has just ended is not taken over")
		}
		newClient(fake).ForgetHost(t.Context(), node.UUID)
		if found := newClient(fake).WouldTakeOver(t.Context(), again); found != nil {
			t.Errorf("taken over: %+v", found)
		}
		wantTaken(t, newClient(fake), again, provision.SharedName, node.UUID)
	})
}
