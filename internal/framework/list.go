package framework

import (
	"context"
	"iter"
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Listing is how a list resource answers. T is Ironic's object.
type Listing[T any] struct {
	Doing   string               // such as "list hosts", for messages
	Objects iter.Seq2[*T, error] // what Ironic lists, page by page
	Chosen  func(*T) bool        // whether the user has selected the object
	Label   func(*T) (id, name string)
	Fill    func(context.Context, *T, *tfsdk.Resource) diag.Diagnostics // sets what an import of the object would put into state
}

// AtOnce yields the objects of a list that has no pages, and reads it when the first of them is asked for.
func AtOnce[T any](read func() ([]*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		all, err := read()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, object := range all {
			if !yield(object, nil) {
				return
			}
		}
	}
}

// Results streams a result for each chosen object, until the limit of the request. It reads no more pages than that takes.
func (l Listing[T]) Results(ctx context.Context, req list.ListRequest) iter.Seq[list.ListResult] {
	return func(push func(list.ListResult) bool) {
		count := int64(0)
		for object, err := range l.Objects {
			if err != nil {
				push(failedListing(l.Doing, err))
				return
			}
			if !l.Chosen(object) {
				continue
			}
			result := l.result(ctx, req, object)
			count++
			if !push(result) || result.Diagnostics.HasError() || count == req.Limit {
				return
			}
		}
	}
}

// result describes one object. Its display name is the name, or else the UUID.
func (l Listing[T]) result(ctx context.Context, req list.ListRequest, object *T) list.ListResult {
	result := req.NewListResult(ctx)
	id, name := l.Label(object)
	if result.DisplayName = name; name == "" {
		result.DisplayName = id
	}
	result.Diagnostics.Append(result.Identity.Set(ctx, Identity{ID: types.StringValue(id)})...)
	if req.IncludeResource {
		result.Diagnostics.Append(l.Fill(ctx, object, result.Resource)...)
	}
	return result
}

// whole yields the chosen objects, each read in full, because a list has no steps. It leaves out those that are deleted meanwhile.
func (l Listing[T]) whole(read func(*T) (*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for object, err := range l.Objects {
			if err == nil && !l.Chosen(object) {
				continue
			}
			if err == nil {
				if object, err = read(object); api.IsNotFound(err) {
					continue
				}
			}
			if !yield(object, err) {
				return
			}
		}
	}
}

// failedListing is the last result of a list that has failed.
func failedListing(doing string, err error) (failed list.ListResult) {
	failed.Diagnostics.AddError(failure.Explain(doing, err))
	return failed
}

// Listed puts the id of a listed object into its resource, and reads the resource into a model, whose other values are null then.
func Listed(ctx context.Context, resource *tfsdk.Resource, id string, model any) diag.Diagnostics {
	diags := resource.SetAttribute(ctx, path.Root("id"), id)
	diags.Append(resource.Get(ctx, model)...)
	return diags
}

// NodeFilterAttributes returns the attributes of NodeFilter for a list resource, and further ones.
func NodeFilterAttributes(things string, further map[string]listschema.Attribute) map[string]listschema.Attribute {
	attributes := map[string]listschema.Attribute{"name_regex": NameRegexAttribute(things)}
	for name, description := range NodeFilterTexts(things) {
		attributes[name] = listschema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	for name, description := range NodeFilterFlags(things) {
		attributes[name] = listschema.BoolAttribute{Optional: true, MarkdownDescription: description}
	}
	maps.Copy(attributes, further)
	return attributes
}

// NameRegexAttribute is the attribute name_regex of a list resource.
func NameRegexAttribute(things string) listschema.Attribute {
	return listschema.StringAttribute{
		Optional: true, MarkdownDescription: NameRegexDescription(things),
		Validators: []validator.String{RegularExpression},
	}
}

// NodeFilter has the attributes by which users select nodes. A model embeds it.
type NodeFilter struct {
	NameRegex           types.String `tfsdk:"name_regex"`
	ProvisionState      types.String `tfsdk:"provision_state"`
	ResourceClass       types.String `tfsdk:"resource_class"`
	ConductorGroup      types.String `tfsdk:"conductor_group"`
	Owner               types.String `tfsdk:"owner"`
	Lessee              types.String `tfsdk:"lessee"`
	Project             types.String `tfsdk:"project"`
	Driver              types.String `tfsdk:"driver"`
	Fault               types.String `tfsdk:"fault"`
	Shard               types.String `tfsdk:"shard"`
	DescriptionContains types.String `tfsdk:"description_contains"`
	ChassisID           types.String `tfsdk:"chassis_id"`
	Maintenance         types.Bool   `tfsdk:"maintenance"`
	Retired             types.Bool   `tfsdk:"retired"`
}

// NameRegexDescription is the description of name_regex. things are what it selects, such as "hosts".
func NameRegexDescription(things string) string {
	return "Only " + things + " whose name matches this regular expression (RE2). It also matches a part of the name; use `^` and `$` " +
		"for the whole name."
}

// NodeFilterTexts returns the descriptions of the other string attributes of NodeFilter.
func NodeFilterTexts(things string) map[string]string {
	described := map[string]string{
		"provision_state": "in this provision state, such as `available`.", "resource_class": "of this resource class.",
		"conductor_group": "of this conductor group.", "owner": "of this owner.", "lessee": "with this lessee. Needs API 1.65.",
		"project": "whose owner or lessee is this project. Needs API 1.65.", "driver": "with this driver.",
		"fault": "with this fault, such as `power failure`.", "shard": "of this shard. Needs API 1.82.",
		"description_contains": "whose description contains this text.", "chassis_id": "of the chassis with this UUID.",
	}
	for name, description := range described {
		described[name] = "Only " + things + " " + description
	}
	return described
}

// NodeFilterFlags returns the descriptions of the boolean attributes of NodeFilter.
func NodeFilterFlags(things string) map[string]string {
	described := map[string]string{"maintenance": "in maintenance", "retired": "retired"}
	for name, description := range described {
		described[name] = OnlyIf(things, description)
	}
	return described
}

// OnlyIf returns the description of a boolean filter. things are what it selects, such as "hosts"; are is its condition, such as "in
// maintenance".
func OnlyIf(things, are string) string {
	return "Only " + things + " that are " + are + " (`true`) or are not (`false`)."
}

// IfReserved is the condition of the filter "associated", for OnlyIf.
const IfReserved = "reserved by an allocation or instance"

// Filter returns the filters that Ironic applies.
func (f *NodeFilter) Filter() ironic.NodeFilter {
	return ironic.NodeFilter{
		ProvisionState: f.ProvisionState.ValueString(), ResourceClass: f.ResourceClass.ValueString(),
		ConductorGroup: f.ConductorGroup.ValueString(),
		Owner:          f.Owner.ValueString(), Lessee: f.Lessee.ValueString(), Project: f.Project.ValueString(),
		Driver: f.Driver.ValueString(),
		Fault:  f.Fault.ValueString(), Shard: f.Shard.ValueString(), DescriptionContains: f.DescriptionContains.ValueString(),
		ChassisUUID: f.ChassisID.ValueString(), Maintenance: f.Maintenance.ValueBoolPointer(), Retired: f.Retired.ValueBoolPointer(),
	}
}

// NamePattern returns the expression of name_regex, which a validator has accepted. It matches everything if there is none.
func NamePattern(nameRegex types.String) *regexp.Regexp {
	return regexp.MustCompile(nameRegex.ValueString())
}
