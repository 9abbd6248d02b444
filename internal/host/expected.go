package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Proof is how a machine compares with the hardware that its host expects. Private state keeps it, so that it costs requests only after an
// inspection or another move of the node.
type Proof struct {
	Of          string    `json:"of"`                 // fingerprint of what is expected
	Inspected   time.Time `json:"inspected,omitzero"` // when the inspection ended whose inventory was compared
	Moved       time.Time `json:"moved,omitzero"`     // when the node had moved last, if BIOS settings or firmware were compared
	Known       bool      `json:"known,omitempty"`    // there was an inventory
	Serial      string    `json:"serial,omitempty"`
	Differences []string  `json:"differences,omitempty"`
}

// newProof returns a proof that has compared nothing yet.
func newProof(node *ironic.Node, want hardware.Model) *Proof {
	p := &Proof{Of: fingerprintOf(want), Inspected: machine.InspectedAt(node)}
	if len(want.BIOS)+len(want.Firmware) > 0 { // Ironic reads these whenever a node moves
		p.Moved = movedAt(node)
	}
	return p
}

func fingerprintOf(want hardware.Model) string {
	return Fingerprint(map[string]string{"": want.String()})
}

// Holds reports whether a proof is still right, or cannot be renewed now, because the node moves.
func (p *Proof) Holds(node *ironic.Node, want hardware.Model) bool {
	if want.IsEmpty() {
		return p == nil
	}
	now := newProof(node, want)
	same := p != nil && p.Of == now.Of && p.Inspected.Equal(now.Inspected) && p.Moved.Equal(now.Moved)
	return same || !rests(node)
}

// Prove compares a machine with what its host expects, unless the proof before holds. If Ironic's answer is an error, it returns that proof
// with a warning.
func Prove(ctx context.Context, site *machine.Site, node *ironic.Node, want hardware.Model, before *Proof) (*Proof, []decide.Notice) {
	switch {
	case want.IsEmpty():
		return nil, nil
	case before.Holds(node, want):
		return before, nil
	}
	found, err := hardware.Look(ctx, site.Ironic, node.UUID, want)
	if err != nil {
		return before, []decide.Notice{decide.Warn(decide.At("expect_hardware"), "Hardware was not compared", "Whether host "+
			ironic.NodeLabel(node)+" has the hardware that it must have is not known. The next plan asks again. "+failure.Sentence(err))}
	}
	now := newProof(node, want)
	now.Known, now.Serial = found.Inspected, found.Serial
	for _, d := range want.Differences(found) {
		now.Differences = append(now.Differences, d.Text)
	}
	return now, nil
}

// proof returns how the machine compares with what is expected of it; nil: not known, or nothing is expected.
func (p *plan) proof() *Proof {
	for _, one := range []*Proof{p.seen.ProofNow, p.seen.Proof} {
		if p.Expected.Set && one != nil && one.Of == fingerprintOf(p.Expected.V) {
			return one
		}
	}
	return nil
}

// decideExpected says what is not as expected of a host that exists.
func (p *plan) decideExpected() {
	if !p.Expected.Set || p.Target.V == string(GoalEnroll) || p.Has(DoReplace) { // nothing is known of another machine
		return
	}
	proof := p.proof()
	if proof == nil {
		p.ask(AskExpected)
		return
	}
	again := p.inspectsNow()
	switch {
	case len(proof.Differences) > 0:
		then := "Nothing is done to the machine because of that."
		switch {
		case again:
			then = "The apply inspects it again, and compares it then."
		case p.isKeptOut() && p.Target.V != string(states.GoalManageable):
			then = "The machine stays out of the pool: no allocation reserves it. When the hardware is right, inspect it again, with " +
				"another value in inspect_triggers; or change expect_hardware."
		}
		p.warn(decide.At("expect_hardware"), "Hardware is not as expected", misfitOf(p.Label, proof)+" "+then)
	case !proof.Known && !again && !states.InProgress(p.seen.State):
		p.notice(notCompared(p.Label, p.Inspect.V))
	}
}

