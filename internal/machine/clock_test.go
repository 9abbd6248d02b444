package machine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// ahead is an Ironic whose clock is ahead of ours: the time of its answers, and what it writes into chassis.
func ahead(t *testing.T, fake *fakeironic.Server, by func() time.Duration) ironictest.Transport {
	t.Helper()
	return func(r *http.Request) (*http.Response, error) {
		answer, err := fake.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer.Header.Set("Date", time.Now().Add(by()).UTC().Format(http.TimeFormat))
		if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/v1/chassis/") || answer.StatusCode != http.StatusOK {
			return answer, nil
		}
		var record map[string]any
		if err := json.NewDecoder(answer.Body).Decode(&record); err != nil {
			t.Error(err)
		}
		for _, key := range []string{"created_at", "updated_at"} {
			at, err := time.Parse(time.RFC3339, fmt.Sprint(record[key]))
			if err == nil {
				record[key] = at.Add(by()).Format(time.RFC3339)
			}
		}
		text, err := json.Marshal(record)
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, err
	}
}

// lockedBy takes the lock for another run, which releases it after a while; never if that is zero.
func lockedBy(t *testing.T, fake *fakeironic.Server, holder string, backAfter time.Duration) {
	t.Helper()
	path := "chassis/" + admissionLock
	ironictest.AsOther(t, fake, http.MethodPost, "chassis",
		map[string]any{"uuid": admissionLock, "extra": map[string]any{"holders": map[string]any{holder: 0}}})
	if backAfter > 0 {
		time.AfterFunc(backAfter, func() { ironictest.AsOther(t, fake, http.MethodDelete, path, nil) })
	}
}

// admissionLock is the UUID of the lock record, on which all versions of the provider have to agree.
const admissionLock = "42e2bf37-4c6a-5603-8cc8-9b085c33ea2d"

// admitted makes a host available, and returns how long it had to wait for its turn.
func admitted(t *testing.T, fake *fakeironic.Server, client *sitetest.Client, id string) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := client.Reach(t.Context(), id, states.GoalAvailable, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut && r.Path == ironictest.ProvisionPath(id) && r.Status == http.StatusAccepted {
			return r.Time.Sub(start)
		}
	}
	t.Fatal("nothing was asked of the host")
	return 0
}

func TestClock_lockExpiresByIronicsClock(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{
		-10 * time.Minute, -3 * time.Second, -time.Second, 0, time.Second, 3 * time.Second,
		10 * time.Minute,
	} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(1, time.Minute)
				lockedBy(t, fake, "died", 0)
				waited := admitted(t, fake, sitetest.NewClient(fake, func(cfg *machine.Config) {
					cfg.Limit = sitetest.UpTo(1)
					cfg.Transport = ahead(t, fake, func() time.Duration { return by })
				}), fake.Nodes()[0].UUID)
				// times of whole seconds, and the pauses between two tries
				if off := waited - time.Minute; off < -2*time.Second || off > 4*time.Second {
					t.Errorf("the lock of a dead run was taken over after %s, want the lease of a minute", waited)
				}
			})
		})
	}
}

func TestClock_correctedClock(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Minute)
		wrong := 10 * time.Minute
		client := sitetest.NewClient(fake, func(cfg *machine.Config) {
			cfg.Limit = sitetest.UpTo(1)
			cfg.Transport = ahead(t, fake, func() time.Duration { return wrong })
		})
		if _, err := client.Ironic.Node(t.Context(), fake.Nodes()[0].UUID); err != nil {
			t.Fatal(err)
		}
		wrong = 0
		lockedBy(t, fake, "works", 30*time.Second)
		if waited := admitted(t, fake, client, fake.Nodes()[0].UUID); waited < 30*time.Second {
			t.Errorf("the lock of a run at work was taken after %s", waited)
		}
	})
}

func TestClock_ignoresKeystone(t *testing.T) {
	environment := map[string]string{
		"OS_AUTH_URL": "http://keystone.test/v3", "OS_USERNAME": "operator", "OS_PASSWORD": "secret", "OS_PROJECT_NAME": "metal",
		"OS_DOMAIN_NAME": "Default", "OS_REGION_NAME": "",
	}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(1, time.Minute)
		lockedBy(t, fake, "works", 30*time.Second)
		client := sitetest.NewClient(nil, func(cfg *machine.Config) {
			cfg.Limit, cfg.Auth = sitetest.UpTo(1), api.AuthKeystone
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Hostname() != "keystone.test" {
					return fake.RoundTrip(r) // which says no time
				}
				answer := httptest.NewRecorder()
				answer.Header().Set("Date", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
				answer.Header().Set("X-Subject-Token", "token")
				answer.WriteHeader(http.StatusCreated)
				_, err := fmt.Fprintf(answer, `{"token": {"expires_at": %q, "catalog": []}}`,
					time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano))
				return answer.Result(), err
			})
		})
		if waited := admitted(t, fake, client, ironictest.NodeOf(t, fake, "node-000").UUID); waited < 30*time.Second {
			t.Errorf("the lock of a run at work was taken after %s", waited)
		}
	})
}
