package deploy

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Ending is how the steps of an update have ended.
type Ending struct {
	Steps       []Step
	Phase       Phase // that has failed; Deploys if none has
	Failed      bool  // also if the run was interrupted
	Interrupted bool  // Ironic may go on with what was begun
	Restarting  bool  // the power of the machine was switched for a restart
	Runs        bool  // the node runs the wanted content, or is being deployed with it
	State       ironic.State

	Rescues    bool               // the plan changes rescue
	NewContent bool               // the plan has other content than the state, or another trigger
	Adopts     bool               // the machine was adopted, before or by this update
	Ready      decide.Value[bool] // as planned
}

// Outcome is what an update leaves in the state and in private state, and how it reports an error.
type Outcome struct {
	Arrived       bool               // the state has what was planned; otherwise it stays, and the next plan does all again
	KeepsRebuilds bool               // rebuilds does not rise: the rebuild is repeated, and counts then
	KeepsRestarts bool               // the same for restarts
	Rescue        RescueValue        // rescue of the state
	RescueAgain   bool               // the next plan changes rescue again; provision_state and last_error are those of the node
	Ready         decide.Value[bool] // null: ready is as planned
	ReadProtected bool               // protected is that of the node
	Undone        bool               // also an interruption is an error, because the state is not the planned one
	ForgetNames   bool               // the machine was deployed under its present name: its former names are forgotten
	Footprint     FootprintChange
}

// RescueValue says which value of rescue the state has.
type RescueValue int

// The values of rescue.
const (
	RescuePlanned RescueValue = iota
	RescueFormer
	RescueUnsure // differs from every configured one: the machine must enter or leave rescue mode once more
)

// FootprintChange says what becomes of the footprint in private state.
type FootprintChange int

// The changes of a footprint.
const (
	FootprintStays  FootprintChange = iota
	FootprintAsked                  // of the node, which is read for that
	FootprintKnown                  // of the node as it was read last
	FootprintAbsent                 // the next refresh writes it
)

// After says what an update leaves behind. After a kill there is nothing to decide: state and private state are those from before.
func After(e Ending) Outcome {
	o := Outcome{
		Arrived: e.arrived(), Rescue: e.rescue(), Footprint: e.footprint(), ReadProtected: e.Failed && !e.Interrupted,
		ForgetNames: e.deployed() && slices.ContainsFunc(e.Steps, func(s Step) bool { return s.Cost == decide.Wipe }),
	}
	o.RescueAgain = o.Rescue == RescueUnsure || o.Rescue == RescueFormer && e.Rescues
	o.KeepsRebuilds = e.Failed && e.Phase == Deploys && !e.Interrupted
	o.KeepsRestarts = o.KeepsRebuilds || o.RescueAgain
	if o.Arrived {
		o.Ready = ReadyAfter(e.Steps, e.Phase, e.Failed)
	}
	notReady := e.Failed && !e.Ready.Unknown && !o.Ready.IsNull() && o.Ready != e.Ready
	o.Undone = !o.Arrived || o.RescueAgain || notReady
	return o
}

// ReadyAfter returns ready of the state after the steps of a plan, one of whose phases may have failed. It is null if they do not check
// the machine.
func ReadyAfter(steps []Step, at Phase, failed bool) decide.Value[bool] {
	if !Has(steps, DoCheck) {
		return decide.Value[bool]{}
	}
	return decide.Known(!failed || at > Checks)
}

// arrived reports whether the machine has what was planned. One that is being restarted must not be restarted again by the next apply.
func (e Ending) arrived() bool {
	switch {
	case !e.Failed, e.Phase > Restarts:
		return true
	case e.Phase == Restarts:
		return e.Interrupted && e.Restarting
	}
	return e.Phase == Deploys && e.Runs
}

// deployed reports whether the content is deployed. A machine that is not ready runs it.
func (e Ending) deployed() bool { return !e.Failed || e.Phase == Checks }

// rescue returns which rescue the state has. One that has failed, or whose password is not certain, is planned again.
func (e Ending) rescue() RescueValue {
	switch mode := RescueOf(e.State); {
	case !e.Failed:
		return RescuePlanned
	case e.Phase == EntersRescue && e.Interrupted && mode == RescueChange: // Ironic continues
		return RescuePlanned
	case e.Phase == EntersRescue && mode != NotRescued:
		return RescueUnsure
	case e.Phase > LeavesRescue && Has(e.Steps, DoUnrescue): // it has left it, and something else has failed
		return RescuePlanned
	}
	return RescueFormer
}

// footprint returns what becomes of the footprint. A machine that was adopted keeps what it runs, and so the next refresh must not show
// that as a change by others. A killed run may have deployed the content without storing the footprint: a check makes up for that. A boot
// with another live ISO changes the footprint, though live_iso is no content.
func (e Ending) footprint() FootprintChange {
	switch checked := e.Runs && (Has(e.Steps, DoCheck) || Has(e.Steps, DoBoot)); {
	case !e.Failed && Has(e.Steps, DoRestore):
		return FootprintKnown
	case !e.arrived(), !e.NewContent && !checked:
		return FootprintStays
	case e.deployed() && e.Runs:
		return FootprintAsked
	case e.deployed() && e.Adopts:
		return FootprintKnown
	}
	return FootprintAbsent
}
