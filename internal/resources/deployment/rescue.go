package deployment

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

type rescueModel struct {
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
}

var rescueTypes = map[string]attr.Type{"password_wo": types.StringType, "password_wo_version": types.Int64Type}

func rescueSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "While it is set, the machine runs Ironic's rescue system in place of what is deployed. Adding it, removing it and a new `password_wo_version` each **restart** the machine; " +
			"its disks keep their data. The node's rescue interface must not be `no-rescue`. Not possible when the deployment is created or replaced, or with `power_state = \"off\"`. " +
			"Default: the provider leaves a machine that another client has put into rescue mode there, and warns.",
		Attributes: map[string]schema.Attribute{
			"password_wo": schema.StringAttribute{
				Required: true, WriteOnly: true,
				MarkdownDescription: "Password of the user `rescue`. Not stored. Needs Terraform or OpenTofu 1.11.",
				Validators:          []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`\S`), "must not be empty")},
			},
			"password_wo_version": schema.Int64Attribute{
				Required: true, MarkdownDescription: "Version of the password. A change boots the rescue system again, with the new password.",
				Validators: []validator.Int64{int64validator.AtLeast(0)},
			},
		},
	}
}

// rescuePassword returns the password of a configuration, or "".
func (m *model) rescuePassword(ctx context.Context) string {
	var rescue rescueModel
	if !framework.IsSet(m.Rescue) || m.Rescue.As(ctx, &rescue, basetypes.ObjectAsOptions{}).HasError() {
		return ""
	}
	return rescue.PasswordWO.ValueString()
}

// rescueState is the provision state as of the last refresh, with regard to rescue mode.
func (m *model) rescueState() provision.Rescue {
	return provision.RescueOf(ironic.State(m.ProvisionState.ValueString()))
}

// unsureRescue is the value of a machine that must enter or leave rescue mode once more: it differs from every configured one.
func unsureRescue() types.Object {
	return types.ObjectValueMust(rescueTypes, map[string]attr.Value{"password_wo": types.StringNull(), "password_wo_version": types.Int64Null()})
}

// readRescue refreshes rescue. It is null for a machine that this resource has not put into rescue mode.
func (m *model) readRescue(node *ironic.Node, diags *diag.Diagnostics) {
	mode := provision.RescueOf(ironic.State(node.ProvisionState))
	switch {
	case m.Rescue.IsNull():
		if mode == provision.Rescued || mode == provision.RescueFailed {
			diags.AddWarning("Machine is in rescue mode", fmt.Sprintf("Node %s is in state %q, and this resource has not recorded that it put it there. "+
				"A plan leaves it there unless the configuration sets rescue. To start what is deployed: baremetal node unrescue %s.", ironic.NodeLabel(node), node.ProvisionState, node.UUID))
		}
	case mode == provision.NotRescued:
		m.Rescue = types.ObjectNull(rescueTypes)
	case mode == provision.RescueFailed:
		m.Rescue = unsureRescue()
	}
}

// Summaries are the same for all nodes, so that Terraform folds the warnings into one.
const (
	entersRescueSummary = "Machine enters rescue mode"
	leavesRescueSummary = "Machine leaves rescue mode"
	inRescueSummary     = "Not possible in rescue mode"
	waitsSummary        = "Change waits for the end of the rescue"
)

// staysInRescue reports whether the machine is in rescue mode after the plan.
func (p inPlace) staysInRescue() bool {
	return !p.plan.Rescue.IsNull() || (p.state.Rescue.IsNull() && p.state.rescueState() != provision.NotRescued)
}

// waitForRescue keeps the content and the triggers of the state while the machine is in rescue mode, and warns of that, so that one machine in
// repair does not stop a change of a whole fleet. It keeps nothing if Terraform does not allow that: a plan cannot keep an attribute
// that the configuration adds or removes.
func (p inPlace) waitForRescue(ctx context.Context, diags *diag.Diagnostics) {
	asks := func(m *model) bool { // for a deployment or a restart
		deploys := !m.adopted() && m.redeploys(ctx, p.state, p.onChange) != same
		return deploys || compare(ctx, m.RestartTriggers, p.state.RestartTriggers) != same
	}
	if p.imported || p.state.rescueState() == provision.NotRescued || !p.staysInRescue() || !asks(p.plan) {
		return
	}
	asked := *p.plan
	if p.keepAsked(); asks(p.plan) {
		*p.plan = asked
		return
	}
	p.warnRescue(diags)
}

// warnRescue warns that a change waits for the end of the rescue.
func (p inPlace) warnRescue(diags *diag.Diagnostics) {
	diags.AddAttributeWarning(path.Root("rescue"), waitsSummary, fmt.Sprintf("Node %s is in rescue mode, so its new content and triggers wait: this plan keeps those of the state. "+
		"The plan that ends the rescue, or the first one after it, makes the change. %s", p.label(), p.endAdvice()))
}

// endAdvice says how to end the rescue of a machine.
func (p inPlace) endAdvice() string {
	if p.plan.Rescue.IsNull() {
		return "An operator or another client has started the rescue. To end it: baremetal node unrescue " + p.state.ID.ValueString() + "."
	}
	return "To end the rescue, remove rescue."
}

