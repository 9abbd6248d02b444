package deployment

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// ModifyPlan shows what deploy.Decide decides, and stores its steps for the apply.
func (d *deployment) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config model
	var state *model
	diags := &resp.Diagnostics
	diags.Append(req.State.Get(ctx, &state)...)
	if state != nil && state.isImported() {
		framework.RefuseUnread(diags, "the deployment of node "+state.ID.ValueString())
		return
	}
	if state != nil && d.RefuseLost(ctx, kindDeployment, state.ID.ValueString(), "", req.Plan.Raw.IsNull(), diags) {
		return
	}
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, diags)
	defer store()
	if req.Plan.Raw.IsNull() {
		d.planEnd(ctx, state, kept, diags)
		return
	}
	diags.Append(req.Plan.Get(ctx, &plan)...)
	diags.Append(req.Config.Get(ctx, &config)...)
	if diags.HasError() || state == nil && d.RefuseLost(ctx, kindDeployment, plan.NodeID.ValueString(), "", false, diags) ||
		state != nil && d.planRestore(ctx, state, req, resp) {
		return
	}
	d.AgreeOnRollout(ctx, path.Root("rollout"), plan.Rollout, diags)
	wish := d.wish(ctx, &plan, &config, diags)
	seen := d.seen(ctx, state, wish, kept, diags)
	if diags.HasError() {
		return
	}
	look := d.decide(ctx, wish, seen)
	decided := look.Plan
	framework.Show(diags, decided.Notices...)
	d.tellEnd(state, decided)
	for _, name := range decided.Replaces {
		resp.RequiresReplace.Append(path.Root(name))
	}
	if decided.Stops() {
		return
	}
	if look.Place(ctx); look.Refused() {
		framework.Show(diags, look.Notices()...)
		return
	}
	look.Agent(ctx)
	look.Power(ctx)
	look.Image(ctx)
	framework.Show(diags, look.Notices()...)
	plan.show(ctx, &config, state, wish, decided)
	d.countAnew(&plan, state)
	if deploy.Has(decided.Steps, deploy.DoCheck) {
		plan.refuseUnreadable(ctx, diags)
	}
	diags.Append(resp.Plan.Set(ctx, &plan)...)
	framework.PlanSteps(ctx, req, resp, decided.Steps)
	if state == nil {
		kept.Replaces = d.replacement(ctx, &plan, wish.Deployment)
	}
	if changes := state == nil || !req.Plan.Raw.Equal(req.State.Raw); changes && d.Known() {
		d.checkServer(ctx, &config, deploy.Look{Site: d.Site, Wish: look.Wish, Seen: look.Seen, Plan: decided}, diags)
	}
}

// countAnew raises rebuilds for a deployment that is made anew, because Ironic has lost the one before. The plan of the apply has read
// nothing, and knows no number.
func (d *deployment) countAnew(plan, state *model) {
	if state == nil && !plan.adopted() && d.MakesAnew(kindDeployment, plan.NodeID.ValueString(), "") {
		plan.Rebuilds = types.Int64Unknown()
	}
}

// checkServer says what stands in the way of a change.
func (d *deployment) checkServer(ctx context.Context, config *model, server deploy.Look, diags *diag.Diagnostics) {
	d.checkVersions(ctx, config, diags)
	server.Obstacles(ctx)
	framework.Show(diags, server.Notices()...)
	d.foreseeRefusals(ctx, server, diags)
}

func (d *deployment) planEnd(ctx context.Context, state *model, kept *private, diags *diag.Diagnostics) {
	kept.Replaces = replacement{}
	if state == nil {
		return
	}
	kept.Superseded = d.Known() && d.Site.Run.HasTakenOver(notes.MarkReservation, state.ID.ValueString())
	look := d.decide(ctx, deploy.Wish{Destroy: true}, d.seen(ctx, state, deploy.Wish{}, kept, diags))
	framework.Show(diags, look.Plan.Notices...)
	if look.Plan.Refused() {
		return
	}
	if !kept.Superseded { // a creation that comes before the destruction keeps the machine
		look.Undeploys()
	}
	look.End(ctx)
	framework.Show(diags, look.Notices()...)
	d.foreseeEnd(ctx, state, diags)
	agent := deploy.Look{Site: look.Site, Wish: look.Wish, Seen: look.Seen}
	agent.Agent(ctx)
	framework.Show(diags, agent.Notices()...)
}

// tellEnd tells the host, which may be planned afterwards, that the plan undeploys the node before the host changes.
func (d *deployment) tellEnd(state *model, plan deploy.Plan) {
	if d.Known() && state != nil && deploy.Has(plan.Steps, deploy.DoUndeploy) {
		expect.Undeploy(d.Site, state.ID.ValueString())
	}
}

// seen returns what is seen of a deployment: what the state says, and what the plan does with its host.
func (d *deployment) seen(ctx context.Context, state *model, wish deploy.Wish, kept *private, diags *diag.Diagnostics) deploy.Seen {
	if state == nil {
		return deploy.Seen{New: true, Now: time.Now()}
	}
	s := seen(ctx, state, d.wishOf(ctx, state, diags), kept)
	if node := (&ironic.Node{UUID: s.ID, Name: s.Sight.Name}); d.Known() {
		s.HostEnds = expect.EndsHost(d.Site, s.ID)
		replaced := expect.ReplacesHost(d.Site, node)
		s.LosesNode, s.HostLeaves = wish.Node.Unknown && replaced, !wish.Node.Unknown && replaced
		s.LosesReservation = wish.Allocation.Unknown && expect.EndsAllocation(d.Site, s.Instance)
		s.KeepsDisks = expect.KeepsDisks(d.Site, node)
		s.PlannedName, s.Freed = expect.PlannedName(d.Site, node), expect.Freed(d.Site, node)
	}
	return s
}

