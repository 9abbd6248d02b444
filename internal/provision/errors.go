package provision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// FailedError says that Ironic accepted an operation and the operation failed.
type FailedError struct {
	Node *ironic.Node // as last seen
	Goal Goal

	Step     string // the deploy step that failed, such as "deploy.write_image"; empty if Ironic does not tell
	LastStep string // if so, the last deploy step that was seen in progress

	MACs []string // of the cards from which the machine may boot, if they were looked up
}

// Error returns the node's state and last_error.
func (e *FailedError) Error() string { return quoted(e) }

func (e *FailedError) quote() (fact, words string) {
	fact = fmt.Sprintf("node %s is in state %q", ironic.NodeLabel(e.Node), e.Node.ProvisionState)
	switch {
	case e.Step != "":
		fact += ", because deploy step " + e.Step + " failed"
	case e.LastStep != "":
		fact += "; the last deploy step seen was " + e.LastStep
	}
	return fact + withheld(e.Node), ironic.FirstLine(e.Node.LastError)
}

// withheld says that Ironic hides the cause of a failure from the user, as the end of a sentence; "" if it does not.
func withheld(n *ironic.Node) string {
	if n.LastError != "" || !n.Hidden.LastError {
		return ""
	}
	return "; Ironic's policy hides last_error from this user (rule baremetal:node:get:last_error), so ask the owner of the node for the cause"
}

// quoted returns the text of an error that ends with Ironic's words.
func quoted(e quoting) string {
	fact, words := e.quote()
	if words == "" {
		return fact
	}
	return fact + ": " + words
}

// InvalidNodeError says that Ironic refused to deploy a node because something is missing on it.
type InvalidNodeError struct {
	Node    *ironic.Node
	Reasons []string // from Ironic's answer
}

// Error returns the reasons.
func (e *InvalidNodeError) Error() string {
	return fmt.Sprintf("node %s failed validation: %s", ironic.NodeLabel(e.Node), strings.Join(e.Reasons, "; "))
}

// TimeoutError says that a node did not reach a goal in time. The operation may still be in progress in Ironic.
type TimeoutError struct {
	Node  *ironic.Node // as last seen
	Goal  Goal
	After time.Duration
	MACs  []string // of the cards from which the machine may boot, if they were looked up
}

// Error returns the node's state and the time.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("node %s is still in state %q after %s", ironic.NodeLabel(e.Node), e.Node.ProvisionState, e.After)
}

// RefusedError says that the provider sent nothing because the node's state does not allow the operation.
type RefusedError struct {
	Node   *ironic.Node
	Goal   Goal
	Reason string // includes what to do
}

// Error returns the node's state and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("node %s is in state %q: %s", ironic.NodeLabel(e.Node), e.Node.ProvisionState, e.Reason)
}

// ReservedError says that another instance reserves the node, or that the expected reservation is gone.
type ReservedError struct {
	Node    *ironic.Node
	Ours    string // the reservation that was expected; may be empty
	Sibling bool   // another deployment of this run has reserved the node
}

// Error names the other reservation.
func (e *ReservedError) Error() string {
	if e.Node.InstanceUUID == "" {
		return fmt.Sprintf("node %s is not reserved by %s any more", ironic.NodeLabel(e.Node), e.Ours)
	}
	return fmt.Sprintf("node %s is reserved by %s", ironic.NodeLabel(e.Node), e.Node.InstanceUUID)
}

// StoppedError says that the user has stopped the run during a walk (Ctrl-C). ironic.IsInterrupted reports it.
type StoppedError struct {
	Node    *ironic.Node
	Goal    Goal
	Waiting bool // for a slot: the walk has started nothing
	err     error
}

// Error says what the walk was doing.
func (e *StoppedError) Error() string { return fmt.Sprintf("%s: %v", e.Goal.Doing(), e.err) }

// Unwrap returns the error of the context.
func (e *StoppedError) Unwrap() error { return e.err }

