package machine_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// freeze freezes a site as metal freeze does, until a time from now; zero: until thaw.
func freeze(t *testing.T, fake *fakeironic.Server, until time.Duration) {
	t.Helper()
	f := throttle.Freeze{Reason: "the switch\x1b[2J burns", By: "eve@desk", Since: time.Now()}
	if until > 0 {
		f.Until = time.Now().Add(until)
	}
	if _, err := sitetest.NewClient(fake).Freezes().Set(t.Context(), f, true); err != nil {
		t.Fatal(err)
	}
}

func thaw(t *testing.T, fake *fakeironic.Server) {
	t.Helper()
	if was, err := sitetest.NewClient(fake).Freezes().End(t.Context()); err != nil || was == nil {
		t.Fatal(was, err)
	}
}

// sent counts the requests that move machines.
func sent(fake *fakeironic.Server) (n int) {
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut && (strings.Contains(r.Path, "/states/") || strings.Contains(r.Path, "/management/")) {
			n++
		}
	}
	return n
}

var freezeLimits = map[string]throttle.Limit{
	"no limit": {}, "of the site": sitetest.UpTo(5),
	"of a process": {Max: 5, Coordination: throttle.CoordinationProcess},
}

func TestFreeze_withoutEndEndsWhatWouldBegin(t *testing.T) {
	t.Parallel()
	for name, limit := range freezeLimits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(1, time.Minute)
				id := fake.Nodes()[0].UUID
				freeze(t, fake, 0)
				for what, do := range map[string]func(m *machine.Machine) error{
					"clean":       func(m *machine.Machine) error { return m.Reach(t.Context(), states.GoalAvailable, time.Hour) },
					"inspect":     func(m *machine.Machine) error { return m.Inspect(t.Context(), true, time.Hour) },
					"on":          func(m *machine.Machine) error { return m.ChangePower(t.Context(), machine.ActionOn, time.Hour) },
					"off":         func(m *machine.Machine) error { return m.ChangePower(t.Context(), machine.ActionOff, time.Hour) },
					"reboot":      func(m *machine.Machine) error { return m.ChangePower(t.Context(), machine.ActionReboot, time.Hour) },
					"boot device": func(m *machine.Machine) error { return m.BootFrom(t.Context(), "pxe", false, time.Hour) },
					"nmi":         func(m *machine.Machine) error { return m.SendNMI(t.Context(), time.Hour) },
				} {
					fake.Set(id, "power_state", map[bool]string{true: "power off", false: "power on"}[what == "on"])
					m, err := sitetest.Run(fake, limit).Machine(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					err = do(m)
					title, detail := failure.Explain("work on it", err)
					for _, part := range []string{"node-000", "eve@desk", time.Now().UTC().Format("2006-01-02"), "burns", "metal thaw"} {
						if title != "The site is frozen" || !strings.Contains(detail, part) || strings.Contains(detail, "\x1b") {
							t.Errorf("%s: without %q: %s: %s", what, part, title, detail)
						}
					}
					if time.Since(began) > time.Second || sent(fake) > 0 {
						t.Errorf("%s: ended after %s, with %d requests", what, time.Since(began), sent(fake))
					}
				}
				thaw(t, fake)
				if _, err := sitetest.Run(fake, limit).Reach(t.Context(), id, states.GoalAvailable, time.Hour); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Waiting for the end of a freeze uses up no time-out, and two runs go on when it comes, or when somebody thaws the site.
func TestFreeze_withAnEndIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, limit := range freezeLimits {
		for _, thawed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := manageableFleet(6, 50*time.Minute)
					freeze(t, fake, 40*time.Minute)
					began, book := time.Now(), &sitetest.Logbook{}
					set := func(cfg *machine.Config) { cfg.Limit = limit }
					runs := []*sitetest.Client{sitetest.NewClient(fake, set, book.Record), sitetest.NewClient(fake, set)}
					var done sync.WaitGroup
					for i, node := range fake.Nodes()[:4] {
						done.Go(func() {
							if _, err := runs[i%2].Reach(t.Context(), node.UUID, states.GoalAvailable, time.Hour); err != nil {
								t.Error(err)
							}
						})
					}
					done.Go(func() {
						m, err := runs[0].Machine(t.Context(), fake.Nodes()[4].UUID)
						if err == nil {
							err = m.ChangePower(t.Context(), machine.ActionReboot, time.Hour)
						}
						if err != nil {
							t.Error(err)
						}
					})
					<-time.After(20 * time.Minute)
					if n := sent(fake); n > 0 {
						t.Errorf("%d requests were sent while the site was frozen", n)
					}
					if lines := len(book.Lines("nothing new is begun", "eve@desk")); lines < 35 || lines > 41 {
						t.Errorf("the log says %d times in 20 minutes that the run waits", lines)
					}
					end := 40 * time.Minute
					if thawed {
						thaw(t, fake)
						end = 20 * time.Minute
					}
					done.Wait()
					ironictest.WantNear(t, "the first request was sent after", firstSent(fake).Sub(began), end)
				})
			})
		}
	}
}

