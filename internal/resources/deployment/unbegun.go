package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// unbegunKey is the key in private state that marks a creation which was interrupted before Ironic was seen at work on the deployment.
const unbegunKey = "unbegun"

// begun reports whether Ironic has begun to deploy the machine, as of the last record of it.
func (m *model) begun() bool {
	return !provision.Settled(provision.GoalUndeployed, ironic.State(m.ProvisionState.ValueString()))
}

// noteCreation records in private state how a creation has ended: with the footprint of the machine, or before Ironic had begun.
func (m *model) noteCreation(ctx context.Context, private framework.SettablePrivate, runs provision.Footprint, failed error) diag.Diagnostics {
	switch {
	case failed == nil:
		return writeFootprint(ctx, private, runs)
	case provision.IsInterrupted(failed) && !m.begun():
		return private.SetKey(ctx, unbegunKey, []byte("true"))
	}
	return nil
}

// waits reports whether Ironic is at work on a deployment.
func (p inPlace) waits() bool {
	return provision.BeingDeployed(ironic.State(p.state.ProvisionState.ValueString()))
}

// neverBegun reports whether the creation was interrupted before Ironic had begun to deploy the machine.
func (p inPlace) neverBegun() bool {
	return p.unbegun && provision.Settled(provision.GoalUndeployed, ironic.State(p.state.ProvisionState.ValueString()))
}
