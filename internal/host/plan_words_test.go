package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
)

// story is a host, what Terraform has of it, and a configuration, as words: "state=available power=on" and "target_state=available
// inspect".
type story struct {
	t    *testing.T
	wish host.Wish
	seen host.Seen
}

// tell returns the wish and the sight of a host. Unless the words say otherwise, it is a managed host in the state manageable that was
// applied with target_state = "manageable", was inspected, is off, and is to stay so.
func tell(t *testing.T, wish, seen string) (host.Wish, host.Seen) {
	t.Helper()
	s := story{t: t}
	managed := decide.Known(true)
	s.wish = host.Wish{
		Label: "r1", AnyDriver: true, BMC: true, Driver: decide.Known("redfish"), AddressAt: decide.At("bmc", "address"),
		HardwareKnown: true, PowerManaged: managed,
	}
	s.seen = host.Seen{
		State: "manageable", Target: "manageable", Driver: "redfish", BMC: true, PowerManaged: managed,
		Power: decide.Known("off"), Notes: host.Notes{Applied: true, Inspected: true},
	}
	s.wish.Target = decide.Known("manageable")
	for word := range strings.FieldsSeq(seen) {
		s.see(word)
	}
	for word := range strings.FieldsSeq(wish) {
		s.want(word)
	}
	return s.wish, s.seen
}

// value is what a configuration says: a text, or "?" for a value that is not known yet.
func value(text string) decide.Value[string] {
	if text == "?" {
		return decide.Unknown[string]()
	}
	return decide.Known(text)
}

// replacedOf is what was replaced, such as "machine:2", or "?".
func replacedOf(text string) decide.Value[host.Replaced] {
	if text == "?" {
		return decide.Unknown[host.Replaced]()
	}
	part, on, _ := strings.Cut(text, ":")
	return decide.Known(host.Replaced{Part: host.ReplacedPart(part), On: on})
}

func flag(text string) decide.Value[bool] {
	if text == "?" {
		return decide.Unknown[bool]()
	}
	return decide.Known(text == "" || text == "true")
}

// hardware is a configuration of hardware settings: "bios", "raid", "raid!" (delete_existing) and "firmware", with commas.
func hardwareOf(text string) (h host.Hardware) {
	for part := range strings.SplitSeq(text, ",") {
		switch part {
		case "bios":
			h.BIOS = map[string]string{"Boot": "Uefi"}
		case "raid", "raid!":
			h.RAID = &host.RAID{DeleteExisting: part == "raid!", Volumes: []ironic.LogicalDisk{{Level: "1", SizeGB: "MAX"}}}
		case "soft":
			h.RAID = &host.RAID{DeleteExisting: true, Volumes: []ironic.LogicalDisk{{Level: "1", SizeGB: "MAX", Controller: "software"}}}
		case "firmware":
			h.Firmware = map[string]host.Firmware{"bios": {URL: "http://f/1", Version: "1"}}
		}
	}
	return h
}

// hintsOf reads hints: "serial:A,volume_name:osd". A "_" is a blank in the value.
func hintsOf(text string) (hints []disks.Hint) {
	for hint := range strings.SplitSeq(text, ",") {
		if key, value, is := strings.Cut(hint, ":"); is {
			hints = append(hints, disks.Hint{key: strings.ReplaceAll(value, "_", " ")})
		}
	}
	return hints
}

// runbookOf is what was looked up of a cleaning runbook: one that erases and fits the traits of the node, unless the text says otherwise.
func runbookOf(text string) *host.Runbook {
	r := &host.Runbook{
		Found: &ironic.Procedure{
			Name: "CUSTOM_WIPE", Traits: []string{"CUSTOM_WIPE"},
			Steps: []ironic.Step{{Interface: "deploy", Step: "erase_devices"}},
		},
		First: true, Server: 115, HasTraits: true, Traits: decide.Known([]string{"CUSTOM_WIPE"}),
	}
	switch text {
	case "missing":
		r.Found = nil
	case "hidden":
		r.Found, r.Hidden = nil, "Ask for it."
	case "open":
		r.Found, r.Open = &ironic.Procedure{}, true
	case "known":
		r.First = false
	case "misfit":
		r.Traits = decide.Known([]string{"CUSTOM_OTHER"})
	case "without-traits":
		r.Found.Traits = nil
	case "named":
		r.HasTraits, r.Found.Traits, r.Server = false, nil, 111
	case "for-unknown-traits":
		r.Found.Traits, r.Traits = nil, decide.Unknown[[]string]()
	case "deploys":
		r.Found.Steps = append(r.Found.Steps, ironic.Step{Interface: "deploy", Step: "write_image"})
	case "keeps":
		r.Found.Steps = []ironic.Step{{Interface: "bios", Step: "factory_reset"}}
	case "foreign":
		r.Found.Owner = "other"
	case "old":
		r.HasTraits, r.Server = false, 99
	}
	return r
}

