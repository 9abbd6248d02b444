package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// databases is a group that lets one member be away.
var databases = rollout.Settings{Group: "databases", MaxUnavailable: 1}

// deployed returns a fake with machines that run, each of whose services takes a while, and their UUIDs.
func deployed(t *testing.T, n int) (fake *fakeironic.Server, ids []string) {
	t.Helper()
	fake = ironictest.Fleet(n)
	fake.StepTime = 10 * time.Minute
	for i := range n {
		id := ironictest.NodeOf(t, fake, fmt.Sprintf("node-%03d", i)).UUID
		fake.Set(id, "provision_state", "active")
		fake.Set(id, "power_state", "power on")
		fake.Set(id, "instance_uuid", fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		ids = append(ids, id)
	}
	return fake, ids
}

// configure changes the BIOS settings of a deployed machine.
func configure(ctx context.Context, run *sitetest.Client, id string, settings rollout.Settings) error {
	m, err := run.Machine(ctx, id)
	if err != nil {
		return err
	}
	_, err = host.ConfigureHardware(ctx, m, host.HardwareChange{Want: enabled, Live: true, Rollout: settings}, 2*time.Hour)
	return err
}

// together changes machines at once, each in the run of its place, and returns the errors.
func together(ctx context.Context, ids []string, settings rollout.Settings, runs ...*sitetest.Client) []error {
	var all sync.WaitGroup
	failed := make([]error, len(ids))
	for i, id := range ids {
		all.Go(func() { failed[i] = configure(ctx, runs[i%len(runs)], id, settings) })
	}
	all.Wait()
	return failed
}

// atOnce returns how many machines were serviced at the same time.
func atOnce(fake *fakeironic.Server) int { return fake.MaxBusy("servicing", "service wait") }

func note(t *testing.T, fake *fakeironic.Server, id string) any {
	t.Helper()
	extra, _ := ironictest.AsOther(t, fake, http.MethodGet, "nodes/"+id, nil)["extra"].(map[string]any)
	return extra[notes.KeyTurn]
}

// count returns how many errors are of a kind.
func count(all []error, kind failure.Kind) (n int) {
	for _, err := range all {
		if failure.Is(err, kind) {
			n++
		}
	}
	return n
}

func TestConfigure_servicesTakeTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settings rollout.Settings
		runs     int
		most     int
		least    time.Duration // that it takes
	}{
		"a group in one run":     {databases, 1, 1, 0},
		"a group in two runs":    {databases, 2, 1, 0},
		"a pause":                {rollout.Settings{Group: "databases", MaxUnavailable: 1, Pause: time.Hour}, 1, 1, 5 * time.Hour},
		"a group of two":         {rollout.Settings{Group: "databases", MaxUnavailable: 2}, 1, 2, 0},
		"a canary":               {rollout.Settings{Canary: new(1), Pause: time.Hour}, 1, 5, time.Hour},
		"no settings":            {rollout.Settings{}, 1, 3, 0}, // until the first success
		"no settings, two runs":  {rollout.Settings{}, 2, 6, 0},
		"no limit for failures":  {rollout.Settings{MaxFailures: new(0)}, 1, 6, 0},
		"a canary of each group": {rollout.Settings{Group: "g", Canary: new(1)}, 1, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, ids := deployed(t, 6)
				runs := []*sitetest.Client{sitetest.NewClient(fake), sitetest.NewClient(fake)}[:tt.runs]
				began := time.Now()
				if err := errors.Join(together(t.Context(), ids, tt.settings, runs...)...); err != nil {
					t.Fatal(err)
				}
				if n := atOnce(fake); n != tt.most {
					t.Errorf("%d machines were serviced at once, want %d", n, tt.most)
				}
				if took := time.Since(began); took < tt.least {
					t.Errorf("it took %s", took)
				}
				for _, id := range ids {
					if bios := fake.BIOS(id)["ProcVirtualization"]; bios != "Enabled" {
						t.Errorf("node %s has %q", id, bios)
					}
					if note(t, fake, id) != nil && tt.settings.Pause == 0 {
						t.Errorf("node %s has a note", id)
					}
				}
			})
		})
	}
}

