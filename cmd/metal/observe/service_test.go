package observe_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/metrics"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// counting counts the operations that have ended.
type counting struct {
	*metrics.Collector
	ended int
}

// Update counts.
func (c *counting) Update(v watch.View, changes []watch.Change) error {
	for _, change := range changes {
		if change.Ended != nil {
			c.ended++
		}
	}
	return c.Collector.Update(v, changes)
}

// A watch serves metrics for three days. Each 12 hours a machine is cleaned. Ironic cannot be reached at first, for an hour of the second
// day, and answers with errors for the next hour; connections break now and then. The watch goes on, counts each cleaning once, and
// remembers one day.
func TestService_livesForDays(t *testing.T) {
	t.Parallel()
	c := &counting{Collector: metrics.New(0)}
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, began, requests := ironictest.Fleet(3), time.Now(), 0
		fake.StepTime = 10 * time.Minute
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			requests++
			switch after := time.Since(began); {
			case r.Method != http.MethodGet:
			case after < 30*time.Minute, after > 25*time.Hour && after < 26*time.Hour, requests%50 == 0:
				return &fakeironic.Rejection{Drop: true}
			case after > 26*time.Hour && after < 27*time.Hour:
				return &fakeironic.Rejection{Status: http.StatusInternalServerError}
			}
			return nil
		}
		ctx, stop := context.WithTimeout(t.Context(), 72*time.Hour)
		defer stop()
		for i := range 6 {
			time.AfterFunc(time.Duration(12*i+3)*time.Hour, func() {
				for _, verb := range []string{"manage", "provide"} {
					ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/provision", map[string]any{"target": verb})
				}
			})
		}
		site := &watch.Site{Client: ironic.New(api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake},
			ironic.Polls{}), Limit: throttle.Limit{}}
		followed := selection.Selection{}.Follow()
		v, err := watch.Run(ctx, watch.NewModel("", 0), watch.Options{
			List:    func(ctx context.Context) (watch.Sample, error) { return site.List(ctx, followed) },
			MayPass: api.MayPass, Patient: true, Interval: 4 * time.Minute, Keep: 24 * time.Hour, Displays: []watch.Display{c},
		})
		if err != nil || v.Selected != 3 || v.Now.Sub(v.Began) > 25*time.Hour {
			t.Errorf("%d machines since %s, %v", v.Selected, v.Began, err)
		}
		for _, row := range v.Moved {
			if len(row.Spans) > 12 {
				t.Errorf("%s: it remembers %d spans", row.Name, len(row.Spans))
			}
		}
	})
	if got := scrape(t, c.Collector); c.ended != 6 || !strings.Contains(got, "\nmetal_up 1\n") ||
		strings.Contains(got, "\nmetal_list_errors_total 0\n") {
		t.Errorf("%d cleanings have ended; exported\n%s", c.ended, got)
	}
}

// scrape returns what a server answers about a collector.
func scrape(t *testing.T, c *metrics.Collector) string {
	t.Helper()
	server, err := metrics.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, c) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