// Explain turns an error into a diagnostic: what failed, what to do next, and Ironic's words. doing is an infinitive with its object, such
// as "deploy node rack1-01".
func Explain(doing string, err error) (summary, detail string) {
	summary = "Could not " + doing
	var stopped *StoppedError
	var once *OnceError
	switch {
	case errors.As(err, &once) && !IsUnwatched(err) && ironic.IsInterrupted(err):
		return summary, once.interrupted()
	case errors.As(err, &stopped) && stopped.Waiting:
		return summary, fmt.Sprintf("The run was interrupted while node %s waited for a slot of the provisioning limit. Nothing was started on it. Apply again.", ironic.NodeLabel(stopped.Node))
	case IsUnwatched(err):
		summary = "Unfinished: " + doing
	case ironic.IsInterrupted(err):
		return summary, "The run was interrupted. Ironic continues the operations that were started; the next apply continues from there."
	}
	fact, words := split(err)
	paragraphs := []string{fact, advise(err), bootAdvice(err), words}
	var status *ironic.StatusError
	if errors.As(err, &status) && status.RequestID != "" && status.Status >= http.StatusInternalServerError && !ironic.IsForbidden(err) {
		paragraphs = append(paragraphs, "Find the request in Ironic's log by its ID, "+status.RequestID+".")
	}
	return summary, strings.Join(slices.DeleteFunc(paragraphs, func(p string) bool { return p == "" }), "\n\n")
}

// quoting is an error that ends with Ironic's words.
type quoting interface {
	error
	quote() (fact, words string)
}

// split returns what the provider says of an error, and Ironic's words, each as a sentence or "". It does not split an error to which
// wrapping has added text.
func split(err error) (fact, words string) {
	var status *ironic.StatusError
	var quote quoting
	switch {
	case errors.As(err, &status) && err.Error() == status.Error() && !status.Foreign && status.Message != "":
		return "", "Ironic's answer: " + ended(status.Error())
	case errors.As(err, &quote) && err.Error() == quote.Error():
		if fact, words = quote.quote(); words != "" {
			return Sentence(errors.New(fact)), "Ironic's last_error: " + ended(words)
		}
	}
	return Sentence(err), ""
}

// advise returns what to do about an error, or "" if the error's own text says enough.
func advise(err error) string {
	var unknown *rest.UnknownConfigError
	var version *ironic.VersionError
	var failed *FailedError
	var timeout *TimeoutError
	var reserved *ReservedError
	var defect *ironic.ParentNodeError
	var none *NoMatchError
	var drive *NoConfigDriveError
	var loop *BootLoopError
	var changed *ImageChangedError
	var moved *BootChangedError
	var invalid *InvalidNodeError
	var driver *UnknownDriverError
	var redirect *rest.RedirectError
	var advised interface{ advice() string }
	switch {
	case errors.As(err, &redirect):
		return "" // it says what to do
	case errors.As(err, &advised):
		return advised.advice()
	case errors.As(err, &driver):
		return "Set driver to one of them, or enable it in enabled_hardware_types of the conductors' configuration."
	case adviseLock(err) != "":
		return adviseLock(err)
	case errors.As(err, &unknown):
		return "Apply what it depends on first, with -target, or set the value directly."
	case isAboutConnection(err):
		return adviseConnection(err)
	case errors.As(err, &version):
		if version.Server >= version.Needs {
			return fmt.Sprintf("Raise microversion in the provider block to at least %q, or remove it.", version.Needs)
		}
		return "Upgrade Ironic, or remove the setting."
	case errors.As(err, &failed):
		return adviseFailed(failed) + orAskIPMI(failed.Node)
	case errors.As(err, &timeout):
		return "The operation may still be in progress in Ironic. If the machine needs longer, raise the resource's timeouts. After a create that timed out, Terraform " +
			"starts over. To make the next apply wait for the operation instead, run terraform untaint for the resource first."
	case errors.As(err, &reserved):
		return adviseReserved(reserved)
	case errors.As(err, &defect):
		return "Upgrade Ironic, or ask your distribution for the corrected package. Until then the provider changes nothing else through this Ironic."
	case errors.As(err, &none):
		return none.Advice()
	case errors.As(err, &drive):
		return "Use a boot interface with virtual media, such as redfish-virtual-media, or remove config_drive and put its contents into the ISO."
	case errors.As(err, &loop):
		return "The machine was not restarted. Check the machine and the image. A new version of the image, or terraform apply -replace, resets the count."
	case errors.As(err, &moved):
		return "The node was not changed. Run terraform plan again."
	case errors.As(err, &invalid):
		if strings.Contains(err.Error(), "ramdisk_boot") {
			return fmt.Sprintf("The node's boot interface, %q, cannot boot a live ISO. Set hardware_interfaces = { boot = \"redfish-virtual-media\" } or \"ipxe\" on its metal_host.", invalid.Node.BootInterface)
		}
	case errors.As(err, &changed):
		return "No machine was restarted with it. Wait until the image has been built, then run terraform plan again."
	}
	return adviseStatus(err)
}

