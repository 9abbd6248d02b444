package host

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Ending is how the apply of a host has ended.
type Ending struct {
	New        bool // Terraform had no host before
	OthersMade bool // another run had finished the creation of the node that the new host has taken over
	Unmade     bool // this run has made the node, and deleted it again
	Patched    bool // Ironic has the settings
	Complete   bool // and also traits, maintenance and ports
	GoesOn     bool // on_failure = "warn"

	Failed     bool
	Stopped    bool // by the user
	Unwatched  bool // Ironic may go on, but the provider cannot see it
	Superseded bool // another run has taken the creation over

	LeavesBoot    bool // boot mode and secure boot could not be changed
	LeavesConsole bool // the same for the console

	Cleanings       decide.Value[int64] // as planned
	CleaningsBefore int64
}

// Outcome is what Terraform stores of a host after an apply, and how that reports its failure. What is not stored in the state is planned
// again.
type Outcome struct {
	Stores       Stored
	Says         Said
	KeepsBoot    bool // boot_mode and secure_boot are those of the prior state
	KeepsConsole bool // the same for console
	Cleanings    decide.Value[int64]
}

// Stored says which state is stored, together with what it manages and what is on the machine.
type Stored int

// The states.
const (
	StoresPlan  Stored = iota // the planned one
	StoresBoth                // likewise, with the traits and ports of the prior one: Ironic may still have what was to be removed
	StoresPrior               // the prior one: Ironic has nothing of the new configuration
	StoresNone                // none: Terraform would delete the node, as a tainted resource
)

// Said says how a failure is reported.
type Said int

// The reports.
const (
	SaysNothing   Said = iota
	SaysTolerated      // a warning: the apply goes on without the host
	SaysFailed         // an error; a warning after an interruption
	SaysUndone         // an error, also after an interruption
)

// After says what an apply leaves behind. After a kill there is nothing to decide: Terraform has what it had before or, of a new host,
// what was stored as soon as the node was there.
func After(e Ending) Outcome {
	o := Outcome{Stores: e.stored(), Says: e.said(), KeepsBoot: e.LeavesBoot}
	o.KeepsConsole = e.LeavesConsole && !e.New && o.Says != SaysTolerated
	o.Cleanings = e.cleanings(o)
	return o
}

// tolerates reports whether on_failure lets the apply go on: Ironic has stored the configuration of the node, but could not prepare or
// switch the machine.
func (e Ending) tolerates() bool {
	return e.Failed && e.Complete && e.GoesOn && !e.interrupted() && !e.Superseded
}

func (e Ending) interrupted() bool { return e.Stopped || e.Unwatched }

func (e Ending) stored() Stored {
	switch {
	case e.New && (e.Unmade || e.Superseded || e.OthersMade && e.Failed && !e.interrupted() && !e.tolerates()):
		return StoresNone
	case e.New, e.Complete:
		return StoresPlan
	case e.Patched:
		return StoresBoth
	}
	return StoresPrior
}

func (e Ending) said() Said {
	switch {
	case !e.Failed:
		return SaysNothing
	case e.stored() != StoresPlan:
		return SaysUndone
	case e.tolerates():
		return SaysTolerated
	}
	return SaysFailed
}

// cleanings returns the count after an apply. After a failure that is reported as an error it does not rise: the next plan counts the
// repeat. After Ctrl-C it is as planned, because Ironic goes on. One that could not be planned was about to rise.
func (e Ending) cleanings(o Outcome) decide.Value[int64] {
	switch {
	case e.New && !e.Cleanings.Unknown:
		return e.Cleanings
	case e.New:
		return decide.Known(e.CleaningsBefore + 1)
	case o.Stores == StoresPrior, e.Failed && !e.Stopped && o.Says != SaysTolerated:
		return decide.Known(e.CleaningsBefore)
	case e.Cleanings.Unknown:
		return decide.Known(e.CleaningsBefore + 1)
	}
	return e.Cleanings
}

// Ending returns how the work has ended; failed is its error. The caller adds what the work does not know.
func (w *Work) Ending(failed error) Ending {
	return Ending{
		New: w.Was == nil, Patched: w.Patched, Complete: w.Complete, GoesOn: w.GoesOn,
		Failed: failed != nil, Stopped: api.IsInterrupted(failed), Unwatched: failure.IsUnwatched(failed),
		Superseded: notes.IsSuperseded(failed), LeavesBoot: w.KeepsBoot, LeavesConsole: w.KeepsConsole,
	}
}
