package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// bootNote is the value of keyBoot in extra.
type bootNote struct {
	bootiso.Record                 // the ISO that the node boots, or is about to boot
	Before         *bootiso.Record `json:"before,omitempty"` // the ISO that it ran when the note was written
	Again          *again          `json:"again,omitempty"`  // set while the node is undeployed and deployed again
	Wanted         *bootiso.Wanted `json:"wanted,omitempty"` // a newer image, which the node has not booted
	Lost           *losses         `json:"lost,omitempty"`   // set as long as Again may be, and until the node is deployed again
}

// again records what a node must get back when it is undeployed and deployed again, even if that is interrupted.
type again struct {
	Instance string `json:"instance"` // its reservation
	// Clean is the value of automated_clean before it was set to false: "true", "unset", or empty for false.
	Clean string `json:"clean,omitempty"`
	// Dirty says that automated_clean has its previous value again but the node was not cleaned. It ends when the node is deployed
	// again or cleaned. It means nothing while something is deployed on the node.
	Dirty bool `json:"dirty,omitempty"`
}

// losses are what Ironic drops when it undeploys a node, apart from what every deployment writes. A node that is deployed again gets it back.
type losses struct {
	Instance string         `json:"instance"` // the reservation whose deployment it belongs to
	VIFs     []VIF          `json:"vifs,omitempty"`
	Info     map[string]any `json:"info,omitempty"` // of instance_info, from other clients; without values that Ironic masks
}

// toLose returns what Ironic will drop when it undeploys the node; nil if that is nothing.
func (m *Machine) toLose(ctx context.Context, instance string) (*losses, error) {
	vifs, err := m.attachedVIFs(ctx)
	if err != nil {
		return nil, err
	}
	l := &losses{Instance: instance, VIFs: vifs, Info: maps.Clone(m.node.InstanceInfo)}
	own := slices.Concat(markerOf(m.node).Keys, imageKeys, deploymentKeys, []string{keyConfigDrive})
	maps.DeleteFunc(l.Info, func(key string, value any) bool {
		text, err := json.Marshal(value)
		restored := key == keyTraits && m.node.AllocationUUID != "" // by the allocation
		return err != nil || restored || OwnKey(key) || slices.Contains(own, key) || strings.Contains(string(text), ironic.Masked)
	})
	if len(l.VIFs)+len(l.Info) == 0 {
		return nil, nil //nolint:nilnil // nothing is lost
	}
	return l, nil
}

// lost returns what the node has lost because it was undeployed to be deployed again for an instance, and was not deployed since. It decides what
// the machine boots and where it is connected: if another project may write notes on the node, only what this run has noted itself counts.
func (m *Machine) lost(ctx context.Context, instance string) losses {
	note := bootNoteOf(m.node)
	if note == nil || note.Lost == nil || note.Lost.Instance != instance || Occupied(m.node) {
		return losses{}
	}
	if m.site.isOfOthers(m.node) && !ironic.SameJSON(registerOf(m.site).lostBy(m.node.UUID), note.Lost) {
		m.site.Logger().WarnContext(ctx, "VIFs and instance_info that other clients had set are not restored: another project may have written the note of them", nodeAttributes(m.node)...)
		return losses{}
	}
	return *note.Lost
}

// bootNoteOf reads the boot note of a node; nil if there is none.
func bootNoteOf(n *ironic.Node) *bootNote {
	text, err := json.Marshal(n.Extra[keyBoot])
	if err != nil {
		return nil
	}
	var note bootNote
	if json.Unmarshal(text, &note) != nil || note.Image == "" {
		return nil // this provider did not write it
	}
	return &note
}

// bootNoteFor returns the note for a node that is about to boot an ISO.
func bootNoteFor(n *ironic.Node, what bootiso.Artifacts) bootNote {
	before := BootRecord(n)
	if note := bootNoteOf(n); before == nil && note != nil {
		before = &note.Record // no longer running, but the boot loop guard still counts it
	}
	note := bootNote{Record: bootiso.NewRecord(what, time.Now(), before), Before: BootRecord(n)}
	if undeployedUncleaned(n) {
		note.Again = bootNoteOf(n).Again
	}
	if former := bootNoteOf(n); former != nil {
		note.Record = note.Holding(what, former.Wanted)
		if !Occupied(n) {
			note.Lost = former.Lost
		}
	}
	return note
}

// undeployedUncleaned reports whether a node was undeployed without cleaning and has been neither deployed nor cleaned since.
func undeployedUncleaned(n *ironic.Node) bool {
	note := bootNoteOf(n)
	return note != nil && note.Again != nil && note.Again.Dirty && !Occupied(n)
}

// NeedsCleaning reports whether a node was undeployed without cleaning, to be deployed again for an instance, and was not deployed again.
// Undeploying it for good then cleans it.
func NeedsCleaning(n *ironic.Node, instance string) bool {
	return undeployedUncleaned(n) && deployedAgain(n, instance)
}

