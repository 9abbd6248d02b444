package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// booted returns boot_status of a machine that runs the wanted image.
func booted(ctx context.Context) types.Object {
	return bootStatus(ctx, bootiso.Status{Action: bootiso.None})
}

// changedAttributes returns the names of the attributes whose change restarts a machine with a live ISO, besides live_iso itself.
func (m *model) changedAttributes(ctx context.Context, state *model, onChange string) (names []string) {
	if onChange == onChangeIgnore || state.adopted() {
		return nil
	}
	prior := state.content()
	for name, value := range m.content() {
		if name != "image" && compare(ctx, value, prior[name]) != same {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// refuseFirst refuses the first boot of a machine with an image that was built without what the machine shall have, because nothing would
// restart the machine later, or with one from the future.
func (m *model) refuseFirst(ctx context.Context, diags *diag.Diagnostics) {
	iso := m.liveISO(ctx)
	if iso == nil || iso.refuseUnborn(diags) || !iso.built() || !allKnown(iso.HostContent) {
		return
	}
	if lacking := iso.Want().Lacking(); len(lacking) > 0 {
		diags.AddAttributeError(path.Root("live_iso").AtName("contains"), "Live ISO lacks wanted content", fmt.Sprintf(
			"According to live_iso.contains, the image was built without %s. Build an image that contains it, then apply.", strings.Join(lacking, ", ")))
	}
}

// bootPlan plans what a live ISO asks of a machine that stays on its node.
type bootPlan struct {
	inPlace
	iso, prior *liveISOModel // of the configuration and the state; nil: null or unknown
	answer     bootiso.Answer
}

// bootInput returns what the decision about a live ISO depends on.
func bootInput(ctx context.Context, iso *liveISOModel, plan, state *model, onChange string, machine bootiso.Machine) bootiso.Input {
	in := bootiso.Input{Machine: machine, Want: iso.Want(), Changed: plan.changedAttributes(ctx, state, onChange), Now: time.Now()}
	if compare(ctx, plan.RebuildTriggers, state.RebuildTriggers) != same {
		in.Demanded = []string{"rebuild_triggers"}
	}
	return in
}

// decide plans the operation, and warns of its effects on the machine.
func (b bootPlan) decide(ctx context.Context, diags *diag.Diagnostics) {
	b.keep()
	b.plan.BootStatus = b.state.BootStatus
	b.ignore(ctx, diags)
	if resumes, waits := b.resumes(); resumes {
		b.warnResume(diags)
		restarts := differs
		if waits {
			restarts = same
		}
		b.boots(booted(ctx), restarts)
		return
	}
	b.warnPower(diags)
	if b.iso == nil || !b.iso.decidable() || b.plan.redeploys(ctx, b.state, b.onChange) == unclear {
		b.planUndecidable(ctx, diags)
		return
	}
	if b.seen == (sight{}) {
		diags.AddError("State is not refreshed", "The last apply could not read what the machine runs. Plan again without -refresh=false.")
		return
	}
	in := b.input(ctx)
	if b.refuseProtected(in, diags) {
		return
	}
	if b.answer = bootiso.Decide(in); b.answer.Apply.Action == bootiso.Wait || in.Machine.Rescued {
		in = b.postpone(ctx, in, diags)
		b.answer = bootiso.Decide(in)
	}
	switch {
	case b.answer.Apply.Action == bootiso.Wait && len(in.Changed)+len(in.Demanded) > 0:
		b.refuseWait(in, diags)
		return
	case b.answer.Apply.Action == bootiso.Restart && b.refuseBoot(in, diags):
		return
	case b.iso.built():
		b.planBuilt(ctx, diags)
	default:
		b.planUnbuilt(ctx, diags)
	}
	b.restart(ctx, b.restarts(), diags)
}

// input returns what the decision depends on. The machine is what it will be when the apply boots it: it leaves rescue mode before,
// and enters it afterwards, where a restart would be in vain.
func (b bootPlan) input(ctx context.Context) bootiso.Input {
	machine := b.seen.Boot
	machine.Protected = b.plan.staysProtected(b.state)
	machine.Rescued = b.staysInRescue() && !b.imported
	in := bootInput(ctx, b.iso, b.plan, b.state, b.onChange, machine)
	in.Unbuilt, in.Imported = !b.iso.built(), b.imported
	return in
}

// restarts says whether the plan boots the machine so far.
func (b bootPlan) restarts() change {
	switch {
	case b.plan.Restarts.IsUnknown():
		return unclear
	case b.plan.Restarts.ValueInt64() > b.state.Restarts.ValueInt64():
		return differs
	}
	return same
}

// refuseProtected refuses a restart of a protected machine that another attribute than live_iso asks for. Such a restart undeploys the
// machine. A new image alone restarts no protected machine.
func (b bootPlan) refuseProtected(in bootiso.Input, diags *diag.Diagnostics) bool {
	if !in.Machine.Protected || len(in.Changed)+len(in.Demanded) == 0 {
		return false
	}
	in.Machine.Protected = false
	if bootiso.Decide(in).Apply.Action != bootiso.Restart {
		return false
	}
	refuseInPlace(diags, b.label(), "restart it with its live ISO, which may undeploy it")
	return true
}

// boots plans that the machine is booted with a live ISO.
func (b bootPlan) boots(status types.Object, restarts change) {
	b.starts()
	b.plan.BootStatus, b.plan.Restarts = status, raise(b.state.Restarts, restarts)
}

// planUnbuilt plans for an image that is not known yet. The plan of a machine that no new image restarts shows no change: the plan during
// apply could not take back a change of shared_content that this one shows.
func (b bootPlan) planUnbuilt(ctx context.Context, diags *diag.Diagnostics) {
	status := b.answer.Apply
	switch {
	case slices.Contains(status.Obsolete, bootiso.ObsoleteUnknown):
		b.plan.BootStatus = types.ObjectUnknown(bootStatusTypes)
		diags.AddWarning("Live ISO is not known yet", fmt.Sprintf("There is no record of what node %s was booted with. The machine is not touched.", b.label()))
	case status.Action == bootiso.Wait:
		b.planRunning(ctx, diags)
	case status.Action != bootiso.None || (b.prior == nil && !b.imported):
		b.boots(types.ObjectUnknown(bootStatusTypes), unclear)
		diags.AddWarning("Machine is restarted with a new live ISO", fmt.Sprintf("Node %s is restarted, if the image that is not known yet turns out to be another one: %s.", b.label(), status.Why))
	default:
		b.plan.LiveISO = b.iso.bootedAs(ctx, b.plan.LiveISO, b.prior)
		b.show(ctx)
		diags.AddWarning("Host is not restarted with the new live ISO", fmt.Sprintf("Node %s keeps running, whatever the new image will be: %s.", b.label(), status.Why))
	}
}

// planBuilt plans for an image that is known.
func (b bootPlan) planBuilt(ctx context.Context, diags *diag.Diagnostics) {
	status := b.answer.Apply
	obsolete := strings.Join(status.Obsolete, ", ")
	unknown := slices.Contains(status.Obsolete, bootiso.ObsoleteUnknown)
	switch {
	case unknown && (b.seen.Boot.Rescued || b.seen.Boot.Barred != ""): // what is written to the node now would decide what it boots afterwards
		b.planRunning(ctx, diags)
	case unknown && (b.reconfigured() || len(b.plan.changedAttributes(ctx, b.state, b.onChange)) > 0):
		b.plan.BootStatus = bootStatus(ctx, status)
		diags.AddWarning("Live ISO is taken as booted", fmt.Sprintf("There is no record of what node %s was booted with. The apply records the configuration, and does not touch the machine. "+
			"Later images are compared with the recorded one. To boot the machine with this one, use terraform apply -replace.", b.label()))
	case status.Action == bootiso.Restart:
		b.boots(bootStatus(ctx, status), differs)
		diags.AddWarning("Machine is restarted with a new live ISO", fmt.Sprintf("Node %s is restarted: %s (obsolete: %s).%s", b.label(), status.Why, obsolete, b.settles()))
	case status.Action == bootiso.Manual:
		b.plan.BootStatus = bootStatus(ctx, status)
		diags.AddWarning("Machine has to be restarted by hand", fmt.Sprintf("Node %s needs a new live ISO: %s (obsolete: %s). After this apply, restart it with the new image yourself.",
			b.label(), status.Why, obsolete))
	default:
		b.planRunning(ctx, diags)
	}
}

// planRunning plans that the machine keeps running. The plan shows a change of live_iso only if the machine runs what is configured, and
// the state does not say so, as after an interrupted run or an import.
func (b bootPlan) planRunning(ctx context.Context, diags *diag.Diagnostics) {
	status, older := b.answer.Apply, b.answer.Newer
	runs := b.reconfigured() && !status.Stale && !older
	if b.prior != nil && !runs {
		b.plan.LiveISO = b.iso.bootedAs(ctx, b.plan.LiveISO, b.prior)
	}
	b.show(ctx)
	switch {
	case status.Action == bootiso.Wait:
		b.warnWait(status, diags)
	case older || status.Stale:
		diags.AddWarning("Host runs an older live ISO", fmt.Sprintf("Node %s is not restarted: %s. The data source metal_boot_status lists such hosts as older or stale.", b.label(), status.Why))
	}
	if len(b.plan.changedAttributes(ctx, b.state, b.onChange)) > 0 || !b.plan.sameContent(ctx, b.state) {
		diags.AddWarning("Change without effect", fmt.Sprintf("The apply records all changes of node %s other than its live ISO, and does not touch the machine.", b.label()))
	}
}

// reconfigured reports whether the configuration has another image or content than the state.
func (b bootPlan) reconfigured() bool {
	return b.prior == nil || b.iso.Want().Digest() != b.prior.Want().Digest()
}

// settles returns a sentence that says when the image will have settled, as far as the configuration tells; "" if it has.
func (b bootPlan) settles() string {
	if b.answer.Now.Action != bootiso.Wait {
		return ""
	}
	return fmt.Sprintf(" The apply first waits until %s, when the image has settled.", b.iso.Want().SettlesAt().UTC().Format(time.RFC3339))
}

// boot does what was planned for a live ISO: it boots the machine, or notes what the machine was booted with.
func (u *update) boot(ctx context.Context, client *provision.Site, machine *provision.Machine) (attempts int, err error) {
	attempts = int(u.state.Attempts.ValueInt64())
	planned, obsolete := u.plan.plannedBoot(ctx)
	restarts, byHand := u.plan.ProvisionState.IsUnknown(), planned == bootiso.Manual && (!u.plan.BootStatus.Equal(u.state.BootStatus) || u.asks(ctx, machine.Node()).Action == bootiso.Manual)
	check := func(node *ironic.Node) error { return u.check(ctx, node, planned) }
	other := provision.RebuildOther
	if restarts && planned != bootiso.Restart { // an unfinished one is continued, and what it has booted is for the next plan to judge
		check, other = nil, provision.KeepOther
	}
	if check != nil && (restarts || byHand) {
		if err := check(machine.Node()); err != nil {
			return attempts, err
		}
	}
	if restarts {
		if err := client.Settle(ctx, u.plan.liveISO(ctx).newImage(), u.seen); err != nil {
			return attempts, err
		}
		if err := machine.Refresh(ctx); err != nil { // giving the image time to settle may have taken minutes
			return attempts, err
		}
		if check != nil {
			if err := machine.AwaitRest(ctx, u.limit); err != nil {
				return attempts, err
			}
			if err := check(machine.Node()); err != nil {
				return attempts, err
			}
		}
		return machine.BootISO(ctx, u.what, provision.DeployOptions{
			Instance: u.state.InstanceID.ValueString(), Other: other, Attempts: u.plan.tries(), Timeout: u.limit, Connections: u.connections(),
		})
	}
	err = u.isOurs(machine)
	switch {
	case err != nil:
	case byHand:
		err = machine.RecordBoot(ctx, u.what, obsolete)
	case provision.RunsInstance(machine.Node()) && provision.BootRecord(machine.Node()) == nil:
		err = machine.RecordBoot(ctx, u.what, nil)
	default:
		err = machine.NoteWanted(ctx, *u.what.LiveISO)
	}
	return attempts, err
}

// asks returns what the planned live ISO asks of the machine as the node is now.
func (u *update) asks(ctx context.Context, node *ironic.Node) bootiso.Status {
	return bootiso.Decide(bootInput(ctx, u.plan.liveISO(ctx), u.plan, u.state, u.onChange, provision.BootFacts(node))).Apply
}

// check asks for the decision again, with the node as it is now. It returns a BootChangedError if the decision differs from the planned
// one, unless the node already has the deployment.
func (u *update) check(ctx context.Context, node *ironic.Node, planned bootiso.Action) error {
	if err := provision.CheckReservation(node, u.state.InstanceID.ValueString()); err != nil {
		return err
	}
	iso, status := u.plan.liveISO(ctx), u.asks(ctx, node)
	switch {
	case status.Action == planned || u.what.DeployedWith(node):
		return nil
	case !provision.RunsInstance(node):
		status.Why = fmt.Sprintf("it is in state %q", node.ProvisionState)
	case node.Protected && !iso.Installing.ValueBool():
		status.Why = "it is protected"
	}
	return &provision.BootChangedError{Node: node, Why: status.Why}
}
