package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// booted is the status of a machine that runs what it shall.
func booted(ctx context.Context) types.Object {
	return bootStatus(ctx, bootiso.Status{Action: bootiso.None})
}

// changedAttributes are those whose change restarts a machine with a live ISO, besides live_iso itself.
func (m *deploymentModel) changedAttributes(other *deploymentModel) (names []string) {
	if m.OnChange.ValueString() == onChangeIgnore {
		return nil
	}
	for name, pair := range map[string][2]attr.Value{
		"config_drive": {m.ConfigDrive, other.ConfigDrive}, "deploy_steps": {m.DeploySteps, other.DeploySteps},
		"capabilities": {m.Capabilities, other.Capabilities}, "traits": {m.Traits, other.Traits},
		"root_device": {m.RootDevice, other.RootDevice}, "instance_info": {m.InstanceInfo, other.InstanceInfo},
	} {
		if !pair[0].Equal(pair[1]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// bootPlan plans what a live ISO asks of a machine that runs one.
type bootPlan struct {
	plan, config, state *deploymentModel
	imported            bool          // and not applied since
	iso, prior          *liveISOModel // of the configuration and the state
	node                ironic.BootFacts
}

// bootFacts are what Read has kept of a node; nil if nothing.
func bootFacts(text []byte) *ironic.BootFacts {
	var facts ironic.BootFacts
	if len(text) == 0 || json.Unmarshal(text, &facts) != nil {
		return nil
	}
	return &facts
}

// decideBoot plans a deployment with a live ISO that stays on its node, by what the last refresh has seen of the node: Terraform
// plans again during apply, and must come to the same. Without that, as after an apply, Ironic is asked.
func (d *deployment) decideBoot(ctx context.Context, b bootPlan, seen *ironic.BootFacts, diags *diag.Diagnostics) {
	b.iso, b.prior = b.config.liveISO(ctx), b.state.liveISO(ctx)
	b.keep()
	p := inPlace{plan: b.plan, config: b.config, state: b.state, imported: b.imported, label: func() string { return d.label(ctx, b.plan) }}
	if !ironic.Finished(ironic.State(b.state.ProvisionState.ValueString())) {
		p.warnResume(diags)
		b.starts(booted(ctx))
		return
	}
	p.warnPower(diags)
	switch {
	case b.iso == nil || !b.iso.decidable() || !d.known():
		diags.AddWarning("Live ISO is not known yet", "Which machines are restarted is decided during apply, when the image and what it has for each machine are known: "+
			"those it concerns. To see them in the plan, build the image first.")
		b.starts(types.ObjectUnknown(bootStatusTypes))
		return
	}
	if seen == nil {
		node, err := d.client.NodeForRefresh(ctx, b.state.ID.ValueString())
		if err != nil {
			report(diags, "read the deployment of node "+b.state.ID.ValueString(), err)
			return
		}
		facts := ironic.BootFactsOf(node)
		seen = &facts
	}
	b.node = *seen
	if b.iso.known() {
		b.decide(ctx, diags)
		return
	}
	b.foresee(ctx, diags)
}

// judge decides what an image, and what else has changed, asks of the machine. One that was imported runs on, and what cannot be read back
// of it is as it is written.
func (b bootPlan) judge(iso *liveISOModel) bootiso.Status {
	if !b.imported {
		return iso.judge(b.node, b.plan.changedAttributes(b.state))
	}
	status := iso.judge(b.node, nil)
	if status.Action == bootiso.Reboot || status.Action == bootiso.Manual {
		status.Action, status.Why = bootiso.None, "it was imported, which touches no machine; the plan after this apply shows what its image asks for"
	}
	return status
}

// foresee plans for an image that is not known yet. A machine that no new image restarts shows no change; were its change of
// shared planned here, the plan during apply could not take it back.
func (b bootPlan) foresee(ctx context.Context, diags *diag.Diagnostics) {
	some := *b.iso
	some.URL, some.Version = types.StringNull(), types.StringNull() // no machine was booted with that
	status := b.judge(&some)
	label := b.node.Label
	switch {
	case slices.Contains(status.Obsolete, bootiso.ObsoleteUnknown) || b.prior == nil:
		b.plan.BootStatus = types.ObjectUnknown(bootStatusTypes)
		diags.AddWarning("Live ISO is not known yet", fmt.Sprintf("Nobody knows what node %s was booted with. The machine is not touched.", label))
	case status.Action != bootiso.None:
		b.starts(types.ObjectUnknown(bootStatusTypes))
		diags.AddWarning("Machine is restarted with a new live ISO", fmt.Sprintf("Node %s is restarted, if the image that is not known yet turns out to be another one: %s.", label, status.Why))
	default:
		b.plan.LiveISO = b.iso.bootedAs(ctx, b.plan.LiveISO, b.prior)
		diags.AddWarning("Host is not restarted with the new live ISO", fmt.Sprintf("Node %s runs on, whatever the new image will be: %s.", label, status.Why))
	}
}

// keep plans that nothing which Ironic tells changes.
func (b bootPlan) keep() {
	m := b.plan
	m.LastError, m.Attempts, m.ProvisionState, m.BootStatus = b.state.LastError, b.state.Attempts, b.state.ProvisionState, b.state.BootStatus
	if b.config.PowerState.IsNull() {
		m.PowerState = b.state.PowerState
	}
}

// starts plans that the machine is booted.
func (b bootPlan) starts(status types.Object) {
	m := b.plan
	m.BootStatus = status
	m.ProvisionState, m.LastError, m.Attempts = types.StringUnknown(), types.StringUnknown(), types.Int64Unknown()
	if b.config.PowerState.IsNull() {
		m.PowerState = types.StringUnknown()
	}
}

func (b bootPlan) decide(ctx context.Context, diags *diag.Diagnostics) {
	status := b.judge(b.iso)
	changed := b.plan.changedAttributes(b.state)
	label := b.node.Label
	newer := b.iso.artifacts().Digest() != b.prior.artifacts().Digest()
	unknown := slices.Contains(status.Obsolete, bootiso.ObsoleteUnknown)
	switch {
	case unknown && (newer || len(changed) > 0):
		b.plan.BootStatus = bootStatus(ctx, status)
		diags.AddWarning("Live ISO is taken as booted", fmt.Sprintf("Nobody knows what node %s was booted with. The machine is not touched: what the configuration says "+
			"is noted, and later images are compared with that. To boot it anew, use terraform apply -replace.", label))
	case status.Action == bootiso.Reboot:
		b.starts(bootStatus(ctx, status))
		diags.AddWarning("Machine is restarted with a new live ISO", fmt.Sprintf("Node %s is restarted: %s (obsolete: %s).%s", label, status.Why,
			strings.Join(status.Obsolete, ", "), b.iso.settled(time.Now())))
	case status.Action == bootiso.Manual:
		b.plan.BootStatus = bootStatus(ctx, status)
		diags.AddWarning("Machine has to be restarted by hand", fmt.Sprintf("Node %s needs a new live ISO: %s (obsolete: %s). After this apply, restart it with the new image yourself.",
			label, status.Why, strings.Join(status.Obsolete, ", ")))
	default:
		runs := newer && !status.Stale && !b.older() // what is configured, which an interrupted run or an import did not note
		if b.prior != nil && !runs {
			b.plan.LiveISO = b.iso.bootedAs(ctx, b.plan.LiveISO, b.prior)
		}
		switch {
		case status.Action == bootiso.Wait:
			diags.AddWarning("Host waits for a newer live ISO", fmt.Sprintf("Node %s runs on with what it was booted with: %s (obsolete: %s).", label, status.Why, strings.Join(status.Obsolete, ", ")))
		case b.older() || status.Stale:
			diags.AddWarning("Host runs an older live ISO", fmt.Sprintf("Node %s is not restarted: %s. The data source metal_boot_status lists such hosts.", label, status.Why))
		}
		if len(changed) > 0 || !b.plan.sameContent(b.state) {
			diags.AddWarning("Change without effect", fmt.Sprintf("What changes beside the live ISO of node %s is noted, and the machine runs on as it is.", label))
		}
	}
}

// older reports whether the machine runs another image than the configured one.
func (b bootPlan) older() bool {
	record := b.node.Record
	return record != nil && record.Image != bootiso.NewRecord(b.iso.artifacts(), record.At, nil).Image
}

// boot does what was planned of a live ISO: boots the machine, or notes what it is taken to run.
func (u *deploymentUpdate) boot(ctx context.Context, client *ironic.Client) (*ironic.Node, int, error) {
	id, attempts := u.state.ID.ValueString(), int(u.state.Attempts.ValueInt64())
	planned := u.plan.bootAction(ctx)
	restarts, byHand := u.plan.ProvisionState.IsUnknown(), planned == bootiso.Manual && !u.plan.BootStatus.Equal(u.state.BootStatus)
	check := func(node *ironic.Node) error { return u.check(ctx, node, planned) }
	other := ironic.RebuildOther
	if restarts && planned != bootiso.Reboot { // an unfinished one is continued, and what it has booted is for the next plan to judge
		check, other = nil, ironic.KeepOther
	}
	if check != nil && (restarts || byHand) {
		node, err := client.Node(ctx, id)
		if err == nil {
			err = check(node)
		}
		if err != nil {
			return node, attempts, err
		}
	}
	if restarts {
		if err := client.Settle(ctx, u.plan.liveISO(ctx).newImage()); err != nil {
			return nil, attempts, err
		}
		admit := func(ctx context.Context, node *ironic.Node) error {
			if check != nil {
				if err := check(node); err != nil {
					return err
				}
			}
			return u.admit(ctx, node)
		}
		return client.BootISO(ctx, id, u.what, ironic.DeployOptions{
			Instance: u.state.InstanceUUID.ValueString(), Other: other, Attempts: u.plan.tries(), Limit: u.limit, Admit: admit,
		})
	}
	node, err := u.own(ctx, client)
	if err == nil && (byHand || (ironic.RunsInstance(node) && ironic.BootRecord(node) == nil)) {
		node, err = client.RecordBoot(ctx, id, u.what, byHand)
	}
	return node, attempts, err
}

// check decides anew, by the node as it is now, and refuses what was planned if that is something else. That the node runs
// what it shall by now is fine: there is nothing left to do.
func (u *deploymentUpdate) check(ctx context.Context, node *ironic.Node, planned bootiso.Action) error {
	if err := ironic.CheckReservation(node, u.state.InstanceUUID.ValueString()); err != nil {
		return err
	}
	iso := u.plan.liveISO(ctx)
	status := iso.judge(ironic.BootFactsOf(node), u.plan.changedAttributes(u.state))
	switch {
	case status.Action == planned || u.what.DeployedWith(node):
		return nil
	case !ironic.RunsInstance(node):
		status.Why = fmt.Sprintf("it is in state %q", node.ProvisionState)
	case node.Protected && !iso.Installing.ValueBool():
		status.Why = "it is protected"
	}
	return &ironic.BootChangedError{Node: node, Why: status.Why}
}
