package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// takeOut takes a host out of service, as metal oneview sync does, if its preparation has failed because a OneView user has its server. It
// returns nil if it has done that, otherwise the error.
func (w *Work) takeOut(ctx context.Context, failed error) error {
	taken := sharing.InUse(failed)
	if taken == "" || failure.Is(failed, sharing.KindLeftover) || !LeavesService(w.Wish) || !sharing.MayLeaveService(w.Node()) {
		return failed
	}
	if err := w.Machine.Patch(ctx, sharing.MarkOut(w.Machine.Site().Ironic.ServerNow())); err != nil {
		return errors.Join(failed, err)
	}
	if err := w.Machine.SetMaintenance(ctx, machine.Maintenance{On: true, Reason: sharing.ReasonInUse}); err != nil {
		return errors.Join(failed, err)
	}
	w.taken = taken
	return nil
}

// Result returns the notices about a host after Do, and the error that the apply reports. failed is the error of Do: if the apply goes on
// without the host, Result returns a warning instead. doing is what Do was doing, for that warning.
func (w *Work) Result(says Said, doing string, failed error) (notices []decide.Notice, err error) {
	if w.taken != "" {
		notices = append(notices, decide.Warn(nil, "Host is used by OneView",
			fmt.Sprintf("The provider has taken host %s out of service (maintenance, with the reason %q): %s. When the server is free, "+
				"metal oneview sync cleans it and makes it available.", w.Wish.Label, sharing.ReasonInUse, w.taken)))
	}
	if failed == nil {
		notices = append(append(notices, w.sayProof()...), w.sayUnfit()...)
	}
	if says != SaysTolerated {
		return notices, failed
	}
	summary, detail := failure.Explain(doing, failed)
	return append(notices, decide.Warn(nil, summary, detail+"\n\nThe apply goes on without this host, because of on_failure = \"warn\". "+
		"The next apply tries again.")), nil
}

// Look reads what Ironic has of the node and its ports, and of its port groups if they matter. After an error it reads them again, because
// Ironic may have applied only part of the change. It returns warnings about the state that the host is in now.
func (w *Work) Look(ctx context.Context, failed error, groups bool) (notices []decide.Notice) {
	if failed != nil {
		if err := w.readAgain(ctx, groups); err != nil {
			notices = append(notices, decide.Warn(nil, "State may be out of date",
				"The host was changed, but could not be read afterwards. The next plan reads it again. "+failure.Sentence(err)))
		}
	}
	notices = append(notices, w.Machine.PowerCut()...)
	if node := w.Node(); failed == nil && w.Wish.PowerManaged.Unknown && !machine.Preparable(node) && !states.Deployed(node) {
		notices = append(notices, withoutBMC(w.Wish, ironic.State(node.ProvisionState))...)
	}
	return notices
}

// readAgain reads the node, its ports and, if they matter, its port groups.
func (w *Work) readAgain(ctx context.Context, groups bool) (err error) {
	if err := w.Machine.Refresh(ctx); err != nil {
		return err
	}
	w.Cables, err = ReadCables(ctx, w.Machine.Site(), w.Node().UUID, groups || w.Cabling.HasGroups())
	return err
}

// Applied returns the hardware settings that are known to be on the machine.
func (w *Work) Applied() Hardware { return w.Wish.Hardware.Applied(w.Open, w.OnMachine) }

// Compare compares the hardware settings that are known to be on the machine with what Ironic has read of it. before is the comparison
// before this run; nil: there was none. If Ironic's answer is an error, it returns that comparison with a warning.
func (w *Work) Compare(ctx context.Context, before *HardwareComparison) (*HardwareComparison, []decide.Notice) {
	now, notices := CompareHardware(ctx, w.Machine.Site(), w.Node(), w.Wish.Hardware.Both(w.Applied()), before)
	if now != nil && w.Corrected {
		now.Repeat(w.Plan.Drifted)
	}
	return now, notices
}

// CompareHardware compares hardware settings that were applied to a machine with what Ironic has read of it since, unless the comparison
// before holds. If Ironic's answer is an error, it returns that comparison with a warning.
func CompareHardware(ctx context.Context, site *machine.Site, node *ironic.Node, applied Hardware,
	before *HardwareComparison,
) (*HardwareComparison, []decide.Notice) {
	if len(applied.Parts()) == 0 {
		return nil, nil
	}
	now, err := applied.Compare(ctx, site, node, before)
	if err != nil {
		return before, []decide.Notice{decide.Warn(decide.At("hardware_drift"), "Hardware was not compared", "Whether host "+
			ironic.NodeLabel(node)+" still has its hardware settings is not known. The next plan asks again. "+failure.Sentence(err))}
	}
	return now, nil
}

// HearNeighbours returns what the cards of a node have heard in its last inspection; see cabling.Hear. If Ironic's answer is an error, it
// returns what they have heard before with a warning.
func HearNeighbours(
	ctx context.Context, site *machine.Site, node *ironic.Node, before *cabling.Hearing,
) (*cabling.Hearing, []decide.Notice) {
	heard, err := cabling.Hear(ctx, site, node, before)
	if err != nil {
		return heard, []decide.Notice{decide.Warn(decide.At("ports"), "Inventory could not be read", "Whether the cables of host "+
			ironic.NodeLabel(node)+" are as expected is not known. The next plan asks again. "+failure.Sentence(err))}
	}
	return heard, nil
}

// IsUnverified reports whether Ironic could not verify the BMC credentials that the plan was to verify: the node is still in state enroll.
func (w *Work) IsUnverified() bool {
	return w.Plan.Has(DoVerify) && machine.PowerManaged(w.Node()) && w.Node().ProvisionState == string(GoalEnroll)
}

// WasInspected reports whether a node that is new to Terraform has been inspected. A node with an inventory counts, because it may have one
// though Ironic's own inspection has not run.
func WasInspected(ctx context.Context, site *machine.Site, node *ironic.Node) (is bool, notices []decide.Notice) {
	if !machine.InspectedAt(node).IsZero() {
		return true, nil
	}
	inventory, err := site.Ironic.Inventory(ctx, node.UUID)
	if err != nil {
		return false, []decide.Notice{decide.Warn(nil, "Inventory could not be read", "Whether node "+ironic.NodeLabel(node)+
			" has been inspected is not known, so the next apply may inspect it again. "+failure.Sentence(err))}
	}
	return inventory != nil, nil
}
