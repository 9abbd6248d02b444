package provision_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// logbook keeps what a site logs at INFO and above, without times.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines returns the lines that contain all of the given texts.
func (l *logbook) lines(texts ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		wanted := true
		for _, text := range texts {
			wanted = wanted && strings.Contains(line, text)
		}
		if wanted {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func (l *logbook) record(cfg *provision.Config) {
	cfg.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLog_eachChangeOfStateIsOneLine(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Minute}
		var log logbook
		client := newClient(fake, log.record)
		id := enrolled(t, client, "rack1-01")
		if _, err := client.Reach(t.Context(), id, provision.GoalAvailable, time.Hour); err != nil {
			t.Fatal(err)
		}
		start := fmt.Sprintf(`level=INFO msg="machine rack1-01 (%s) changed state: `, id)
		var got []string
		for _, line := range log.lines("changed state") {
			if !strings.HasPrefix(line, start) || !strings.Contains(line, "node=rack1-01 uuid="+id) {
				t.Errorf("the line lacks level, node or uuid: %s", line)
			}
			got = append(got, regexp.MustCompile(`[a-z ]+ -> [a-z ]*[a-z]`).FindString(line))
		}
		if len(got) < 3 || !strings.HasPrefix(got[0], " enroll -> ") || !strings.Contains(got[len(got)-1], "-> available") {
			t.Errorf("got %q", got)
		}
		for i := 1; i < len(got); i++ {
			if _, to, _ := strings.Cut(got[i-1], " -> "); !strings.HasPrefix(got[i], " "+strings.TrimSuffix(to, " after")) {
				t.Errorf("%q does not continue %q", got[i], got[i-1])
			}
		}
		if waits := log.lines("level=INFO"); len(waits) != len(got)+len(log.lines("is still")) {
			t.Errorf("other lines at INFO: %q", waits)
		}
	})
}

func TestLog_aFailureHasItsReason(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		var log logbook
		client := newClient(fake, log.record)
		node := fake.Nodes()[0]
		fake.Set(node.UUID, "provision_state", "manageable")
		fake.Fail = func(fakeironic.Node, string) string { return "the disk is on fire" }
		if _, err := client.Reach(t.Context(), node.UUID, provision.GoalAvailable, time.Hour); err == nil {
			t.Fatal("cleaning did not fail")
		}
		if got := log.lines("-> clean failed", "on fire"); len(got) != 1 {
			t.Errorf("the failure is in %d lines; all: %q", len(got), log.lines("level="))
		}
	})
}

func TestLog_tellsPlacesInTheQueueAndAdmissions(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(4)
		for _, node := range fake.Nodes() {
			fake.Set(node.UUID, "provision_state", "manageable")
		}
		fake.StepTime = 10 * time.Minute
		var log logbook
		client := newClient(fake, log.record, func(cfg *provision.Config) {
			cfg.Limit = throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic}
		})
		reachAll(t, fake, client, provision.GoalAvailable, time.Hour)
		if got := log.lines(" in state manageable has a slot after ", "node=node-", "uuid=", "state=manageable", "waited="); len(got) != 4 {
			t.Errorf("%d admissions in the log, want 4: %q", len(got), got)
		}
		// Three wait: the last one is told to be third, second and first.
		for place, want := range map[int]int{1: 3, 2: 2, 3: 1} {
			if got := log.lines(" in state manageable waits for a slot: position ", "node=node-", "uuid=", fmt.Sprintf("position=%d ", place)); len(got) != want {
				t.Errorf("position %d is in %d lines, want %d: %q", place, len(got), want, log.lines("waits"))
			}
		}
	})
}
