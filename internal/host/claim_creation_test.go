package host_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// markRun returns the run that the mark of a node names, and whether the creation is finished.
func markRun(t *testing.T, fake *fakeironic.Server, node string, key notes.Mark) (run string, done bool) {
	t.Helper()
	runs, _ := sitetest.ExtraOf(t, fake, node)[string(key)].(map[string]any)
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
	for name, prepare := range map[string]func(*testing.T, *fakeironic.Server, *machine.Machine){
		"right after its creation": func(*testing.T, *fakeironic.Server, *machine.Machine) {},
		"finished, but not saved": func(t *testing.T, _ *fakeironic.Server, m *machine.Machine) {
			if err := m.EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
				t.Error(err)
			}
			time.Sleep(14 * time.Minute)
		},
		"hours ago": func(*testing.T, *fakeironic.Server, *machine.Machine) { time.Sleep(23 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
				prepare(t, fake, sitetest.Begin(t, sitetest.NewClient(fake), who))
				time.Sleep(time.Second)
				next := sitetest.NewClient(fake)
				found, err := host.Admit(t.Context(), next.Site, sitetest.TheSame(who), sitetest.InAnHour())
				if err != nil || found == nil || found.Node.UUID != who.UUID || found.By == nil {
					t.Fatalf("%+v, %v; want the node of the killed run", found, err)
				}
				run, done := markRun(t, fake, who.Name, notes.MarkCreation)
				if run == found.By.Run || done {
					t.Errorf("the mark is of %s, finished: %t; want one of the new run, which has just begun", run, done)
				}
				if left := ironictest.Count(fake, http.MethodPost, "/v1/chassis") - ironictest.Count(fake, http.MethodDelete,
					"/v1/chassis/"); left != 0 {
					t.Errorf("%d lock records are left", left)
				}
				m := next.Record(found.Node)
				if err := m.EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
					t.Error(err)
				}
				if _, done := markRun(t, fake, who.Name, notes.MarkCreation); !done {
					t.Error("the mark does not say that the creation is finished")
				}
			})
		})
	}
}

func TestCreation_otherNodesAreNotTakenOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*testing.T, *fakeironic.Server, *machine.Machine, *host.Candidate)
	}{
		"no mark": {func(_ *testing.T, fake *fakeironic.Server, _ *machine.Machine, who *host.Candidate) {
			fake.Set(who.Name, "extra", map[string]any{})
		}},
		"another BMC": {func(_ *testing.T, _ *fakeironic.Server, _ *machine.Machine, who *host.Candidate) {
			who.DriverInfo = maps.Clone(who.DriverInfo)
			who.DriverInfo["redfish_address"] = "https://192.0.2.99"
		}},
		"another driver": {func(_ *testing.T, _ *fakeironic.Server, _ *machine.Machine, who *host.Candidate) {
			who.Driver = "idrac"
		}},
		"finished long ago": {func(t *testing.T, _ *fakeironic.Server, m *machine.Machine, _ *host.Candidate) {
			if err := m.EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
				t.Error(err)
			}
			time.Sleep(16 * time.Minute)
		}},
		"busy for too long": {func(_ *testing.T, fake *fakeironic.Server, _ *machine.Machine, who *host.Candidate) {
			fake.Set(who.Name, "provision_state", "clean wait")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
				first := sitetest.Begin(t, sitetest.NewClient(fake), who)
				wanted := sitetest.TheSame(who)
				tt.change(t, fake, first, &wanted)
				before := sitetest.ExtraOf(t, fake, who.Name)
				time.Sleep(time.Second)
				if found, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, wanted, soon()); err == nil {
					t.Errorf("node %+v was taken over", found)
				}
				if after := sitetest.ExtraOf(t, fake, who.Name); !ironic.SameJSON(before, after) {
					t.Errorf("extra was %v and is %v", before, after)
				}
			})
		})
	}
}

