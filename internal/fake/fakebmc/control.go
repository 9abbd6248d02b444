package fakebmc

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrStandby is the error of a command that needs a machine with power.
var ErrStandby = errors.New("the machine is off")

// Power does what a client commands: one of Redfish's ResetTypes. It fails with ErrStandby if the machine is off and needs power for
// that.
func (b *BMC) Power(kind string) error {
	on := b.On()
	if kind == "PushPowerButton" {
		kind = "On"
		if on {
			kind = "GracefulShutdown"
		}
	}
	if !on && slices.Contains([]string{"GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "Nmi"}, kind) {
		return ErrStandby
	}
	b.Note(Commanded, kind)
	switch kind {
	case "On":
		return b.machine.Start()
	case "ForceOff":
		return b.machine.Stop()
	case "GracefulShutdown":
		return b.machine.Shutdown()
	case "GracefulRestart":
		return b.machine.Reboot()
	case "ForceRestart":
		return b.machine.Reset()
	case "PowerCycle":
		if err := b.machine.Stop(); err != nil {
			return err
		}
		return b.machine.Start()
	case "Nmi":
		return b.machine.Interrupt()
	}
	return fmt.Errorf("unknown way to change the power: %s", kind)
}

// Override is what the firmware boots instead of the machine's own order. All faces of a BMC share it.
type Override struct {
	Source     string    // as of Boot; None means the machine's own order
	Continuous bool      // for all boots, not only the next
	Mode       string    // of booting; UEFI or Legacy. It outlives the override
	Until      time.Time // the end of an override that no boot has used; zero means never
}

// Override returns the override that the next boot uses.
func (b *BMC) Override() Override {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expireOverride()
	o := Override{Source: overrideNone, Mode: b.mode, Until: b.overrideEnd}
	if b.duration != overrideDisabled {
		o.Source, o.Continuous = b.override, b.duration == overrideContinuous
	}
	return o
}

// SetOverride changes the override. A BMC with the quirk OnceOnly forgets it after a boot all the same.
func (b *BMC) SetOverride(o Override) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.override, b.duration, b.mode, b.overrideEnd = o.Source, overrideOnce, o.Mode, o.Until
	switch {
	case o.Source == overrideNone:
		b.duration, b.overrideEnd = overrideDisabled, time.Time{}
	case o.Continuous && !b.has(OnceOnly):
		b.duration = overrideContinuous
	}
}

// Prolong moves the end of an override that has an end.
func (b *BMC) Prolong(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expireOverride()
	if !b.overrideEnd.IsZero() {
		b.overrideEnd = until
	}
}

func (b *BMC) expireOverride() {
	if !b.overrideEnd.IsZero() && !time.Now().Before(b.overrideEnd) {
		b.override, b.duration, b.overrideEnd = overrideNone, overrideDisabled, time.Time{}
	}
}
