package framework

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

// NoteSite notes in private state the identity of the site in which a resource is, so that a later run recognises the site. A creation
// makes one if the site has none. It says nothing if the user may not see it.
func (w *WithClient) NoteSite(ctx context.Context, private PrivateState, creates bool, diags *diag.Diagnostics) {
	if load[serverNotes](ctx, private, serverKey).Site != "" {
		return
	}
	if id := lost.Identity(ctx, w.Site, creates); id != "" {
		diags.Append(keepNotes(ctx, private, func(s *serverNotes) { s.Site = id })...)
	}
}

// NoteNewSite notes the identity of a site to which a record was restored, which may have got a new one.
func (w *WithClient) NoteNewSite(ctx context.Context, private PrivateState, diags *diag.Diagnostics) {
	if id := lost.Identity(ctx, w.Site, true); id != "" {
		diags.Append(keepNotes(ctx, private, func(s *serverNotes) { s.Site = id })...)
	}
}

// Recreates reports whether what Ironic has lost leaves the state.
func (w *WithClient) Recreates() bool { return w.LostRecords == lost.Recreate }

// Restores reports whether what Ironic has lost is made anew without a change of the machine.
func (w *WithClient) Restores() bool { return w.LostRecords == lost.Restore }

// KeepsLost notes if Ironic has lost the record of a resource, and reports whether the resource stays in the state as it is for that
// reason.
func (w *WithClient) KeepsLost(
	ctx context.Context, private PrivateState, record lost.Record, now lost.Sight, diags *diag.Diagnostics,
) bool {
	if w.Recreates() && !api.IsNotFound(now.Err) || !lost.Finds(ctx, w.Site, now, &record) {
		return false
	}
	record.Site = load[serverNotes](ctx, private, serverKey).Site
	lost.Note(w.Site, record)
	if w.Recreates() {
		diags.AddWarning("Record lost in Ironic", fmt.Sprintf("Ironic at %s has no record of %s. %s\n\nIt leaves the state, because "+
			"lost_records is \"recreate\". What the configuration still has is made anew: hosts that become available are cleaned, and "+
			"deployments that do not adopt are deployed, which erases what may still run there.", w.Site.Ironic.Address(), record.What(),
			lost.Judge(ctx, w.Site, record.Site)))
		return false
	}
	diags.Append(keepNotes(ctx, private, func(s *serverNotes) { s.Restores = record.IsRestored(w.LostRecords) })...)
	what := "Ironic's record of %s is not the one that Terraform has seen: it is older, or was made anew"
	if !record.Other {
		idle := lost.MayBeMadeAnew(ctx, w.Site, record)
		diags.Append(keepNotes(ctx, private, func(s *serverNotes) { s.Missing, s.Idle = true, idle })...)
		what = "Ironic has no record of %s"
		if project := w.Site.Ironic.Project(); project != "" {
			what += ", or does not show it to project " + project
		}
	}
	label := record.Machine
	if record.Claimed { // its node is there again
		label = "the allocation of " + label
	}
	diags.AddWarning("Record lost in Ironic", fmt.Sprintf(what+". It stays in the state as Terraform has last seen it.", label))
	return true
}

// RefuseLost adds an error to a plan if this run has found that Ironic has lost the record of a resource, and reports that. A resource that
// is to be created has no ID; its name tells it. ends: the plan destroys the resource.
func (w *WithClient) RefuseLost(ctx context.Context, kind, id, name string, ends bool, diags *diag.Diagnostics) bool {
	if !w.Known() || w.Recreates() || !ends && lost.MayBeRestored(w.Site, kind, id, w.LostRecords) {
		return false
	}
	refused, is := lost.Refusal(ctx, w.Site, kind, id, name, ends)
	if is {
		Show(diags, refused)
	}
	return is
}