// planRescue plans that the machine enters or leaves rescue mode, after everything else was planned. It refuses other changes of a
// machine that stays in rescue mode.
func (p inPlace) planRescue(ctx context.Context, diags *diag.Diagnostics) {
	m := p.plan
	change := compare(ctx, m.Rescue, p.state.Rescue)
	at := path.Root("rescue")
	switch {
	case change == unclear:
		diags.AddAttributeError(at, "Value must be known during plan", "rescue and its password_wo_version decide whether the machine is restarted, so the plan must know them. "+
			"The password itself need not be known.")
		return
	case p.staysInRescue() && p.operates():
		diags.AddAttributeError(at, inRescueSummary, fmt.Sprintf("Node %s is in rescue mode, or enters it with this plan, which would also deploy or restart it. Leave out that change, or end the rescue first. %s",
			p.label(), p.endAdvice()))
		return
	case change == same:
		return
	case p.imported:
		diags.AddAttributeWarning(at, "Rescue is recorded only", fmt.Sprintf("Node %s was imported, so this apply does not touch the machine. If it is not in rescue mode, the next plan shows that.", p.label()))
		return
	}
	m.LastError = types.StringNull()
	m.Restarts = raise(p.state.Restarts, differs)
	if p.config.PowerState.IsNull() && p.state.PowerState.ValueString() != framework.PowerOn {
		m.PowerState = types.StringUnknown()
	}
	if m.Rescue.IsNull() {
		if !m.ProvisionState.IsUnknown() {
			m.ProvisionState = types.StringValue(provision.StateActive)
		}
		diags.AddWarning(leavesRescueSummary, fmt.Sprintf("Node %s is restarted, and runs what is deployed again: rescue was removed. The plan raises restarts.", p.label()))
		return
	}
	m.ProvisionState = types.StringValue(provision.StateRescued)
	diags.AddWarning(entersRescueSummary, fmt.Sprintf("Node %s is restarted into Ironic's rescue system, and does not run what is deployed until rescue is removed. "+
		"Its disks keep their data. The plan raises restarts.", p.label()))
}

// operates reports whether the plan, without rescue, deploys, rebuilds or restarts the machine.
func (p inPlace) operates() bool {
	return p.plan.ProvisionState.IsUnknown() || !p.plan.Restarts.Equal(p.state.Restarts)
}

// refuseRescueOfNew refuses rescue for a deployment that does not exist yet: there is nothing to rescue.
func refuseRescueOfNew(config *model, diags *diag.Diagnostics) {
	if !config.Rescue.IsNull() {
		diags.AddAttributeError(path.Root("rescue"), "Nothing to rescue", "This plan makes a new deployment, or replaces one, so there is nothing to rescue. Remove rescue, apply, and add it afterwards. "+
			"To rescue a machine that runs already, import its deployment, or adopt it, without rescue first.")
	}
}

// checkRescue warns if the node's rescue interface has no rescue mode, because the apply fails unless it changes that interface first.
func (d *deployment) checkRescue(ctx context.Context, plan, state *model, diags *diag.Diagnostics) {
	if plan.Rescue.IsNull() || state == nil || plan.Rescue.Equal(state.Rescue) {
		return
	}
	node, err := d.Client.NodeForRefresh(ctx, state.ID.ValueString())
	if err != nil || provision.CanRescue(node) {
		return // the apply reports what is wrong with the node
	}
	diags.AddAttributeWarning(path.Root("rescue"), "Node has no rescue mode", fmt.Sprintf("The rescue interface of node %s is %q. Unless the node changes first, the apply will fail. "+
		"Set hardware_interfaces = { rescue = \"agent\" } on its metal_host, and rescue_kernel and rescue_ramdisk in its driver_info.", ironic.NodeLabel(node), node.RescueInterface))
}

// leavesRescue reports whether the plan has announced that the machine leaves rescue mode.
func (u *update) leavesRescue() bool {
	return !u.imported && u.plan.Rescue.IsNull() && !u.state.Rescue.IsNull()
}

// entersRescue reports whether the plan has announced that the machine enters rescue mode, perhaps once more.
func (u *update) entersRescue() bool {
	return !u.imported && !u.plan.Rescue.IsNull() && !u.plan.Rescue.Equal(u.state.Rescue)
}

// rescueAfter returns rescue of the state after an update. A rescue that has failed, or whose password is not certain, is planned again.
func (u *update) rescueAfter(node *ironic.Node, failed updateStep, err error) types.Object {
	switch mode := provision.RescueOf(ironic.State(node.ProvisionState)); {
	case err == nil:
		return u.plan.Rescue
	case failed == updateEntersRescue && provision.IsInterrupted(err) && mode == provision.RescueChange:
		return u.plan.Rescue // Ironic continues
	case failed == updateEntersRescue && mode != provision.NotRescued:
		return unsureRescue()
	case failed > updateLeavesRescue && u.leavesRescue():
		return u.plan.Rescue // it has left it, and something else has failed
	}
	return u.state.Rescue
}