// A run that has begun after this one is alive: it is the one that creates the node.
func TestCreation_runsOfTheSameMomentStayApart(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
		first, second := sitetest.NewClient(fake), sitetest.NewClient(fake)
		time.Sleep(time.Second)
		m := sitetest.Begin(t, first, who)
		_, err := host.Admit(t.Context(), second.Site, sitetest.TheSame(who), sitetest.InAnHour())
		if !failure.Is(err, host.KindTaken) || host.TakenOf(err).Making == nil {
			t.Errorf("%v, want an error that names the other run", err)
		}
		if err := m.EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
			t.Errorf("the first run: %v", err)
		}
	})
}

func TestCreation_liveRunStopsWhenAnotherTakesOver(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(context.Context, *machine.Machine) error{
		"before a verb": func(ctx context.Context, m *machine.Machine) error {
			return m.Reach(ctx, states.GoalAvailable, time.Hour)
		},
		"at its end": func(ctx context.Context, m *machine.Machine) error {
			return m.EndCreation(ctx, notes.MarkCreation, nil)
		},
		"before a deletion": func(ctx context.Context, m *machine.Machine) error { return m.CheckCreation(ctx) },
		"before an edit": func(ctx context.Context, m *machine.Machine) error {
			return m.Patch(ctx, sitetest.Setting("/description", "late"))
		},
		"after a failure": func(ctx context.Context, m *machine.Machine) error {
			return m.EndCreation(ctx, notes.MarkCreation, errors.New("some step failed"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
				m := sitetest.Begin(t, sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = sitetest.UpTo(1) }), who)
				fake.Set(who.Name, "provision_state", "manageable")
				if err := m.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				other := sitetest.NewClient(fake)
				found, err := host.Admit(t.Context(), other.Site, sitetest.TheSame(who), sitetest.InAnHour())
				if err != nil || found == nil {
					t.Fatalf("%+v, %v", found, err)
				}
				if err := next(t.Context(), m); !notes.IsSuperseded(err) {
					t.Errorf("%v, want an error of KindSuperseded", err)
				}
				if sent := ironictest.Verbs(t, fake, who.UUID); len(sent) > 0 {
					t.Errorf("the verbs %v were sent", sent)
				}
				if err := other.Record(found.Node).EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
					t.Errorf("the run that took over: %v", err)
				}
			})
		})
	}
}

func TestCreation_oneOfManyRunsTakesOver(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
		sitetest.Begin(t, sitetest.NewClient(fake), who)
		time.Sleep(time.Second)
		var all sync.WaitGroup
		var mu sync.Mutex
		owners := 0
		for range 5 {
			next := sitetest.NewClient(fake)
			all.Go(func() {
				found, err := host.Admit(t.Context(), next.Site, sitetest.TheSame(who), sitetest.InAnHour())
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
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{StepTime: 5 * time.Minute}, sitetest.MachineOf(1)
		m := sitetest.Begin(t, sitetest.NewClient(fake), who)
		ctx, kill := context.WithTimeout(t.Context(), time.Second)
		_ = m.Reach(ctx, states.GoalManageable, time.Hour)
		kill()
		found, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, sitetest.TheSame(who), sitetest.InAnHour())
		if err != nil || found == nil || found.Node.ProvisionState != "manageable" {
			t.Errorf("%+v, %v; want the node after its verification", found, err)
		}
	})
}

func TestCreation_reservedByItsOwnKilledRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
		killed := sitetest.NewClient(fake)
		m := sitetest.Begin(t, killed, who)
		fake.Set(who.Name, "provision_state", "available")
		fake.Set(who.Name, "power_state", "power off")
		if err := m.EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
			t.Fatal(err)
		}
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal"}
		a, _, err := allocate.Allocate(t.Context(), killed.Site, &allocate.Request{AllocationSpec: spec})
		if err == nil {
			_, err = allocate.AwaitAllocation(t.Context(), killed.Site, allocate.Request{AllocationSpec: spec}, a, time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if found, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, sitetest.TheSame(who), sitetest.InAnHour()); err != nil ||
			found == nil {
			t.Errorf("%+v, %v; want the node, which the killed run has also allocated", found, err)
		}
	})
}

