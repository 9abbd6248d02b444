package oneview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// errShifted says that hardware has another profile than a moment ago. What is right now has to be decided anew.
	errShifted = errors.New("the server hardware has another server profile than a moment ago")
	// errNotOff says that a server is on, or about to be, that a removal must not switch off.
	errNotOff = errors.New("the server is not off")
)

// movedError says that somebody has put a profile of ours on other hardware. It is theirs now.
type movedError struct{ profile *Profile }

// Error says where it is.
func (e *movedError) Error() string {
	return "somebody has moved the server profile to other server hardware: " + e.profile.HardwareURI
}

// stop switches a server off, as long as it has the given profile, or none if holder is empty. That is looked at right
// before each request; otherwise it is errShifted.
func (p *Pool) stop(ctx context.Context, hardwareURI, holder string, deadline time.Time) error {
	tries := p.OneView.stamina("switching off server hardware "+hardwareURI, deadline)
	for {
		hardware, err := p.OneView.Hardware(ctx, hardwareURI)
		if err != nil {
			return err
		}
		if hardware.ProfileURI != "" && !sameURI(hardware.ProfileURI, holder) {
			return fmt.Errorf("%s: %w", HardwareLabel(hardware), errShifted)
		}
		switch hardware.PowerState {
		case PowerOff:
			return nil
		case PowerPoweringOn, PowerPoweringOff, PowerResetting:
		case PowerOn, PowerUnknown:
			if hardware.PowerLocked || hardware.settling() {
				break
			}
			if err = p.OneView.finish(ctx, deadline, func() (string, error) { return p.OneView.powerOff(ctx, hardware.URI) }); err == nil {
				tries.failures++ // it must be off by the next look
			}
		}
		if err := tries.again(ctx, err); err != nil {
			return fmt.Errorf("switch off server hardware %s: %w", HardwareLabel(hardware), err)
		}
		if tries.failures > maxFailures {
			return fmt.Errorf("switch off server hardware %s: OneView says that it has done so, but it is %q", HardwareLabel(hardware), hardware.PowerState)
		}
	}
}

// finish starts an operation and waits for its end.
func (c *Client) finish(ctx context.Context, deadline time.Time, start func() (taskURI string, err error)) error {
	uri, err := start()
	if err != nil || uri == "" {
		return err
	}
	return c.await(ctx, uri, deadline, nil)
}

// removal says what profile goes, and from where.
type removal struct {
	profileURI, hardwareURI string
	deadline                time.Time
	onlyOff                 bool // the server is not switched off: if it is not off, it is errNotOff
}

// remove deletes a profile of ours that is on the given hardware or on none, switching its server off first. Right before the
// request the profile and its hardware are read again, and the appliance compares the profile's version. That it is gone
// already is no error.
func (p *Pool) remove(ctx context.Context, r removal) error {
	tries := p.OneView.stamina("removing server profile "+r.profileURI, r.deadline)
	refused := "" // the version that was refused although it was the latest
	for {
		profile, err := p.OneView.Profile(ctx, r.profileURI)
		if IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ready, err := p.readyToRemove(ctx, profile, r)
		if ready {
			match := profile.ETag
			if match == "" || match == refused {
				match = "*" // everything was just read anew, and the appliance does not take its own version
			}
			err = p.OneView.finish(ctx, r.deadline, func() (string, error) { return p.OneView.deleteProfile(ctx, profile.URI, match) })
			if isStatus(err, http.StatusPreconditionFailed) && match != "*" {
				refused, err = match, nil
			}
			if IsNotFound(err) {
				return nil
			}
			if err == nil && match != refused {
				tries.failures++ // it must be gone by the next look
			}
		}
		if tries.failures > maxFailures {
			return fmt.Errorf("remove server profile %s: OneView says that it has done so, but the profile is still there", ProfileLabel(profile))
		}
		if err := tries.again(ctx, err); err != nil {
			return fmt.Errorf("remove server profile %s: %w", ProfileLabel(profile), err)
		}
	}
}

// readyToRemove reports whether a profile can be deleted now: it is on the hardware, and that is off, or it is on none. It
// switches the server off; then everything has to be looked at again.
func (p *Pool) readyToRemove(ctx context.Context, profile *Profile, r removal) (bool, error) {
	switch {
	case profile.HardwareURI != "" && !sameURI(profile.HardwareURI, r.hardwareURI):
		return false, &movedError{profile}
	case profile.InProgress:
		return false, nil
	case profile.HardwareURI == "":
		return true, nil
	}
	hardware, err := p.OneView.Hardware(ctx, r.hardwareURI)
	switch {
	case err != nil:
		return false, err
	case hardware.ProfileURI != "" && !sameURI(hardware.ProfileURI, profile.URI):
		return false, fmt.Errorf("%s: %w", HardwareLabel(hardware), errShifted)
	case hardware.settling() || hardware.ProfileURI == "":
		return false, nil
	case hardware.PowerState == PowerOff:
		return true, nil
	case r.onlyOff:
		return false, fmt.Errorf("%s: %w (%s)", HardwareLabel(hardware), errNotOff, hardware.PowerState)
	}
	return false, p.stop(ctx, r.hardwareURI, profile.URI, r.deadline)
}
