package fakeironic

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// BIOSSetting is a BIOS setting of a machine, with its registry.
type BIOSSetting struct {
	Name, Value  string
	Type         string   // attribute_type: "Enumeration", "String", "Integer", "Boolean", "Password"; "" means no registry
	Allowed      []string // of an Enumeration
	Lower, Upper any      // bounds of an Integer, lengths of a String; nil means none
	ReadOnly     bool
}

// component is a part of a machine with firmware.
type component struct{ initial, current, flashed string }

// SetBIOS replaces the BIOS settings of a node. It does nothing if the node does not exist.
func (s *Server) SetBIOS(ref string, all ...BIOSSetting) {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		n.machine.bios = map[string]BIOSSetting{}
		for _, setting := range all {
			n.machine.bios[setting.Name] = setting
		}
	}
}

// BIOS returns the values of the BIOS settings of a node.
func (s *Server) BIOS(ref string) map[string]string {
	defer s.lock()()
	values := map[string]string{}
	if n := s.find(ref); n != nil {
		for name, setting := range n.biosSettings() {
			values[name] = setting.Value
		}
	}
	return values
}

// SetFirmware sets the version of a firmware component of a node. It does nothing if the node does not exist.
func (s *Server) SetFirmware(ref, name, version string) {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		n.components()[name] = &component{initial: version, current: version}
	}
}

// FirmwareVersion returns the version that the fake's machines report after an update from a URL: what follows the last "-" or "_" of
// the file's name, without its extension. So bios-2.19.1.bin contains version 2.19.1.
func FirmwareVersion(url string) string {
	name := path.Base(url)
	name = strings.TrimSuffix(name, path.Ext(name))
	return name[strings.LastIndexAny(name, "-_")+1:]
}

// real reports whether an interface of the node drives hardware.
func (n *node) real(kind string) bool {
	return n.uses(kind) != "fake" && !strings.HasPrefix(n.uses(kind), "no-")
}

// biosSettings returns the BIOS settings of the machine. Machines with a BMC have some until they are set.
func (n *node) biosSettings() map[string]BIOSSetting {
	if n.machine.bios == nil {
		n.machine.bios = map[string]BIOSSetting{}
		if n.real("bios") {
			for _, setting := range sampleBIOS {
				n.machine.bios[setting.Name] = setting
			}
		}
	}
	return n.machine.bios
}

// sampleBIOS are the BIOS settings of a machine at first.
var sampleBIOS = []BIOSSetting{
	{Name: "AssetTag", Type: "String", Lower: 0, Upper: 63},
	{Name: "BootMode", Value: "Uefi", Type: "Enumeration", Allowed: []string{"Bios", "Uefi"}},
	{Name: "LogicalProc", Value: "Enabled", Type: "Enumeration", Allowed: []string{"Enabled", "Disabled"}},
	{Name: "NumberOfCores", Value: "0", Type: "Integer", Lower: 0, Upper: 64},
	{Name: "ProcVirtualization", Value: "Disabled", Type: "Enumeration", Allowed: []string{"Enabled", "Disabled"}},
	{Name: "SystemServiceTag", Value: "TAG0001", Type: "String", ReadOnly: true},
}

// components returns the firmware components of the machine. Machines with a BMC have some until they are set.
func (n *node) components() map[string]*component {
	if n.machine.firmware == nil {
		n.machine.firmware = map[string]*component{}
		if n.real("firmware") {
			n.machine.firmware["bios"] = &component{initial: "2.18.0", current: "2.18.0"}
			n.machine.firmware["bmc"] = &component{initial: "7.00.00", current: "7.00.00"}
		}
	}
	return n.machine.firmware
}

