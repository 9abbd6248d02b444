package provision

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Kinds of errors of a walk.
const (
	KindFailed  Kind = "failed"   // Ironic accepted an operation and the operation failed
	KindTimeout Kind = "time-out" // the goal was not reached in time; the operation may still be in progress
	KindStopped Kind = "stopped"  // the user has stopped the run (Ctrl-C); ironic.IsInterrupted reports it
	KindQueued  Kind = "queued"   // as above, while the machine waited for a slot: nothing was started
	KindInvalid Kind = "invalid"  // Ironic refused to deploy a node because something is missing on it
)

// FailedOn says that an operation has failed. step describes the deploy step, as the end of a sentence; macs are of the cards from which the machine
// may boot, if they were looked up.
func FailedOn(node *ironic.Node, goal Goal, step string, macs []string) *Error {
	e := &Error{
		Kind: KindFailed, Node: node, Goal: goal, Fact: fmt.Sprintf("node %s is in state %q%s%s", ironic.NodeLabel(node), node.ProvisionState, step, withheld(node)),
		Words: ironic.FirstLine(node.LastError), Advice: adviseFailed(node, goal) + orAskIPMI(node),
		Action: "Fix the cause and invoke the action again. See `baremetal node show` and the conductor's log.",
	}
	if ironic.State(node.ProvisionState) == nodes.CleanFail {
		e.Action = "Fix the cause and invoke the action again. Ironic does not allocate the node until a cleaning has succeeded, or until its metal_host is applied."
	}
	if ironic.IsRamdiskTimeout(node.LastError) {
		e.Hint = checkBoot(node, macs)
	}
	return e
}

// withheld says that Ironic hides the cause of a failure from the user, as the end of a sentence; "" if it does not.
func withheld(n *ironic.Node) string {
	if n.LastError != "" || !n.Hidden.LastError {
		return ""
	}
	return "; Ironic's policy hides last_error from this user (rule baremetal:node:get:last_error), so ask the owner of the node for the cause"
}

// adviseFailed says what to do about a failure on the way to a goal.
func adviseFailed(node *ironic.Node, goal Goal) string {
	if node.Fault != "" {
		return fmt.Sprintf("Ironic has put the node into maintenance (fault %q). Fix the cause; the next apply tries again.", node.Fault)
	}
	if ByAgent(node) {
		return "Ironic has no BMC credentials of the machine, and works through its agent there, which must run and answer, with [deploy]fast_track on. Start the machine by hand, so that it " +
			"boots Ironic's ramdisk, and apply again; or give the host a bmc with credentials in place of power_control."
	}
	if goal == GoalConfigured {
		return "A hardware setting could not be changed; others may have been. The host stays out of service. Fix the cause and apply again, which repeats the steps, or remove the setting."
	}
	switch nodes.ProvisionState(node.ProvisionState) { //nolint:exhaustive // only the states in which a failed operation ends
	case nodes.Enroll:
		return "Ironic could not reach the machine's BMC. Check its address and credentials, and that the conductor can reach it; then apply again."
	case nodes.DeployFail:
		return "Fix the cause (check the image, the checksum, the network and the machine's console) and apply again. The node stays reserved until then."
	case nodes.CleanFail:
		return "The node may still hold data, so Ironic does not allocate it. Fix the cause and apply again, which repeats the cleaning."
	case nodes.InspectFail:
		return "Fix the cause and apply again, which repeats the inspection."
	case nodes.RescueFail:
		return "Check rescue_kernel and rescue_ramdisk in the host's driver_info, and the machine's console. The next apply tries again. To give up, remove rescue: the next apply starts what is deployed."
	case nodes.UnrescueFail:
		return "The disks keep their data. Fix the cause and apply again, which tries again to start what is deployed."
	case nodes.Error:
		return "Undeploying the machine did not finish, and its disks may still hold data. Fix the cause and run the same command again. " +
			"As long as the resource is in the configuration, terraform apply undeploys the node and deploys it again."
	}
	return "See `baremetal node show` and the conductor's log; fix the cause and apply again."
}

