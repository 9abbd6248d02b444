package resources

import (
	"context"
	"fmt"
	"strings"
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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

var (
	_ resource.ResourceWithConfigure   = (*oneviewProfile)(nil)
	_ resource.ResourceWithIdentity    = (*oneviewProfile)(nil)
	_ resource.ResourceWithImportState = (*oneviewProfile)(nil)
	_ resource.ResourceWithModifyPlan  = (*oneviewProfile)(nil)
)

// statusUnfinished is the status of a profile that an interrupted run has not applied, or has not told Ironic of.
const statusUnfinished = "Unfinished"

// NewOneViewProfile returns metal_oneview_profile.
func NewOneViewProfile() resource.Resource { return &oneviewProfile{} }

type oneviewProfile struct{ withClient }

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

// Metadata names the resource.
func (o *oneviewProfile) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_oneview_profile"
	resp.ResourceBehavior.MutableIdentity = true // see planInPlace
}

// IdentitySchema describes its identity.
func (o *oneviewProfile) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("server profile, its URI")
}

// Schema describes metal_oneview_profile.
func (o *oneviewProfile) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := stringplanmodifier.UseStateForUnknown()
	uri := func(kind string) []validator.String {
		return []validator.String{stringvalidator.RegexMatches(uriPattern(kind), "must be a URI such as /rest/"+kind+"/...")}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The server profile of a node whose server hardware Ironic shares with other users of HPE OneView. It is made when the node is needed and removed when it is not, so that idle hardware is free for all. " +
			"Hardware to which somebody else has applied a profile is never touched. See the guide [OneView](../guides/oneview.md).\n\n" +
			"Let the `metal_deployment` depend on it, by `node_id`: then the profile is there before the deployment, and is removed after the node was undeployed and cleaned. " +
			"Creating and destroying the profile **switches the server off**, but never while something may run on the node.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "URI of the server profile.", PlanModifiers: []planmodifier.String{stays}},
			"node_id": schema.StringAttribute{
				Required: true, MarkdownDescription: "UUID or name of the node. Another node removes this profile and makes another; another name for the same node changes nothing.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"server_hardware_uri": schema.StringAttribute{
				Optional: true, Computed: true, Validators: uri("server-hardware"), PlanModifiers: []planmodifier.String{stays},
				MarkdownDescription: "Server hardware that the node is. Default: `driver_info.server_hardware_uri` of the node, where it is written if it is missing. A change removes this profile and makes another. That a blade was replaced is none: where OneView has left the profile in the bay, correct `driver_info.server_hardware_uri` of the node in Ironic, and the next refresh follows.",
			},
			"server_profile_template_uri": schema.StringAttribute{
				Optional: true, Computed: true, Validators: uri("server-profile-templates"), PlanModifiers: []planmodifier.String{stays},
				MarkdownDescription: "Template that the profile is made from. Default: the capability `server_profile_template_uri` that the node has when the profile is made. A change applies the other template in place; if OneView says that it takes that, the server is switched off. It is refused while something may run on the node.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: []planmodifier.String{stays}, Validators: []validator.String{stringvalidator.LengthBetween(1, 100), stringvalidator.RegexMatches(profileName, "must have no quotes, and no spaces at its ends")},
				MarkdownDescription: "Name of the profile, unique in OneView, without quotes. Default: `NAME [UUID]` of the node. A change renames the profile.",
			},
			"ownership":           schema.StringAttribute{Computed: true, MarkdownDescription: "Who uses the server hardware, as of the last refresh: `ironic`; `oneview` if another profile than this one is applied to it; `free` if none is."},
			"template_compliance": schema.StringAttribute{Computed: true, MarkdownDescription: "Whether the profile is what its template says: `Compliant`, `NonCompliant`, or `Unknown` if it is not linked to one. If the template has changed, a plan brings the profile in line with it as soon as nothing runs on the node."},
			"status":              schema.StringAttribute{Computed: true, MarkdownDescription: "Health of the profile: `OK`, `Warning`, `Critical`, `Disabled` or `Unknown`; `Unfinished` if the profile is not applied: the next apply completes what an interrupted run has begun."},
			"timeouts": timeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time for applying the profile. Default: `45m`.",
				Update: true, UpdateDescription: "Time for changing it. Default: `45m`.",
				Delete: true, DeleteDescription: "Time for removing it. Default: `45m`.",
			}),
		},
	}
}

