package operate

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// How long a request to a BMC may take by default.
const (
	BMCTimeout = 10 * time.Minute
	NMITimeout = 5 * time.Minute
)

// NMI returns the operation that sends machines a non-maskable interrupt.
func NMI() Operation {
	return Operation{
		Command: "nmi", Action: "metal_nmi", Instead: "node inject nmi", Doing: "send an NMI to", Timeout: NMITimeout,
		Since: api.VersionNMI, Feature: "sending an NMI", Worst: Cuts,
		Decide: func(node *ironic.Node) Plan {
			if busy := busyWith(node); busy != "" {
				return Plan{Refused: busy}
			}
			if machine.Power(node) == "off" {
				return Plan{Refused: "it is switched off, so that an NMI has no effect"}
			}
			return Plan{Harm: harmOf(node), Does: "interrupts its system, which crashes or restarts as it is configured"}
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.SendNMI(ctx, timeout)
		},
	}
}

// Media returns the operation that inserts an image into a virtual device, in place of another. An empty image empties the device.
func Media(device ironic.Device, image string) Operation {
	op := Operation{
		Command: "virtual-media attach", Action: "metal_virtual_media", Instead: "node attach vmedia",
		Doing:   map[bool]string{true: "detach virtual media from", false: "attach virtual media to"}[image == ""],
		Timeout: BMCTimeout, Since: api.VersionVirtualMedia, Feature: "changing virtual media", Worst: Restarts,
		Goal: notes.GoalMedia + notes.Goal(device), Several: func(*ironic.Node) bool { return image != "" }, Guarded: true,
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.ChangeMedia(ctx, device, image, timeout)
		},
	}
	does := "replaces what is in its virtual " + string(device)
	if image == "" {
		op.Command, op.Instead, does = "virtual-media detach", "node detach vmedia", "empties its virtual "+string(device)
	}
	op.Decide = func(node *ironic.Node) Plan { return Plan{Refused: busyWith(node), Harm: unsettles(node), Does: does} }
	return op
}

// unsettles returns the harm of an operation that a running system may notice.
func unsettles(node *ironic.Node) Harm {
	if isUsed(node) {
		return Restarts
	}
	return Harmless
}

// BootDevice returns the operation that makes machines boot from a device, once or from now on.
func BootDevice(device ironic.Device, persistent bool) Operation {
	does := "makes it boot from " + string(device) + " at its next start"
	if persistent {
		does = "makes it boot from " + string(device) + " from now on"
	}
	return Operation{
		Command: "boot-device set", Instead: "node boot device set", Doing: "set the boot device of", Timeout: BMCTimeout, Worst: Restarts,
		Decide: func(node *ironic.Node) Plan { return Plan{Refused: busyWith(node), Harm: unsettles(node), Does: does} },
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.BootFrom(ctx, device, persistent, timeout)
		},
	}
}

// Indicate returns the operation that lets an indicator of machines show a state. Technicians see it, and nobody who uses a machine.
func Indicate(choice machine.IndicatorChoice, state ironic.IndicatorState) Operation {
	return Operation{
		Command: "indicator", Doing: "switch an indicator of", Timeout: BMCTimeout, Since: api.VersionIndicators,
		Feature: "switching indicators", Worst: Harmless, DuringRuns: true,
		Decide: func(*ironic.Node) Plan {
			return Plan{Does: "switches an indicator: " + string(state)}
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.Indicate(ctx, choice, state, timeout)
		},
	}
}
