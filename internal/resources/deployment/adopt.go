package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/instance"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// adopted reports whether the machine runs what others have deployed on it.
func (m *model) adopted() bool { return m.Adopt.ValueBool() }

// endAdoption is Delete for such a state.
func (d *deployment) endAdoption(ctx context.Context, state *model, diags *diag.Diagnostics) {
	limit, problems := state.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	id, reserved := state.ID.ValueString(), state.InstanceID.ValueString()
	machine, err := d.Site.Machine(ctx, id)
	if api.IsNotFound(err) || d.Site.Run.HasTakenOver(marks.MarkReservation, id) {
		return
	}
	runs := false
	if err == nil {
		err = instance.Disconnect(ctx, machine, reserved, state.vifs())
	}
	if err == nil {
		runs, err = deploy.EndAdoption(ctx, machine, reserved, limit)
	}
	if err != nil {
		framework.ReportUndone(diags, "end the adoption of node "+id, err)
		return
	}
	if runs {
		d.Site.ForgetDeployment(ctx, id, reserved)
	}
}
