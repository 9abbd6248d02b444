package watch

import (
	"context"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Slots says how the slots of a limit are used at the whole site, also outside of the selection. Scopes are those of the limit.
type Slots struct {
	Used map[string]int // by scope
	// machines that wait for a slot, by scope, at least; nil: not known, because the user may not see the words of all runs, and sees none
	Waiting map[string]Wait
}

// Wait says how many machines wait for a slot, and since when the first of them.
type Wait struct {
	Machines int
	Since    time.Time // by the clock of the site
}

// Site reads samples of an Ironic with its slots.
type Site struct {
	Client *ironic.Client
	Limit  throttle.Limit // whose slots are counted

	limiter *slots.Limiter
}

// siteFields are the fields that the census of the limit needs, and those that group machines.
var siteFields = append(slices.Clone(fields), "maintenance", "boot_interface", "conductor_group", "resource_class")

// List reads the machines of a selection with class and conductor group, and how the slots of the site are used. With a selection it reads
// two lists.
func (s *Site) List(ctx context.Context, chosen *selection.Following) (Sample, error) {
	if s.limiter == nil {
		s.limiter = slots.NewLimiter(s.Client, s.Limit, "")
	}
	asked := siteFields
	if err := s.limiter.Requires(ctx); err != nil {
		return Sample{}, err
	}
	if s.Limit.Max > 0 && s.Limit.Scope == throttle.ScopeShard {
		asked = append(slices.Clone(asked), "shard")
	}
	all, err := s.Client.ListNodeFields(ctx, ironic.NodeFilter{}, asked)
	if err != nil {
		return Sample{}, err
	}
	selected := all
	if !chosen.IsEmpty() {
		if selected, err = chosen.List(ctx, s.Client, asked); err != nil {
			return Sample{}, err
		}
	}
	waiting, err := s.waiting(ctx)
	if err != nil {
		return Sample{}, err
	}
	sample, err := sampleOf(ctx, s.Client, selected, chosen)
	sample.Slots = &Slots{Used: s.limiter.UsedBy(all), Waiting: waiting}
	return sample, err
}

// WithFreeze adds to the samples of a list whether the site is frozen.
func WithFreeze(client *ironic.Client, list func(context.Context) (Sample, error)) func(context.Context) (Sample, error) {
	freezes := slots.NewLimiter(client, throttle.Limit{}, "").Freezes()
	return func(ctx context.Context) (Sample, error) {
		sample, err := list(ctx)
		if err == nil {
			sample.Freeze = freezes.Now(ctx)
		}
		return sample, err
	}
}

// waiting reads what runs say of their machines that wait; nil if the user may not see all waits, and sees none.
func (s *Site) waiting(ctx context.Context) (map[string]Wait, error) {
	words, err := s.limiter.Waiting(ctx)
	switch {
	case err != nil && !api.IsForbidden(err):
		return nil, err
	case err != nil && len(words) == 0:
		return nil, nil
	}
	waiting := map[string]Wait{}
	for _, word := range words {
		w := waiting[word.Scope]
		w.Machines += word.Machines
		if w.Since.IsZero() || word.Since.Before(w.Since) {
			w.Since = word.Since
		}
		waiting[word.Scope] = w
	}
	return waiting, nil
}

// mostLookups is how many histories are read for a sample.
const mostLookups = 20

// WithCauses adds to the samples of a list why machines have failed whose last_error Ironic has emptied since, as it does since version 31:
// what it said before, or what the history of the node says, which is read once.
func WithCauses(client *ironic.Client, list func(context.Context) (Sample, error)) func(context.Context) (Sample, error) {
	known := map[string]Machine{} // of failed machines, by ID
	return func(ctx context.Context) (Sample, error) {
		sample, err := list(ctx)
		now, lookups := map[string]Machine{}, 0
		for i := range sample.Machines {
			m := &sample.Machines[i]
			if !m.Failed {
				continue
			}
			was, again := known[m.ID]
			again = again && was.State == m.State && was.Since.Equal(m.Since)
			switch {
			case m.Why.Words != "":
			case again:
				m.Why = was.Why
			case lookups < mostLookups:
				lookups++
				m.Why = causeOf(evidence.LastError(ctx, client, m.ID), m.State)
			default:
				continue
			}
			now[m.ID] = *m
		}
		if err == nil {
			known = now
		}
		return sample, err
	}
}

// causeOf returns the failure that the history of a node in a state tells.
func causeOf(words, state string) machine.Failure {
	f := machine.FailureOf(&ironic.Node{ProvisionState: state, LastError: words})
	if f == nil {
		return machine.Failure{Words: api.FirstLine(words)}
	}
	f.Words = api.FirstLine(f.Words)
	return *f
}
