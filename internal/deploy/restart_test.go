package deploy_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// restartFor is the step of a run whose state knows of no restart.
func restartFor(triggers string) deploy.Step {
	return deploy.Step{Do: deploy.DoRestart, Restart: deploy.Restarted{Triggers: deploy.TriggersDigest(decide.Known(triggers))}}
}

// restarting returns a fake with a deployed machine that is on.
func restarting() *fakeironic.Server {
	fake := ironictest.Fleet(1)
	fake.StepTime = 20 * time.Second
	fake.Set("node-000", "provision_state", "active")
	fake.Set("node-000", "power_state", "power on")
	return fake
}

// Runs that do not know each other restart a machine once for the same triggers: at the same time, in the middle, and after one another.
func TestRestart_onceForAllRuns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how   machine.OffMode
		after time.Duration // when the second run begins
	}{
		"at once":             {machine.OffHard, 0},
		"a moment later":      {machine.OffHard, time.Second},
		"while it is off":     {machine.OffGraceful, 25 * time.Second},
		"after it":            {machine.OffHard, time.Hour},
		"after a soft one":    {machine.OffSoft, time.Hour},
		"waiting for its end": {machine.OffGraceful, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := restarting()
				before := fake.PowerCycles("node-000")
				var runs sync.WaitGroup
				for i := range 2 {
					runs.Go(func() {
						m, err := sitetest.Run(fake, sitetest.UpTo(1)).Machine(t.Context(), "node-000")
						time.Sleep(time.Duration(i) * tt.after) // the node was read before
						if err == nil {
							err = deploy.Restart(t.Context(), m, restartFor("2"), tt.how, time.Hour)
						}
						if err != nil {
							t.Errorf("run %d: %v", i, err)
						}
					})
				}
				runs.Wait()
				if n := fake.PowerCycles("node-000") - before; n != 1 || ironictest.NodeOf(t, fake, "node-000").PowerState != "power on" {
					t.Errorf("%d starts", n)
				}
			})
		})
	}
}

// A restart that Ironic could not do is repeated, and so is one for other triggers.
func TestRestart_repeatsWhatHasFailed(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := restarting()
		run := func(triggers string) error {
			m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
			if err != nil {
				return err
			}
			return deploy.Restart(t.Context(), m, restartFor(triggers), machine.OffHard, time.Hour)
		}
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPut {
				return ironictest.Fault(http.StatusBadRequest, "The BMC is not reachable.")
			}
			return nil
		}
		if err := run("2"); err == nil {
			t.Error("no error")
		}
		fake.Reject = nil
		for i, triggers := range []string{"2", "2", "3", "2"} {
			if err := run(triggers); err != nil {
				t.Fatal(err)
			}
			if n, want := fake.PowerCycles("node-000"), []int{1, 1, 2, 3}[i]; n != want {
				t.Errorf("after %s: %d starts, want %d", triggers, n, want)
			}
		}
	})
}

// A user who may not write the note restarts the machine all the same.
func TestRestart_withoutTheRightToNoteIt(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := restarting()
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPatch {
				return ironictest.Fault(http.StatusForbidden, "baremetal:node:update_instance_info")
			}
			return nil
		}
		m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
		if err == nil {
			err = deploy.Restart(t.Context(), m, restartFor("2"), machine.OffHard, time.Hour)
		}
		if err != nil || fake.PowerCycles("node-000") != 1 {
			t.Errorf("%d starts, %v", fake.PowerCycles("node-000"), err)
		}
	})
}