// differs is a comparison that has found differences: "bios", "read-only", "gone", "raid" and "firmware", with commas; "nothing" finds
// none.
func differs(text string) *host.HardwareComparison {
	c := &host.HardwareComparison{}
	for part := range strings.SplitSeq(text, ",") {
		d := host.HardwareDifference{
			Part: host.PartBIOS, Name: "Boot", Declared: "Uefi", Found: "Bios", ReadOnly: part == "read-only",
			Gone: part == "gone",
		}
		switch part {
		case "nothing":
			continue
		case "raid":
			d = host.HardwareDifference{Part: host.PartRAID, Declared: "RAID 1 of the rest of the space", Found: "RAID 0 of 100 GiB"}
		case "firmware":
			d = host.HardwareDifference{Part: host.PartFirmware, Name: "bios", Declared: "1", Found: "2"}
		}
		c.Differences = append(c.Differences, d)
	}
	return c
}

func (s *story) want(word string) {
	name, text, _ := strings.Cut(word, "=")
	w := &s.wish
	switch name {
	case "target_state":
		w.Target, w.TargetSet = value(text), true
	case "inspect":
		w.Inspect = flag(text)
	case "secure_boot":
		w.SecureBoot, w.Writes = decide.Known(true), true
	case "inspect_triggers":
		w.Triggers = value(text)
	case "replaced":
		w.Replaced = replacedOf(text)
	case "power_state":
		w.Power = value(text)
	case "disable_power_off":
		w.NeverOff = true
	case "automated_clean":
		w.AutomatedClean = flag(text)
	case "boot_mode":
		w.BootMode = value(text)
	case "cleaning_runbook":
		w.Runbook = value(text)
	case "skip_block_devices": // HINT:VALUE, with commas
		w.Skips, w.Writes = decide.Value[[]disks.Hint]{V: hintsOf(text), Set: text != "?", Unknown: text == "?"}, true
	case "root_device":
		w.RootDevice = decide.Known(map[string]string(hintsOf(text)[0]))
	case "traits":
		w.TraitsChange = true
	case "console":
		w.Console = value(text)
	case "maintenance":
		w.Maintenance, w.Held = flag(text), text != "false"
	case "retired":
		w.Retired, w.RetiredSet = flag(text), flag(text)
	case "hardware":
		w.Hardware = hardwareOf(text)
	case "hardware_drift":
		w.HardwareDrift = decide.Value[host.HardwareDrift]{V: host.HardwareDrift(text), Set: text != "?", Unknown: text == "?"}
	case "on_active":
		w.ServicesActive = flag(strings.Replace(text, "service", "true", 1))
	case "resource_class":
		w.Class = text
	case "description":
		w.Writes = true
	case "interfaces":
		w.InterfacesMove, w.Writes = true, true
	case "sets", "had": // KIND:NAME by the configuration, and by the one before; "had" without it is not set any more
		kind, name, _ := strings.Cut(text, ":")
		if w.Interfaces == nil {
			w.Interfaces, w.InterfacesMove = map[string]host.Interface{}, true
		}
		is := w.Interfaces[kind]
		if is.Was = is.Was || word == "had="+text; name != "" {
			is.Name = value(name)
		}
		w.Interfaces[kind] = is
	case "driver":
		w.Driver, w.InterfacesMove, w.Writes = value(text), true, true
	case "no-bmc":
		w.BMC, w.PowerManaged = false, decide.Known(false)
	case "no-driver":
		w.BMC, w.AnyDriver, w.PowerManaged = false, false, decide.Known(false)
	case "new-bmc":
		w.BMC, w.PowerManaged, w.Writes = true, decide.Known(true), true
	case "power_control":
		w.ByAgent, w.BMC, w.PowerManaged = true, false, decide.Known(false)
	default:
		s.t.Fatalf("no wish %q", word)
	}
}

