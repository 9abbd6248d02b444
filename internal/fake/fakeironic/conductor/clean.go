package conductor

import (
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// clean starts a manual cleaning.
func (c *Conductor) clean(n *Node, request Request) error {
	if n.Flag("maintenance") {
		return InMaintenance("cleaning", n)
	}
	if err := c.cleanLimit("cleaning"); err != nil {
		return err
	}
	how := n.Uses("deploy")
	o := operation{
		verb: string(VerbClean), flow: flowManual, boots: how != "fake" && !request.NoRamdisk, phases: c.cleaningPhases(how),
		fail: func(n *Node, text string) { c.rest(n, CleanFail, Manageable, text) },
		done: func(n *Node) {
			c.cleaned(n, how)
			c.rest(n, Manageable, "", "")
		},
	}
	if request.NoRamdisk {
		o.phases = c.stay(Cleaning)
	}
	run, defect, executing := c.runSteps(n, request.CleanSteps, false)
	end := o.done
	o.done = func(n *Node) {
		run(n)
		end(n)
	}
	if o.defect = defect; defect != "" {
		o.fail = func(n *Node, text string) {
			run(n)
			if executing {
				n.breakDown("clean failure", text)
			}
			c.rest(n, CleanFail, Manageable, text)
		}
	}
	c.begin(n, o, Manageable)
	return nil
}

// service changes an active node in place.
func (c *Conductor) service(n *Node, request Request) error {
	if n.Flag("maintenance") {
		return InMaintenance("service", n)
	}
	n.Note("service_steps", nil)
	o := operation{
		verb: string(VerbService), phases: c.stay(Servicing),
		fail: func(n *Node, text string) { c.rest(n, ServiceFail, Active, text) },
		done: func(n *Node) { c.rest(n, Active, "", "") },
	}
	n.Put("service_step", map[string]any{})
	steps := slices.DeleteFunc(slices.Clone(request.ServiceSteps), func(item any) bool {
		kind, name := api.StepName(api.Object(item))
		waits := kind == "vendor" && name == "trigger_servicewait"
		if waits {
			o.done = func(n *Node) {
				n.Put("service_step", map[string]any{"interface": kind, "step": name, "priority": 0, "abortable": false})
				c.rest(n, ServiceWait, Active, "")
			}
		}
		return waits
	})
	run, defect, _ := c.runSteps(n, steps, true)
	end := o.done
	o.done = func(n *Node) {
		run(n)
		end(n)
	}
	if o.defect = defect; defect != "" {
		o.fail = func(n *Node, text string) {
			run(n)
			n.breakDown("service failure", text)
			c.rest(n, ServiceFail, Active, text)
		}
	}
	c.begin(n, o, Active)
	return nil
}

// provide cleans a node, unless automated_clean is false, and makes it available.
func (c *Conductor) provide(n *Node) error {
	if n.Flag("retired") {
		return api.Fault(http.StatusBadRequest, "The providing operation can't be performed on node %s because it is retired.",
			n.Str("uuid"))
	}
	steps, noRamdisk, err := c.CleaningSteps(n)
	if err != nil {
		return err
	}
	if n.Fields["automated_clean"] == false {
		n.Put("last_error", nil)
		c.rest(n, Available, "", "")
		return nil
	}
	c.begin(n, c.automatedCleaning(n, n.Uses("deploy"), VerbProvide, Available, steps, noRamdisk), Available)
	return nil
}

// automatedCleaning returns the cleaning of a node before target with the deploy interface how. If automated_clean is false it
// cleans nothing. steps are those of a runbook; nil: those of the interfaces.
func (c *Conductor) automatedCleaning(n *Node, how string, v Verb, target State, steps []any, noRamdisk bool) operation {
	o := operation{
		verb: string(v), flow: flowAutomated, boots: how != "fake" && !noRamdisk, phases: c.cleaningPhases(how),
		fail: func(n *Node, text string) { c.rest(n, CleanFail, target, text) },
		done: func(n *Node) {
			c.cleaned(n, how)
			c.rest(n, target, "", "")
		},
	}
	if noRamdisk {
		o.phases = c.stay(Cleaning)
	}
	if steps == nil && !inert(how) {
		o.phases[len(o.phases)-2].then = c.eraseDisks // once the ramdisk has booted
	}
	c.byRunbook(n, &o, steps, target)
	o.showSteps(c.stepsOf(how, steps))
	if n.Fields["automated_clean"] == false {
		o.phases, o.defect, o.flow = []phase{{in: Cleaning}}, "", ""
		o.done = func(n *Node) { c.rest(n, target, "", "") }
	}
	if reason := c.NetworkFault(n); reason != "" {
		o.defect = "Failed to validate network driver interface for node cleaning. Node " + n.Str("uuid") + ". Error: " + reason
	}
	if reason := c.PowerFault(n); n.byAgent() && reason != "" {
		o.defect = "Failed to validate power driver interface for node cleaning. Node " + n.Str("uuid") + ". Error: " + reason
	}
	return o
}

// stepsOf returns the names of the steps of an automated cleaning: those of its runbook, or else those of the interfaces.
func (c *Conductor) stepsOf(how string, runbook []any) (names []string) {
	for _, item := range runbook {
		kind, name := api.StepName(api.Object(item))
		names = append(names, kind+"."+name)
	}
	switch {
	case runbook != nil:
	case how != "fake":
		names = []string{"deploy.erase_devices_metadata", "deploy.erase_devices"}
	case !c.legacy():
		names = []string{"vendor.log_passthrough"}
	}
	return names
}

// showSteps lets the node show the first step once the ramdisk has booted, and the last one at the end.
func (o *operation) showSteps(names []string) {
	if len(names) == 0 {
		return
	}
	last := len(o.phases) - 1
	o.phases[last].step = names[len(names)-1]
	o.phases[last-last/2].step = names[0]
}

// byRunbook makes a cleaning run the steps of a runbook.
func (c *Conductor) byRunbook(n *Node, o *operation, steps []any, target State) {
	if steps == nil {
		return
	}
	run, defect, executing := c.runSteps(n, steps, false)
	end := o.done
	o.defect = defect
	o.done = func(n *Node) {
		run(n)
		end(n)
	}
	o.fail = func(n *Node, text string) {
		run(n)
		if executing {
			n.breakDown("clean failure", text)
		}
		c.rest(n, CleanFail, target, text)
	}
}

// cleaned ends a successful cleaning.
func (c *Conductor) cleaned(n *Node, how string) {
	if !inert(how) {
		c.switchPower(n, PowerOff)
	}
	n.Note("clean_steps", nil)
}

// cleaningPhases returns the phases of a cleaning, which boots a ramdisk unless the deploy interface touches no machine.
func (c *Conductor) cleaningPhases(how string) []phase {
	if inert(how) {
		return c.stay(Cleaning)
	}
	phases := c.stay(Cleaning, CleanWait, Cleaning)
	phases[0].then = c.restart
	return phases
}
