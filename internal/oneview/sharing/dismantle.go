package sharing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

var (
	// errShifted says that hardware has another profile than a moment ago, so that the caller must decide again.
	errShifted = errors.New("the server hardware has another server profile than a moment ago")
	// errNotOff says that a server is on, or being switched on, and the removal must not switch it off.
	errNotOff = errors.New("the server is not off")
)

// kindMoved is the kind of an error which says that another user has moved a profile of ours, which is in About, to other hardware, and
// so owns it now.
const kindMoved failure.Kind = "moved"

// stop switches a server off, unless its hardware has another profile than the one with the URI holder; an empty holder allows none. It
// reads the hardware right before each request, and returns errShifted if it has another profile.
func (p *Pool) stop(ctx context.Context, hardwareURI, holder string, deadline time.Time) error {
	tries := newRetries(p.OneView, "switching off server hardware "+hardwareURI, deadline)
	for {
		hardware, err := p.OneView.Hardware(ctx, hardwareURI)
		if err != nil {
			return err
		}
		if hardware.ProfileURI != "" && !oneview.SameURI(hardware.ProfileURI, holder) {
			return fmt.Errorf("%s: %w", oneview.HardwareLabel(hardware), errShifted)
		}
		switch hardware.PowerState {
		case oneview.PowerOff:
			return nil
		case oneview.PowerPoweringOn, oneview.PowerPoweringOff, oneview.PowerResetting:
		case oneview.PowerOn, oneview.PowerUnknown:
			if hardware.PowerLocked || hardware.Settling() || tries.holds() {
				break
			}
			if err = tries.sent(finish(ctx, p.OneView, deadline, func() (string, error) {
				return p.OneView.PowerOff(ctx, hardware.URI)
			})); err == nil {
				tries.failures++ // the next read must show it off
			}
		}
		if err := tries.again(ctx, err); err != nil {
			return fmt.Errorf("switch off server hardware %s: %w", oneview.HardwareLabel(hardware), err)
		}
		if tries.failures > maxFailures {
			return fmt.Errorf("switch off server hardware %s: OneView says that the operation succeeded, but the server is %q",
				oneview.HardwareLabel(hardware), hardware.PowerState)
		}
	}
}

func finish(ctx context.Context, c *oneview.Client, deadline time.Time, start func() (taskURI string, err error)) error {
	uri, err := start()
	if err != nil || uri == "" {
		return err
	}
	return c.Await(ctx, uri, deadline, nil)
}

// removal says which profile to remove, and from which hardware.
type removal struct {
	profileURI, hardwareURI string
	deadline                time.Time
	onlyOff                 bool // do not switch the server off; if it is on, return errNotOff
}

// remove deletes a profile of ours that is on the given hardware or on none, and switches its server off first. Right before the
// request it reads profile and hardware again, and the appliance compares the profile's version. If the profile does not exist,
// remove returns nil.
func (p *Pool) remove(ctx context.Context, r removal) error {
	tries := newRetries(p.OneView, "removing server profile "+r.profileURI, r.deadline)
	refused := "" // the latest version, if the appliance has refused it
	for {
		profile, err := p.OneView.Profile(ctx, r.profileURI)
		if oneview.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ready := false
		if !tries.holds() {
			ready, err = p.readyToRemove(ctx, profile, r)
		}
		if ready {
			match := profile.ETag
			if match == "" || match == refused {
				match = "*" // everything was just read again, and the appliance refuses its own version
			}
			err = tries.sent(finish(ctx, p.OneView, r.deadline, func() (string, error) {
				return p.OneView.DeleteProfile(ctx, profile.URI, match)
			}))
			if oneview.IsStatus(err, http.StatusPreconditionFailed) && match != "*" {
				refused, err = match, nil
			}
			if oneview.IsNotFound(err) {
				return nil
			}
			if err == nil && match != refused {
				tries.failures++ // the next read must not find it
			}
		}
		if tries.failures > maxFailures {
			return fmt.Errorf("remove server profile %s: OneView says that the operation succeeded, but the profile still exists",
				oneview.ProfileLabel(profile))
		}
		if err := tries.again(ctx, err); err != nil {
			return fmt.Errorf("remove server profile %s: %w", oneview.ProfileLabel(profile), err)
		}
	}
}

