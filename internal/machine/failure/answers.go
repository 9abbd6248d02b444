package failure

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// AdviseProtected says how to end the protection of a node.
const AdviseProtected = "If the machine may be wiped, first apply protected = false for its metal_deployment, or without Terraform: " +
	"baremetal node unset <node> --protected."

// AdviseCreateFirst says why a creation meets what it was to replace, such as "a deployment on the same node". Terraform tells a provider
// neither that it replaces a resource nor whether it destroys that first.
func AdviseCreateFirst(object string) string {
	return "create_before_destroy, here or in a resource that depends on this one, cannot replace " + object + ". If this apply replaces " +
		"one, remove create_before_destroy, or leave out -replace."
}

func adviseStatus(status *api.StatusError) string {
	if advice := advisePage(status, "Ironic", ""); advice != "" {
		return advice
	}
	if refusal := api.RefusalBy(status); refusal != nil {
		return AdviseRefusal(refusal)
	}
	switch status.Status {
	case http.StatusUnauthorized:
		return "Ironic does not accept the credentials. Check auth_type, username (METAL_USERNAME) and password (METAL_PASSWORD), or " +
			"cloud (OS_CLOUD). A token that was given (OS_TOKEN) cannot be renewed: get a new one."
	case http.StatusForbidden:
		return "The node is protected. " + AdviseProtected
	case http.StatusNotFound:
		if status.Foreign && strings.Contains(status.URL, "/v1/chassis") {
			return "Something before Ironic, such as a proxy, blocks requests for /v1/chassis. Allow them there, or set coordination = " +
				"\"process\" in provisioning_limit to work without the lock."
		}
		if strings.HasPrefix(status.Message, "Node ") && !status.Foreign {
			if status.Project != "" {
				return fmt.Sprintf("Ironic has no such node, or does not show it to project %s, because that project neither owns nor "+
					"leases it. Check the name or UUID; baremetal node list shows the nodes of the project.", status.Project)
			}
			return "Ironic has no such node. Check the name or UUID; baremetal node list shows all nodes."
		}
		if status.Foreign {
			return notIronic
		}
	case http.StatusConflict:
		return AdviseConflict(status.Message)
	case http.StatusBadRequest:
		return adviseBadRequest(status.Message)
	}
	return ""
}

// AdviseConflict returns what to do about a 409 of Ironic, by its text; "" if the text is not known.
func AdviseConflict(message string) string {
	for _, duplicate := range []struct{ text, resource, advice string }{
		{"A node with name ", "metal_host", "Names are unique in Ironic. Import the existing node, or choose another name."},
		{"A port with MAC address ", "metal_host", "A MAC address belongs to one node only. Import the node that has it, or " +
			"correct the ports."},
		{"An allocation with name ", "metal_allocation", AdviseCreateFirst("an allocation of the same name") +
			"\n\nNames of allocations are unique in Ironic. Import the existing allocation, or choose another name."},
		{"A deploy template with name ", "metal_deploy_template", "Names of deploy templates are unique in Ironic. Import the existing " +
			"template, or choose another name."},
		{"A runbook with name ", "metal_runbook", "Names of runbooks are unique in Ironic. Import the existing runbook, or choose " +
			"another name."},
	} {
		if _, rest, ok := strings.Cut(message, duplicate.text); ok {
			name, _, _ := strings.Cut(rest, " already exists")
			return fmt.Sprintf("%s An earlier run of yours that was killed may have created it:\n\n  terraform import <address of "+
				"the %s> %s", duplicate.advice, duplicate.resource, name)
		}
	}
	for _, known := range []struct{ text, advice string }{
		{"because the node is active", "The node is deployed. Destroy its metal_deployment first, or undeploy it with `metal undeploy`. " +
			"To leave the machine running with its reservation, remove the metal_allocation from the state: terraform state rm " +
			"<its address>."},
		{"is associated with instance", "Something is allocated to or deployed on the node. Destroy its metal_deployment and " +
			"metal_allocation first."},
		{"Can not delete node", "The node is in use. Destroy what runs on it first."},
		{"can only be made protected", "Ironic protects only deployed nodes: set protected once the node is deployed."},
		{"can not have 'retired' set", "Ironic retires no available node. Make the node manageable first (target_state " +
			"= \"manageable\"), then retire it."},
		{"have resource_class updated unless", "Ironic does not change resource_class in the node's present state. Destroy its " +
			"metal_deployment first, or leave resource_class as it is while something is deployed on the node."},
		{"updated unless", "Ironic does not change this in the node's present state. Put the node into maintenance for the change " +
			"(maintenance = true), or, if nothing is deployed on it, make it manageable first (target_state = \"manageable\")."},
		{"is locked by host", "Another operation on the node is in progress. Try again when it has ended."},
		{"while a state transition is in progress", "Another operation on the node is in progress. Try again when it has ended."},
	} {
		if strings.Contains(message, known.text) {
			return known.advice
		}
	}
	return ""
}

func adviseBadRequest(message string) string {
	for _, known := range []struct{ text, advice string }{
		{"which supports driver", "No running conductor serves this driver in this conductor group. Check driver and conductor_group."},
		{"in maintenance mode", "The node is in maintenance. Take it out of maintenance first (maintenance = false)."},
		{"failed to validate", "A setting that this deployment needs is missing or wrong. Check image and driver_info."},
		{"contains ports", "If the port group has no ports, Ironic 21.4 mistakes it for another one: keep it in port_groups, " +
			"without ports."},
		{"Nodes cannot be found", "A candidate does not exist. Check candidate_nodes: each must be the name or UUID of an existing node."},
	} {
		if strings.Contains(message, known.text) {
			return known.advice
		}
	}
	return ""
}
