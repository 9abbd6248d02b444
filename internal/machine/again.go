package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// How a failure that passes by itself is tried again.
const passingTries = 3

var passingPause = rest.Backoff{First: 15 * time.Second, Max: time.Minute, Factor: 2}

// fail returns the error of a failed operation; nil if the walk tries again, because what the operation has failed for passes by itself.
func (w *walk) fail(ctx context.Context) error {
	failed := w.failed(ctx)
	steps := w.goal == states.GoalConfigured || w.goal == states.GoalServiced // which nobody knows to bear a second time
	if why := failed.Why; why != nil && why.Passes && !steps {
		if w.again < passingTries && w.repeat(ctx, why.ID) == nil {
			return nil
		}
		if w.again > 0 {
			failed.Fact += fmt.Sprintf(", also when tried %d more times", w.again)
		}
	}
	end := unknown
	if failed.Why != nil {
		end = ending(failed.Why.ID)
	}
	failed.Facts = w.lookUp(ctx, failed.Why)
	f := failingsOf(w.site)
	f.note(w.Machine, failed.Why, w.goal)
	failed.Facts = append(failed.Facts, f.ended(w.node, w.goal, end)...)
	return failed
}

// repeat waits, and lets the walk begin anew. The pause does not count for its time-out.
func (w *walk) repeat(ctx context.Context, why string) error {
	pause := passingPause.After(w.again + 1)
	text := fmt.Sprintf("has failed with %s, which passes by itself, and is tried again in %s (%d of %d)", why, pause, w.again+1,
		uint(passingTries))
	w.site.Ironic.Logger().WarnContext(ctx, fmt.Sprintf("machine %s %s", ironic.NodeLabel(w.node), text), NodeAttributes(w.node)...)
	if w.tell != nil {
		w.tell(fmt.Sprintf("node %s: %s", ironic.NodeLabel(w.node), text))
	}
	if err := rest.Sleep(ctx, pause); err != nil {
		return err
	}
	if err := w.Refresh(ctx); err != nil && !api.MayPass(err) { // the verb reads the node, too
		return err
	}
	w.again++
	w.sent, w.deadline = "", w.deadline.Add(pause)
	return nil
}
