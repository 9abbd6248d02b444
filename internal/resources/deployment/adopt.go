package deployment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// adopted reports whether the machine runs what others have deployed on it.
func (m *model) adopted() bool { return m.Adopt.ValueBool() }

// adoptedSummary is the same for all nodes, so that Terraform folds their warnings into one.
const adoptedSummary = "Machine is adopted"

// checkAdoption says how the adoption of a machine, and its end, affect that machine, and warns if it cannot be adopted now.
func (d *deployment) checkAdoption(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	label := plan.NodeID.ValueString()
	if d.Known() && framework.IsSet(plan.NodeID) {
		node, err := d.plannedNode(ctx, plan)
		if ironic.IsNotFound(err) {
			d.warnUnknown(ctx, label, diags)
		}
		if err == nil {
			label = ironic.NodeLabel(node)
			plan.warnAdoptedPower(node, diags)
			if err := provision.CheckAdoption(node); err != nil && provision.CheckAdoption(d.Client.AsPlanned(node)) != nil {
				_, detail := provision.Explain("", err)
				diags.AddAttributeWarning(path.Root("adopt"), "Node cannot be adopted", "Unless the node changes first, the apply will fail: "+detail)
				return
			}
		}
	}
	end := "leaves it running"
	if plan.OnDestroy.ValueString() == destroyUndeploy {
		end = "undeploys and cleans it, which erases its data"
	}
	if label == "" {
		label = "(known after apply)"
	}
	diags.AddAttributeWarning(path.Root("adopt"), adoptedSummary, fmt.Sprintf("Node %s is recorded as deployed, with what it runs: nothing is written to its disks, and it is not restarted. "+
		"Destroying the resource %s.", label, end))
}

// warnAdoptedPower warns if the apply switches an adopted machine.
func (m *model) warnAdoptedPower(node *ironic.Node, diags *diag.Diagnostics) {
	if wants := m.PowerState; framework.IsSet(wants) && wants.ValueString() != provision.Power(node) {
		diags.AddAttributeWarning(path.Root("power_state"), "Power is switched", fmt.Sprintf("Node %s is adopted as it runs, and then switched %s.", ironic.NodeLabel(node), wants.ValueString()))
	}
}

// endsAdoption reports whether destroying the resource ends an adoption and leaves a machine that runs alone. The state of a creation that has
// failed has no on_destroy.
func (m *model) endsAdoption() bool {
	return m.adopted() && m.OnDestroy.ValueString() != destroyUndeploy
}

// endAdoption is Delete for such a state.
func (d *deployment) endAdoption(ctx context.Context, state *model, diags *diag.Diagnostics) {
	limit, problems := state.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	id, instance := state.ID.ValueString(), state.InstanceID.ValueString()
	machine, err := d.Client.Machine(ctx, id)
	if ironic.IsNotFound(err) || d.Client.HasTakenOver(provision.MarkReservation, id) {
		return
	}
	runs := false
	if err == nil {
		err = state.disconnect(ctx, machine)
	}
	if err == nil {
		runs, err = machine.EndAdoption(ctx, instance, limit)
	}
	if err != nil {
		framework.ReportUndone(diags, "end the adoption of node "+id, err)
		return
	}
	if runs {
		d.Client.ForgetDeployment(ctx, id, instance)
	}
}
