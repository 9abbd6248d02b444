package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

func (l LiveISO) known(parts ...string) bool {
	return !slices.ContainsFunc(parts, func(name string) bool { return l.Parts[name].Unknown })
}

// decidable reports whether all settings are known that select the machines that a newer image restarts.
func (l LiveISO) decidable() bool {
	return l.known("installing", "registered", "reboot_policy", "host_content")
}

// built reports whether the image and its shared content are known too.
func (l LiveISO) built() bool { return l.known("url", "version", "shared_content", "contains") }

// bootedParts are the attributes of a live ISO that say what a machine has booted.
func bootedParts() []string {
	return []string{"url", "version", "built_at", "shared_content", "host_content", "contains"}
}

// bootedAs returns the live ISO with the image and content of was, which the machine keeps running with.
func (l LiveISO) bootedAs(was LiveISO) LiveISO {
	l.Parts = maps.Clone(l.Parts)
	for _, name := range bootedParts() {
		l.Parts[name] = unlessNull(l.Parts[name], was.Parts[name])
	}
	return l
}

// Unborn returns the refusal of an image that was built in the future; nil if it was not.
func (l LiveISO) unborn(now time.Time) *decide.Notice {
	if err := checkBuilt(l.Want, now); err != nil {
		n := decide.Refuse(decide.At("live_iso", "built_at"), "Image from the future", failure.Sentence(err)+
			" Check built_at, and the clock of this computer.")
		return &n
	}
	return nil
}

// Wants reports whether the apply has wanted the same.
func (w Wanted) Wants(want bootiso.Want) bool {
	return w.Image != "" && w.Artifacts.Digest() == want.Digest() && maps.Equal(w.Artifacts.Contains, want.Contains) &&
		(w.Artifacts.Contains == nil) == (want.Contains == nil)
}

// refuseFirstBoot refuses the first boot of a machine with an image that was built without what the machine shall have, because nothing
// would restart the machine later, or with one from the future.
func (d *decision) refuseFirstBoot() {
	iso := d.asked.LiveISO
	if !iso.Set || d.refuseUnborn() || !iso.V.built() || !iso.V.known("host_content") {
		return
	}
	if lacking := iso.V.Want.Lacking(); len(lacking) > 0 {
		d.refuse(decide.At("live_iso", "contains"), "Live ISO lacks wanted content", fmt.Sprintf(
			"According to live_iso.contains, the image was built without %s. Build an image that contains it, then apply.",
			strings.Join(lacking, ", ")))
	}
}

// refuseUnborn refuses an image that was built in the future, and reports whether it has.
func (d *decision) refuseUnborn() bool {
	n := d.asked.LiveISO.V.unborn(d.seen.Now)
	if n != nil {
		d.plan.Notices = append(d.plan.Notices, *n)
	}
	return n != nil
}

// bootDecision is a decision about a live ISO of a machine that stays on its node.
type bootDecision struct {
	*decision
	iso    LiveISO               // of the configuration, if it is set
	was    decide.Value[LiveISO] // of the state
	answer bootiso.Answer
}

// boot decides what a live ISO asks of a machine that stays on its node.
func (d *decision) boot() {
	b := &bootDecision{decision: d, iso: d.asked.LiveISO.V, was: d.seen.Was.LiveISO}
	d.plan.Forecast.Boot = d.seen.Boot
	d.ignore()
	if d.leavesImported() {
		return
	}
	if resumes, _ := d.resumes(); resumes {
		b.resume()
		return
	}
	d.warnPower()
	if !d.asked.LiveISO.Set || !b.iso.decidable() || d.redeploys() == unclear {
		b.undecidable()
		return
	}
	if d.seen.Sight == (Sight{}) {
		d.refuse(nil, "State is not refreshed", "The last apply could not read what the machine runs. Plan again without -refresh=false.")
		return
	}
	in := b.input()
	if b.refuseUndeploy(in) {
		return
	}
	if b.answer = bootiso.Decide(in); b.answer.Apply.Action == bootiso.Wait || in.Machine.Rescued {
		in = b.postpone(in)
		b.answer = bootiso.Decide(in)
	}
	switch {
	case b.answer.Apply.Action == bootiso.Wait && len(in.Changed)+len(in.Demanded) > 0:
		b.refuseWait(in)
		return
	case b.answer.Apply.Action == bootiso.Restart && b.refuseBoot(in):
		return
	case b.iso.built():
		b.built(in)
	default:
		b.unbuilt(in)
	}
	d.restart(b.boots())
}

