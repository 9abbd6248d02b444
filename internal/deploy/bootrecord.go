package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// BootNote is the value of KeyBoot in extra.
type BootNote struct {
	bootiso.Record                 // the ISO that the node boots, or is about to boot
	Before         *bootiso.Record `json:"before,omitempty"` // the ISO that it ran when the note was written
	Again          *Again          `json:"again,omitempty"`  // set while the node is undeployed and deployed again
	Wanted         *bootiso.Wanted `json:"wanted,omitempty"` // a newer image, which the node has not booted
	Lost           *Losses         `json:"lost,omitempty"`   // set as long as Again may be, and until the node is deployed again
}

// Again records what a node must get back when it is undeployed and deployed again, even if that is interrupted.
type Again struct {
	Instance string `json:"instance"` // its reservation
	// Clean is the value of automated_clean before it was set to false: "true", "unset", or empty for false.
	Clean string `json:"clean,omitempty"`
	// Dirty says that automated_clean has its previous value again but the node was not cleaned. It ends when the node is deployed
	// again or cleaned. It means nothing while something is deployed on the node.
	Dirty bool `json:"dirty,omitempty"`
}

// Losses are what Ironic drops when it undeploys a node, apart from what every deployment writes. A node that is deployed again gets it
// back.
type Losses struct {
	Instance string         `json:"instance"` // the reservation whose deployment it belongs to
	VIFs     []VIF          `json:"vifs,omitempty"`
	Info     map[string]any `json:"info,omitempty"` // of instance_info, from other clients; without values that Ironic masks
}

// ToLose returns what Ironic will drop when it undeploys the node; nil if that is nothing.
func ToLose(ctx context.Context, m *machine.Machine, instance string) (*Losses, error) {
	vifs, err := attachedVIFs(ctx, m)
	if err != nil {
		return nil, err
	}
	l := &Losses{Instance: instance, VIFs: vifs, Info: maps.Clone(m.Node().InstanceInfo)}
	own := slices.Concat(InstanceMarkerOf(m.Node()).Keys, ownKeys(), []string{KeyConfigDrive})
	maps.DeleteFunc(l.Info, func(key string, value any) bool {
		text, err := json.Marshal(value)
		restored := key == KeyTraits && m.Node().AllocationUUID != "" // by the allocation
		return err != nil || restored || notes.OwnKey(key) || slices.Contains(own, key) || strings.Contains(string(text), ironic.Masked)
	})
	if len(l.VIFs)+len(l.Info) == 0 {
		return nil, nil //nolint:nilnil // nothing is lost
	}
	return l, nil
}

// Lost returns what the node has lost because it was undeployed to be deployed again for an instance, and was not deployed since. It
// decides what the machine boots and where it is connected: if another project may write notes on the node, only what this run has noted
// itself counts.
func Lost(ctx context.Context, m *machine.Machine, instance string) Losses {
	note := BootNoteOf(m.Node())
	if note == nil || note.Lost == nil || note.Lost.Instance != instance || states.IsOccupied(m.Node()) {
		return Losses{}
	}
	if m.Site().IsOfOthers(m.Node()) && !ironic.SameJSON(registerOf(m.Site()).lostBy(m.Node().UUID), note.Lost) {
		m.Site().Ironic.Logger().WarnContext(ctx, "VIFs and instance_info that other clients had set are not restored: another project "+
			"may have written the note of them", machine.NodeAttributes(m.Node())...)
		return Losses{}
	}
	return *note.Lost
}

// BootNoteOf reads the boot note of a node; nil if there is none.
func BootNoteOf(n *ironic.Node) *BootNote {
	text, err := json.Marshal(n.Extra[notes.KeyBoot])
	if err != nil {
		return nil
	}
	var note BootNote
	if json.Unmarshal(text, &note) != nil || note.Image == "" {
		return nil // this provider did not write it
	}
	return &note
}

func bootNoteFor(n *ironic.Node, what bootiso.Artifacts) BootNote {
	before := BootRecord(n)
	if note := BootNoteOf(n); before == nil && note != nil {
		before = &note.Record // no longer running, but the boot loop guard still counts it
	}
	note := BootNote{Record: bootiso.NewRecord(what, time.Now(), before), Before: BootRecord(n)}
	if undeployedUncleaned(n) {
		note.Again = BootNoteOf(n).Again
	}
	if former := BootNoteOf(n); former != nil {
		note.Record = note.Holding(what, former.Wanted)
		if !states.IsOccupied(n) {
			note.Lost = former.Lost
		}
	}
	return note
}

// undeployedUncleaned reports whether a node was undeployed without cleaning and has been neither deployed nor cleaned since.
func undeployedUncleaned(n *ironic.Node) bool {
	note := BootNoteOf(n)
	return note != nil && note.Again != nil && note.Again.Dirty && !states.IsOccupied(n)
}

// NeedsCleaning reports whether a node was undeployed without cleaning, to be deployed again for an instance, and was not deployed again.
// Undeploying it for good then cleans it.
func NeedsCleaning(n *ironic.Node, instance string) bool {
	return undeployedUncleaned(n) && deployedAgain(n, instance)
}