// Machines with other settings are a trial of their own, if no group says otherwise.
func TestConfigure_contentIsWhatTheMachineGets(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, ids := deployed(t, 4)
		run, one := sitetest.NewClient(fake), 1
		var all sync.WaitGroup
		for i, id := range ids {
			all.Go(func() {
				m, err := run.Machine(t.Context(), id)
				if err == nil {
					_, err = host.ConfigureHardware(t.Context(), m, host.HardwareChange{
						Want:    host.Hardware{BIOS: map[string]string{"ProcVirtualization": []string{"Enabled", "Disabled"}[i%2]}},
						Applied: host.Hardware{},
						Live:    true, Rollout: rollout.Settings{MaxFailures: &one},
					}, time.Hour)
				}
				if err != nil {
					t.Error(err)
				}
			})
			fake.SetBIOS(id, fakeironic.BIOSSetting{Name: "ProcVirtualization", Value: "Other"})
		}
		all.Wait()
		if n := atOnce(fake); n != 2 {
			t.Errorf("%d machines were serviced at once, want one of each kind", n)
		}
	})
}

// A machine whose service fails stays away: its group stops, over runs, until it is repaired.
func TestConfigure_failedServiceStopsItsGroup(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.115", "1.96"} { // with 1.96 the machine stays in service failed
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) { failedService(t, version) })
		})
	}
}

func failedService(t *testing.T, version string) {
	t.Helper()
	fake, ids := deployed(t, 3)
	fake.MaxMicroversion = version
	broken := true
	fake.Fail = func(_ fakeironic.Node, verb string) string {
		if broken && verb == "service" {
			return "it broke"
		}
		return ""
	}
	failed := together(t.Context(), ids, databases, sitetest.NewClient(fake))
	if n, not := count(failed, machine.KindService), count(failed, turns.KindNotStarted); n != 1 || not != 2 {
		t.Errorf("%d services failed, %d were not started: %v", n, not, failed)
	}
	bad := 0
	for i, id := range ids {
		if sent := len(ironictest.Verbs(t, fake, id)); failure.Is(failed[i], turns.KindNotStarted) != (sent == 0) {
			t.Errorf("node %d was sent %d verbs: %v", i, sent, failed[i])
		}
		if failure.Is(failed[i], machine.KindService) {
			bad = i
		}
	}
	broken = false
	other := (bad + 1) % len(ids)
	if err := configure(t.Context(), sitetest.NewClient(fake), ids[other], databases); !failure.Is(err, turns.KindNotStarted) {
		t.Errorf("the next run services another machine: %v", err)
	}
	if err := errors.Join(together(t.Context(), ids, databases, sitetest.NewClient(fake))...); err != nil {
		t.Error(err)
	}
	if n := atOnce(fake); n != 1 {
		t.Errorf("%d machines were serviced at once", n)
	}
}

// Settings that Ironic has skipped are a failure of the change. The machine runs, so that other runs do not count it as away.
func TestConfigure_skippedSettingsStopTheRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, ids := deployed(t, 2)
		skips := true
		fake.Skips = func(string) bool { return skips }
		failed := together(t.Context(), ids, databases, sitetest.NewClient(fake))
		if count(failed, host.KindNotThere) != 1 || count(failed, turns.KindNotStarted) != 1 {
			t.Errorf("%v", failed)
		}
		skips = false
		for _, id := range ids {
			if note(t, fake, id) != nil {
				t.Errorf("node %s has a note", id)
			}
			if err := configure(t.Context(), sitetest.NewClient(fake), id, databases); err != nil {
				t.Error(err)
			}
		}
	})
}

// A killed run leaves a service in progress. The next run waits for it, sends it no second time, and services the other machine after it.
func TestConfigure_killedRunLeavesAService(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, ids := deployed(t, 2)
		dead := make(chan struct{})
		killed := sitetest.NewClient(fake, func(c *machine.Config) {
			c.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				select {
				case <-dead:
					<-r.Context().Done()
					return nil, r.Context().Err()
				default:
					return fake.RoundTrip(r)
				}
			})
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- configure(ctx, killed, ids[0], databases) }()
		time.Sleep(time.Minute)
		close(dead)
		if err := errors.Join(together(t.Context(), []string{ids[1], ids[0]}, databases, sitetest.NewClient(fake))...); err != nil {
			t.Error(err)
		}
		for i, id := range ids {
			if sent := ironictest.Verbs(t, fake, id); len(sent) != 1 {
				t.Errorf("node %d was sent %v", i, sent)
			}
		}
		if n := atOnce(fake); n != 1 {
			t.Errorf("%d machines were serviced at once", n)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("the killed run has succeeded")
		}
	})
}

