package actions

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.ActionWithModifyPlan = (*simple)(nil)

// simple is an action without settings of its own.
type simple struct {
	operator
	about     string           // in Markdown
	doing     string           // an infinitive whose object is the node
	limit     time.Duration    // the default time-out
	since     api.Microversion // the first version of the API that has it; zero: all
	do        func(*machine.Machine, context.Context, time.Duration) error
	temporary bool // the machine may get a temporary server profile in OneView for it
}

// NewAbort returns metal_abort.
func NewAbort() action.Action {
	return &simple{
		operator: operator{name: "metal_abort"}, doing: "abort the operation on", limit: 30 * time.Minute, do: (*machine.Machine).Abort,
		about: "Ends an operation of Ironic that waits for the machine or that a step holds. The operation has then failed, as the " +
			"node's provision state says. To continue a held operation, use [`metal_unhold`](unhold.md).",
	}
}

// NewUnhold returns metal_unhold.
func NewUnhold() action.Action {
	return &simple{
		operator: operator{name: "metal_unhold"}, doing: "continue the operation on", limit: 30 * time.Minute, since: api.VersionUnhold,
		do: (*machine.Machine).Unhold,
		about: "Continues an operation of Ironic that a step holds, and waits for its end. Needs API 1.85. To end the operation, use " +
			"[`metal_abort`](abort.md).",
	}
}

// NewNMI returns metal_nmi.
func NewNMI() action.Action {
	return &simple{
		operator: operator{name: "metal_nmi"}, doing: "send an NMI to", limit: 5 * time.Minute, since: api.VersionNMI,
		do: (*machine.Machine).SendNMI,
		about: "Sends a machine a non-maskable interrupt, through its BMC. **Most operating systems then crash**: they write a crash " +
			"dump and restart, as they are configured. Needs API 1.29, and a machine that is switched on.",
	}
}

// NewInspect returns metal_inspect.
func NewInspect() action.Action {
	return &simple{
		operator: operator{name: "metal_inspect"}, doing: "inspect", limit: time.Hour, do: (*machine.Machine).Inspect, temporary: true,
		about: "Inspects a free machine again, which **may boot it**. The machine ends `manageable`; if it was `available`, it becomes " +
			"so again, **and Ironic cleans it on the way** unless the site or the node has automated cleaning switched off. Deployed " +
			"and reserved machines are refused.",
	}
}

// Schema describes the action.
func (a *simple) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, a.about, a.limit, nil)
}

// ModifyPlan refuses the action if the API version does not support it.
func (a *simple) ModifyPlan(ctx context.Context, _ action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	a.offered(ctx, a.since, &resp.Diagnostics)
}

// Invoke operates the machine.
func (a *simple) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var on target
	if resp.Diagnostics.Append(req.Config.Get(ctx, &on)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, on, a.doing, a.limit, resp, func(m *machine.Machine, limit time.Duration) error {
		err := a.do(m, ctx, limit)
		if a.temporary {
			err = errors.Join(err, a.EndTemporary(ctx, m.Node(), limit))
		}
		return err
	})
}
