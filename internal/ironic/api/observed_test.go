package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// warnings keeps what a client logs at WARN, with the times since the start.
type warnings struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, time.Since(w.start).Round(time.Second).String()+" "+r.Message)
	return nil
}

// told returns the lines so far.
func (w *warnings) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var text bytes.Buffer
	for _, line := range w.lines {
		text.WriteString(line + "\n")
	}
	return text.String()
}

func TestSilence_hangingIronicIsToldAndBounded(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, hangs := fleet(1), false
		log := &warnings{start: time.Now()}
		client := newClient(fake, func(cfg *api.Config) {
			cfg.Logger = slog.New(log)
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if hangs {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return fake.RoundTrip(r)
			})
		})
		if _, err := client.Node(t.Context(), "node-000"); err != nil || log.told() != "" {
			t.Fatalf("%v, %s", err, log.told())
		}
		hangs, log.start = true, time.Now()
		_, err := client.Node(t.Context(), "node-000")
		if took := time.Since(log.start); !api.IsConnectionLoss(err) || took < 2*time.Minute || took > 2*time.Minute+15*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if told := log.told(); !strings.HasPrefix(told, "30s GET http://ironic.test/v1/nodes/node-000: no answer for 30s") ||
			strings.Count(told, "\n") < 4 {
			t.Errorf("the log:\n%s", told)
		}
	})
}

// A waiting resource polls an Ironic that refuses connections, and the log says so every half minute.
func TestSilence_ofPollsIsTold(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		log := &warnings{start: time.Now()}
		client := newClient(fake, func(cfg *api.Config) { cfg.Logger, cfg.PollInterval = slog.New(log), 5*time.Second })
		id := fake.Nodes()[0].UUID
		if _, err := client.Node(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(5 * time.Minute)
		fake.Reject = func(*http.Request) *fakeironic.Rejection {
			if time.Now().Before(until) {
				return &fakeironic.Rejection{Drop: true}
			}
			return nil
		}
		if _, _, err := client.PollNode(t.Context(), id, time.Hour); err != nil {
			t.Fatal(err)
		}
		if told := log.told(); strings.Count(told, "no answer of Ironic for") < 7 || strings.Count(told, "\n") > 10 {
			t.Errorf("the log:\n%s", told)
		}
		before := log.told()
		if _, _, err := client.PollNode(t.Context(), id, time.Hour); err != nil || log.told() != before {
			t.Errorf("%v; the log goes on:\n%s", err, log.told())
		}
	})
}

// A request that a server between here and Ironic drops is told after three tries, while Ironic answers others. The error says how often it
// was sent.
func TestRetry_droppedRequestIsTold(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, sent := fleet(1), 0
		log := &warnings{start: time.Now()}
		client := newClient(fake, func(cfg *api.Config) {
			cfg.Logger = slog.New(log)
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					sent++
					return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
				}
				return fake.RoundTrip(r)
			})
		})
		_, err := client.PatchNode(t.Context(), "node-000", ironic.Patch{}.With("/description", "x"))
		if err == nil || !strings.Contains(err.Error(), "connection reset by peer (the request was sent 6 times)") || sent != 6 {
			t.Errorf("after %d requests: %v", sent, err)
		}
		if told := log.told(); strings.Count(told, "\n") != 1 || !strings.Contains(told, "PATCH http://ironic.test/v1/nodes/node-000 was "+
			"sent 3 times without an answer; what came back last: read: connection reset by peer") {
			t.Errorf("the log says %q", told)
		}
	})
}
