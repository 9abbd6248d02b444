package expect

import (
	"context"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
)

// CheckDriver returns an error if no conductor has enabled a driver, and nil if Ironic does not tell, or has no
// conductor. It is called during plan.
func CheckDriver(ctx context.Context, site *machine.Site, driver string) error {
	names := machine.NamesOf(driversForPlan(ctx, site))
	if len(names) == 0 || slices.Contains(names, driver) {
		return nil
	}
	return machine.UnknownDriver(driver, names, nil)
}

// CheckInterface returns an error if no conductor has enabled a hardware interface for a driver, and nil if Ironic does not tell. It is
// called during plan.
func CheckInterface(ctx context.Context, site *machine.Site, driver, kind, name string) error {
	if name == "" {
		return nil
	}
	enabled := DefaultsOf(ctx, site, driver).Enabled[kind]
	if driver == machine.FakeDriver { // it may have what others list (reference/ironic.md#changing-interfaces)
		for _, other := range driversForPlan(ctx, site) {
			enabled = slices.Compact(slices.Sorted(slices.Values(slices.Concat(enabled, other.Enabled[kind]))))
		}
	}
	if len(enabled) == 0 || slices.Contains(enabled, name) {
		return nil
	}
	return machine.UnknownInterface(driver, kind, name, enabled)
}

// LacksBootPort is NetworkBoot.Lacks of a node as this plan leaves it. It reads the ports from the lists that plans share.
func LacksBootPort(ctx context.Context, site *machine.Site, node *ironic.Node) string {
	boot := ramdisk.NetworkBoot{Interface: AsPlanned(site, node).BootInterface}
	if h, planned := ExpectedOf(site).find(node); !ramdisk.BootsFromPort(boot.Interface) || planned && h.BootPort {
		return ""
	}
	ports, err := site.Ironic.PortsForRefresh(ctx, node.UUID)
	if err != nil {
		return "" // the apply reports it
	}
	boot.Ports = ramdisk.PXEPorts(ports)
	return boot.Lacks()
}

// drivers are those that conductors have enabled, as far as the plans of a run have asked.
type drivers struct {
	asking  chan struct{}   // has room for one, who may use enabled
	enabled []ironic.Driver // nil: not asked for
}

func driversOf(site *machine.Site) *drivers {
	return machine.Kept(site, func(*machine.Site) *drivers { return &drivers{asking: make(chan struct{}, 1)} })
}

// driversForPlan returns the drivers that conductors have enabled; none if Ironic does not tell. It asks Ironic once.
func driversForPlan(ctx context.Context, site *machine.Site) []ironic.Driver {
	known := driversOf(site)
	select {
	case known.asking <- struct{}{}:
		defer func() { <-known.asking }()
	case <-ctx.Done():
		return nil
	}
	if known.enabled == nil {
		enabled, err := site.Ironic.Drivers(ctx)
		if err != nil && !api.IsForbidden(err) {
			return nil // the apply explains the refusal
		}
		known.enabled = append([]ironic.Driver{}, enabled...) // not nil: a user who may not see them does not ask again
	}
	return known.enabled
}

// DefaultsOf returns a driver with its interfaces, as far as Ironic tells them. It is called during plan.
func DefaultsOf(ctx context.Context, site *machine.Site, driver string) ironic.Driver {
	for _, enabled := range driversForPlan(ctx, site) {
		if enabled.Name == driver {
			return enabled
		}
	}
	return ironic.Driver{Name: driver}
}
