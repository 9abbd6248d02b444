package ironic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// SetPower switches a node on or off, and waits until it is. Nothing is sent if it is already.
func (c *Client) SetPower(ctx context.Context, id string, on bool, limit time.Duration) (*Node, error) {
	want, target := powerOff, nodes.PowerOff
	if on {
		want, target = powerOn, nodes.PowerOn
	}
	node, err := c.getNode(ctx, id)
	if err != nil || (node.PowerState == want && node.TargetPowerState == "") {
		return node, err
	}
	return c.changePower(ctx, node, target, want, limit)
}

// Reboot switches a node off and on, or only on if it is off, and waits until it is.
func (c *Client) Reboot(ctx context.Context, id string, limit time.Duration) (*Node, error) {
	node, err := c.getNode(ctx, id)
	if err != nil {
		return nil, err
	}
	if node.PowerState == powerOff {
		return c.changePower(ctx, node, nodes.PowerOn, powerOn, limit)
	}
	return c.changePower(ctx, node, nodes.Rebooting, powerOn, limit)
}

// Power states of nodes.
const (
	powerOn  = "power on"
	powerOff = "power off"
)

// Power is whether a machine is "on" or "off"; empty if Ironic does not know.
func Power(n *Node) string { return strings.TrimPrefix(n.PowerState, "power ") }

// changePower asks for a change of power, and waits until the node is as wanted.
func (c *Client) changePower(ctx context.Context, node *Node, target nodes.TargetPowerState, want string, limit time.Duration) (*Node, error) {
	id := node.UUID
	if err := c.guard.Ready(ctx, node, ""); err != nil {
		return node, err
	}
	defer c.nodes.invalidate(id)
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
