package ironic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// SetPower switches a node on or off, and waits until it is. Nothing is sent if it is already.
func (c *Client) SetPower(ctx context.Context, id string, on bool, limit time.Duration) (*Node, error) {
	want, target := "power off", nodes.PowerOff
	if on {
		want, target = "power on", nodes.PowerOn
	}
	defer c.nodes.invalidate(id)
	node, err := c.getNode(ctx, id)
	if err != nil || (node.PowerState == want && node.TargetPowerState == "") {
		return node, err
	}
	api, err := c.api(ctx)
	if err != nil {
		return node, err
	}
	if err := c.wrap(nodes.ChangePowerState(ctx, api, id, nodes.PowerStateOpts{Target: target}).ExtractErr()); err != nil {
		return node, err
	}
	deadline := time.Now().Add(limit)
	look := c.getNode
	for {
		seen, err := look(ctx, id)
		switch {
		case errors.Is(err, errLimit):
			return node, fmt.Errorf("node %s is still %q after %s", NodeLabel(node), node.PowerState, limit)
		case err != nil:
			return node, err
		case seen.TargetPowerState == "" && seen.PowerState == want:
			return c.getNode(ctx, id)
		case seen.TargetPowerState == "" && seen.Reservation == "":
			return seen, fmt.Errorf("node %s is %q, not %q: %s", NodeLabel(seen), seen.PowerState, want, firstLine(seen.LastError))
		}
		node = seen
		look = func(ctx context.Context, id string) (*Node, error) {
			return c.fleet.next(ctx, id, time.Until(deadline))
		}
	}
}
