package host

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

// givenUp returns the hints that the plan removes from the node. A list that is not known yet gives nothing up.
func (p *plan) givenUp() []disks.Hint {
	if p.Skips.Unknown {
		return nil
	}
	return disks.Lacking(p.seen.Skips, p.Skips.V)
}

// decideDisks says which disks a cleaning keeps, and which ones a change of skip_block_devices gives up.
func (p *plan) decideDisks() {
	lost, cleans := p.givenUp(), slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Cost == decide.Clean })
	more := len(disks.Lacking(p.Skips.V, p.seen.Skips)) > 0
	if p.seen.Undeploys && (more || p.Skips.Unknown) {
		p.refuse(skipAt, lateDisksSummary, fmt.Sprintf("This plan undeploys the machine of host %s, which cleans it, before it changes "+
			"skip_block_devices: the cleaning would erase the disks that are to be kept. First apply the change of the host alone, for "+
			"example with -target.", p.Label))
		return
	}
	changes := len(lost) > 0 || more
	p.refuseKeptRAID()
	opens := p.Skips.Unknown && (cleans || len(p.seen.Skips) > 0)
	if !opens && (len(p.Skips.V)+len(lost) == 0 || !changes && !cleans) {
		return
	}
	if p.refuseKeptVolume(); p.seen.Disks == nil && !p.seen.New {
		p.ask(AskDisks)
	}
	if p.refuseKeptRoot(); decide.Refused(p.Notices) {
		return
	}
	p.warnGivenUp(lost, cleans)
	if partly := disks.WithoutPartitions(p.Skips.V, p.seen.Disks); len(partly) > 0 {
		p.warn(skipAt, "Partitions are not kept",
			fmt.Sprintf("Host %s keeps %s. Ironic's agent compares partitions on their own, and they have only the wwn of their disk, "+
				"and on some its serial: cleanings erase the file systems in partitions of these disks. Name disks by wwn alone.", p.Label,
				disks.Names(partly)))
	}
	p.warnOpenDisks(cleans)
	if cleans && len(p.Skips.V) > 0 {
		p.warn(skipAt, "Cleaning keeps some disks", fmt.Sprintf("Host %s keeps what skip_block_devices names: %s.%s", p.Label,
			disks.Names(p.Skips.V), disks.Tell(p.Skips.V, p.seen.Disks)))
	}
	if useless := disks.TellUseless("Host "+p.Label, p.Skips.V, p.seen.Disks); useless != "" {
		p.warn(skipAt, "No disk to keep", useless)
	}
}

// warnOpenDisks warns that entries of skip_block_devices are known only after the apply, so that the plan cannot name their disks.
func (p *plan) warnOpenDisks(cleans bool) {
	if !p.Skips.Unknown {
		return
	}
	text := fmt.Sprintf("Entries of skip_block_devices of host %s are known only after the apply, so this plan cannot say which disks "+
		"they keep.", p.Label)
	if open := disks.Lacking(p.seen.Skips, p.Skips.V); len(open) > 0 {
		text += fmt.Sprintf(" If none of them is %s, cleanings wipe its disks", disks.Names(open))
		if p.seen.Disks != nil {
			text += ": " + disks.Labels(disks.SplitBy(open, p.seen.Disks).Kept)
		}
		text += "."
	}
	if cleans {
		text += " This plan cleans the machine: to see what that erases, first apply what the entries depend on (-target)."
	}
	p.warn(skipAt, "Disks to keep are not known yet", text)
}

// lateDisksSummary is the title of a refusal to undeploy a machine before its disks are kept.
const lateDisksSummary = "Disks would be kept too late"

var skipAt = decide.At(disks.KeySkip)

// warnGivenUp warns of disks that the next cleaning erases, because the plan does not keep them any more.
func (p *plan) warnGivenUp(lost []disks.Hint, cleans bool) {
	if len(lost) == 0 {
		return
	}
	when := "This plan cleans nothing, but the next cleaning, such as that after an undeployment, wipes them."
	if cleans {
		when = "This plan cleans the machine, which wipes them, and raises cleanings."
	}
	which := ""
	if p.seen.Disks != nil {
		left := disks.SplitBy(lost, disks.SplitBy(p.Skips.V, p.seen.Disks).Others)
		which = fmt.Sprintf(" In its last inspection these were %s.", disks.Labels(left.Kept))
	}
	p.warn(skipAt, "Disks are given up", fmt.Sprintf("Host %s does not keep %s any more.%s %s To keep them, leave them in "+
		"skip_block_devices.", p.Label, disks.Names(lost), which, when))
}

// refuseKeptVolume refuses to keep the RAID volume on which images are deployed.
func (p *plan) refuseKeptVolume() {
	if p.Hardware.RAID == nil {
		return
	}
	for _, volume := range p.Hardware.RAID.Volumes {
		if volume.Root && slices.ContainsFunc(p.Skips.V, func(h disks.Hint) bool { return h[disks.KeyVolume] == volume.Name }) &&
			volume.Name != "" {
			p.refuseRoot("the volume " + volume.Name)
		}
	}
}

// refuseKeptRAID refuses to make software RAID volumes of all disks, those that are kept, too (reference/ironic.md#hints-of-disks).
func (p *plan) refuseKeptRAID() {
	spans := func(v ironic.LogicalDisk) bool { return v.Controller == SoftwareRAID && len(v.PhysicalDisks) == 0 }
	if raid := p.Hardware.RAID; !slices.Contains(p.Open, PartRAID) || raid == nil || !slices.ContainsFunc(raid.Volumes, spans) ||
		!slices.ContainsFunc(p.Skips.V, disks.OfDisks) {
		return
	}
	p.refuse(decide.At(string(PartRAID)), "RAID would use kept disks", fmt.Sprintf("Ironic's agent makes the software volumes of host %s "+
		"of all disks, those that skip_block_devices keeps, too. Remove raid, or those entries. Volumes that exist are kept by their "+
		"volume_name.", p.Label))
}

// refuseKeptRoot refuses to keep the disk that root_device selects.
func (p *plan) refuseKeptRoot() {
	if root := disks.Hint(p.RootDevice.V); disks.KeepsRoot(root, p.Skips.V, p.seen.Disks) {
		p.refuseRoot("the disk of root_device (" + root.String() + ")")
	}
}

func (p *plan) refuseRoot(what string) {
	p.refuse(skipAt, "Root disk is kept", fmt.Sprintf("skip_block_devices of host %s keeps %s, so Ironic could deploy nothing on it. "+
		"Remove that entry, or choose another root disk.", p.Label, what))
}

// WarnDropped warns of hints that another client has removed from a node.
func WarnDropped(label string, was, now []disks.Hint) []decide.Notice {
	lost := disks.Lacking(was, now)
	if len(lost) == 0 {
		return nil
	}
	return []decide.Notice{decide.Warn(skipAt, "Disks are not kept any more", fmt.Sprintf("Another client of Ironic has removed %s from "+
		"skip_block_devices of host %s: a cleaning wipes these disks. If the configuration names them, an apply keeps them again.",
		disks.Names(lost), label))}
}
