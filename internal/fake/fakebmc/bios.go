package fakebmc

import (
	"fmt"
	"slices"
	"time"
)

// setting is a BIOS setting, as the attribute registry describes it.
type setting struct {
	name, kind string // Enumeration, Integer, String or Boolean
	standard   any
	values     []string // of an Enumeration
	low, high  float64  // of an Integer
	longest    int      // of a String
	readOnly   bool
}

// settings are the BIOS settings of every machine.
var settings = []setting{
	{name: "BootMode", kind: "Enumeration", standard: "Uefi", values: []string{"Uefi", "Bios"}},
	{name: "NumLock", kind: "Boolean", standard: true},
	{name: "PowerProfile", kind: "Enumeration", standard: "Balanced", values: []string{"Balanced", "Performance", "Saving"}},
	{name: "ProcTurboMode", kind: "Enumeration", standard: "Enabled", values: []string{"Enabled", "Disabled"}},
	{name: "ProcVirtualization", kind: "Enumeration", standard: "Enabled", values: []string{"Enabled", "Disabled"}},
	{name: "QuietBootDelay", kind: "Integer", standard: 5.0, low: 0, high: 60},
	{name: "AssetTag", kind: "String", standard: "", longest: 32},
	{name: "BoardRevision", kind: "String", standard: "A2", readOnly: true},
}

const biosRegistry = "BiosAttributeRegistryContoso.v1_0_0"

func biosDefaults() object {
	values := object{}
	for _, s := range settings {
		values[s.name] = s.standard
	}
	return values
}

func (s setting) check(value any) bool {
	switch s.kind {
	case "Enumeration":
		text, _ := value.(string)
		return slices.Contains(s.values, text)
	case "Integer":
		number, valid := value.(float64)
		return valid && number == float64(int(number)) && s.low <= number && number <= s.high
	case "Boolean":
		_, valid := value.(bool)
		return valid
	}
	text, valid := value.(string)
	return valid && len(text) <= s.longest
}

func changeBIOS(c *call) *fault {
	wanted, _ := c.body["Attributes"].(object)
	for key, value := range wanted {
		at := slices.IndexFunc(settings, func(s setting) bool { return s.name == key })
		switch {
		case at < 0:
			return about("Attributes/"+key, "PropertyUnknown",
				"The property %s is not in the list of valid properties for the resource.", key)
		case settings[at].readOnly:
			return notWritable("Attributes/" + key)
		case !settings[at].check(value):
			return badProperty("Attributes/"+key, value)
		}
	}
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	for key, value := range wanted {
		c.bmc.bios.pending[key] = value
	}
	return nil
}

// resetBIOS answers the action Bios.ResetBios: the next boot applies the defaults.
func resetBIOS(c *call) (reply, *fault) {
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	c.bmc.bios.pending = biosDefaults()
	return done(nil)
}

func (b *BMC) applyBIOS() {
	if len(b.bios.pending) == 0 {
		return
	}
	for key, value := range b.bios.pending {
		b.bios.now[key] = value
	}
	b.bios.pending, b.bios.applied = object{}, time.Now()
	b.note(Configured, "BIOS settings")
}

func biosDocument(c *call) object {
	b := c.bmc
	b.mu.Lock()
	defer b.mu.Unlock()
	path := b.Path() + "/Bios"
	next := object{
		"@odata.type": "#Settings.v1_3_0.Settings", "SettingsObject": link(path + "/Settings"), "SupportedApplyTimes": []string{"OnReset"},
	}
	if !b.bios.applied.IsZero() {
		next["Time"] = b.bios.applied.UTC().Format(time.RFC3339)
		next["Messages"] = []object{success()}
	}
	return document(path, "Bios.v1_1_0", "BIOS", object{
		"AttributeRegistry": biosRegistry, "Attributes": clone(b.bios.now), "@Redfish.Settings": next,
		"Actions": object{"#Bios.ResetBios": object{"target": path + "/Actions/Bios.ResetBios"}},
	})
}

// pendingDocument shows the settings that the next boot applies.
func pendingDocument(c *call) object {
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	return document(c.bmc.Path()+"/Bios/Settings", "Bios.v1_1_0", "Pending BIOS settings", object{
		"AttributeRegistry": biosRegistry, "Attributes": clone(c.bmc.bios.pending),
	})
}

func clone(values object) object {
	copied := object{}
	for key, value := range values {
		copied[key] = value
	}
	return copied
}

func biosRegistryDocument(c *call) object {
	var attributes []object
	for _, s := range settings {
		entry := object{
			"AttributeName": s.name, "DisplayName": s.name, "Type": s.kind, "DefaultValue": s.standard, "ReadOnly": s.readOnly,
			"Immutable": s.readOnly, "ResetRequired": true, "IsSystemUniqueProperty": false,
		}
		switch s.kind {
		case "Enumeration":
			var values []object
			for _, v := range s.values {
				values = append(values, object{"ValueName": v, "ValueDisplayName": v})
			}
			entry["Value"] = values
		case "Integer":
			entry["LowerBound"], entry["UpperBound"] = s.low, s.high
		case "String":
			entry["MinLength"], entry["MaxLength"] = 0, s.longest
		}
		attributes = append(attributes, entry)
	}
	return document(c.path, "AttributeRegistry.v1_3_2", "BIOS attribute registry", object{
		"Id": biosRegistry, "Language": "en", "OwningEntity": "Contoso", "RegistryVersion": "1.0.0",
		"RegistryEntries": object{"Attributes": attributes},
	})
}

// messages are those of the Base registry that this BMC sends.
var messages = map[string]string{
	"Success": "Successfully Completed Request", "GeneralError": "A general error has occurred.",
	"PropertyUnknown": "The property %1 is not in the list of valid properties for the resource.",
}

func baseRegistryDocument(c *call) object {
	entries := object{}
	for id, text := range messages {
		severity, number := "Critical", 0
		if id == "Success" {
			severity = "OK"
		}
		if id == "PropertyUnknown" {
			number = 1
		}
		entries[id] = object{
			"Description": text, "Message": text, "NumberOfArgs": number, "Resolution": "None", "Severity": severity,
			"MessageSeverity": severity,
		}
	}
	return document(c.path, "MessageRegistry.v1_4_0", "Base message registry", object{
		"Id": base + ".0", "Language": "en", "OwningEntity": "DMTF", "RegistryPrefix": "Base", "RegistryVersion": "1.5.0",
		"Messages": entries,
	})
}

var registries = map[string]string{biosRegistry: biosRegistry, base + ".0": base}

func registryDocument(c *call) object {
	return document(c.path, "MessageRegistryFile.v1_1_3", c.name, object{
		"Registry": registries[c.name], "Languages": []string{"en"},
		"Location": []object{{"Language": "en", "Uri": fmt.Sprintf("%s/%s.json", c.path, c.name)}},
	})
}
