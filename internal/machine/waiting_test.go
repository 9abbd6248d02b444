package machine_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Whoever only reads sees which slots of each scope are used, and the machines of a run that wait, until the run ends.
func TestWaiting_isSeenByOthers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"chassis", "allocations"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := groups(5, "conductor_group", "manageable") // three of group a, two of group b
				if kind == "allocations" {
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if strings.HasPrefix(r.URL.Path, "/v1/chassis") {
							return ironictest.Fault(http.StatusInternalServerError, sitetest.SystemOnly)
						}
						return nil
					}
				}
				limit := sitetest.UpTo(1)
				limit.Scope = throttle.ScopeConductorGroup
				ctx, stop := context.WithCancel(t.Context())
				run, client := sitetest.Run(fake, limit), sitetest.Run(fake, limit).Ironic
				reader := slots.NewLimiter(client, limit, "")
				var wg sync.WaitGroup
				for _, host := range fake.Nodes() {
					wg.Go(func() { _, _ = run.Reach(ctx, host.UUID, states.GoalAvailable, time.Hour) }) // it is stopped
				}
				<-time.After(2 * time.Minute)
				if used := usedBy(t, client, reader); !maps.Equal(used, map[string]int{"a": 1, "b": 1}) {
					t.Errorf("the used slots are %v", used)
				}
				if waits := waitingFor2Minutes(t, client, reader, run.Run.ID); !maps.Equal(waits, map[string]int{"a": 2, "b": 1}) {
					t.Errorf("the waiting machines are %v", waits)
				}
				stop()
				wg.Wait()
				if waits := waitingFor2Minutes(t, client, reader, run.Run.ID); len(waits) > 0 {
					t.Errorf("the run was stopped, and the waiting machines are %v", waits)
				}
			})
		})
	}
}

// usedBy counts the slots that a site uses.
func usedBy(t *testing.T, client *ironic.Client, reader *slots.Limiter) map[string]int {
	t.Helper()
	all, err := client.ListNodes(t.Context(), ironic.NodeFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return reader.UsedBy(all)
}

// waitingFor2Minutes counts the machines of a run that wait, and fails the test unless they have waited for nearly two minutes. Ironic may
// have refused the list of chassis: what the allocations say is returned with the refusal.
func waitingFor2Minutes(t *testing.T, client *ironic.Client, reader *slots.Limiter, run string) map[string]int {
	t.Helper()
	words, err := reader.Waiting(t.Context())
	if err != nil && !api.IsForbidden(err) {
		t.Fatal(err)
	}
	machines := map[string]int{}
	for _, w := range words {
		machines[w.Scope] += w.Machines
		if w.Run != run {
			t.Errorf("the words are of run %s, and its notes are of run %s", w.Run, run)
		}
		if waited := client.ServerNow().Sub(w.Since); waited < 110*time.Second || waited > 121*time.Second {
			t.Errorf("the machines of %q have waited for %s", w.Scope, waited)
		}
	}
	return machines
}
