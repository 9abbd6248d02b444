package deploy

import (
	"cmp"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/deployinterface"
)

// replacedFor returns the attributes whose change replaces the deployment instead of changing it in place.
func (d *decision) replacedFor() (attributes []string) {
	if d.otherNode() && !d.staysOnNode() {
		attributes = append(attributes, "node_id")
	}
	if d.otherReservation() {
		attributes = append(attributes, "allocation_id")
	}
	adopted := d.wish.Adopt || d.was.Adopt
	if d.wish.LiveISO.IsNull() != d.was.LiveISO.IsNull() && !adopted {
		attributes = append(attributes, "live_iso")
	}
	begun, ran := d.recorded()
	if d.imports() || adopted || begun || ran {
		return attributes
	}
	if d.onChange != ChangeReplaces {
		return append(attributes, d.needsDetection()...)
	}
	for _, name := range ContentNames() {
		if compare(d.wish.Content[name], d.was.Content[name]) == differs {
			attributes = append(attributes, name)
		}
	}
	return attributes
}

// needsDetection returns the attributes whose change needs another deploy interface than the one that autodetect has chosen for this
// machine. Ironic chooses again only after the machine was undeployed (reference/deploy-interfaces.md#autodetect).
func (d *decision) needsDetection() (attributes []string) {
	acting := d.seen.Sight.Detected
	needs, maybe := deployinterface.Outlives(acting, d.wish.deployed())
	waits := d.mode() != NotRescued && d.staysInRescue()
	if acting == "" || needs == "" || maybe || waits || d.redeploys() != differs || d.wish.Content[attrInstanceInfo].Unknown {
		return nil
	}
	for _, name := range []string{attrImage, attrInstanceInfo} {
		if compare(d.wish.Content[name], d.was.Content[name]) == differs {
			attributes = append(attributes, name)
		}
	}
	if len(attributes) > 0 {
		d.warn(decide.At(attributes[0]), "Deploy interface has to be chosen again",
			fmt.Sprintf("Autodetect has chosen the deploy interface %s for node %s, and the new content needs %s. Ironic chooses again "+
				"only after the node was undeployed, so the plan replaces the deployment: all disks are cleaned. To rebuild in place, "+
				"which writes the root disk only, name the interface: instance_info = { deploy_interface = %q }.", acting,
				d.seen.Label, needs, needs))
	}
	return attributes
}

// otherNode reports whether node_id, a name or UUID, names another node than the present one.
func (d *decision) otherNode() bool {
	node := d.wish.Node
	return node != d.was.Node && node != decide.Known(d.seen.ID) && node != decide.Known(d.seen.Sight.Name)
}

// staysOnNode reports whether the deployment keeps its node whatever node_id says. A list from which node_id is taken may change at any
// time, and must not move a machine. Before the first apply after an import, the plan compares instead: the import may have named the wrong
// node. A deployment cannot stay on a node whose host the plan replaces: Ironic deletes no deployed node.
func (d *decision) staysOnNode() bool {
	return (!d.seen.Past.keepsMachine() || d.wish.Node.Unknown) && !d.seen.LosesNode && !d.otherReservation()
}

// otherReservation reports whether allocation_id changes to another allocation. Adding the ID of the present reservation, or
// removing it, does not count. One that is not known yet is another one only if the plan ends the present allocation.
func (d *decision) otherReservation() bool {
	wish := d.wish.Allocation
	if wish.Unknown {
		return d.seen.LosesReservation
	}
	return wish.Set && wish != decide.Known(d.seen.Instance) && wish != d.was.Allocation
}

// keepUnknown makes no difference of what is not known yet, where a difference would replace the deployment: a depends_on on a module makes
// values unknown that do not change. Terraform plans again during the apply, and that plan compares.
func (d *decision) keepUnknown() {
	if d.wish.Allocation.Unknown && !d.otherReservation() && d.was.Allocation.Set {
		d.wish.Allocation = d.was.Allocation
	}
	if d.wish.LiveISO.Unknown && d.was.LiveISO.IsNull() && !d.wish.Content[attrImage].IsNull() {
		d.wish.LiveISO = d.was.LiveISO
	}
	for name, value := range d.wish.Content {
		if value.Unknown && d.onChange == ChangeReplaces {
			d.was.Content[name] = value
		}
	}
}

// keepNode plans that node_id stays as it is, if the deployment keeps its node. Also if it is the name that the plan gives to the node:
// that name is known only if Terraform has planned the host before, and the next plan shows it.
func (d *decision) keepNode() {
	named := d.wish.Node
	if !d.otherNode() || !d.staysOnNode() || d.was.Node.IsNull() {
		return
	}
	d.wish.Node = d.was.Node
	if !named.Unknown && named.V != d.seen.PlannedName {
		d.warn(decide.At("node_id"), "Deployment stays on its node",
			fmt.Sprintf("This deployment is on node %s, and node_id says %q now. Without -replace, the plan keeps the node: only another "+
				"allocation_id moves a deployment. To move it on purpose, use terraform apply -replace, which undeploys and cleans the "+
				"node. Otherwise set node_id to %q.", d.seen.Label, named.V, d.seen.ID))
	}
}