func TestCreation_reservationOfKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		killed, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		instanceID, by, err := deploy.ReserveNew(t.Context(), killed, deploy.Deployment{}, "", sitetest.InAnHour())
		if err != nil || by != nil {
			t.Fatal(by, err)
		}
		time.Sleep(time.Second)
		next, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		again, by, err := deploy.ReserveNew(t.Context(), next, deploy.Deployment{}, "", sitetest.InAnHour())
		if err != nil || by == nil || again != instanceID {
			t.Fatalf("%s, %v, %v; want the reservation %s of the killed run", again, by, err, instanceID)
		}
		if err := killed.EndCreation(t.Context(), notes.MarkReservation, nil); !notes.IsSuperseded(err) {
			t.Errorf("the first run: %v, want an error of KindSuperseded", err)
		}
		if err := next.EndCreation(t.Context(), notes.MarkReservation, nil); err != nil {
			t.Error(err)
		}
		if _, done := markRun(t, fake, "node-000", notes.MarkReservation); !done {
			t.Error("the mark does not say that the reservation is finished")
		}
	})
}

// A machine that runs another deployment may be in the state of another configuration.
func TestCreation_deploymentOfOtherContentIsNotTakenOver(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		killed := sitetest.NewClient(fake)
		m, err := killed.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		content := func(url string) deploy.Deployment {
			return deploy.Deployment{Image: &deploy.Image{URL: url, Checksum: "http://images.test/SUMS"}}
		}
		instanceID, _, err := deploy.ReserveNew(t.Context(), m, content("http://images.test/a"), "", sitetest.InAnHour())
		if err == nil {
			_, err = deploy.Deploy(t.Context(), m, content("http://images.test/a"),
				deploy.DeployOptions{Instance: instanceID, Creates: true, Attempts: 1, Timeout: time.Hour})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for url, taken := range map[string]bool{"http://images.test/b": false, "http://images.test/a": true} {
			next, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			_, by, err := deploy.ReserveNew(t.Context(), next, content(url), "", sitetest.InAnHour())
			if taken != (err == nil && by != nil) || taken == failure.Is(err, machine.KindReserved) {
				t.Errorf("deploy %s: %v, %v; want it taken over: %t", url, by, err, taken)
			}
		}
	})
}

