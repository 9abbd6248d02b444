package conductor

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// ipmiPort is the usual port of IPMI.
const ipmiPort = "623"

// bmc returns the host of the BMC that the power interface of a node calls, its port and the usual one; "" if it calls none.
func (n *Node) bmc() (host, port, usual string) {
	info := api.Object(n.Fields["driver_info"])
	switch power := n.Uses("power"); {
	case power == "ipmitool":
		return api.Text(info["ipmi_address"]), cmp.Or(strings.Trim(api.PyText(info["ipmi_port"]), "None"), ipmiPort), ipmiPort
	case strings.HasSuffix(power, "redfish"):
		address := api.Text(info["redfish_address"])
		if !strings.Contains(address, "://") {
			address = "https://" + address
		}
		if u, err := url.Parse(address); err == nil {
			usual = map[string]string{"http": "80", "https": "443"}[u.Scheme]
			return u.Hostname(), cmp.Or(u.Port(), usual), usual
		}
	}
	return "", "", ""
}

// silence returns how a call of the power interface fails, "" if the BMC answers.
func (c *Conductor) silence(n *Node) string {
	host, port, usual := n.bmc()
	at, why := host, "[Errno 113] No route to host"
	if port != usual {
		at = net.JoinHostPort(host, port)
	}
	switch {
	case host == "" || c.Answers == nil || c.Answers(at):
		return ""
	case usual == ipmiPort:
		return "IPMI call failed: power status."
	case at != host && c.Answers(host):
		why = "[Errno 111] Connection refused"
	}
	return fmt.Sprintf("Redfish connection failed for node %s: Unable to connect to https://%s/redfish/v1/. Error: HTTPSConnectionPool("+
		"host='%s', port=%s): Max retries exceeded with url: /redfish/v1/ (Caused by NewConnectionError('Failed to establish a new "+
		"connection: %s'))", n.Str("uuid"), net.JoinHostPort(host, port), host, port, why)
}

// silent lets an operation fail that calls a silent BMC (verify.py, cleaning.py, deployments.py, servicing.py and manager.py in
// ironic/conductor of 21.4 and 39.0).
func (c *Conductor) silent(n *Node, o *operation) {
	reason := c.silence(n)
	if reason == "" || o.defect != "" {
		return
	}
	uuid, works := n.Str("uuid"), !inert(n.Uses("deploy"))
	frame := ""
	// Others call no BMC, or end before.
	//exhaustive:ignore
	switch o.phases[0].in {
	case Verifying:
		frame, works = "Failed to get power state for node "+uuid+". Error: ", true
	case Adopting:
		frame = "Error while attempting to adopt node " + uuid + ": "
	case Cleaning:
		frame, works = "Failed to prepare node "+uuid+" for cleaning: ", works && o.boots
	case Deploying:
		frame = "Failed to prepare to deploy: "
	case Servicing:
		frame = "Failed to prepare node " + uuid + " for service: "
	case Deleting:
		frame = "Failed to tear down: "
	case Inspecting:
		frame, works = "Failed to inspect hardware. Reason: ", n.real("inspect")
	}
	if frame == "" || !works {
		return
	}
	o.defect = frame + reason
	if o.phases[0].in != Deleting { // which still frees the instance
		o.phases = o.phases[:1]
	}
}
