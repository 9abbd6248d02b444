package ipmi

import (
	"errors"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

// flagTime is how long boot flags are valid without a command that changes the power.
const flagTime = time.Minute

func getChassisStatus(r *request) (completion, []byte) {
	var power byte
	if r.BMC.On() {
		power = 1
	}
	return ok, []byte{power, 0, 0, 0}
}

// controls are the values of Chassis Control, as Redfish calls them.
var controls = []string{"ForceOff", "On", "PowerCycle", "ForceRestart", "Nmi", "GracefulShutdown"}

func controlChassis(r *request) (completion, []byte) {
	control := int(r.data[0] & 0x0f)
	if control >= len(controls) {
		return invalidField, nil
	}
	r.BMC.Prolong(time.Now().Add(flagTime))
	err := r.BMC.Power(controls[control])
	switch {
	case errors.Is(err, fakebmc.ErrStandby):
		return wrongState, nil
	case err != nil:
		return unspecified, nil
	}
	return ok, nil
}

// Parameters of the boot options.
const (
	setInProgress = 0
	partition     = 1
	partitionScan = 2
	validClearing = 3
	acknowledge   = 4
	bootFlags     = 5
	initiator     = 6
)

// lengths are the lengths of the parameters' values.
var lengths = map[byte]int{setInProgress: 1, partition: 1, partitionScan: 1, validClearing: 1, acknowledge: 2, bootFlags: 5, initiator: 9}

// The first byte of the boot flags, and the bit of validClearing that keeps them for longer than flagTime.
const (
	flagValid      = 0x80
	flagPersistent = 0x40
	flagUEFI       = 0x20
	keepFlags      = 0x08
)

// device is a value of the boot flags' second byte.
type device struct {
	selector byte
	source   string
}

// devices are those of the specification. The first with a source stands for it.
var devices = []device{
	{0x00, "None"},
	{0x04, "Pxe"},
	{0x08, "Hdd"},
	{0x14, "Cd"},
	{0x18, "BiosSetup"},
	{0x3c, "Usb"},
	{0x0c, "Hdd"},      // in safe mode
	{0x1c, "Usb"},      // remote
	{0x20, "Cd"},       // remote
	{0x2c, "Hdd"},      // remote
	{0x04, "UefiHttp"}, // the specification is older
}

func setBootOptions(r *request) (completion, []byte) {
	parameter, value := r.data[0]&0x7f, r.data[1:]
	length, found := lengths[parameter]
	switch {
	case !found:
		return notAvailable, nil
	case len(value) == 0: // it only changes whether the parameter is locked
		return ok, nil
	case len(value) != length && parameter != initiator:
		return invalidLength, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if parameter == bootFlags {
		return r.setFlags(value)
	}
	if r.options == nil {
		r.options = map[byte][]byte{}
	}
	r.options[parameter] = value
	if parameter == validClearing && value[0]&keepFlags != 0 {
		r.BMC.Prolong(time.Time{})
	}
	return ok, nil
}

// setFlags changes the override.
func (s *Server) setFlags(value []byte) (completion, []byte) {
	selector := value[1] & 0x3c
	at := slices.IndexFunc(devices, func(d device) bool { return d.selector == selector })
	if at < 0 {
		return invalidField, nil
	}
	override := s.BMC.Override()
	override.Source, override.Continuous, override.Until = devices[at].source, value[0]&flagPersistent != 0, time.Now().Add(flagTime)
	if value[0]&flagValid == 0 {
		override.Source = devices[0].source
	}
	if override.Source != devices[0].source {
		override.Mode = "Legacy"
		if value[0]&flagUEFI != 0 {
			override.Mode = "UEFI"
		}
	}
	if clearing := s.options[validClearing]; len(clearing) > 0 && clearing[0]&keepFlags != 0 {
		override.Until = time.Time{}
	}
	s.BMC.SetOverride(override)
	return ok, nil
}

func getBootOptions(r *request) (completion, []byte) {
	const version = 1
	parameter := r.data[0] & 0x7f
	length, found := lengths[parameter]
	if !found {
		return notAvailable, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	value := r.options[parameter]
	switch {
	case parameter == bootFlags:
		value = r.flags()
	case value == nil:
		value = make([]byte, length)
	}
	return ok, append([]byte{version, parameter}, value...)
}

// flags are the boot flags that say what the override says.
func (s *Server) flags() []byte {
	override, flags := s.BMC.Override(), make([]byte, 5)
	if override.Mode == "UEFI" {
		flags[0] |= flagUEFI
	}
	if at := slices.IndexFunc(devices, func(d device) bool { return d.source == override.Source }); at > 0 {
		flags[0] |= flagValid
		flags[1] = devices[at].selector
	}
	if override.Continuous {
		flags[0] |= flagPersistent
	}
	return flags
}
