package framework

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/vmihailenco/msgpack/v5"
)

// ImportID returns what to import: the import ID, or the ID of the identity.
func ImportID(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) (string, bool) {
	if req.ID != "" {
		return req.ID, true
	}
	var who Identity
	resp.Diagnostics.Append(req.Identity.Get(ctx, &who)...)
	return who.ID.ValueString(), !resp.Diagnostics.HasError()
}

// RecordImport records the id of an imported object, from which the refresh that follows reads the rest.
func RecordImport(ctx context.Context, resp *resource.ImportStateResponse, id string) {
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, Identity{ID: types.StringValue(id)})...)
}

// Identity is the identity of every resource: its UUID.
type Identity struct {
	ID types.String `tfsdk:"id"`
}

// EncodedIdentity returns the Identity of a resource with an encoded state, in the same encoding.
func EncodedIdentity(state []byte) []byte {
	var of struct {
		ID string `msgpack:"id"`
	}
	_ = msgpack.Unmarshal(state, &of)                          // a state has an id
	text, _ := msgpack.Marshal(map[string]string{"id": of.ID}) // strings can always be encoded
	return text
}

// IdentitySchema is the schema of Identity with a description of the id.
func IdentitySchema(description string) identityschema.Schema {
	return identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: description},
	}}
}
