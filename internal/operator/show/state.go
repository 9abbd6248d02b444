package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// failures says what to do in each state in which an operation has failed. NODE stands for the node.
var failures = map[ironic.State]string{ //nolint:exhaustive // of the states in which an operation has failed
	nodes.DeployFail: "The next apply deploys the node again; metal undeploy NODE frees it.",
	nodes.Error:      "The machine was not undeployed, and its disks may still hold data. Fix the cause, then run: metal undeploy NODE",
	nodes.CleanFail: "The disks may still hold data, so that Ironic does not allocate the node. Fix the cause. The next apply of its " +
		"metal_host cleans it again. Without Terraform: metal provide NODE.",
	nodes.InspectFail: "Fix the cause. The next apply of its metal_host inspects it again, or run: metal inspect NODE",
	nodes.AdoptFail: "Fix the cause, then apply again. Without Terraform: baremetal node adopt NODE, or metal manage NODE " +
		"to give it up.",
	nodes.RescueFail: "The disks keep their data. Check rescue_kernel and rescue_ramdisk in driver_info, then run metal rescue NODE " +
		"again, or metal unrescue NODE to start what is deployed.",
	nodes.UnrescueFail: "The disks keep their data. Fix the cause, then run: metal unrescue NODE",
	nodes.ServiceFail: "The disks keep their data. Fix the cause and service the node again (metal service NODE), or run metal abort " +
		"NODE, which starts what is deployed.",
}

// rests says what to do in each other state in which Ironic does nothing; "": nothing.
var rests = map[ironic.State]string{ //nolint:exhaustive // of the states in which Ironic does nothing
	nodes.Enroll: "Ironic does not manage the machine yet. The next apply of its metal_host does that. Without Terraform: " +
		"metal manage NODE",
	nodes.Manageable: "Ironic does not allocate the node. The next apply of a metal_host with target_state = \"available\" changes " +
		"that. Without Terraform: metal provide NODE",
	nodes.Available:   "",
	nodes.Active:      "",
	nodes.Rescue:      "The rescue system runs in place of what is deployed. To end it, run: metal unrescue NODE",
	nodes.DeployHold:  "A step holds the deployment. To continue it, run metal unhold NODE; to end it, metal abort NODE.",
	nodes.CleanHold:   "A step holds the cleaning. To continue it, run metal unhold NODE; to end it, metal abort NODE.",
	nodes.ServiceHold: "A step holds the service. To continue it, run metal unhold NODE; to end it, metal abort NODE.",
}

func adviseState(n *ironic.Node, now time.Time) string {
	state := ironic.State(n.ProvisionState)
	switch {
	case state == nodes.Enroll && n.LastError != "":
		return cause(n, "Ironic could not reach the BMC. Check its address and credentials, and that the conductor can reach it (metal "+
			"validate NODE).") + forNode(n, " Then apply again. Without Terraform: metal manage NODE") + failure.OrAskIPMI(n)
	case states.Failed(state):
		unknown := machine.AdviseCause(n)
		if state == nodes.DeployFail {
			unknown = cmp.Or(unknown, "Find the cause (metal history NODE, metal validate NODE), such as the image, its checksum or the "+
				"network.")
		}
		return strings.TrimSpace(cause(n, unknown)+" "+forNode(n, failures[state])) + failure.OrAskIPMI(n) + ramdiskHint(n)
	case states.IsStuck(n):
		return ""
	case states.AwaitsAgent(state):
		return forNode(n, waiting(n, state, now))
	case n.TargetPowerState != "":
		return fmt.Sprintf("Ironic is changing the power state to %q. Wait for that.", n.TargetPowerState)
	case states.InProgress(state), state == nodes.DeployDone, state == nodes.Rebuild, state == nodes.Deleted:
		return working(n, now)
	case n.Retired && (state == nodes.Manageable || state == nodes.Enroll):
		return "" // it is out of use on purpose
	}
	return forNode(n, rests[state])
}

// cause says what Ironic's words about a failure mean, and what to do; unknown if no reason has them.
func cause(n *ironic.Node, unknown string) string {
	if why := machine.Why(n); why != nil {
		return why.Meaning + " " + why.Next
	}
	return forNode(n, unknown)
}

func working(n *ironic.Node, now time.Time) string {
	if took(n, now) < longWait {
		return "Ironic is at work on the node. Wait for the end of the operation."
	}
	conductor := strings.TrimSpace("the conductor " + cmp.Or(n.Reservation, n.Conductor))
	return fmt.Sprintf("Ironic has been at work on the node for %s. Wait for the end of the operation, or, if it takes longer than it "+
		"should, see the log of %s.", minutes(took(n, now)), conductor)
}

// took returns how long a node has been in its provision state.
func took(n *ironic.Node, now time.Time) time.Duration {
	age, _ := clock.Age(n.ProvisionUpdatedAt, now)
	return age
}

func minutes(d time.Duration) string { return strings.TrimSuffix(d.Round(time.Minute).String(), "0s") }

// waiting says what to do while Ironic waits for its ramdisk.
func waiting(n *ironic.Node, state ironic.State, now time.Time) string {
	if took(n, now) < longWait {
		return "Ironic waits for its ramdisk on the machine. Wait for that."
	}
	text := fmt.Sprintf("Ironic has waited for its ramdisk on the machine for %s. Look at the console of the machine (metal console "+
		"NODE): does it boot the ramdisk, and can that reach Ironic?", minutes(took(n, now)))
	if since, _ := states.Abortable(state); since > 0 {
		return text + fmt.Sprintf(" To end the operation, run metal abort NODE, which needs API version %s.", since)
	}
	return text + " To end the operation, run: metal abort NODE"
}

func ramdiskHint(n *ironic.Node) string {
	if !api.IsRamdiskTimeout(n.LastError) {
		return ""
	}
	return forNode(n, " Ironic's ramdisk did not answer: look at the console of the machine during the next try (metal console NODE). ") +
		ramdisk.CheckBoot(n, nil)
}

func forNode(n *ironic.Node, text string) string { return strings.ReplaceAll(text, "NODE", name(n)) }
