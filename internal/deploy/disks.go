package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// Disks are what a plan knows of the disks that skip_block_devices of a node keeps.
type Disks struct {
	Hints []disks.Hint
	All   []ironic.Disk // of the last inspection; nil: not known
}

// disksOf looks up the disks of a node, if hints keep some of them.
func disksOf(ctx context.Context, site *machine.Site, node string, hints []disks.Hint) Disks {
	d := Disks{Hints: hints}
	if len(hints) == 0 {
		return d
	}
	if found, err := site.Ironic.Inventory(ctx, node); err == nil && found != nil { // without an answer, the plan says less
		d.All = found.Disks
	}
	return d
}

// LookAtDisks looks up which disks are kept when a plan deploys a machine in place. The plan may change the host of the machine before.
func LookAtDisks(ctx context.Context, site *machine.Site, plan Plan, id string) (d Disks) {
	node, err := site.Ironic.NodeForRefresh(ctx, id)
	if err != nil || !Has(plan.Steps, DoRebuild, DoRepeat, DoDeploy) {
		return d
	}
	return disksOf(ctx, site, id, expect.KeptDisks(site, node))
}

// tellDisks says which disks a deployment in place keeps, and refuses one on a disk that is kept.
func (d *decision) tellDisks() {
	kept, who := d.seen.Disks, "Node "+d.seen.Label
	if len(kept.Hints) == 0 || !Has(d.plan.Steps, DoRebuild, DoRepeat, DoDeploy) || !d.wish.LiveISO.IsNull() {
		return
	}
	if root := disks.HintOf(d.wish.Deployment.RootDevice); disks.KeepsRoot(root, kept.Hints, kept.All) {
		d.refuse(decide.At(attrRootDevice), "Root disk is kept", fmt.Sprintf("skip_block_devices of the metal_host of node %s keeps the "+
			"disk of root_device (%s), so Ironic could deploy nothing on it. Remove that entry, or choose another root disk.",
			d.seen.Label, root))
		return
	}
	d.warn(nil, "Rebuild keeps some disks", fmt.Sprintf("%s keeps what skip_block_devices of its metal_host names: %s.%s", who,
		disks.Names(kept.Hints), disks.Tell(kept.Hints, kept.All)))
	if useless := disks.TellUseless(who, kept.Hints, kept.All); useless != "" {
		d.warn(nil, uselessSummary, useless)
	}
}

const uselessSummary = "No disk to keep"

// exceptKept is the end of a sentence on what a cleaning erases: which disks it keeps. The host of the node changes only afterwards.
func (l *Look) exceptKept(ctx context.Context, node *ironic.Node) string {
	l.kept = disksOf(ctx, l.Site, node.UUID, disks.HintsOf(node.Properties))
	if len(l.kept.Hints) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf(", except on those that skip_block_devices keeps: %s.%s", disks.Names(l.kept.Hints),
		disks.Tell(l.kept.Hints, l.kept.All)), ".")
}
