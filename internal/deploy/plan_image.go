package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/deployinterface"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// imageOrAdoption decides about a machine that runs an image, or was adopted.
func (d *decision) imageOrAdoption() {
	switch {
	case d.wish.Adopt:
		d.adoption()
		return
	case d.leavesImported(), d.imports() && d.records:
		return
	}
	d.ignore()
	why := d.judge()
	d.warnVerdict(why)
	d.finished = why == ranUnrecorded
	writes := why.rebuilds()
	kind, known := d.deployKind(writes)
	if known {
		d.operate(kind)
		d.warnHidden(kind)
	}
	resumes, first := d.resumes()
	if resumes && !first {
		writes = differs
	}
	d.plan.Forecast.Rebuilds = raise(d.seen.Rebuilds, writes)
	if writes != same {
		d.warnDetected()
	}
	if writes == differs && d.staysProtected() {
		d.refuseProtected("rebuild it")
	}
	if !resumes {
		d.address(writes)
		d.warnPower()
		d.restart(writes)
	}
}

// warnHidden says which secret a deployment gets whose config drive Terraform ignores.
func (d *decision) warnHidden(s Step) {
	if d.asked.Hidden && s.Cost == decide.Wipe {
		d.warn(decide.At(attrConfigDrive), "Ignored secret is sent", fmt.Sprintf("ignore_changes keeps the config drive that the state "+
			"has of node %s. The state has no secrets, so the apply sends user_data_wo and meta_data_wo as the configuration has them "+
			"now, whatever their versions are. Take config_drive out of ignore_changes if the secret has changed.", d.seen.Label))
	}
}

// address plans to tell Ironic where the image is now, for the next time that it fetches it.
func (d *decision) address(writes change) {
	moves := compare(d.wish.Address, d.was.Address)
	if writes != same || moves == same || d.finished || d.imports() || d.wish.Content[attrImage] != d.was.Content[attrImage] {
		return
	}
	d.add(Step{Do: DoAddress, Maybe: moves == unclear})
	if wish, was := d.wish.Deployment.Image, d.was.Deployment.Image; wish != nil && was != nil && wish.URL != was.URL {
		d.warn(decide.At(attrImage, "url"), "Image has another address", fmt.Sprintf("Node %s runs the image: its checksum stays the "+
			"same. The apply tells Ironic the new address, and touches no disk. If the image is another one, set its checksum, too.",
			d.seen.Label))
	}
}

// deployKind returns the step that deploys a machine, if there is any.
func (d *decision) deployKind(writes change) (Step, bool) {
	resumes, first := d.resumes()
	switch {
	case writes != same:
		return Step{Do: DoRebuild, Cost: decide.Wipe, Maybe: writes == unclear && (!resumes || first)}, true
	case !resumes:
		return Step{}, false
	case d.waits():
		return Step{Do: DoContinue}, true
	case first:
		return Step{Do: DoDeploy, Cost: decide.Wipe}, true
	}
	return Step{Do: DoRepeat, Cost: decide.Wipe}, true
}

// adoption decides about a machine that runs what others have deployed on it.
func (d *decision) adoption() {
	resumes, _ := d.resumes()
	state := d.seen.State
	if states.Adoptable(state) {
		d.operate(Step{Do: DoAdopt})
		d.warn(nil, "Unfinished adoption is continued",
			fmt.Sprintf("Node %s is in state %q%s Ironic adopts the machine as it runs: nothing is written to its disks.",
				d.seen.Label, state, afterColon(d.seen.LastError.V)))
		return
	}
	if resumes {
		d.warn(nil, "Adopted machine does not run", fmt.Sprintf("Node %s is in state %q. With adopt = true there is nothing to deploy "+
			"on it: set image in place of adopt, which deploys it, or destroy the deployment.",
			d.seen.Label, state))
	}
	d.warnPower()
	d.restart(same)
	if info := d.wish.Content[attrInstanceInfo]; !info.IsNull() && info != d.was.Content[attrInstanceInfo] {
		d.add(Step{Do: DoDescribe})
	}
}

// verdict says why an apply writes the image of a machine, or why it does not.
type verdict int

const (
	unchanged     verdict = iota // nothing is wanted that the machine does not run
	unfinished                   // the apply finishes or repeats a deployment, which is no rebuild
	mayDiffer                    // something in the content is not known yet
	ranUnrecorded                // an earlier run has deployed the content, and did not record that
	importDiffers                // no apply has followed the import, and the machine was deployed with something else
	stateDiffers                 // the state has other content, or another trigger
	adoptionStays                // the content differs, of a machine that was adopted: only a trigger deploys it
	changeIgnored                // the content differs, and on_change is "ignore"
)

