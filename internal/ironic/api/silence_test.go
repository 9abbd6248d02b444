package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// mute is a client of a fleet that does not answer some requests, and the number of requests sent.
func mute(hangs func(*http.Request) bool) (client *ironic.Client, sent func() int) {
	fake, count := fleet(2), 0
	return newClient(fake, func(cfg *api.Config) {
		cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
			count++
			if hangs(r) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return fake.RoundTrip(r)
		})
	}), func() int { return count }
}

// read reads a node, and returns how long that took.
func read(t *testing.T, client *ironic.Client, node string) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	_, err := client.Node(t.Context(), node)
	return time.Since(began), err
}

func TestSilence_requestsFailAtOnceUntilIronicAnswers(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		hangs := true
		client, sent := mute(func(*http.Request) bool { return hangs })
		if took, err := read(t, client, "node-000"); err == nil || took < 2*time.Minute {
			t.Fatalf("after %s: %v", took, err)
		}
		before := sent()
		took, err := read(t, client, "node-001")
		var silent *api.SilentError
		if !errors.As(err, &silent) || took != 0 || sent() != before ||
			!strings.Contains(err.Error(), "Ironic has answered no request for 2m") {
			t.Errorf("after %s and %d requests: %v", took, sent()-before, err)
		}
		if !api.MayPass(err) || !api.IsConnectionLoss(err) || api.IsUnanswered(err) {
			t.Errorf("%v: may pass %t, unanswered %t", err, api.MayPass(err), api.IsUnanswered(err))
		}
		<-time.After(10 * time.Second)
		if took, err := read(t, client, "node-001"); err == nil || took < time.Minute || took > 70*time.Second || sent() != before+1 {
			t.Errorf("the request that asks again: after %s and %d requests: %v", took, sent()-before, err)
		}
		<-time.After(10 * time.Second)
		hangs = false
		for _, node := range []string{"node-000", "node-001"} {
			if took, err := read(t, client, node); err != nil || took != 0 {
				t.Errorf("Ironic answers again: after %s: %v", took, err)
			}
		}
	})
}

// While one request asks whether Ironic answers again, no other is sent.
func TestSilence_oneRequestAsks(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		client, sent := mute(func(*http.Request) bool { return true })
		if _, err := read(t, client, "node-000"); err == nil {
			t.Fatal("Ironic has answered")
		}
		<-time.After(10 * time.Second)
		before, asked := sent(), make(chan struct{})
		go func() {
			defer close(asked)
			_, _ = client.Node(t.Context(), "node-000")
		}()
		<-time.After(30 * time.Second)
		ctx, began := t.Context(), time.Now()
		if _, err := client.Allocation(ctx, "web"); err == nil || time.Since(began) > time.Minute || sent() != before+1 {
			t.Errorf("after %s and %d requests: %v", time.Since(began), sent()-before, err)
		}
		<-asked
	})
}

// One slow kind of request does not make an Ironic that answers others count as one that hangs.
func TestSilence_isOverWithAnyAnswer(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		client, _ := mute(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/node-000") })
		slow := make(chan error, 1)
		go func() {
			_, err := client.Node(t.Context(), "node-000")
			slow <- err
		}()
		for range 20 {
			<-time.After(7 * time.Second)
			if _, err := read(t, client, "node-001"); err != nil {
				t.Fatal(err)
			}
		}
		var silent *api.SilentError
		if err := <-slow; err == nil || errors.As(err, &silent) {
			t.Errorf("the slow request: %v", err)
		}
		if took, err := read(t, client, "node-001"); err != nil || took != 0 {
			t.Errorf("after it: after %s: %v", took, err)
		}
	})
}

// With api_timeout, the first use outlasts an Ironic that hangs.
func TestSilence_apiTimeoutOutlastsIt(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, begun := fleet(1), time.Now()
		client := newClient(fake, func(cfg *api.Config) {
			cfg.APITimeout = 20 * time.Minute
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if time.Since(begun) < 10*time.Minute {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return fake.RoundTrip(r)
			})
		})
		if took, err := read(t, client, "node-000"); err != nil || took < 10*time.Minute || took > 12*time.Minute {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
