package host

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Wish is what a host is to be: the values of its attributes, with those that the configuration omits as they will be. A value that the
// configuration itself must have is marked so.
type Wish struct {
	Label  string // names the host in messages
	Ends   bool   // Terraform destroys the host; only OnDestroy and ByAgent count then
	Writes bool   // settings, ports or other attributes differ from those that Terraform has in state

	Identity Identified

	Driver         decide.Value[string]
	Scheme         *driverinfo.BMC // what the BMC address means; nil: none, or not known
	InterfacesMove bool            // the driver or hardware interfaces differ from those in state, or may
	Interfaces     map[string]Interface
	AddressAt      decide.Path // the attribute from which the driver follows
	BMC, AnyDriver bool        // the configuration has a bmc block; it has bmc, driver or power_control
	NoUser         bool        // the bmc block has no user name
	NoPassword     bool        // the bmc block has a user name and no password
	ByAgent        bool        // power_control: Ironic prepares the machine through its agent
	PowerManaged   decide.Value[bool]
	Class          string // resource_class; "" if it is not known
	OnDestroy      string

	Target         decide.Value[string] // target_state
	TargetSet      bool                 // the configuration has target_state
	Inspect        decide.Value[bool]
	Triggers       decide.Value[string] // fingerprint of inspect_triggers
	Replaced       decide.Value[Replaced]
	Power          decide.Value[string] // power_state of the configuration
	NeverOff       bool                 // disable_power_off
	AutomatedClean decide.Value[bool]
	Runbook        decide.Value[string]       // cleaning_runbook
	Skips          decide.Value[[]disks.Hint] // skip_block_devices, those that are known
	RootDevice     decide.Value[map[string]string]
	TraitsChange   bool
	BootMode       decide.Value[string]
	SecureBoot     decide.Value[bool]
	Console        decide.Value[string] // ConsoleOn or ConsoleOff
	ConsoleMoves   bool                 // driver or console interface differ from those in state, or may
	Maintenance    decide.Value[bool]   // of the configuration
	// in maintenance that Ironic has not set after a fault, and no killed run: Ironic runs no steps then
	Held           bool
	Retired        decide.Value[bool]
	RetiredSet     decide.Value[bool] // of the configuration
	ReasonSet      bool               // the configuration has retired_reason
	Hardware       Hardware           // of the configuration, with stand-ins for what is not known
	HardwareKnown  bool               // all of it is known
	HardwareDrift  decide.Value[HardwareDrift]
	Expected       decide.Value[hardware.Model] // expect_hardware
	Qualification  decide.Value[Qualification]
	ServicesActive decide.Value[bool] // hardware_changes: deployed machines are serviced
	TakesTurns     bool               // one after the other, as a rollout says

	SharedWithout string // why Ironic may not prepare the machine: OneView users share it, and the provider has no OneView; "": it may
}

// isOpen reports whether a value is not known yet that decides what is done to the machine.
func (w Wish) isOpen() bool {
	flags := []decide.Value[bool]{
		w.PowerManaged, w.Inspect, w.AutomatedClean, w.SecureBoot, w.Maintenance, w.Retired, w.RetiredSet,
		w.ServicesActive,
	}
	return !w.HardwareKnown || w.Expected.Unknown || w.Qualification.Unknown || w.HardwareDrift.Unknown || w.Target.Unknown ||
		w.Triggers.Unknown || w.BootMode.Unknown || slices.ContainsFunc(flags, func(v decide.Value[bool]) bool { return v.Unknown })
}

// Seen is what Terraform has of a host in state and private state, and what the server was asked.
type Seen struct {
	New bool // Terraform has no host yet; only Answers count then

	// Missing is what the provision state was of a host whose record Ironic has lost. It is made anew: it is New, and counters count, too.
	Missing ironic.State

	State                  ironic.State
	Instance               string // what has reserved the node
	Allocated              bool   // an allocation has
	OutOfService           bool   // it is out of service, because a OneView user has its server
	Fault, LastError       bool   // Ironic reports one
	Power                  decide.Value[string]
	PowerManaged           decide.Value[bool]
	Target                 string // target_state; "" after an import
	Retired                bool
	Runbook                decide.Value[string]
	Skips                  []disks.Hint
	BMC                    bool // the state has a bmc block
	Driver, Address, Class string
	Scheme                 *driverinfo.BMC      // what the BMC address means; nil: none
	BootInterface          decide.Value[string] // null: Ironic shows none
	BootMode               decide.Value[string]
	SecureBoot             decide.Value[bool]
	Console                decide.Value[string] // null: it was not managed
	Triggers               decide.Value[string]
	Replaced               decide.Value[Replaced]
	Hardware               Hardware      // as configured until now
	HardwareDrift          HardwareDrift // likewise
	Cleanings, Restores    int64
	Undeploys              bool // the plan undeploys the node
	Foreign                bool // the node belongs to a discovery, and no configuration was applied to it
	Notes
	Answers
}

