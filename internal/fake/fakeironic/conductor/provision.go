package conductor

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// manage verifies an enrolled node; others become manageable at once.
func (c *Conductor) manage(n *Node) {
	if n.State() != Enroll {
		c.rest(n, Manageable, "", "")
		return
	}
	o := operation{
		verb: string(VerbManage), phases: c.stay(Verifying),
		fail: func(n *Node, text string) { c.rest(n, Enroll, "", text) },
		done: func(n *Node) {
			switch {
			case n.byAgent():
				n.Put("power_state", PowerOn)
			case n.Uses("power") != "fake" && n.Str("power_state") == "":
				n.Put("power_state", PowerOff)
			}
			n.noteBoot()
			n.noteVendor()
			if strings.HasSuffix(n.Uses("management"), "redfish") && n.Str("health") == "" {
				n.Put("health", "OK") // Ironic reads it when it polls the power state
			}
			c.rest(n, Manageable, "", "")
		},
	}
	if reason := c.PowerFault(n); reason != "" {
		o.defect = "Failed to validate power driver interface for node " + n.Str("uuid") + ". Error: " + reason
	}
	c.begin(n, o, Manageable)
}

// noteVendor notes what the BMC calls the vendor of the machine (node_cache_vendor in ironic/conductor/utils.py of 21.4 and 39.0).
func (n *Node) noteVendor() {
	properties := api.Object(api.Clone(n.Fields["properties"]))
	switch management := n.Uses("management"); {
	case management == "ipmitool":
		properties["vendor"] = "unknown"
	case strings.HasSuffix(management, "redfish"):
		properties["vendor"] = "Contoso"
	}
	n.Put("properties", properties)
}

// inspect collects the inventory. The inspect interface fake finds nothing.
func (c *Conductor) inspect(n *Node) error {
	how := n.Uses("inspect")
	if how == "no-inspect" {
		return api.Fault(http.StatusBadRequest, "Driver %s does not support inspect (disabled or not implemented).", n.Str("driver"))
	}
	phases := c.stay(Inspecting)
	if how == "agent" {
		phases = c.stay(Inspecting, InspectWait, Inspecting)
	}
	n.Put("inspection_started_at", api.Timestamp(c.Now))
	n.Put("inspection_finished_at", nil)
	c.begin(n, operation{
		verb: string(VerbInspect), phases: phases,
		fail: func(n *Node, text string) { c.rest(n, InspectFail, Manageable, text) },
		done: func(n *Node) {
			if how != "fake" {
				c.Discover(n)
			}
			n.Put("inspection_started_at", nil)
			n.Put("inspection_finished_at", api.Timestamp(c.Now))
			c.rest(n, Manageable, "", "")
		},
	}, Manageable)
	return nil
}

// abort ends a wait for the ramdisk or a hold.
func (c *Conductor) abort(n *Node) error {
	if n.Flag("maintenance") && (n.State() == ServiceWait || n.State() == ServiceFail) {
		return api.Fault(http.StatusConflict, "Can not abort service on node \"%s\" while it is in maintenance mode. Please remove the "+
			"node from maintenance prior to issuing the request to abort the service operation.", n.Str("uuid"))
	}
	if step := api.Object(api.Clone(n.Fields["service_step"])); n.State() == ServiceWait && step["abortable"] == false {
		step["abort_after"] = true // the abort waits for the end of the step
		n.Put("service_step", step)
		return nil
	}
	n.work = nil
	target := State(n.Str("target_provision_state"))
	// Abort is allowed only in these states.
	//exhaustive:ignore
	switch n.State() {
	case CleanWait, CleanHold:
		text := "By request, the clean operation was aborted"
		if kind, name := api.StepName(api.Object(n.Fields["clean_step"])); name != "" {
			text += fmt.Sprintf(" during or after the completion of step \"%s.%s\"", kind, name)
		}
		c.cleaned(n, n.Uses("deploy"))
		c.rest(n, CleanFail, target, text)
	case InspectWait:
		c.rest(n, InspectFail, target, "Inspection was aborted by request.")
	case RescueWait:
		c.rest(n, RescueFail, target, "By request, the rescue operation was aborted.")
	case DeployWait, DeployHold:
		c.rest(n, DeployFail, target,
			"By request, the deploy operation was aborted during or after the completion of step \"deploy.deploy\"")
	case ServiceWait, ServiceHold:
		c.rest(n, ServiceFail, target, "By request, the service operation was aborted")
	case ServiceFail:
		c.rest(n, Active, "", "By request, the service operation was aborted")
	}
	return nil
}

