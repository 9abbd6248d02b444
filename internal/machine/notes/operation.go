package notes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// KeyOperation is the key of the note on an operation of several requests that a command of metal has begun on the node: see Operation.
const KeyOperation = "terraform_metal_operation"

// Goal is what an operation is to leave a machine with.
type Goal string

// qualificationAge is how long the note of a qualification counts, which may take a week.
const qualificationAge = 8 * 24 * time.Hour

// The goals of operations.
const (
	GoalAvailable Goal = "available" // the machine returns to the pool
	GoalPowerOn   Goal = "power on"  // the machine is switched on again
	GoalRetired   Goal = "retired"   // the machine has left the pool, and is retired
	GoalMedia     Goal = "media in " // followed by the device: it has the medium that the command has attached
)

// noted are the commands that write a note, with its goal. A tenant may write notes, too, so that others are no notes: what a note says is
// shown as a command to run.
var noted = map[string][]Goal{
	"inspect": {GoalAvailable}, "qualify": {GoalAvailable}, "power reboot --soft": {GoalPowerOn}, "retire": {GoalRetired},
	"virtual-media attach": {GoalMedia + Goal(ironic.DeviceCDROM), GoalMedia + Goal(ironic.DeviceDisk), GoalMedia +
		Goal(ironic.DeviceFloppy)},
}

// plainUser is the name of a user at a computer, without anything that could be taken for other words of a message.
var plainUser = regexp.MustCompile(`^[\pL\pN._@\\+-]+$`)

// Operation is the note of an operation that a command of metal, or the action that does the same, does by several requests. It is written
// before the first of them, and removed at the end. If the process is killed, the note tells the next one what is left to do. Like a mark
// of creation it is stored as an object with the run as its only key, so that a command replaces or removes no note but the one that it has
// read.
type Operation struct {
	Run     string    `json:"-"`
	Command string    `json:"command"` // of metal, without arguments
	By      string    `json:"by"`      // user and computer
	Since   time.Time `json:"since"`   // by the clock of the site
	Goal    Goal      `json:"goal"`
	Failed  time.Time `json:"failed,omitzero"` // when the command gave up, and left the machine at rest; zero: it is at work or was killed
}

// String says what has begun, and whether it has failed, as a clause.
func (o *Operation) String() string {
	by := o.By
	if !plainUser.MatchString(by) {
		by = strconv.Quote(by)
	}
	text := fmt.Sprintf("metal %s of %s, which began at %s", o.Command, by, o.Since.UTC().Format(time.RFC3339))
	if !o.Failed.IsZero() {
		text += " and failed at " + o.Failed.UTC().Format(time.RFC3339)
	}
	return text
}

// UnfinishedOperation returns the note on a node; nil if there is none, if its goal is reached, so that nothing is left to do, or if it is
// old.
func UnfinishedOperation(n *ironic.Node, now time.Time) *Operation {
	if o := OperationOf(n); o != nil && !o.IsOld(now) && !o.Reached(n) {
		return o
	}
	return nil
}

// IsOld reports whether the note is too old to count. One of a time to come counts no more: no command of this site has written it.
func (o *Operation) IsOld(now time.Time) bool {
	most := MarkAge
	if o.Command == "qualify" { // a burn-in takes days
		most = qualificationAge
	}
	return !clock.IsYoung(o.Since, now, most)
}

// IsOver reports whether the note on a node no longer matters: it is old, or its goal was reached after it was written. A machine that has
// not left the pool since may still wait for its operation.
func (o *Operation) IsOver(n *ironic.Node, now time.Time) bool {
	waits := o.Goal == GoalAvailable && states.InPool(n) && n.InstanceUUID == "" && !n.ProvisionUpdatedAt.After(o.Since)
	return o.IsOld(now) || o.Reached(n) && !waits
}

// ForgetOperation adds to a patch that is sent anyway the removal of a note that no longer matters. Ironic refuses the patch if the note is
// another one meanwhile.
func ForgetOperation(patch ironic.Patch, n *ironic.Node, now time.Time) ironic.Patch {
	if o := OperationOf(n); o != nil && o.IsOver(n, now) && !patch.Changes("/extra/"+KeyOperation) {
		patch = append(patch, EndOperation(n)...)
	}
	return patch
}

// WithoutOldOperation returns a node without a note that is too old to count.
func WithoutOldOperation(n *ironic.Node, now time.Time) *ironic.Node {
	if o := OperationOf(n); o == nil || !o.IsOld(now) {
		return n
	}
	without := *n
	without.Extra = maps.Clone(n.Extra)
	delete(without.Extra, KeyOperation)
	return &without
}

