package provision

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ErrNoSlot says that neither the provisioning limit nor Ironic's own limit had a free slot for the node within the time-out.
var ErrNoSlot = errors.New("no slot of the provisioning limit is free now")

// Manage sends a node the verb manage and does not wait for the result. The transition is immediate from available and clean
// failed; from enroll, Ironic verifies the BMC first. Unlike Reach it also moves a reserved node.
func (c *Site) Manage(ctx context.Context, node *ironic.Node) error {
	return c.putVerb(ctx, node, nodes.TargetManage)
}

// Provide sends a manageable node the verb provide as soon as it has a slot, and does not wait for the cleaning that follows. It
// waits for a slot at most for the time-out and then returns ErrNoSlot. guard replaces the site's own guard unless it is nil.
// Provide asks it again before the verb after a refusal by Ironic's own limit.
func (c *Site) Provide(ctx context.Context, node *ironic.Node, timeout time.Duration, guard Guard) error {
	if guard == nil {
		guard = c.guard
	}
	step := Step{Node: node, Verb: nodes.TargetProvide, Stage: BeforeQueue}
	if err := guard.Check(ctx, step); err != nil {
		return err
	}
	step.Stage = BeforeVerb
	queue, leave := context.WithCancel(ctx)
	defer leave()
	deadline := time.Now().Add(timeout)
	late := time.AfterFunc(timeout, leave)
	defer late.Stop()
	err := c.limiter.pass(queue, node, failures(node), func(ctx context.Context, _ *ironic.Node) error {
		late.Stop() // once started, the verb is sent to the end
		if err := guard.Check(ctx, step); err != nil {
			return err
		}
		err := c.putVerb(ctx, node, nodes.TargetProvide)
		if isCapacityError(err) {
			late.Reset(time.Until(deadline))
		}
		return err
	})
	if isCapacityError(err) || (queue.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled)) {
		return ErrNoSlot
	}
	return err
}

// putVerb sends a verb to a node that was just read. If the answer is lost, it reads the node to find out whether Ironic has
// accepted the verb.
func (c *Site) putVerb(ctx context.Context, node *ironic.Node, verb ironic.Verb) error {
	err := c.ChangeProvisionState(ctx, node.UUID, ironic.Order{Verb: verb})
	if !ironic.IsConnectionLoss(err) || ctx.Err() != nil {
		return err
	}
	after, lerr := c.Node(ctx, node.UUID)
	if lerr == nil && (after.ProvisionState != node.ProvisionState || !after.ProvisionUpdatedAt.Equal(node.ProvisionUpdatedAt)) {
		return nil
	}
	return err
}

// IsBusy reports whether Ironic refused a request because an operation on the node is in progress or the node's state has changed.
// The request may be repeated later.
func IsBusy(err error) bool {
	return ironic.IsStatus(err, http.StatusConflict, "") || ironic.IsStatus(err, http.StatusBadRequest, "while it is in state")
}