// Late says that a node did not reach a goal in time.
func Late(node *ironic.Node, goal Goal, after time.Duration, macs []string) *Error {
	e := &Error{
		Kind: KindTimeout, Node: node, Goal: goal, Fact: fmt.Sprintf("node %s is still in state %q after %s", ironic.NodeLabel(node), node.ProvisionState, after),
		Advice: "The operation may still be in progress in Ironic. If the machine needs longer, raise the resource's timeouts. After a create that timed out, Terraform " +
			"starts over. To make the next apply wait for the operation instead, run terraform untaint for the resource first.",
		Action: "The operation may still be in progress in Ironic. If the machine needs longer, raise timeouts. The action metal_abort ends what waits for the machine.",
	}
	if awaitsAgent(ironic.State(node.ProvisionState)) && boots(node) {
		e.Hint = "Ironic waits for its ramdisk on the machine. " + checkBoot(node, macs)
	}
	return e
}

// stopped says that the user has stopped the run. queued: while the machine waited for a slot.
func stopped(node *ironic.Node, goal Goal, queued bool, err error) *Error {
	kind := KindStopped
	if queued {
		kind = KindQueued
	}
	return &Error{Kind: kind, Node: node, Goal: goal, Fact: fmt.Sprintf("%s: %v", goal.Doing(), err), Err: err}
}

// InvalidNode says that Ironic refused to deploy a node because something is missing on it.
func InvalidNode(node *ironic.Node, reason string) *Error {
	e := &Error{Kind: KindInvalid, Node: node, Fact: fmt.Sprintf("node %s failed validation: %s", ironic.NodeLabel(node), reason)}
	if strings.Contains(reason, "ramdisk_boot") {
		e.Advice = fmt.Sprintf("The node's boot interface, %q, cannot boot a live ISO. Set hardware_interfaces = { boot = \"redfish-virtual-media\" } or \"ipxe\" on its metal_host.", node.BootInterface)
	}
	return e
}

// failed returns the error of a failed walk, with what only the node's history tells: the last error if the node has none, and the deploy step
// that failed if last_error does not name it. Without a history, the step is the last one that a poll has seen.
func (w *walk) failed(ctx context.Context) *Error {
	if err := w.learnError(ctx); err != nil {
		w.site.Logger().DebugContext(ctx, "could not read last_error", append(nodeAttributes(w.node), "error", err)...)
	}
	deploys := w.goal == GoalDeployed || w.goal == GoalRebuilt
	step := ""
	if deploys {
		step = stepIn(w.node.LastError, w.deployStep)
	}
	if w.node.LastError == "" || deploys && step == "" {
		event := w.site.lastEvent(ctx, w.node.UUID)
		if w.node.LastError == "" {
			w.node.LastError = event
		}
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

// lastEvent returns the last error in a node's history, without secrets; empty if there is none or it cannot be read. Ironic 39
// clears last_error when, after a failure, it switches off a machine that is already off.
func (s *Site) lastEvent(ctx context.Context, id string) string {
	var answer struct {
		History []struct {
			Severity string `json:"severity"`
			Type     string `json:"event_type"`
			Event    string `json:"event"`
		} `json:"history"`
	}
	if version, err := s.Microversion(ctx); err != nil || version < ironic.VersionHistory {
		return ""
	}
	if err := s.Request(ctx, http.MethodGet, "nodes/"+id+"/history?detail=true", nil, &answer); err != nil {
		return ""
	}
	for _, event := range slices.Backward(answer.History) {
		if event.Severity == "ERROR" && !strings.HasSuffix(event.Type, "_end") { // _end events only say that the operation was aborted
			return s.Redact(event.Event)
		}
	}
	return ""
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
	return stepName(step)
}

// stepName returns the name of a step of Ironic; "" if there is none.
func stepName(step map[string]any) string {
	if textOf(step, "interface") == "" || textOf(step, "step") == "" {
		return ""
	}
	return textOf(step, "interface") + "." + textOf(step, "step")
}
