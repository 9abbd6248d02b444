package allocate_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// withoutChassis is the way to a fake that refuses chassis to users of projects. Each answer to such a request takes a while.
func withoutChassis(fake *fakeironic.Server, takes time.Duration) func(*machine.Config) {
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if strings.HasPrefix(r.URL.Path, "/v1/chassis") {
			return ironictest.Fault(http.StatusInternalServerError, sitetest.SystemOnly)
		}
		return nil
	}
	return func(cfg *machine.Config) {
		cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/chassis" {
				time.Sleep(takes)
			}
			return fake.RoundTrip(r)
		})
	}
}

// Two locks of a run learn at the same time that the user may not create a chassis. Both are allocations then.
func TestRecords_locksOfAProjectThatBeginTogether(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(8)
		way := withoutChassis(fake, time.Second)
		client := sitetest.NewClient(fake, way)
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			g := named(name, 2)
			g.ResourceClass = "baremetal"
			if name == "b" {
				for _, node := range fake.Nodes()[4:] {
					fake.Set(node.UUID, "resource_class", "other")
				}
				g.ResourceClass = "other"
			}
			wg.Go(func() {
				if _, err := allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if chassis, allocations := ironictest.Count(fake, http.MethodPost, "/v1/chassis"),
			ironictest.Count(fake, http.MethodPost, "/v1/allocations"); chassis != 2 || allocations != 2+4 {
			t.Errorf("%d chassis were asked for, want 2; %d allocations were created, want one for each of 2 locks and 4 nodes",
				chassis, allocations)
		}
	})
}

// The error of a lock that is not free names the record that exists.
func TestRecords_namesTheRecordOfAProject(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(30)
		way := withoutChassis(fake, 0)
		done := make(chan error)
		go func() {
			_, err := allocate.ReserveGroup(t.Context(), sitetest.NewClient(fake, way, func(cfg *machine.Config) {
				next := cfg.Transport
				cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
						<-time.After(50 * time.Second)
					}
					return next.RoundTrip(r)
				})
			}).Site, named("a", 20), time.Hour)
			done <- err
		}()
		<-time.After(time.Minute)
		_, err := allocate.ReserveGroup(t.Context(), sitetest.NewClient(fake, way).Site, named("b", 2), time.Minute)
		locked := fault.AboutOf[*throttle.Locked](err, throttle.KindLocked)
		if locked == nil || !strings.HasPrefix(locked.Where, "allocation ") {
			t.Errorf("%v, want the allocation that is the record: %+v", err, locked)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
