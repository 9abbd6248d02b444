package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
)

// ErrNoSlot says that neither the provisioning limit nor Ironic's own limit had a free slot for the node within the time-out.
var ErrNoSlot = errors.New("no slot of the provisioning limit is free now")

// Manage sends a node the verb manage and does not wait for the result. The transition is immediate from available and clean
// failed; from enroll, Ironic verifies the BMC first. Unlike Reach it also moves a reserved node.
func (c *Site) Manage(ctx context.Context, node *ironic.Node) error {
	return (&Machine{site: c, node: node}).insistOn(ctx, nodes.TargetManage, settleFor)
}

// Provide sends a manageable node the verb provide as soon as it has a slot, and does not wait for the cleaning that follows. It
// waits for a slot at most for the time-out and then returns ErrNoSlot. guard replaces the site's own guard unless it is nil.
// Provide asks it again before the verb after a refusal by Ironic's own limit. It does not wait for the end of a freeze.
func (c *Site) Provide(ctx context.Context, node *ironic.Node, timeout time.Duration, guard Guard) error {
	if guard == nil {
		guard = c.guard
	}
	if err := c.Freezes().Check(ctx); err != nil {
		return err
	}
	step := Step{Node: node, Verb: nodes.TargetProvide, Stage: BeforeQueue}
	if err := guard.Check(ctx, step); err != nil {
		return err
	}
	step.Stage = BeforeVerb
	m := &Machine{site: c, node: node}
	queue, leave := context.WithCancel(ctx)
	defer leave()
	deadline := time.Now().Add(timeout)
	late := time.AfterFunc(timeout, leave)
	defer late.Stop()
	err := c.limiter.Pass(queue, node, notes.Failures(node), func(ctx context.Context, _ *ironic.Node) error {
		late.Stop() // once started, the verb is sent to the end
		if err := guard.Check(ctx, step); err != nil {
			return err
		}
		err := m.put(ctx, ironic.Order{Verb: nodes.TargetProvide})
		if slots.IsCapacityError(err) {
			late.Reset(time.Until(deadline))
		}
		return err
	})
	if slots.IsCapacityError(err) || (queue.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled)) {
		return ErrNoSlot
	}
	return m.settled(ctx, err)
}

// settleFor is how long callers without a time-out of their own wait until it is known what became of a verb without an answer.
const settleFor = unansweredFor + time.Minute

// callOf returns the request of a verb. Every change of the provision state has a new time.
func callOf(verb ironic.Verb) Call {
	return Call{
		verb: verb, doing: fmt.Sprintf("send the verb %s to the machine", verb),
		trace: func(before, now *ironic.Node, _ time.Time) trace {
			if now.ProvisionState != before.ProvisionState || changedAt(now.ProvisionUpdatedAt, before.ProvisionUpdatedAt) {
				return traceFound
			}
			return traceNone
		},
	}
}

// changedAt reports whether two times differ. One from the answer to a write has no fraction of a second.
func changedAt(now, before time.Time) bool {
	if before.Nanosecond() == 0 {
		now = now.Truncate(time.Second)
	}
	return !now.Equal(before)
}

// put sends a verb, once: see ask.
func (m *Machine) put(ctx context.Context, with ironic.Order) error {
	err := m.ask(ctx, callOf(with.Verb), func(ctx context.Context) error {
		return m.site.Ironic.ChangeProvisionState(ctx, m.node.UUID, with)
	})
	if with.Verb == nodes.TargetProvide {
		return withoutRunbook(m.node, err)
	}
	return err
}

// insistOn sends a verb without parameters, and sends it again as long as it is lost, at most for the time-out.
func (m *Machine) insistOn(ctx context.Context, verb ironic.Verb, timeout time.Duration) error {
	return m.untilSettled(ctx, timeout, nil, func() error { return m.put(ctx, ironic.Order{Verb: verb}) })
}

// IsBusy reports whether Ironic refused a request because an operation on the node is in progress or the node's state has changed.
// The request may be repeated later.
func IsBusy(err error) bool {
	return api.IsStatus(err, http.StatusConflict, "") || api.IsStatus(err, http.StatusBadRequest, "while it is in state")
}