// configured reports whether there is an appliance, and says what to do if not.
func (o *oneviewProfile) configured(diags *diag.Diagnostics) bool {
	if o.pool.OneView == nil {
		diags.AddError("OneView is not configured", "Set oneview in the provider block, or ONEVIEW_ENDPOINT, ONEVIEW_USERNAME and ONEVIEW_PASSWORD in the environment.")
	}
	return o.pool.OneView != nil
}

// Create makes the profile. Its URI is in state as soon as the appliance has told it.
func (o *oneviewProfile) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer o.finish(ctx, &resp.Diagnostics)
	var plan oneviewProfileModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limit, diags := plan.Timeouts.Create(ctx, oneview.DefaultLimit)
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
		resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: made.ID})...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &made)...)
	}
	applied, err := o.pool.Prepare(ctx, plan.prepare(limit, record))
	if err != nil {
		doing := "give node " + o.label(ctx, plan.NodeID.ValueString()) + " a server profile"
		if resp.State.Raw.IsNull() {
			reportUndone(&resp.Diagnostics, doing, err) // nothing was made
			return
		}
		report(&resp.Diagnostics, doing, err)
		return
	}
	plan.applied(applied)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// prepare is what Prepare is asked for.
func (m *oneviewProfileModel) prepare(limit time.Duration, record func(string)) oneview.PrepareOptions {
	return oneview.PrepareOptions{
		NodeID: m.NodeID.ValueString(), Name: m.Name.ValueString(), HardwareURI: m.HardwareURI.ValueString(), TemplateURI: m.TemplateURI.ValueString(),
		Limit: limit, Record: record,
	}
}

// begun puts a profile that is about to be applied into a planned state, with everything known.
func (m *oneviewProfileModel) begun(uri string) {
	m.ID, m.Status = types.StringValue(uri), types.StringValue(statusUnfinished)
	m.Ownership, m.Compliance = types.StringValue(string(oneview.UsedByOneView)), types.StringValue(string(oneview.ComplianceUnknown))
	for _, value := range []*types.String{&m.HardwareURI, &m.TemplateURI, &m.Name} {
		if value.IsUnknown() {
			*value = types.StringNull() // the next refresh knows
		}
	}
}

// applied puts a profile that is on its hardware into a planned state.
func (m *oneviewProfileModel) applied(a *oneview.Applied) {
	m.ID, m.Ownership = types.StringValue(a.Profile.URI), types.StringValue(string(oneview.UsedByIronic))
	wanted := *m
	m.HardwareURI, m.TemplateURI, m.Name = types.StringValue(a.Hardware.URI), orNull(a.Profile.TemplateURI), types.StringValue(a.Profile.Name)
	keep(&m.HardwareURI, wanted.HardwareURI)
	keep(&m.TemplateURI, wanted.TemplateURI)
	keep(&m.Name, wanted.Name)
	m.Compliance, m.Status = types.StringValue(string(a.Profile.Compliance)), orNull(a.Profile.Status)
}

