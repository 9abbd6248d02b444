package machine

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Why returns what Ironic's words about the last failure of a node mean; nil if the provider does not know. What the node itself tells of
// the cause is better than the advice of the table.
func Why(node *ironic.Node) *reason.Reason {
	known := reason.OfNode(node)
	if advice := AdviseCause(node); advice != "" && known != nil {
		known = new(*known)
		known.Next = advice
	}
	return known
}

// Failure is the last failure of a machine, for programs and for people.
type Failure struct {
	Reason  string       `json:"reason,omitempty"` // of the table; "" if no row has Ironic's words
	Blame   reason.Blame `json:"blame,omitempty"`
	Meaning string       `json:"meaning,omitempty"`
	Next    string       `json:"next,omitempty"`
	Words   string       `json:"words"` // Ironic's, with all their lines
}

// FailureOf returns the last failure of a node; nil if its last operation has not failed, or nothing tells why.
func FailureOf(node *ironic.Node) *Failure {
	words := strings.TrimSpace(cmp.Or(node.LastError, node.MaintenanceReason))
	if !states.OperationFailed(node) || words == "" {
		return nil
	}
	f := &Failure{Words: words}
	if why := Why(node); why != nil {
		f.Reason, f.Blame, f.Meaning, f.Next = why.ID, why.Blame, why.Meaning, why.Next
	}
	return f
}

// Line returns the failure in one line: the reason and what it means, or the first line of Ironic's words.
func (f *Failure) Line() string {
	if f.Reason == "" {
		return api.FirstLine(f.Words)
	}
	return reason.Line(f.Reason)
}

var noPortFound = regexp.MustCompile(`No Port found for ([\w-]+)`)

// DeletedVIF returns the VIF that Neutron has deleted, so that the last deployment of a node failed; "" if it did not fail for that.
func DeletedVIF(node *ironic.Node) string {
	found := noPortFound.FindStringSubmatch(node.LastError)
	if found == nil || ironic.State(node.ProvisionState) != nodes.DeployFail {
		return ""
	}
	return found[1]
}

// LacksVIF reports whether the last deployment of a node failed because Neutron has no port for the machine: it would fail on each node.
func LacksVIF(node *ironic.Node) bool {
	none := strings.Contains(node.LastError, "No neutron ports or portgroups are associated") ||
		strings.Contains(node.LastError, "Failed to bind any flat network ports")
	return DeletedVIF(node) != "" || none
}

// AdviseCause says what to do about a failure whose cause the node tells: it has no BMC, or Ironic could not connect it
// (reference/ironic.md#vifs). It returns "" if the node tells none.
func AdviseCause(node *ironic.Node) string {
	lastError := node.LastError
	switch vif := DeletedVIF(node); {
	case ByAgent(node):
		return "Ironic has no BMC credentials of the machine, and works through its agent there, which must run and answer, with " +
			"[deploy]fast_track on. Start the machine by hand, so that it boots Ironic's ramdisk, and apply again; or give the host a " +
			"bmc with credentials in place of power_control."
	case vif != "":
		return fmt.Sprintf("Neutron has deleted the port %s, but Ironic still lists it. If vifs of the metal_deployment names it, remove "+
			"it there, or name another port. Then apply again, which detaches it.", vif)
	case LacksVIF(node):
		return "The machine has no VIF, so that Ironic connects it to no network. Set vifs of the metal_deployment, or give the " +
			"metal_host hardware_interfaces = { network = \"noop\" }, and apply again."
	case strings.Contains(lastError, "No ports are associated with node"):
		return "The node has no ports, so that Ironic connects it to no network. Set ports of the metal_host, and apply again."
	case strings.Contains(lastError, "failed to reach status ACTIVE"):
		return "Neutron's driver of the switch has not connected the machine's port. Compare local_link_connection of the port with the " +
			"switch, and see the log of neutron-server. Then apply again."
	}
	return ""
}
