// Package fakeironic is an OpenStack Ironic in memory. It keeps state, advances with the clock and refuses what real Ironic
// refuses. Tests and the fakeironic program share it.
//
// It follows Ironic's documentation and the observed answers of Ironic 21.4 (API 1.82) and 39 (API 1.115). It knows nothing
// about its clients.
//
// routes.go finds the function that answers a request, and control.go has what tests see and change besides the API. Package api reads
// requests and writes answers as Ironic does, and policy knows who may do what. Package conductor has the nodes and the work that goes on
// between requests, and machine the hardware behind a node.
package fakeironic

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/policy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/procedure"
)

// Server is one Ironic with one conductor. Its zero value is an empty Ironic that supports API versions up to 1.115.
// Callers must not change the fields while the Server answers requests. A Server is safe for concurrent use and starts no
// goroutine: each request first runs the events that were due before it, each with the time at which it was due.
type Server struct {
	fakehttp.Journal

	// MaxMicroversion is the highest supported API version; empty means "1.115". At "1.82" and below the server behaves as
	// Ironic 21.4 where 21.4 and 39 differ.
	MaxMicroversion string

	// StepTime is the duration of each transient state (verifying, cleaning, deploying, wait call-back, deleting, inspecting)
	// and of each power change. With zero it has ended by the next request.
	StepTime time.Duration

	// UnlockDelay is how long a node stays locked after an operation has reached its last state. The server writes last_error
	// at the end of it. Real conductors write state, error and lock one after the other, and clients can see the steps.
	UnlockDelay time.Duration

	// Username and Password are the http_basic credentials. With an empty Username the server needs none.
	Username, Password string

	// Identify, if set, is Keystone: it returns the user of a token, or false for an unknown one. The server then enforces its Policy. It
	// must not call methods of the Server.
	Identify func(token string) (Caller, bool)
	Policy   Policy

	// ParentNodeDefect makes any PATCH of a node set parent_node to the node itself, as 29.0.5 and 35.0.1 in Debian do.
	// Ironic can no longer deploy or undeploy such a node, or change its power.
	ParentNodeDefect bool

	// MaxConcurrentDeploy and MaxConcurrentClean are the conductor's max_concurrent_deploy and max_concurrent_clean.
	// Zero means no limit.
	MaxConcurrentDeploy, MaxConcurrentClean int

	// Discovery creates a node for every unknown machine that posts its inventory to /v1/continue_inspection, as Ironic does
	// since 24.1 (API 1.90) with [auto_discovery]enabled. The nodes get DiscoveryDriver; empty means "fake-hardware".
	Discovery       bool
	DiscoveryDriver string

	// DiscoveryKeepsPower is [inspector]power_off = false. Without it the server switches discovered machines off. Where it
	// cannot, for example with the driver ipmi, which has no credentials yet, it loses the inventory and sets last_error.
	DiscoveryKeepsPower bool

	// FastTrack is [deploy]fast_track: an agent that runs on a machine is used without a restart. The power interface agent needs it.
	FastTrack bool

	// SwitchPorts enables the network interface ironic-networking, which configures switch ports since Ironic 35. Its networking service
	// knows every switch.
	SwitchPorts bool

	// DefaultResourceClass is the resource class of nodes that are created without one, such as discovered nodes.
	DefaultResourceClass string

	// Fail, if set, is called once at the end of every operation on a node. verb is the requested provision verb or power
	// target. If it returns a text, the operation fails with that last_error. An undeploy is two operations: the tear-down
	// (node.ProvisionState is deleting) and the cleaning after it (cleaning). Fail must not call methods of the Server.
	Fail func(node Node, verb string) string

	// Abandons, if set, is called once for every stay of a node in a state in which a conductor works on it, such as deploying. verb is
	// that of the operation. If it returns true, the thread of the conductor dies, as after a failed write to the database: the node stays
	// in the state, without a lock and with a last_error, which Ironic 39 empties a minute later. Abandons must not call methods of the
	// Server.
	Abandons func(node Node, verb string) bool

	// Skips, if set, is asked for every step of a manual cleaning or a service, such as "raid.create_configuration". If it returns
	// true, the step is left out without an error, as Ironic does with the steps of [api]disallow_clean_steps and
	// disallow_service_steps. Skips must not call methods of the Server.
	Skips func(step string) bool

	// CleansByRunbook is [conductor]automated_cleaning_step_source = hybrid with automated_cleaning_runbook_from_node: a machine whose
	// driver_info has cleaning_runbook is cleaned by that runbook, if the server has runbooks.
	CleansByRunbook bool

	// LLDP, if set, returns what a network card hears from its switch during an inspection, by its MAC address: the result of Announcement,
	// an empty list if it hears nothing, nil if the ramdisk does not listen ([inspector]extra_kernel_params without ipa-collect-lldp=1).
	// Each inspection then stores a new inventory. LLDP must not call methods of the Server.
	LLDP func(mac string) []any

	// ParsesLLDP is the inspection hook parse-lldp, which stores plugin_data.parsed_lldp.
	ParsesLLDP bool

	// Disks, if set, returns the disks of the machine of a node, as they are at first; without it, a machine has one disk. Disks must not
	// call methods of the Server.
	Disks func(node Node) []*Disk

	// Writes, if set, is called for each disk that Ironic's agent or a RAID step changes: what says how. The agent heeds
	// skip_block_devices of the node. Machines with the deploy interface fake have no agent. Writes must not call methods of the Server.
	Writes func(node Node, serial, what string)

	// Answers, if set, says whether a BMC answers at an IP address or name that driver_info has, followed by a colon and the port if
	// that is not the usual one; without it, all do. Names that end in ".invalid" never do. With a BMC that does not answer, manage
	// ends in enroll with a last_error, and what else calls it fails, too. Answers must not call methods of the Server.
	Answers func(bmc string) bool

	// IgnoresSoftOff, if set, says whether the operating system of a machine ignores requests to shut down: a soft power off then
	// fails after its time-out, 10 minutes by default, and the machine stays on. So does a soft restart, but over Redfish it seems to
	// succeed (reference/ironic.md#soft-restarts). It must not call methods of the Server.
	IgnoresSoftOff func(node Node) bool

	// NoSoftPower is a power interface that can switch a machine off only the hard way: the server refuses soft power changes.
	NoSoftPower bool

	// ImageFault, if set, is called for every ISO that the conductor would fetch: the boot_iso of a deployment or rebuild with
	// the deploy interface ramdisk, when it starts, and an image attached as virtual media. If it returns a text, such as "Got
	// HTTP code 404 instead of 200 in response to HEAD request.", the fetch fails with it: the deployment ends in deploy failed
	// with the machine off, the drive keeps its image, and last_error has the text. The server never fetches anything.
	// ImageFault must not call methods of the Server.
	ImageFault func(url string) string

	// Reject, if set, is called first for every request. If it returns a Rejection, that replaces the answer. It may read the
	// body of the request and need not restore it. Reject may call methods of the Server.
	Reject func(r *http.Request) *Rejection

	mu        sync.Mutex
	conductor conductor.Conductor

	conductorGroups map[string]bool // of the seed: the conductor serves them, too

	portgroups []*portgroup
	groupsMade int // port groups, also those that were deleted
	chassis    []*chassis
	templates  procedure.List
	runbooks   procedure.List
	rules      procedure.Rules
}

