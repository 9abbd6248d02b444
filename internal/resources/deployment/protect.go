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

// staysProtected reports whether the node is protected, as of the last refresh, and the plan does not end that. An update ends it
// before anything else.
func (m *model) staysProtected(state *model) bool {
	return state.Protected.ValueBool() && !framework.IsFalse(m.Protected)
}

const protectedSummary = "Machine is protected"

// refuseInPlace adds the error for an update that would wipe a protected machine. doing is what the plan would do, such as "rebuild it".
func refuseInPlace(diags *diag.Diagnostics, label, doing string) {
	diags.AddAttributeError(path.Root("protected"), protectedSummary, fmt.Sprintf("Node %s is protected in Ironic, and this plan would %s. "+
		"If the machine may be wiped, set protected = false. It can be set in the same apply as the change.", label, doing))
}

// refuseEnd adds the error for a plan that would end the deployment of a protected machine, and reports whether it has.
func (d *deployment) refuseEnd(ctx context.Context, state *model, doing string, diags *diag.Diagnostics) bool {
	if !state.Protected.ValueBool() || state.OnDestroy.ValueString() == destroyForget {
		return false
	}
	diags.AddAttributeError(path.Root("protected"), protectedSummary, fmt.Sprintf("Node %s is protected in Ironic, and this plan would %s its deployment, which undeploys the machine. "+
		"If it may be wiped, first apply protected = false, without any other change.", d.label(ctx, state), doing))
	return true
}

// protectNew protects a machine that was just deployed. If that is impossible it warns: an error would taint the resource, and the
// next apply would wipe the machine.
func (d *deployment) protectNew(ctx context.Context, machine *provision.Machine, diags *diag.Diagnostics) {
	if err := machine.Protect(ctx, true); err != nil {
		summary, detail := provision.Explain("protect node "+ironic.NodeLabel(machine.Node()), err)
		diags.AddWarning(summary, detail+"\n\nThe machine is deployed, and not protected. The next plan shows that, and its apply protects the machine.")
	}
}

// refuseCreation adds the error for a new deployment on a protected node. Terraform does not tell the provider that it replaces a
// resource that is tainted or named by -replace: the provider sees only a creation.
func refuseCreation(node *ironic.Node, diags *diag.Diagnostics) {
	diags.AddAttributeError(path.Root("protected"), protectedSummary, fmt.Sprintf("Node %s is protected in Ironic, and a new deployment would first undeploy it. "+
		"If this plan replaces its deployment, because that is tainted or because of -replace, and if the machine may be wiped: run terraform untaint if it is tainted, "+
		"apply protected = false without -replace, and then replace it. If an earlier run of yours has deployed it and its state is lost, import it:\n\n"+
		"  terraform import <address of the metal_deployment> %s\n\nIf the node belongs to another user, choose another node.", ironic.NodeLabel(node), node.UUID))
}
