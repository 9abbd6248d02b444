package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// FailedOn says that an operation has failed. step describes the deploy step, as the end of a sentence; macs are of the cards from which
// the machine may boot, if they were looked up.
func FailedOn(node *ironic.Node, goal states.Goal, step string, macs []string) *failure.Error {
	e := &failure.Error{
		Kind: failure.KindFailed, Node: node, Goal: goal, Fact: fmt.Sprintf("node %s is in state %q%s%s", ironic.NodeLabel(node),
			node.ProvisionState, step, withheld(node)),
		Words: strings.TrimSpace(node.LastError), Why: Why(node),
		Advice: adviseFailed(node, goal) + failure.OrAskIPMI(node),
		Action: "Fix the cause and try again. See `metal show` and the conductor's log.",
	}
	if ironic.State(node.ProvisionState) == nodes.CleanFail {
		e.Action = "Fix the cause and try again. Ironic does not allocate the node until a cleaning has succeeded, or until its " +
			"metal_host is applied."
	}
	if api.IsRamdiskTimeout(node.LastError) {
		e.Hint = ramdisk.CheckBoot(node, macs)
	}
	return e
}

// withheld says that Ironic hides the cause of a failure from the user, as the end of a sentence; "" if it does not.
func withheld(n *ironic.Node) string {
	if n.LastError != "" || !n.Hidden.LastError {
		return ""
	}
	return "; Ironic's policy hides last_error from this user (rule baremetal:node:get:last_error), so ask the owner of the " +
		"node for the cause"
}

func adviseFailed(node *ironic.Node, goal states.Goal) string {
	if node.Fault != "" {
		return fmt.Sprintf("Ironic has put the node into maintenance (fault %q). Fix the cause; the next apply tries again.", node.Fault)
	}
	if goal == states.GoalConfigured && !ByAgent(node) {
		return "A hardware setting could not be changed; others may have been. The host stays out of service. Fix the cause and apply " +
			"again, which repeats the steps, or remove the setting."
	}
	known := Why(node) != nil
	if advice := AdviseCause(node); advice != "" && !known {
		return advice
	}
	check := func(unknown string) string {
		if known {
			return "Fix the cause and apply again."
		}
		return unknown
	}
	switch nodes.ProvisionState(node.ProvisionState) { //nolint:exhaustive // only the states in which a failed operation ends
	case nodes.Enroll:
		return check("Ironic could not reach the machine's BMC. Check its address and credentials, and that the conductor can reach it; " +
			"then apply again.")
	case nodes.DeployFail:
		return check("Fix the cause (check the image, the checksum, the network and the machine's console) and apply again.") +
			" The node stays reserved until then."
	case nodes.CleanFail:
		return "The node may still hold data, so Ironic does not allocate it. Fix the cause and apply again, which repeats the cleaning."
	case nodes.InspectFail:
		return "Fix the cause and apply again, which repeats the inspection."
	case nodes.RescueFail:
		return check("Check rescue_kernel and rescue_ramdisk in the host's driver_info, and the machine's console.") +
			" The next apply tries again. To give up, remove rescue: the next apply starts what is deployed."
	case nodes.UnrescueFail:
		return "The disks keep their data. Fix the cause and apply again, which tries again to start what is deployed."
	case nodes.Error:
		return "Undeploying the machine did not finish, and its disks may still hold data. Fix the cause and run the same command again. " +
			"As long as the resource is in the configuration, terraform apply undeploys the node and deploys it again."
	}
	return "See `metal show` and the conductor's log; fix the cause and apply again."
}

// Late says that a node did not reach a goal in time.
func Late(node *ironic.Node, goal states.Goal, after time.Duration, macs []string) *failure.Error {
	e := &failure.Error{
		Kind: failure.KindTimeout, Node: node, Goal: goal, Fact: fmt.Sprintf("node %s is still in state %q after %s",
			ironic.NodeLabel(node), node.ProvisionState, after),
		Advice: "The operation may still be in progress in Ironic. If the machine needs longer, raise the resource's timeouts. After a " +
			"create that timed out, Terraform starts over. To make the next apply wait for the operation instead, run terraform untaint " +
			"for the resource first.",
		Action: "The operation may still be in progress in Ironic. If the machine needs longer, raise the time-out (timeouts, or " +
			"--timeout). The action metal_abort, or metal abort, ends what waits for the machine.",
	}
	if states.AwaitsAgent(ironic.State(node.ProvisionState)) && ramdisk.Boots(node) {
		e.Hint = "Ironic waits for its ramdisk on the machine. " + ramdisk.CheckBoot(node, macs)
	}
	return e
}