const (
	newestMinor = 115 // Ironic 39

	versionHeader = "X-OpenStack-Ironic-API-Version"
	minHeader     = "X-OpenStack-Ironic-API-Minimum-Version"
	maxHeader     = "X-OpenStack-Ironic-API-Maximum-Version"
)

// maxMinor is the minor part of the highest supported API version.
func (s *Server) maxMinor() int {
	minor, err := strconv.Atoi(strings.TrimPrefix(s.MaxMicroversion, "1."))
	if err != nil {
		return newestMinor
	}
	return minor
}

// serves reports whether the conductor serves nodes with that driver in that group.
func (s *Server) serves(driver, group string) bool {
	_, found := conductor.FindDriver(driver)
	return found && (group == "" || s.conductorGroups[group])
}

// legacy reports whether the server behaves as Ironic 21.4.
func (s *Server) legacy() bool { return s.maxMinor() <= api.LegacyMinor }

// Request is one logged request.
type Request = fakehttp.Request

// Rejection replaces the answer to a request: the client sees Status with Header and Body, or a broken connection if Status is zero.
// Unless After, Late or Fails is set, the request has no effect. They work for every kind of request.
type Rejection struct {
	Status int
	Header http.Header
	Body   string

	// Drop breaks the connection instead of answering.
	Drop bool

	// After lets the request take effect and replaces only its answer: it was executed, and its answer is lost.
	After bool

	// Late lets the request take effect that much later, as behind a proxy that has answered 504
	// meanwhile. What the server would answer then is lost.
	Late time.Duration

	// Fails lets the server accept a request for a change of a node, answer as for a success, and then do nothing but write this text to
	// last_error, after one StepTime. The node is locked until then, and neither its states nor their times change. Status is the answer;
	// zero means 202.
	Fails string
}