// Terraform saves nothing while one deployment is in progress, so that what was finished long before may be lost, too.
func TestCreation_finishedBeforeALongDeploymentIsTakenOver(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
		killed := sitetest.NewClient(fake)
		m := sitetest.Begin(t, killed, who)
		if _, err := killed.Ironic.CreatePort(t.Context(), who.UUID, ironic.PortSpec{Address: who.Addresses[0]}); err != nil {
			t.Fatal(err)
		}
		fake.Set(who.Name, "provision_state", "available")
		fake.Set(who.Name, "power_state", "power off")
		if err := m.EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
			t.Fatal(err)
		}
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal"}
		a, _, err := allocate.Allocate(t.Context(), killed.Site, &allocate.Request{AllocationSpec: spec})
		if err == nil {
			a, err = allocate.AwaitAllocation(t.Context(), killed.Site, allocate.Request{AllocationSpec: spec}, a, time.Minute)
		}
		if err == nil {
			err = allocate.EndAllocation(t.Context(), killed.Site, a, nil)
		}
		if err == nil {
			err = m.Refresh(t.Context())
		}
		d := deploy.Deployment{Image: &deploy.Image{URL: "http://images.test/a", Checksum: "http://images.test/SUMS"}}
		if err == nil {
			_, err = deploy.Deploy(t.Context(), m, d, deploy.DeployOptions{
				Instance: a.UUID, Creates: true, Attempts: 1,
				Timeout: time.Hour,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		next := sitetest.NewClient(fake)
		if found, err := host.Admit(t.Context(), next.Site, sitetest.TheSame(who), sitetest.InAnHour()); err != nil || found == nil {
			t.Errorf("the host: %+v, %v; want it taken over", found, err)
		}
		again := spec
		again.UUID = ironic.NewUUID()
		// The deployment's mark is that of the killed run still, so the allocation is lost as well.
		if found, by, err := allocate.Allocate(t.Context(), next.Site, &allocate.Request{AllocationSpec: again}); err != nil || by == nil ||
			found.UUID != a.UUID {
			t.Errorf("the allocation: %+v, %v, %v; want it taken over", found, by, err)
		}
		machine, err := next.Machine(t.Context(), who.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, by, err := deploy.ReserveNew(t.Context(), machine, d, a.UUID, sitetest.InAnHour()); err != nil || by == nil {
			t.Errorf("the deployment: %v, %v; want it taken over", by, err)
		}
	})
}

// A resource that is created before another one is deleted may take over the very object, for example after its key has changed.
func TestCreation_takenOverInTheSameRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
		sitetest.Begin(t, sitetest.NewClient(fake), who)
		time.Sleep(time.Second)
		next := sitetest.NewClient(fake)
		if next.Run.HasTakenOver(notes.MarkCreation, who.UUID) {
			t.Error("the run has taken over the node before it did")
		}
		if found, err := host.Admit(t.Context(), next.Site, sitetest.TheSame(who), sitetest.InAnHour()); err != nil || found == nil {
			t.Fatalf("%+v, %v", found, err)
		}
		if !next.Run.HasTakenOver(notes.MarkCreation, who.UUID) {
			t.Error("the run does not know that it has taken over the node")
		}
	})
}

func TestCreation_lostAnswerToTheTakeOver(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, who := &fakeironic.Server{}, sitetest.MachineOf(1)
		sitetest.Begin(t, sitetest.NewClient(fake), who)
		time.Sleep(time.Second)
		fake.Reject = ironictest.Once(http.MethodPatch, "/v1/nodes/"+who.UUID, ironictest.Lost())
		if found, err := host.Admit(t.Context(), sitetest.NewClient(fake).Site, sitetest.TheSame(who), sitetest.InAnHour()); err != nil ||
			found == nil {
			t.Errorf("%+v, %v; want the node", found, err)
		}
	})
}

func TestCreation_reservationOfOthersStays(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "instance_uuid", ironic.NewUUID())
		m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := deploy.ReserveNew(t.Context(), m, deploy.Deployment{}, "", sitetest.InAnHour()); !failure.Is(err,
			machine.KindReserved) {
			t.Errorf("%v, want an error of KindReserved", err)
		}
	})
}