// KindStuck is the kind of an error which says that a node is in the middle of an operation on which no conductor works, so that waiting is
// in vain.
const KindStuck failure.Kind = "stuck"

// stuckError says that no conductor works on the operation of a node any more. words are the first line of Ironic's error; "" if it has
// written none.
func stuckError(node *ironic.Node, words string) *failure.Error {
	e := &failure.Error{
		Kind: KindStuck, Node: node, Fact: fmt.Sprintf("node %s is in state %q, but no conductor works on it any more",
			ironic.NodeLabel(node), node.ProvisionState), Words: words,
		Advice: "Ironic does not end this operation by itself. A conductor that is restarted lets it fail; then apply again. See the " +
			"conductor's log for the cause.",
	}
	e.Action = "Ironic does not end this operation by itself. A conductor that is restarted lets it fail; then try again. See the " +
		"conductor's log for the cause."
	if runbook := node.DriverInfo[KeyRunbook] != nil || strings.Contains(words, "unbook"); runbook &&
		ironic.State(node.ProvisionState) == nodes.Deleting {
		mend := "Ironic leaves a node so whose cleaning runbook does not exist, or has none of the node's traits. Look at " +
			runbookOf(node) + ". Make the runbook usable, so that the cleaning can begin; Ironic accepts no change of the node now. Then " +
			"restart the conductor, which lets the operation fail, and "
		e.Advice, e.Action = mend+"apply again.", mend+"try again."
	}
	return e
}

// KeyRunbook is the key of driver_info that names the runbook by which Ironic cleans the machine
// (reference/ironic.md#cleaning-by-a-runbook).
const KeyRunbook = "cleaning_runbook"

func runbookOf(node *ironic.Node) string {
	if name, _ := node.DriverInfo[KeyRunbook].(string); name != "" {
		return "cleaning_runbook of its metal_host, which is " + name
	}
	return "the runbook that the site has configured ([conductor]automated_cleaning_runbook)"
}

// withoutRunbook turns the answer that Ironic cannot use the cleaning runbook of a node into an error of KindInvalid, and returns other
// errors unchanged. One of these answers is a 404, as if the node did not exist (reference/ironic.md#cleaning-by-a-runbook).
func withoutRunbook(node *ironic.Node, err error) error {
	var status *api.StatusError
	if !errors.As(err, &status) || !strings.HasPrefix(status.Message, "Runbook ") &&
		!strings.HasPrefix(status.Message, "Automated cleaning runbook ") {
		return err
	}
	mend := "Ironic asks for the runbook even if automated_clean is false. Correct " + runbookOf(node) +
		": it must exist, and have one of the node's traits. Then "
	return &failure.Error{
		Kind: failure.KindInvalid, Node: node, Fact: fmt.Sprintf("node %s is not cleaned and not made available, because Ironic cannot "+
			"use its cleaning runbook", ironic.NodeLabel(node)), Words: status.Message,
		Advice: mend + "apply again.", Action: mend + "try again.",
	}
}

// stopped says that the user has stopped the run. queued: while the machine waited for a slot.
func stopped(node *ironic.Node, goal states.Goal, queued bool, err error) *failure.Error {
	kind := failure.KindStopped
	if queued {
		kind = failure.KindQueued
	}
	return &failure.Error{Kind: kind, Node: node, Goal: goal, Fact: fmt.Sprintf("%s: %v", goal.Doing(), err), Err: err}
}

// InvalidNode says that Ironic refused to deploy a node because something is missing on it.
func InvalidNode(node *ironic.Node, reason string) *failure.Error {
	e := &failure.Error{Kind: failure.KindInvalid, Node: node, Fact: fmt.Sprintf("node %s failed validation: %s",
		ironic.NodeLabel(node), reason)}
	if strings.Contains(reason, "ramdisk_boot") {
		e.Advice = fmt.Sprintf("The node's boot interface, %q, cannot boot a live ISO. Set hardware_interfaces = { boot = "+
			"\"redfish-virtual-media\" } or \"ipxe\" on its metal_host.", node.BootInterface)
	}
	return e
}

