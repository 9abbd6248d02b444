package deploy

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

// Plan is what an apply does, and what the plan shows of it.
type Plan struct {
	Steps    []Step   // in order; at most one in each phase
	Replaces []string // the attributes whose change replaces the deployment
	Notices  []decide.Notice
	Forecast Forecast
}

// Forecast is what the state says after the apply.
type Forecast struct {
	Wish               Wish // the configuration, with the values of the state that the plan keeps
	Fresh              bool // the deployment is a new one: its other values come from Ironic
	State              decide.Value[ironic.State]
	LastError          Text
	Attempts           decide.Value[int64]
	Power              decide.Value[PowerState] // unless the configuration sets it
	Rebuilds, Restarts decide.Value[int64]
	Boot               decide.Value[bootiso.Status]
	Ready              decide.Value[bool]
}

// Step is one thing that an apply does to a machine. It can be kept as JSON.
type Step struct {
	Do    Kind            `json:"do"`
	Cost  decide.Cost     `json:"cost"`
	Maybe bool            `json:"maybe,omitempty"` // the plan cannot tell yet whether the apply does it
	Ports VIFConnections  `json:"ports,omitzero"`  // what to attach and detach
	Boot  BootReason      `json:"boot,omitzero"`
	Was   machine.Assumed `json:"was,omitzero"` // what the plan has seen of the machine
	// Restart has the triggers of a restart, and the time of the note that the state knew of.
	Restart Restarted `json:"restart,omitzero"`
}

// BootReason is what a restart with a live ISO was decided for.
type BootReason struct {
	Changed  []string `json:"changed,omitempty"`  // settings other than the ISO
	Demanded []string `json:"demanded,omitempty"` // triggers
	Obsolete []string `json:"obsolete,omitempty"`
}

// Kind is a kind of step.
type Kind string

// The kinds of steps.
const (
	DoUnprotect Kind = "unprotect"
	DoUnrescue  Kind = "unrescue"
	DoConnect   Kind = "connect"
	DoName      Kind = "name" // the instance, in Ironic

	DoDeploy   Kind = "deploy"       // for the first time
	DoContinue Kind = "continue"     // waits for what Ironic does already
	DoRepeat   Kind = "repeat"       // deploys again what has failed or was undeployed
	DoRebuild  Kind = "rebuild"      // deploys other content
	DoBoot     Kind = "boot"         // boots another live ISO
	DoAsk      Kind = "ask"          // records that a person has to restart the machine
	DoAdopt    Kind = "adopt"        // records in Ironic that the machine is deployed
	DoRestore  Kind = "restore"      // makes Ironic's record of what runs anew
	DoDescribe Kind = "describe"     // gives an adopted machine another instance_info
	DoAddress  Kind = "address"      // tells Ironic another address of the image that the machine runs
	DoUndeploy Kind = "undeploy"     // and cleans
	DoForget   Kind = "forget"       // leaves the machine running
	DoRelease  Kind = "end-adoption" // leaves an adopted machine running

	DoRestart     Kind = "restart"
	DoPowerOn     Kind = "power-on"
	DoPowerOff    Kind = "power-off"
	DoCheck       Kind = "check" // waits until what runs on the machine answers
	DoProtect     Kind = "protect"
	DoEnterRescue Kind = "rescue"
)

// Phase is the place of a step in an apply.
type Phase int

// The phases, in order.
const (
	Unprotects Phase = iota
	LeavesRescue
	connects
	Names
	Deploys
	Restarts
	Switches
	Checks
	Protects
	EntersRescue
)

// Phase returns the phase of a kind of step.
func (k Kind) Phase() Phase {
	switch k {
	case DoUnprotect:
		return Unprotects
	case DoUnrescue:
		return LeavesRescue
	case DoConnect:
		return connects
	case DoName:
		return Names
	case DoRestart:
		return Restarts
	case DoPowerOn, DoPowerOff:
		return Switches
	case DoCheck:
		return Checks
	case DoProtect:
		return Protects
	case DoEnterRescue:
		return EntersRescue
	case DoDeploy, DoContinue, DoRepeat, DoRebuild, DoBoot, DoAsk, DoAdopt, DoRestore, DoDescribe, DoAddress, DoUndeploy, DoForget,
		DoRelease:
	}
	return Deploys
}

// Of returns the phase as an infinitive, for messages about a node.
func (p Phase) Of(node string) string {
	return fmt.Sprintf([...]string{
		"end the protection of node %s", "end the rescue of node %s", "connect node %s",
		"name the instance on node %s", "deploy node %s", "restart node %s", "switch node %s", "make sure that node %s is ready",
		"protect node %s", "rescue node %s",
	}[p], node)
}

// Operates reports whether a step deploys, boots or adopts a machine through Ironic.
func (s Step) Operates() bool {
	return slices.Contains([]Kind{DoDeploy, DoContinue, DoRepeat, DoRebuild, DoBoot, DoAdopt}, s.Do)
}

// Change returns what the steps do to the machine, for its turn in a rollout. It returns false if the machine stays available, and if the
// user asks for a machine that is off or in rescue mode.
func Change(steps []Step) (change rollout.Change, takes bool) {
	switch {
	case Has(steps, DoRebuild, DoRepeat, DoBoot, DoContinue):
		return rollout.Rebuild, true
	case Has(steps, DoRestart):
		return rollout.Restart, true
	case Has(steps, DoCheck):
		return rollout.Check, true
	}
	return "", false
}

// In returns the step of a phase.
func In(steps []Step, phase Phase) (step Step, found bool) {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Do.Phase() == phase })
	if i < 0 {
		return Step{}, false
	}
	return steps[i], true
}

// Has reports whether there is a step of one of some kinds.
func Has(steps []Step, kinds ...Kind) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return slices.Contains(kinds, s.Do) })
}

// Operates reports whether a step of the plan deploys, boots or adopts the machine through Ironic.
func (p Plan) Operates() bool { return slices.ContainsFunc(p.Steps, Step.Operates) }

// Stops reports whether the plan was refused before it had a forecast.
func (p Plan) Stops() bool { return !p.Forecast.Fresh && p.Forecast.State.IsNull() }

// Refused reports whether the plan fails.
func (p Plan) Refused() bool {
	return slices.ContainsFunc(p.Notices, func(n decide.Notice) bool { return n.Severity == decide.Refusal })
}

// The provision states that plans forecast.
const (
	stateActive  = ironic.State(StateActive)
	stateRescued = ironic.State(StateRescued)
)
