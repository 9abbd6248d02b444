package provision

import (
	"context"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// NetworkBoot is what a plan knows of how a machine will boot Ironic's ramdisk.
type NetworkBoot struct {
	Interface string           // boot interface; "": not known
	Ports     map[string]*bool // pxe_enabled of its ports, by MAC address; nil: not known
	Open      bool             // it may have other ports by then
}

// BootsFromPort reports whether a boot interface boots machines from the network. Ironic then prepares the boot for the MAC addresses
// of the node's ports (reference/ironic.md#network-boot).
func BootsFromPort(boot string) bool {
	switch boot {
	case "pxe", "ipxe", "http", "http-ipxe", "ilo-pxe", "ilo-ipxe", "irmc-pxe":
		return true
	}
	return false
}

// BootsNoISO reports whether a boot interface accepts the deployment of a live ISO and does not boot it (reference/live-iso.md#boot-interfaces).
func BootsNoISO(boot string) bool { return boot == "pxe" || boot == "http" }

// Lacks says what the machine lacks for a network boot, as the end of a sentence; "" if it lacks nothing, or if that is not known.
func (b NetworkBoot) Lacks() string {
	if !BootsFromPort(b.Interface) || b.Open {
		return ""
	}
	for _, enabled := range b.Ports {
		if enabled == nil || *enabled {
			return ""
		}
	}
	switch len(b.Ports) {
	case 0:
		return "has no port, so Ironic does not know the network card that boots"
	case 1:
		return "has one port, with pxe_enabled = false"
	}
	return fmt.Sprintf("has %d ports, all with pxe_enabled = false", len(b.Ports))
}

// InspectionBringsPorts reports whether Ironic may learn the network cards of a machine from its BMC when it inspects the machine, before
// the machine boots (reference/ironic.md#network-boot). An inspect interface that is not known ("") may.
func InspectionBringsPorts(driver, inspect string) bool {
	switch driver {
	case "ipmi", AgentDriver, "fake-hardware": // their BMCs tell no MAC addresses
		return inspect != "agent" && inspect != "inspector"
	}
	return true
}

// LacksBootPort is NetworkBoot.Lacks of a node as this plan leaves it. It reads the ports from the lists that plans share.
func (c *Site) LacksBootPort(ctx context.Context, node *ironic.Node) string {
	boot := NetworkBoot{Interface: c.AsPlanned(node).BootInterface}
	if h, planned := expectedOf(c).find(node); !BootsFromPort(boot.Interface) || planned && h.BootPort {
		return ""
	}
	ports, err := c.PortsForRefresh(ctx, node.UUID)
	if err != nil {
		return "" // the apply reports it
	}
	boot.Ports = PXEPorts(ports)
	return boot.Lacks()
}

// PXEPorts returns pxe_enabled of ports by MAC address.
func PXEPorts(ports map[string]ironic.Port) map[string]*bool {
	enabled := make(map[string]*bool, len(ports))
	for mac, port := range ports {
		enabled[mac] = &port.PXEEnabled
	}
	return enabled
}

// drivers are those that conductors have enabled, as far as the plans of a run have asked.
type drivers struct {
	asking  chan struct{}   // has room for one, who may use enabled
	enabled []ironic.Driver // nil: not asked for
}

func driversOf(s *Site) *drivers {
	return kept(s, func(*Site) *drivers { return &drivers{asking: make(chan struct{}, 1)} })
}

// driversForPlan returns the drivers that conductors have enabled; none if Ironic does not tell. It asks Ironic once.
func (c *Site) driversForPlan(ctx context.Context) []ironic.Driver {
	known := driversOf(c)
	select {
	case known.asking <- struct{}{}:
		defer func() { <-known.asking }()
	case <-ctx.Done():
		return nil
	}
	if known.enabled == nil {
		enabled, err := c.Drivers(ctx)
		if err != nil && !ironic.IsForbidden(err) {
			return nil // the apply explains the refusal
		}
		known.enabled = append([]ironic.Driver{}, enabled...) // not nil: a user who may not see them does not ask again
	}
	return known.enabled
}

// DefaultsOf returns a driver with the interfaces that nodes get which name none, as far as Ironic tells them. It is called during plan.
func (c *Site) DefaultsOf(ctx context.Context, driver string) ironic.Driver {
	for _, enabled := range c.driversForPlan(ctx) {
		if enabled.Name == driver {
			return enabled
		}
	}
	return ironic.Driver{Name: driver}
}

func namesOf(drivers []ironic.Driver) []string {
	names := make([]string, 0, len(drivers))
	for _, driver := range drivers {
		names = append(names, driver.Name)
	}
	return names
}
