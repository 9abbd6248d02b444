package fakeironic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// hardwareType is a driver.
type hardwareType struct {
	name       string
	class      string              // in error messages
	interfaces map[string][]string // implementations by kind of interface, the default first
}

// interfaceKinds are the kinds of interface in Ironic's order.
var interfaceKinds = []string{
	"bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue", "storage", "vendor",
}

// hardwareTypes are the enabled drivers, by name. fake-hardware supports every enabled interface.
var hardwareTypes = []hardwareType{
	{name: "fake-hardware", class: "FakeHardware", interfaces: map[string][]string{
		"bios": {"fake", "redfish", "no-bios"}, "boot": {"fake", "ipxe", "pxe", "redfish-virtual-media"}, "console": {"fake", "no-console"},
		"deploy": {"fake", "direct", "ramdisk"}, "firmware": {"fake", "redfish", "no-firmware"},
		"inspect": {"fake", "agent", "redfish", "no-inspect"}, "management": {"fake", "ipmitool", "noop", "redfish"}, "network": {"noop", "flat", "neutron"},
		"power": {"fake", "agent", "ipmitool", "redfish"}, "raid": {"fake", "redfish", "no-raid"}, "rescue": {"fake", "agent", "no-rescue"},
		"storage": {"noop", "fake"}, "vendor": {"fake", "ipmitool", "redfish", "no-vendor"},
	}},
	{name: "idrac", class: "IDRACHardware", interfaces: map[string][]string{
		"bios": {"idrac-redfish", "no-bios"}, "boot": {"ipxe", "pxe", "idrac-redfish-virtual-media"}, "console": {"no-console"},
		"deploy": {"direct", "ramdisk"}, "firmware": {"redfish", "no-firmware"}, "inspect": {"idrac-redfish", "agent", "no-inspect"},
		"management": {"idrac-redfish"}, "network": {"noop", "flat", "neutron"}, "power": {"idrac-redfish", "redfish"}, "raid": {"idrac-redfish", "no-raid"},
		"rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"idrac-redfish", "no-vendor"},
	}},
	{name: "ipmi", class: "IPMIHardware", interfaces: map[string][]string{
		"bios": {"no-bios"}, "boot": {"ipxe", "pxe"}, "console": {"no-console", "ipmitool-socat"}, "deploy": {"direct", "ramdisk"},
		"firmware": {"no-firmware"}, "inspect": {"agent", "no-inspect"}, "management": {"ipmitool", "noop"}, "network": {"noop", "flat", "neutron"},
		"power": {"ipmitool"}, "raid": {"no-raid", "agent"}, "rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"ipmitool", "no-vendor"},
	}},
	{name: "manual-management", class: "ManualManagementHardware", interfaces: map[string][]string{
		"bios": {"no-bios"}, "boot": {"ipxe", "pxe"}, "console": {"no-console"}, "deploy": {"direct", "ramdisk"}, "firmware": {"no-firmware"},
		"inspect": {"agent", "no-inspect"}, "management": {"noop", "fake"}, "network": {"noop", "flat", "neutron"}, "power": {"agent", "fake"}, "raid": {"no-raid", "agent"},
		"rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"no-vendor"},
	}},
	{name: "redfish", class: "RedfishHardware", interfaces: map[string][]string{
		"bios": {"redfish", "no-bios"}, "boot": {"ipxe", "pxe", "redfish-virtual-media", "redfish-https"}, "console": {"no-console"},
		"deploy": {"direct", "ramdisk"}, "firmware": {"redfish", "no-firmware"}, "inspect": {"redfish", "agent", "no-inspect"},
		"management": {"redfish"}, "network": {"noop", "flat", "neutron"}, "power": {"redfish"}, "raid": {"redfish", "no-raid", "agent"},
		"rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"redfish", "no-vendor"},
	}},
}

// findDriver returns the hardware type of that name.
func findDriver(name string) (hardwareType, bool) {
	for _, h := range hardwareTypes {
		if h.name == name {
			return h, true
		}
	}
	return hardwareType{}, false
}

// noValidHost is the answer for a driver or conductor group without a conductor.
func noValidHost(driver, group string, legacy bool) error {
	hint := ""
	if !legacy {
		hint = " Ensure the driver is valid and enabled."
	}
	return fault(http.StatusBadRequest,
		"No valid host was found. Reason: No conductor service registered which supports driver %s for conductor group %q.%s", driver, group, hint)
}

