package deployment

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Keys of private state.
const (
	// historyKey has the deploy.History.
	historyKey = "imported"
	// namesKey has the names that the node had since it was deployed, besides the present one. The plan that renames a node cannot tell
	// that its new name is going to reach a config drive: an allocation shows it after the apply.
	namesKey = "former_names"
	// sightKey has the deploy.Sight.
	sightKey = "sight"
	// footprintKey has the node's deploy.Footprint, as of the recorded deployment.
	footprintKey = "footprint"
	// seenKey has the deploy.Wanted. An apply that was interrupted while the image settled goes on with its time.
	seenKey = "seen"
	// replacementKey has the replacement.
	replacementKey = "replacement"
	// unbegunKey marks a creation which was interrupted before Ironic was seen at work on the deployment.
	unbegunKey = "unbegun"
)

// remember stores a value in private state. A zero value removes the key.
func remember(ctx context.Context, private framework.SettablePrivate, key string, value any) diag.Diagnostics {
	if reflect.ValueOf(value).IsZero() {
		return private.SetKey(ctx, key, nil)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return private.SetKey(ctx, key, text)
}

// recall reads a value that remember has stored. It leaves the value if there is none.
func recall(ctx context.Context, private framework.GettablePrivate, key string, value any, diags *diag.Diagnostics) {
	text, problems := private.GetKey(ctx, key)
	diags.Append(problems...)
	_ = json.Unmarshal(text, value) // there may be none
}

// isNoted reports whether private state has a key.
func isNoted(ctx context.Context, private framework.GettablePrivate, key string, diags *diag.Diagnostics) bool {
	text, problems := private.GetKey(ctx, key)
	diags.Append(problems...)
	return len(text) > 0
}

// footprint reads the footprint of a machine that was just deployed, because polls do not return its image. It is zero if the node
// cannot be read; the next refresh writes it then.
func footprint(ctx context.Context, machine *machine.Machine) deploy.Footprint {
	if machine.Refresh(ctx) != nil {
		return deploy.Footprint{}
	}
	return deploy.FootprintOf(machine.Node())
}

// noteNames records the former names of a node. deployed reports whether the machine was just deployed, under its present name.
func noteNames(ctx context.Context, before framework.GettablePrivate, after framework.SettablePrivate, node *ironic.Node, deployed bool) (diags diag.Diagnostics) {
	var former []string
	var sight deploy.Sight
	recall(ctx, before, namesKey, &former, &diags)
	recall(ctx, before, sightKey, &sight, &diags)
	names := deploy.FormerNames(former, sight.Name, node.Name)
	if deployed || len(names) == 0 {
		names = nil
	}
	return append(diags, remember(ctx, after, namesKey, names)...)
}

// noteCreation records how a creation has ended: with the footprint of the machine, or before Ironic had begun.
func noteCreation(ctx context.Context, private framework.SettablePrivate, node *ironic.Node, runs deploy.Footprint, failed error) diag.Diagnostics {
	switch {
	case failed == nil:
		return remember(ctx, private, footprintKey, runs)
	case failure.IsInterrupted(failed) && !deploy.Begun(ironic.State(node.ProvisionState)):
		return remember(ctx, private, unbegunKey, true)
	}
	return nil
}

// privateState is the private state of a response.
type privateState interface {
	framework.GettablePrivate
	framework.SettablePrivate
}