func (b *bootDecision) resume() {
	b.warnResume()
	f := &b.plan.Forecast
	f.Boot = decide.Known(bootiso.Status{Action: bootiso.None})
	switch _, first := b.resumes(); {
	case b.waits():
		b.operate(Step{Do: DoContinue})
	case first:
		b.operate(Step{Do: DoDeploy, Cost: decide.Restart})
	default:
		b.operate(Step{Do: DoRepeat, Cost: decide.Restart})
		f.Restarts = raise(b.seen.Restarts, differs)
	}
}

// changed returns the names of the attributes whose change restarts a machine with a live ISO, besides live_iso itself.
func (d *decision) changed() []string {
	if d.onChange == ChangeIgnored || d.was.Adopt {
		return nil
	}
	return slices.DeleteFunc(ContentNames(), func(name string) bool {
		return name == attrImage || compare(d.wish.Content[name], d.was.Content[name]) == same
	})
}

// input returns what the decision depends on. The machine is what it will be when the apply boots it: it leaves rescue mode before,
// and enters it afterwards, where a restart would be in vain.
func (b *bootDecision) input() bootiso.Input {
	in := bootiso.Input{
		Machine: b.seen.Sight.Boot, Want: b.iso.Want, Changed: b.changed(), Now: b.seen.Now, Unbuilt: !b.iso.built(),
		Imported: b.imports(),
	}
	in.Machine.Protected = b.staysProtected()
	in.Machine.Rescued = b.staysInRescue() && !b.imports()
	if compare(b.wish.Rebuild, b.decision.was.Rebuild) != same {
		in.Demanded = []string{"rebuild_triggers"}
	}
	return in
}

func (b *bootDecision) boots() change {
	switch restarts := b.plan.Forecast.Restarts; {
	case restarts.Unknown:
		return unclear
	case restarts.V > b.seen.Restarts:
		return differs
	}
	return same
}

// refuseUndeploy refuses a restart of a protected machine that another attribute than live_iso asks for. Such a restart undeploys the
// machine. A new image alone restarts no protected machine.
func (b *bootDecision) refuseUndeploy(in bootiso.Input) bool {
	if !in.Machine.Protected || len(in.Changed)+len(in.Demanded) == 0 {
		return false
	}
	in.Machine.Protected = false
	if bootiso.Decide(in).Apply.Action != bootiso.Restart {
		return false
	}
	b.refuseProtected("restart it with its live ISO, which may undeploy it")
	return true
}

// restartsWith plans that the machine is booted with a live ISO. boot_status says what the next refresh will say. An unclear restart
// forecasts no boot_status.
func (b *bootDecision) restartsWith(in bootiso.Input, by change) {
	status := b.answer.Apply
	b.operate(Step{
		Do: DoBoot, Cost: decide.Restart, Maybe: by == unclear,
		Boot: BootReason{Changed: in.Changed, Demanded: in.Demanded, Obsolete: status.Obsolete},
	})
	f := &b.plan.Forecast
	f.Restarts = raise(b.seen.Restarts, by)
	if f.Boot = decide.Known(in.AfterBoot()); by == unclear {
		f.Boot = decide.Unknown[bootiso.Status]()
	}
}

// unbuilt decides about an image that is not known yet. The plan of a machine that no new image restarts shows no change: the plan during
// apply could not take back a change of shared_content that this one shows.
func (b *bootDecision) unbuilt(in bootiso.Input) {
	status, label := b.answer.Apply, b.seen.Label
	switch {
	case slices.Contains(status.Obsolete, bootiso.ObsoleteUnknown):
		b.plan.Forecast.Boot = decide.Unknown[bootiso.Status]()
		b.warn(nil, "Live ISO is not known yet",
			fmt.Sprintf("There is no record of what node %s was booted with. The machine is not touched.", label))
	case status.Action == bootiso.Wait:
		b.runsOn()
	case status.Action != bootiso.None || (!b.was.Set && !b.imports()):
		b.restartsWith(in, unclear)
		b.warn(nil, "Machine is restarted with a new live ISO",
			fmt.Sprintf("Node %s is restarted, if the image that is not known yet turns out to be another one: %s.", label, status.Why))
	default:
		b.keepBooted()
		b.show()
		b.warn(nil, "Host is not restarted with the new live ISO", fmt.Sprintf("Node %s keeps running, whatever the new image will be: %s.",
			label, status.Why))
	}
}

