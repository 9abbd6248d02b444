package resources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var (
	_ resource.ResourceWithConfigure      = (*allocation)(nil)
	_ resource.ResourceWithIdentity       = (*allocation)(nil)
	_ resource.ResourceWithImportState    = (*allocation)(nil)
	_ resource.ResourceWithModifyPlan     = (*allocation)(nil)
	_ resource.ResourceWithValidateConfig = (*allocation)(nil)
)

const allocationTimeout = 10 * time.Minute

// mayReserveAnew ends the descriptions of what an allocation demands of its node.
const mayReserveAnew = " After a change that the reserved node satisfies, it stays reserved; else another is reserved in its place."

// NewAllocation returns metal_allocation.
func NewAllocation() resource.Resource { return &allocation{} }

type allocation struct{ withClient }

type allocationModel struct {
	ID             types.String   `tfsdk:"id"`
	Name           types.String   `tfsdk:"name"`
	ResourceClass  types.String   `tfsdk:"resource_class"`
	Traits         types.Set      `tfsdk:"traits"`
	CandidateNodes types.Set      `tfsdk:"candidate_nodes"`
	Owner          types.String   `tfsdk:"owner"`
	Extra          types.Dynamic  `tfsdk:"extra"`
	Node           types.String   `tfsdk:"node"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	NodeID         types.String   `tfsdk:"node_id"`
	NodeName       types.String   `tfsdk:"node_name"`
	State          types.String   `tfsdk:"state"`
	LastError      types.String   `tfsdk:"last_error"`
	CreatedAt      types.String   `tfsdk:"created_at"`
}

// Metadata names the resource.
func (a *allocation) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_allocation"
}

// IdentitySchema describes its identity.
func (a *allocation) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("allocation")
}

// Schema describes metal_allocation.
func (a *allocation) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A reservation of a node: Ironic finds an available one by class, traits and candidates. Reserving changes nothing on the machine. " +
			"Needs API 1.52.\n\n" +
			"Ironic deletes an allocation when its node is undeployed; a `metal_deployment` that names it in `allocation_id` keeps it over rebuilds, " +
			"replacement and destruction.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the allocation.", PlanModifiers: stays},
			"name": schema.StringAttribute{
				Optional: true, Validators: nameValidators(),
				MarkdownDescription: "Name, unique in Ironic. Ironic prefers the node of the same name (API 1.79). Renaming costs nothing (API 1.57).",
			},
			"resource_class": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 80)},
				MarkdownDescription: "Class that the node must have. Required unless `node` is given." + mayReserveAnew,
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: append(traitValidators(), setvalidator.SizeAtLeast(1)),
				MarkdownDescription: "Traits that the node must have." + mayReserveAnew,
			},
			"candidate_nodes": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: []validator.Set{setvalidator.SizeAtLeast(1)},
				MarkdownDescription: "UUIDs or names of the nodes to choose from; of hosts in the same configuration `metal_host.….id`, so that renaming them does not concern " +
					"the allocation. Default: all. An import does not read them back." + mayReserveAnew,
			},
			"owner": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Project that the node's owner or lessee must be. Needs API 1.60." + mayReserveAnew,
			},
			"extra": schema.DynamicAttribute{
				Optional: true, Validators: []validator.Dynamic{jsonObjectValue{}},
				MarkdownDescription: "Anything you want to keep with the allocation, as an object of JSON values. A change costs nothing (API 1.57).",
			},
			"node": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "UUID or name of an active node that nobody has reserved, to make an allocation for afterwards. Needs API 1.58." + mayReserveAnew,
				Validators: []validator.String{
					stringvalidator.ConflictsWith(path.MatchRoot("candidate_nodes"), path.MatchRoot("traits")), stringvalidator.LengthAtLeast(1),
				},
			},
			"timeouts": timeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time for Ironic to find a node. Default: `10m`.",
				Delete: true, DeleteDescription: "Not needed at present: releasing a node takes no time.",
			}),
			"node_id":    schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the reserved node.", PlanModifiers: stays},
			"node_name":  schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the reserved node."},
			"state":      schema.StringAttribute{Computed: true, MarkdownDescription: "`active`; after an interrupted apply `allocating`, or `error` if Ironic has found no node then: the next apply makes the allocation anew."},
			"last_error": schema.StringAttribute{Computed: true, MarkdownDescription: "Why the allocation failed."},
			"created_at": schema.StringAttribute{Computed: true, MarkdownDescription: "When it was made, in RFC 3339.", PlanModifiers: stays},
		},
	}
}

// ValidateConfig checks that something says which node.
func (a *allocation) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m allocationModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if m.ResourceClass.IsNull() && m.Node.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("resource_class"), "Setting missing",
			"Set resource_class, so that Ironic can choose a node, or node, to make an allocation for a node that is active already.")
	}
}

// Create reserves a node.
func (a *allocation) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer a.finish(ctx, &resp.Diagnostics)
	var plan allocationModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limit, diags := plan.Timeouts.Create(ctx, allocationTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	spec := plan.spec(ironic.NewUUID())
	doing := "allocate a node" + plan.purpose()
	made, err := a.client.CreateAllocation(ctx, spec)
	if err != nil {
		reportUndone(&resp.Diagnostics, doing, err)
		return
	}
	plan.fromAllocation(made, "")
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)

	made, err = a.client.AwaitAllocation(ctx, spec, limit)
	var none *ironic.NoMatchError
	if errors.As(err, &none) {
		resp.State.RemoveResource(ctx) // it was deleted again
	} else if made != nil {
		a.take(ctx, &plan, made)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
	report(&resp.Diagnostics, doing, err)
}

// purpose is how messages call an allocation that does not exist yet.
func (m *allocationModel) purpose() string {
	if isSet(m.Name) {
		return " for " + m.Name.ValueString()
	}
	return ""
}

func (m *allocationModel) spec(id string) ironic.AllocationSpec {
	spec := ironic.AllocationSpec{
		UUID: id, Name: m.Name.ValueString(), ResourceClass: m.ResourceClass.ValueString(), Traits: stringSet(m.Traits),
		CandidateNodes: stringSet(m.CandidateNodes), Owner: m.Owner.ValueString(), Node: m.Node.ValueString(),
	}
	if extra := jsonObject(m.Extra); len(extra) > 0 {
		spec.Extra = extra
	}
	slices.Sort(spec.Traits)
	return spec
}

// Read refreshes the state. An allocation that waits for its node to be undeployed still counts as there.
func (a *allocation) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state allocationModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	found, err := a.client.AllocationForRefresh(ctx, state.ID.ValueString())
	switch {
	case ironic.IsNotFound(err):
		switch suspended, err := a.suspended(ctx, &state); {
		case err != nil:
			report(&resp.Diagnostics, "tell whether allocation "+state.ID.ValueString()+" is gone for good", err)
		case !suspended:
			resp.State.RemoveResource(ctx)
		}
		return
	case err != nil:
		report(&resp.Diagnostics, "read allocation "+state.ID.ValueString(), err)
		return
	}
	if state.State.IsNull() {
		state.importAll(ctx, found)
	} else {
		state.Name = orNull(found.Name)
		state.Extra = refreshObject(ctx, state.Extra, found.Extra)
	}
	a.take(ctx, &state, found)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// suspended reports whether the allocation's node remembers it, because it is being undeployed. The node is asked now: what the
// refresh knows of it may be from before.
func (a *allocation) suspended(ctx context.Context, state *allocationModel) (bool, error) {
	if !isSet(state.NodeID) {
		return false, nil
	}
	node, err := a.client.Node(ctx, state.NodeID.ValueString())
	if ironic.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	spec := ironic.SuspendedAllocation(node)
	return spec != nil && spec.UUID == state.ID.ValueString(), nil
}

// importAll takes over what a configuration may say, from an allocation that was imported.
func (m *allocationModel) importAll(ctx context.Context, found *ironic.Allocation) {
	m.Name, m.ResourceClass, m.Owner = orNull(found.Name), orNull(found.ResourceClass), orNull(found.Owner)
	m.Traits, m.CandidateNodes = setValue(found.Traits), types.SetNull(types.StringType)
	m.Extra = dynamicObject(ctx, found.Extra)
}

// Update renames, changes extra, and waits for an allocation that was interrupted.
func (a *allocation) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer a.finish(ctx, &resp.Diagnostics)
	var plan, state allocationModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := plan.Timeouts.Create(ctx, allocationTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	id := state.ID.ValueString()
	var name *string
	if !plan.Name.Equal(state.Name) {
		text := plan.Name.ValueString()
		name = &text
	}
	set, remove := map[string]any{}, []string{}
	before, after := jsonObject(state.Extra), jsonObject(plan.Extra)
	for key, value := range after {
		if !ironic.SameJSON(before[key], value) {
			set[key] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[key]; !kept {
			remove = append(remove, key)
		}
	}
	if err := a.client.UpdateAllocation(ctx, id, name, set, remove); err != nil {
		reportUndone(&resp.Diagnostics, "change allocation "+id, err)
		return
	}
	found, err := a.client.AwaitAllocation(ctx, plan.spec(id), limit)
	if err != nil {
		reportUndone(&resp.Diagnostics, "allocate a node"+plan.purpose(), err)
		return
	}
	if node, err := a.client.NodeForRefresh(ctx, found.NodeUUID); err == nil {
		if misfits := plan.misfits(node, plan.demands(&state)); len(misfits) > 0 {
			resp.Diagnostics.AddAttributeError(path.Root(misfits[0]), "The reserved node does not fit any more",
				fmt.Sprintf("Node %s, which allocation %s has reserved, does not satisfy %s, as only became known now. It stays reserved. "+
					"To reserve another node, destroy what is deployed on this one, and run terraform apply -replace for this resource.",
					ironic.NodeLabel(node), id, strings.Join(misfits, ", ")))
			return
		}
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	wanted := plan
	a.take(ctx, &plan, found)
	keep(&plan.NodeName, wanted.NodeName)
	keep(&plan.LastError, wanted.LastError)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Delete releases the node.
func (a *allocation) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer a.finish(ctx, &resp.Diagnostics)
	var state allocationModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := a.client.DeleteAllocation(ctx, state.ID.ValueString()); err != nil {
		reportUndone(&resp.Diagnostics, fmt.Sprintf("release node %s of allocation %s", state.NodeName.ValueString(), state.ID.ValueString()), err)
	}
}

// ImportState finds the allocation by UUID or name.
func (a *allocation) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := importID(ctx, req, resp)
	if !ok {
		return
	}
	found, err := a.client.Allocation(ctx, id)
	if err != nil {
		report(&resp.Diagnostics, "import allocation "+id, err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), found.UUID)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: types.StringValue(found.UUID)})...)
}

// take puts an allocation and its node's name into a model.
func (a *allocation) take(ctx context.Context, m *allocationModel, found *ironic.Allocation) {
	name := ""
	if found.NodeUUID != "" {
		if node, err := a.client.NodeForRefresh(ctx, found.NodeUUID); err == nil {
			name = node.Name
		}
	}
	m.fromAllocation(found, name)
}

func (m *allocationModel) fromAllocation(found *ironic.Allocation, nodeName string) {
	m.ID, m.State = types.StringValue(found.UUID), types.StringValue(string(found.State))
	m.NodeID, m.NodeName, m.LastError = orNull(found.NodeUUID), orNull(nodeName), orNull(found.LastError)
	if !isSet(m.CreatedAt) { // an allocation that is kept over an undeployment is made anew
		m.CreatedAt = orNull(toTheSecond(found.CreatedAt))
	}
}

// toTheSecond is a time of Ironic's without its fraction of a second, which some answers have and others do not.
func toTheSecond(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	return t.UTC().Format(time.RFC3339)
}
