package host

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// planRetirement refuses to retire a reserved node, which Ironic refuses while it is available, and reports whether it did. It warns
// if a node that another client has retired should be available, and leaves a node in quarantine alone.
func (m *model) planRetirement(config, state *model, known notes, diags *diag.Diagnostics) (refused bool) {
	node := state.node()
	if m.Retired.ValueBool() && !state.Retired.ValueBool() && provision.InPool(node) && node.InstanceUUID != "" {
		diags.AddAttributeError(path.Root("retired"), "Reserved host cannot be retired", fmt.Sprintf("Host %s is available and reserved by %s. Ironic retires such a node only when it is free or deployed. "+
			"Destroy its metal_allocation first, in an apply of its own, or leave retired as it is.", m.describe(), node.InstanceUUID))
		return true
	}
	if known.quarantine != "" && state.Retired.ValueBool() && !config.Retired.ValueBool() {
		m.planQuarantine(config, state, known, diags)
	}
	if framework.IsFalse(m.Retired) && config.RetiredReason.IsNull() { // Ironic clears it
		m.RetiredReason = types.StringNull()
	}
	if known.quarantine == "" && config.Retired.IsNull() && m.isHeldByRetirement() {
		diags.AddAttributeWarning(path.Root("target_state"), "Host is retired", fmt.Sprintf("Another client of Ironic has retired host %s, so it stays manageable and does not become available. "+
			"Set retired = false to make it available again, or retired = true to end this warning.", m.describe()))
	}
	return false
}

// isHeldByRetirement reports whether a host stays manageable only because it is retired.
func (m *model) isHeldByRetirement() bool {
	return m.Retired.ValueBool() && m.TargetState.ValueString() == string(provision.GoalAvailable) && !provision.Deployed(m.node())
}

// planQuarantine plans that a node in quarantine stays retired, and warns. Only retired = false that the configuration did not have
// before returns the node: a host that always says so would return a broken machine to the pool.
func (m *model) planQuarantine(config, state *model, known notes, diags *diag.Diagnostics) {
	deployed := provision.Deployed(m.node()) // it is still being undeployed
	if framework.IsFalse(config.Retired) && !known.retires && !deployed {
		diags.AddAttributeWarning(path.Root("retired"), "Host leaves its quarantine", fmt.Sprintf("Host %s is in quarantine: %s. With retired = false, the apply returns it to use.", m.describe(), known.quarantine))
		return
	}
	m.Retired, m.RetiredReason = state.Retired, state.RetiredReason
	how := "set retired = false"
	if known.retires {
		how = "apply retired = true, and then retired = false"
	}
	if !deployed {
		diags.AddAttributeWarning(path.Root("retired"), "Host is in quarantine", fmt.Sprintf("Host %s is in quarantine: %s. It stays retired, and no allocation reserves it. To return it, repair it and %s.",
			m.describe(), known.quarantine, how))
	}
}

// quarantineOf says why a node is in quarantine; "" if it is in none.
func quarantineOf(node *ironic.Node) string {
	if quarantine := provision.QuarantineOf(node); quarantine != nil {
		return quarantine.String()
	}
	return ""
}

// keepsQuarantine reports whether the plan keeps a host retired whose configuration does not say so.
func (c *change) keepsQuarantine() bool {
	return c.plan.Retired.ValueBool() && !c.config.Retired.ValueBool()
}

// keepQuarantine removes from a patch what would end a quarantine that the plan keeps.
func (c *change) keepQuarantine(p *patch) {
	if !c.keepsQuarantine() {
		return
	}
	delete(p.settings, "/retired")
	delete(p.settings, "/retired_reason")
	p.before = slices.DeleteFunc(slices.Clone(p.before), func(path string) bool { return path == "/retired" || path == "/retired_reason" })
}

// endQuarantine adds to the edits of a node the removal of the note and its reason, if the configuration decides about the retirement from
// now on.
func (c *change) endQuarantine(edits *ironic.Patch) {
	if !framework.IsSet(c.config.Retired) || c.keepsQuarantine() || provision.Deployed(c.node()) {
		return
	}
	provision.EndQuarantine(edits, c.node())
	if c.config.Retired.ValueBool() && c.plan.RetiredReason.IsNull() && c.node().RetiredReason != "" && !edits.Changes("/retired_reason") { // with false, Ironic removes it
		edits.Remove("/retired_reason")
	}
}
