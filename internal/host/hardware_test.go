package host

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

func settings(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func volumes(sizes ...any) *RAID {
	raid := &RAID{Volumes: []ironic.LogicalDisk{}}
	for _, size := range sizes {
		raid.Volumes = append(raid.Volumes, ironic.LogicalDisk{Level: "1", SizeGB: size})
	}
	return raid
}

func seenBIOS(values map[string]string) HardwareSeen {
	seen := HardwareSeen{BIOS: map[string]ironic.BIOSSetting{}}
	for name, value := range values {
		seen.BIOS[name] = ironic.BIOSSetting{Name: name, Value: value}
	}
	return seen
}

// Only what differs from what was applied and from what the machine has is sent; BIOS settings are sent all together.
func TestHardware_sendsWhatTheMachineLacks(t *testing.T) {
	t.Parallel()
	image := func(url, version string) map[string]Firmware { return map[string]Firmware{"bios": {url, version}} }
	for name, tt := range map[string]struct {
		want, applied Hardware
		seen          HardwareSeen
		work          Hardware
	}{
		"nothing is managed": {},
		"new settings": {
			want: Hardware{BIOS: settings("A", "1", "B", "2")}, applied: Hardware{BIOS: settings("A", "1")},
			work: Hardware{BIOS: settings("A", "1", "B", "2")},
		},
		"applied settings": {want: Hardware{BIOS: settings("A", "1")}, applied: Hardware{BIOS: settings("A", "1")}},
		"fewer settings":   {want: Hardware{BIOS: settings("A", "1")}, applied: Hardware{BIOS: settings("A", "1", "B", "2")}},
		"drift is ignored": {
			want: Hardware{BIOS: settings("A", "1")}, applied: Hardware{BIOS: settings("A", "1")},
			seen: seenBIOS(settings("A", "2")),
		},
		"the machine has them": {want: Hardware{BIOS: settings("A", "1")}, seen: seenBIOS(settings("A", "1", "B", "2"))},
		"the machine has some": {
			want: Hardware{BIOS: settings("A", "1", "B", "2")}, seen: seenBIOS(settings("A", "1", "B", "1")),
			work: Hardware{BIOS: settings("A", "1", "B", "2")},
		},
		"new volumes":     {want: Hardware{RAID: volumes(int64(100))}, work: Hardware{RAID: volumes(int64(100))}},
		"applied volumes": {want: Hardware{RAID: volumes(int64(100))}, applied: Hardware{RAID: volumes(100.0)}},
		"same volumes":    {want: Hardware{RAID: volumes("MAX", int64(100))}, seen: HardwareSeen{RAID: volumes(100.0, 894.0).Volumes}},
		"other volumes": {
			want: Hardware{RAID: volumes(int64(100))}, seen: HardwareSeen{RAID: volumes(200.0).Volumes},
			work: Hardware{RAID: volumes(int64(100))},
		},
		"an additional volume": {
			want: Hardware{RAID: volumes(int64(100))}, seen: HardwareSeen{RAID: volumes(100.0, 100.0).Volumes},
			work: Hardware{RAID: volumes(int64(100))},
		},
		"deletion":         {want: Hardware{RAID: volumes()}, work: Hardware{RAID: volumes()}},
		"deletion is done": {want: Hardware{RAID: volumes()}, applied: Hardware{RAID: volumes()}},
		"new version": {
			want: Hardware{Firmware: image("u", "2")}, applied: Hardware{Firmware: image("u", "1")},
			seen: HardwareSeen{Firmware: settings("bios", "1")},
			work: Hardware{Firmware: image("u", "2")},
		},
		"equal version":         {want: Hardware{Firmware: image("v", "1")}, applied: Hardware{Firmware: image("u", "1")}},
		"the machine has it":    {want: Hardware{Firmware: image("u", "2")}, seen: HardwareSeen{Firmware: settings("bios", "2")}},
		"equal URL, no version": {want: Hardware{Firmware: image("u", "")}, applied: Hardware{Firmware: image("u", "1")}},
		"other URL, no version": {
			want: Hardware{Firmware: image("v", "")}, applied: Hardware{Firmware: image("u", "1")},
			work: Hardware{Firmware: image("v", "")},
		},
		"version for equal URL": {
			want: Hardware{Firmware: image("u", "2")}, applied: Hardware{Firmware: image("u", "")},
			work: Hardware{Firmware: image("u", "2")},
		},
		"one of two components": {
			want:    Hardware{Firmware: map[string]Firmware{"bios": {"u", "1"}, "bmc": {"w", "3"}}},
			applied: Hardware{Firmware: image("u", "1")}, work: Hardware{Firmware: map[string]Firmware{"bmc": {"w", "3"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.want.Work(tt.applied, tt.seen); !ironic.SameJSON(got, tt.work) {
				t.Errorf("%+v, want %+v", got, tt.work)
			}
		})
	}
}

// After a run, what was open stays as it was before; removed settings are forgotten.
func TestHardware_remembersWhatIsOnTheMachine(t *testing.T) {
	t.Parallel()
	before := Hardware{BIOS: settings("A", "1", "B", "2"), RAID: volumes(1.0), Firmware: map[string]Firmware{"bmc": {"u", "1"}}}
	want := Hardware{BIOS: settings("A", "3"), RAID: volumes(2.0)}
	if got := want.Applied(nil, before); !ironic.SameJSON(got, want) {
		t.Errorf("all applied: %+v", got)
	}
	open := want.Applied(want.Parts(), before)
	if !ironic.SameJSON(open, Hardware{BIOS: settings("A", "1"), RAID: volumes(1.0)}) {
		t.Errorf("nothing applied: %+v", open)
	}
	if got := (Hardware{}).Applied(nil, before); len(got.Parts()) > 0 {
		t.Errorf("nothing managed: %+v", got)
	}
}

// RAID comes before BIOS, and BIOS before firmware. Values have the types of the registry.
func TestHardware_steps(t *testing.T) {
	t.Parallel()
	h := Hardware{
		BIOS: settings("Cores", "8", "Turbo", "True", "Mode", "8"), Firmware: map[string]Firmware{"bmc": {"w", ""}, "bios": {"u", "1"}},
		RAID: &RAID{DeleteExisting: true, Volumes: []ironic.LogicalDisk{{Level: "1", SizeGB: "MAX", Controller: "software"}}},
	}
	steps := h.Steps(HardwareSeen{BIOS: map[string]ironic.BIOSSetting{
		"Cores": {Type: "Integer"}, "Turbo": {Type: "Boolean"},
		"Mode": {Type: "Enumeration"},
	}})
	if got, want := machine.StepNames(ironic.Order{Steps: steps}), "raid.delete_configuration, deploy.erase_devices_metadata, "+
		"raid.create_configuration, bios.apply_configuration, firmware.update"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	bios := []map[string]any{{"name": "Cores", "value": int64(8)}, {"name": "Mode", "value": "8"}, {"name": "Turbo", "value": true}}
	if got := steps[3].Args["settings"]; !reflect.DeepEqual(got, bios) {
		t.Errorf("%v, want %v", got, bios)
	}
	firmware := []map[string]any{{"component": "bios", "url": "u"}, {"component": "bmc", "url": "w"}}
	if got := steps[4].Args["settings"]; !reflect.DeepEqual(got, firmware) {
		t.Errorf("%v, want %v", got, firmware)
	}
}

// The registry decides which BIOS settings are possible. Without one there is no check.
func TestHardware_unfitSettings(t *testing.T) {
	t.Parallel()
	low, high := int64(1), int64(8)
	registry := HardwareSeen{BIOS: map[string]ironic.BIOSSetting{
		"Cores":  {Name: "Cores", Type: "Integer", Value: 4.0, Lower: &low, Upper: &high},
		"Turbo":  {Name: "Turbo", Type: "Boolean", Value: "1"},
		"Mode":   {Name: "Mode", Type: "Enumeration", Value: "Uefi", Allowed: []string{"Uefi", "Bios"}},
		"Tag":    {Name: "Tag", Type: "String", Value: "", MaxLength: &high},
		"Serial": {Name: "Serial", Type: "String", Value: "S1", ReadOnly: true},
		"Secret": {Name: "Secret", Type: "Password"},
	}}
	for setting, want := range map[string]string{
		"Cores=8": "", "Cores=0": "It must be 1 to 8", "Cores=9": "It must be 1 to 8", "Cores=x": "must be a whole number",
		"Turbo=true": "", "Turbo=False": "", "Turbo=on": "It can be true or false", "Mode=Bios": "", "Mode=bios": "It can be Uefi, Bios",
		"Tag=rack": "", "Tag=rack-2-unit-1": "must have at most 8", "Serial=S1": "", "Serial=S2": "is read-only",
		"Secret=x":   "is a password",
		"Modes=Bios": "has no BIOS setting Modes; similar: Mode",
	} {
		name, value, _ := strings.Cut(setting, "=")
		h := Hardware{BIOS: settings(name, value)}
		unfit := h.Unfit(registry)
		if want == "" && len(unfit) > 0 || want != "" && (len(unfit) != 1 || !strings.Contains(unfit[0].Reason, want)) {
			t.Errorf("%s: %v, want %q", setting, unfit, want)
		}
		if unfit := h.Unfit(seenBIOS(settings("Mode", "Uefi"))); unfit != nil {
			t.Errorf("%s without a registry: %v", setting, unfit)
		}
	}
}

// What Ironic has skipped is found when the machine is read back.
func TestHardware_lacks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sent Hardware
		seen HardwareSeen
		want []string
	}{
		"all is there": {
			Hardware{BIOS: settings("A", "1"), RAID: volumes("MAX"), Firmware: map[string]Firmware{"bios": {"u", "2"}, "bmc": {"w", ""}}},
			HardwareSeen{
				BIOS: seenBIOS(settings("A", "1")).BIOS, RAID: volumes(894.0, 1.0).Volumes,
				Firmware: settings("bios", "2", "bmc", "7"),
			},
			nil,
		},
		"nothing is there": {
			Hardware{BIOS: settings("A", "1"), RAID: volumes("MAX"), Firmware: map[string]Firmware{"bios": {"u", ""}}},
			HardwareSeen{},
			[]string{"raid_config is empty", "it lists no BIOS setting A", "it lists no firmware component bios"},
		},
		"too few volumes": {
			Hardware{RAID: volumes(1.0, 2.0)},
			HardwareSeen{RAID: volumes(1.0).Volumes},
			[]string{"raid_config has 1 volumes, not 2"},
		},
		"volumes are left": {
			Hardware{RAID: volumes()},
			HardwareSeen{RAID: volumes(1.0).Volumes},
			[]string{"raid_config has 1 volumes, not 0"},
		},
		"other BIOS value": {
			Hardware{BIOS: settings("A", "1")},
			seenBIOS(settings("A", "2")),
			[]string{`the BIOS setting A is "2", not "1"`},
		},
		"other version": {
			Hardware{Firmware: map[string]Firmware{"bios": {"u", "2"}}},
			HardwareSeen{Firmware: settings("bios", "1")},
			[]string{`the firmware of bios has version "1", not "2"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var facts []string
			for _, l := range tt.sent.lacks(tt.seen) {
				facts = append(facts, l.fact)
			}
			if !slices.Equal(facts, tt.want) {
				t.Errorf("%q, want %q", facts, tt.want)
			}
		})
	}
}

// Servers that cannot run other steps after RAID get two cleanings.
func TestHardware_operations(t *testing.T) {
	t.Parallel()
	all := Hardware{RAID: volumes("MAX"), BIOS: settings("A", "1"), Firmware: map[string]Firmware{"bios": {"u", "1"}}}
	for name, tt := range map[string]struct {
		h      Hardware
		server api.Microversion
		want   []Hardware
	}{
		"all at once":       {all, 115, []Hardware{all}},
		"RAID first":        {all, 82, []Hardware{{RAID: all.RAID}, {BIOS: all.BIOS, Firmware: all.Firmware}}},
		"RAID only":         {Hardware{RAID: all.RAID}, 82, []Hardware{{RAID: all.RAID}}},
		"BIOS and firmware": {Hardware{BIOS: all.BIOS, Firmware: all.Firmware}, 82, []Hardware{{BIOS: all.BIOS, Firmware: all.Firmware}}},
	} {
		if got := tt.h.operations(tt.server); !ironic.SameJSON(got, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
