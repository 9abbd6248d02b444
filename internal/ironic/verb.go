package ironic

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// ErrNoSlot says that the provisioning limit, or Ironic's own, had no room for a node in the time that it could wait.
var ErrNoSlot = errors.New("the provisioning limit has no room for it now")

// Manage sends a node the verb manage, and does not wait for what becomes of it. From available and clean failed that is
// instant; from enroll Ironic goes on to verify the BMC. Unlike Reach it moves a node that is reserved, too.
func (c *Client) Manage(ctx context.Context, node *Node) error {
	defer c.nodes.invalidate(node.UUID)
	return c.putVerb(ctx, node, nodes.TargetManage)
}

// Provide sends a manageable node the verb provide as soon as the provisioning limit has room for it, and does not wait
// for the cleaning that follows. It waits at most limit for room; then the error is ErrNoSlot. When its turn has come it
// calls before, which may be called again if Ironic itself has no room; an error of before ends it, and nothing is sent.
func (c *Client) Provide(ctx context.Context, node *Node, limit time.Duration, before func(context.Context) error) error {
	defer c.nodes.invalidate(node.UUID)
	queue, leave := context.WithCancel(ctx)
	defer leave()
	deadline := time.Now().Add(limit)
	late := time.AfterFunc(limit, leave)
	defer late.Stop()
	err := c.gate.pass(queue, node, failures(node), func(ctx context.Context) error {
		late.Stop() // what has begun is not left half done
		if err := before(ctx); err != nil {
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

// putVerb sends a verb to a node as it was just read. If the answer is lost, a look at the node tells whether the verb was
// taken.
func (c *Client) putVerb(ctx context.Context, node *Node, verb Verb) error {
	w := walker{c: c, id: node.UUID}
	err := w.put(ctx, order{Verb: verb})
	if !isConnectionLoss(err) || ctx.Err() != nil {
		return err
	}
	after, lerr := c.getNode(ctx, node.UUID)
	if lerr == nil && (after.ProvisionState != node.ProvisionState || !after.ProvisionUpdatedAt.Equal(node.ProvisionUpdatedAt)) {
		return nil
	}
	return err
}

// IsBusy reports whether Ironic refused a request because it is at work on the node, or its state had changed: it may be
// asked again later.
func IsBusy(err error) bool {
	return isStatus(err, http.StatusConflict, "") || isStatus(err, http.StatusBadRequest, "while it is in state")
}

// ListNodeFields returns the nodes with only the given fields, child nodes too: a list of thousands stays small.
func (c *Client) ListNodeFields(ctx context.Context, filter NodeFilter, fields []string) ([]Node, error) {
	query, err := c.nodeQuery(ctx, filter)
	if err != nil {
		return nil, err
	}
	query.Set("fields", strings.Join(fields, ","))
	return c.listNodes(ctx, query)
}
