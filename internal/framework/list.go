package framework

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
)

// Listing is how a list resource answers. T is Ironic's object.
type Listing[T any] struct {
	Doing   string               // such as "list hosts", for messages
	Objects iter.Seq2[*T, error] // what Ironic lists, page by page
	Chosen  func(*T) bool        // whether the user has selected the object
	Label   func(*T) (id, name string)
	Fill    func(context.Context, *T, *tfsdk.Resource) diag.Diagnostics // sets what an import of the object would put into state
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
	for name, attribute := range further {
		attributes[name] = attribute
	}
	return attributes
}

// NameRegexAttribute is the attribute name_regex of a list resource.
func NameRegexAttribute(things string) listschema.Attribute {
	return listschema.StringAttribute{Optional: true, MarkdownDescription: NameRegexDescription(things), Validators: []validator.String{RegularExpression}}
}
