package conductor

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// rebuildNeedsImage reports whether Ironic has the bug that it cannot rebuild nodes without an image (since 26.1, API 1.92).
func (c *Conductor) rebuildNeedsImage() bool { return c.MaxMinor >= 92 }

// noteImage notes the kind of the image of an instance, and returns its instance_info.
func (n *Node) noteImage() map[string]any {
	info := api.Object(api.Clone(n.Fields["instance_info"]))
	inferImageType(info)
	n.Put("instance_info", info)
	if kind := api.Text(info["image_type"]); api.Text(info["image_source"]) != "" && kind != "" {
		n.Note("is_whole_disk_image", kind != "partition")
	}
	return info
}

// deploy checks and starts a deployment or a rebuild.
func (c *Conductor) deploy(n *Node, request Request) error {
	rebuild := request.Target == VerbRebuild
	if rebuild && n.Flag("protected") {
		return ProtectedFault(n)
	}
	if err := c.deployLimit(); err != nil {
		return err
	}
	info := api.Object(api.Clone(n.Fields["instance_info"]))
	source := api.Text(info["image_source"])
	if rebuild && c.rebuildNeedsImage() && !isURL(source) && !api.IsUUID(source) {
		return api.UnexpectedRPC()
	}
	info = n.noteImage() // even if the request is refused below
	c.switchDeploy(n)
	if err := c.validateDeploy(n); err != nil {
		return err
	}
	for _, item := range request.DeploySteps {
		if err := checkDeployStep(n, api.Object(item)); err != nil {
			return err
		}
	}
	if request.ConfigDrive != nil {
		info["configdrive"] = c.repaired(n, api.Clone(request.ConfigDrive))
	}
	n.Put("instance_info", info)

	o := c.deployment(n)
	o.verb = string(request.Target.Canonical())
	if skipsDeploy(request.DeploySteps) {
		o.phases = c.stay(Deploying)
		o.defect, o.flow = "No deploy steps returned by the driver", ""
	}
	c.begin(n, o, Active)
	if o.defect == "" {
		n.Put("deploy_step", map[string]any{"interface": "deploy", "step": "deploy", "priority": 100, "argsinfo": nil})
	}
	return nil
}

// deployment returns the operation of the deploy interface. The deploy interface fake does nothing.
func (c *Conductor) deployment(n *Node) operation {
	o := operation{
		flow:   flowDeployment,
		phases: c.stay(Deploying),
		fail: func(n *Node, text string) {
			n.Note("deploy_steps", nil)
			c.rest(n, DeployFail, Active, text)
		},
		done: c.deployed,
	}
	boot, how := n.Uses("boot"), n.Uses("deploy")
	switch how {
	case "ramdisk":
		c.deployRamdisk(n, &o)
	case "direct", "bootc", "custom-agent", "anaconda": // the installer of anaconda reports as the agent does
		o.phases = c.stay(Deploying, DeployWait, Deploying)
		o.phases[0].then = func(n *Node) {
			n.Machine.Empty(boot)
			c.restart(n) // into Ironic's ramdisk
		}
		o.defect = c.rootFault(n)
		o.done = func(n *Node) {
			c.writeImage(n)
			if n.byAgent() { // the agent restarts the machine into the image
				n.Machine.BootFrom(machine.DeviceDisk, true)
				n.Machine.Start()
			}
			c.switchPower(n, PowerOff)
			n.Machine.BootFrom(machine.DeviceDisk, true)
			c.switchPower(n, PowerOn)
			n.serveImage()
			c.deployed(n)
		}
		if how == "anaconda" {
			o.defect = c.anacondaDefect(n)
		}
	}
	if o.defect == "" {
		o.defect = c.networkDefect(n)
	}
	if done := o.done; n.Uses("deploy") != "fake" { // which has no networks
		o.done = func(n *Node) {
			c.switchTenant(n)
			done(n)
		}
	}
	return o
}