// BootRecord returns what a node was booted with, and runs again after a rescue. It is nil if the node does not run a live ISO, another client has deployed it,
// or it was deployed by a version that kept no records.
func BootRecord(n *ironic.Node) *bootiso.Record {
	note := bootNoteOf(n)
	if note == nil || !keepsDeployment(ironic.State(n.ProvisionState)) {
		return nil
	}
	if (note.Again != nil && !note.Again.Dirty) || !markerOf(n).taken(n) {
		return note.Before // the boot that the note describes was prepared but never started
	}
	if !note.IsAbout(BootISOURL(n)) {
		return nil
	}
	return &note.Record
}

// BootFacts returns the facts of a node that the decision about its live ISO depends on.
func BootFacts(n *ironic.Node) bootiso.Machine {
	record := BootRecord(n)
	var wanted *bootiso.Wanted
	if note := bootNoteOf(n); record != nil {
		wanted = note.Wanted
	}
	return bootiso.Machine{
		Wanted: wanted,
		Label:  ironic.NodeLabel(n), Booted: record, Protected: n.Protected, Powered: PowerManaged(n),
		Asked: record != nil && record.Manual && !Restarted(n, record.At), Rescued: RescueOf(ironic.State(n.ProvisionState)) != NotRescued, Barred: barred(n),
	}
}

// BootAnswer says what a wanted live ISO asks of a node now.
func BootAnswer(n *ironic.Node, want bootiso.Want) bootiso.Answer {
	return bootiso.Decide(bootiso.Input{Machine: BootFacts(n), Want: want, Now: time.Now()})
}

// barred returns why a deployed node cannot be booted with another live ISO, besides rescue mode; "" if it can. Undeploying a node and
// deploying it again, the last of the ways to boot it, would strand it: Ironic deploys none in maintenance
// (reference/ironic.md#maintenance-and-deployments), and makes a retired one manageable (reference/ironic.md#retired-nodes).
func barred(n *ironic.Node) string {
	state := ironic.State(n.ProvisionState)
	switch {
	case n.Maintenance:
		return "it is in maintenance"
	case n.Retired:
		return "it is retired"
	case keepsDeployment(state) && state != nodes.Active && RescueOf(state) == NotRescued:
		return fmt.Sprintf("it is in state %q", state)
	}
	return ""
}

// BootChanged says that a node has changed since the plan decided what to do with it, and how the decision differs now.
func BootChanged(node *ironic.Node, why string) *Error {
	return &Error{Node: node, Fact: fmt.Sprintf("node %s has changed since the plan: %s", ironic.NodeLabel(node), why), Advice: "The node was not changed. Run terraform plan again."}
}

// BootKey reports whether a live ISO sets this key of instance_info.
func BootKey(key string) bool { return key == keyBootISO || key == keyDeploy }

// BootISOURL returns the live ISO that a node boots; empty if it boots none.
func BootISOURL(n *ironic.Node) string {
	url, _ := n.InstanceInfo[keyBootISO].(string)
	return url
}

// RecordBoot notes on the node that it was booted with a deployment, and changes nothing else. Later images are compared with that.
// If only a person can restart the machine, byHand says what was obsolete; it is nil otherwise.
func (m *Machine) RecordBoot(ctx context.Context, d Deployment, byHand []string) error {
	record := bootiso.NewRecord(*d.LiveISO, time.Now(), nil)
	record.Manual, record.Obsolete = byHand != nil, byHand
	mark := markerOf(m.node)
	mark.Digest, mark.State, mark.Since, mark.Power = d.Digest(), "", "", "" // without a state the marker counts as started
	var patch ironic.Patch
	patch.Set("/instance_info/"+keyBootISO, d.LiveISO.URL)
	patch.Set("/instance_info/"+keyMarker, mark)
	patch.Set("/extra/"+keyBoot, bootNote{Record: record})
	return m.Patch(ctx, patch)
}

// NoteWanted notes on the node which image is wanted of a machine that keeps running. Host content that changes later is not in it.
func (m *Machine) NoteWanted(ctx context.Context, what bootiso.Artifacts) error {
	note, booted := bootNoteOf(m.node), BootRecord(m.node)
	if booted == nil {
		return nil
	}
	before := note.Wanted
	if note.Wanted = bootiso.NextWanted(what, *booted, before); ironic.SameJSON(before, note.Wanted) {
		return nil
	}
	var patch ironic.Patch
	patch.Set("/extra/"+keyBoot, note)
	return m.Patch(ctx, patch)
}

// Restarted reports whether, since a record was made, Ironic has seen a power change of the machine or a heartbeat of an agent on
// it.
func Restarted(n *ironic.Node, since time.Time) bool {
	for _, key := range []string{keyPowerChanged, keyHeartbeat} {
		if internalTime(n, key).After(since) {
			return true
		}
	}
	return false
}

