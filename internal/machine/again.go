package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
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
		failed.Fact += fmt.Sprintf(", also when tried %d more times", w.again)
	}
	failingsOf(w.site).note(w.Machine, failed.Why)
	failed.Facts = append(failed.Facts, failingsOf(w.site).alike(w.Machine, failed.Why)...)
	return failed
}

// repeat waits, and lets the walk begin anew.
func (w *walk) repeat(ctx context.Context, why string) error {
	w.again++
	pause := passingPause.After(w.again)
	text := fmt.Sprintf("has failed with %s, which passes by itself, and is tried again in %s (%d of %d)", why, pause, w.again,
		uint(passingTries))
	w.site.Ironic.Logger().WarnContext(ctx, fmt.Sprintf("machine %s %s", ironic.NodeLabel(w.node), text), NodeAttributes(w.node)...)
	if w.tell != nil {
		w.tell(fmt.Sprintf("node %s: %s", ironic.NodeLabel(w.node), text))
	}
	if err := rest.Sleep(ctx, pause); err != nil {
		return err
	}
	if err := w.Refresh(ctx); err != nil {
		return err
	}
	w.sent, w.deadline = "", time.Now().Add(w.timeout)
	return nil
}