func adviseFailed(err *FailedError) string {
	node := err.Node
	if node.Fault != "" {
		return fmt.Sprintf("Ironic has put the node into maintenance (fault %q). Fix the cause; the next apply tries again.", node.Fault)
	}
	if ByAgent(node) {
		return "Ironic has no BMC credentials of the machine, and works through its agent there, which must run and answer, with [deploy]fast_track on. Start the machine by hand, so that it " +
			"boots Ironic's ramdisk, and apply again; or give the host a bmc with credentials in place of power_control."
	}
	if err.Goal == GoalConfigured {
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

func adviseReserved(err *ReservedError) string {
	if err.Node.InstanceUUID == "" {
		return "Another run or an operator has released the reservation. Run terraform plan again: it proposes a new one."
	}
	if id := err.Node.AllocationUUID; id != "" && err.Ours == "" && !Occupied(err.Node) {
		return fmt.Sprintf("An allocation has reserved the node, and nothing is deployed on it. If the allocation is a metal_allocation of this configuration, set allocation_id "+
			"to its id, %s. Otherwise choose another node.", id)
	}
	holder := "A metal_deployment of this or another configuration, or another client, has this node."
	if err.Sibling {
		holder = "Another metal_deployment of this apply has this node."
	}
	return fmt.Sprintf("%s A node runs only one deployment. If the other one is in this state, this command names it:\n\n  terraform state list -id=%s\n\n"+
		"Give one of the two another node. Do not import the node a second time: destroying either of the two undeploys the machine. "+
		"Only a machine that no configuration manages can be imported:\n\n  terraform import <address of the metal_deployment> %s", holder, err.Node.UUID, err.Node.UUID)
}

// adviseStatus returns advice for refusals of Ironic that users meet.
func adviseStatus(err error) string {
	var status *ironic.StatusError
	if !errors.As(err, &status) {
		return adviseLoss(err, "Ironic", endpointSetting)
	}
	if refusal := ironic.RefusalBy(err); refusal != nil {
		return adviseRefusal(refusal)
	}
	switch status.Status {
	case http.StatusUnauthorized:
		return "Ironic does not accept the credentials. Check auth_type, username (METAL_USERNAME) and password (METAL_PASSWORD), or cloud (OS_CLOUD). " +
			"A token that was given (OS_TOKEN) cannot be renewed: get a new one."
	case http.StatusForbidden:
		return "The node is protected. If the machine may be wiped, first apply protected = false for its metal_deployment, or without Terraform: baremetal node unset <node> --protected."
	case http.StatusNotFound:
		if status.Foreign && strings.Contains(status.URL, "/v1/chassis") {
			return "Something before Ironic, such as a proxy, blocks requests for /v1/chassis. Allow them there, or set coordination = \"process\" " +
				"in provisioning_limit to work without the lock."
		}
		if strings.HasPrefix(status.Message, "Node ") && !status.Foreign {
			if status.Project != "" {
				return fmt.Sprintf("Ironic has no such node, or does not show it to project %s, because that project neither owns nor leases it. Check the name or UUID; baremetal node list shows the nodes of the project.", status.Project)
			}
			return "Ironic has no such node. Check the name or UUID; baremetal node list shows all nodes."
		}
		if status.Foreign {
			return notIronic
		}
	case http.StatusConflict:
		return adviseConflict(status.Message)
	case http.StatusBadRequest:
		return adviseBadRequest(status.Message)
	}
	return ""
}

// adviseLock says what to do about a lock that was not free or was lost; "" for other errors.
func adviseLock(err error) string {
	var locked *throttle.LockedError
	var lost *throttle.LostError
	switch {
	case errors.As(err, &locked) && locked.Lock.Hold > 0:
		return fmt.Sprintf("A run normally holds the lock for a few seconds. End the run that holds it, or delete its record in Ironic: %s. To use no lock, set coordination = \"process\" "+
			"in provisioning_limit. Nothing was started.", locked.Where)
	case errors.As(err, &locked):
		return "Apply again when that has ended, or raise timeouts."
	case errors.As(err, &lost):
		return "Check that Ironic answers, and apply again."
	}
	return ""
}

func adviseConflict(message string) string {
	for _, duplicate := range []struct{ text, resource, advice string }{
		{"A node with name ", "metal_host", "Names are unique in Ironic. Import the existing node, or choose another name."},
		{"A port with MAC address ", "metal_host", "A MAC address belongs to one node only. Import the node that has it, or correct the ports."},
		{"An allocation with name ", "metal_allocation", "Names of allocations are unique in Ironic. Import the existing allocation, or choose another name."},
		{"A deploy template with name ", "metal_deploy_template", "Names of deploy templates are unique in Ironic. Import the existing template, or choose another name."},
		{"A runbook with name ", "metal_runbook", "Names of runbooks are unique in Ironic. Import the existing runbook, or choose another name."},
	} {
		if _, rest, ok := strings.Cut(message, duplicate.text); ok {
			name, _, _ := strings.Cut(rest, " already exists")
			return fmt.Sprintf("%s An earlier run of yours that was killed may have created it:\n\n  terraform import <address of the %s> %s", duplicate.advice, duplicate.resource, name)
		}
	}
	for _, known := range []struct{ text, advice string }{
		{"because the node is active", "The node is deployed. Destroy its metal_deployment first, or undeploy it with `baremetal node undeploy`. " +
			"To leave the machine running with its reservation, remove the metal_allocation from the state: terraform state rm <its address>."},
		{"is associated with instance", "Something is allocated to or deployed on the node. Destroy its metal_deployment and metal_allocation first."},
		{"Can not delete node", "The node is in use. Destroy what runs on it first."},
		{"can only be made protected", "Ironic protects only deployed nodes: set protected once the node is deployed."},
		{"can not have 'retired' set", "Ironic retires no available node. Make the node manageable first (target_state = \"manageable\"), then retire it."},
		{"have resource_class updated unless", "Ironic does not change resource_class in the node's present state. Destroy its metal_deployment first, or leave resource_class as it is while something is deployed on the node."},
		{"updated unless", "Ironic does not change this in the node's present state. Put the node into maintenance for the change (maintenance = true), or, if nothing is deployed on it, make it manageable first (target_state = \"manageable\")."},
		{"is locked by host", "Another operation on the node is in progress. Apply again when it has ended."},
		{"while a state transition is in progress", "Another operation on the node is in progress. Apply again when it has ended."},
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
		{"Nodes cannot be found", "A candidate does not exist. Check candidate_nodes: each must be the name or UUID of an existing node."},
	} {
		if strings.Contains(message, known.text) {
			return known.advice
		}
	}
	return ""
}

// Sentence formats an error as a sentence: it adds a full stop, and a capital letter unless the text begins with the name of an
// attribute.
func Sentence(err error) string {
	text := err.Error()
	if text == "" {
		return text
	}
	if !beginsWithName(err) {
		first, size := utf8.DecodeRuneInString(text)
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return ended(text)
}

// ended returns a text with a full stop at its end.
func ended(text string) string { return strings.TrimSuffix(text, ".") + "." }

func beginsWithName(err error) bool {
	var version *ironic.VersionError
	if errors.As(err, &version) && strings.HasPrefix(err.Error(), version.Feature) {
		return !strings.Contains(version.Feature, " ")
	}
	first, _, _ := strings.Cut(err.Error(), " ")
	return strings.Contains(first, "_")
}

// UnknownDriverError says that no conductor of the site has enabled a driver.
type UnknownDriverError struct {
	Driver  string
	Enabled []string // the drivers that conductors have enabled
	Err     error    // Ironic's answer; nil: it was not tried
}

// Error names the enabled drivers.
func (e *UnknownDriverError) Error() string {
	return fmt.Sprintf("the site has no driver %s. Enabled are %s", e.Driver, strings.Join(e.Enabled, ", "))
}

// Unwrap returns Ironic's answer.
func (e *UnknownDriverError) Unwrap() error { return e.Err }

// CheckDriver returns an UnknownDriverError if no conductor has enabled a driver. It returns nil if Ironic does not tell, or has no
// conductor. It is called during plan.
func (s *Site) CheckDriver(ctx context.Context, driver string) error {
	names := namesOf(s.driversForPlan(ctx))
	if len(names) == 0 || slices.Contains(names, driver) {
		return nil
	}
	return &UnknownDriverError{Driver: driver, Enabled: names}
}

// explainDriver returns an UnknownDriverError if Ironic has refused a driver that no conductor has enabled; else err.
func (s *Site) explainDriver(ctx context.Context, driver string, err error) error {
	var status *ironic.StatusError
	if !errors.As(err, &status) || driver == "" || !strings.Contains(status.Message, "which supports driver") {
		return err
	}
	all, problem := s.Drivers(ctx)
	enabled := namesOf(all)
	if problem != nil || slices.Contains(enabled, driver) { // no conductor of the group has it
		return err
	}
	return &UnknownDriverError{Driver: driver, Enabled: enabled, Err: err}
}

// driverOf returns the driver that a patch sets; "" if none.
func driverOf(patch ironic.Patch) string {
	for _, edit := range patch {
		if driver, isText := edit.Value.(string); isText && edit.Path == "/driver" {
			return driver
		}
	}
	return ""
}
