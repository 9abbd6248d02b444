package machine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// outage replaces the answers to requests from a moment on.
type outage struct {
	http.RoundTripper
	with   func(r *http.Request) (*http.Response, error)
	starts func(r *http.Request) (before, after bool) // whether it starts with a request, or once that is answered

	mu    sync.Mutex
	began bool
	lasts time.Duration // zero: for ever
	from  time.Time
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	before, after := o.starts(r)
	if o.isOut(before) {
		return o.with(r)
	}
	answer, err := o.RoundTripper.RoundTrip(r)
	o.isOut(after)
	return answer, err
}

// isOut reports whether the outage lasts; it starts now if starts says so.
func (o *outage) isOut(starts bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if starts && !o.began {
		o.began, o.from = true, time.Now()
	}
	return o.began && (o.lasts == 0 || time.Since(o.from) < o.lasts)
}

func answers(status int, text string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(ironictest.Fault(status, text).Body)), Request: r,
		}, nil
	}
}

func breaks(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// outages are what may keep the provider from watching a machine.
var outages = map[string]func(*http.Request) (*http.Response, error){
	"401":         answers(http.StatusUnauthorized, "The request you have made requires authentication."),
	"403":         answers(http.StatusForbidden, "Access was denied to the following resource: baremetal:node:get"),
	"404":         answers(http.StatusNotFound, "Node node-000 could not be found."),
	"unreachable": breaks(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
	"TLS":         breaks(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}),
}

// Whatever the provider has begun, it takes no outage for a failure of the operation, and sends nothing twice. Before it has sent
// anything, an outage is an ordinary error.
func TestUnwatched_isNoFailure(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		for kind, with := range outages {
			for _, moment := range []string{"before", "after"} {
				t.Run(name+": "+kind+" "+moment, func(t *testing.T) {
					t.Parallel()
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake, done := movable(t, move.state, move.power)
						gone := &outage{RoundTripper: fake, with: with, starts: func(r *http.Request) (before, after bool) {
							sends := r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, move.path)
							return sends && moment == "before", sends && moment == "after"
						}}
						client := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = gone })
						<-time.After(time.Minute)
						_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
							return m.Unwatched(t.Context(), move.do(t.Context(), m))
						})
						fake.Node("node-000")
						times := len(slices.DeleteFunc(slices.Clone(*done), func(what string) bool { return what != move.as }))
						wantOutage(t, moment, kind, err)
						if moment == "before" && times > 0 || times > 1 {
							t.Errorf("executed %d times: %v", times, *done)
						}
					})
				})
			}
		}
	}
}

// wantOutage fails the test unless an error says what an outage means before or after an operation has begun.
func wantOutage(t *testing.T, moment, kind string, err error) {
	t.Helper()
	switch {
	case failure.Is(err, failure.KindFailed), failure.Is(err, failure.KindTimeout), failure.IsUnwatched(err) && api.IsNotFound(err):
		t.Errorf("the error is %v", err)
	case moment == "after" && err != nil && !failure.IsUnwatched(err):
		t.Errorf("the error is %v, want that the machine is not watched", err)
	case moment == "before" && err == nil:
		t.Error("no error")
	}
	if !failure.IsUnwatched(err) {
		return
	}
	if summary, detail := failure.Explain("do it", err); !strings.HasPrefix(summary, "Unfinished: ") ||
		!strings.Contains(detail, "run the same command again") {
		t.Errorf("%s outage is explained by %q: %q", kind, summary, detail)
	}
}

// A short outage changes nothing, except that Ironic's 404 counts at once.
func TestUnwatched_shortOutage(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		if move.path != "/states/provision" && move.path != "/states/power" {
			continue
		}
		for _, kind := range []string{"401", "403", "unreachable"} {
			t.Run(name+": "+kind, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, _ := movable(t, move.state, move.power)
					gone := &outage{
						RoundTripper: fake, with: outages[kind], lasts: 30 * time.Second,
						starts: func(r *http.Request) (before, after bool) {
							return false, r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, move.path)
						},
					}
					client := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = gone })
					<-time.After(time.Minute)
					if _, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
						return move.do(t.Context(), m)
					}); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// An outage is noticed soon if it is a refusal, and at the time-out if it may pass.
