package turns_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Notes of many runs that do not exist cost no request each, and none of them makes a member wait for longer than a day.
func TestTake_notesOfManyMadeUpRuns(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(40)
		ids := active(fake)
		for i, id := range ids[1:] {
			fake.Set(id, "extra", map[string]any{notes.KeyTurn: map[string]any{
				"group": databases.Group, "run": fmt.Sprintf("7a7a7a7a-0000-4000-8000-%012d", i), "until": "9999-01-01T00:00:00Z",
			}})
		}
		begun := time.Now()
		restart := turns.Change{Settings: databases, Change: rollout.Restart}
		if err := newRun(fake).change(t.Context(), ids[0], restart, func() {}, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it waited for %s", took)
		}
		reads := 0
		for _, r := range fake.Requests() {
			if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/v1/chassis") {
				reads++
			}
		}
		if reads > 8 {
			t.Errorf("%d records were read", reads)
		}
	})
}
