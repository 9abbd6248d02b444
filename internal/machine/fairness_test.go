package machine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A free slot is used at once, by whichever run has a machine that waits: the work takes hardly longer than it must.
func TestFair_noSlotIsIdle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		runs, hosts int
		lasts       time.Duration
	}{
		{1, 20, 10 * time.Second},
		{6, 20, 10 * time.Second},
		{1, 20, 11300 * time.Millisecond},
		{6, 20, 11300 * time.Millisecond},
		{1, 10, 100 * time.Second},
		{6, 10, 100 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d runs, %s", tc.runs, tc.lasts), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(tc.hosts, tc.lasts)
				var runs []*sitetest.Client
				for range tc.runs {
					runs = append(runs, sitetest.Run(fake, sitetest.UpTo(2)))
				}
				took := cleanAll(t, fake, runs...)
				bound := time.Duration(tc.hosts/2) * tc.lasts
				most := bound + time.Duration(tc.hosts/2)*2*time.Second
				if tc.lasts < time.Minute {
					most = bound * 115 / 100
				}
				t.Logf("%s for %s of work, %d requests", took, bound, len(fake.Requests()))
				if took > most {
					t.Errorf("%s for %s of work, want %s at most", took, bound, most)
				}
				if peak := fake.MaxBusy(atWork...); peak != 2 {
					t.Errorf("%d hosts were at work at once, want 2", peak)
				}
				if left := lockRecords(fake); left != 0 {
					t.Errorf("%d lock records are left", left)
				}
			})
		})
	}
}

// admissions are the names of the hosts in the order in which a verb was sent to them.
func admissions(fake *fakeironic.Server) []string {
	names := map[string]string{}
	for _, node := range fake.Nodes() {
		names[ironictest.ProvisionPath(node.UUID)] = node.Name
	}
	var order []string
	for _, r := range fake.Requests() {
		if name := names[r.Path]; r.Method == http.MethodPut && name != "" {
			order = append(order, name)
		}
	}
	return order
}

// One run has the slots and adds machines again and again. The six machines of another run, which began to wait 11 s before these, go
// first.
func TestFair_olderMachinesOfAnotherRunGoFirst(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"chassis", "allocations"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(24, 41*time.Second)
				if kind == "allocations" {
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if strings.HasPrefix(r.URL.Path, "/v1/chassis") {
							return ironictest.Fault(http.StatusInternalServerError, sitetest.SystemOnly)
						}
						return nil
					}
				}
				a, b := sitetest.Run(fake, sitetest.UpTo(3)), sitetest.Run(fake, sitetest.UpTo(3))
				var wg sync.WaitGroup
				clean := func(run *sitetest.Client, hosts []fakeironic.Node, first, each time.Duration) {
					for i, host := range hosts {
						wg.Go(func() {
							<-time.After(first + time.Duration(i)*each)
							if _, err := run.Reach(t.Context(), host.UUID, states.GoalAvailable, time.Hour); err != nil {
								t.Error(err)
							}
						})
					}
				}
				hosts := fake.Nodes()
				clean(a, hosts[:3], 0, 0)
				clean(b, hosts[3:9], time.Second, 0)
				clean(a, hosts[9:], 12*time.Second, time.Second)
				wg.Wait()
				order := admissions(fake)
				for _, host := range hosts[3:9] {
					if i := slices.Index(order, host.Name); i > 10 { // two may go before it when three slots become free at once
						t.Errorf("the order is %v, want %s after the first three", order, host.Name)
					}
				}
				<-time.After(time.Minute)
				if left, _ := ironictest.AsOther(t, fake, http.MethodGet, kind, nil)[kind].([]any); len(left) > 0 {
					t.Errorf("the records %v are left", left)
				}
			})
		})
	}
}
