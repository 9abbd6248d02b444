package deployment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// planUndecidable plans for a live ISO of which not even those settings are known that select machines.
func (b bootPlan) planUndecidable(ctx context.Context, diags *diag.Diagnostics) {
	if b.staysInRescue() && b.prior != nil {
		b.plan.LiveISO = b.state.LiveISO
		if b.iso != nil {
			b.plan.LiveISO = b.iso.bootedAs(ctx, b.state.LiveISO, b.prior)
		}
		b.keepAsked()
		b.warnRescue(diags)
		return
	}
	diags.AddWarning("Live ISO is not known yet", "The image, or a setting that decides about restarts, is known only during the apply, which then restarts the machines that the change concerns. "+
		"To see them in the plan, build the image first.")
	b.boots(types.ObjectUnknown(bootStatusTypes), unclear)
}

// show plans that boot_status says what the live ISO of the configuration asks of a machine that keeps running. Read says the same of the
// one that an apply has wanted last.
func (b bootPlan) show(ctx context.Context) {
	switch {
	case b.imported || (b.iso.built() && b.last.wants(b.iso.Want()) && b.plan.LiveISO.Equal(b.state.LiveISO)):
	case !b.iso.built() && (!allKnown(b.iso.SharedContent) || !b.iso.Want().Registered): // what is stale depends on what is not known
		b.plan.BootStatus = types.ObjectUnknown(bootStatusTypes)
	default:
		b.plan.BootStatus = bootStatus(ctx, b.answer.Now)
	}
}

// keepAsked plans the content and the triggers of the state, as far as Terraform allows that: an attribute that the configuration adds or
// removes cannot stay.
func (p inPlace) keepAsked() {
	p.plan.keepContent(p.state)
	p.plan.RebuildTriggers, p.plan.RestartTriggers = unlessNull(p.plan.RebuildTriggers, p.state.RebuildTriggers), unlessNull(p.plan.RestartTriggers, p.state.RestartTriggers)
}

// postpone keeps, of a machine that cannot be booted anew yet, what asks for that: the state must not say that it has it. It returns what
// the decision depends on then, and warns if nothing else in the plan will.
func (b bootPlan) postpone(ctx context.Context, in bootiso.Input, diags *diag.Diagnostics) bootiso.Input {
	if b.imported {
		return in
	}
	asked := *b.plan
	if b.keepAsked(); !in.Machine.Rescued {
		b.plan.RestartTriggers = asked.RestartTriggers // switching it off and on is possible
	}
	if !asked.sameContent(ctx, b.plan) || !asked.RebuildTriggers.Equal(b.plan.RebuildTriggers) || !asked.RestartTriggers.Equal(b.plan.RestartTriggers) {
		b.warnWait(b.answer.Apply, diags)
	}
	return b.input(ctx)
}

// refuseWait refuses a change that can neither be made now nor wait.
func (b bootPlan) refuseWait(in bootiso.Input, diags *diag.Diagnostics) {
	names := append(in.Changed, in.Demanded...)
	advice := "Make that change when the machine can be restarted."
	if in.Machine.Rescued {
		advice = "Make that change after the rescue. " + b.endAdvice()
	}
	diags.AddAttributeError(path.Root(names[0]), "Machine cannot be restarted now", fmt.Sprintf("This plan adds or removes %s of node %s, which restarts the machine: %s. %s",
		strings.Join(names, ", "), b.label(), b.answer.Apply.Why, advice))
}

// refuseBoot refuses a restart that the apply would refuse, and reports whether it has.
func (b bootPlan) refuseBoot(in bootiso.Input, diags *diag.Diagnostics) bool {
	if b.answer.Loops {
		at := path.Root("live_iso")
		if names := append(in.Demanded, in.Changed...); len(names) > 0 {
			at = path.Root(names[0])
		}
		_, detail := provision.Explain("", &provision.BootLoopError{Label: b.label(), Last: *in.Machine.Booted})
		diags.AddAttributeError(at, "Machine was restarted too often", detail)
		return true
	}
	return b.iso.refuseUnborn(diags)
}

// refuseUnborn refuses an image that was built in the future, and reports whether it has.
func (m *liveISOModel) refuseUnborn(diags *diag.Diagnostics) bool {
	if err := m.newImage().CheckBuilt(time.Now()); err != nil {
		diags.AddAttributeError(path.Root("live_iso").AtName("built_at"), "Image from the future", provision.Sentence(err)+" Check built_at, and the clock of this computer.")
		return true
	}
	return false
}

// warnWait warns that the machine needs another boot, and says what that waits for.
func (b bootPlan) warnWait(status bootiso.Status, diags *diag.Diagnostics) {
	obsolete := strings.Join(status.Obsolete, ", ")
	switch {
	case b.staysInRescue():
		b.warnRescue(diags)
	case b.seen.Boot.Barred != "":
		diags.AddWarning("Restart waits for the machine", fmt.Sprintf("Node %s keeps running with what it was booted with: %s (obsolete: %s). When that has ended, the next plan restarts it.", b.label(), status.Why, obsolete))
	default:
		diags.AddWarning("Host waits for a newer live ISO", fmt.Sprintf("Node %s keeps running with what it was booted with: %s (obsolete: %s).", b.label(), status.Why, obsolete))
	}
}