// refuseHostEnd refuses to keep a deployment whose node the plan deletes. Undeploying it is left to the user: a line that is missing in a
// list must wipe no machine that the list does not deploy.
func (d *decision) refuseHostEnd() {
	d.refuse(nil, "Deployed host is destroyed", fmt.Sprintf("This plan destroys the metal_host of node %s, and keeps this deployment on "+
		"it. Ironic deletes no node on which something is deployed, so the apply would fail.\n\n"+
		"To keep the machine, add the host to the configuration again. If the machine is to go, destroy its deployment, and its "+
		"metal_allocation if it has one, first or in the same plan. To move the deployment to another node, replace the metal_allocation "+
		"in the same plan: terraform apply -replace=ADDRESS. Both wipe the machine.", d.seen.Label))
}

// refuseFreed refuses to change what runs on a machine that was replaced. A deployment that has failed is repeated on the new machine.
func (d *decision) refuseFreed() {
	if !d.seen.Freed || len(d.plan.Steps) == 0 || Has(d.plan.Steps, DoRepeat) {
		return
	}
	d.refuse(nil, "Machine was replaced", fmt.Sprintf("This plan undeploys node %s, because replaced of its metal_host says that the "+
		"machine is another one. Leave the change of its metal_deployment to the plan after that, which deploys the new machine.",
		d.seen.Label))
}

// refuseLateDisks refuses to undeploy a node whose list of disks to keep grows in the same plan: Terraform destroys a deployment before it
// changes the host.
func (d *decision) refuseLateDisks() bool {
	if !d.seen.KeepsDisks || EndOf(d.seen.Was).Do != DoUndeploy {
		return false
	}
	d.plan.Notices = append(d.plan.Notices, disksTooLate(d.seen.Label))
	return true
}

func disksTooLate(label string) decide.Notice {
	return decide.Refuse(nil, "Disks would be kept too late",
		fmt.Sprintf("This plan undeploys node %s, and changes skip_block_devices of its metal_host only afterwards: the cleaning would "+
			"erase the disks that are to be kept. First apply the change of the host.", label))
}

// hostLeaves refuses to keep a deployment whose host the plan replaces. Without an allocation, which would reserve the node all the same,
// the user may replace the deployment, too, which this plan of the resource cannot see.
func (d *decision) hostLeaves() {
	detail := fmt.Sprintf("This plan replaces the metal_host of node %s, because it is tainted or named by -replace. Something is "+
		"deployed on the node, and Ironic deletes no deployed node. To keep the machine, run terraform untaint for the host, or leave "+
		"out -replace.\n\n"+
		"Only if the machine may be wiped: replace its deployment in the same plan, and its metal_allocation if it has one: terraform "+
		"apply -replace=ADDRESS.", d.seen.Label)
	if d.wish.Allocation.IsNull() {
		d.warn(nil, "Deployed host is replaced", detail)
		return
	}
	d.refuse(nil, "Deployed host is replaced", detail)
}

// warnHostEnd says under which condition the node of a deployment that is to have another one can be deleted.
func (d *decision) warnHostEnd() {
	d.warn(decide.At("node_id"), "Deployed host is destroyed",
		fmt.Sprintf("This plan destroys the metal_host of node %s. Unless it replaces this deployment, too (terraform apply -replace, "+
			"or replace_triggered_by), the apply fails, because Ironic deletes no node on which something is deployed. Replacing the "+
			"deployment wipes the machine.", d.seen.Label))
}

// refuseReplacement refuses to replace a deployment that was imported and not applied since, because an import touches no machine. It names
// the attributes that require the replacement.
func (d *decision) refuseReplacement() {
	const later = "(known after apply)"
	for _, name := range d.plan.Replaces {
		var why string
		switch name {
		case "node_id":
			why = fmt.Sprintf("the configuration names node %s", cmp.Or(d.wish.Node.V, later))
		case "allocation_id":
			why = fmt.Sprintf("it is reserved by %s, and the configuration names allocation %s", d.seen.Instance,
				cmp.Or(d.wish.Allocation.V, later))
		default:
			why = fmt.Sprintf("it runs %s, and the configuration says %s", d.was.content(), d.wish.content())
		}
		d.refuse(decide.At(name), "Imported deployment is not replaced",
			fmt.Sprintf("Node %s was imported: %s. That change would undeploy and clean the machine, and no apply has recorded its "+
				"configuration yet. Set node_id, allocation_id, and image or live_iso to what the node has now. To replace the "+
				"deployment, first apply those values with on_destroy = \"undeploy\", which does not touch the machine, and then make "+
				"this change.", d.seen.Label, why))
	}
}

const waitsSummary = "Change waits for the end of the rescue"

// mode returns what the machine is with regard to rescue mode, as of the last refresh.
func (d *decision) mode() Rescue { return RescueOf(d.seen.State) }