// Notes are what private state says of a host.
type Notes struct {
	Applied    bool       // a configuration was applied to it
	Retires    bool       // that configuration had retired
	Powers     []string   // and that power_state; empty: none
	Inspected  bool       // the machine has been inspected
	Coming     bool       // Ironic is on the way to available already, cleaning included
	Pending    string     // fingerprint of the triggers whose inspection has not succeeded yet; "": none
	Protected  bool       // the node is protected
	Executed   string     // fingerprint of the replacement that the node says was executed
	Replacing  *Replacing // a replacement whose apply has failed; nil: none
	Unverified bool       // the verification of credentials that arrived later has failed
	OnMachine  Hardware   // the hardware settings that are known to be on the machine
	Quarantine string     // why the node is in quarantine; "": it is in none
	Anew       bool       // see Order.Doubtful

	Compared *HardwareComparison // of OnMachine with the machine; nil: there was none
	Proof    *Proof              // of what is expected of the machine; nil: there was none
	Fitness  *Fitness            // nil: not known
}

// Answers are what the server was asked for this plan. Decide says what it lacks: Plan.Asks.
type Answers struct {
	Machine     *HardwareSeen        // hardware settings of the machine; nil: not known
	InUse       *InUse               // how OneView users use the server; nil if none does, or if that is not known
	ComparedNow *HardwareComparison  // of OnMachine with the machine, if Notes has none; nil: not known
	ProofNow    *Proof               // of what is expected of the machine, if that of Notes does not hold; nil: not known
	Network     *ramdisk.NetworkBoot // how the machine boots; nil: not known. Without an interface: it needs nothing
	Console     *ConsoleNow          // nil: not known
	// hardware interfaces that the configuration sets or has set; none: it sets none, or they are not known
	Interfaces []InterfaceChange
	Functions  map[string]Function // hardware interfaces after the apply, by kind; nil: not known
	OpenPorts  bool                // an inspection may bring its ports
	TakesOver  string              // label of the discovered node that a new host would take over; "": none, or the run has said so
	Profile    string              // temporary server profile on the machine; "": none
	ProfileErr string              // why that is not known; "": it is
	Runbooks   *Runbook            // the cleaning runbook of the wish; nil: not known
	Qualifying *Runbook            // the runbook of the qualification; nil: not known
	Neighbours *Neighbours         // nil: not known
	Settled    bool                // a killed run has begun the new host, whose node is where it is to be, or in use
	Disks      []ironic.Disk       // of the last inspection; nil: not known
	Replaces   string              // the node in use of the host in state that a new host replaces, and its use; "": none
}

// ConsoleNow is the console of a host.
type ConsoleNow struct {
	Interface string // console interface after the apply; "": not known
	Enabled   bool   // now
	Moves     bool   // the apply changes the driver or the console interface of the node
	MayMove   bool   // or may, because it is not known yet
}

// InterfaceChange is a hardware interface of a node as it is and as it will be, which may be the same.
type InterfaceChange struct {
	Kind, From string
	To         string // "": the default of the driver, which is not known
}

// InUse says that a OneView user has the server of a host, in two forms.
type InUse struct{ Why, Error string }

// Question is a fact that a plan depends on, and that only a server knows.
type Question string

// The questions.
const (
	AskHardware   Question = "hardware settings of the machine"
	AskDrift      Question = "hardware settings that were applied"
	AskExpected   Question = "hardware that is expected"
	AskInUse      Question = "whether OneView users have the server"
	AskNetwork    Question = "how the machine boots"
	AskConsole    Question = "console of the host"
	AskInterfaces Question = "hardware interfaces"
	AskTakeOver   Question = "node that the host would take over"
	AskProfile    Question = "temporary server profile"
	AskRunbook    Question = "cleaning runbook"
	AskQualifying Question = "runbook of the qualification"
	AskNeighbours Question = "nodes of the site"
	AskDisks      Question = "disks of the last inspection"
	AskFunctions  Question = "functions of hardware interfaces"
)

// isFalse reports whether a value is known to be false. Null is not.
func isFalse(v decide.Value[bool]) bool { return v.Set && !v.V }

func (s Seen) node() *ironic.Node {
	return &ironic.Node{ProvisionState: string(s.State), InstanceUUID: s.Instance}
}

// deployed reports whether something runs or may run on the node, or it is reserved for a deployment.
func (s Seen) deployed() bool { return states.Deployed(s.node()) }

// occupied reports whether the node is deployed or being deployed. Its metal_deployment then controls the power.
func (s Seen) occupied() bool { return states.IsOccupied(s.node()) }
