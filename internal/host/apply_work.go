package host

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

// Order describes what an apply does to a host.
type Order struct {
	Wish Wish
	Plan Plan         // what the plan has announced; the apply does nothing else
	Was  *ironic.Node // provision state and reservation in the prior state; nil for a new host
	// Assumed is what the prior state says of the machine
	Assumed machine.Assumed
	Intent  Intent // what no other node may have too; not used for a new host, whose creation has claimed it

	Settings  *Settings
	Cabling   WantedCables
	Boot      machine.BootSettings
	NoRamdisk bool             // hardware settings change without a ramdisk
	Proof     *Proof           // of what was expected of the machine; after Do, of what is expected. nil: not known
	OnMachine Hardware         // hardware settings that were known to be on the machine
	Rollout   rollout.Settings // in whose turns deployed machines are serviced
	OffMode   machine.OffMode

	// Doubtful: the record of the host was made anew, and its machine has not been prepared since. It is prepared only if it is off, by a
	// later apply.
	Doubtful bool

	IsMade bool          // this run has created the node
	GoesOn bool          // on_failure = "warn": the apply goes on without a host that could not be prepared
	Limit  time.Duration // for each step

	// EndTemporary removes the temporary server profile that the node may have got for a step.
	EndTemporary func(ctx context.Context, node *ironic.Node, limit time.Duration) error
}

// Work is the execution of an order, with a record of what is done.
type Work struct {
	Order
	Machine *machine.Machine // as of Ironic's latest answer

	Cables       Cables         // likewise; empty if the configuration has no ports
	Open         []HardwarePart // parts of the hardware configuration that are not known to be on the machine
	Patched      bool           // Ironic has the settings
	Complete     bool           // and also traits, maintenance and ports
	Inspected    bool           // this run has inspected the machine
	Corrected    bool           // this run has set the settings again that the machine had lost
	KeepsConsole bool           // the console could not be changed
	KeepsBoot    bool           // boot mode and secure boot could not be changed; the next plan tries again

	unproved bool            // the hardware could not be compared
	unfit    error           // why the machine has failed its qualification; nil: it has not
	notices  []decide.Notice // about that

	taken string // why this run has taken the host out of service; "": it has not
}

// NewWork returns the work of an order before its first step. If a killed run has deployed the machine, it has no steps.
func NewWork(m *machine.Machine, order Order) *Work {
	w := &Work{Order: order, Machine: m, Open: order.Plan.Open}
	if w.Was == nil && states.Deployed(w.Node()) {
		w.Plan.Steps = nil
	}
	return w
}

// Node returns the node as of Ironic's latest answer.
func (w *Work) Node() *ironic.Node { return w.Machine.Node() }

// mayBePrepared reports whether Ironic can prepare the machine and the provider may let it. A node that is out of service because OneView
// uses its hardware is left to metal oneview sync, unless the configuration controls its maintenance.
func (w *Work) mayBePrepared() bool {
	return machine.Preparable(w.Node()) && (!sharing.OutOfService(w.Node()) || !w.Wish.Maintenance.IsNull())
}
