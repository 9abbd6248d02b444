package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// History is what private state says of the import of a deployment. The first refresh after the import ends the phase importing. Terraform
// does not tell a provider that a plan was empty, and stores nothing of it.
type History struct {
	Phase ImportPhase      `json:"phase"`
	Unset []string         `json:"unset,omitempty"` // of untold: what no apply has recorded
	Told  InstanceSettings `json:"told"`            // what the node had when it was imported
}

// ImportPhase says how far the import of a deployment has come.
type ImportPhase string

// The phases of an import.
const (
	NotImported ImportPhase = ""          // or this resource has deployed the machine since
	Importing   ImportPhase = "importing" // the plan that imports: its apply touches no machine
	Unapplied   ImportPhase = "unapplied" // the import is over, and no apply has recorded a configuration
	Applied     ImportPhase = "applied"   // an apply has recorded one that lacks some of what Ironic does not tell
)

// untold returns the attributes that Ironic does not return: the provider cannot read with which value the machine was deployed.
func untold() []string { return contentTold(toldNothing) }

// AfterRead returns the history after a refresh. first reports whether it is the one that belongs to the import.
func (h History) AfterRead(node *ironic.Node, first bool) History {
	switch {
	case first:
		return History{Phase: Importing, Unset: untold(), Told: SettingsOf(node)}
	case h.Phase == Importing:
		h.Phase = Unapplied
	}
	return h
}

// AfterApply returns the history after an apply that has recorded a wish. deployed reports whether the machine runs that.
func (h History) AfterApply(recorded Wish, deployed bool) History {
	if h.Phase == NotImported || deployed {
		return History{}
	}
	h.Unset = slices.DeleteFunc(slices.Clone(h.Unset), func(name string) bool { return !recorded.Content[name].IsNull() })
	if len(h.Unset) == 0 {
		return History{}
	}
	return History{Phase: Applied, Unset: h.Unset}
}

// records reports whether an apply only records the wished value of an attribute, because the machine may run that value.
func (h History) records(name string, wish, was Wish) bool {
	known := !wish.Content[name].Unknown
	switch {
	case h.Phase == Importing:
		return true
	case !was.Content[name].IsNull():
		plans, runs := wish.Deployment.Image, was.Deployment.Image
		return h.Phase == Unapplied && known && plans != nil && runs != nil && name == attrImage && !plans.Differs(*runs)
	case slices.Contains(h.Unset, name):
		return true
	}
	return h.Phase == Unapplied && known && !h.Told.Contradict(name, wish.Deployment)
}

// baseline returns the state with which a wish is compared: what the apply only records is that of the wish. records reports whether
// there is anything to record.
func (h History) baseline(wish, state Wish) (base Wish, records bool) {
	base = state
	base.Content = maps.Clone(state.Content)
	base.Rebuild, base.Restart = h.trigger(wish.Rebuild, state.Rebuild), h.trigger(wish.Restart, state.Restart)
	if h.Phase == NotImported {
		return base, false
	}
	for _, name := range ContentNames() {
		if h.records(name, wish, state) {
			base.Content[name] = wish.Content[name]
		}
	}
	base.Drive = state.Drive
	if base.Content[attrConfigDrive] == wish.Content[attrConfigDrive] {
		base.Drive = wish.Drive
	}
	return base, contentChange(base, state) != same || h.keepsMachine() && base.Rebuild != state.Rebuild
}

// trigger returns a trigger of the baseline. Only a change from one value to another asks for anything: the first value is recorded, so
// that it can be prepared before it is needed, and so is its removal.
func (h History) trigger(wish, state Text) Text {
	if h.Phase == Importing || state.IsNull() || wish.IsNull() {
		return wish
	}
	return state
}

// keepsMachine reports whether no plan replaces the deployment, because no apply has followed its import.
func (h History) keepsMachine() bool { return h.Phase == Importing || h.Phase == Unapplied }