// internalTime returns a time in driver_internal_info, to the second; zero if there is none.
func internalTime(n *ironic.Node, key string) time.Time {
	text, _ := n.DriverInternalInfo[key].(string)
	at, _ := time.Parse("2006-01-02T15:04:05", strings.SplitN(strings.TrimSuffix(text, "Z"), ".", 2)[0]) // zero on an error
	return at
}

// keyPowerChanged is when Ironic has last begun to change the power, in driver_internal_info.
const keyPowerChanged = "last_power_state_change"

// lastPowerChange returns when Ironic last changed a node's power, in Ironic's format.
func lastPowerChange(n *ironic.Node) string {
	if text, _ := n.DriverInternalInfo[keyPowerChanged].(string); text != "" {
		return text
	}
	return "never"
}

// CarriesConfigDrive reports whether a node's boot interface can pass a config drive together with a live ISO. Interfaces that
// attach virtual media can (capability ramdisk_boot_configdrive). With all others Ironic ignores the config drive and logs a
// warning.
func CarriesConfigDrive(n *ironic.Node) bool {
	return strings.HasSuffix(n.BootInterface, "virtual-media")
}

// KindNoConfigDrive is the kind of an error which says that a node cannot get a config drive together with a live ISO.
const KindNoConfigDrive Kind = "no config drive"

// NoConfigDrive returns such an error.
func NoConfigDrive(node *ironic.Node) *Error {
	return &Error{
		Kind: KindNoConfigDrive, Node: node, Fact: fmt.Sprintf("node %s has boot interface %q, which cannot carry a config drive with a live ISO", ironic.NodeLabel(node), node.BootInterface),
		Advice: "Use a boot interface with virtual media, such as redfish-virtual-media, or remove config_drive and put its contents into the ISO.",
	}
}

// KindBootLoop is the kind of an error which says that a node has reached the maximum number of restarts with one image.
const KindBootLoop Kind = "boot loop"

// BootLoop returns such an error. label names the node.
func BootLoop(label string, last bootiso.Record) *Error {
	return &Error{
		Kind: KindBootLoop, Fact: fmt.Sprintf("node %s was restarted with this image %d times within a day", label, last.Boots-1),
		Advice: "The machine was not restarted. Check the machine and the image. A new version of the image, or terraform apply -replace, resets the count.",
	}
}

// Values of again.Clean. An empty value means that automated_clean was false.
const (
	cleanTrue  = "true"
	cleanUnset = "unset"
)

// deployedAgain reports whether a node is being undeployed to be deployed again for an instance, or was when a run was
// interrupted.
func deployedAgain(n *ironic.Node, instance string) bool {
	note := bootNoteOf(n)
	return note != nil && note.Again != nil && note.Again.Instance == instance && (!note.Again.Dirty || !Occupied(n)) && !runsUnreserved(n)
}

// StaysUncleaned reports whether Ironic does not clean a node when it is undeployed for good. Ironic does not show whether
// cleaning is disabled for all nodes.
func StaysUncleaned(n *ironic.Node) bool {
	if note := bootNoteOf(n); note != nil && note.Again != nil && !note.Again.Dirty {
		return note.Again.Clean == ""
	}
	return n.AutomatedClean != nil && !*n.AutomatedClean
}

// cleanAgain restores the automated_clean that a node had before it was undeployed to be deployed again. If the node was
// undeployed without cleaning, the note says so from then on; once it is deployed, it has everything back. While a conductor works on the node this is impossible, and is left
// for the next time.
func (m *Machine) cleanAgain(ctx context.Context) error {
	note := bootNoteOf(m.node)
	if note == nil || nextMove(GoalDeployed, m.state(), false).kind == wait {
		return nil
	}
	occupied := Occupied(m.node)
	if back := occupied && note.Lost != nil; !back && (note.Again == nil || undeployedUncleaned(m.node)) {
		return nil
	}
	var patch ironic.Patch
	switch {
	case note.Again == nil, note.Again.Dirty: // restored earlier
	case m.node.AutomatedClean == nil, *m.node.AutomatedClean: // another client has restored it, or the note is not of this provider
	case note.Again.Clean == cleanTrue:
		patch.Set("/automated_clean", true)
	case note.Again.Clean == cleanUnset:
		patch.Remove("/automated_clean")
	}
	switch {
	case occupied:
		note.Again, note.Lost = nil, nil
	case note.Again.Clean == "":
		note.Again = nil
	default:
		note.Again.Dirty = true
	}
	patch.Set("/extra/"+keyBoot, note)
	return m.Patch(ctx, patch)
}

// forgetBoot removes the boot note from an undeployed node that is not reserved, or that is reserved by its own allocation again.
func (m *Machine) forgetBoot(ctx context.Context, allocation string) error {
	if bootNoteOf(m.node) == nil || m.state() != nodes.Available {
		return nil
	}
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	if !slices.Contains([]string{"", allocation}, m.node.InstanceUUID) {
		return nil
	}
	var patch ironic.Patch
	patch.Remove("/extra/" + keyBoot)
	return m.Patch(ctx, patch)
}