// decide returns the plan for a wish, with what a Look needs to find obstacles. Only if the plan has notices or replaces the deployment, it
// looks up the name of the node, and decides again with the name in the messages: the look-up costs a request.
func (d *deployment) decide(ctx context.Context, wish deploy.Wish, seen deploy.Seen) deploy.Look {
	decided := deploy.Decide(wish, seen)
	look := deploy.Look{Wish: wish, Seen: seen, Plan: decided}
	if d.Known() {
		look.Site = d.Site
	}
	if speaks := len(decided.Notices) > 0 || len(decided.Replaces) > 0; speaks && !seen.New && d.Known() {
		look.Seen.Label = deploy.Label(ctx, d.Site, seen.ID)
		look.Seen.Disks = deploy.LookAtDisks(ctx, d.Site, decided, seen.ID)
		look.Plan = deploy.Decide(wish, look.Seen)
	}
	if !wish.Destroy {
		look.Wish = look.Plan.Forecast.Wish
	}
	return look
}

// checkVersions refuses settings that the server's API does not have.
func (d *deployment) checkVersions(ctx context.Context, config *model, diags *diag.Diagnostics) {
	drive := config.configDrive(ctx)
	d.Requires(ctx, diags, append(framework.StepFeatures(path.Root("deploy_steps"), config.DeploySteps),
		framework.Feature{Used: drive != nil && drive.isReady(), Since: api.VersionRebuildDrive, Name: path.Root("config_drive")},
		framework.Feature{Used: drive != nil && !drive.isReady(), Since: 56, Name: path.Root("config_drive")},
		framework.Feature{
			Used: drive != nil && !drive.VendorData.IsNull(), Since: 59,
			Name: path.Root("config_drive").AtName("vendor_data"),
		},
		framework.Feature{Used: config.adopted(), Since: api.VersionAdopt, Name: path.Root("adopt")},
		framework.Feature{Used: !config.InstanceName.IsNull(), Since: api.VersionInstanceName, Name: path.Root("instance_name")},
		framework.Feature{Used: !config.VIFs.IsNull(), Since: api.VersionVIFs, Name: path.Root("vifs")},
		framework.Feature{Used: config.namesPorts(), Since: api.VersionVIFPort, Name: path.Root("vifs")},
		framework.Feature{Used: !config.DeploySteps.IsNull(), Since: 69, Name: path.Root("deploy_steps")},
		framework.Feature{Used: !config.Rescue.IsNull(), Since: api.VersionRescue, Name: path.Root("rescue")},
		framework.Feature{Used: config.Protected.ValueBool(), Since: 48, Name: path.Root("protected")},
		framework.Feature{Used: config.quarantines(), Since: api.VersionRetired, Name: path.Root("on_failure")},
		framework.Feature{Used: !config.PowerOffMode.IsNull(), Since: api.VersionSoftPower, Name: path.Root("power_off_mode")},
	)...)
}

func (d *deployment) foreseeRefusals(ctx context.Context, look deploy.Look, diags *diag.Diagnostics) {
	var find expect.FindNode
	switch {
	case !look.Plan.Forecast.Fresh:
		find = d.FindNode(look.Seen.ID)
	case look.Wish.Node.Set:
		find = look.Node
	}
	d.ForeseeRefusals(ctx, diags, find, rights(look)...)
}

// rights returns the rights that the apply of a plan needs. An allocation can be destroyed though its deployment cannot be made.
func rights(look deploy.Look) (needs []framework.Right) {
	need := func(when bool, attribute, rule string) {
		if when {
			needs = append(needs, framework.RightAt(attribute, rule))
		}
	}
	w, s, p := look.Wish, look.Seen, look.Plan
	need(p.Forecast.Fresh || p.Operates(), "node_id", expect.RuleProvision)
	if p.Forecast.Fresh {
		needs[0].OnlyWarns = !w.Allocation.IsNull()
		need(w.Allocation.IsNull(), "node_id", "node:update:instance_uuid")
		need(!w.VIFs.IsNull(), "vifs", "node:vif:attach")
		return needs
	}
	need(w.Rescue != s.Was.Rescue, "rescue", expect.RuleProvision)
	need(w.VIFs != s.Was.VIFs, "vifs", "node:vif:attach")
	need(w.Name.Set && w.Name != s.Name, "instance_name", "node:update_instance_info")
	need(w.Protected.Set && w.Protected.V != s.Protected, "protected", "node:update")
	need(w.Power.Set && w.Power != s.Power, "power_state", "node:set_power_state")
	need(p.Forecast.Restarts != decide.Known(s.Restarts), "restart_triggers", "node:set_power_state")
	return needs
}

func (d *deployment) foreseeEnd(ctx context.Context, state *model, diags *diag.Diagnostics) {
	if state.OnDestroy.ValueString() != destroyForget &&
		deploy.IsDeployed(&ironic.Node{ProvisionState: state.ProvisionState.ValueString()}) {
		d.ForeseeRefusals(ctx, diags, d.FindNode(state.ID.ValueString()), framework.Right{Rule: expect.RuleProvision, OnlyWarns: true})
	}
}
