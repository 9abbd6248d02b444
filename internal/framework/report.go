package framework

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// ReportUndone adds an error for an operation that must not count as done, even if the user has interrupted it: a deletion, an
// update that has changed nothing, or a creation without anything to record.
func ReportUndone(diags *diag.Diagnostics, doing string, err error) {
	summary, detail := failure.Explain(doing, err)
	diags.AddError(summary, detail)
}

// Report adds an error to the diagnostics. An interruption by the user is a warning: the state is complete, nothing is tainted, and the
// next apply continues.
func Report(diags *diag.Diagnostics, doing string, err error) {
	if err == nil {
		return
	}
	summary, detail := failure.Explain(doing, err)
	if api.IsInterrupted(err) {
		diags.AddWarning("Interrupted: "+doing, detail)
		return
	}
	diags.AddError(summary, detail)
}

// ReportImport is Report for an import: what Ironic does not have may be gone, and a configuration may still import it.
func ReportImport(diags *diag.Diagnostics, doing string, err error) {
	if !api.IsNotFound(err) {
		Report(diags, doing, err)
		return
	}
	summary, detail := failure.Explain(doing, err)
	diags.AddError(summary, detail+"\n\nIf it is gone, remove its import block. Else check the ID, and the project of the credentials.")
}

// ReportCreation is Report for a creation. An operation that cannot be watched any more is a warning, too: after an error, Terraform would
// destroy and create again what may run already. tainted are paragraphs about what follows from an error.
func ReportCreation(diags *diag.Diagnostics, doing string, err error, tainted ...string) {
	if err == nil || api.IsInterrupted(err) && !failure.IsUnwatched(err) {
		Report(diags, doing, err)
		return
	}
	summary, detail := failure.Explain(doing, err)
	if !failure.IsUnwatched(err) {
		diags.AddError(summary, strings.Join(append([]string{detail}, tainted...), "\n\n"))
		return
	}
	diags.AddWarning(summary, detail+"\n\nThis apply succeeds, although the operation may still fail: after an error, Terraform would "+
		"replace a machine that may already run. To make the apply fail without a replacement, add a postcondition to the resource: see "+
		"the guide \"Lost access\".")
}

// ReportOnce adds an error for an operation that an action has requested. An interruption is an error, too, because no later run repeats
// the operation. node is nil if it could not be read; left is as for failure.ExplainAction.
func ReportOnce(diags *diag.Diagnostics, doing string, node *ironic.Node, err error, left string) {
	if err != nil {
		diags.AddError(failure.ExplainAction(doing, node, err, left))
	}
}

// WarnUnseen warns that an object which a refresh has not found may exist all the same: Ironic shows a project only what it owns or leases,
// and answers as if there were nothing else. Without a project it says nothing.
func WarnUnseen(diags *diag.Diagnostics, project, label string) {
	if project != "" {
		diags.AddWarning("Not visible in Ironic",
			fmt.Sprintf("%s leaves the state, because Ironic does not have it or does not show it to project %s. If it exists, check the "+
				"project of the credentials (OS_PROJECT_NAME), and the owner and lessee of the node, before you apply.", label, project))
	}
}

// Show adds the notices of a plan to diagnostics.
func Show(diags *diag.Diagnostics, notices ...decide.Notice) {
	for _, n := range notices {
		switch at := attributePath(n.At); {
		case n.Severity == decide.Refusal && n.At == nil:
			diags.AddError(n.Summary, n.Detail)
		case n.Severity == decide.Refusal:
			diags.AddAttributeError(at, n.Summary, n.Detail)
		case n.At == nil:
			diags.AddWarning(n.Summary, n.Detail)
		default:
			diags.AddAttributeWarning(at, n.Summary, n.Detail)
		}
	}
}

func attributePath(of decide.Path) path.Path {
	at := path.Empty()
	for i, part := range of {
		switch part := part.(type) {
		case string:
			if i == 0 {
				at = path.Root(part)
			} else {
				at = at.AtName(part)
			}
		case decide.Key:
			at = at.AtMapKey(string(part))
		case int:
			at = at.AtListIndex(part)
		}
	}
	return at
}

// WarnTakenOver tells the user, in the plan or during the apply, that a resource takes over what a killed run has begun to create. more
// are further sentences.
func WarnTakenOver(diags *diag.Diagnostics, what string, by *notes.Creation, more ...string) {
	Show(diags, machine.TakenOver(by, what, more...))
}

// WarnKept tells the user that a deletion leaves what another resource of the same run has taken over.
func WarnKept(diags *diag.Diagnostics, what string) {
	diags.AddWarning("Taken-over object is not deleted", fmt.Sprintf("Another resource of this apply has taken over %s, so it stays. %s",
		what, failure.AdviseCreateFirst("what has the same name")))
}

// ReportKept is WarnKept for a machine that was to be replaced, and of which nothing was touched: that is no success. The caller has seen
// to it that the next apply, which deletes the former resource, touches nothing either.
func ReportKept(diags *diag.Diagnostics, what, object string) {
	ReportUndone(diags, "replace "+what, &failure.Error{
		Fact:   "nothing was done: it is as it was, and stays",
		Advice: failure.AdviseCreateFirst(object) + " Apply once more: that ends the replacement, and touches nothing.",
	})
}

// WarnRelease warns if releasing an allocation also undeploys its node, because a killed run has put the node into quarantine and did not
// finish that.
func (c *WithClient) WarnRelease(ctx context.Context, diags *diag.Diagnostics, allocation, node string) {
	if !c.Known() || node == "" {
		return
	}
	if n, err := c.Site.Ironic.NodeForRefresh(ctx, node); err == nil && notes.InQuarantineFor(n, allocation) {
		diags.AddWarning("Quarantine is finished",
			fmt.Sprintf("A deployment has failed on node %s, and an earlier run was interrupted while it put the node into quarantine. "+
				"Releasing allocation %s finishes that: the node is undeployed and cleaned, and stays retired. If another client deploys "+
				"the node first, the provider leaves it alone, and the release fails.",
				ironic.NodeLabel(n), allocation))
	}
}
