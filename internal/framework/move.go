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
	"github.com/hashicorp/terraform-plugin-framework/types"
)

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
			resp.Diagnostics.AddError("Could not move the state of "+req.SourceTypeName, fmt.Sprintf("Its ID is %q, and not a UUID. Take it out of the state with terraform state rm, "+
				"and import it instead.", old.ID))
			return
		}
		resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root("id"), old.ID)...)
		resp.Diagnostics.Append(resp.TargetIdentity.Set(ctx, Identity{ID: types.StringValue(old.ID)})...)
	}}
}

// RefuseUnread adds an error to the plan of a resource that MoveFrom has moved, if no Read has filled in its state. what names the
// resource.
func RefuseUnread(diags *diag.Diagnostics, what string) {
	diags.AddError("Moved resource was not read", fmt.Sprintf("The state of %s comes from another provider and has only the ID. Plan without -refresh=false, so that Terraform reads the rest from Ironic.", what))
}
