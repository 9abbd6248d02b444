package states

import (
	"cmp"
	"regexp"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// operations has the operation to which each provision state belongs: it is in progress, is held, or has failed. States of rest have none.
var operations = map[ironic.State]string{
	nodes.Enroll:       "",
	nodes.Verifying:    "verify",
	nodes.Manageable:   "",
	nodes.Available:    "",
	nodes.Active:       "",
	nodes.Deploying:    "deploy",
	nodes.DeployWait:   "deploy",
	nodes.DeployDone:   "deploy",
	nodes.Rebuild:      "deploy",
	nodes.DeployFail:   "deploy",
	nodes.DeployHold:   "deploy",
	nodes.Deleting:     "undeploy",
	nodes.Deleted:      "undeploy",
	nodes.Error:        "undeploy",
	nodes.Cleaning:     "clean",
	nodes.CleanWait:    "clean",
	nodes.CleanFail:    "clean",
	nodes.CleanHold:    "clean",
	nodes.Inspecting:   "inspect",
	nodes.InspectWait:  "inspect",
	nodes.InspectFail:  "inspect",
	nodes.Adopting:     "adopt",
	nodes.AdoptFail:    "adopt",
	nodes.Rescuing:     "rescue",
	nodes.RescueWait:   "rescue",
	nodes.Rescue:       "",
	nodes.RescueFail:   "rescue",
	nodes.Unrescuing:   "unrescue",
	nodes.UnrescueFail: "unrescue",
	nodes.Servicing:    "service",
	nodes.ServiceWait:  "service",
	nodes.ServiceFail:  "service",
	nodes.ServiceHold:  "service",
}

// OperationIn names the operation that is in progress in a state, is held in it, or has failed in it; "" if nothing is.
func OperationIn(state ironic.State) string { return operations[state] }

// Ironic names the step that has failed in one of two ways (reference/ironic.md#failed-deploy-steps,
// reference/ironic.md#failed-clean-steps).
var (
	stepByName   = regexp.MustCompile(`\b[Ss]tep "?([a-z_]+\.\w+)`)
	stepAsRecord = regexp.MustCompile(`\b[Ss]tep (\{.*)`)
	interfaceKey = regexp.MustCompile(`'interface': '(\w+)'`)
	stepKey      = regexp.MustCompile(`'step': '(\w+)'`)
)

// FailedStep names the step that has failed on a node by Ironic's last_error, such as deploy.write_image; else the operation or the fault.
func FailedStep(n *ironic.Node) string {
	if named := stepByName.FindStringSubmatch(n.LastError); named != nil {
		return named[1]
	}
	if record := stepAsRecord.FindStringSubmatch(n.LastError); record != nil {
		of, step := interfaceKey.FindStringSubmatch(record[1]), stepKey.FindStringSubmatch(record[1])
		if of != nil && step != nil {
			return of[1] + "." + step[1]
		}
	}
	state := ironic.State(n.ProvisionState)
	if state == nodes.Enroll {
		state = nodes.Verifying
	}
	return cmp.Or(OperationIn(state), n.Fault, n.ProvisionState)
}
