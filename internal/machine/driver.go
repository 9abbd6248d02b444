package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// PowerManaged reports whether Ironic can change a node's power: it knows the BMC, or the driver needs none. A discovered machine
// uses the fake driver until it gets a BMC, and the power state of that driver is not real
// (reference/discovery.md#power-of-a-discovered-machine). With the driver manual-management, the power interface fake is the choice of an
// operator who switches the machine by hand.
func PowerManaged(n *ironic.Node) bool {
	if ByAgent(n) {
		return false
	}
	if n.Hidden.DriverInfo { // from a lessee: nothing else is leased
		return true
	}
	byHand := n.Driver == AgentDriver && n.PowerInterface == powerFake
	return byHand || driverinfo.AddressKey(n.DriverInfo) != "" || n.Driver == FakeDriver && notes.DiscoveryOf(n) == nil &&
		!LooksDiscovered(n)
}

// ByAgent reports whether Ironic has no control of a node's power but its agent on the machine, which can restart the machine while
// it answers, and nothing else (reference/ironic.md#power-interface-agent).
func ByAgent(n *ironic.Node) bool { return n.PowerInterface == powerByAgent }

// AgentDriver is the driver of a node without BMC credentials that Ironic prepares through its agent.
const AgentDriver = "manual-management"

const (
	powerByAgent = "agent"
	powerFake    = "fake"
)

// AgentSettings returns the driver and interfaces of such a node.
func AgentSettings() ironic.Settings {
	return ironic.Settings{"driver": AgentDriver, "power_interface": powerByAgent, "network_interface": "noop"}
}

// Preparable reports whether Ironic can verify, clean and deploy a machine: it knows the BMC, or works through its agent.
func Preparable(n *ironic.Node) bool { return PowerManaged(n) || ByAgent(n) }

// FakeDriver is the driver that needs no BMC. Ironic gives it to discovered machines, too, until they get another.
const FakeDriver = "fake-hardware"

// LooksDiscovered reports whether a node without a record is as Ironic creates it for an unknown machine.
func LooksDiscovered(n *ironic.Node) bool {
	return n.Name == "" && ironic.State(n.ProvisionState) == nodes.Enroll && n.Extra[notes.KeyEnrolled] == nil && len(n.DriverInfo) == 0
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

// LacksFunction reports whether a hardware interface of a kind does nothing: Ironic has one for nodes without the function.
func LacksFunction(kind, name string) bool {
	return strings.HasPrefix(name, "no-") || kind == "management" && name == "noop"
}

// NamesOf returns the names of drivers.
func NamesOf(drivers []ironic.Driver) []string {
	names := make([]string, 0, len(drivers))
	for _, driver := range drivers {
		names = append(names, driver.Name)
	}
	return names
}

// UnknownDriver says that no conductor of the site has enabled a driver. err is Ironic's answer; nil if it was not tried.
func UnknownDriver(driver string, enabled []string, err error) error {
	return &failure.Error{
		Fact:   fmt.Sprintf("the site has no driver %s. Enabled are %s", driver, strings.Join(enabled, ", ")),
		Advice: "Set driver to one of them, or enable it in enabled_hardware_types of the conductors' configuration.", Err: err,
	}
}

// UnknownInterface says that no conductor of the site has enabled a hardware interface for a driver.
func UnknownInterface(driver, kind, name string, enabled []string) error {
	return &failure.Error{
		Fact: fmt.Sprintf("driver %s has no %s interface %s at this site. Enabled are %s", driver, kind, name,
			strings.Join(enabled, ", ")),
		Advice: fmt.Sprintf("Choose one of them, or enable it in enabled_%s_interfaces of the conductors' configuration.", kind),
	}
}

// ExplainDriver returns an error that names the enabled drivers if Ironic has refused a driver that no conductor has enabled; else err.
func (s *Site) ExplainDriver(ctx context.Context, driver string, err error) error {
	var status *api.StatusError
	if !errors.As(err, &status) || driver == "" || !strings.Contains(status.Message, "which supports driver") {
		return err
	}
	all, problem := s.Ironic.Drivers(ctx)
	enabled := NamesOf(all)
	if problem != nil || slices.Contains(enabled, driver) { // no conductor of the group has it
		return err
	}
	return UnknownDriver(driver, enabled, err)
}

// driverOf returns the driver that a patch sets; "" if none.
func driverOf(patch ironic.Patch) string {
	for _, edit := range patch {
		if driver, isText := edit.Value.(string); isText && edit.Path == "/driver" {
			return driver
		}
	}
	return ""
}
