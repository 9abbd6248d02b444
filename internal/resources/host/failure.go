package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// Values of on_failure.
const (
	onFailureError = "error"
	onFailureWarn  = "warn"
)

// mayFail reports whether a failure is a warning: Ironic has the node with its configuration, but could not prepare or switch the machine, and
// on_failure says that the apply goes on without it.
func mayFail(onFailure types.String, complete bool, err error) bool {
	return err != nil && complete && onFailure.ValueString() == onFailureWarn && !provision.IsInterrupted(err) && !provision.IsSuperseded(err)
}

// tolerates reports whether the error of bring is a warning.
func (c *change) tolerates(err error) bool { return mayFail(c.plan.OnFailure, c.complete, err) }

// report adds the result of bring to the diagnostics.
func (c *change) report(diags *diag.Diagnostics, doing string, err error) {
	if c.taken != nil {
		diags.AddWarning("Host is used by OneView", fmt.Sprintf("The provider has taken host %s out of service (maintenance, with the reason %q): %s. "+
			"When the server is free, metal oneview sync cleans it and makes it available.", c.plan.label(), sharing.ReasonInUse, c.taken.Why()))
	}
	switch {
	case c.tolerates(err):
	case c.state == nil:
		framework.ReportCreation(diags, doing, err)
		return
	default:
		framework.Report(diags, doing, err)
		return
	}
	summary, detail := provision.Explain(doing, err)
	diags.AddWarning(summary, detail+"\n\nThe apply goes on without this host, because of on_failure = \"warn\". The next apply tries again.")
}

// leavesService reports whether a host whose server a OneView user has is taken out of service. Otherwise the operation on it fails: nothing
// would return the host to service if it is not to be available, or if the configuration controls its maintenance.
func leavesService(plan, config *model) bool {
	return len(plan.goals()) == 1 && plan.goals()[0] == provision.GoalAvailable && config.Maintenance.IsNull()
}

// takeOut takes a host out of service, as metal oneview sync does, if its preparation has failed because a OneView user has its server. It
// returns nil if it has done that, and else the error.
func (h *host) takeOut(ctx context.Context, c *change, failed error) error {
	var taken *sharing.InUseError
	var left *sharing.LeftoverError
	if !errors.As(failed, &taken) || errors.As(failed, &left) || !leavesService(c.plan, c.config) || !sharing.MayLeaveService(c.node()) {
		return failed
	}
	if err := h.Client.SetMaintenance(ctx, c.node().UUID, true, sharing.ReasonInUse); err != nil {
		return errors.Join(failed, err)
	}
	c.machine.Changed(func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason = true, sharing.ReasonInUse })
	c.taken = taken
	return nil
}