// readyToRemove reports whether a profile can be deleted now: it is on no hardware, or the hardware is off. If needed it switches
// the server off; the caller must then read everything again.
func (p *Pool) readyToRemove(ctx context.Context, profile *oneview.Profile, r removal) (bool, error) {
	switch {
	case profile.HardwareURI != "" && !oneview.SameURI(profile.HardwareURI, r.hardwareURI):
		return false, &failure.Error{
			Kind: kindMoved, About: profile, Fact: "another user has moved the server profile to other server hardware: " +
				profile.HardwareURI,
		}
	case profile.InProgress:
		return false, nil
	case profile.HardwareURI == "":
		return true, nil
	}
	hardware, err := p.OneView.Hardware(ctx, r.hardwareURI)
	switch {
	case err != nil:
		return false, err
	case hardware.ProfileURI != "" && !oneview.SameURI(hardware.ProfileURI, profile.URI):
		return false, fmt.Errorf("%s: %w", oneview.HardwareLabel(hardware), errShifted)
	case hardware.Settling() || hardware.ProfileURI == "":
		return false, nil
	case hardware.PowerState == oneview.PowerOff:
		return true, nil
	case r.onlyOff:
		return false, fmt.Errorf("%s: %w (%s)", oneview.HardwareLabel(hardware), errNotOff, hardware.PowerState)
	}
	return false, p.stop(ctx, r.hardwareURI, profile.URI, r.deadline)
}

// retries limits the tries of an operation: it waits for the appliance's own operations until the deadline, tolerates errors of the
// appliance for as long as Patience, and repeats failed tasks a few times.
type retries struct {
	c        *oneview.Client
	doing    string
	begun    time.Time
	deadline time.Time
	waiting  *rest.Backoff
	trouble  time.Time // first error of the current series
	failures int

	unanswered time.Time // when the last request without an answer was sent; zero: none
}

// maxFailures is how many tasks may fail. Before each repetition the caller reads everything again, because another user may have
// switched the server on, for example.
const maxFailures = 3

func newRetries(c *oneview.Client, doing string, deadline time.Time) *retries {
	return &retries{c: c, doing: doing, begun: time.Now(), deadline: deadline, waiting: c.Backoff()}
}

// sent returns the result of a request that changes something, and notes if its answer is lost.
func (s *retries) sent(err error) error {
	if oneview.IsUncertain(err) || errors.Is(err, oneview.ErrTaskLost) {
		s.unanswered = time.Now()
	}
	return err
}

// holds reports whether a request without an answer may still take effect. Until then the caller only looks, and repeats nothing.
func (s *retries) holds() bool {
	return !s.unanswered.IsZero() && time.Since(s.unanswered) < s.c.Patience()
}

// again waits before the next try, after an error or for an operation of the appliance. It returns an error if there is no next try.
func (s *retries) again(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
	case fault.Is(err, oneview.KindTask):
		if s.failures++; s.failures >= maxFailures {
			return err
		}
	case oneview.IsTransient(err) || oneview.IsUncertain(err) || errors.Is(err, oneview.ErrTaskLost) || errors.Is(err, errShifted):
		if s.trouble.IsZero() {
			s.trouble = time.Now()
		} else if time.Since(s.trouble) > s.c.Patience() {
			return err
		}
	default:
		return err
	}
	wait := max(s.waiting.Next(), oneview.RetryAfter(err))
	if time.Now().Add(wait).After(s.deadline) {
		if err != nil {
			return err
		}
		return oneview.Late(s.doing, time.Since(s.begun))
	}
	return rest.Sleep(ctx, wait)
}