// judge returns the verdict. It only judges: warnVerdict warns.
func (d *decision) judge() verdict {
	writes, content := d.redeploys(), contentChange(d.wish, d.was)
	begun, ran := d.recorded()
	resumes, _ := d.resumes()
	switch {
	case d.neverBegun(), writes == differs && begun, writes == same && resumes:
		return unfinished
	case writes == unclear:
		return mayDiffer
	case ran && (writes == differs || compare(d.wish.Address, d.was.Address) == differs):
		return ranUnrecorded
	case writes == differs && d.seen.Past.Phase == Unapplied:
		return importDiffers
	case writes == differs:
		return stateDiffers
	case content != same && d.was.Adopt:
		return adoptionStays
	case content != same:
		return changeIgnored
	}
	return unchanged
}

func (v verdict) rebuilds() change {
	switch v {
	case importDiffers, stateDiffers:
		return differs
	case mayDiffer:
		return unclear
	case unchanged, unfinished, ranUnrecorded, adoptionStays, changeIgnored:
	}
	return same
}

// rebuildSummary is the same for all nodes, so that Terraform folds the warnings into one. So are the other summaries.
const rebuildSummary = "Rebuild wipes the root disk"

// warnVerdict says what the apply does with the content, unless there is nothing to say.
func (d *decision) warnVerdict(v verdict) {
	label := d.seen.Label
	switch v {
	case unfinished:
		d.warnResume()
	case mayDiffer:
		d.warn(nil, rebuildSummary, fmt.Sprintf("The content of node %s may change: something in it is not known yet. If it does, Ironic "+
			"rebuilds the node in place, and the data on its root disk is lost. The plan says so with an unknown value of rebuilds.",
			label))
	case ranUnrecorded:
		d.warn(nil, "Deployment of an earlier run is recorded", fmt.Sprintf("Node %s runs the configured content: an earlier run has "+
			"deployed it, and was killed before it recorded that. The apply does not touch the machine.", label))
	case importDiffers:
		d.warn(nil, rebuildSummary, fmt.Sprintf("Node %s was imported, and the configuration differs from what it was deployed with: %s. "+
			"Ironic rebuilds it in place, and the data on its root disk is lost. To keep the machine as it is, correct the "+
			"configuration, or set on_change = \"ignore\".", label, strings.Join(d.differing(), ", ")))
	case stateDiffers:
		d.warn(nil, rebuildSummary, fmt.Sprintf("The content of node %s changes (%s): Ironic rebuilds it in place, and the data on its "+
			"root disk is lost. Its reservation stays. Each machine that this plan rebuilds shows a higher number in rebuilds. %s to "+
			"leave the machine as it is.", label, strings.Join(d.differing(), ", "), d.leave()))
	case adoptionStays:
		d.warn(nil, "Adopted deployment is recorded only", fmt.Sprintf("The apply records the content of node %s in the state, "+
			"and does not touch the machine, which was adopted. To deploy that content, %s.", label, d.trigger()))
	case changeIgnored:
		d.warn(nil, "Change without effect", fmt.Sprintf("on_change is \"ignore\": the apply records the new content of node %s, "+
			"and does not touch the machine.", label))
	case unchanged:
	}
}

// differing returns the attributes for which a machine is deployed anew: parts of image and config_drive, and the others whole.
func (d *decision) differing() (names []string) {
	for _, name := range ContentNames() {
		switch wish, was := d.wish.Content[name], d.was.Content[name]; {
		case compare(wish, was) == same:
		case name == attrConfigDrive && d.wish.Drive != nil && d.was.Drive != nil:
			names = append(names, otherParts(name, d.wish.Drive, d.was.Drive)...)
		case name == attrImage && d.seen.Past.Phase == Unapplied:
			names = append(names, fmt.Sprintf("%s (the node has %s)", name, d.was.content()))
		case name == attrImage && wish.Set && was.Set:
			names = append(names, otherParts(name, partsOf(wish), partsOf(was))...)
		default:
			names = append(names, name)
		}
	}
	if compare(d.wish.Rebuild, d.was.Rebuild) != same {
		names = append(names, attrRebuildTriggers)
	}
	return names
}

// partsOf returns the attributes of an object of the content.
func partsOf(content Text) map[string]Text {
	var values map[string]json.RawMessage
	_ = json.Unmarshal([]byte(content.V), &values) // content is JSON
	parts := map[string]Text{}
	for name, value := range values {
		parts[name] = decide.Known(string(value))
	}
	return parts
}

// otherParts returns the parts of an attribute that differ.
func otherParts(name string, some, others map[string]Text) (names []string) {
	parts := slices.AppendSeq(slices.Collect(maps.Keys(some)), maps.Keys(others))
	slices.Sort(parts)
	for _, part := range slices.Compact(parts) {
		if some[part] != others[part] {
			names = append(names, name+"."+part)
		}
	}
	return names
}

