package ironic

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
)

// keyBoot is where extra of a node remembers what live ISO it was booted with: Ironic keeps extra when it undeploys, and
// this is read to decide whether a new image concerns the machine.
const keyBoot = "terraform_metal_boot"

// bootNote is what extra has under keyBoot.
type bootNote struct {
	bootiso.Record                 // what the node is booted with, or about to be
	Before         *bootiso.Record `json:"before,omitempty"` // what it ran when that was written
	Again          *again          `json:"again,omitempty"`  // while it is undeployed to be deployed again
}

// again is what a node gets back that is undeployed to be deployed again, also if that is interrupted.
type again struct {
	Instance string `json:"instance"` // its reservation
	// Clean is what automated_clean was ("true" or "unset") before it was switched off; empty: it was off.
	Clean string `json:"clean,omitempty"`
	// Dirty says that automated_clean is again what it was, and the node was not cleaned of what it ran: until it is deployed again or
	// cleaned. Of a node that something is deployed on, it says nothing.
	Dirty bool `json:"dirty,omitempty"`
}

// bootNoteOf reads the note; nil if there is none.
func bootNoteOf(n *Node) *bootNote {
	text, err := json.Marshal(n.Extra[keyBoot])
	if err != nil {
		return nil
	}
	var note bootNote
	if json.Unmarshal(text, &note) != nil || note.Image == "" {
		return nil // not ours
	}
	return &note
}

// bootNoteFor is the note of a node that is about to be booted.
func bootNoteFor(n *Node, what bootiso.Artifacts) bootNote {
	before := BootRecord(n)
	if note := bootNoteOf(n); before == nil && note != nil {
		before = &note.Record // it does not run any more, and still counts for the loop guard
	}
	note := bootNote{Record: bootiso.NewRecord(what, time.Now(), before), Before: BootRecord(n)}
	if dirty(n) {
		note.Again = bootNoteOf(n).Again
	}
	return note
}

// dirty reports whether a node was undeployed to be deployed again, and neither was done since nor was it cleaned.
func dirty(n *Node) bool {
	note := bootNoteOf(n)
	return note != nil && note.Again != nil && note.Again.Dirty && !Occupied(n)
}

// Dirty reports whether a node was undeployed without cleaning to be deployed again for an instance, and that has not come to pass: it is
// cleaned when it is undeployed for good.
func Dirty(n *Node, instance string) bool { return dirty(n) && deployedAgain(n, instance) }

// BootRecord is what a node was booted with; nil if nobody knows: it does not run a live ISO, somebody else has deployed
// it, or it was deployed before there were records.
func BootRecord(n *Node) *bootiso.Record {
	note := bootNoteOf(n)
	if note == nil || State(n.ProvisionState) != nodes.Active {
		return nil
	}
	if (note.Again != nil && !note.Again.Dirty) || !markerOf(n).taken(n) {
		return note.Before // the boot that the note is about was prepared, and has not been started
	}
	if !note.IsAbout(BootISOURL(n)) {
		return nil
	}
	return &note.Record
}

// WantedBoot is what a node shall run, and how to deal with a newer image.
type WantedBoot struct {
	bootiso.Artifacts
	Policy     bootiso.Policy
	Installing bool
	Registered bool
	Settled    bool // the quiet period of the image is over
}

// BootFacts are what of a node decides about a live ISO. They can be kept as JSON.
type BootFacts struct {
	Label     string          `json:"label"`            // of the node, for people
	Record    *bootiso.Record `json:"record,omitempty"` // nil: nobody knows what it was booted with
	Protected bool            `json:"protected,omitempty"`
	Powered   bool            `json:"powered,omitempty"` // Ironic can switch it
}

// BootFactsOf are the facts of a node.
func BootFactsOf(n *Node) BootFacts {
	return BootFacts{Label: NodeLabel(n), Record: BootRecord(n), Protected: n.Protected, Powered: PowerManaged(n)}
}

// Judge decides what an image asks of a node. A protected node counts as being installed.
func (f BootFacts) Judge(want WantedBoot) bootiso.Status {
	return bootiso.Judge(bootiso.Machine{
		Booted: f.Record, Want: want.Artifacts, Policy: want.Policy, Installing: want.Installing || f.Protected,
		Registered: want.Registered, Settled: want.Settled, Powered: f.Powered,
	})
}

// BootChangedError says that a node is not what it was when it was decided what is done to it.
type BootChangedError struct {
	Node *Node
	Why  string // it is another decision now
}

// Error gives the reason.
func (e *BootChangedError) Error() string {
	return fmt.Sprintf("node %s has changed since the plan: %s", NodeLabel(e.Node), e.Why)
}

// BootKey reports whether a key of instance_info is one that a live ISO sets.
func BootKey(key string) bool { return key == keyBootISO || key == keyDeploy }

// BootISOURL is the live ISO that a node boots; empty if it boots none.
func BootISOURL(n *Node) string {
	url, _ := n.InstanceInfo[keyBootISO].(string)
	return url
}

