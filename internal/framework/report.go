package framework

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ReportUndone adds an error for an operation that must not count as done, even if the user has interrupted it: a deletion, an
// update that has changed nothing, or a creation without anything to record.
func ReportUndone(diags *diag.Diagnostics, doing string, err error) {
	summary, detail := failure.Explain(doing, err)
	diags.AddError(summary, detail)
}

// Report adds an error to the diagnostics. An interruption by the user is a warning: the state is complete, nothing is tainted, and the next
// apply continues.
func Report(diags *diag.Diagnostics, doing string, err error) {
	if err == nil {
		return
	}
	summary, detail := failure.Explain(doing, err)
	if ironic.IsInterrupted(err) {
		diags.AddWarning("Interrupted: "+doing, detail)
		return
	}
	diags.AddError(summary, detail)
}

// ReportCreation is Report for a creation. An operation that cannot be watched any more is a warning, too: after an error, Terraform would
// destroy and create again what may run already.
func ReportCreation(diags *diag.Diagnostics, doing string, err error) {
	if !failure.IsUnwatched(err) {
		Report(diags, doing, err)
		return
	}
	summary, detail := failure.Explain(doing, err)
	diags.AddWarning(summary, detail+"\n\nThis apply succeeds, although the operation may still fail: after an error, Terraform would replace a machine that may already run. To make the apply fail "+
		"without a replacement, add a postcondition to the resource: see the guide \"Lost access\".")
}

// ReportOnce adds an error for an operation that an action has requested. An interruption is an error, too, because no later run repeats
// the operation. node is nil if it could not be read.
func ReportOnce(diags *diag.Diagnostics, doing string, node *ironic.Node, err error) {
	if err != nil {
		diags.AddError(failure.ExplainAction(doing, node, err))
	}
}

// WarnUnseen warns that an object which a refresh has not found may exist all the same: Ironic shows a project only what it owns or leases, and
// answers as if there were nothing else. Without a project it says nothing.
func WarnUnseen(diags *diag.Diagnostics, project, label string) {
	if project != "" {
		diags.AddWarning("Not visible in Ironic", fmt.Sprintf("%s leaves the state, because Ironic does not have it or does not show it to project %s. "+
			"If it exists, check the project of the credentials (OS_PROJECT_NAME), and the owner and lessee of the node, before you apply.", label, project))
	}
}
