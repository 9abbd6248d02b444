package ironic

import (
	"context"
	"net/http"
	"net/url"
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

func (o Order) body() map[string]any {
	body := given(map[string]any{
		"target": o.Verb, "deploy_steps": o.DeploySteps, string(o.Verb) + "_steps": o.Steps, "runbook": o.Runbook,
		"rescue_password": o.Password, "disable_ramdisk": o.NoRamdisk,
	})
	if o.ConfigDrive != nil { // an empty one counts
		body["configdrive"] = o.ConfigDrive
	}
	return body
}

// ChangeProvisionState sends a verb to a node. Ironic answers before the operation has ended.
func (c *Client) ChangeProvisionState(ctx context.Context, id string, order Order) error {
	err := c.changeState(ctx, id, "provision", order.body())
	if err == nil {
		c.known.move(id)
	}
	return err
}

// ChangePowerState requests a power change of a node. Ironic answers before the operation has ended. timeout is how long Ironic waits for
// the operating system if the change is a soft one (API 1.27), in whole seconds; zero: as its configuration says.
func (c *Client) ChangePowerState(ctx context.Context, id string, target nodes.TargetPowerState, timeout time.Duration) error {
	body := map[string]any{"target": target}
	if seconds := int(timeout.Seconds()); seconds > 0 {
		body["timeout"] = seconds
	}
	return c.changeState(ctx, id, "power", body)
}

func (c *Client) changeState(ctx context.Context, id, state string, body map[string]any) error {
	defer c.nodes.Invalidate(id)
	err := c.Request(ctx, http.MethodPut, "nodes/"+id+"/states/"+state, body, nil)
	if err == nil {
		c.fleet.Restart(id)
	}
	return err
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
	return c.changeState(ctx, id, "boot_mode", map[string]any{"target": mode})
}

// ChangeSecureBoot requests that secure boot is switched on or off; see ChangeBootMode.
func (c *Client) ChangeSecureBoot(ctx context.Context, id string, on bool) error {
	return c.changeState(ctx, id, "secure_boot", map[string]any{"target": on})
}

// Device is a device of virtual media, or a boot device.
type Device string

// The devices of virtual media. Machines also boot from the CD drive.
const (
	DeviceCDROM  Device = "cdrom"
	DeviceDisk   Device = "disk"
	DeviceFloppy Device = "floppy"
)

// AttachMedia inserts an image into a virtual device of a machine (API 1.89). Ironic answers before the operation has ended; a failure
// shows in the node's last_error only.
func (c *Client) AttachMedia(ctx context.Context, id string, device Device, image string) error {
	defer c.nodes.Invalidate(id)
	return c.Request(ctx, http.MethodPost, "nodes/"+id+"/vmedia", map[string]any{"device_type": device, "image_url": image}, nil)
}

// DetachMedia empties a virtual device of a machine; see AttachMedia.
func (c *Client) DetachMedia(ctx context.Context, id string, device Device) error {
	defer c.nodes.Invalidate(id)
	return c.Request(ctx, http.MethodDelete, "nodes/"+id+"/vmedia?device_types="+url.QueryEscape(string(device)), nil, nil)
}

// SetBootDevice makes a machine boot from a device: from now on if persistent, else at its next start only.
func (c *Client) SetBootDevice(ctx context.Context, id string, device Device, persistent bool) error {
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/management/boot_device",
		map[string]any{"boot_device": device, "persistent": persistent}, nil)
}

// BootDevice is the device from which a machine boots, as its BMC tells.
type BootDevice struct {
	Device     Device `json:"boot_device"` // empty: the BMC does not tell
	Persistent *bool  `json:"persistent"`  // nil: the BMC does not tell
}

// BootDevice asks the BMC of a machine for its boot device.
func (c *Client) BootDevice(ctx context.Context, id string) (device BootDevice, err error) {
	err = c.Request(ctx, http.MethodGet, "nodes/"+id+"/management/boot_device", nil, &device)
	return device, err
}

// InjectNMI interrupts a machine with a non-maskable interrupt (API 1.29).
func (c *Client) InjectNMI(ctx context.Context, id string) error {
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/management/inject_nmi", map[string]any{}, nil)
}

// IndicatorState is what an indicator of a machine shows.
type IndicatorState string

// The states of an indicator.
const (
	IndicatorOn       IndicatorState = "on"
	IndicatorOff      IndicatorState = "off"
	IndicatorBlinking IndicatorState = "blinking"
)

// Indicator is a light of a machine (API 1.63, reference/ironic.md#indicators).
type Indicator struct {
	Name      string           `json:"name"` // with its component, such as led@system
	Component string           `json:"component"`
	ReadOnly  bool             `json:"readonly"`
	States    []IndicatorState `json:"states"`
}

// Indicators asks the BMC of a machine for its indicators.
func (c *Client) Indicators(ctx context.Context, id string) ([]Indicator, error) {
	var answer struct {
		Indicators []Indicator `json:"indicators"`
	}
	err := c.Request(ctx, http.MethodGet, "nodes/"+id+"/management/indicators", nil, &answer)
	return answer.Indicators, err
}

// SetIndicator lets an indicator of a machine show a state. Ironic answers when the BMC has done it.
func (c *Client) SetIndicator(ctx context.Context, id, name string, state IndicatorState) error {
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/management/indicators/"+url.PathEscape(name), map[string]any{"state": state}, nil)
}
