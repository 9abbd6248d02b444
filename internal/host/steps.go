package host

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Plan is what becomes of a host.
type Plan struct {
	Steps []Step `json:"steps,omitempty"`
	// the state that the host reaches now or later; the apply refuses a node that has left it since the plan
	Goal states.Goal    `json:"goal,omitempty"`
	Open []HardwarePart `json:"open,omitempty"` // hardware settings that are not known to be on the machine

	Replaces ReplacedPart `json:"replaces,omitempty"` // what people have replaced since the last apply; "": nothing

	Drifted []HardwareDifference `json:"drifted,omitempty"` // why settings are open that were applied before: the machine has lost them

	Notices  []decide.Notice `json:"-"`
	Forecast Forecast        `json:"-"`
	Asks     []Question      `json:"-"` // facts that might change the plan
}

// IsEmpty reports whether a plan does nothing and says nothing.
func (p Plan) IsEmpty() bool { return len(p.Steps) == 0 && len(p.Notices) == 0 }

// Find returns the step with an action, if the plan has it.
func (p Plan) Find(action Action) (Step, bool) {
	for _, step := range p.Steps {
		if step.Do == action {
			return step, true
		}
	}
	return Step{}, false
}

// Has reports whether a plan has a step with one of the actions.
func (p Plan) Has(actions ...Action) bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return slices.Contains(actions, step.Do) })
}

// Forecast is what becomes of computed values. The zero value changes nothing.
type Forecast struct {
	Target         string // of a new host; "": as it is
	State          decide.Value[ironic.State]
	LastError      bool // not known
	Fault          bool // not known
	Power          decide.Value[string]
	BootInterface  *decide.Value[string] // nil: as it is
	KeepsBoot      bool                  // boot_mode and secure_boot stay as they are
	KeepsConsole   bool                  // console stays as it is
	KeepsRetired   bool                  // retired and retired_reason stay as they are
	NoRetireReason bool
	Pending        decide.Value[[]HardwarePart] // pending_changes
	Cleanings      decide.Value[int64]
	Restores       int64
	Freed          bool // the node loses its reservation
}

// Step is an operation of an apply.
type Step struct {
	Do Action `json:"do"`
	// where a walk or verification ends, and where a node from enroll must be to set its boot mode or console
	Goal     states.Goal    `json:"goal,omitempty"`
	Parts    []HardwarePart `json:"parts,omitempty"`    // of the hardware settings that change
	Power    string         `json:"power,omitempty"`    // on or off; "" while it is not known
	Instance string         `json:"instance,omitempty"` // that ends with a machine that was replaced; "": none
	Cost     decide.Cost    `json:"cost,omitempty"`
	Proves   bool           `json:"proves,omitempty"` // the walk ends before the pool if the hardware is not as expected
}

// Costs reports whether a plan has a step that does so much to the machine.
func (p Plan) Costs(cost decide.Cost) bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return step.Cost >= cost })
}

// counts reports whether a step counts in cleanings: Ironic boots the machine for it, or restarts, configures or cleans it. A machine that
// is only switched does not count, because power_state shows that.
func (s Step) counts() bool {
	return s.Cost > decide.Free && s.Do != DoSwitchPower && s.Do != DoLearnPower
}

// Action is what a step does.
type Action string

// The actions, in the order of their steps.
const (
	DoEnroll       Action = "enroll"        // create the node, or take over the one that there is; in an update, create it again
	DoRestore      Action = "restore"       // make the record anew that Ironic has lost, and nothing else
	DoReturn       Action = "return"        // end the restoration of a record
	DoLeavePool    Action = "leave pool"    // make an available node manageable, because Ironic retires no available one
	DoCloseConsole Action = "close console" // because the driver or the console interface changes
	DoWrite        Action = "write"         // settings, traits, maintenance, port groups and ports
	DoEndTemporary Action = "end temporary" // remove the temporary server profile that an interrupted run has left on the machine
	DoReplace      Action = "replace"       // end what ran on a machine that was replaced
	DoSetBoot      Action = "set boot"      // boot mode and secure boot
	DoSetConsole   Action = "set console"   // enable or disable it
	DoConfigure    Action = "configure"     // BIOS, RAID and firmware in a manual cleaning
	DoService      Action = "service"       // BIOS and firmware of the deployed machine
	DoInspect      Action = "inspect"       // unless the machine has been inspected before
	DoInspectAgain Action = "inspect again" // because of inspect_triggers
	DoProve        Action = "prove"         // compare the hardware with what is expected
	DoQualify      Action = "qualify"       // burn the machine in
	DoVerify       Action = "verify"        // credentials that have arrived, though target_state is enroll
	DoWalk         Action = "walk"          // to the goal; the way to available includes cleaning
	DoLearnPower   Action = "learn power"   // switch the machine, so that Ironic knows its power state
	DoSwitchPower  Action = "switch power"
	DoKeepPower    Action = "keep power" // switch the machine back if a step before has switched it
)

// DoRemove is the step of a host that Terraform destroys.
const DoRemove Action = "remove"

// order has the place of each action among the steps of a plan.
var order = map[Action]int{
	DoEnroll: 0, DoLeavePool: 1, DoCloseConsole: 2, DoWrite: 3, DoEndTemporary: 4, DoReplace: 5, DoSetBoot: 6,
	DoSetConsole: 7, DoConfigure: 8, DoService: 9, DoInspect: 10, DoInspectAgain: 11, DoProve: 12, DoQualify: 13, DoVerify: 14, DoWalk: 15,
	DoLearnPower: 16, DoSwitchPower: 17, DoKeepPower: 18, DoRemove: 19, DoRestore: 20, DoReturn: 21,
}

// costs reports whether a plan has a step with one of the actions that does something to the machine.
func (p Plan) costs(actions ...Action) bool {
	return slices.ContainsFunc(p.Steps, func(step Step) bool { return step.Cost > decide.Free && slices.Contains(actions, step.Do) })
}

type plan struct {
	Wish
	seen Seen
	Plan
}

func (p *plan) add(step Step) { p.Steps = append(p.Steps, step) }

func (p *plan) warn(at decide.Path, summary, detail string) {
	p.Notices = append(p.Notices, decide.Warn(at, summary, detail))
}

func (p *plan) refuse(at decide.Path, summary, detail string) {
	p.Notices = append(p.Notices, decide.Refuse(at, summary, detail))
}

func (p *plan) notice(notices ...decide.Notice) { p.Notices = append(p.Notices, notices...) }

func (p *plan) ask(question Question) { p.Asks = append(p.Asks, question) }