func notCompared(label string, inspects bool) decide.Notice {
	then := "Set inspect = true, which boots the machine."
	if inspects {
		then = "The inspection has left none: see which inspect interface the node has."
	}
	return decide.Warn(decide.At("expect_hardware"), "Hardware is not known", fmt.Sprintf("Ironic has no inventory of host %s, so "+
		"expect_hardware compares nothing. %s", label, then))
}

func misfitOf(label string, proof *Proof) string {
	at := ""
	if !proof.Inspected.IsZero() {
		at = " That is what the inspection of " + proof.Inspected.Format(time.RFC3339) + " has found."
	}
	return fmt.Sprintf("Host %s: %s.%s", label, strings.Join(proof.Differences, "; "), at)
}

func (p *plan) inspectsNow() bool {
	return !p.seen.deployed() && (p.inspectsAgain() || p.mayInspect() && !p.seen.Inspected)
}

// isKeptOut reports whether a machine stays out of the pool, because its hardware is not as expected. One that is in the pool or on the way
// there stays in it, and one that is inspected now is compared then.
func (p *plan) isKeptOut() bool {
	proof := p.proof()
	return proof != nil && len(proof.Differences) > 0 && p.proves() && !p.inspectsNow() && !p.Has(DoReplace)
}

// proves reports whether the machine enters the pool only with the hardware that is expected of it.
func (p *plan) proves() bool {
	inPool := p.seen.deployed() || states.InPool(p.seen.node()) || p.seen.Coming
	return !p.Expected.IsNull() && (p.seen.New || !inPool || p.Has(DoReplace))
}

// addProof adds the step that compares the machine, if an apply has others.
func (p *plan) addProof() {
	if !p.Expected.IsNull() && p.Target.V != string(GoalEnroll) && len(p.Steps) > 0 {
		p.add(Step{Do: DoProve})
	}
}

// prove compares the machine with what is expected of it, and notes the result on the node, where allocations read it.
func (w *Work) prove(ctx context.Context) error {
	now, notices := Prove(ctx, w.Machine.Site(), w.Node(), w.Wish.Expected.V, w.Proof)
	w.Proof, w.notices, w.unproved = now, append(w.notices, notices...), len(notices) > 0
	if len(notices) > 0 || now == nil {
		return nil
	}
	var patch ironic.Patch
	if now.Known {
		notes.NoteHardware(&patch, w.Node(), &notes.Hardware{
			Inspected: now.Inspected, Serial: now.Serial, Differences: append([]string{}, now.Differences...),
		})
	}
	if len(patch) == 0 {
		return nil
	}
	return w.Machine.Patch(ctx, patch)
}

// staysOut reports whether a walk ends before the pool, because the machine is not known to have the hardware that is expected of it. A
// machine that has entered the pool meanwhile stays there.
func (w *Work) staysOut(step Step) bool {
	return step.Proves && w.isMisfit() && !states.InPool(w.Node())
}

func (w *Work) isMisfit() bool { return w.unproved || w.Proof != nil && len(w.Proof.Differences) > 0 }

// sayProof says which hardware is not as expected, after an apply that knows more than its plan.
func (w *Work) sayProof() (all []decide.Notice) {
	planned := w.Was != nil && !w.Inspected // the plan has said it
	if planned || !w.Plan.Has(DoProve) || w.Proof == nil || w.unproved {
		return w.notices
	}
	switch {
	case len(w.Proof.Differences) > 0:
		then := " Nothing is done to the machine because of that."
		if !states.InPool(w.Node()) && !states.Deployed(w.Node()) {
			then = " It stays out of the pool until the hardware is right, or expect_hardware is changed."
		}
		all = append(all, decide.Warn(decide.At("expect_hardware"), "Hardware is not as expected", misfitOf(w.Wish.Label, w.Proof)+then))
	case !w.Proof.Known:
		all = append(all, notCompared(w.Wish.Label, w.Wish.Inspect.V))
	}
	return slices.Concat(w.notices, all)
}