// BootRecord returns what a node was booted with, and runs again after a rescue. It is nil if the node does not run a live ISO, another
// client has deployed it, or it was deployed by a version that kept no records.
func BootRecord(n *ironic.Node) *bootiso.Record {
	note := BootNoteOf(n)
	if note == nil || !states.KeepsDeployment(ironic.State(n.ProvisionState)) {
		return nil
	}
	if (note.Again != nil && !note.Again.Dirty) || !InstanceMarkerOf(n).taken(n) {
		return note.Before // the boot that the note describes was prepared but never started
	}
	if !note.IsAbout(BootISOURL(n)) {
		return nil
	}
	return &note.Record
}

// BootFacts returns the facts of a node that the decision about its live ISO depends on.
func BootFacts(n *ironic.Node) bootiso.Candidate {
	record := BootRecord(n)
	var wanted *bootiso.Wanted
	if note := BootNoteOf(n); record != nil {
		wanted = note.Wanted
	}
	return bootiso.Candidate{
		Wanted: wanted,
		Label:  ironic.NodeLabel(n), Booted: record, Protected: n.Protected, Powered: machine.PowerManaged(n),
		Asked:   record != nil && record.Manual && !RestartedSince(n, record.At),
		Rescued: RescueOf(ironic.State(n.ProvisionState)) != NotRescued, Barred: bootBarred(n),
	}
}

// BootAnswer says what a wanted live ISO asks of a node now.
func BootAnswer(n *ironic.Node, want bootiso.Want) bootiso.Answer {
	return bootiso.Decide(bootiso.Input{Machine: BootFacts(n), Want: want, Now: time.Now()})
}

// bootBarred returns why a deployed node cannot be booted with another live ISO, besides rescue mode; "" if it can. Undeploying a node and
// deploying it again, the last of the ways to boot it, would strand it: Ironic deploys none in maintenance
// (reference/ironic.md#maintenance-and-deployments), and makes a retired one manageable (reference/ironic.md#retired-nodes).
func bootBarred(n *ironic.Node) string {
	state := ironic.State(n.ProvisionState)
	switch {
	case n.Maintenance:
		return "it is in maintenance"
	case n.Retired:
		return "it is retired"
	case states.KeepsDeployment(state) && state != nodes.Active && RescueOf(state) == NotRescued:
		return fmt.Sprintf("it is in state %q", state)
	}
	return ""
}

// BootChanged says that a node has changed since the plan decided what to do with it, and how the decision differs now.
func BootChanged(node *ironic.Node, why string) *failure.Error {
	return &failure.Error{
		Node: node, Fact: fmt.Sprintf("node %s has changed since the plan: %s", ironic.NodeLabel(node), why),
		Advice: "The node was not changed. Run terraform plan again.",
	}
}

// BootKey reports whether a live ISO sets this key of instance_info.
func BootKey(key string) bool { return key == machine.KeyBootISO || key == keyDeploy }

// BootISOURL returns the live ISO that a node boots; empty if it boots none.
func BootISOURL(n *ironic.Node) string {
	url, _ := n.InstanceInfo[machine.KeyBootISO].(string)
	return url
}

// RecordBoot notes on the node that it was booted with a deployment, and changes nothing else. Later images are compared with that.
// If only a person can restart the machine, byHand says what was obsolete; it is nil otherwise.
func RecordBoot(ctx context.Context, m *machine.Machine, d Deployment, byHand []string) error {
	record := bootiso.NewRecord(d.LiveISO.Artifacts, time.Now(), nil)
	record.Manual, record.Obsolete = byHand != nil, byHand
	mark := InstanceMarkerOf(m.Node())
	mark.Digest, mark.State, mark.Since, mark.Power = d.Digest(), "", "", "" // without a state the marker counts as started
	var patch ironic.Patch
	patch.Set("/instance_info/"+machine.KeyBootISO, d.LiveISO.URL)
	patch.Set("/instance_info/"+notes.KeyMarker, mark)
	patch.Set("/extra/"+notes.KeyBoot, BootNote{Record: record})
	return m.Patch(ctx, patch)
}

// NoteWanted notes on the node which image is wanted of a machine that keeps running. Host content that changes later is not in it.
func NoteWanted(ctx context.Context, m *machine.Machine, what bootiso.Artifacts) error {
	note, booted := BootNoteOf(m.Node()), BootRecord(m.Node())
	if booted == nil {
		return nil
	}
	before := note.Wanted
	if note.Wanted = bootiso.NextWanted(what, *booted, before); ironic.SameJSON(before, note.Wanted) {
		return nil
	}
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyBoot, note)
	return m.Patch(ctx, patch)
}

// RestartedSince reports whether, since a record was made, Ironic has seen a power change of the machine or a heartbeat of an agent on
// it.
func RestartedSince(n *ironic.Node, since time.Time) bool {
	for _, key := range []string{machine.KeyPowerChanged, ramdisk.KeyHeartbeat} {
		if ironic.InternalTime(n, key).After(since) {
			return true
		}
	}
	return false
}

