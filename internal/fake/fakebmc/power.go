package fakebmc

import (
	"errors"
	"net/http"
	"slices"
	"time"
)

// Boot sources, durations of an override, and boot modes.
const (
	overrideNone       = "None"
	overrideDisabled   = "Disabled"
	overrideOnce       = "Once"
	overrideContinuous = "Continuous"
	modeUEFI           = "UEFI"
	modeLegacy         = "Legacy"
	sourceCD           = "Cd"
	sourceUSBCD        = "UsbCd"
)

// bootSources are the values of BootSourceOverrideTarget.
func (b *BMC) bootSources() []string {
	sources := []string{overrideNone, "Pxe", "Hdd", sourceCD, "Usb", "BiosSetup", "UefiHttp"}
	if b.has(USBCD) {
		sources = append(sources, sourceUSBCD)
	}
	return sources
}

var resetTypes = []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PushPowerButton", "Nmi"}

func reset(c *call) (reply, *fault) {
	kind := c.text("ResetType")
	if !slices.Contains(resetTypes, kind) {
		return reply{}, c.badParameter("ResetType", kind)
	}
	err := c.bmc.Power(kind)
	if errors.Is(err, ErrStandby) {
		return reply{}, problem(http.StatusConflict, "ResourceInStandby", "The request could not be performed because the resource "+
			"is in standby.")
	}
	return done(err)
}

// post is what the firmware does at each boot: it applies what was staged, decides what to boot, and ends an override for once.
func (b *BMC) post() Boot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := b.lastPower(); last != PoweredOn {
		b.note(PoweredOn, "")
	}
	b.applyBIOS()
	for _, apply := range b.staged {
		apply()
	}
	b.staged = nil
	b.secureBoot.now = b.secureBoot.enabled && b.mode == modeUEFI
	boot := Boot{Source: overrideNone, Mode: b.mode, SecureBoot: b.secureBoot.now, Image: b.drives[driveCD].image}
	b.expireOverride()
	if b.duration != overrideDisabled {
		boot.Source = b.override
	}
	if b.duration == overrideOnce {
		b.override, b.duration = overrideNone, overrideDisabled
	}
	b.overrideEnd = time.Time{} // the firmware has taken over what is continuous
	fromCD := boot.Source == sourceCD || boot.Source == sourceUSBCD
	if fromCD && (boot.Image == "" || b.has(USBCD) && boot.Source == sourceCD) {
		boot.Source = overrideNone // such a drive does not boot
	}
	detail := boot.Source
	if fromCD && boot.Source != overrideNone {
		detail += " " + boot.Image
	}
	b.note(Booted, detail)
	b.lastBoot = boot
	return boot
}

// lastPower returns whether the machine was last powered on or off.
func (b *BMC) lastPower() Kind {
	for _, e := range slices.Backward(b.history) {
		if e.Kind == PoweredOn || e.Kind == PoweredOff {
			return e.Kind
		}
	}
	return PoweredOff
}

// changeSystem answers PATCH of a system: boot override, boot mode, indicator LED.
func changeSystem(c *call) *fault {
	b := c.bmc
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, value := range c.body {
		switch key {
		case "Boot":
			if b.has(ETags) && c.request.Header.Get("If-Match") == "" {
				return problem(http.StatusPreconditionRequired, "PreconditionRequired",
					"A precondition header or annotation is required to change this resource.")
			}
			boot, _ := value.(object)
			if fault := b.changeBoot(boot); fault != nil {
				return fault
			}
		case "IndicatorLED", "LocationIndicatorActive":
			if fault := b.changeLED(value); fault != nil {
				return fault
			}
		default:
			return notWritable(key)
		}
	}
	return nil
}

func (b *BMC) changeBoot(boot object) *fault {
	b.expireOverride()
	override, duration, mode := b.override, b.duration, b.mode
	for _, field := range []struct {
		key     string
		to      *string
		allowed []string
	}{
		{"BootSourceOverrideTarget", &override, b.bootSources()},
		{"BootSourceOverrideEnabled", &duration, b.durations()},
		{"BootSourceOverrideMode", &mode, []string{modeUEFI, modeLegacy}},
	} {
		value, given := boot[field.key]
		text, _ := value.(string)
		if given && !slices.Contains(field.allowed, text) {
			return badProperty("Boot/"+field.key, value)
		}
		if given {
			*field.to = text
		}
	}
	for key := range boot {
		if !slices.Contains([]string{"BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"}, key) {
			return notWritable("Boot/" + key)
		}
	}
	if b.has(USBCD) && boot["BootSourceOverrideTarget"] != nil && boot["BootSourceOverrideEnabled"] == nil {
		duration = overrideDisabled
	}
	b.override, b.duration, b.mode, b.overrideEnd = override, duration, mode, time.Time{}
	return nil
}

func (b *BMC) durations() []string {
	if b.has(OnceOnly) {
		return []string{overrideDisabled, overrideOnce}
	}
	return []string{overrideDisabled, overrideOnce, overrideContinuous}
}

// changeLED switches the indicator LED, by name or as a Boolean.
func (b *BMC) changeLED(value any) *fault {
	switch value {
	case true:
		value = "Lit"
	case false:
		value = "Off"
	}
	text, _ := value.(string)
	if !slices.Contains([]string{"Lit", "Blinking", "Off"}, text) {
		return badProperty("IndicatorLED", value)
	}
	b.led = text
	return nil
}

// changeSecureBoot answers PATCH of SecureBoot. The next boot applies it.
func changeSecureBoot(c *call) *fault {
	enable, valid := c.body["SecureBootEnable"].(bool)
	if !valid || len(c.body) != 1 {
		return badProperty("SecureBootEnable", c.body["SecureBootEnable"])
	}
	c.bmc.mu.Lock()
	defer c.bmc.mu.Unlock()
	if enable && c.bmc.mode != modeUEFI {
		return problem(http.StatusBadRequest, "PropertyValueConflict", "The property 'SecureBootEnable' could not be written because its "+
			"value would conflict with the value of the 'BootSourceOverrideMode' property.")
	}
	c.bmc.secureBoot.enabled = enable
	return nil
}