func TestUnwatched_isNoticed(t *testing.T) {
	t.Parallel()
	for kind, limit := range map[string]time.Duration{
		"401": 2 * time.Minute, "403": 2 * time.Minute, "404": time.Minute,
		"TLS": time.Minute, "unreachable": 3 * time.Hour,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, _ := movable(t, "available", "power off")
				fake.StepTime = 10 * time.Hour
				gone := &outage{RoundTripper: fake, with: outages[kind], starts: func(r *http.Request) (before, after bool) {
					return false, r.Method == http.MethodPut
				}}
				client := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = gone })
				_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
					return m.Reach(t.Context(), states.GoalDeployed, 2*time.Hour)
				})
				if took := time.Since(gone.from); !failure.IsUnwatched(err) || took > limit {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// While an allocation waits for its node, an outage is no failure of it.
func TestUnwatched_allocation(t *testing.T) {
	t.Parallel()
	for kind, with := range outages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = time.Hour
				gone := &outage{RoundTripper: fake, with: with, starts: func(r *http.Request) (before, after bool) {
					return false, r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/allocations")
				}}
				client := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = gone })
				request := allocate.Request{AllocationSpec: ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}}
				made, _, err := allocate.Allocate(t.Context(), client.Site, &request)
				if err != nil {
					t.Fatal(err)
				}
				now, exists, err := allocate.Reserve(t.Context(), client.Site, &request, made, 10*time.Minute)
				if kind == "404" { // Ironic deletes allocations, too
					if !api.IsNotFound(err) {
						t.Errorf("the error is %v", err)
					}
					return
				}
				if !exists || now == nil || !failure.IsUnwatched(err) {
					t.Errorf("%+v, %t, %v", now, exists, err)
				}
			})
		})
	}
}

// What runs on a machine is not in doubt because a later request fails for lack of rights.
func TestUnwatched_decides(t *testing.T) {
	t.Parallel()
	denied := &api.StatusError{Status: http.StatusForbidden, Message: "denied"}
	refused := &api.StatusError{Status: http.StatusBadRequest, Message: "no"}
	scope := &api.StatusError{
		Status:  http.StatusInternalServerError,
		Message: `"baremetal:node:disable_cleaning": role:admin and system_scope:all requires a scope of ['system'], request was made with project scope.`,
	}
	for _, tc := range []struct {
		state string
		err   error
		want  bool
	}{
		{"active", denied, true},
		{"active", scope, true},
		{"active", &api.ConnectError{Stage: api.AtKeystone, Err: denied}, true},
		{"active", io.ErrUnexpectedEOF, true},
		{"active", refused, false},
		{"active", context.Canceled, false},
		{"active", nil, false},
		{"wait call-back", denied, true},
		{"verifying", denied, true},
		{"cleaning", denied, true},
		{"rescue", denied, true},
		{"deploy failed", denied, false},
		{"enroll", denied, false},
		{"manageable", denied, false},
		{"available", denied, false},
	} {
		client := sitetest.NewClient(&fakeironic.Server{})
		m := client.Record(&ironic.Node{UUID: ironic.NewUUID(), ProvisionState: tc.state})
		err := m.Unwatched(t.Context(), tc.err)
		if failure.IsUnwatched(err) != tc.want || !tc.want && !errors.Is(err, tc.err) {
			t.Errorf("%s: %v becomes %v", tc.state, tc.err, err)
		}
	}
}

// Only what cannot be read is said to be out of sight.
func TestUnwatched_text(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"baremetal:node:get":                  "node n1 can no longer be watched: ",
		"baremetal:node:get:filter_threshold": "node n1 can no longer be watched: ",
		"baremetal:node:set_boot_device":      "Ironic refuses what is still to do on node n1: ",
	} {
		err := &api.StatusError{Status: http.StatusForbidden, Message: "Access was denied to the following resource: " + rule}
		if got := failure.NewUnwatched("node n1", "active", err).Error(); !strings.HasPrefix(got, want+"Access was denied") {
			t.Errorf("%s: %q", rule, got)
		}
	}
}
