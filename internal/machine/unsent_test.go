package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// drops lets the fake lose all requests to a path, as a proxy does that answers other requests. sent counts them.
func drops(fake *fakeironic.Server, path string) (sent *int) {
	sent = new(int)
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, path) {
			return nil
		}
		*sent++
		return &fakeironic.Rejection{Drop: true}
	}
	return sent
}

// A request that Ironic never receives is told from the third try on, and not sent again after the sixth. The error names machine, request,
// endpoint, and what came back.
func TestUnsent_requestThatNeverArrives(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, done := movable(t, move.state, move.power)
				log := &sitetest.Logbook{}
				client := sitetest.NewClient(fake, log.Record)
				<-time.After(time.Minute)
				sent, begun := drops(fake, move.path), time.Now()
				_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error { return move.do(t.Context(), m) })
				if took := time.Since(begun); !failure.Is(err, machine.KindUnsent) || *sent != 6 || took > 15*time.Minute {
					t.Fatalf("%d requests in %s: %v", *sent, took, err)
				}
				if told := log.Lines("level=WARN", "node-000", "sent 3 times", "never reached Ironic at http"); len(told) != 1 {
					t.Errorf("the log says %q", log.Lines("level=WARN"))
				}
				_, detail := failure.Explain("move node node-000", err)
				for _, says := range []string{
					"node-000", "sent 6 times", "never reached Ironic at http", "connection reset by peer", "has changed nothing", "apply again",
				} {
					if !strings.Contains(detail, says) {
						t.Errorf("the error does not say %q: %s", says, detail)
					}
				}
				if len(*done) > 0 {
					t.Errorf("executed: %v", *done)
				}
			})
		})
	}
}

// A time-out that comes first says so, too.
func TestUnsent_timeOutNamesTheRequest(t *testing.T) {
	t.Parallel()
	for limit, tells := range map[time.Duration]bool{2 * time.Minute: false, 5 * time.Minute: true} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, _ := movable(t, "rescue", "power on")
			client := sitetest.NewClient(fake)
			<-time.After(time.Minute)
			drops(fake, "/states/provision")
			_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
				return deploy.LeaveRescue(t.Context(), m, "", limit)
			})
			if err == nil || strings.Contains(err.Error(), "never reached Ironic") != tells {
				t.Errorf("after %s: %v", limit, err)
			}
		})
	}
}

// What reaches Ironic in between begins the count anew.
func TestUnsent_countsInARow(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, done := movable(t, "active", "power on")
		client := sitetest.NewClient(fake)
		<-time.After(time.Minute)
		sent := 0
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/states/provision") {
				return nil
			}
			if sent++; sent%5 != 0 {
				return &fakeironic.Rejection{Drop: true}
			}
			return nil
		}
		if _, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
			if err := deploy.EnterRescue(t.Context(), m, "", "secret", 2*time.Hour); err != nil {
				return err
			}
			return deploy.LeaveRescue(t.Context(), m, "", 2*time.Hour)
		}); err != nil || len(*done) != 2 {
			t.Errorf("after %d requests: %v; executed: %v", sent, err, *done)
		}
	})
}
