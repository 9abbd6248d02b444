package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// LimitFlags declares the flags of the provisioning limit of the site, which the runs of all tools share.
func LimitFlags(flags *pflag.FlagSet, limit *throttle.Limit) {
	limit.Coordination = throttle.CoordinationIronic
	flags.IntVar(&limit.Max, "max-concurrent", throttle.DefaultMax,
		"provisioning limit: the `number` of machines of the site that may have an operation in progress at once, including those of other clients; 0: no limit")
	FromEnvironment(flags, "max-concurrent", throttle.MaxVariable)
	flags.StringVar((*string)(&limit.Scope), "limit-scope", string(throttle.ScopeAll), "which machines share the limit: all, those of a conductor_group, or those of a shard")
	DurationVar(flags, &limit.StuckAfter, "stuck-after", throttle.DefaultStuckAfter, "`time` in one state after which a machine takes no slot of the limit any more; 0s: never")
}

// CheckLimit returns the errors in the flags of the provisioning limit.
func CheckLimit(limit throttle.Limit) error {
	var wrong error
	if !slices.Contains([]throttle.Scope{throttle.ScopeAll, throttle.ScopeConductorGroup, throttle.ScopeShard}, limit.Scope) {
		wrong = fmt.Errorf("--limit-scope is %q; it must be all, conductor_group or shard", limit.Scope)
	}
	return errors.Join(wrong, NotNegative("max-concurrent", limit.Max), NotNegative("stuck-after", limit.StuckAfter))
}
