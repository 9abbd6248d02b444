package framework

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Managed is what the framework finds in every resource.
type Managed interface {
	resource.ResourceWithConfigure
	resource.ResourceWithIdentity
	resource.ResourceWithImportState
	resource.ResourceWithModifyPlan
}

// Resource is what resources have in common: the name, the identity, and the provider's clients.
type Resource struct {
	WithClient
	Type   string // such as "metal_runbook"
	IsThat string // what its id is, as a sentence
}

// Metadata names the resource.
func (r *Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.Type
}

// IdentitySchema describes its identity.
func (r *Resource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = IdentitySchema(r.IsThat)
}

// IDAttribute is the attribute id of a resource.
func IDAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, MarkdownDescription: description, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// Model is a pointer to the state M of a resource whose objects are a collection of Ironic. T is Ironic's object.
type Model[T, M any] interface {
	*M
	UUID() string                // of the object
	Subject() string             // how messages name it
	Refresh(context.Context, *T) // copies what Ironic shows
}

// Collected is a resource whose objects are a collection of Ironic. It is a list resource, too.
type Collected[T, M any, P Model[T, M]] struct {
	Resource
	In      ironic.Collection
	Thing   string // one of them, in messages
	Listing string // what the list resource does, in Markdown
	Label   func(*T) (id, name string)
	Find    func(ctx context.Context, ref string) (*T, error) // finds an object to import; nil: by UUID or name

	// Make creates the object, or takes over the one that a killed run has created.
	Make func(ctx context.Context, plan P) (machine.Made, error)
	// Change changes the object. keep records in the state what is done so far.
	Change func(ctx context.Context, plan, state P, keep func(P)) error
}

// Create creates the object, and records it in the state before it does what remains.
func (r *Collected[T, M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	plan := P(new(M))
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, err := r.Make(ctx, plan)
	if err != nil {
		ReportUndone(&resp.Diagnostics, "create "+plan.Subject(), err)
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, Identity{ID: types.StringValue(made.UUID)})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), made.UUID)...)
	Show(&resp.Diagnostics, made.Told...)
	if made.End == nil {
		return
	}
	err = made.End()
	if notes.IsSuperseded(err) {
		resp.State.RemoveResource(ctx)
	}
	Report(&resp.Diagnostics, "create "+plan.Subject(), err)
}

// Update changes the object.
func (r *Collected[T, M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	plan, state := P(new(M)), P(new(M))
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, Identity{ID: types.StringValue(state.UUID())})...)
	keep := func(done P) { resp.Diagnostics.Append(resp.State.Set(ctx, done)...) }
	if err := r.Change(ctx, plan, state, keep); err != nil {
		ReportUndone(&resp.Diagnostics, "change "+state.Subject(), err)
		return
	}
	keep(plan)
}

// Read refreshes the state.
func (r *Collected[T, M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, Identity{ID: types.StringValue(state.UUID())})...)
	found, err := ironic.ReadIn[T](ctx, r.Site.Ironic, r.In, state.UUID())
	switch {
	case api.IsNotFound(err):
		resp.State.RemoveResource(ctx)
	case err != nil:
		Report(&resp.Diagnostics, "read "+state.Subject(), err)
	default:
		state.Refresh(ctx, found)
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	}
}

// Delete deletes the object, unless another resource of the same run has taken it over. What it did to machines stays.
func (r *Collected[T, M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer r.Finish(ctx, &resp.Diagnostics)
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	switch {
	case resp.Diagnostics.HasError():
	case r.Site.Run.HasTakenOver(notes.MarkCreation, state.UUID()):
		WarnKept(&resp.Diagnostics, state.Subject())
	default:
		if err := r.Site.Ironic.DeleteIn(ctx, r.In, state.UUID()); err != nil {
			ReportUndone(&resp.Diagnostics, "delete "+state.Subject(), err)
		}
	}
}

// fill sets a listed object, which was read in full, as an import does.
func (r *Collected[T, M, P]) fill(ctx context.Context, found *T, to *tfsdk.Resource) diag.Diagnostics {
	id, _ := r.Label(found)
	m := P(new(M))
	diags := Listed(ctx, to, id, m)
	if diags.HasError() {
		return diags
	}
	m.Refresh(ctx, found)
	return append(diags, to.Set(ctx, m)...)
}

// ListResourceConfigSchema describes the filter.
func (r *Collected[T, M, P]) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = listschema.Schema{
		MarkdownDescription: r.Listing,
		Attributes:          map[string]listschema.Attribute{"name_regex": NameRegexAttribute(r.Thing + "s")},
	}
}

// List streams the objects whose names match the filter.
func (r *Collected[T, M, P]) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var nameRegex types.String
	if diags := req.Config.GetAttribute(ctx, path.Root("name_regex"), &nameRegex); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	names, limit := NamePattern(nameRegex), req.Limit
	if !nameRegex.IsNull() {
		limit = 0 // Ironic cannot count the objects with such names
	}
	id := func(found *T) string { uuid, _ := r.Label(found); return uuid }
	listing := Listing[T]{
		Doing: "list " + r.Thing + "s", Objects: ironic.StreamIn(ctx, r.Site.Ironic, r.In, limit, id),
		Chosen: func(found *T) bool { _, name := r.Label(found); return names.MatchString(name) },
		Label:  r.Label, Fill: r.fill,
	}
	if req.IncludeResource {
		listing.Objects = listing.whole(func(found *T) (*T, error) { return ironic.ReadIn[T](ctx, r.Site.Ironic, r.In, id(found)) })
	}
	stream.Results = listing.Results(ctx, req)
}

// ImportState finds the object.
func (r *Collected[T, M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	ref, ok := ImportID(ctx, req, resp)
	if !ok {
		return
	}
	find := r.Find
	if find == nil {
		find = func(ctx context.Context, ref string) (*T, error) {
			return ironic.ReadIn[T](ctx, r.Site.Ironic, r.In, ref)
		}
	}
	found, err := find(ctx, ref)
	if err != nil {
		ReportImport(&resp.Diagnostics, "import "+r.Thing+" "+ref, err)
		return
	}
	id, _ := r.Label(found)
	RecordImport(ctx, resp, id)
}
