package conductor

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// bmc returns the host of the BMC that the power interface of a node calls, and its port; "" if it calls none.
func (n *Node) bmc() (host, port string) {
	info := api.Object(n.Fields["driver_info"])
	switch power := n.Uses("power"); {
	case power == "ipmitool":
		return api.Text(info["ipmi_address"]), ""
	case strings.HasSuffix(power, "redfish"):
		address := api.Text(info["redfish_address"])
		if !strings.Contains(address, "://") {
			address = "https://" + address
		}
		if u, err := url.Parse(address); err == nil {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
			if given := u.Port(); given != "" {
				port = given
			}
			return u.Hostname(), port
		}
	}
	return "", ""
}

// silence returns how a call of the power interface fails, "" if the BMC answers.
func (c *Conductor) silence(n *Node) string {
	host, port := n.bmc()
	switch {
	case host == "" || c.Answers == nil || c.Answers(host):
		return ""
	case port == "":
		return "IPMI call failed: power status."
	}
	return fmt.Sprintf("Redfish connection failed for node %s: Unable to connect to https://%s/redfish/v1/. Error: HTTPSConnectionPool("+
		"host='%s', port=%s): Max retries exceeded with url: /redfish/v1/ (Caused by NewConnectionError('Failed to establish a new "+
		"connection: [Errno 113] No route to host'))", n.Str("uuid"), net.JoinHostPort(host, port), host, port)
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
