package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// IsFrozen reports whether something was not begun because the site is frozen.
func IsFrozen(err error) bool { return fault.Is(err, throttle.KindFrozen) }

// Freezes knows whether the site is frozen.
func (s *Site) Freezes() *throttle.Freezes { return s.limiter.Freezes() }

// Thawed waits until something may be begun on machines of the site: it is not frozen. It reports whether it had to wait. If that would be
// for ever, or longer than most, Thawed returns an error of throttle.KindFrozen at once. what names who waits.
func (s *Site) Thawed(ctx context.Context, what string, most time.Duration) (waited bool, err error) {
	waited, err = s.Freezes().Await(ctx, most)
	freeze := fault.AboutOf[*throttle.Freeze](err, throttle.KindFrozen)
	if freeze == nil {
		return waited, err
	}
	const end = "metal thaw ends the freeze, and metal freeze changes it. Then "
	e := &failure.Error{
		Kind: throttle.KindFrozen, Err: err, Title: "The site is frozen", Advice: end + "apply again.", Action: end + "try again.",
		Fact: fmt.Sprintf("Nothing was begun on %s. The site was %s", what, freeze),
	}
	if !freeze.Until.IsZero() {
		e.Hint = fmt.Sprintf("It would have waited for %s at most, which is its time-out.", most.Round(time.Second))
	}
	return waited, e
}

// Thawed is Site.Thawed for the machine.
func (m *Machine) Thawed(ctx context.Context, most time.Duration) (waited bool, err error) {
	if frozen := m.site.Freezes().Check(ctx); frozen != nil && m.tell != nil {
		m.tell(fmt.Sprintf("node %s: %v", ironic.NodeLabel(m.node), frozen))
	}
	waited, err = m.site.Thawed(ctx, "node "+ironic.NodeLabel(m.node), most)
	if err != nil && ctx.Err() != nil {
		return waited, &failure.Error{
			Kind: failure.KindQueued, Node: m.node, Fact: fmt.Sprintf("wait for the end of the freeze: %v", ctx.Err()),
			Waits: "the end of the freeze of the site", Err: ctx.Err(),
		}
	}
	return waited, err
}

// whenThawed calls try as soon as the site is not frozen, and again if try could not send its request because of a new freeze. The wait
// puts a deadline off; nil: there is none. A machine that others have changed meanwhile is left as it is.
func (m *Machine) whenThawed(ctx context.Context, most time.Duration, putOff *time.Time, try func() error) error {
	for {
		begun, was := time.Now(), m.footing()
		waited, err := m.Thawed(ctx, most)
		if putOff != nil {
			*putOff = putOff.Add(time.Since(begun))
		}
		if err == nil && waited {
			err = m.Refresh(ctx)
		}
		if err == nil && m.footing() != was {
			err = m.AsItIs()
		}
		if err != nil {
			return err
		}
		if err := try(); !IsFrozen(err) {
			return err
		}
	}
}
