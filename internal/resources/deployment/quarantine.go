package deployment

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Values of on_failure, and the default of max_nodes.
const (
	failureKeep       = "keep"
	failureQuarantine = "quarantine"
	defaultMaxNodes   = 3
)

// quarantines reports whether a node on which the deployment fails is put into quarantine.
func (m *model) quarantines() bool { return m.OnFailure.ValueString() == failureQuarantine }

// validateQuarantine refuses a quarantine without an allocation, which would have no other node, and settings without effect.
func (m *model) validateQuarantine(diags *diag.Diagnostics) {
	if !m.MaxNodes.IsNull() && !m.OnFailure.IsUnknown() && !m.quarantines() {
		diags.AddAttributeError(path.Root("max_nodes"), "Unused setting", "max_nodes has an effect only with on_failure = \"quarantine\". Set that, or remove max_nodes.")
	}
	switch {
	case !m.quarantines():
	case m.adopted():
		diags.AddAttributeError(path.Root("on_failure"), "Unused setting", "on_failure has no effect with adopt = true: there is nothing to deploy. Remove it, or set image.")
	case m.AllocationID.IsNull():
		diags.AddAttributeError(path.Root("on_failure"), "Missing setting", "With on_failure = \"quarantine\", the next apply deploys another node, which only an allocation can choose: "+
			"set allocation_id to the id of a metal_allocation with a name.")
	}
}

// mostNodes returns max_nodes, or its default.
func (m *model) mostNodes() int {
	if !framework.IsSet(m.MaxNodes) {
		return defaultMaxNodes
	}
	return int(m.MaxNodes.ValueInt64())
}

// beginTry finishes the quarantine of a node that a killed run has left. Otherwise, if a failure leads to a quarantine, it checks that
// the deployment may try another node. The returned value is nil if a failure leaves the node as it is.
func (d *deployment) beginTry(ctx context.Context, plan *model, machine *machine.Machine, diags *diag.Diagnostics) (*deploy.Try, error) {
	limit, problems := plan.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	if err := deploy.FinishQuarantine(ctx, machine, plan.AllocationID.ValueString(), limit); err != nil {
		return nil, errors.Join(err, d.EndTemporary(ctx, machine.Node(), limit))
	}
	if !plan.quarantines() {
		return nil, nil //nolint:nilnil // no try
	}
	allocation, err := deploy.NamedAllocation(ctx, d.Site, plan.AllocationID.ValueString())
	if err != nil {
		return nil, err
	}
	try, err := deploy.CheckTries(ctx, d.Site, allocation, plan.mostNodes())
	return &try, err
}

// endTry puts the machine of a failed creation into quarantine: see deploy.EndTry.
func (d *deployment) endTry(ctx context.Context, plan *model, on *machine.Machine, try *deploy.Try, failed error, diags *diag.Diagnostics) (quarantined bool, err error) {
	limit, _ := plan.Timeouts.Delete(ctx, deploymentTimeout) // beginTry has reported what is wrong with it
	quarantined, notices, err := deploy.EndTry(ctx, on, try, failed, limit, d.EndTemporary)
	framework.Show(diags, notices...)
	return quarantined, err
}