// What needs no service needs no turn, although the group lacks a member for ever.
func TestConfigure_takesATurnOnlyForAService(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(fake *fakeironic.Server, id string) (live bool){
		"a service of another client is in progress": func(fake *fakeironic.Server, id string) bool {
			order := ironic.Order{Verb: nodes.TargetService, Steps: enabled.Steps(host.HardwareSeen{})}
			return sitetest.NewClient(fake).Ironic.ChangeProvisionState(context.Background(), id, order) == nil
		},
		"the machine has the settings": func(fake *fakeironic.Server, id string) bool {
			fake.SetBIOS(id, fakeironic.BIOSSetting{Name: "ProcVirtualization", Value: "Enabled"})
			return true
		},
		"a cleaning": func(fake *fakeironic.Server, id string) bool {
			fake.Set(id, "provision_state", "manageable")
			fake.Set(id, "instance_uuid", nil)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, ids := deployed(t, 2)
				leaveAway(t, fake, ids[0])
				live := prepare(fake, ids[1])
				m, err := sitetest.NewClient(fake).Machine(t.Context(), ids[1])
				if err != nil {
					t.Fatal(err)
				}
				open, err := host.ConfigureHardware(t.Context(), m, host.HardwareChange{Want: enabled, Live: live, Rollout: databases},
					time.Hour)
				if err != nil || len(open) > 0 {
					t.Errorf("open: %v, %v", open, err)
				}
			})
		})
	}
}

// leaveAway lets the change of a member fail.
func leaveAway(t *testing.T, fake *fakeironic.Server, id string) {
	t.Helper()
	m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := turns.Take(t.Context(), m, turns.Change{Settings: databases, Change: rollout.Rebuild})
	if err != nil {
		t.Fatal(err)
	}
	turn.End(t.Context(), &failure.Error{Kind: failure.KindFailed, Fact: "it is broken"})
}

// While a machine waits for its turn, the user may stop the run, and another user may get the machine. Nothing is sent to it.
func TestConfigure_whatHappensInTheQueue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(fake *fakeironic.Server, id string, stop func())
		kind    failure.Kind
	}{
		"the user stops the run": {func(_ *fakeironic.Server, _ string, stop func()) { stop() }, failure.KindQueued},
		"another user gets the machine": {func(fake *fakeironic.Server, id string, _ func()) {
			fake.Set(id, "instance_uuid", "bbbbbbbb-1111-4111-8111-111111111111")
		}, machine.KindReserved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, ids := deployed(t, 2)
				run := sitetest.NewClient(fake)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				first, second := make(chan error), make(chan error)
				go func() { first <- configure(t.Context(), run, ids[0], databases) }()
				time.Sleep(time.Minute)
				go func() { second <- configure(ctx, run, ids[1], databases) }()
				time.Sleep(time.Minute)
				tt.happens(fake, ids[1], stop)
				if err := <-second; !failure.Is(err, tt.kind) {
					t.Errorf("want %q: %v", tt.kind, err)
				}
				if err := <-first; err != nil {
					t.Error(err)
				}
				if sent := ironictest.Verbs(t, fake, ids[1]); len(sent) > 0 || note(t, fake, ids[1]) != nil {
					t.Errorf("it was sent %v, and has the note %v", sent, note(t, fake, ids[1]))
				}
			})
		})
	}
}

// A machine first waits for its turn, and then for a slot: a full limit holds no member of the group that is away back, and the reverse.
func TestConfigure_turnComesBeforeTheSlot(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, ids := deployed(t, 3)
		run := sitetest.Run(fake, sitetest.UpTo(2))
		other := make(chan error)
		go func() { // of no group: it needs the second slot, while a member waits for its turn
			time.Sleep(time.Minute)
			m, err := run.Machine(t.Context(), ids[2])
			if err == nil {
				err = m.RunSteps(t.Context(), true, ironic.Order{Steps: enabled.Steps(host.HardwareSeen{})}, time.Hour)
			}
			other <- err
		}()
		if err := errors.Join(together(t.Context(), ids[:2], databases, run)...); err != nil {
			t.Error(err)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
		if n := atOnce(fake); n != 2 {
			t.Errorf("%d machines were serviced at once, want one of the group and the other one", n)
		}
	})
}