func firstSent(fake *fakeironic.Server) time.Time {
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut {
			return r.Time
		}
	}
	return time.Time{}
}

func TestFreeze_thatEndsTooLateEndsAtOnce(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Minute)
		freeze(t, fake, 3*time.Hour)
		began := time.Now()
		_, err := sitetest.Run(fake, sitetest.UpTo(1)).Reach(t.Context(), fake.Nodes()[0].UUID, states.GoalAvailable, time.Hour)
		_, detail := failure.Explain("", err)
		if time.Since(began) > time.Second || !strings.Contains(detail, "1h0m0s") || sent(fake) > 0 {
			t.Errorf("after %s, with %d requests: %s", time.Since(began), sent(fake), detail)
		}
	})
}

// What is in progress ends, also the second half of a restart. Machines that wait for a slot give up.
func TestFreeze_whatIsInProgressEnds(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(3, 10*time.Minute)
		fake.Set(fake.Nodes()[2].UUID, "power_state", "power on")
		run := sitetest.Run(fake, sitetest.UpTo(2))
		results := make([]error, 3)
		var done sync.WaitGroup
		done.Go(func() {
			m, err := run.Machine(t.Context(), fake.Nodes()[2].UUID)
			if err == nil {
				err = m.ChangePower(t.Context(), machine.ActionSoftReboot, time.Hour)
			}
			results[2] = err
		})
		<-time.After(time.Second)
		for i, node := range fake.Nodes()[:2] {
			done.Go(func() { _, results[i] = run.Reach(t.Context(), node.UUID, states.GoalAvailable, time.Hour) })
			<-time.After(time.Second)
		}
		freeze(t, fake, 0)
		<-time.After(time.Minute)
		if results[1] == nil || !machine.IsFrozen(results[1]) {
			t.Errorf("the machine in the queue ended with %v a minute later", results[1])
		}
		done.Wait()
		if on := fake.Nodes()[2].PowerState; results[0] != nil || results[2] != nil || on != "power on" {
			t.Errorf("what was in progress ended with %v and %v, %s", results[0], results[2], on)
		}
	})
}

// A record that cannot be read stops no work, and the log says so once.
func TestFreeze_unreadableStopsNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, book := manageableFleet(20, time.Minute), &sitetest.Logbook{}
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if r.Method == http.MethodGet && (strings.HasPrefix(r.URL.Path, "/v1/chassis/") || strings.HasPrefix(r.URL.Path,
					"/v1/allocations/")) {
					return ironictest.Fault(status, "no")
				}
				return nil
			}
			reachAll(t, fake, sitetest.NewClient(fake, book.Record), states.GoalAvailable, time.Hour)
			want := map[bool]int{true: 0, false: 1}[status == http.StatusNotFound]
			if said := len(book.Lines("could not read whether the site is frozen")); said != want {
				t.Errorf("with status %d the log says %d times that the record cannot be read, want %d", status, said, want)
			}
		})
	}
}

// A run reads the record at most once in 20 seconds, however many machines it has.
func TestFreeze_costsNoRequestAMachine(t *testing.T) {
	t.Parallel()
	for name, limit := range freezeLimits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(50, 30*time.Second)
				began := time.Now()
				cleanAll(t, fake, sitetest.Run(fake, limit))
				read := ironictest.Count(fake, http.MethodGet, "/v1/chassis/"+ironic.UUID5("2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21", "freeze"))
				if most := int(time.Since(began)/throttle.FreezeNoticed) + 1; read < 1 || read > most {
					t.Errorf("the record was read %d times in %s", read, time.Since(began))
				}
			})
		})
	}
}

func TestFreeze_interruptedWait(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Minute)
		freeze(t, fake, 30*time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err := sitetest.Run(fake, throttle.Limit{}).Reach(ctx, fake.Nodes()[0].UUID, states.GoalAvailable, time.Hour)
		if queued := failure.As(err, failure.KindQueued); queued == nil || !strings.Contains(queued.Waits, "freeze") {
			t.Errorf("the run was interrupted with %v", err)
		}
	})
}
