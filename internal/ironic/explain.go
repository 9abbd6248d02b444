package ironic

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Explain turns an error into a diagnostic: what could not be done, what Ironic said, and what to do next. doing is a
// phrase in the infinitive with its object, such as "deploy node rack1-01".
func Explain(doing string, err error) (summary, detail string) {
	summary = "Could not " + doing
	if IsInterrupted(err) {
		return summary, "The run was interrupted. What was started goes on in Ironic; the next apply takes it up again."
	}
	detail = Sentence(err)
	if advice := advise(err); advice != "" {
		detail += "\n\n" + advice
	}
	var status *StatusError
	if errors.As(err, &status) && status.RequestID != "" {
		detail += "\n\nIronic's log has more under " + status.RequestID + "."
	}
	return summary, detail
}

// advise says what to do next about an error, or nothing where the error's own words are enough.
func advise(err error) string {
	var unknown *UnknownConfigError
	var auth *AuthError
	var version *VersionError
	var failed *FailedError
	var timeout *TimeoutError
	var reserved *ReservedError
	var defect *ParentNodeError
	var none *NoMatchError
	var drive *NoConfigDriveError
	var loop *BootLoopError
	var changed *ImageChangedError
	var moved *BootChangedError
	var invalid *InvalidNodeError
	switch {
	case errors.As(err, &unknown):
		return "Apply what it depends on first, with -target, or give the value directly."
	case errors.As(err, &auth):
		return "Check cloud (OS_CLOUD, clouds.yaml) or the OS_* variables: OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME, " +
			"or OS_APPLICATION_CREDENTIAL_ID and OS_APPLICATION_CREDENTIAL_SECRET."
	case errors.As(err, &version):
		if version.Server >= version.Needs {
			return fmt.Sprintf("Raise microversion in the provider block to at least %q, or leave it out.", version.Needs)
		}
		return "Upgrade Ironic, or remove the setting."
	case errors.As(err, &failed):
		return adviseFailed(failed)
	case errors.As(err, &timeout):
		return "Ironic may still be at work on it. If the machine needs longer, raise the resource's timeouts. After a create that timed out Terraform " +
			"starts over; to have the next apply wait for what is under way instead, run terraform untaint for the resource first."
	case errors.As(err, &reserved):
		return adviseReserved(reserved)
	case errors.As(err, &defect):
		return "Upgrade Ironic, or ask your distribution for the corrected package. Nothing else is changed through this Ironic until then."
	case errors.As(err, &none):
		return none.Advice()
	case errors.As(err, &drive):
		return "Use a boot interface with virtual media, such as redfish-virtual-media, or remove config_drive and put what it has into the ISO."
	case errors.As(err, &loop):
		return "Nothing was restarted: something else is wrong with the machine or the image. A new version of the image, or terraform apply -replace, starts anew."
	case errors.As(err, &moved):
		return "Nothing was done to it. Run terraform plan again."
	case errors.As(err, &invalid):
		if strings.Contains(err.Error(), "ramdisk_boot") {
			return fmt.Sprintf("The node's boot interface, %q, cannot boot a live ISO. Set interfaces = { boot = \"redfish-virtual-media\" } or \"ipxe\" on its metal_host.", invalid.Node.BootInterface)
		}
	case errors.As(err, &changed):
		return "No machine was restarted with it. Wait until the image is no longer rebuilt, and run terraform plan again."
	}
	return adviseStatus(err)
}

func adviseFailed(err *FailedError) string {
	node := err.Node
	if node.Fault != "" {
		return fmt.Sprintf("Ironic has put the node into maintenance (fault %q). Mend the cause; the next apply tries again.", node.Fault)
	}
	switch nodes.ProvisionState(node.ProvisionState) { //nolint:exhaustive // advice for the states that a failure ends in
	case nodes.Enroll:
		return "Ironic could not reach the machine's BMC. Check its address and credentials, and that the conductor can reach it; then apply again."
	case nodes.DeployFail:
		return "Mend the cause (image, checksum, network, the machine's console) and apply again. Nothing else runs on this node meanwhile."
	case nodes.CleanFail:
		return "The node may still hold data and is not handed out. Mend the cause and apply again: cleaning is then repeated."
	case nodes.InspectFail:
		return "Mend the cause and apply again: the inspection is then repeated."
	case nodes.Error:
		return "Undeploying the machine did not finish. Mend the cause and destroy again."
	}
	return "See `baremetal node show` and the conductor's log; mend the cause and apply again."
}

func adviseReserved(err *ReservedError) string {
	if err.Node.InstanceUUID == "" {
		return "That reservation was released, by another run or by hand. Run terraform plan again: it proposes a new one."
	}
	return fmt.Sprintf("Somebody else uses this node, or perhaps an earlier run of yours that was killed. If it is yours, take it over with\n\n"+
		"  terraform import <address of the metal_deployment> %s\n\nelse choose another node.", err.Node.UUID)
}

