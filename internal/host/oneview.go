package host

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// LeavesService reports whether the apply takes a host out of service if a OneView user has its server. Otherwise the apply fails for that
// host, because nothing would return it to service: it is not to be available, or the configuration controls its maintenance.
func LeavesService(w Wish) bool {
	p := &plan{Wish: w}
	return slices.Equal(p.goals(), []states.Goal{states.GoalAvailable}) && w.Maintenance.IsNull()
}

// inUse warns if OneView users have the server of a host that would be cleaned or inspected, and reports whether they have.
func (p *plan) inUse() bool {
	taken := p.seen.InUse
	if taken == nil {
		p.ask(AskInUse)
		return false
	}
	if LeavesService(p.Wish) {
		p.warn(nil, "Server hardware is in use", fmt.Sprintf("As things are now, the apply takes host %s out of service until the server "+
			"is free: %s. Then metal oneview sync cleans it and makes it available.", p.Label, taken.Why))
	} else {
		p.warn(nil, "Server hardware is in use", fmt.Sprintf("As things are now, the apply will fail for host %s: %s.",
			p.Label, taken.Error))
	}
	return true
}

// decideProfile plans the removal of a temporary server profile that an interrupted run has left on the machine.
func (p *plan) decideProfile() {
	switch {
	case p.seen.ProfileErr != "":
		p.warn(nil, "Server profile cannot be read",
			fmt.Sprintf("The provider could not find out whether host %s has a temporary server profile: %s.", p.Label, p.seen.ProfileErr))
	case p.seen.Profile != "":
		p.foreseeWalk(false)
		p.add(Step{Do: DoEndTemporary})
		p.warn(nil, "Temporary server profile is removed", fmt.Sprintf("An interrupted run has left server profile %s on host %s, or "+
			"metal oneview sync was about to remove it.", p.seen.Profile, p.Label))
	default:
		p.ask(AskProfile)
	}
}

// refuseShared refuses to prepare a machine that is shared with OneView if the provider has no OneView configured.
func (p *plan) refuseShared() {
	prepares := p.Target.V == string(states.GoalAvailable) || p.Inspect.V || p.Power.Set
	if p.SharedWithout != "" && prepares {
		p.refuse(decide.At("driver_info"), "Shared host without OneView", "As things are now, the apply will fail: "+p.SharedWithout+".")
	}
}