func (b *bootDecision) built(in bootiso.Input) {
	status, label := b.answer.Apply, b.seen.Label
	obsolete := strings.Join(status.Obsolete, ", ")
	unknown := slices.Contains(status.Obsolete, bootiso.ObsoleteUnknown)
	switch {
	// what is written to the node now would decide what it boots afterwards
	case unknown && (b.seen.Sight.Boot.Rescued || b.seen.Sight.Boot.Barred != ""):
		b.runsOn()
	case unknown && (b.reconfigured() || len(b.changed()) > 0):
		b.plan.Forecast.Boot = decide.Known(in.AfterBoot())
		b.warn(nil, "Live ISO is taken as booted",
			fmt.Sprintf("There is no record of what node %s was booted with. Without -replace, the apply records the "+
				"configuration, and does not touch the machine. Later images are compared with the recorded one. To boot the machine "+
				"with this one, use terraform apply -replace.", label))
	case status.Action == bootiso.Restart:
		b.restartsWith(in, differs)
		b.warn(nil, "Machine is restarted with a new live ISO", fmt.Sprintf("Node %s is restarted: %s (obsolete: %s).%s", label, status.Why,
			obsolete, b.settles()))
	case status.Action == bootiso.Manual:
		b.plan.Forecast.Boot = decide.Known(status)
		b.add(Step{Do: DoAsk, Boot: BootReason{Changed: in.Changed, Demanded: in.Demanded, Obsolete: status.Obsolete}})
		b.warn(nil, "Machine has to be restarted by hand",
			fmt.Sprintf("Node %s needs a new live ISO: %s (obsolete: %s). After this apply, restart it with the new image yourself.",
				label, status.Why, obsolete))
	default:
		b.runsOn()
	}
}

// keepBooted plans that live_iso keeps the image and content of the state.
func (b *bootDecision) keepBooted() {
	if b.was.Set {
		b.wish.LiveISO.V = b.iso.bootedAs(b.was.V)
	}
}

// runsOn plans that the machine keeps running. The plan shows a change of live_iso only if the machine runs what is configured, and
// the state does not say so, as after an interrupted run or an import.
func (b *bootDecision) runsOn() {
	status, older := b.answer.Apply, b.answer.Newer
	if b.finished = b.reconfigured() && !status.Stale && !older; !b.finished {
		b.keepBooted()
	}
	b.show()
	switch {
	case status.Action == bootiso.Wait:
		b.warnWait(status)
	case older || status.Stale:
		b.warn(nil, "Host runs an older live ISO", fmt.Sprintf("Node %s is not restarted: %s. The data source metal_boot_status lists "+
			"such hosts as older or stale.", b.seen.Label, status.Why))
	}
	if contentChange(b.wish, b.decision.was) != same {
		b.warn(nil, "Change without effect", fmt.Sprintf("The apply records all changes of node %s other than its live ISO, and does not "+
			"touch the machine.", b.seen.Label))
	}
}

// reconfigured reports whether the configuration has another image or content than the state.
func (b *bootDecision) reconfigured() bool {
	return !b.was.Set || b.iso.Want.Digest() != b.was.V.Want.Digest()
}

// settles returns a sentence that says when the image will have settled, as far as the configuration tells; "" if it has.
func (b *bootDecision) settles() string {
	if b.answer.Now.Action != bootiso.Wait {
		return ""
	}
	return fmt.Sprintf(" The apply first waits until %s, when the image has settled.", b.iso.Want.SettlesAt().UTC().Format(time.RFC3339))
}

// undecidable plans for a live ISO whose settings are unknown, also those that say which machines restart.
func (b *bootDecision) undecidable() {
	if b.imports() {
		return
	}
	if b.staysInRescue() && b.was.Set {
		if b.asked.LiveISO.Set {
			b.keepBooted()
		} else {
			b.wish.LiveISO = b.was
		}
		b.keepAsked()
		b.warnRescue()
		return
	}
	b.warn(nil, "Live ISO is not known yet", "The image, or a setting that decides about restarts, is known only during the apply, which "+
		"then restarts the machines that the change concerns. To see them in the plan, build the image first.")
	b.restartsWith(bootiso.Input{}, unclear)
}