// KindRefused is the kind of an error which says that the provider sent nothing because the node's state does not allow the operation.
const KindRefused failure.Kind = "refused"

// RefusedFor returns such an error for a reason that includes what to do.
func RefusedFor(node *ironic.Node, reason string) *failure.Error {
	return &failure.Error{Kind: KindRefused, Node: node, Fact: fmt.Sprintf("node %s is in state %q: %s", ironic.NodeLabel(node),
		node.ProvisionState, reason)}
}

// AsItIs says that another client has changed the machine since a request was wanted, which is not sent.
func (m *Machine) AsItIs() *failure.Error {
	reserved := "not reserved"
	if m.node.InstanceUUID != "" {
		reserved = "reserved by " + m.node.InstanceUUID
	}
	if m.node.Maintenance {
		reserved += ", and in maintenance"
	}
	return &failure.Error{
		Kind: KindRefused, Node: m.node, Fact: fmt.Sprintf("node %s was left as it is, because another client has changed it meanwhile: "+
			"it is in state %q, and %s", ironic.NodeLabel(m.node), m.node.ProvisionState, reserved),
		Advice: "Run terraform plan again.", Action: "Find out who uses the machine now, for example with metal show. Try again if that " +
			"is still wanted.",
	}
}

// Refused returns the error of a move that refuses. A node without a BMC cannot become available, so the advice to make it
// available would not help.
func Refused(node *ironic.Node, why states.Reason) error {
	if why == states.ReasonNotReady && !Preparable(node) {
		why = states.ReasonNoBMC
	}
	return RefusedFor(node, why.String())
}

// failed returns the error of a failed walk, with what only the node's history tells: the last error if the node has none, and the deploy
// step that failed if last_error does not name it. Without a history, the step is the last one that a poll has seen.
func (w *walk) failed(ctx context.Context) *failure.Error {
	blind := w.node.Hidden.Reservation
	err := w.learnError(ctx)
	if err == nil && w.node.LastError == "" && blind {
		// Ironic writes last_error before it unlocks the node, which this user cannot see (reference/ironic.md#state-and-lock).
		if w.poll(ctx, w.deadline) == nil {
			err = w.learnError(ctx)
		}
	}
	if err != nil {
		w.site.Ironic.Logger().DebugContext(ctx, "could not read last_error", append(NodeAttributes(w.node), "error", err)...)
	}
	deploys := w.goal == states.GoalDeployed || w.goal == states.GoalRebuilt
	step := ""
	if deploys {
		step = stepIn(w.node.LastError, w.deployStep)
	}
	known := Why(w.node) != nil
	if w.node.LastError == "" || deploys && step == "" && !known {
		event := evidence.LastError(ctx, w.site.Ironic, w.node.UUID)
		w.node.LastError = cmp.Or(w.node.LastError, event)
		if deploys {
			step = stepIn(event, w.deployStep)
		}
	}
	switch {
	case step != "":
		step = ", because deploy step " + step + " failed"
	case deploys && w.deployStep != "":
		step = "; the last deploy step seen was " + w.deployStep
	}
	return FailedOn(w.node, w.goal, step, w.macs)
}

// lookUp returns facts about why the walk has failed.
func (w *walk) lookUp(ctx context.Context, why *reason.Reason) []string {
	look := w.look()
	if w.goal == states.GoalDeployed || w.goal == states.GoalRebuilt {
		look.Image = states.TextOf(w.node.InstanceInfo, "image_source")
	}
	return look.Of(ctx, w.node, why)
}

// look returns where facts about a failure of this walk are looked up.
func (w *walk) look() evidence.Look {
	return evidence.Look{Ironic: w.site.Ironic, Images: w.site.cfg.Images, Began: w.began}
}

// late says that the walk has not reached its goal in time, and what the site knows of the ramdisk if Ironic waits for it.
func (w *walk) late(ctx context.Context) *failure.Error {
	e := Late(w.node, w.goal, w.timeout, w.macs)
	if e.Hint != "" {
		e.Facts = w.look().Boot(ctx, w.node)
	}
	return e
}