// ReportLost adds an error to an apply which finds that Ironic has lost the record of a resource, and reports that. The plan did not know:
// it was saved, or has read nothing.
func (w *WithClient) ReportLost(
	ctx context.Context, private GettablePrivate, record lost.Record, err error, diags *diag.Diagnostics,
) bool {
	if !api.IsNotFound(err) || w.Site.Ironic.Project() != "" { // a project may only have lost its rights
		return false
	}
	if w.Restores() {
		diags.AddError("Record is not restored yet", fmt.Sprintf("Ironic has no record of %s yet. Nothing was done. First apply its "+
			"metal_host with lost_records = \"restore\".", record.Machine))
		return true
	}
	record.Site = load[serverNotes](ctx, private, serverKey).Site
	Show(diags, lost.Failure(ctx, w.Site, record))
	return true
}

// CheckSite returns an error if Ironic is not the one in which a resource is, as its private state says.
func (w *WithClient) CheckSite(ctx context.Context, private GettablePrivate) error {
	if lost.IsSame(ctx, w.Site, load[serverNotes](ctx, private, serverKey).Site) {
		return nil
	}
	return &failure.Error{
		Fact:   "this Ironic is not the one that the state knows, and has no record of the machine. Nothing was done",
		Advice: "Check the endpoint of the provider, and plan again.",
	}
}

// MakesAnew reports whether the plan of a creation makes anew what has left the state, because Ironic has lost it. A resource whose ID is
// not known yet may be any of its kind.
func (w *WithClient) MakesAnew(kind, id, name string) bool {
	return w.Recreates() && w.Site != nil && lost.Has(w.Site, kind, id, name)
}

// IsRestored reports whether the plan of a resource restores its record, as its last read has found. The record is made as it was, so that
// the caller plans the values of the state: see KeepRestoring.
func IsRestored(ctx context.Context, req resource.ModifyPlanRequest, label string, diags *diag.Diagnostics) bool {
	if !load[serverNotes](ctx, req.Private, serverKey).Restores {
		return false
	}
	KeepRestoring(req, label, diags)
	return true
}

// KeepRestoring says that a plan keeps the values of the state although the configuration has others, because the record of the resource is
// being restored. Terraform lets a provider keep a value that both have: it adds an error for what is added or removed.
func KeepRestoring(req resource.ModifyPlanRequest, label string, diags *diag.Diagnostics) {
	kept, refused := differing(req.Plan.Raw, req.State.Raw)
	switch {
	case len(refused) > 0:
		diags.AddError("Lost record cannot change", fmt.Sprintf("The record of %s is restored as it was, and the configuration adds or "+
			"removes %s. Undo that until the record is restored: see the guide \"Ironic has lost its records\".", label,
			strings.Join(refused, ", ")))
	case len(kept) > 0:
		diags.AddWarning("Lost record is restored as it was", fmt.Sprintf("The configuration of %s has other values of %s than the state. "+
			"They stay as they are until its record is restored; the next plan shows what they change.", label, strings.Join(kept, ", ")))
	}
}

// differing returns the attributes in which a plan differs from the state: those whose value may be kept, and those with something that
// only one of them has.
func differing(plan, state tftypes.Value) (kept, refused []string) {
	differences, err := plan.Diff(state)
	if err != nil { // the values are of different types, which cannot be
		return nil, []string{err.Error()}
	}
	for _, d := range differences {
		steps := d.Path.Steps()
		if len(steps) == 0 || d.Value1 != nil && !d.Value1.IsKnown() {
			continue
		}
		name, _ := steps[0].(tftypes.AttributeName)
		last, isAttribute := steps[len(steps)-1].(tftypes.AttributeName)
		nested := func(v *tftypes.Value) bool { return v != nil && v.Type().Is(tftypes.Object{}) }
		one := (d.Value1 == nil || d.Value1.IsNull()) != (d.Value2 == nil || d.Value2.IsNull())
		if one && (isAttribute || nested(d.Value1) || nested(d.Value2)) {
			refused = append(refused, string(cmp.Or(name, last)))
		} else {
			kept = append(kept, string(name))
		}
	}
	slices.Sort(kept)
	slices.Sort(refused)
	return slices.Compact(kept), slices.Compact(refused)
}

// IsMissing reports whether the last read of a resource has found no record of it, and that its machine was idle: it may be made anew. A
// plan with -refresh=false goes by that, too.
func IsMissing(ctx context.Context, private GettablePrivate) bool {
	return load[serverNotes](ctx, private, serverKey).Idle
}