// checkDeployStep refuses to override Ironic's core step unless its priority is 0, which disables it.
func checkDeployStep(n *Node, step map[string]any) error {
	priority, is := api.Number(step["priority"])
	if step["interface"] != "deploy" || step["step"] != "deploy" || is && priority == 0 || step["priority"] == "0" {
		return nil
	}
	return api.Fault(http.StatusBadRequest, "Failed to validate deploy or power info for node %s: Validation of deploy steps from "+
		"\"deploy steps\" argument failed.deploy step deploy on interface deploy is a core step and cannot be overridden by user steps. "+
		"It may be disabled by setting the priority to 0", n.Str("uuid"))
}

// skipsDeploy reports whether the steps disable the core step, so that no step is left.
func skipsDeploy(steps []any) bool {
	for _, item := range steps {
		step := api.Object(item)
		if step["interface"] == "deploy" && step["step"] == "deploy" {
			return true
		}
	}
	return false
}

// validateDeploy checks the requirements of a deployment before Ironic accepts it.
func (c *Conductor) validateDeploy(n *Node) error {
	reason := c.PowerFault(n)
	if reason == "" {
		reason = c.deployFault(n)
	}
	if reason == "" {
		reason = n.traitFault()
	}
	source := api.Text(api.Object(n.Fields["instance_info"])["image_source"])
	switch {
	case reason == "":
		return nil
	case n.Uses("deploy") == "direct" && reason == imageFault(source):
		return api.Fault(http.StatusInternalServerError, "%s", reason)
	}
	return api.Fault(http.StatusBadRequest, "Failed to validate deploy or power info for node %s: %s", n.Str("uuid"), reason)
}

// traitFault says which traits of its instance a node lacks; "" if it has all.
func (n *Node) traitFault() string {
	has := n.Traits()
	missing := slices.DeleteFunc(api.Texts(api.Object(n.Fields["instance_info"])["traits"]), func(trait string) bool {
		return slices.Contains(has, trait)
	})
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("Cannot specify instance traits that are not also set on the node. Node %s is missing traits %s", n.Str("uuid"),
		strings.Join(missing, ", "))
}

// undeploy tears the instance down and cleans the node. After half of the tear-down, even if it fails then, it removes the
// instance and its allocation. The cleaning uses the interfaces of the instance.
func (c *Conductor) undeploy(n *Node) error {
	if n.Flag("protected") {
		return ProtectedFault(n)
	}
	if err := c.cleanLimit("unprovisioning"); err != nil {
		return err
	}
	target := Available
	if n.Flag("retired") {
		target = Manageable
	}
	how := n.Uses("deploy")
	defect := ""
	if !inert(how) {
		defect = c.tearDownDefect(n)
	}
	forget := func(n *Node) {
		n.stopConsole()
		if !inert(how) {
			n.Machine.Empty(n.Uses("boot"))
			c.switchPower(n, PowerOff)
		}
		n.Put("instance_info", map[string]any{})
		n.Put("instance_uuid", nil)
		n.Put("instance_name", nil)
		n.unnote("is_whole_disk_image")
		n.Note("deploy_steps", nil)
		c.forgetVIFs(n)
		c.resetSwitches(n)
		c.dropAllocation(n)
	}
	c.begin(n, operation{
		verb:   string(VerbDeleted),
		phases: []phase{{in: Deleting, length: c.StepTime / 2, then: forget}, {in: Deleting, length: c.StepTime - c.StepTime/2}},
		fail:   func(n *Node, text string) { c.rest(n, Errored, target, text) },
		done: func(n *Node) {
			steps, noRamdisk, err := c.CleaningSteps(n)
			if err != nil {
				c.leave(n, err.Error())
				return
			}
			c.begin(n, c.automatedCleaning(n, how, VerbDeleted, target, steps, noRamdisk), target)
		},
		defect: defect,
	}, Available)
	return nil
}