// settleInterfaces checks the interfaces of a node against its driver and sets those that are null to their defaults, except
// interfaces that instance_info overrides.
func settleInterfaces(fields map[string]any) error {
	driver, _ := findDriver(text(fields["driver"]))
	overrides := object(fields["instance_info"])
	for _, kind := range interfaceKinds {
		key := kind + "_interface"
		override := overrides[key]
		if override != nil {
			if err := driver.checkInterface(kind, pyText(override)); err != nil {
				return err
			}
		}
		own := text(fields[key])
		if own == "" && override == nil {
			fields[key] = driver.interfaces[kind][0]
		} else if own != "" {
			if err := driver.checkInterface(kind, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInterface refuses an implementation that is not enabled or that the driver does not support.
func (h hardwareType) checkInterface(kind, implementation string) error {
	if enabled := implementations(kind); !slices.Contains(enabled, implementation) {
		return fault(http.StatusBadRequest,
			"Could not find the following interface in the 'ironic.hardware.interfaces.%s' entrypoint: %s. Valid interfaces are %s.",
			kind, implementation, pyRepr(clone(enabled)))
	}
	if !slices.Contains(h.interfaces[kind], implementation) {
		return fault(http.StatusBadRequest, "%s interface implementation '%s' is not supported by hardware type %s.", kind, implementation, h.class)
	}
	return nil
}

// uses returns the implementation that the conductor uses: the one in instance_info if there is one, else the node's own.
func (n *node) uses(kind string) string {
	key := kind + "_interface"
	if override, given := object(n.fields["instance_info"])[key]; given {
		return pyText(override)
	}
	if own := n.str(key); own != "" {
		return own
	}
	driver, _ := findDriver(n.str("driver"))
	return driver.interfaces[kind][0]
}

// checkInterfaces is the conductor's check before an operation. The overrides in instance_info may be wrong: Ironic does not
// check them in a PATCH.
func (n *node) checkInterfaces() error {
	driver, _ := findDriver(n.str("driver"))
	for _, kind := range interfaceKinds {
		if err := driver.checkInterface(kind, n.uses(kind)); err != nil {
			return err
		}
	}
	return nil
}

// implementations returns the enabled implementations of a kind of interface.
func implementations(kind string) []string {
	found := map[string]bool{}
	for _, h := range hardwareTypes {
		for _, name := range h.interfaces[kind] {
			found[name] = true
		}
	}
	return sortedKeys(found)
}

// powerFault returns why the power interface refuses the node, "" if it accepts it. The power interface agent needs fast track and
// an agent that answers.
func (s *Server) powerFault(n *node) string {
	switch {
	case !n.byAgent():
		return n.bmcFault("power")
	case !s.FastTrack:
		return "Fast track mode must be enabled to use the agent power interface"
	case !n.machine.agent:
		return "Agent seems offline for node " + n.str("uuid") + ", the agent power interface cannot be used"
	}
	return ""
}

// byAgent reports whether the node's only control of power is Ironic's agent on the machine, which can restart it and nothing else.
func (n *node) byAgent() bool { return n.uses("power") == "agent" }

// bmcFault returns why the power or management interface cannot reach the BMC, "" if it can.
func (n *node) bmcFault(kind string) string {
	info := object(n.fields["driver_info"])
	switch implementation := n.uses(kind); {
	case implementation == "ipmitool" && text(info["ipmi_address"]) == "":
		return "Missing the following IPMI credentials in node's driver_info: ['ipmi_address']."
	case strings.HasSuffix(implementation, "redfish") && text(info["redfish_address"]) == "":
		return missingRedfishAddress(n)
	}
	return ""
}

// missingRedfishAddress is the error of every Redfish interface without an address.
func missingRedfishAddress(n *node) string {
	return fmt.Sprintf("Missing the following Redfish properties in node %s driver_info: ['redfish_address']", n.str("uuid"))
}

// routeDrivers answers /v1/drivers.
func (s *Server) routeDrivers(c *call) (reply, error) {
	if c.method != http.MethodGet {
		return reply{}, methodNotAllowed("GET")
	}
	switch len(c.path) {
	case 1:
		if err := c.accept("type", "detail", "fields"); err != nil {
			return reply{}, err
		}
		drivers := []any{}
		for _, h := range hardwareTypes {
			drivers = append(drivers, s.showDriver(c, h, c.query.Get("detail") != ""))
		}
		return ok(http.StatusOK, ordered{{"drivers", drivers}}), nil
	case 2:
		h, found := findDriver(c.path[1])
		if !found {
			return reply{}, fault(http.StatusNotFound, "Could not find the following driver(s) or hardware type(s): %s.", c.path[1])
		}
		return ok(http.StatusOK, s.showDriver(c, h, true)), nil
	}
	return reply{}, routerFault(http.StatusNotFound, "")
}

func (s *Server) showDriver(c *call, h hardwareType, detail bool) ordered {
	out := ordered{{"name", h.name}, {"hosts", []any{s.host()}}, {"links", c.links("drivers/" + h.name)}}
	if c.minor >= 30 {
		out = append(out, member{"type", "dynamic"})
	}
	if !detail || c.minor < 30 {
		return out
	}
	for _, kind := range interfaceKinds {
		if kind == "firmware" && c.minor < 86 {
			continue
		}
		out = append(out, member{"default_" + kind + "_interface", h.interfaces[kind][0]},
			member{"enabled_" + kind + "_interfaces", h.interfaces[kind]})
	}
	return out
}

// host is the name of the only conductor as the API shows it.
func (s *Server) host() string {
	if s.legacy() {
		return conductorHost
	}
	return conductorHost + ":8089"
}

// conductorHost is the conductor's name in reservations.
const conductorHost = "localhost"

// routeConductors answers /v1/conductors.
func (s *Server) routeConductors(c *call) (reply, error) {
	if c.minor < 49 {
		if s.legacy() {
			return reply{}, fault(http.StatusNotFound, "Resource could not be found.")
		}
		return reply{}, fault(http.StatusNotFound, "The API is not supported for this version")
	}
	if c.method != http.MethodGet {
		return reply{}, methodNotAllowed("GET")
	}
	show := ordered{
		{"hostname", s.host()},
		{"conductor_group", ""},
		{"alive", true},
		{"created_at", timestamp(s.now)},
		{"updated_at", timestamp(s.now)},
		{"links", c.links("conductors/" + s.host())},
	}
	switch {
	case len(c.path) == 1:
		return ok(http.StatusOK, ordered{{"conductors", []any{show}}}), nil
	case len(c.path) == 2 && c.path[1] == s.host():
		names := []string{}
		for _, h := range hardwareTypes {
			names = append(names, h.name)
		}
		return ok(http.StatusOK, append(show, member{"drivers", names})), nil
	}
	return reply{}, fault(http.StatusNotFound, "Conductor %s could not be found.", c.path[len(c.path)-1])
}
