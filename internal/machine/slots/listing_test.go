package slots_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// An administrator sees what the runs of all users say of their machines that wait; a user of a project, what the runs of the project say,
// with the refusal of the rest.
func TestWaiting_ofAllRecordsThatTheUserMaySee(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused   []string // lists
		want      int
		forbidden bool
	}{
		"administrator":     {nil, 7, false},
		"user of a project": {[]string{"chassis"}, 3, true},
		"user of a system":  {[]string{"allocations"}, 4, true},
		"nobody":            {[]string{"chassis", "allocations"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				record := func(machines int) map[string]any {
					word := map[string]any{
						"run": ironic.NewUUID(), "machines": machines, "max": 1, "since": time.Now().UTC(),
						"renewed": time.Now().UTC(),
					}
					return map[string]any{
						"about": "terraform-provider-metal: the limit", "holders": map[string]any{"h": 1},
						"released": true, "waiting": []any{word},
					}
				}
				ironictest.AsOther(t, fake, http.MethodPost, "chassis", map[string]any{
					"description": "terraform-provider-metal: the limit",
					"extra":       record(4),
				})
				ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
					"resource_class": ironic.RecordClass,
					"extra":          record(3),
				})
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					for _, list := range tt.refused {
						if strings.HasSuffix(r.URL.Path, "/"+list) {
							return ironictest.Fault(http.StatusForbidden, "Access was denied to the following resource: "+list)
						}
					}
					return nil
				}
				client := ironic.New(api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake}, ironic.Polls{})
				limiter := slots.NewLimiter(client, throttle.Limit{}, "")
				words, err := limiter.Waiting(t.Context())
				got := 0
				for _, w := range words {
					got += w.Machines
				}
				if got != tt.want || api.IsForbidden(err) != tt.forbidden || !tt.forbidden && err != nil {
					t.Errorf("%d machines wait, %v; want %d", got, err, tt.want)
				}
				fake.ResetRequests()
				if again, err := limiter.Waiting(t.Context()); len(again) != len(words) || api.IsForbidden(err) != tt.forbidden {
					t.Errorf("again: %v, %v", again, err)
				}
				if sent := len(fake.Requests()); sent != 2-len(tt.refused) {
					t.Errorf("again, %d requests: Ironic logs each that it refuses", sent)
				}
				fake.Reject = nil
				time.Sleep(time.Hour)
				if sees, err := limiter.Waiting(t.Context()); err != nil || len(sees) > 0 {
					t.Errorf("an hour later, words that nobody has renewed: %v, %v", sees, err)
				}
				if sent := len(fake.Requests()); sent != 4-len(tt.refused) {
					t.Errorf("%d requests: the user has got the rights meanwhile", sent)
				}
			})
		})
	}
}
