package cli

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// LimitFlags declares the flags of the provisioning limit of the site, which the runs of all tools share.
func LimitFlags(flags *pflag.FlagSet, limit *throttle.Limit) {
	limit.Coordination = throttle.CoordinationIronic
	declareLimit(flags, limit, throttle.Limit{Max: throttle.DefaultMax, Scope: throttle.ScopeAll, StuckAfter: throttle.DefaultStuckAfter})
	FromEnvironment(flags, "max-concurrent", throttle.MaxVariable)
}

// PlannedLimitFlags declares the flags of LimitFlags for a command that knows the limit from a plan: only those that are given change it.
func PlannedLimitFlags(flags *pflag.FlagSet, limit *throttle.Limit) {
	declareLimit(flags, limit, throttle.Limit{})
}

func declareLimit(flags *pflag.FlagSet, limit *throttle.Limit, standard throttle.Limit) {
	flags.IntVar(&limit.Max, "max-concurrent", standard.Max,
		"provisioning limit: the `number` of machines of the site that may have an operation in progress at once, including those of "+
			"other clients; 0: no limit")
	flags.StringVar((*string)(&limit.Scope), "limit-scope", string(standard.Scope),
		"`scope` of the limit, the machines that share it: all, those of a conductor_group, or those of a shard")
	DurationVar(flags, &limit.StuckAfter, "stuck-after", standard.StuckAfter, "`time` in one state after which a machine takes no slot "+
		"of the limit any more; 0s: never")
	flags.StringSliceVar(&limit.Exempt, "exempt-boot-interfaces", nil, "`patterns` of boot interfaces whose machines need no slot, such "+
		"as *virtual-media")
}

// CheckLimit returns the errors in the flags of the provisioning limit.
func CheckLimit(limit throttle.Limit) error {
	var wrong error
	if !slices.Contains([]throttle.Scope{throttle.ScopeAll, throttle.ScopeConductorGroup, throttle.ScopeShard}, limit.Scope) {
		wrong = fmt.Errorf("--limit-scope is %q; it must be all, conductor_group or shard", limit.Scope)
	}
	for _, pattern := range limit.Exempt {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			wrong = errors.Join(wrong, fmt.Errorf("--exempt-boot-interfaces has %q; it must be a pattern such as *virtual-media", pattern))
		}
	}
	return errors.Join(wrong, NotNegative("max-concurrent", limit.Max), NotNegative("stuck-after", limit.StuckAfter))
}