// leave says what leaves a machine that a plan would rebuild as it is.
func (d *decision) leave() string {
	switch {
	case compare(d.wish.Rebuild, d.was.Rebuild) == same:
		return "Set on_change = \"ignore\""
	case contentChange(d.wish, d.was) == same || d.onChange == ChangeIgnored:
		return "Keep the value of rebuild_triggers"
	}
	return "Keep the value of rebuild_triggers, and set on_change = \"ignore\","
}

// firstTriggers says that the first values of triggers do nothing, and what would.
func (d *decision) firstTriggers() {
	var first []string
	for name, pair := range map[string][2]Text{
		attrRebuildTriggers: {d.asked.Rebuild, d.seen.Was.Rebuild}, "restart_triggers": {d.asked.Restart, d.seen.Was.Restart},
	} {
		if !pair[0].IsNull() && pair[1].IsNull() {
			first = append(first, name)
		}
	}
	if len(first) == 0 || d.imports() || d.records || d.judge() == adoptionStays || d.plan.Operates() {
		return
	}
	slices.Sort(first)
	d.warn(nil, "First triggers are recorded only", fmt.Sprintf("This apply records the first value of %s of node %s. It rebuilds and "+
		"restarts nothing for that: a later apply with another value does. metal power reboot restarts the machine now.",
		strings.Join(first, " and "), d.seen.Label))
}

// ignore plans that the content stays as it is, with on_change = "ignore" and without a trigger.
func (d *decision) ignore() {
	resumes, _ := d.resumes()
	if d.onChange != ChangeIgnored || d.imports() || d.was.Adopt || (resumes && !d.waits()) {
		return
	}
	switch compare(d.wish.Rebuild, d.was.Rebuild) {
	case same:
		d.keepContent()
	case unclear:
		if contentChange(d.wish, d.was) != same {
			d.refuse(decide.At("rebuild_triggers"), unknownSummary,
				"on_change is \"ignore\" and the content has changed: rebuild_triggers decides whether the plan shows the new content, "+
					"so the plan must know it. Use values that do not depend on a resource, or apply that resource first (-target).")
		}
	case differs:
	}
}

const restartSummary = "Machine is restarted"

// restart plans a restart for restart_triggers. A machine that is deployed or booted anew, or is to be off, is not restarted.
func (d *decision) restart(deploys change) {
	power := d.asked.Power
	restarts := compare(d.wish.Restart, d.was.Restart)
	if restarts == same || deploys == differs || d.imports() || power.V == PowerOff {
		return
	}
	if deploys == unclear || power.Unknown {
		restarts = unclear
	}
	if restarts == differs && d.restarted() {
		return
	}
	d.plan.Forecast.Restarts = raise(d.seen.Restarts, restarts)
	d.add(Step{
		Do: DoRestart, Cost: decide.Restart, Maybe: restarts == unclear,
		Restart: Restarted{Triggers: TriggersDigest(d.asked.Restart), At: d.seen.Restart.At},
	})
	d.mayBeOff()
	if restarts == unclear {
		d.warn(nil, restartSummary, fmt.Sprintf("Node %s may be restarted: whether restart_triggers changes is not known yet. The plan "+
			"says so with an unknown value of restarts.", d.seen.Label))
		return
	}
	d.warn(nil, restartSummary, fmt.Sprintf("Node %s is %s. Each machine that this plan restarts shows a higher number in restarts.",
		d.seen.Label, d.restarts()))
}

func (d *decision) restarts() string {
	if d.seen.Power.V == PowerOff {
		return "off, and is switched on: restart_triggers changes"
	}
	return "switched off and on: restart_triggers changes. " + strings.TrimSuffix(d.asked.stops(), ".")
}

// mayBeOff forecasts that a restart may leave a machine on that is off.
func (d *decision) mayBeOff() {
	if d.asked.Power.IsNull() && d.seen.Power.V != PowerOn {
		d.plan.Forecast.Power = decide.Unknown[PowerState]()
	}
}

func (d *decision) warnPower() {
	power := d.asked.Power
	if power.Set && power != d.seen.Power && !d.imports() {
		detail := fmt.Sprintf("Node %s is switched %s.", d.seen.Label, power.V)
		if power.V == PowerOff {
			detail += " " + d.asked.stops()
		}
		d.warn(decide.At("power_state"), "Power is switched", detail)
	}
}

// warnUnchecked warns of a machine that is not as configured, so that no check is made. Others tell of rescue mode, and of an adopted
// machine that does not run.
func (d *decision) warnUnchecked() {
	state := d.plan.Forecast.State.V
	if !d.asked.Rescue.IsNull() || d.asked.Power.V == PowerOff || RescueOf(state) == Rescued || !states.Finished(state) || d.imports() {
		return
	}
	d.warn(decide.At("ready_check"), "Machine is not checked", fmt.Sprintf("Node %s is in state %q%s What is deployed on it may not run, "+
		"so its ready check waits, and ready is null, until the node is active.", d.seen.Label, state, afterColon(d.seen.LastError.V)))
}

