package api_test

import (
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

func TestClient_refusedFirstConnectionIsReportedWithinSeconds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause error
		tries int // of the first use; each later one tries once
	}{
		"nothing listens": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 3},
		"no such host":    {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "ironic.test", IsNotFound: true}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				var mu sync.Mutex
				tries := 0
				client := newClient(nil, func(cfg *api.Config) {
					cfg.Transport = transport(func(*http.Request) (*http.Response, error) {
						mu.Lock()
						defer mu.Unlock()
						tries++
						return nil, tc.cause
					})
				})
				start := time.Now()
				const users = 200 // such as the data sources and resources of a configuration
				var wg sync.WaitGroup
				for range users {
					wg.Go(func() {
						if _, err := client.Node(t.Context(), "node-000"); err == nil {
							t.Error("there is an answer")
						}
					})
				}
				wg.Wait()
				if took := time.Since(start); took > 3*time.Second || tries != tc.tries+users-1 {
					t.Errorf("%d requests in %s, want %d in at most 3 s", tries, took, tc.tries+users-1)
				}
			})
		})
	}
}

func TestClient_outageAfterTheFirstAnswerIsRiddenOut(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, stopped := fleet(1), false
		client := newClient(fake, func(cfg *api.Config) {
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if stopped {
					return nil, syscall.ECONNREFUSED
				}
				return fake.RoundTrip(r)
			})
		})
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Fatal(err)
		}
		stopped = true
		time.AfterFunc(10*time.Second, func() { stopped = false })
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Errorf("after an outage of 10 s: %v", err)
		}
	})
}
