package hardware

import (
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Look reads what Ironic knows of the hardware of a node, as far as a model compares it; the inventory always. What an older Ironic does
// not have is not known.
func Look(ctx context.Context, client *ironic.Client, id string, model Model) (Machine, error) {
	version, err := client.Microversion(ctx)
	if err != nil {
		return Machine{}, err
	}
	inventory, err := client.Inventory(ctx, id)
	if err != nil {
		return Machine{}, err
	}
	var bios map[string]ironic.BIOSSetting
	if len(model.BIOS) > 0 {
		if bios, err = client.BIOS(ctx, id); err != nil {
			return Machine{}, err
		}
	}
	var firmware map[string]string
	if len(model.Firmware) > 0 && version >= api.VersionFirmware {
		if firmware, err = client.Firmware(ctx, id); err != nil {
			return Machine{}, err
		}
	}
	return Of(inventory, bios, firmware), nil
}

// Everything is a model of which Look reads all that it can.
var Everything = Model{BIOS: map[string]string{"": ""}, Firmware: map[string]string{"": ""}}
