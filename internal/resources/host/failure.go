package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
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
	return err != nil && complete && onFailure.ValueString() == onFailureWarn && !failure.IsInterrupted(err) && !marks.IsSuperseded(err)
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
	summary, detail := failure.Explain(doing, err)
	diags.AddWarning(summary, detail+"\n\nThe apply goes on without this host, because of on_failure = \"warn\". The next apply tries again.")
}

// takeOut takes a host out of service, as metal oneview sync does, if its preparation has failed because a OneView user has its server. It
// returns nil if it has done that, and else the error.
func (c *change) takeOut(ctx context.Context, failed error) error {
	var taken *sharing.InUseError
	var left *sharing.LeftoverError
	if !errors.As(failed, &taken) || errors.As(failed, &left) || !enroll.LeavesService(c.plan.wish(ctx, c.config, c.state)) || !sharing.MayLeaveService(c.node()) {
		return failed
	}
	if err := c.machine.SetMaintenance(ctx, machine.Maintenance{On: true, Reason: sharing.ReasonInUse}); err != nil {
		return errors.Join(failed, err)
	}
	c.taken = taken
	return nil
}
