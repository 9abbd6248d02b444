package host

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Replaced says which part of a machine people have replaced, and when, in a text of theirs. A new value acts once.
type Replaced struct {
	Part ReplacedPart `json:"part"`
	On   string       `json:"on"`
}

// ReplacedPart is what people have replaced.
type ReplacedPart string

// The parts.
const (
	ReplacedMainboard ReplacedPart = "mainboard" // the disks stay, and what is deployed goes on
	ReplacedMachine   ReplacedPart = "machine"   // what the node says runs on it is gone
)

// Replacing is a replacement whose apply has failed.
type Replacing struct {
	Replaced
	Instance string `json:"instance,omitempty"` // that was to end with it; "": none was
}

// Fingerprint identifies a replacement among the triggers of inspections.
func (r Replaced) Fingerprint() string {
	return Fingerprint(map[string]string{"replaced": string(r.Part), "on": r.On})
}

// replaces returns what was replaced since the configuration was applied last; "" if nothing was. A new host, and one that was imported,
// only records the value, and what the node says was done is not done again. A replacement that has failed is repeated only while the node
// is in use as it was then.
func (p *plan) replaces() ReplacedPart {
	failed := p.seen.Replacing
	again := failed != nil && p.Replaced == decide.Known(failed.Replaced) && p.seen.Instance == failed.Instance
	if !p.seen.Applied || !p.Replaced.Set || p.Replaced.V.Fingerprint() == p.seen.Executed || p.Replaced == p.seen.Replaced && !again {
		return ""
	}
	return p.Replaced.V.Part
}

// decideReplaced decides about a machine that people have replaced, and makes of what is seen what the replacement leaves of it. It reports
// whether it refuses the plan.
func (p *plan) decideReplaced() (refused bool) {
	at := decide.At("replaced")
	if p.Replaced.Unknown && p.seen.Applied {
		p.refuse(at, "Value must be known during plan", "replaced decides whether Ironic undeploys the machine, so the plan must know it.")
		return true
	}
	if p.Replaces = p.replaces(); p.Replaces != ReplacedMachine {
		return false
	}
	why := ""
	switch s := p.seen; {
	case p.Held:
		why = "is in maintenance, and Ironic cleans no machine then. End the maintenance in the same change"
	case s.OutOfService:
		why = "is out of service, because a OneView user has its server. Wait until the server is free"
	case isFalse(p.PowerManaged):
		why = "has no BMC, so Ironic cannot undeploy or clean it. Give it a bmc in the same change"
	case s.occupied() && s.Protected:
		why = "is protected. First set protected = false on its metal_deployment, and apply"
	case s.Instance != "" && !s.occupied():
		why = fmt.Sprintf("is reserved by %s, and nothing is deployed on it. First destroy its metal_allocation, in an apply of its own",
			s.Instance)
	}
	if why != "" {
		p.refuse(at, "Replaced machine cannot be prepared", fmt.Sprintf("Host %s %s; then set replaced.", p.Label, why))
		return true
	}
	step := Step{Do: DoReplace, Instance: p.seen.Instance}
	if p.seen.occupied() {
		step.Cost = decide.Wipe
		p.Forecast.Freed = true
		p.warn(at, "Replaced machine is undeployed",
			fmt.Sprintf("Host %s: its machine was replaced, so what ran on it is gone. Ironic undeploys the node and cleans the new "+
				"machine, which loses the data that the site's clean steps erase. Its deployment and its allocation end with that: the "+
				"next plan reserves and deploys anew.", p.Label))
	}
	p.add(step)
	if p.seen.State != stateEnroll {
		p.seen.State, p.seen.Instance, p.seen.Allocated = nodes.Manageable, "", false
	}
	p.seen.OnMachine, p.seen.Compared, p.seen.Machine, p.seen.Coming = Hardware{}, nil, nil, false
	return false
}

// Replacing returns the replacement that the work has begun, if it has failed.
func (w *Work) Replacing(failed error) *Replacing {
	step, replaces := w.Plan.Find(DoReplace)
	if !replaces || failed == nil {
		return nil
	}
	return &Replacing{Replaced: w.Wish.Replaced.V, Instance: step.Instance}
}

// ReplacedOn returns the fingerprint of the last replacement that was executed on a node; "" if none was.
func ReplacedOn(n *ironic.Node) string {
	text, _ := n.Extra[notes.KeyReplaced].(string)
	return text
}

// replace ends what the node says runs on a machine that is not there any more, and takes a free node out of the pool, so that the new
// machine is prepared as a new one is.
func (w *Work) replace(ctx context.Context, step Step) error {
	if err := w.Machine.Refresh(ctx); err != nil {
		return err
	}
	if err := w.checkReplaced(step.Instance); err != nil || w.hasReplaced() {
		return err
	}
	if err := w.endReplaced(ctx); err != nil {
		return err
	}
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyReplaced, w.Wish.Replaced.V.Fingerprint())
	return w.Machine.Patch(ctx, patch)
}

// hasReplaced reports whether a run that the plan does not know has executed the replacement.
func (w *Work) hasReplaced() bool { return ReplacedOn(w.Node()) == w.Wish.Replaced.V.Fingerprint() }

// checkReplaced refuses to replace a machine that is used otherwise than the plan has seen. A free one may be replaced.
func (w *Work) checkReplaced(instance string) error {
	switch node := w.Node(); {
	case w.hasReplaced(), !states.Deployed(node):
		return nil
	case node.InstanceUUID != instance:
		return w.Machine.AsItIs()
	case node.Protected:
		return machine.RefusedFor(node, "it is protected. First set protected = false on its metal_deployment, and apply")
	}
	return nil
}

// endReplaced undeploys the node, or takes a free one out of the pool.
func (w *Work) endReplaced(ctx context.Context) error {
	switch node := w.Node(); {
	case states.Deployed(node):
		return w.Machine.Walk(ctx, states.GoalUndeployed, node.InstanceUUID, ironic.Order{}, w.Limit)
	case states.InPool(node):
		return w.reach(ctx, states.GoalManageable)
	}
	return nil
}