// showBIOS answers GET /v1/nodes/{node}/bios.
func (s *Server) showBIOS(c *call, n *node) (reply, error) {
	if (c.query.Has("detail") || c.query.Has("fields")) && c.minor < 74 {
		return reply{}, notAcceptable()
	}
	if err := c.accept("detail", "fields"); err != nil {
		return reply{}, err
	}
	detailed, _ := parseBool(c.query.Get("detail"))
	list := []any{}
	for _, name := range sortedKeys(n.biosSettings()) {
		setting := n.machine.bios[name]
		shown := ordered{
			{"created_at", timestamp(s.now)},
			{"updated_at", nil},
			{"name", name},
			{"value", setting.Value},
			{"links", c.links("nodes/" + n.str("uuid") + "/bios/" + name)},
		}
		if detailed {
			shown = append(shown, setting.registry()...)
		}
		list = append(list, shown)
	}
	return ok(http.StatusOK, ordered{{"bios", list}}), nil
}

// registry returns the members that only a registry fills.
func (b BIOSSetting) registry() ordered {
	entry := map[string]any{}
	if b.Type != "" {
		entry["attribute_type"], entry["read_only"], entry["reset_required"], entry["unique"] = b.Type, b.ReadOnly, true, false
	}
	if b.Allowed != nil {
		entry["allowable_values"] = b.Allowed
	}
	switch b.Type {
	case "Integer":
		entry["lower_bound"], entry["upper_bound"] = b.Lower, b.Upper
	case "String":
		entry["min_length"], entry["max_length"] = b.Lower, b.Upper
	}
	var out ordered
	for _, key := range []string{"attribute_type", "allowable_values", "lower_bound", "max_length", "min_length", "read_only", "reset_required", "unique", "upper_bound"} {
		out = append(out, member{key, entry[key]})
	}
	return out
}

// showFirmware answers GET /v1/nodes/{node}/firmware.
func (s *Server) showFirmware(n *node) reply {
	list := []any{}
	for _, name := range sortedKeys(n.components()) {
		part := n.machine.firmware[name]
		list = append(list, ordered{
			{"created_at", timestamp(s.now)},
			{"updated_at", nil},
			{"component", name},
			{"initial_version", part.initial},
			{"current_version", part.current},
			{"last_version_flashed", orNull(part.flashed)},
		})
	}
	return ok(http.StatusOK, ordered{{"firmware", list}})
}

// runSteps plans the steps of a manual cleaning or a service. run executes those before the first that fails. defect says how that
// one fails, and executing whether it had begun.
func (s *Server) runSteps(n *node, steps []any, service bool) (run func(n *node), defect string, executing bool) {
	var effects []func(n *node)
	run = func(n *node) {
		for _, effect := range effects {
			effect(n)
		}
	}
	for _, item := range steps {
		step := object(item)
		kind, name := stepName(step)
		if s.Skips != nil && s.Skips(kind+"."+name) {
			continue
		}
		if defect, executing = s.stepDefect(n, step); service && defect != "" {
			return run, fmt.Sprintf("Node %s failed step {'interface': '%s', 'step': '%s'}: the %s interface has no attribute '%s'",
				n.str("uuid"), kind, name, kind, name), true
		}
		if defect != "" {
			return run, defect, executing
		}
		if effect := n.effect(kind, name, object(clone(step["args"]))); effect != nil {
			effects = append(effects, effect)
		}
	}
	return run, "", false
}

// effect returns what a step does to the machine; nil if nothing.
func (n *node) effect(kind, name string, args map[string]any) func(n *node) {
	list, _ := args["settings"].([]any)
	switch kind + "." + name {
	case "bios.apply_configuration":
		return func(n *node) { n.applyBIOS(list) }
	case "bios.factory_reset":
		return func(n *node) { n.machine.bios = nil }
	case "raid.delete_configuration":
		return func(n *node) { n.put("raid_config", map[string]any{"logical_disks": []any{}}) }
	case "raid.create_configuration":
		return func(n *node) { n.createVolumes() }
	case "firmware.update":
		if n.real("firmware") {
			return func(n *node) { n.updateFirmware(list) }
		}
	}
	return nil
}