// warnRecorded warns of what the apply does not deploy: an imported machine that does not run, or values that it only records.
func (d *decision) warnRecorded() {
	if d.leavesImported() {
		d.warn(nil, "Imported deployment does not run",
			fmt.Sprintf("Node %s is in state %q, and this apply does not touch the machine, because it imports it. The next plan deploys "+
				"it. To leave the machine as it is, remove the deployment from the state (terraform state rm).",
				d.seen.Label, d.seen.State))
		return
	}
	deploys := func(s Step) bool { return slices.Contains([]Kind{DoDeploy, DoRepeat, DoRebuild}, s.Do) && !s.Maybe }
	if !d.records || slices.ContainsFunc(d.plan.Steps, deploys) { // which takes all values from the configuration
		return
	}
	detail := "Without -replace, the apply records the configuration of node %s in the state, and does not touch the machine. If the " +
		"node runs another image, the next plan shows that. "
	if !d.imports() {
		detail = "Ironic does not tell whether node %s runs the values that the state lacks. Without -replace, the apply records " +
			"them, and deploys nothing for them. "
	}
	d.warn(nil, "Imported deployment is recorded only",
		fmt.Sprintf(detail+"Ironic does not return values such as a config drive, so the state takes the first ones from the "+
			"configuration; a later change of them rebuilds the machine. To deploy the node again, use terraform apply -replace.",
			d.seen.Label))
}

// warnOther warns of an import whose configuration the machine certainly does not run: the next plan deploys the machine.
func (d *decision) warnOther() {
	if !d.imports() || d.onChange == ChangeIgnored || d.asked.Adopt || !d.asked.LiveISO.IsNull() || d.leavesImported() {
		return
	}
	loss := "wipes its root disk"
	if d.onChange == ChangeReplaces {
		loss = "replaces the deployment, which undeploys and cleans the machine"
	}
	later := d.seen.Past
	later.Phase = Unapplied
	for _, name := range ContentNames() {
		if later.records(name, d.asked, d.seen.Was) || compare(d.asked.Content[name], d.seen.Was.Content[name]) != differs {
			continue
		}
		runs, says := "another "+name+" than the configuration says", ""
		if name == attrImage {
			runs, says = d.seen.Was.content(), ", and the configuration says "+d.asked.content()
		}
		d.warn(decide.At(name), "Imported machine runs something else", fmt.Sprintf("Node %s runs %s%s. This apply does not touch the "+
			"machine. The next plan %s. To keep what runs, set %s to what the node has.", d.seen.Label, runs, says, loss, name))
	}
}

// keepName plans that the config drive stays as it is, if it would only follow a rename of the node, and nothing else deploys the machine.
func (d *decision) keepName() {
	drive, was := d.wish.Content[attrConfigDrive], d.was.Content[attrConfigDrive]
	if d.was.Drive == nil || d.wish.Drive == nil || drive == was {
		return
	}
	d.wish.Content[attrConfigDrive] = was
	resumes, _ := d.resumes()
	former := slices.IndexFunc(d.seen.Names, func(name string) bool {
		return maps.Equal(renamed(d.was.Drive, name, d.seen.Sight.Name), d.wish.Drive)
	})
	if resumes || d.redeploys() != same || former < 0 {
		d.wish.Content[attrConfigDrive] = drive
		return
	}
	d.warn(decide.At(attrConfigDrive), "Machine keeps its former name",
		fmt.Sprintf("Node %s was called %q when it was deployed. The configured config drive has the new name. That alone rebuilds "+
			"nothing: the machine keeps the former name. To rebuild it with the new name, which wipes its root disk, %s.", d.seen.Label,
			d.seen.Names[former], d.trigger()))
}

// trigger says in messages how to deploy the machine again: the first rebuild_triggers are only recorded.
func (d *decision) trigger() string {
	switch {
	case !d.seen.Was.Rebuild.IsNull():
		return "change rebuild_triggers"
	case !d.asked.Rebuild.IsNull():
		return "change rebuild_triggers in a later apply: this one only records its first value"
	}
	return "set rebuild_triggers to a first value, which is only recorded, and change it in a later apply"
}

// renamed returns the parts of a config drive with another name in the place of a former one.
func renamed(drive map[string]Text, former, name string) map[string]Text {
	other := maps.Clone(drive)
	for _, part := range []string{"hostname", "user_data", "meta_data", "network_data", "vendor_data"} {
		if text := other[part]; text.Set {
			other[part] = decide.Known(strings.ReplaceAll(text.V, former, name))
		}
	}
	return other
}

// FormerNames returns the former names of a node that was called was and is called now.
func FormerNames(former []string, was, now string) []string {
	if was != "" && was != now {
		former = append(slices.Clone(former), was)
	}
	former = slices.DeleteFunc(slices.Clone(former), func(name string) bool { return name == now })
	slices.Sort(former)
	return slices.Compact(former)
}
