package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/commission"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Values of on_failure.
const (
	onFailureError = "error"
	onFailureWarn  = "warn"
)

// change is an apply of a host: its models, and the work in Ironic.
type change struct {
	config, plan *model
	state        *model  // the prior state; nil for a new host
	before       managed // what was managed until now
	takesOver    bool    // a new host gets a node that there is

	work *commission.Work
}

// begin makes the work on a node. order has what the models do not say.
func (c *change) begin(ctx context.Context, h *host, m *machine.Machine, order commission.Order) {
	order.Wish = c.plan.wish(ctx, c.config, c.state)
	order.Settings, order.Cabling = c.settings(ctx, order.Plan), c.config.cablingOf(ctx, c.before)
	order.Boot, order.OffMode = c.config.bootSettings(), machine.OffMode(c.config.PowerOffMode.ValueString())
	_, order.NoRamdisk = c.config.hardwareChanges()
	order.IsMade = c.state == nil && !c.takesOver
	order.GoesOn = c.plan.OnFailure.ValueString() == onFailureWarn
	order.EndTemporary = h.EndTemporary
	if c.state != nil {
		order.Was = c.state.node()
		order.Intent = c.plan.intent(ctx, c.config, c.state, m.Node().DriverInfo, c.before)
	}
	c.work = commission.New(m, order)
}

// settings returns what the apply makes of the settings of the node.
func (c *change) settings(ctx context.Context, todo enroll.Plan) *enroll.HostSettings {
	want := c.config.hostSettings(ctx, c.before)
	switch {
	case c.state != nil:
		want.Written, want.Resends = c.state.settings(ctx), c.plan.secretsVersion(ctx) != c.state.secretsVersion(ctx)
	case c.takesOver: // the node has nothing of the configuration yet
		want.Written, want.Resends = ironic.Settings{}, true
	}
	want.IsNew = c.state == nil
	want.KeepsRetired, want.DropsReason = c.plan.Retired.ValueBool() && !c.config.Retired.ValueBool(), c.plan.RetiredReason.IsNull()
	want.Forgets = c.state != nil && c.before == nil || c.config.InspectTriggers.IsNull() // after an import, those of another configuration
	if todo.Has(enroll.DoInspectAgain) {
		want.Inspects = hardware.Fingerprint(framework.StringMap(c.plan.InspectTriggers))
	}
	return want
}

// record writes the host into state, with the known planned values unchanged.
func (c *change) record(ctx context.Context, failed error, state *tfsdk.State, diags *diag.Diagnostics) {
	ctx = context.WithoutCancel(ctx) // the state must be complete after an interruption too
	framework.Show(diags, c.work.Look(ctx, failed, !c.plan.PortGroups.IsNull())...)
	if c.work.KeepsBoot {
		c.plan.BootMode, c.plan.SecureBoot = c.state.BootMode, c.state.SecureBoot
	}
	planned := *c.plan
	c.plan.fromNode(ctx, sight{node: c.work.Node(), Cables: c.work.Cables}, false)
	c.plan.keepPlanned(ctx, &planned)
	diags.Append(state.Set(ctx, c.plan)...)
}

// report adds the result of the work to the diagnostics.
func (c *change) report(diags *diag.Diagnostics, doing string, failed error) {
	notices, err := c.work.Result(doing, failed)
	framework.Show(diags, notices...)
	if c.state == nil {
		framework.ReportCreation(diags, doing, err)
	} else {
		framework.Report(diags, doing, err)
	}
}
