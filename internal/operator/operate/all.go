package operate

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// All returns all operations that have a command, as the documentation lists them. What they are done with does not matter.
func All() []Operation {
	return []Operation{
		Power(machine.ActionOn), Power(machine.ActionOff), Power(machine.ActionSoftOff), Power(machine.ActionReboot),
		Power(machine.ActionSoftReboot), Inspect(nil), Qualify(nil, notes.Recipe{}),
		Clean(nil, ironic.Order{}, false), Service(ironic.Order{}), Abort(), Unhold(), NMI(),
		Media(ironic.DeviceCDROM, "URL"), Media(ironic.DeviceCDROM, ""), Manage(), Provide(nil), BootDevice(ironic.DeviceCDROM, false),
		Indicate(machine.IndicatorChoice{}, ironic.IndicatorOn),
		Maintenance(machine.Maintenance{On: true}), Maintenance(machine.Maintenance{}), Retire(""), Unretire(), Ready(), Delete(nil, false),
		Undeploy(nil, false), Rescue(""), Unrescue(),
	}
}