// applyBIOS changes BIOS settings. The interface fake has no machine: it keeps exactly the settings of the last step.
func (n *node) applyBIOS(list []any) {
	before := n.biosSettings()
	if !n.real("bios") {
		before = maps.Clone(before)
		for name, setting := range n.machine.bios {
			if setting.Type == "" {
				delete(before, name)
			}
		}
	}
	for _, item := range list {
		name := text(object(item)["name"])
		setting := before[name]
		setting.Name, setting.Value = name, pyText(object(item)["value"])
		before[name] = setting
	}
	n.machine.bios = before
}

// createVolumes adds the volumes of target_raid_config. A root volume changes the properties of the node, as in Ironic.
func (n *node) createVolumes() {
	wanted, _ := object(clone(n.fields["target_raid_config"]))["logical_disks"].([]any)
	have, _ := object(clone(n.fields["raid_config"]))["logical_disks"].([]any)
	for _, item := range wanted {
		volume := object(item)
		if volume["size_gb"] == "MAX" {
			volume["size_gb"] = 894.0
		}
		volume["id"] = fmt.Sprintf("Disk.Virtual.%d", len(have))
		have = append(have, volume)
		if volume["is_root_volume"] == true {
			properties := object(clone(n.fields["properties"]))
			properties["local_gb"] = volume["size_gb"]
			entries := slices.DeleteFunc(strings.Split(text(properties["capabilities"]), ","), func(entry string) bool {
				return entry == "" || strings.HasPrefix(entry, "raid_level:")
			})
			properties["capabilities"] = strings.Join(append(entries, "raid_level:"+text(volume["raid_level"])), ",")
			n.put("properties", properties)
		}
	}
	n.put("raid_config", map[string]any{"logical_disks": have, "last_updated": "2026-01-01 12:00:00"})
}

// updateFirmware gives components the versions of their images.
func (n *node) updateFirmware(list []any) {
	for _, item := range list {
		update := object(item)
		if part := n.components()[text(update["component"])]; part != nil {
			part.current = FirmwareVersion(text(update["url"]))
			part.flashed = part.current
		}
	}
}

// hardwareDefect returns how a step fails on a machine with a BMC; "" if it succeeds.
func (n *node) hardwareDefect(kind, name string, step map[string]any) string {
	list, _ := object(step["args"])["settings"].([]any)
	switch {
	case kind == "bios" && name == "apply_configuration" && n.real("bios"):
		var invalid []string
		for _, item := range list {
			setting, known := n.biosSettings()[text(object(item)["name"])]
			if !known || !setting.accepts(object(item)["value"]) {
				invalid = append(invalid, text(object(item)["name"]))
			}
		}
		if len(invalid) > 0 {
			return fmt.Sprintf("Redfish BIOS apply_configuration failed for node %s: invalid value for setting(s): %s", n.str("uuid"), strings.Join(invalid, ", "))
		}
	case kind == "raid" && name == "create_configuration" && len(object(n.fields["target_raid_config"])) == 0:
		return fmt.Sprintf("Node %s has no target RAID configuration.", n.str("uuid"))
	case kind == "firmware" && n.real("firmware"):
		for _, item := range list {
			if part := text(object(item)["component"]); n.components()[part] == nil {
				return fmt.Sprintf("Firmware update failed for node %s: component %s not found", n.str("uuid"), part)
			}
		}
	}
	return ""
}

// accepts reports whether a BMC accepts a value, which must have the type of the registry.
func (b BIOSSetting) accepts(value any) bool {
	within := func(number float64) bool {
		bound := func(limit any, otherwise float64) float64 {
			if limit == nil {
				return otherwise
			}
			parsed, _ := strconv.ParseFloat(fmt.Sprint(limit), 64) // bounds are numbers
			return parsed
		}
		return number >= bound(b.Lower, number) && number <= bound(b.Upper, number)
	}
	switch b.Type {
	case "Enumeration":
		return slices.Contains(b.Allowed, text(value)) && !b.ReadOnly
	case "Integer":
		number, isNumber := value.(float64)
		return isNumber && within(number) && !b.ReadOnly
	case "Boolean":
		_, isBool := value.(bool)
		return isBool && !b.ReadOnly
	case "String":
		return !b.ReadOnly && within(float64(len(text(value))))
	}
	return !b.ReadOnly
}
