package machine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

func TestLog_eachChangeOfStateIsOneLine(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Minute}
		var log sitetest.Logbook
		client := sitetest.NewClient(fake, log.Record)
		id := sitetest.Enrolled(t, client, "rack1-01")
		if _, err := client.Reach(t.Context(), id, states.GoalAvailable, time.Hour); err != nil {
			t.Fatal(err)
		}
		start := fmt.Sprintf(`level=INFO msg="machine rack1-01 (%s) changed state: `, id)
		var got []string
		for _, line := range log.Lines("changed state") {
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
		if waits := log.Lines("level=INFO"); len(waits) != len(got)+len(log.Lines("is still")) {
			t.Errorf("other lines at INFO: %q", waits)
		}
	})
}

func TestLog_aFailureHasItsReason(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		var log sitetest.Logbook
		client := sitetest.NewClient(fake, log.Record)
		node := fake.Nodes()[0]
		fake.Set(node.UUID, "provision_state", "manageable")
		fake.Fail = func(fakeironic.Node, string) string { return "the disk is on fire" }
		if _, err := client.Reach(t.Context(), node.UUID, states.GoalAvailable, time.Hour); err == nil {
			t.Fatal("cleaning did not fail")
		}
		if got := log.Lines("-> clean failed", "on fire"); len(got) != 1 {
			t.Errorf("the failure is in %d lines; all: %q", len(got), log.Lines("level="))
		}
	})
}

func TestLog_tellsPlacesInTheQueueAndAdmissions(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(4)
		for _, node := range fake.Nodes() {
			fake.Set(node.UUID, "provision_state", "manageable")
		}
		fake.StepTime = 10 * time.Minute
		var log sitetest.Logbook
		client := sitetest.NewClient(fake, log.Record, func(cfg *machine.Config) {
			cfg.Limit = throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic}
		})
		reachAll(t, fake, client, states.GoalAvailable, time.Hour)
		if got := log.Lines(" in state manageable has a slot after ", "node=node-", "uuid=", "state=manageable", "waited="); len(got) != 4 {
			t.Errorf("%d admissions in the log, want 4: %q", len(got), got)
		}
		// Three wait: the last one is told to be third, second and first.
		for place, want := range map[int]int{1: 3, 2: 2, 3: 1} {
			if got := log.Lines(" in state manageable waits for a slot: position ", "node=node-", "uuid=",
				fmt.Sprintf("position=%d ", place)); len(got) != want {
				t.Errorf("position %d is in %d lines, want %d: %q", place, len(got), want, log.Lines("waits"))
			}
		}
	})
}
