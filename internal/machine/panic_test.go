package machine_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestPolling_panic(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := cleaningFleet(4)
		var lists atomic.Int32
		client := sitetest.NewClient(nil, sitetest.Slots(1), func(cfg *machine.Config) {
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.RawQuery, "fields=") && r.URL.Path == "/v1/nodes" && lists.Add(1) == 1 {
					panic("broken answer") // to the round that looks for room
				}
				return fake.RoundTrip(r)
			})
		})
		reachAll(t, fake, client, states.GoalAvailable, 2*time.Hour)
		if peak := fake.MaxBusy(); peak != 1 {
			t.Errorf("%d nodes had an operation in progress at once, want 1", peak)
		}
	})
}