// Read refreshes the state, and removes the profile from it only if the appliance says that it does not exist.
func (o *oneviewProfile) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	doing := "read server profile " + state.ID.ValueString()
	profile, err := o.pool.OneView.Profile(ctx, state.ID.ValueString())
	if oneview.IsNotFound(err) {
		o.warnGone(ctx, &state, &resp.Diagnostics)
		resp.State.RemoveResource(ctx)
		return
	}
	if err == nil && state.NodeID.IsNull() {
		err = o.findNode(ctx, &state)
	}
	if err != nil {
		report(&resp.Diagnostics, doing, err)
		return
	}
	state.Name, state.Compliance, state.Status = types.StringValue(profile.Name), types.StringValue(string(profile.Compliance)), orNull(profile.Status)
	if profile.TemplateURI != "" {
		state.TemplateURI = sameOr(state.TemplateURI, profile.TemplateURI)
	}
	node, err := o.client.NodeForRefresh(ctx, state.NodeID.ValueString())
	if ironic.IsNotFound(err) && o.findNode(ctx, &state) == nil { // it was known by another name
		node, err = o.client.NodeForRefresh(ctx, state.NodeID.ValueString())
	}
	if ironic.IsNotFound(err) {
		state.Ownership = types.StringValue(string(oneview.UsedByOneView))
		resp.Diagnostics.AddWarning("Server profile without a node", fmt.Sprintf("Node %s does not exist in Ironic any more; its server profile %s does. Destroy it.", state.NodeID.ValueString(), oneview.ProfileLabel(profile)))
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		return
	}
	var holding oneview.Holding
	if err == nil {
		holding, err = o.pool.Inspect(ctx, node)
	}
	if err == nil {
		state.locate(profile, holding.Hardware)
	}
	if err != nil {
		report(&resp.Diagnostics, doing, err)
		return
	}
	state.show(node, profile, holding, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// locate shows on which hardware the profile was applied. Where others move it is not followed, only where its node is, too: a
// blade was replaced, and somebody has corrected driver_info.
func (m *oneviewProfileModel) locate(profile *oneview.Profile, ofNode *oneview.Hardware) {
	if m.HardwareURI.IsNull() || (profile.HardwareURI != "" && sameURI(profile.HardwareURI, ofNode.URI)) {
		m.HardwareURI = sameOr(m.HardwareURI, ofNode.URI)
	}
}

// warnGone warns of a profile that somebody has deleted.
func (o *oneviewProfile) warnGone(ctx context.Context, state *oneviewProfileModel, diags *diag.Diagnostics) {
	label, runs := state.NodeID.ValueString(), ""
	if node, err := o.client.NodeForRefresh(ctx, label); err == nil {
		label = ironic.NodeLabel(node)
		if !ironic.Parked(ironic.State(node.ProvisionState)) {
			runs = fmt.Sprintf(" Something may run on the node (state %q), and a new profile takes switching the server off: the apply will fail. "+
				"To give up what runs there, use terraform apply -replace=ADDRESS of its metal_deployment: the node is undeployed and cleaned, gets a new profile, and is deployed again.", node.ProvisionState)
		}
	}
	diags.AddWarning("Server profile is gone", fmt.Sprintf("Server profile %s of node %s does not exist in OneView any more.%s", state.ID.ValueString(), label, runs))
}

// labelLimit is how long a message waits for the name of its node.
const labelLimit = 5 * time.Second

// label is how messages call a node: by name if Ironic can be asked.
func (o *oneviewProfile) label(ctx context.Context, id string) string {
	ctx, cancel := context.WithTimeout(ctx, labelLimit)
	defer cancel()
	if node, err := o.client.NodeForRefresh(ctx, id); err == nil {
		return ironic.NodeLabel(node)
	}
	return id
}

// show shows who holds the hardware, and what is wrong with the profile.
func (m *oneviewProfileModel) show(node *ironic.Node, profile *oneview.Profile, h oneview.Holding, diags *diag.Diagnostics) {
	m.Ownership = types.StringValue(string(h.Ownership))
	applied := h.Profile != nil && strings.EqualFold(h.Profile.URI, profile.URI)
	switch {
	case h.Ownership == oneview.UsedByOneView && !h.Unfinished:
		what := "a profile that cannot be read"
		if h.Profile != nil {
			what = oneview.ProfileLabel(h.Profile)
		}
		diags.AddWarning("Server hardware is used by OneView", fmt.Sprintf("Server hardware %s of node %s has server profile %s, which is not Ironic's. It is not touched. "+
			"Destroy this resource, or have the other profile removed.", oneview.HardwareLabel(h.Hardware), ironic.NodeLabel(node), what))
	case !applied || h.Unfinished || profile.InProgress:
		m.Status = types.StringValue(statusUnfinished)
	}
	if applied && len(h.Differences) > 0 {
		diags.AddWarning("Server profile differs from its template", fmt.Sprintf("Server profile %s of node %s: %s.", oneview.ProfileLabel(profile), ironic.NodeLabel(node), strings.Join(h.Differences, "; ")))
	}
}

// sameOr is the present value if it means the same URI, else the other.
func sameOr(present types.String, uri string) types.String {
	if sameURI(present.ValueString(), uri) {
		return present
	}
	return types.StringValue(uri)
}

// sameURI reports whether two URIs mean the same.
func sameURI(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/"))
}

// Update completes what was interrupted, renames the profile, or applies a template.
func (o *oneviewProfile) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer o.finish(ctx, &resp.Diagnostics)
	var plan, state oneviewProfileModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := plan.Timeouts.Update(ctx, oneview.DefaultLimit)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	if !plan.Status.IsUnknown() { // only timeouts
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	change := oneview.UpdateOptions{NodeID: plan.NodeID.ValueString(), ProfileURI: state.ID.ValueString(), Limit: limit}
	doing := func() string { return "change the server profile of node " + o.label(ctx, plan.NodeID.ValueString()) }
	var busy *ironic.Node
	if state.Compliance.ValueString() == string(oneview.NonCompliant) {
		var err error
		if busy, err = o.busy(ctx, plan.NodeID.ValueString()); err != nil {
			reportUndone(&resp.Diagnostics, doing(), err)
			return
		}
		change.Reapply = busy == nil
	}
	if !plan.Name.Equal(state.Name) {
		change.Name = plan.Name.ValueString()
	}
	if !plan.TemplateURI.Equal(state.TemplateURI) {
		change.TemplateURI = plan.TemplateURI.ValueString()
	}
	var applied *oneview.Applied
	var err error
	if state.Status.ValueString() == statusUnfinished {
		applied, err = o.pool.Prepare(ctx, plan.prepare(limit, nil))
	} else {
		applied, err = o.pool.Update(ctx, change)
	}
	if err != nil {
		reportUndone(&resp.Diagnostics, doing(), err)
		return
	}
	plan.applied(applied)
	if busy != nil && change.Name == "" && change.TemplateURI == "" && plan.Compliance.ValueString() == string(oneview.NonCompliant) {
		warnNotApplied(busy, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// busy is the node if something may run on it, so that its profile is not brought in line with the template; else nil. That may
// have changed since the plan.
func (o *oneviewProfile) busy(ctx context.Context, id string) (*ironic.Node, error) {
	node, err := o.client.Node(ctx, id)
	if err != nil || ironic.Parked(ironic.State(node.ProvisionState)) {
		return nil, err
	}
	return node, nil
}

// Delete removes the profile, if Ironic uses it.
func (o *oneviewProfile) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer o.finish(ctx, &resp.Diagnostics)
	var state oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := state.Timeouts.Delete(ctx, oneview.DefaultLimit)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !o.configured(&resp.Diagnostics) {
		return
	}
	gone := oneview.ReleaseOptions{
		NodeID: state.NodeID.ValueString(), ProfileURI: state.ID.ValueString(), HardwareURI: state.HardwareURI.ValueString(), Limit: limit,
		Left: func(profile *oneview.Profile, why string) {
			resp.Diagnostics.AddWarning("Server profile is left", fmt.Sprintf("Server profile %s of node %s was not removed: %s.", oneview.ProfileLabel(profile), o.label(ctx, state.NodeID.ValueString()), why))
		},
	}
	if err := o.pool.Release(ctx, gone); err != nil {
		reportUndone(&resp.Diagnostics, "remove server profile "+state.ID.ValueString()+" of node "+o.label(ctx, state.NodeID.ValueString()), err)
	}
}