// How Ironic's errors name a deploy step (reference/ironic.md#failed-deploy-steps).
var (
	stepByName = regexp.MustCompile(`[Dd]eploy step ([\w-]+\.[\w-]+)`)
	stepByDict = regexp.MustCompile(`[Dd]eploy step \{[^}]*\}`)
	dictValue  = regexp.MustCompile(`'(interface|step)': '([\w-]+)'`)
)

// stepIn returns the deploy step that an error of Ironic names, such as "deploy.write_image"; "" if it names none. seen is the last step
// that was in progress.
func stepIn(text, seen string) string {
	if seen != "" && strings.Contains(text, seen) {
		return seen
	}
	if found := stepByName.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	step := map[string]any{}
	for _, pair := range dictValue.FindAllStringSubmatch(stepByDict.FindString(text), -1) {
		step[pair[1]] = pair[2]
	}
	return states.StepName(step)
}

// countFailures records a failed walk on the node, or resets the count after a success. Only the order of the queue depends on the
// count, so the walk goes on if the note cannot be written because the node is locked or gone.
func (m *Machine) countFailures(ctx context.Context, err error) {
	var patch ironic.Patch
	switch {
	case m.site.cfg.Limit.Max == 0:
	case failure.As(err, failure.KindFailed, failure.KindTimeout) != nil:
		patch.Set("/extra/"+notes.KeyFailures, notes.Failures(m.node)+1)
	case err == nil && m.node.Extra[notes.KeyFailures] != nil:
		patch.Remove("/extra/" + notes.KeyFailures)
	}
	if len(patch) == 0 || states.Has(m.State(), states.Busy) {
		return
	}
	if err := m.Patch(ctx, patch); err != nil {
		m.site.Ironic.Logger().DebugContext(ctx, "could not record the failures of the node",
			append(NodeAttributes(m.node), "error", err)...)
	}
}

// KindReserved is the kind of an error which says that another instance reserves the node, or that the expected reservation is gone. About
// is the reservation that was expected; it may be empty.
const KindReserved failure.Kind = "reserved"

func reservedError(node *ironic.Node, ours string) *failure.Error {
	e := &failure.Error{
		Kind: KindReserved, Node: node, About: ours, Fact: fmt.Sprintf("node %s is reserved by %s", ironic.NodeLabel(node),
			node.InstanceUUID),
		Advice: AdviseReserved(node, ours, false), Action: "The reservation of the machine has changed meanwhile. Look who has it, for " +
			"example with metal show, before you try again.",
	}
	if node.InstanceUUID == "" {
		e.Fact = fmt.Sprintf("node %s is not reserved by %s any more", ironic.NodeLabel(node), ours)
	}
	return e
}

// AdviseReserved says what to do about another reservation. sibling: of this run.
func AdviseReserved(node *ironic.Node, ours string, sibling bool) string {
	if node.InstanceUUID == "" {
		return "Another run or an operator has released the reservation. Run terraform plan again: it proposes a new one."
	}
	if id := node.AllocationUUID; id != "" && ours == "" && !states.IsOccupied(node) {
		return fmt.Sprintf("An allocation has reserved the node, and nothing is deployed on it. If the allocation is a metal_allocation "+
			"of this configuration, set allocation_id to its id, %s. Otherwise choose another node.", id)
	}
	holder := "A metal_deployment of this or another configuration, or another client, has this node."
	if sibling {
		holder = "Another metal_deployment of this apply has this node."
	}
	if !sibling && ours == "" && states.IsOccupied(node) {
		holder = failure.AdviseCreateFirst("a deployment on the same node") + "\n\n" + holder
	}
	return fmt.Sprintf("%s A node runs only one deployment. If the other one is in this state, this command names it:\n\n  terraform "+
		"state list -id=%s\n\n"+
		"Give one of the two another node. Do not import the node a second time: destroying either of the two undeploys the machine. "+
		"Only a machine that no configuration manages can be imported:\n\n  terraform import <address of the metal_deployment> %s", holder,
		node.UUID, node.UUID)
}

// CheckReservation returns an error of KindReserved unless the instance or allocation reserves the node.
func CheckReservation(node *ironic.Node, instance string) error {
	if node.InstanceUUID != instance {
		return reservedError(node, instance)
	}
	return nil
}