// warnOff warns of a check alone of a machine that is off: it fails unless somebody switches the machine on.
func (d *decision) warnOff() {
	if d.seen.Power == decide.Known(PowerOff) {
		d.warn(decide.At("ready_check"), "Ready check of a machine that is off", fmt.Sprintf("Node %s is off, and this apply does not "+
			"switch it on: the check can only fail. Set power_state = \"on\", or run metal power on first.", d.seen.Label))
	}
}

func (d *decision) warnResume() {
	state, label := d.seen.State, d.seen.Label
	writes := "which writes its root disk"
	if !d.wish.LiveISO.IsNull() {
		writes = "which boots its live ISO"
	}
	switch {
	case states.DeployFailed(state):
		d.warn(nil, "Failed deployment is repeated", fmt.Sprintf("Node %s is in state %q (%s). It is deployed again, %s.", label, state,
			d.seen.LastError.V, writes))
	case d.waits():
		d.warn(nil, "Unfinished deployment is continued",
			fmt.Sprintf("Node %s is in state %q: the apply waits for the operation that an earlier run has started.", label, state))
	case d.neverBegun():
		d.warn(nil, "Unfinished deployment is continued", fmt.Sprintf("Node %s is reserved, and still in state %q: it is deployed, %s.",
			label, state, writes))
	default:
		d.warnUndeployed(writes)
	}
}

// warnUndeployed warns that the apply deploys a node that was undeployed. writes says what deploying does.
func (d *decision) warnUndeployed(writes string) {
	why, finishes := "another client of Ironic, or an interrupted run, has undeployed it, and its data is lost", ""
	switch {
	case Begun(d.seen.State):
		finishes = "finishes that, then "
	case d.seen.Attempts == decide.Known[int64](0): // no apply has deployed it since the import
		why = "it was imported so, or another client of Ironic has undeployed it since"
	}
	d.warn(nil, "Undeployed node is deployed again",
		fmt.Sprintf("Node %s is in state %q: %s. The apply %sdeploys it, %s. To leave it undeployed, destroy the resource.",
			d.seen.Label, d.seen.State, why, finishes, writes))
}

const protectedSummary = "Machine is protected"

// staysProtected reports whether the node is protected, as of the last refresh, and the plan does not end that. An update ends it
// before anything else.
func (d *decision) staysProtected() bool {
	ends := d.asked.Protected.Set && !d.asked.Protected.V
	return d.seen.Protected && !ends
}

// refuseProtected refuses to wipe a protected machine. doing is what the plan would do, such as "rebuild it".
func (d *decision) refuseProtected(doing string) {
	d.refuse(decide.At("protected"), protectedSummary, fmt.Sprintf("Node %s is protected in Ironic, and this plan would %s. "+
		"If the machine may be wiped, set protected = false. It can be set in the same apply as the change.", d.seen.Label, doing))
}

// refuseEnd refuses to end the deployment of a protected machine, and reports whether it has. It names the attributes for which the
// deployment would be replaced.
func (d *decision) refuseEnd(doing string) bool {
	if !d.seen.Protected || d.seen.Was.forgets() {
		return false
	}
	why := d.plan.Replaces
	for i, name := range why {
		if d.wish.Allocation.Unknown && name == "allocation_id" || d.wish.Node.Unknown && name == "node_id" {
			why = slices.Replace(slices.Clone(why), i, i+1, name+" (known after apply)")
		}
	}
	because := ""
	if len(why) > 0 {
		because = " for a change of " + strings.Join(why, ", ")
	}
	d.refuse(decide.At("protected"), protectedSummary,
		fmt.Sprintf("Node %s is protected in Ironic, and this plan would %s its deployment%s, which undeploys the machine. If it may be "+
			"wiped, first apply protected = false, without any other change.", d.seen.Label, doing, because))
	return true
}

// warnDetected warns of a rebuild with an image for which autodetect might choose another deploy interface.
func (d *decision) warnDetected() {
	acting := d.seen.Sight.Detected
	needs, maybe := deployinterface.Outlives(acting, d.wish.deployed())
	if acting == "" || !maybe || compare(d.wish.Content[attrImage], d.was.Content[attrImage]) != differs {
		return
	}
	d.warn(decide.At("image"), "Deploy interface stays",
		fmt.Sprintf("Autodetect has chosen the deploy interface %s for node %s, and a rebuild keeps it. If the new image is a bootable "+
			"container (bootc), name the interface that it needs: instance_info = { deploy_interface = %q }. With terraform apply "+
			"-replace, Ironic chooses again.", acting, d.seen.Label, needs))
}