// OperationOf returns the note on a node, also one that is old or whose goal is reached; nil if there is none that a command has written.
func OperationOf(n *ironic.Node) *Operation {
	runs := Read[map[string]Operation](n.Extra, KeyOperation)
	if runs == nil || len(*runs) != 1 {
		return nil
	}
	for run, o := range *runs {
		if o.Run = run; slices.Contains(noted[o.Command], o.Goal) && ironic.IsUUID(run) {
			return &o
		}
	}
	return nil
}

// Reached reports whether a node is as the operation was to leave it, or cannot become so any more.
func (o *Operation) Reached(n *ironic.Node) bool {
	switch o.Goal {
	case GoalAvailable:
		return states.InPool(n) || states.IsOccupied(n) || n.InstanceUUID != "" || n.Retired
	case GoalPowerOn:
		return n.PowerState == "power on" && n.TargetPowerState == ""
	case GoalRetired:
		return n.Retired
	case GoalMedia:
	}
	return false
}

// Left says what the operation has not reached, as a clause about the machine.
func (o *Operation) Left() string {
	switch o.Goal {
	case GoalAvailable:
		return "it was to become available again"
	case GoalPowerOn:
		return "it was to be switched on again"
	case GoalRetired:
		return "it was to be retired"
	case GoalMedia:
	}
	return "it was to get another medium in " + strings.TrimPrefix(string(o.Goal), string(GoalMedia))
}

// Again returns the command that does the operation again on a node, for people who copy it.
func (o *Operation) Again(n *ironic.Node) string {
	again := "metal " + o.Command + " " + ironic.NodeArgument(n)
	if device, is := strings.CutPrefix(string(o.Goal), string(GoalMedia)); is {
		again += " --device " + device + " --image-url URL"
	}
	return again
}

// BeginOperation returns the patch that notes an operation of a run on a node, in place of the note that the node has.
func BeginOperation(n *ironic.Node, o *Operation) (patch ironic.Patch) {
	if old := OperationOf(n); old != nil {
		patch.Replace("/extra/"+KeyOperation+"/"+old.Run, old)
	}
	patch.Set("/extra/"+KeyOperation, map[string]*Operation{o.Run: o})
	return patch
}

// FailOperation returns the patch that notes that an operation has failed. Ironic refuses the patch if the note is another one meanwhile.
func FailOperation(o *Operation, now time.Time) (patch ironic.Patch) {
	failed := *o
	failed.Failed = now.UTC().Truncate(time.Second)
	patch.Replace("/extra/"+KeyOperation+"/"+o.Run, &failed)
	return patch
}

// EndOperation returns the patch that removes the note of an operation; empty if the node has none. Ironic refuses the patch if the note is
// another one meanwhile.
func EndOperation(n *ironic.Node) (patch ironic.Patch) {
	old := OperationOf(n)
	if old == nil {
		return nil
	}
	patch.Replace("/extra/"+KeyOperation+"/"+old.Run, old)
	patch.Remove("/extra/" + KeyOperation)
	return patch
}

func sayOperation(n *ironic.Node, now time.Time) (w Words) {
	o := OperationOf(n)
	if o == nil {
		return w
	}
	note, left := Note{At: o.Since, Text: "metal " + o.Command + " began", By: o.By}, Left{Run: o.Run, Since: o.Since}
	switch {
	case UnfinishedOperation(n, now) == nil:
		return Words{Told: []Note{note}}
	case !o.Failed.IsZero():
		note.Text += ", and failed at " + o.Failed.UTC().Format(time.RFC3339) + ": " + o.Left()
		left.Text, left.Failed = fmt.Sprintf("%s: %s", o, o.Left()), true
	default:
		note.Text += ", and its end is not noted: " + o.Left()
		left.Text = fmt.Sprintf("%s, has not ended: %s", o, o.Left())
	}
	w = Words{Told: []Note{note}, Left: &left}
	if !states.InProgress(ironic.State(n.ProvisionState)) {
		w.Urgency, w.Advice = Begun, o.advise(n)
	}
	return w
}

// advise says what to do about an operation that has failed, was interrupted or is at work.
func (o *Operation) advise(n *ironic.Node) string {
	if !o.Failed.IsZero() {
		return fmt.Sprintf("An operation has failed: %s, and %s. If you still need it, mend the cause (What has failed, metal history "+
			"%s) and run it again: %s",
			o, o.Left(), ironic.NodeArgument(n), o.Again(n))
	}
	return fmt.Sprintf("An operation has not ended: %s, and %s. If it is not at work any more, run it again: %s", o, o.Left(), o.Again(n))
}
