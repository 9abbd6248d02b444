package machine_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// isCensus reports whether a request counts the hosts with an operation in progress.
func isCensus(r *http.Request) bool {
	return r.URL.Path == "/v1/nodes" && strings.Contains(r.URL.RawQuery, "fields=")
}

// isLock reports whether a request asks for the lock record.
func isLock(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/v1/chassis" }

func TestQueue_permanentErrorEndsWait(t *testing.T) {
	t.Parallel()
	page := &fakeironic.Rejection{Status: http.StatusNotFound, Body: "<html><head><title>404 Not Found</title></head></html>"}
	for name, tc := range map[string]struct {
		after  time.Duration // while all slots are taken
		refuse func(*http.Request) bool
		with   *fakeironic.Rejection
		want   []string
	}{
		"a proxy that knows no chassis": {0, isLock, page, []string{
			"lock of the limit", "a web page, not the API: 404 Not Found",
			`coordination = "process"`,
		}},
		"no right to list": {
			0, isCensus, ironictest.Fault(http.StatusForbidden, "Access was denied"),
			[]string{"count the machines with an operation in progress", "Access was denied", "ask for a role"},
		},
		"a password that was changed": {
			30 * time.Minute, func(*http.Request) bool {
				return true
			}, ironictest.Fault(http.StatusUnauthorized, "Incorrect username or password"),
			[]string{"count the machines with an operation in progress", "Incorrect username or password", "METAL_PASSWORD"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(6, 100*time.Hour)
				hosts := fake.Nodes()
				if tc.after > 0 {
					fake.Set(hosts[5].UUID, "provision_state", "deploying") // by others
				}
				start := time.Now()
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if time.Since(start) >= tc.after && tc.refuse(r) {
						return tc.with
					}
					return nil
				}
				client := sitetest.Run(fake, sitetest.UpTo(1))
				ctx, enough := context.WithTimeout(t.Context(), 10*time.Hour)
				defer enough()
				var wg sync.WaitGroup
				for _, host := range hosts[:5] {
					wg.Go(func() {
						_, err := client.Reach(ctx, host.UUID, states.GoalAvailable, 30*time.Minute)
						_, said := failure.Explain("prepare the host", err)
						for _, want := range append(tc.want, "Wait for a slot of provisioning_limit: ") {
							if !strings.Contains(said, want) {
								t.Errorf("%q does not say %q", said, want)
							}
						}
						if api.IsNotFound(err) {
							t.Error("the host counts as gone")
						}
					})
				}
				wg.Wait()
				if late := time.Since(start) - tc.after; late > time.Minute {
					t.Errorf("waited for %s more", late)
				}
			})
		})
	}
}

func TestQueue_passingError(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]*fakeironic.Rejection{
		"overload": {Status: http.StatusServiceUnavailable}, "no answers": {Drop: true}, "a proxy alone": {
			Status: http.StatusBadGateway,
			Body:   "<html>",
		},
		"a locked database": ironictest.Fault(http.StatusInternalServerError, "database is locked"),
		"no words":          ironictest.Fault(http.StatusInternalServerError, "QueuePool limit reached"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(3, 10*time.Minute)
				start := time.Now()
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if time.Since(start) < time.Hour && (isLock(r) || isCensus(r)) {
						return trouble
					}
					return nil
				}
				if took := cleanAll(t, fake, sitetest.Run(fake, sitetest.UpTo(3))); took < 70*time.Minute || took > 75*time.Minute {
					t.Errorf("took %s, want an hour of trouble and 10 minutes of cleaning", took)
				}
			})
		})
	}
}

// TestQueue_shardNeedsItsAPI is about API 1.81, which has no shards: nothing could be counted by them.
func TestQueue_shardNeedsItsAPI(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*machine.Config, *fakeironic.Server){
		"an old Ironic":  func(_ *machine.Config, fake *fakeironic.Server) { fake.MaxMicroversion = "1.81" },
		"an upper bound": func(cfg *machine.Config, _ *fakeironic.Server) { cfg.Microversion = 81 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(1, 10*time.Minute)
				host := fake.Nodes()[0]
				fake.Set(host.UUID, "provision_state", "enroll")
				client := sitetest.NewClient(fake, func(cfg *machine.Config) {
					cfg.Limit = sitetest.UpTo(1)
					cfg.Limit.Scope = throttle.ScopeShard
					configure(cfg, fake)
				})
				if _, err := client.Reach(t.Context(), host.UUID, states.GoalManageable, time.Hour); err != nil {
					t.Errorf("what needs no slot: %v", err)
				}
				_, err := client.Reach(t.Context(), host.UUID, states.GoalAvailable, time.Hour)
				if !fault.Is(err, api.KindVersion) || !strings.Contains(err.Error(),
					"provisioning_limit.scope=shard needs API 1.82 of Ironic, but 1.81 is in use") {
					t.Errorf("Reach = %v", err)
				}
			})
		})
	}
}

func TestQueue_stuckQueueUndeploysNothing(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, instance := sitetest.Booted(t, "1.82", sitetest.OverNetwork)
		fake.Reject = ironictest.Once(http.MethodPost, "/v1/chassis", ironictest.Fault(http.StatusBadRequest, "out of order"))
		client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = sitetest.UpTo(1) })
		if _, _, err := client.BootISO(t.Context(), id, sitetest.Live("2"), sitetest.Another(instance)); err == nil ||
			!strings.Contains(err.Error(), "out of order") {
			t.Errorf("BootISO = %v", err)
		}
		if got := ironictest.Verbs(t, fake, id); len(got) > 0 {
			t.Errorf("verbs = %v", got)
		}
	})
}
