package ironic

import (
	"context"
	"net/http"
	"time"

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
	Steps       []CleanStep // of the verbs clean and service
	Runbook     string      // of the same verbs, in place of the steps: name or UUID (API 1.92)
	NoRamdisk   bool        // run the steps without booting Ironic's ramdisk
	Password    string      // of the rescue system, for the verb rescue; never empty there
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
	if o.Runbook != "" {
		body["runbook"] = o.Runbook
	}
	if o.Verb == nodes.TargetRescue {
		body["rescue_password"] = o.Password
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
	return c.wrap(ctx, err)
}

// ChangePowerState requests a power change of a node. Ironic answers before the operation has ended. timeout is how long Ironic waits for
// the operating system if the change is a soft one (API 1.27), in whole seconds; zero: as its configuration says.
func (c *Client) ChangePowerState(ctx context.Context, id string, target nodes.TargetPowerState, timeout time.Duration) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.nodes.invalidate(id)
	err = nodes.ChangePowerState(ctx, api, id, nodes.PowerStateOpts{Target: target, Timeout: int(timeout.Seconds())}).ExtractErr()
	if err == nil {
		c.fleet.restart(id)
	}
	return c.wrap(ctx, err)
}

// BootMode is a boot mode of a machine's firmware.
type BootMode string

// The boot modes.
const (
	BootUEFI BootMode = "uefi"
	BootBIOS BootMode = "bios"
)

// ChangeBootMode requests a boot mode (API 1.76). Ironic answers before the operation has ended, and may restart the machine for it. A
// failure shows in the node's last_error only.
func (c *Client) ChangeBootMode(ctx context.Context, id string, mode BootMode) error {
	return c.changeBoot(ctx, id, "boot_mode", mode)
}

// ChangeSecureBoot requests that secure boot is switched on or off; see ChangeBootMode.
func (c *Client) ChangeSecureBoot(ctx context.Context, id string, on bool) error {
	return c.changeBoot(ctx, id, "secure_boot", on)
}

func (c *Client) changeBoot(ctx context.Context, id, what string, target any) error {
	defer c.nodes.invalidate(id)
	err := c.Request(ctx, http.MethodPut, "nodes/"+id+"/states/"+what, map[string]any{"target": target}, nil)
	if err == nil {
		c.fleet.restart(id)
	}
	return err
}