// unhold continues a held operation.
func (c *Conductor) unhold(n *Node) {
	o := operation{verb: string(VerbUnhold)}
	in, failed, target := Servicing, ServiceFail, Active
	// Unhold is allowed only in held states.
	//exhaustive:ignore
	switch n.State() {
	case CleanHold:
		in, failed, target = Cleaning, CleanFail, Manageable
	case DeployHold:
		in, failed = Deploying, DeployFail
	}
	o.phases = c.stay(in)
	o.fail = func(n *Node, text string) { c.rest(n, failed, target, text) }
	o.done = func(n *Node) { c.rest(n, target, "", "") }
	c.begin(n, o, target)
}

// rescue boots a rescue ramdisk.
func (c *Conductor) rescue(n *Node, request Request) error {
	if n.Flag("maintenance") {
		return InMaintenance("rescuing", n)
	}
	if n.Uses("rescue") == "no-rescue" {
		return api.Fault(http.StatusBadRequest, "Driver %s does not support rescue (disabled or not implemented).", n.Str("driver"))
	}
	if reason := c.NetworkFault(n); reason != "" {
		return api.Fault(http.StatusBadRequest, "Failed to validate power or rescue info for node %s: %s", n.Str("uuid"), reason)
	}
	info := api.Object(api.Clone(n.Fields["instance_info"]))
	info["rescue_password"] = request.RescuePassword
	info["hashed_rescue_password"] = "hash of " + request.RescuePassword
	n.Put("instance_info", info)
	phases := c.stay(Rescuing)
	if n.Uses("rescue") != "fake" {
		phases = c.stay(Rescuing, RescueWait, Rescuing)
	}
	c.begin(n, operation{
		verb: string(VerbRescue), phases: phases,
		fail: func(n *Node, text string) { c.rest(n, RescueFail, Rescued, text) },
		done: func(n *Node) { c.rest(n, Rescued, "", "") },
	}, Rescued)
	return nil
}

// Request is the body of PUT states/provision.
type Request struct {
	Target         Verb
	Asked          string // target as the client wrote it
	ConfigDrive    any
	CleanSteps     []any
	DeploySteps    []any
	ServiceSteps   []any
	RescuePassword string
	HasPassword    bool
	NoRamdisk      bool
	Runbook        string
}

// Start starts the operation of the verb, or does it at once if it takes no time.
func (c *Conductor) Start(n *Node, request Request) error {
	if err := c.CheckInterfaces(n); err != nil {
		return err
	}
	err := c.start(n, request)
	if err == nil && n.work != nil {
		c.switchDeploy(n)
	}
	return err
}

func (c *Conductor) start(n *Node, request Request) error {
	switch request.Target.Canonical() {
	case VerbManage:
		c.manage(n)
	case VerbProvide:
		return c.provide(n)
	case VerbActive, VerbRebuild:
		return c.deploy(n, request)
	case VerbDeleted:
		return c.undeploy(n)
	case VerbClean:
		return c.clean(n, request)
	case VerbInspect:
		return c.inspect(n)
	case VerbAdopt:
		c.begin(n, operation{
			verb: string(VerbAdopt), phases: c.stay(Adopting),
			fail: func(n *Node, text string) { c.rest(n, AdoptFail, Active, text) },
			done: func(n *Node) {
				n.noteImage()
				c.startConsole(n)
				c.rest(n, Active, "", "")
			},
		}, Active)
	case VerbRescue:
		return c.rescue(n, request)
	case VerbUnrescue:
		if n.Flag("maintenance") {
			return InMaintenance("unrescuing", n)
		}
		c.begin(n, operation{
			verb: string(VerbUnrescue), phases: c.stay(Unrescuing),
			fail: func(n *Node, text string) { c.rest(n, UnrescueFail, Active, text) },
			done: func(n *Node) { c.rest(n, Active, "", "") },
		}, Active)
	case VerbService:
		return c.service(n, request)
	case VerbAbort:
		return c.abort(n)
	case VerbUnhold:
		c.unhold(n)
	case VerbDeploy, VerbUndeploy: // canonical has replaced them
	}
	return nil
}
