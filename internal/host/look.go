package host

import (
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
)

// NetworkQuestion is what the answer to AskNetwork depends on.
type NetworkQuestion struct {
	Node          string // UUID of the node that the host has or takes over; "": none
	Driver        string // "": not known
	Boot, Inspect Interface
	Ports         map[string]Port // planned, by MAC address
	Had           []string        // MAC addresses of the ports in state: the apply removes those that are not planned
}

// Interface is what Terraform knows of a hardware interface of a host.
type Interface struct {
	Name decide.Value[string] // of the configuration, also by the scheme of its BMC address
	Was  bool                 // the state has one of a configuration: without a new one, the default of the driver follows
}

// LookAtNetwork returns how a machine without a port that may boot it will boot, and whether an inspection may bring its ports; nil if that
// is not known.
func LookAtNetwork(ctx context.Context, site *machine.Site, q NetworkQuestion) (boot *ramdisk.NetworkBoot, open bool) {
	boot = &ramdisk.NetworkBoot{Interface: q.after(ctx, site, "boot", q.Boot)}
	if !ramdisk.BootsFromPort(boot.Interface) {
		return boot, false
	}
	open = machine.InspectionBringsPorts(q.Driver, q.after(ctx, site, "inspect", q.Inspect))
	var err error
	if boot.Ports, err = pxeAfter(ctx, site, q.Node, q.Had, q.Ports); err != nil {
		return nil, false // the apply reports it
	}
	return boot, open
}

// NetworkInterface returns the network interface that the node has after the apply; "" if that is not known.
func (q NetworkQuestion) NetworkInterface(ctx context.Context, site *machine.Site, is Interface) string {
	return q.after(ctx, site, "network", is)
}

// LookAtConsole returns the console interface that the host has after the apply, and whether its console is enabled now.
func LookAtConsole(ctx context.Context, site *machine.Site, q NetworkQuestion, console Interface) *ConsoleNow {
	now := &ConsoleNow{Interface: q.after(ctx, site, "console", console)}
	if q.Node == "" {
		return now
	}
	node, err := site.Ironic.NodeForRefresh(ctx, q.Node)
	if err != nil {
		return nil // the refresh reports it
	}
	now.Enabled = node.ConsoleEnabled
	now.Moves = q.Driver != "" && node.Driver != q.Driver || now.Interface != "" && now.Interface != node.ConsoleInterface
	now.MayMove = !now.Moves && (q.Driver == "" || now.Interface == "")
	return now
}

// LookAtInterfaces returns what becomes of the hardware interfaces of the node that the configuration sets or that the one before has set.
func LookAtInterfaces(ctx context.Context, site *machine.Site, q NetworkQuestion, kinds map[string]Interface) (changes []InterfaceChange) {
	node, err := site.Ironic.NodeForRefresh(ctx, q.Node)
	if err != nil {
		return nil // the refresh reports it
	}
	has := ironic.InterfacesOf(node)
	for _, kind := range ironic.HardwareInterfaces {
		is := kinds[kind]
		if is.Name.Unknown || !is.Name.Set && !is.Was || has[kind] == "" {
			continue
		}
		to := q.after(ctx, site, kind, is)
		if kind == "deploy" && to == ironic.Autodetect && ironic.HidesAutodetect(node) {
			to = has[kind]
		}
		changes = append(changes, InterfaceChange{Kind: kind, From: has[kind], To: to})
	}
	return changes
}

// after returns the interface of a kind that the node has after the apply; "" if that is not known.
func (q NetworkQuestion) after(ctx context.Context, site *machine.Site, kind string, is Interface) string {
	if is.Name.Unknown || is.Name.Set {
		return is.Name.V
	}
	if q.Node != "" && !is.Was {
		if node, err := site.Ironic.NodeForRefresh(ctx, q.Node); err == nil && node.Driver == q.Driver {
			return ironic.InterfacesOf(node)[kind]
		}
	}
	return expect.DefaultsOf(ctx, site, q.Driver).Defaults[kind]
}
