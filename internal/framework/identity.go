package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
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

// MoveFrom takes over the state of a resource of terraform-provider-ironic or its fork. As an import, it keeps only the ID: the next
// Read fills in the rest. oldTypes are the names of the resource's type in their versions.
func MoveFrom(oldTypes ...string) resource.StateMover {
	return resource.StateMover{StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
		if !slices.Contains(oldTypes, req.SourceTypeName) || !strings.HasSuffix(req.SourceProviderAddress, "/ironic") {
			return
		}
		var old struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(req.SourceRawState.JSON, &old); err != nil || !UUIDPattern.MatchString(old.ID) {
			resp.Diagnostics.AddError("Could not move the state of "+req.SourceTypeName, fmt.Sprintf("Its ID is %q, and not a UUID. Take "+
				"it out of the state with terraform state rm, and import it instead.", old.ID))
			return
		}
		resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root("id"), old.ID)...)
		resp.Diagnostics.Append(resp.TargetIdentity.Set(ctx, Identity{ID: types.StringValue(old.ID)})...)
	}}
}

// RefuseUnread adds an error to the plan of a resource that MoveFrom has moved, if no Read has filled in its state. what names the
// resource.
func RefuseUnread(diags *diag.Diagnostics, what string) {
	diags.AddError("Moved resource was not read", fmt.Sprintf("The state of %s comes from another provider and has only the ID. Plan "+
		"without -refresh=false, so that Terraform reads the rest from Ironic.", what))
}
