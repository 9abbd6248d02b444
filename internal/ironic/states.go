package ironic

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// State is a provision state of Ironic.
type State = nodes.ProvisionState

// Verb is the target of a change of provision state (PUT states/provision).
type Verb = nodes.TargetProvisionState

// DeployStep is a step that Ironic runs while it deploys a node (API 1.69). All four fields are required.
type DeployStep struct {
	Interface string `json:"interface"`
	Step      string `json:"step"`
	Args      any    `json:"args"`
	Priority  int64  `json:"priority"`
}

// Order is a verb with its parameters: the body of PUT states/provision.
type Order struct {
	Verb        Verb
	ConfigDrive any
	DeploySteps []DeployStep
	Steps       []Step // of the verbs clean and service
	NoRamdisk   bool   // run these steps without booting Ironic's ramdisk
}

// ToProvisionStateMap returns the body of the request. gophercloud's type has no vendor_data.
func (o Order) ToProvisionStateMap() (map[string]any, error) {
	body := map[string]any{"target": o.Verb}
	if o.ConfigDrive != nil {
		body["configdrive"] = o.ConfigDrive
	}
	if len(o.DeploySteps) > 0 {
		body["deploy_steps"] = o.DeploySteps
	}
	if len(o.Steps) > 0 {
		body[string(o.Verb)+"_steps"] = o.Steps
	}
	if o.NoRamdisk {
		body["disable_ramdisk"] = true
	}
	return body, nil
}

// ChangeProvisionState sends a verb to a node. Ironic answers before the operation has ended.
func (c *Client) ChangeProvisionState(ctx context.Context, id string, order Order) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.nodes.invalidate(id)
	err = nodes.ChangeProvisionState(ctx, api, id, order).ExtractErr()
	if err == nil {
		c.fleet.restart(id)
	}
	return c.wrap(err)
}

// ChangePowerState requests a power change of a node. Ironic answers before the operation has ended.
func (c *Client) ChangePowerState(ctx context.Context, id string, target nodes.TargetPowerState) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.nodes.invalidate(id)
	err = nodes.ChangePowerState(ctx, api, id, nodes.PowerStateOpts{Target: target}).ExtractErr()
	if err == nil {
		c.fleet.restart(id)
	}
	return c.wrap(err)
}