// show plans that boot_status says what the live ISO of the configuration asks of a machine that keeps running. Read says the same of the
// one that an apply has wanted last.
func (b *bootDecision) show() {
	f := &b.plan.Forecast
	switch {
	case b.imports() || (b.iso.built() && b.seen.Last.Wants(b.iso.Want) && b.was.Set && maps.Equal(b.wish.LiveISO.V.Parts, b.was.V.Parts)):
	case !b.iso.built() && (!b.iso.known("shared_content") || !b.iso.Want.Registered): // what is stale depends on what is not known
		f.Boot = decide.Unknown[bootiso.Status]()
	default:
		f.Boot = decide.Known(b.answer.Now)
	}
}

// postpone keeps, of a machine that cannot be booted anew yet, what asks for that: the state must not say that it has it. It returns what
// the decision depends on then, and warns if nothing else in the plan will.
func (b *bootDecision) postpone(in bootiso.Input) bootiso.Input {
	if b.imports() {
		return in
	}
	asked := b.wish
	asked.Content = maps.Clone(b.wish.Content)
	if b.keepAsked(); !in.Machine.Rescued {
		b.wish.Restart = asked.Restart // switching it off and on is possible
	}
	if contentChange(asked, b.wish) != same || asked.Rebuild != b.wish.Rebuild || asked.Restart != b.wish.Restart {
		b.warnWait(b.answer.Apply)
	}
	return b.input()
}

// refuseWait refuses a change that can neither be made now nor wait.
func (b *bootDecision) refuseWait(in bootiso.Input) {
	names := append(in.Changed, in.Demanded...)
	advice := "Make that change when the machine can be restarted."
	if in.Machine.Rescued {
		advice = "Make that change after the rescue. " + b.endAdvice()
	}
	b.refuse(decide.At(names[0]), "Machine cannot be restarted now",
		fmt.Sprintf("This plan adds or removes %s of node %s, which restarts the machine: %s. %s",
			strings.Join(names, ", "), b.seen.Label, b.answer.Apply.Why, advice))
}

// refuseBoot refuses a restart that the apply would refuse, and reports whether it has.
func (b *bootDecision) refuseBoot(in bootiso.Input) bool {
	if !b.answer.Loops {
		return b.refuseUnborn()
	}
	at := decide.At("live_iso")
	if names := append(in.Demanded, in.Changed...); len(names) > 0 {
		at = decide.At(names[0])
	}
	_, detail := failure.Explain("", BootLoop(b.seen.Label, *in.Machine.Booted))
	b.refuse(at, "Machine was restarted too often", detail)
	return true
}

// warnWait warns that the machine needs another boot, and says what that waits for.
func (b *bootDecision) warnWait(status bootiso.Status) {
	obsolete, label := strings.Join(status.Obsolete, ", "), b.seen.Label
	switch {
	case b.staysInRescue():
		b.warnRescue()
	case b.seen.Sight.Boot.Barred != "":
		b.warn(nil, "Restart waits for the machine", fmt.Sprintf("Node %s keeps running with what it was booted with: %s (obsolete: %s). "+
			"When that has ended, the next plan restarts it.", label, status.Why, obsolete))
	default:
		b.warn(nil, "Host waits for a newer live ISO", fmt.Sprintf("Node %s keeps running with what it was booted with: %s (obsolete: %s).",
			label, status.Why, obsolete))
	}
}

// CheckISO asks for the decision about a live ISO again, with the node as it is now. It returns an error if that differs from the
// step, unless the node already has the deployment.
func (s Step) CheckISO(what Deployment, node *ironic.Node, now time.Time) error {
	want := *what.LiveISO
	status := bootiso.Decide(bootiso.Input{
		Machine: BootFacts(node), Want: want, Changed: s.Boot.Changed, Demanded: s.Boot.Demanded,
		Now: now,
	}).Apply
	planned := bootiso.Restart
	if s.Do == DoAsk {
		planned = bootiso.Manual
	}
	switch {
	case status.Action == planned || what.DeployedWith(node):
		return nil
	case !RunsInstance(node):
		status.Why = fmt.Sprintf("it is in state %q", node.ProvisionState)
	case node.Protected && !want.Installing:
		status.Why = "it is protected"
	}
	return BootChanged(node, status.Why)
}
