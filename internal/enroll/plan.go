// Package enroll decides what a plan of a host shows and its apply does: see Decide.
package enroll

import (
	"cmp"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// Wish is what a host is to be: the values of its attributes, with those that the configuration omits as they will be. A value that the
// configuration itself must have is marked so.
type Wish struct {
	Label  string // names the host in messages
	Ends   bool   // Terraform destroys the host; only OnDestroy and ByAgent count then
	Writes bool   // settings, ports or other attributes differ from those that Terraform has in state

	Driver         decide.Value[string]
	Scheme         *driverinfo.BMC // what the BMC address means; nil: none, or not known
	AddressAt      decide.Path     // the attribute from which the driver follows
	BMC, AnyDriver bool            // the configuration has a bmc block; it has bmc, driver or power_control
	NoPassword     bool            // the bmc block has a user name and no password
	ByAgent        bool            // power_control: Ironic prepares the machine through its agent
	PowerManaged   decide.Value[bool]
	Class          string // resource_class; "" if it is not known
	OnDestroy      string

	Target         decide.Value[string] // target_state
	TargetSet      bool                 // the configuration has target_state
	Inspect        decide.Value[bool]
	Triggers       decide.Value[string] // fingerprint of inspect_triggers
	Power          decide.Value[string] // power_state of the configuration
	NeverOff       bool                 // disable_power_off
	NoClean        bool                 // automated_clean = false
	BootMode       decide.Value[string]
	SecureBoot     decide.Value[bool]
	Maintenance    decide.Value[bool] // of the configuration
	Held           bool               // in maintenance that Ironic has not set after a fault, and no killed run: Ironic runs no steps then
	Retired        decide.Value[bool]
	RetiredSet     decide.Value[bool] // of the configuration
	ReasonSet      bool               // the configuration has retired_reason
	Hardware       hardware.Hardware  // of the configuration, with stand-ins for what is not known
	HardwareKnown  bool               // all of it is known
	ServicesActive bool               // hardware_changes: deployed machines are serviced

	SharedWithout string // why Ironic may not prepare the machine: OneView users share it, and the provider has no OneView; "": it may
}

// Seen is what Terraform has of a host in state and private state, and what the server was asked.
type Seen struct {
	New bool // Terraform has no host yet; only Answers count then

	State                  ironic.State
	Instance               string // what has reserved the node
	Allocated              bool   // an allocation has
	OutOfService           bool   // metal oneview sync has taken it out of service
	Fault, LastError       bool   // Ironic reports one
	Power                  decide.Value[string]
	PowerManaged           decide.Value[bool]
	Target                 string // target_state; "" after an import
	Retired                bool
	BMC                    bool // the state has a bmc block
	Driver, Address, Class string
	Scheme                 *driverinfo.BMC // what the BMC address means; nil: none
	BootMode               decide.Value[string]
	SecureBoot             decide.Value[bool]
	Triggers               decide.Value[string]
	Hardware               hardware.Hardware // as configured until now
	Foreign                bool              // the node belongs to a discovery, and no configuration was applied to it
	Notes
	Answers
}

// Notes are what private state says of a host.
type Notes struct {
	Applied    bool              // a configuration was applied to it
	Retires    bool              // that configuration had retired
	Powers     []string          // and that power_state; empty: none
	Inspected  bool              // the machine has been inspected
	Pending    string            // fingerprint of the triggers whose inspection has not succeeded yet; "": none
	Unverified bool              // the verification of credentials that arrived later has failed
	OnMachine  hardware.Hardware // the hardware settings that are known to be on the machine
	Quarantine string            // why the node is in quarantine; "": it is in none
}

// Answers are what the server was asked for this plan. Decide says what it lacks: Plan.Asks.
type Answers struct {
	Machine    *hardware.Seen       // hardware settings of the machine; nil: not known
	InUse      *InUse               // the use of the server by OneView users; nil: nobody uses it, or it is not known
	Network    *ramdisk.NetworkBoot // how the machine boots; nil: not known. Without an interface: it needs nothing
	OpenPorts  bool                 // an inspection may bring its ports
	TakesOver  string               // label of the discovered node that a new host would take over; "": none, or the run has said so
	Profile    string               // temporary server profile on the machine; "": none
	ProfileErr string               // why that is not known; "": it is
}

// InUse says that a OneView user has the server of a host, in two forms.
type InUse struct{ Why, Error string }

// Question is a fact that a plan depends on, and that only a server knows.
type Question string

// The questions.
const (
	AskHardware Question = "hardware settings of the machine"
	AskInUse    Question = "whether OneView users have the server"
	AskNetwork  Question = "how the machine boots"
	AskTakeOver Question = "node that the host would take over"
	AskProfile  Question = "temporary server profile"
)

// Plan is what becomes of a host.
type Plan struct {
	Steps []Step          `json:"steps,omitempty"`
	Goal  states.Goal     `json:"goal,omitempty"` // the state that the host reaches now or later; the apply refuses a node that has left it since the plan
	Open  []hardware.Part `json:"open,omitempty"` // hardware settings that are not known to be on the machine

	Notices  []decide.Notice `json:"-"`
	Forecast Forecast        `json:"-"`
	Asks     []Question      `json:"-"` // facts that might change the plan
}

// Forecast is what becomes of computed values. The zero value changes nothing.
type Forecast struct {
	Target         string // of a new host; "": as it is
	State          decide.Value[ironic.State]
	LastError      bool // not known
	Fault          bool // not known
	Power          decide.Value[string]
	KeepsBoot      bool // boot_mode and secure_boot stay as they are
	KeepsRetired   bool // retired and retired_reason stay as they are
	NoRetireReason bool
	Pending        decide.Value[[]hardware.Part] // pending_changes
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

// Action is what a step does.
type Action string

// The actions, in the order of their steps.
const (
	DoEnroll       Action = "enroll"        // create the node, or take over the one that there is
	DoLeavePool    Action = "leave pool"    // make an available node manageable, because Ironic retires no available one
	DoWrite        Action = "write"         // settings, traits, maintenance, port groups and ports
	DoEndTemporary Action = "end temporary" // remove the temporary server profile that an interrupted run has left on the machine
	DoSetBoot      Action = "set boot"      // boot mode and secure boot
	DoConfigure    Action = "configure"     // BIOS, RAID and firmware in a manual cleaning
	DoService      Action = "service"       // BIOS and firmware of the deployed machine
	DoInspect      Action = "inspect"       // unless the machine has been inspected before
	DoInspectAgain Action = "inspect again" // because of inspect_triggers
	DoVerify       Action = "verify"        // credentials that have arrived, though target_state is enroll
	DoWalk         Action = "walk"          // to the goal; the way to available includes cleaning
	DoLearnPower   Action = "learn power"   // switch the machine, so that Ironic knows its power state
	DoSwitchPower  Action = "switch power"
	DoKeepPower    Action = "keep power" // switch the machine back if a step before has switched it
)

// Step is an operation of an apply.
type Step struct {
	Do    Action          `json:"do"`
	Goal  states.Goal     `json:"goal,omitempty"`  // where a walk or verification ends, and where a node from enroll must be to set its boot mode
	Parts []hardware.Part `json:"parts,omitempty"` // of the hardware settings that change
	Power string          `json:"power,omitempty"` // on or off; "" while it is not known
	Cost  decide.Cost     `json:"cost,omitempty"`
}

// plan is a plan that is being made.
type plan struct {
	Wish
	seen Seen
	Plan
}

// Decide returns what a plan of a host shows and its apply does. A plan of a wish with unknown values has all steps that they may
// require.
func Decide(w Wish, s Seen) Plan {
	p := &plan{Wish: w, seen: s}
	switch {
	case w.Ends:
		p.destroy()
		return p.Plan
	case s.New:
		p.warnPassword()
		p.decideNew()
	default:
		p.warnPassword()
		p.decideExisting()
	}
	p.notice(RefusePowerOff(w)...)
	p.Goal = p.goals()[0]
	if len(p.Steps) > 0 && !p.Has(DoWrite) || w.Writes && !s.New {
		p.add(Step{Do: DoWrite})
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(order[a.Do], order[b.Do]) })
	return p.Plan
}

// order has the place of each action among the steps of a plan.
var order = map[Action]int{
	DoEnroll: 0, DoLeavePool: 1, DoWrite: 2, DoEndTemporary: 3, DoSetBoot: 3, DoConfigure: 4, DoService: 5, DoInspect: 6, DoInspectAgain: 7, DoVerify: 8, DoWalk: 9,
	DoLearnPower: 10, DoSwitchPower: 11, DoKeepPower: 12, DoRemove: 13,
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

// isFalse reports whether a value is known to be false. Null is not.
func isFalse(v decide.Value[bool]) bool { return v.Set && !v.V }