func (d *decision) staysInRescue() bool {
	return !d.wish.Rescue.IsNull() || (d.was.Rescue.IsNull() && d.mode() != NotRescued)
}

// waitForRescue keeps the content and the triggers of the state while the machine is in rescue mode, and warns of that, so that one machine
// in repair does not stop a change of a whole fleet. It keeps nothing if Terraform does not allow that: a plan cannot keep an attribute
// that the configuration adds or removes.
func (d *decision) waitForRescue() {
	asks := func() bool { // for a deployment or a restart
		deploys := !d.wish.Adopt && d.redeploys() != same
		return deploys || compare(d.wish.Restart, d.was.Restart) != same
	}
	if d.imports() || d.mode() == NotRescued || !d.staysInRescue() || !asks() {
		return
	}
	undo := d.savepoint()
	if d.keepAsked(); asks() {
		undo()
		return
	}
	d.warnRescue()
}

func (d *decision) warnRescue() {
	d.warn(decide.At("rescue"), waitsSummary,
		fmt.Sprintf("Node %s is in rescue mode, so its new content and triggers wait: this plan keeps those of the state. The plan that "+
			"ends the rescue, or the first one after it, makes the change. %s", d.seen.Label, d.endAdvice()))
}

func (d *decision) endAdvice() string {
	if d.wish.Rescue.IsNull() {
		return "An operator or another client has started the rescue. To end it: metal unrescue " + d.seen.ID + "."
	}
	return "To end the rescue, remove rescue."
}

const reinstallsSummary = "Rescue ends with an installation"

// refuseRescue refuses to rescue a machine that the end of the rescue would install anew, and reports whether it has.
func (d *decision) refuseRescue(at decide.Path) bool {
	if d.wish.Rescue.IsNull() || d.mode() != NotRescued || !deployinterface.Reinstalls(d.seen.Sight.Deploy) {
		return false
	}
	d.refuse(at, reinstallsSummary, fmt.Sprintf("Node %s was deployed with the deploy interface %s. When its rescue ended, Ironic would "+
		"boot the installer again, and the data on its root disk would be lost. Remove rescue. To repair the machine, boot a rescue "+
		"system by other means, such as the virtual media of its BMC.", d.seen.Label, d.seen.Sight.Deploy))
	return true
}

func (d *decision) warnReinstallation() {
	if !deployinterface.Reinstalls(d.seen.Sight.Deploy) || d.plan.Operates() {
		return
	}
	d.warn(decide.At("rescue"), reinstallsSummary,
		fmt.Sprintf("Node %s was deployed with the deploy interface %s. Ironic boots the installer again when the rescue ends, and the "+
			"data on the root disk is lost. Save the data before you apply this plan.", d.seen.Label, d.seen.Sight.Deploy))
}

// rescue decides whether the machine enters or leaves rescue mode, after everything else was decided. It refuses other changes of a
// machine that stays in rescue mode.
func (d *decision) rescue() {
	f, at, label := &d.plan.Forecast, decide.At("rescue"), d.seen.Label
	change := compare(d.wish.Rescue, d.was.Rescue)
	switch {
	case change == unclear:
		d.refuse(at, unknownSummary, "rescue and its password_wo_version decide whether the machine is restarted, so "+
			"the plan must know them. The password itself need not be known.")
		return
	case d.staysInRescue() && (d.plan.Operates() || f.Restarts != decide.Known(d.seen.Restarts)):
		d.refuse(at, "Not possible in rescue mode", fmt.Sprintf("Node %s is in rescue mode, or enters it with this plan, which would "+
			"also deploy or restart it. Leave out that change, or end the rescue first. %s",
			label, d.endAdvice()))
		return
	case change == same:
		return
	case d.imports():
		d.warn(at, "Rescue is recorded only", fmt.Sprintf("Node %s was imported, so this apply does not touch the machine. If it is not "+
			"in rescue mode, the next plan shows that.", label))
		return
	}
	if d.refuseRescue(at) {
		return
	}
	f.LastError, f.Restarts = Text{}, raise(d.seen.Restarts, differs)
	d.drop(DoRestart) // the machine is restarted once
	d.mayBeOff()
	if d.wish.Rescue.IsNull() {
		d.add(Step{Do: DoUnrescue, Cost: decide.Restart})
		if !d.plan.Operates() {
			f.State = decide.Known(stateActive)
		}
		d.warnReinstallation()
		d.warn(nil, "Machine leaves rescue mode",
			fmt.Sprintf("Node %s is restarted, and runs what is deployed again: rescue was removed. The plan raises restarts.", label))
		return
	}
	d.add(Step{Do: DoEnterRescue, Cost: decide.Restart})
	f.State = decide.Known(stateRescued)
	d.warn(nil, "Machine enters rescue mode", fmt.Sprintf("Node %s is restarted into Ironic's rescue system, and does not run what is "+
		"deployed until rescue is removed. Its disks keep their data. The plan raises restarts.", label))
}
