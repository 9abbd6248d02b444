// Package allocate decides what the plan of a reservation shows and what its apply does: Decide for a metal_allocation, DecideGroup for a
// metal_allocation_group.
package allocate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// OnUnusable says what a plan does if nothing can be deployed on the reserved node.
type OnUnusable string

// The values of on_unusable.
const (
	UnusableStays      OnUnusable = "keep"
	UnusableIsReplaced OnUnusable = "replace"
)

// Wish is what the configuration of an allocation asks for.
type Wish struct {
	Destroy bool // Terraform destroys the resource; the rest does not count then

	Name, Class, Owner, Backfill decide.Value[string]
	Traits, Candidates           decide.Value[[]string]
	Require                      decide.Value[*Requirements]
	Extra                        decide.Value[map[string]any]
	OnUnusable                   decide.Value[OnUnusable]
	Wait                         time.Duration
}

// Seen is what Terraform has of an allocation, and what Ironic was asked for this plan.
type Seen struct {
	Was       *Wish // what the state says; nil: there is no allocation yet
	ID        string
	State     ironic.AllocationState
	LastError string
	NodeID    string        // of the reserved node; "" if there is none yet
	Node      *ReservedNode // that node at the last refresh; nil: not known
	Answers
}

// Plan is what becomes of an allocation.
type Plan struct {
	Steps    []Step
	Replaces []string // the attributes for which the allocation is replaced
	Notices  []decide.Notice
	Asks     []Question // what Ironic must be asked before the plan is complete
	Forecast Forecast
}

// Forecast is what the state says after the apply, besides the configuration.
type Forecast struct {
	Waits                         bool // Ironic says later which node the allocation gets
	KeepsCandidates, KeepsRequire bool // the state keeps its value: the search that the attribute limits is over
}

// Step is a thing that an apply does to a reservation. It can be kept as JSON.
type Step struct {
	Do      Kind        `json:"do"`
	Cost    decide.Cost `json:"cost,omitempty"`
	Renames bool        `json:"renames,omitempty"`
	Set     []string    `json:"set,omitempty"`     // keys of extra
	Remove  []string    `json:"remove,omitempty"`  // keys of extra
	Members []string    `json:"members,omitempty"` // keys of members of a group
}

// Kind is a kind of step.
type Kind string

// The kinds of steps.
const (
	DoRelease  Kind = "release"  // deletes allocations, so that others can have their nodes
	DoMove     Kind = "move"     // retires the nodes of members, and deletes their allocations
	DoReserve  Kind = "reserve"  // creates allocations, and waits until they have nodes
	DoContinue Kind = "continue" // waits for the node of an allocation that an interrupted run has created
	DoEdit     Kind = "edit"     // gives allocations other names, or another extra
	DoRestore  Kind = "restore"  // makes allocations anew that Ironic has lost
	DoDomains  Kind = "domains"  // reads the nodes of members, for their domains
)

// In returns the step of a kind; nil if there is none.
func In(steps []Step, do Kind) *Step {
	if i := slices.IndexFunc(steps, func(s Step) bool { return s.Do == do }); i >= 0 {
		return &steps[i]
	}
	return nil
}

// IsEmpty reports whether the plan changes nothing and says nothing, so that the next one need not be made while nothing changes.
func (p Plan) IsEmpty() bool { return len(p.Steps)+len(p.Replaces)+len(p.Notices)+len(p.Asks) == 0 }

type decision struct {
	Plan
	w    Wish
	seen Seen
	was  Wish // the zero value if there is no allocation yet
}

// Decide plans an allocation. Candidates and requirements limit the search for a node, and nothing else: once a node is reserved, no change
// of theirs gives it up. A node is given up for a class, a trait, an owner or a backfill_node that it does not have, and, with on_unusable
// = "replace", if nothing can be deployed on it; never without another node that matches.
func Decide(w Wish, seen Seen) Plan {
	d := &decision{w: w, seen: seen}
	if seen.Was != nil {
		d.was = *seen.Was
	}
	switch {
	case w.Destroy:
		d.release(decide.Free)
	case seen.Was == nil:
		d.reserve()
	case seen.State == ironic.AllocationError:
		d.warn(nil, "Failed allocation is replaced", fmt.Sprintf("Ironic has found no node for allocation %s, and does not try again. "+
			"The provider deletes it, and creates another. Ironic's last_error: %s.", seen.ID, strings.TrimSuffix(seen.LastError, ".")))
		d.replace(decide.Free, "state")
	case w.OnUnusable.Unknown:
		d.Notices = append(d.Notices, decide.Refuse(decide.At("on_unusable"), "Value must be known during plan", "on_unusable decides "+
			"whether the reserved node is replaced, so the plan must know it. Set it to a value that does not depend on a resource."))
	case seen.NodeID == "":
		d.unless(d.w.changedDemands(d.was), decide.Free)
	case seen.Node == nil:
		d.keep()
	case seen.Node.Unusable != "" && w.OnUnusable.V == UnusableIsReplaced:
		d.giveUpUnusable(seen.Node)
	default:
		d.warnUnusable(seen.Node)
		d.unless(d.givesUp(seen.Node), decide.Wipe)
	}
	return d.Plan
}