func TestCreation_allocationOfKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	spec := ironic.AllocationSpec{
		Name: "web-0", ResourceClass: "baremetal", Traits: []string{"CUSTOM_NVME"},
		CandidateNodes: []string{"node-003"},
	}
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
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(5)
				next := sitetest.NewClient(fake)
				if tt.wait == 0 {
					time.Sleep(time.Second)
				}
				first := spec
				first.UUID = ironic.NewUUID()
				made, _, err := allocate.Allocate(t.Context(), sitetest.NewClient(fake).Site, &allocate.Request{AllocationSpec: first})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.wait)
				if tt.wait > 0 {
					next = sitetest.NewClient(fake)
				}
				second := spec
				second.UUID = ironic.NewUUID()
				if tt.change != nil {
					tt.change(&second)
				} else {
					second.CandidateNodes = []string{ironictest.NodeOf(t, fake, "node-003").UUID}
				}
				a, by, err := allocate.Allocate(t.Context(), next.Site, &allocate.Request{AllocationSpec: second})
				if taken := err == nil && by != nil && a.UUID == made.UUID; taken != tt.taken {
					t.Fatalf("%+v, %v, %v; want it taken over: %t", a, by, err, tt.taken)
				}
				if !tt.taken {
					return
				}
				if a, err = allocate.AwaitAllocation(t.Context(), next.Site, allocate.Request{AllocationSpec: second}, a,
					time.Minute); err != nil {
					t.Fatal(err)
				}
				if err := allocate.EndAllocation(t.Context(), next.Site, a, nil); err != nil {
					t.Error(err)
				}
				now, err := next.Ironic.Allocation(t.Context(), "web-0")
				if err != nil {
					t.Fatal(err)
				}
				runs, _ := now.Extra[string(notes.MarkCreation)].(map[string]any)
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
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(5)
		old := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
		if _, _, err := allocate.Allocate(t.Context(), sitetest.NewClient(fake).Site, &allocate.Request{AllocationSpec: old}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		next := sitetest.NewClient(fake)
		for class, want := range map[string]int{"baremetal": 1, "storage": 0} {
			left, err := allocate.LeftAllocations(t.Context(), next.Site, ironic.AllocationSpec{ResourceClass: class})
			if err != nil || len(left) != want {
				t.Errorf("class %s: %+v, %v; want %d", class, left, err, want)
			}
		}
	})
}

func TestCreation_takenOverOnceByARun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		killed, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := deploy.ReserveNew(t.Context(), killed, deploy.Deployment{}, "", sitetest.InAnHour()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		next := sitetest.NewClient(fake)
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
				_, by, err := deploy.ReserveNew(t.Context(), m, deploy.Deployment{}, "", sitetest.InAnHour())
				mu.Lock()
				defer mu.Unlock()
				if err == nil && by != nil {
					owners++
				}
			})
		}
		all.Wait()
		if owners != 1 || !next.Run.HasTakenOver(notes.MarkReservation, ironictest.NodeOf(t, fake, "node-000").UUID) {
			t.Errorf("%d resources have taken the reservation over, want 1, and the run must know it", owners)
		}
	})
}

func TestCreation_forgettingRemovesOnlyItsOwnMark(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		run := sitetest.NewClient(fake)
		m, err := run.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		instance, _, err := deploy.ReserveNew(t.Context(), m, deploy.Deployment{}, "", sitetest.InAnHour())
		if err != nil {
			t.Fatal(err)
		}
		run.ForgetDeployment(t.Context(), "node-000", ironic.NewUUID())
		if by, _ := markRun(t, fake, "node-000", notes.MarkReservation); by == "" {
			t.Error("the mark of another instance was removed")
		}
		run.ForgetDeployment(t.Context(), "node-000", instance)
		if by, _ := markRun(t, fake, "node-000", notes.MarkReservation); by != "" {
			t.Error("the mark stays on the node")
		}
	})
}

// A host that was forgotten is no creation that was interrupted.
func TestCreation_forgottenHostIsNotTakenOver(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		maker, who := sitetest.NewClient(fake), sitetest.Candidate(1)
		who.Driver = "redfish"
		node, err := host.Enroll(t.Context(), maker.Site, who.UUID, ironic.Settings{
			"name": who.Name, "driver": who.Driver,
			"driver_info": who.DriverInfo,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := maker.Record(node).EndCreation(t.Context(), notes.MarkCreation, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		again := who
		again.UUID = ironic.NewUUID()
		if found := host.WouldTakeOver(t.Context(), sitetest.NewClient(fake).Site, again); found == nil {
			t.Fatal("the node of a run that has just ended is not taken over")
		}
		sitetest.NewClient(fake).ForgetHost(t.Context(), node.UUID)
		if found := host.WouldTakeOver(t.Context(), sitetest.NewClient(fake).Site, again); found != nil {
			t.Errorf("taken over: %+v", found)
		}
		wantTaken(t, sitetest.NewClient(fake), again, identity.Name, node.UUID)
	})
}