func (s *story) see(word string) {
	name, text, _ := strings.Cut(word, "=")
	seen := &s.seen
	switch name {
	case "new":
		*seen = host.Seen{New: true}
		s.wish.Target = decide.Value[string]{}
	case "state":
		seen.State = ironic.State(strings.ReplaceAll(text, "-", " "))
	case "target":
		seen.Target, s.wish.Target = text, decide.Known(text)
	case "power":
		seen.Power = value(text)
	case "no-power":
		seen.Power = decide.Value[string]{}
	case "reserved":
		seen.Instance, seen.Allocated = "i1", text == "allocation"
	case "retired":
		seen.Retired, s.wish.Retired = true, decide.Known(true)
	case "replaced":
		seen.Replaced, s.wish.Replaced = replacedOf(text), replacedOf(text)
	case "replacing":
		text, instance, _ := strings.Cut(text, ",")
		seen.Replacing = &host.Replacing{Replaced: replacedOf(text).V, Instance: instance}
	case "lost": // its record; the text is what its state was
		seen.New, seen.Missing = true, ironic.State(text)
	case "anew":
		seen.Anew = true
	case "undeploys":
		seen.Undeploys = true
	case "executed":
		seen.Executed = replacedOf(text).V.Fingerprint()
	case "protected":
		seen.Protected = true
	case "quarantine":
		seen.Quarantine = text
	case "out-of-service":
		seen.OutOfService = true
	case "settled":
		seen.Settled = true
	case "in-use":
		seen.InUse = &host.InUse{Why: "profile p", Error: "profile p"}
	case "imported":
		seen.Notes = host.Notes{}
	case "coming":
		seen.Coming = true
	case "not-inspected":
		seen.Inspected = false
	case "pending":
		seen.Pending = text
	case "triggers":
		seen.Triggers = value(text)
	case "unverified":
		seen.Unverified = true
	case "no-bmc":
		seen.BMC, seen.PowerManaged = false, decide.Known(false)
		s.wish.BMC, s.wish.PowerManaged = false, decide.Known(false)
	case "skip_block_devices":
		seen.Skips = hintsOf(text)
		s.wish.Skips = decide.Known(seen.Skips)
	case "disks": // serial numbers, with commas
		for i, serial := range strings.Split(text, ",") {
			seen.Disks = append(seen.Disks, ironic.Disk{Name: fmt.Sprintf("/dev/sd%c", 'a'+i), Serial: serial, Size: 50 << 30})
		}
	case "hardware":
		seen.Hardware, seen.OnMachine = hardwareOf(text), hardwareOf(text)
		s.wish.Hardware = hardwareOf(text)
	case "hardware_drift":
		seen.HardwareDrift = host.HardwareDrift(text)
		s.wish.HardwareDrift = decide.Known(seen.HardwareDrift)
	case "differs":
		seen.Compared = differs(text)
	case "differs-now":
		seen.ComparedNow = differs(text)
	case "came-back":
		seen.Compared = differs(text)
		seen.Compared.Repeated = seen.Compared.Differences
	case "configured":
		seen.Hardware, s.wish.Hardware = hardwareOf(text), hardwareOf(text)
	case "network":
		seen.Network = &ramdisk.NetworkBoot{Interface: text, Ports: map[string]*bool{}}
	case "console":
		seen.Console = value(text)
	case "console-now":
		is, console, _ := strings.Cut(text, ":")
		seen.Answers.Console = &host.ConsoleNow{Interface: console, Enabled: is == "enabled", Moves: s.wish.ConsoleMoves}
	case "has": // an interface: its kind, its name, and what else the site has
		kind, name, _ := strings.Cut(text, ":")
		name, others, _ := strings.Cut(name, ":")
		if seen.Functions == nil {
			seen.Functions = map[string]host.Function{}
		}
		seen.Functions[kind] = host.Function{Name: name, Others: strings.FieldsFunc(others, func(r rune) bool { return r == ',' })}
	case "moves":
		s.wish.ConsoleMoves, s.wish.Writes = true, true
	case "changes":
		kind, from, _ := strings.Cut(text, ":")
		from, to, _ := strings.Cut(from, ">")
		seen.Interfaces = append(seen.Interfaces, host.InterfaceChange{Kind: kind, From: from, To: to})
	case "boots":
		seen.BootInterface = value(text)
	case "address":
		seen.Address = text
	case "powers":
		seen.Powers = []string{text}
	case "class":
		seen.Class, s.wish.Class = text, text
	case "discovered":
		seen.TakesOver = text
	case "cleaning_runbook":
		seen.Runbook, s.wish.Runbook = value(text), value(text)
	case "runbook":
		seen.Runbooks = runbookOf(text)
	default:
		s.t.Fatalf("no sight %q", word)
	}
}

// words says what a plan does: its steps with their costs.
func words(p host.Plan) string {
	costs := map[decide.Cost]string{decide.Restart: ": restart", decide.Clean: ": clean", decide.Wipe: ": wipe"}
	var all []string
	for _, step := range p.Steps {
		text := string(step.Do)
		if step.Do == host.DoWalk || step.Do == host.DoVerify {
			text += " to " + string(step.Goal)
		}
		for _, part := range step.Parts {
			text += " " + string(part)
		}
		if step.Power != "" {
			text += " " + step.Power
		}
		all = append(all, text+costs[step.Cost])
	}
	return strings.Join(all, ", ")
}

// said returns the summaries of the notices of a plan; a refusal begins with "!".
func said(p host.Plan) string {
	var all []string
	for _, n := range p.Notices {
		summary := n.Summary
		if n.Severity == decide.Refusal {
			summary = "!" + summary
		}
		all = append(all, summary)
	}
	return strings.Join(all, ", ")
}

// describe tells a failed property.
func describe(w host.Wish, s host.Seen, p host.Plan) string {
	return fmt.Sprintf("wish %+v\nseen %+v\nsteps: %s\nnotices: %s", w, s, words(p), said(p))
}