// reply turns the rejection into the answer that the client sees.
func (r *Rejection) reply() api.Reply {
	status := r.Status
	if status == 0 && r.Fails != "" {
		status = http.StatusAccepted
	}
	if r.Drop || status == 0 {
		return api.Reply{Drop: true}
	}
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return api.Reply{Status: status, Header: header, Body: []byte(r.Body)}
}

// Node is a copy of a node in the database.
type Node struct {
	UUID, Name, ResourceClass    string
	ProvisionState               string
	PowerState, TargetPowerState string
	InstanceUUID, AllocationUUID string
	LastError, MaintenanceReason string
	Reservation                  string
	Maintenance                  bool
	Traits                       []string
	Raw                          map[string]any // all attributes of the API by name, unmasked
}

// public copies the node.
func public(n *conductor.Node) Node {
	return Node{
		UUID: n.Str("uuid"), Name: n.Str("name"), ResourceClass: n.Str("resource_class"),
		ProvisionState: n.Str("provision_state"),
		PowerState:     n.Str("power_state"), TargetPowerState: n.Str("target_power_state"),
		InstanceUUID: n.Str("instance_uuid"), AllocationUUID: n.Str("allocation_uuid"),
		LastError: n.Str("last_error"), MaintenanceReason: n.Str("maintenance_reason"),
		Reservation: n.Str("reservation"),
		Maintenance: n.Flag("maintenance"),
		Traits:      n.Traits(),
		Raw:         api.Object(api.Clone(n.Fields)),
	}
}

// targetOf returns the projects to which a node belongs.
func targetOf(n *conductor.Node) policy.Target {
	if n == nil {
		return policy.Target{}
	}
	return policy.Target{Owner: n.Str("owner"), Lessee: n.Str("lessee")}
}

// sees reports whether a node exists for the user of a request.
func (s *Server) sees(c *api.Call, n *conductor.Node) bool {
	return s.Policy.Grants(c, "node:get", targetOf(n))
}

// seen is Find for the nodes that exist for the user of a request.
func (s *Server) seen(c *api.Call, ref string) *conductor.Node {
	if n := s.conductor.Find(ref); n != nil && s.sees(c, n) {
		return n
	}
	return nil
}

// movedTo is the error of a patch that moves a port or a group to another node: in 21.4 that of objects.Node.get
// (ironic/objects/node.py), in 39 that of authorize_node_link (ironic/api/controllers/v1/utils.py).
func (s *Server) movedTo(node any) error {
	ref := api.Text(node)
	switch {
	case !s.legacy() && s.conductor.Find(ref) == nil:
		return api.Fault(http.StatusBadRequest, "Unable to apply the requested node_uuid '%s'. Requested value was invalid.", ref)
	case !api.IsUUID(ref):
		return api.Fault(http.StatusBadRequest, "Expected a UUID or int but received %s.", api.PyText(node))
	case s.conductor.NodeByUUID[ref] == nil:
		return api.Fault(http.StatusBadRequest, "Node %s could not be found.", ref)
	}
	return api.UnexpectedRPC()
}

// lists reports whether a list of nodes, or of their parts, has a node for the user of a request.
func (s *Server) lists(c *api.Call, kind string, n *conductor.Node) bool {
	t := targetOf(n)
	return s.Policy.Grants(c, kind+":list_all", policy.Target{}) || c.Caller.Project == t.Owner || c.Caller.Project == t.Lessee
}
