package deployment

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// footprintKey is the key in private state of the node's provision.Footprint, as of the recorded deployment.
const footprintKey = "footprint"

// footprint reads the footprint of a machine that was just deployed, because polls do not return its image. It is zero if the node
// cannot be read; the next refresh writes it then.
func footprint(ctx context.Context, machine *provision.Machine) provision.Footprint {
	if machine.Refresh(ctx) != nil {
		return provision.Footprint{}
	}
	return provision.FootprintOf(machine.Node())
}

// writeFootprint stores in private state the footprint of the node that runs the recorded deployment. It does not store a zero
// footprint: the next refresh compares the node with the state then.
func writeFootprint(ctx context.Context, private framework.SettablePrivate, f provision.Footprint) diag.Diagnostics {
	if f == (provision.Footprint{}) {
		return private.SetKey(ctx, footprintKey, nil)
	}
	text, _ := json.Marshal(f) // strings always marshal
	return private.SetKey(ctx, footprintKey, text)
}

// readFootprint returns the footprint that writeFootprint has stored.
func readFootprint(ctx context.Context, private framework.GettablePrivate, diags *diag.Diagnostics) (f provision.Footprint) {
	text, problems := private.GetKey(ctx, footprintKey)
	diags.Append(problems...)
	_ = json.Unmarshal(text, &f) // a zero footprint is fine if there is none
	return f
}
