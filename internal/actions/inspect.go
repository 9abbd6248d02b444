package actions

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// NewInspect returns metal_inspect.
func NewInspect() action.Action { return &inspect{} }

type inspect struct{ operator }

const inspectLimit = 60 * time.Minute

// Metadata names the action.
func (a *inspect) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "metal_inspect"
}

// Schema describes the action.
func (a *inspect) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Inspects a free machine again, which **may boot it**. The machine ends `manageable`; if it was "+
		"`available`, it becomes so again, **and Ironic cleans it on the way** unless the site or the node has automated cleaning "+
		"switched off. Deployed and reserved machines are refused.", inspectLimit, nil)
}

// Invoke inspects the machine.
func (a *inspect) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m target
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, m, "inspect", inspectLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		err := machine.Inspect(ctx, limit)
		return errors.Join(err, a.EndTemporary(ctx, machine.Node(), limit))
	})
}