// carriesConfigDrive reports whether a node's boot interface can pass a config drive together with a live ISO. Interfaces that
// attach virtual media can (capability ramdisk_boot_configdrive). With all others Ironic ignores the config drive and logs a
// warning.
func carriesConfigDrive(n *ironic.Node) bool {
	return strings.HasSuffix(n.BootInterface, "virtual-media")
}

// KindNoConfigDrive is the kind of an error which says that a node cannot get a config drive together with a live ISO.
const KindNoConfigDrive failure.Kind = "no config drive"

// NoConfigDrive returns such an error.
func NoConfigDrive(node *ironic.Node) *failure.Error {
	return &failure.Error{
		Kind: KindNoConfigDrive, Node: node, Fact: fmt.Sprintf("node %s has boot interface %q, which cannot carry a config drive with "+
			"a live ISO", ironic.NodeLabel(node), node.BootInterface),
		Advice: "Use a boot interface with virtual media, such as redfish-virtual-media, or remove config_drive and put its " +
			"contents into the ISO.",
	}
}

// KindBootLoop is the kind of an error which says that a node has reached the maximum number of restarts with one image.
const KindBootLoop failure.Kind = "boot loop"

// BootLoop returns such an error. label names the node.
func BootLoop(label string, last bootiso.Record) *failure.Error {
	return &failure.Error{
		Kind: KindBootLoop, Fact: fmt.Sprintf("node %s was restarted with this image %d times within a day", label, last.Boots-1),
		Advice: "The machine was not restarted. Check the machine and the image. A new version of the image, or terraform apply " +
			"-replace, resets the count.",
	}
}

// Values of again.Clean. An empty value means that automated_clean was false.
const (
	CleanTrue  = "true"
	CleanUnset = "unset"
)

// deployedAgain reports whether a node is being undeployed to be deployed again for an instance, or was when a run was
// interrupted.
func deployedAgain(n *ironic.Node, instance string) bool {
	note := BootNoteOf(n)
	return note != nil && note.Again != nil && note.Again.Instance == instance && (!note.Again.Dirty || !states.IsOccupied(n)) &&
		!states.RunsUnreserved(n)
}

// StaysUncleaned reports whether Ironic does not clean a node when it is undeployed for good. Ironic does not show whether
// cleaning is disabled for all nodes.
func StaysUncleaned(n *ironic.Node) bool {
	note := BootNoteOf(n)
	restored := note != nil && note.Again != nil && !note.Again.Dirty && note.Again.Clean != ""
	return !restored && n.AutomatedClean != nil && !*n.AutomatedClean
}

// cleans returns the value of automated_clean that a node gets back: empty if it gets none. A note may be copied from another node, or made
// up: it counts for the reservation that the node has, and, where another project may write notes, only if this run has written it.
func cleans(m *machine.Machine, again *Again) string {
	n := m.Node()
	switch {
	case again.Clean == "", n.AutomatedClean == nil, *n.AutomatedClean: // another client has restored it
		return ""
	case n.InstanceUUID != "" && n.InstanceUUID != again.Instance, m.Site().IsOfOthers(n) && !registerOf(m.Site()).hasNoted(n.UUID):
		m.Site().Ironic.Logger().Warn("automated_clean stays false: another client may have written the note that it was not. If disks "+
			"are to be erased when the machine is undeployed, set it", machine.NodeAttributes(n)...)
		return ""
	}
	return again.Clean
}

// CleanAgain restores the automated_clean that a node had before it was undeployed to be deployed again. If the node was undeployed without
// cleaning, the note says so from then on; once it is deployed, it has everything back. While a conductor works on the node this is
// impossible, and is left for the next time.
func CleanAgain(ctx context.Context, m *machine.Machine) error {
	note := BootNoteOf(m.Node())
	if note == nil || states.NextMove(states.GoalDeployed, m.State(), false).Kind == states.Wait {
		return nil
	}
	occupied := states.IsOccupied(m.Node())
	if back := occupied && note.Lost != nil; !back && (note.Again == nil || undeployedUncleaned(m.Node())) {
		return nil
	}
	var patch ironic.Patch
	if note.Again != nil && !note.Again.Dirty { // else restored earlier
		switch cleans(m, note.Again) {
		case CleanTrue:
			patch.Set("/automated_clean", true)
		case CleanUnset:
			patch.Remove("/automated_clean")
		}
	}
	switch {
	case occupied:
		note.Again, note.Lost = nil, nil
	case note.Again.Clean == "":
		note.Again = nil
	default:
		note.Again.Dirty = true
	}
	patch.Set("/extra/"+notes.KeyBoot, note)
	return m.Patch(ctx, patch)
}

// forgetBoot removes the boot note from an undeployed node that is not reserved, or that is reserved by its own allocation again.
func forgetBoot(ctx context.Context, m *machine.Machine, allocation string) error {
	if BootNoteOf(m.Node()) == nil || m.State() != nodes.Available {
		return nil
	}
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if !slices.Contains([]string{"", allocation}, m.Node().InstanceUUID) {
		return nil
	}
	var patch ironic.Patch
	patch.Remove("/extra/" + notes.KeyBoot)
	return m.Patch(ctx, patch)
}
