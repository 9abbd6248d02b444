package terraformtest

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// holds reports whether the preconditions of an instance hold; with its value: the postconditions.
func (r *run) holds(block *language.Resource, at state.Address, each, self cty.Value) bool {
	if self == cty.NilVal {
		return !r.AddHCL("", r.keeps(block.Module, "Resource precondition failed", block.Before, at, each, self, memory{}))
	}
	return !r.AddHCL("", r.keeps(block.Module, "Resource postcondition failed", block.After, at, each, self, memory{}))
}

const checkFailed = "Check block assertion failed"

// checkModules evaluates all variables, also those that nothing refers to, and warns of checks that do not hold.
func (r *run) checkModules() {
	r.Forget(checkFailed)
	for _, m := range r.c.All() {
		for name := range m.Variables {
			_, problems := r.named(m, "var", name, memory{})
			r.AddHCL("", problems)
		}
		problems := r.keeps(m, checkFailed, m.Checks, state.Address{}, cty.NilVal, cty.NilVal, memory{})
		for _, one := range problems {
			one.Severity = hcl.DiagWarning
		}
		r.AddHCL("", problems)
	}
}