// adviseStatus knows the refusals of Ironic that users meet.
func adviseStatus(err error) string {
	var endpoint *EndpointError
	isEndpoint := errors.As(err, &endpoint)
	var certificate *tls.CertificateVerificationError
	var status *StatusError
	if !errors.As(err, &status) {
		switch {
		case errors.As(err, &certificate):
			return "The server's certificate is not trusted here. Set cacert_file to the certificate of the authority that signed it, " +
				"and check that endpoint (METAL_ENDPOINT) names the host as the certificate does."
		case isConnectionLoss(err):
			return "Is Ironic running, and can this machine reach it? Check endpoint (METAL_ENDPOINT). " +
				"Set api_timeout to wait for an Ironic that is just starting."
		case isEndpoint:
			return "Check endpoint (METAL_ENDPOINT): it must be the URL of Ironic's API, such as https://ironic.example.com:6385."
		}
		return ""
	}
	switch status.Status {
	case http.StatusUnauthorized:
		return "Ironic does not accept the credentials. Check auth_type, username (METAL_USERNAME) and password (METAL_PASSWORD), or cloud (OS_CLOUD)."
	case http.StatusForbidden:
		if strings.Contains(status.Message, "is protected") {
			return "The node is protected. Remove its protection first (protected = false), if it really may be wiped."
		}
		return "The credentials are valid but lack the right to do this: ask for a role on the baremetal service, such as admin or member."
	case http.StatusNotFound:
		if status.foreign && strings.Contains(status.URL, "/v1/chassis") {
			return "Something before Ironic, such as a proxy, lets no request for /v1/chassis pass. Have that changed, or set coordination = \"process\" " +
				"in provisioning_limit to do without the lock."
		}
		if isEndpoint || status.foreign {
			return "Something answers there, but not Ironic. Check endpoint (METAL_ENDPOINT): host, port, and the path before /v1."
		}
	case http.StatusConflict:
		return adviseConflict(status.Message)
	case http.StatusBadRequest:
		return adviseBadRequest(status.Message)
	}
	if isEndpoint {
		return "Check endpoint (METAL_ENDPOINT): it must be the URL of Ironic's API, such as https://ironic.example.com:6385."
	}
	return ""
}

func adviseConflict(message string) string {
	for _, duplicate := range []struct{ text, resource, advice string }{
		{"A node with name ", "metal_host", "Names are unique in Ironic. Import the existing node, or choose another name."},
		{"A port with MAC address ", "metal_host", "A MAC address belongs to one node only. Import the node that has it, or correct the ports."},
		{"An allocation with name ", "metal_allocation", "Names of allocations are unique in Ironic. Import the existing allocation, or choose another name."},
	} {
		if _, rest, ok := strings.Cut(message, duplicate.text); ok {
			name, _, _ := strings.Cut(rest, " already exists")
			return fmt.Sprintf("%s Perhaps it was made by an earlier run of yours that was killed:\n\n  terraform import <address of the %s> %s", duplicate.advice, duplicate.resource, name)
		}
	}
	for _, known := range []struct{ text, advice string }{
		{"because the node is active", "The node is deployed. Destroy its metal_deployment first, or undeploy it with `baremetal node undeploy`. " +
			"To leave the machine running with its reservation, take the metal_allocation out of the state: terraform state rm <its address>."},
		{"is associated with instance", "Something is allocated to or deployed on the node. Destroy its metal_deployment and metal_allocation first."},
		{"Can not delete node", "Destroy what runs on the node first."},
		{"can only be made protected", "Ironic protects only what is deployed: set protected when something is deployed on the node."},
		{"can not have 'retired' set", "Make it manageable first (target_state = \"manageable\"), then retire it."},
		{"have resource_class updated unless", "Destroy its metal_deployment first, or leave resource_class as it is while something is deployed on the node."},
		{"updated unless", "Put it into maintenance for the change (maintenance = true), or, if nothing is deployed on it, make it manageable first (target_state = \"manageable\")."},
		{"is locked by host", "The node is busy with another operation. Apply again when it has ended."},
		{"while a state transition is in progress", "The node is busy with another operation. Apply again when it has ended."},
	} {
		if strings.Contains(message, known.text) {
			return known.advice
		}
	}
	return ""
}

func adviseBadRequest(message string) string {
	for _, known := range []struct{ text, advice string }{
		{"which supports driver", "Check driver and conductor_group: no running conductor serves that combination."},
		{"in maintenance mode", "Take the node out of maintenance first (maintenance = false)."},
		{"failed to validate", "Check image and driver_info: Ironic lacks something that this deployment needs."},
		{"Nodes cannot be found", "Check candidate_nodes: each must be the name or UUID of an existing node."},
	} {
		if strings.Contains(message, known.text) {
			return known.advice
		}
	}
	return ""
}

// Sentence makes an error's text presentable: a capital letter, unless it begins with the name of an attribute, and a full stop.
func Sentence(err error) string {
	text := err.Error()
	if text == "" {
		return text
	}
	if !beginsWithName(err) {
		first, size := utf8.DecodeRuneInString(text)
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

func beginsWithName(err error) bool {
	var version *VersionError
	if errors.As(err, &version) && strings.HasPrefix(err.Error(), version.Feature) {
		return !strings.Contains(version.Feature, " ")
	}
	first, _, _ := strings.Cut(err.Error(), " ")
	return strings.Contains(first, "_")
}