func (d *decision) warn(at decide.Path, summary, detail string) {
	d.Notices = append(d.Notices, decide.Warn(at, summary, detail))
}

// unless replaces the allocation for the given attributes at a cost, or keeps it if there are none.
func (d *decision) unless(why []string, cost decide.Cost) {
	if len(why) == 0 {
		d.keep()
		return
	}
	d.replace(cost, why...)
}

// replace plans another allocation in place of this one.
func (d *decision) replace(cost decide.Cost, why ...string) {
	d.Replaces = why
	d.release(cost)
	d.Steps = append(d.Steps, Step{Do: DoReserve})
}

func (d *decision) release(cost decide.Cost) {
	if d.seen.NodeID != "" && d.asked(AskRelease) {
		if notices := finishesQuarantine(d.seen.Quarantined, d.seen.ID); notices != nil {
			d.Notices, cost = append(d.Notices, notices...), decide.Wipe
		}
	}
	d.Steps = append(d.Steps, Step{Do: DoRelease, Cost: cost})
}

// finishesQuarantine warns if releasing an allocation also undeploys its node, because a killed run has put the node into quarantine and
// did not finish that. label names the node; "" if the release only deletes the allocation.
func finishesQuarantine(label, allocation string) []decide.Notice {
	if label == "" {
		return nil
	}
	return []decide.Notice{decide.Warn(nil, "Quarantine is finished",
		fmt.Sprintf("A deployment has failed on node %s, and an earlier run was interrupted while it put the node into quarantine. "+
			"Releasing allocation %s finishes that: the node is undeployed and cleaned, and stays retired. If another client deploys the "+
			"node first, the provider leaves it alone, and the release fails.",
			label, allocation))}
}

// reserve plans a new allocation. It says if a killed run has created the allocation, and else warns if Ironic would find no node for it
// now.
func (d *decision) reserve() {
	d.Steps = append(d.Steps, Step{Do: DoReserve})
	if d.w.hasNoCandidates() {
		d.warn(decide.At("candidate_nodes"), "No candidates", noCandidates)
		return
	}
	if d.w.Name.Set && !d.w.isVague() && !d.asked(AskBegun) {
		return
	}
	if d.Notices = append(d.Notices, d.seen.Begun.notices()...); d.seen.Begun == nil && d.asked(AskNodes) {
		d.Notices = append(d.Notices, noticesOf(d.seen.Doubts, d.w.subject(""))...)
	}
}

// Begun is what a killed run has created of a planned reservation, and the apply takes over.
type Begun struct {
	By   *notes.Creation
	What string   // the allocation, or members of a group
	More []string // sentences about deployments that the run has begun on the reserved nodes
}

// notices says what the apply takes over; nil if there is nothing.
func (b *Begun) notices() []decide.Notice {
	if b == nil {
		return nil
	}
	return []decide.Notice{machine.TakenOver(b.By, b.What, b.More...)}
}

// noticesOf returns the notices of doubts; subject begins their details.
func noticesOf(doubts []expect.Doubt, subject string) (notices []decide.Notice) {
	for _, doubt := range doubts {
		notice := decide.Warn(decide.At(doubt.Attribute), doubt.Summary, subject+doubt.Detail)
		if doubt.Fatal {
			notice.Severity = decide.Refusal
		}
		notices = append(notices, notice)
	}
	return notices
}

// giveUpUnusable plans to release a node on which nothing is deployed, and nothing can be.
func (d *decision) giveUpUnusable(node *ReservedNode) {
	matching := ""
	if d.asked(AskMatches) && d.seen.Matches != nil {
		matching = fmt.Sprintf(" Nodes that match now: %s.", d.seen.Matches)
	}
	d.warn(nil, "Unusable node is released", fmt.Sprintf("%sNothing is deployed on node %s, and nothing can be, because %s. It is "+
		"released, and another node is reserved (on_unusable = \"replace\").%s", d.subject(), node.Label(), node.Unusable, matching))
	d.replace(decide.Free, "node_id")
}

func (d *decision) warnUnusable(node *ReservedNode) {
	if node.Unusable == "" {
		return
	}
	d.warn(nil, "Reserved node is unusable",
		fmt.Sprintf("%sNothing is deployed on node %s, and nothing can be, because %s. Without -replace, the node stays reserved, and "+
			"deployments on it fail. Make the node usable again. To reserve another one instead, set on_unusable = \"replace\", or use "+
			"terraform apply -replace for this resource. That ends only the reservation of this node.",
			d.subject(), node.Label(), node.Unusable))
}

