package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// After Ctrl-C, a request that changes something waits 5 seconds for its answer, and one that reads does not wait, if the server hangs. The
// guide "CI" names the time.
func TestRoundTrip_hangingServerHoldsAnInterruptedRunForFiveSeconds(t *testing.T) {
	t.Parallel()
	for method, waits := range map[string]time.Duration{http.MethodGet: 0, http.MethodPost: 5 * time.Second, http.MethodPatch: 5 *
		time.Second, http.MethodPut: 5 * time.Second, http.MethodDelete: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Second, stop)
			r, err := http.NewRequestWithContext(ctx, method, "http://ironic.test/v1/nodes", strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			resp, err := rest.RoundTrip(transport(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}), r)
			if err == nil {
				_ = resp.Body.Close()
			}
			if took := time.Since(began) - 20*time.Second; !errors.Is(err, context.Canceled) || took != waits {
				t.Errorf("%s: %v, %s after the interruption, want %s", method, err, took, waits)
			}
		})
	}
}