// RecordBoot notes on a node what it is taken to have been booted with, and touches nothing else: the baseline of a
// machine that was imported, or the restart of one that only a person can restart.
func (c *Client) RecordBoot(ctx context.Context, id string, d Deployment, manual bool) (*Node, error) {
	node, err := c.getNode(ctx, id)
	if err != nil {
		return nil, err
	}
	record := bootiso.NewRecord(*d.LiveISO, time.Now(), nil)
	record.Manual = manual
	m := markerOf(node)
	m.Digest, m.State, m.Since, m.Power = d.Digest(), "", "", "" // no state: it counts as started
	var patch Patch
	patch.Set("/instance_info/"+keyBootISO, d.LiveISO.URL)
	patch.Set("/instance_info/"+keyMarker, m)
	patch.Set("/extra/"+keyBoot, bootNote{Record: record})
	return c.PatchNode(ctx, node.UUID, patch)
}

// Restarted reports whether Ironic has seen, since a record was made, that the machine's power changed or that an agent
// on it reported.
func Restarted(n *Node, since time.Time) bool {
	for _, key := range []string{"last_power_state_change", "agent_last_heartbeat"} {
		text, _ := n.DriverInternalInfo[key].(string)
		at, err := time.Parse("2006-01-02T15:04:05", strings.SplitN(strings.TrimSuffix(text, "Z"), ".", 2)[0])
		if err == nil && at.After(since) {
			return true
		}
	}
	return false
}

// lastPowerChange is when Ironic last changed a node's power, in its own words.
func lastPowerChange(n *Node) string {
	if text, _ := n.DriverInternalInfo["last_power_state_change"].(string); text != "" {
		return text
	}
	return "never"
}

// CarriesConfigDrive reports whether a node's boot interface can give a live ISO a config drive: those that attach
// virtual media can (capability ramdisk_boot_configdrive); with the others Ironic drops it and logs a warning.
func CarriesConfigDrive(n *Node) bool { return strings.HasSuffix(n.BootInterface, "virtual-media") }

// NoConfigDriveError says that a node cannot be given a config drive with a live ISO.
type NoConfigDriveError struct{ Node *Node }

// Error names the boot interface.
func (e *NoConfigDriveError) Error() string {
	return fmt.Sprintf("node %s has boot interface %q, which cannot carry a config drive with a live ISO", NodeLabel(e.Node), e.Node.BootInterface)
}

// BootLoopError says that a node was restarted with one image often enough.
type BootLoopError struct {
	Node *Node
	Last bootiso.Record
}

// Error gives the number.
func (e *BootLoopError) Error() string {
	return fmt.Sprintf("node %s was restarted with this image %d times within a day", NodeLabel(e.Node), e.Last.Boots-1)
}

// What again.Clean says of automated_clean; false needs no word.
const (
	cleanTrue  = "true"
	cleanUnset = "unset"
)

// deployedAgain reports whether a node is, or was when a run was interrupted, being undeployed to be deployed again for
// an instance.
func deployedAgain(n *Node, instance string) bool {
	note := bootNoteOf(n)
	return note != nil && note.Again != nil && note.Again.Instance == instance && (!note.Again.Dirty || !Occupied(n))
}

// StaysUncleaned reports whether a node is not cleaned when it is undeployed for good. Whether cleaning is switched off for all
// nodes, Ironic does not tell.
func StaysUncleaned(n *Node) bool {
	if note := bootNoteOf(n); note != nil && note.Again != nil && !note.Again.Dirty {
		return note.Again.Clean == ""
	}
	return n.AutomatedClean != nil && !*n.AutomatedClean
}

// cleanAgain gives a node back the automated_clean that it had before it was undeployed to be deployed again. If it was undeployed, and
// not cleaned because of that, the note says so from then on. While Ironic works on the node that is impossible, and left to the next time.
func (c *Client) cleanAgain(ctx context.Context, node *Node) (*Node, error) {
	note := bootNoteOf(node)
	if note == nil || note.Again == nil || dirty(node) || nextMove(GoalDeployed, State(node.ProvisionState), false).kind == wait {
		return node, nil
	}
	var patch Patch
	switch {
	case note.Again.Dirty: // it was given back before
	case note.Again.Clean == cleanTrue:
		patch.Set("/automated_clean", true)
	case note.Again.Clean == cleanUnset && node.AutomatedClean != nil:
		patch.Remove("/automated_clean")
	}
	if Occupied(node) || note.Again.Clean == "" {
		note.Again = nil
	} else {
		note.Again.Dirty = true
	}
	patch.Set("/extra/"+keyBoot, note)
	return c.PatchNode(ctx, node.UUID, patch)
}

// forgetBoot removes the note from a node that was undeployed, and is nobody's or again our allocation's.
func (c *Client) forgetBoot(ctx context.Context, node *Node, allocation string) error {
	if bootNoteOf(node) == nil || State(node.ProvisionState) != nodes.Available {
		return nil
	}
	now, err := c.getNode(ctx, node.UUID)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", allocation}, now.InstanceUUID) {
		return nil
	}
	var patch Patch
	patch.Remove("/extra/" + keyBoot)
	_, err = c.PatchNode(ctx, node.UUID, patch)
	return err
}