// givesUp returns the unsatisfied demands for which the reserved node is released, and warns of that. If backfill_node is a name that no
// node has, this apply may give that name to the reserved node, so the node stays reserved. If no other node matches, givesUp refuses the
// plan. While it is not known which nodes match, the node stays reserved: the apply refuses such demands (see Wish.Check).
func (d *decision) givesUp(node *ReservedNode) []string {
	misfits := d.w.misfits(d.was, node)
	if len(misfits) == 0 || !d.asked(AskMatches) || d.seen.Matches == nil {
		return nil
	}
	matches, lacking := *d.seen.Matches, strings.Join(misfits, ", ")
	switch {
	case len(matches.Missing) > 0 && slices.Equal(misfits, []string{"backfill_node"}):
		d.warn(decide.At("backfill_node"), "No node has this name yet",
			fmt.Sprintf("Ironic knows no node %s. If this apply gives node %s that name, the node stays reserved, and its deployment "+
				"stays. Otherwise the apply fails for this resource, and changes nothing. Use the id of a metal_host instead of its "+
				"name: then renaming the host does not affect the allocation.", strings.Join(matches.Missing, ", "), node.Label()))
		return nil
	case matches.IsEmpty() && !d.w.Candidates.Unknown && !d.w.Require.Unknown:
		d.Notices = append(d.Notices, decide.Refuse(decide.At(misfits[0]), "No other node matches", fmt.Sprintf(
			"The reserved node %s does not satisfy %s, and no other node matches: %s. The provider does not release the node without a "+
				"replacement.\n\n"+
				"If another change of this configuration makes a metal_host match, apply that first (-target), then this. Otherwise make "+
				"a matching node available, or demand less. To release the node anyway, destroy this allocation first.",
			node.Label(), lacking, matches)))
		return nil
	}
	matching, _, _ := strings.Cut(matches.String(), ":")
	d.warn(nil, "Reserved node is released", fmt.Sprintf("Node %s does not satisfy %s: it is released, after its deployment is "+
		"undeployed if it has one, and another node is reserved. Nodes that match now: %s.", node.Label(), lacking, matching))
	return misfits
}

// keep plans an allocation that stays. It warns of nothing if only the candidates change: a list of available nodes lacks the reserved one
// in every plan. Terraform allows a plan to keep the prior value of an attribute that was set before and still is.
func (d *decision) keep() {
	w, was := d.w, d.was
	d.Forecast.KeepsCandidates = !w.Candidates.IsNull() && !was.Candidates.IsNull()
	if !w.Require.IsNull() && !was.Require.IsNull() {
		d.Forecast.KeepsRequire = true
		d.warnUnmet()
	}
	set, remove := w.extraEdits(was)
	if renames := !decide.Same(w.Name, was.Name); renames || w.Extra.Unknown || len(set)+len(remove) > 0 {
		d.Steps = append(d.Steps, Step{Do: DoEdit, Renames: renames, Set: set, Remove: remove})
	}
	if d.seen.State == ironic.AllocationAllocating {
		d.Forecast.Waits = true
		d.Steps = append(d.Steps, Step{Do: DoContinue})
	}
}

// warnUnmet warns if the reserved node does not meet changed requirements.
func (d *decision) warnUnmet() {
	if d.seen.Node == nil || d.w.Require.Unknown || decide.Same(d.w.Require, d.was.Require) {
		return
	}
	if lacks := d.seen.Node.Lacks(d.w.Require.V); lacks != "" {
		d.warn(decide.At("require"), "Reserved node does not meet require",
			fmt.Sprintf("%sNode %s does not meet require any more (%s). Without -replace, it stays reserved: require limits "+
				"only the search for a node. To reserve another node, use terraform apply -replace for this resource: that also replaces "+
				"its deployment, and wipes the machine.", d.subject(), d.seen.Node.Label(), lacks))
	}
}

func (w Wish) extraEdits(was Wish) (set, remove []string) {
	for _, key := range slices.Sorted(maps.Keys(w.Extra.V)) {
		if !ironic.SameJSON(was.Extra.V[key], w.Extra.V[key]) {
			set = append(set, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was.Extra.V)) {
		if _, kept := w.Extra.V[key]; !kept {
			remove = append(remove, key)
		}
	}
	return set, remove
}

// subject begins a message about the allocation.
func (d *decision) subject() string { return d.w.subject(d.seen.ID) }

func (w Wish) subject(id string) string {
	switch {
	case w.Name.Set:
		return "Allocation " + w.Name.V + ": "
	case id != "":
		return "Allocation " + id + ": "
	}
	return ""
}

// asked reports whether a question was asked. If not, the plan asks it.
func (d *decision) asked(q Question) bool {
	if !slices.Contains(d.seen.Asked, q) {
		d.Asks = append(d.Asks, q)
		return false
	}
	return true
}
