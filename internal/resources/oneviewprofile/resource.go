// Package oneviewprofile implements the resource metal_oneview_profile: the server profile of a shared machine.
package oneviewprofile

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

var _ framework.Managed = (*oneviewProfile)(nil)

// statusUnfinished is the status of a profile that an interrupted run has not applied or not recorded in Ironic.
const statusUnfinished = "Unfinished"

// statusDeleting is the status of a profile that OneView is deleting, for another user or for an interrupted run.
const statusDeleting = "Deleting"

// New returns metal_oneview_profile.
func New() resource.Resource { return newOneviewProfile() }

type oneviewProfile struct{ framework.Resource }

func newOneviewProfile() *oneviewProfile {
	return &oneviewProfile{framework.Resource{Type: "metal_oneview_profile", IsThat: "URI of the server profile."}}
}

type oneviewProfileModel struct {
	ID          types.String   `tfsdk:"id"`
	NodeID      types.String   `tfsdk:"node_id"`
	HardwareURI types.String   `tfsdk:"server_hardware_uri"`
	TemplateURI types.String   `tfsdk:"server_profile_template_uri"`
	Name        types.String   `tfsdk:"name"`
	Ownership   types.String   `tfsdk:"ownership"`
	Compliance  types.String   `tfsdk:"template_compliance"`
	Status      types.String   `tfsdk:"status"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

func (o *oneviewProfile) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = o.Type
	resp.ResourceBehavior.MutableIdentity = true // see planInPlace
}

func (o *oneviewProfile) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := stringplanmodifier.UseStateForUnknown()
	uri := func(kind string) []validator.String {
		return []validator.String{stringvalidator.RegexMatches(uriPattern(kind), "must be a URI such as /rest/"+kind+"/...")}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Server profile of a node whose server hardware Ironic shares with users of HPE OneView. The profile exists " +
			"while you need the node. Afterwards the hardware is free for all users. See the guide " +
			"[OneView](../guides/oneview.md).\n\nTake the `node_id` of the `metal_deployment` from this resource. Then Terraform creates " +
			"the profile before the deployment, and removes it after the node is undeployed and cleaned.",
		Attributes: map[string]schema.Attribute{
			"id": framework.IDAttribute("URI of the server profile."),
			"node_id": schema.StringAttribute{
				Required: true, MarkdownDescription: "UUID or name of the node. A change to another node **replaces** the profile.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"server_hardware_uri": schema.StringAttribute{
				Optional: true, Computed: true, Validators: uri("server-hardware"), PlanModifiers: []planmodifier.String{stays},
				MarkdownDescription: "URI of the server hardware. A change **replaces** the profile. Default: " +
					"`driver_info.server_hardware_uri` of the node. If the node has no such key, the provider writes it.",
			},
			"server_profile_template_uri": schema.StringAttribute{
				Optional: true, Computed: true, Validators: uri("server-profile-templates"), PlanModifiers: []planmodifier.String{stays},
				MarkdownDescription: "URI of the server profile template. A change applies the other template, for which OneView may " +
					"**switch the server off**. It is an error while the node may run a deployment. Default: the capability " +
					"`server_profile_template_uri` of the node at the creation.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: []planmodifier.String{stays},
				Validators: []validator.String{
					stringvalidator.LengthBetween(1, 100),
					stringvalidator.RegexMatches(profileName, "must have no quotes, and no spaces at its ends"),
				},
				MarkdownDescription: "Name of the profile: unique in OneView, 1 to 100 characters, without quotes. A change renames the " +
					"profile. Default: `NAME [UUID]` of the node.",
			},
			"ownership": schema.StringAttribute{Computed: true, MarkdownDescription: "User of the server hardware at the last refresh: " +
				"`ironic` (it has this profile), `oneview` (it has another profile) or `free` (it has none)."},
			"template_compliance": schema.StringAttribute{Computed: true, MarkdownDescription: "`Compliant` or `NonCompliant` with the " +
				"template, or `Unknown` without one. If the template has changed in OneView, the next apply updates the profile, unless " +
				"the node may run a deployment."},
			"status": schema.StringAttribute{Computed: true, MarkdownDescription: "Health: `OK`, `Warning`, `Critical`, `Disabled` or " +
				"`Unknown`. `Unfinished`: an interrupted run has not applied the profile, and the next apply does. `Deleting`: OneView " +
				"is deleting it."},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time-out for applying the profile. Default: `45m`.",
				Update: true, UpdateDescription: "Time-out for changing the profile. Default: `45m`.",
				Delete: true, DeleteDescription: "Time-out for removing the profile. Default: `45m`.",
			}),
		},
	}
}

// configured reports whether an appliance is configured. If not, it adds an error.
func (o *oneviewProfile) configured(diags *diag.Diagnostics) bool {
	if o.Pool == nil {
		diags.AddError("OneView is not configured", "Set oneview in the provider block, or ONEVIEW_ENDPOINT, ONEVIEW_USERNAME and "+
			"ONEVIEW_PASSWORD in the environment.")
	}
	return o.Pool != nil
}

// Create creates the profile. It records the URI in state as soon as the appliance returns it.
func (o *oneviewProfile) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer o.Finish(ctx, &resp.Diagnostics)
	var plan oneviewProfileModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limit, diags := plan.Timeouts.Create(ctx, sharing.DefaultLimit)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	record := func(uri string) {
		if uri == "" {
			resp.State.RemoveResource(ctx)
			return
		}
		made := plan
		made.begun(uri)
		resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: made.ID})...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &made)...)
	}
	applied, err := o.Pool.Prepare(ctx, plan.prepare(limit, record))
	if err != nil {
		doing := "give node " + o.label(ctx, plan.NodeID.ValueString()) + " a server profile"
		if resp.State.Raw.IsNull() {
			framework.ReportUndone(&resp.Diagnostics, doing, err) // the appliance has created nothing
			return
		}
		framework.ReportCreation(&resp.Diagnostics, doing, err)
		return
	}
	plan.applied(applied)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (m *oneviewProfileModel) prepare(limit time.Duration, record func(string)) sharing.ProfileSpec {
	return sharing.ProfileSpec{
		NodeID: m.NodeID.ValueString(), Name: m.Name.ValueString(), HardwareURI: m.HardwareURI.ValueString(),
		TemplateURI: m.TemplateURI.ValueString(),
		Limit:       limit, Record: record,
	}
}

// begun completes a planned state with a profile that is being applied, so that all values are known.
func (m *oneviewProfileModel) begun(uri string) {
	m.ID, m.Status = types.StringValue(uri), types.StringValue(statusUnfinished)
	m.Ownership, m.Compliance = types.StringValue(string(sharing.UsedByOneView)), types.StringValue(string(oneview.ComplianceUnknown))
	for _, value := range []*types.String{&m.HardwareURI, &m.TemplateURI, &m.Name} {
		if value.IsUnknown() {
			*value = types.StringNull() // the next refresh sets it
		}
	}
}

// applied completes a planned state with a profile that is applied to its hardware.
func (m *oneviewProfileModel) applied(a *sharing.Applied) {
	m.ID, m.Ownership = types.StringValue(a.Profile.URI), types.StringValue(string(sharing.UsedByIronic))
	wanted := *m
	m.HardwareURI, m.TemplateURI, m.Name = types.StringValue(a.Hardware.URI), framework.OrNull(a.Profile.TemplateURI),
		types.StringValue(a.Profile.Name)
	framework.Keep(&m.HardwareURI, wanted.HardwareURI)
	framework.Keep(&m.TemplateURI, wanted.TemplateURI)
	framework.Keep(&m.Name, wanted.Name)
	m.Compliance, m.Status = types.StringValue(string(a.Profile.Compliance)), framework.OrNull(a.Profile.Status)
}

// Read refreshes the state, and removes the profile from it only if the appliance says that it does not exist.
func (o *oneviewProfile) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var state oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	doing := "read server profile " + state.ID.ValueString()
	profile, err := o.Pool.OneView.Profile(ctx, state.ID.ValueString())
	if oneview.IsNotFound(err) {
		o.warnGone(ctx, &state, &resp.Diagnostics)
		resp.State.RemoveResource(ctx)
		return
	}
	if err == nil && state.NodeID.IsNull() {
		err = o.findNode(ctx, &state)
	}
	if err != nil {
		framework.Report(&resp.Diagnostics, doing, err)
		return
	}
	state.describe(profile)
	node, err := o.Site.Ironic.NodeForRefresh(ctx, state.NodeID.ValueString())
	if api.IsNotFound(err) && o.findNode(ctx, &state) == nil { // the node was renamed
		node, err = o.Site.Ironic.NodeForRefresh(ctx, state.NodeID.ValueString())
	}
	if o.RefuseHidden(ctx, req.Private, "node "+state.NodeID.ValueString(), func(context.Context) error { return err }, &resp.Diagnostics) {
		return
	}
	if api.IsNotFound(err) {
		state.Ownership = types.StringValue(string(sharing.UsedByOneView))
		framework.Show(&resp.Diagnostics, sharing.ProfileWithoutNode(state.NodeID.ValueString(), o.Site.Ironic.Project(), profile))
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		return
	}
	var holding sharing.Holding
	if err == nil {
		holding, err = o.Pool.Inspect(ctx, node)
	}
	if err == nil {
		state.locate(profile, holding.Hardware)
	}
	if err != nil {
		framework.Report(&resp.Diagnostics, doing, err)
		return
	}
	state.show(node, profile, holding, &resp.Diagnostics)
	kept.compare(profile, holding)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// describe sets what the appliance tells of the profile alone.
func (m *oneviewProfileModel) describe(profile *oneview.Profile) {
	m.Name, m.Compliance, m.Status = types.StringValue(profile.Name), types.StringValue(string(profile.Compliance)),
		framework.OrNull(profile.Status)
	if profile.TemplateURI != "" {
		m.TemplateURI = sameOr(m.TemplateURI, profile.TemplateURI)
	}
}

// locate sets the hardware on which the profile was applied. If another user moves the profile, the hardware stays the same, unless
// the node has moved too: a blade was replaced, and an operator has corrected driver_info.
func (m *oneviewProfileModel) locate(profile *oneview.Profile, ofNode *oneview.Hardware) {
	if m.HardwareURI.IsNull() || (profile.HardwareURI != "" && oneview.SameURI(profile.HardwareURI, ofNode.URI)) {
		m.HardwareURI = sameOr(m.HardwareURI, ofNode.URI)
	}
}

func (o *oneviewProfile) warnGone(ctx context.Context, state *oneviewProfileModel, diags *diag.Diagnostics) {
	node, err := o.Site.Ironic.NodeForRefresh(ctx, state.NodeID.ValueString())
	if err != nil {
		node = nil
	}
	framework.Show(diags, sharing.ProfileGone(state.ID.ValueString(), state.NodeID.ValueString(), node))
}

// labelLimit is the longest time that a message waits for the name of its node.
const labelLimit = 5 * time.Second

// label names a node in messages: by its name if Ironic answers.
func (o *oneviewProfile) label(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, labelLimit)
	defer cancel()
	if node, err := o.Site.Ironic.NodeForRefresh(ctx, id); err == nil {
		return ironic.NodeLabel(node)
	}
	return id
}

// show sets what the appliance tells of the profile, and warns if another user has the hardware.
func (m *oneviewProfileModel) show(node *ironic.Node, profile *oneview.Profile, h sharing.Holding, diags *diag.Diagnostics) {
	m.Ownership = types.StringValue(string(h.Ownership))
	applied := h.Profile != nil && oneview.SameURI(h.Profile.URI, profile.URI)
	switch {
	case h.Ownership == sharing.UsedByOneView && !h.Unfinished:
		framework.Show(diags, sharing.HardwareTaken(node, h))
	case profile.Deleting():
		m.Status = types.StringValue(statusDeleting)
	case !applied || h.Unfinished || profile.InProgress:
		m.Status = types.StringValue(statusUnfinished)
	}
}

// sameOr returns the present value if it means the same URI, else the other.
func sameOr(present types.String, uri string) types.String {
	if oneview.SameURI(present.ValueString(), uri) {
		return present
	}
	return types.StringValue(uri)
}

// Update completes an interrupted profile, renames the profile, or applies a template.
func (o *oneviewProfile) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer o.Finish(ctx, &resp.Diagnostics)
	var plan, state oneviewProfileModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := plan.Timeouts.Update(ctx, sharing.DefaultLimit)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	steps := framework.PlannedSteps[sharing.Step](ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if len(steps) == 0 { // only timeouts, or what the plan keeps
		plan.Ownership, plan.Compliance, plan.Status = state.Ownership, state.Compliance, state.Status
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	applied, err := o.execute(ctx, steps[0], &plan, &state, limit, &resp.Diagnostics)
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "change the server profile of node "+o.label(ctx, plan.NodeID.ValueString()), err)
		return
	}
	plan.applied(applied)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// execute executes the step of a plan. It does not apply a changed template to a node that has begun to run a deployment since.
func (o *oneviewProfile) execute(ctx context.Context, step sharing.Step, plan, state *oneviewProfileModel, limit time.Duration,
	diags *diag.Diagnostics,
) (*sharing.Applied, error) {
	if step.Do == sharing.DoComplete {
		return o.Pool.Prepare(ctx, plan.prepare(limit, nil))
	}
	change := sharing.UpdateOptions{
		NodeID: plan.NodeID.ValueString(), ProfileURI: state.ID.ValueString(),
		Reapply: step.Reapply, Limit: limit,
	}
	var busy *ironic.Node
	if step.Reapply {
		var err error
		if busy, err = o.busy(ctx, plan.NodeID.ValueString()); err != nil {
			return nil, err
		}
		change.Reapply = busy == nil
	}
	if step.Renames {
		change.Name = plan.Name.ValueString()
	}
	if step.Template {
		change.TemplateURI = plan.TemplateURI.ValueString()
	}
	applied, err := o.Pool.Update(ctx, change)
	if err == nil && busy != nil && !step.Renames && !step.Template && applied.Profile.Compliance == oneview.NonCompliant {
		framework.Show(diags, sharing.NotApplied(busy, "")...)
	}
	return applied, err
}

// busy returns the node if it may run a deployment, so that the template cannot be applied; else nil. The state of the node may have
// changed since the plan.
func (o *oneviewProfile) busy(ctx context.Context, id string) (*ironic.Node, error) {
	node, err := o.Site.Ironic.Node(ctx, id)
	if err != nil || !sharing.MayRun(node) {
		return nil, err
	}
	return node, nil
}

// Delete removes the profile if Ironic uses it.
func (o *oneviewProfile) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer o.Finish(ctx, &resp.Diagnostics)
	var state oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := state.Timeouts.Delete(ctx, sharing.DefaultLimit)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	// Without its node, a profile is removed even if the server is on.
	if o.RefuseHidden(ctx, req.Private, "node "+state.NodeID.ValueString(), o.AskNode(state.NodeID.ValueString()), &resp.Diagnostics) {
		return
	}
	if project := o.Site.Ironic.Project(); project != "" && api.IsNotFound(o.AskNode(state.NodeID.ValueString())(ctx)) {
		resp.Diagnostics.AddError("Node is not visible in Ironic",
			fmt.Sprintf("Server profile %s was not removed, because Ironic does not have its node, %s, or does not show it to project "+
				"%s, and the server may run. Destroy it as a user of the system, or delete the profile in OneView. Then: terraform state "+
				"rm <its address>.", state.ID.ValueString(), state.NodeID.ValueString(), project))
		return
	}
	gone := sharing.ReleaseOptions{
		NodeID: state.NodeID.ValueString(), ProfileURI: state.ID.ValueString(), HardwareURI: state.HardwareURI.ValueString(), Limit: limit,
		Left: func(profile *oneview.Profile, why string) {
			framework.Show(&resp.Diagnostics, sharing.ProfileLeft(profile, o.label(ctx, state.NodeID.ValueString()), why))
		},
	}
	if err := o.Pool.Release(ctx, gone); err != nil {
		framework.ReportUndone(&resp.Diagnostics, "remove server profile "+state.ID.ValueString()+" of node "+
			o.label(ctx, state.NodeID.ValueString()), err)
	}
}
