package allocate

import (
	"context"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// Foresee returns what speaks against an allocation that is planned, from the list of nodes that all plans share. vague says that some
// of its demands are not known yet. Foresee leaves out what a host may satisfy that this plan creates or changes, if Terraform has
// planned the host before. It does so if the allocation depends on the host; if not, the apply may make the allocation before the
// host, so that the doubt is justified.
func Foresee(ctx context.Context, site *machine.Site, r Request, vague bool) ([]expect.Doubt, error) {
	planned := expect.ExpectedOf(site)
	spec := r.AllocationSpec
	named := expect.CandidatesOf(spec)
	expectsClass := spec.ResourceClass != "" && planned.Class(spec.ResourceClass)
	expectsNode := slices.ContainsFunc(named, planned.Host)
	if expectsClass && !slices.ContainsFunc(named, func(ref string) bool { return !planned.Host(ref) }) {
		return nil, nil
	}
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return nil, err
	}
	excluded := unknownExcluded(site, r, all)
	doubts := gapDoubts(site, r, all, expectsClass)
	if len(doubts) > 0 || vague || expectsClass || expectsNode {
		return append(doubts, excluded...), nil
	}
	census, _, err := examine(ctx, site, r, all, inventoriesOfPlans)
	if err == nil && census.IsEmpty() && !existsAlready(ctx, site, spec.Name) {
		attribute := expect.AttributeOf(spec)
		if len(census.Lacks) > 0 {
			attribute = "require"
		}
		doubts = append(doubts, expect.Doubt{
			Attribute: attribute, Summary: "No node matches now",
			Detail: fmt.Sprintf("%s. %s", census, r.unlessPlanned()),
		})
	}
	return append(doubts, excluded...), err
}

// unknownExcluded returns a doubt for each excluded node that Ironic does not know, and that no host of this plan may be: a wrong name
// excludes nothing, so that the allocation may reserve the node that was meant.
func unknownExcluded(site *machine.Site, r Request, all map[string]*ironic.Node) (doubts []expect.Doubt) {
	if r.Require == nil {
		return nil
	}
	for _, ref := range r.Require.Exclude {
		for _, g := range expect.GapsOf(ironic.AllocationSpec{Node: ref}, all) {
			if !expect.ExpectedOf(site).Host(ref) {
				doubts = append(doubts, expect.Doubt{Attribute: "require", Summary: g.Summary(), Detail: g.String() +
					" So require.exclude does not keep the " + r.what() + " from any node by that name."})
			}
		}
	}
	return doubts
}

// gapDoubts names what a request demands and no node has, unless this plan creates or changes a host that may have it.
func gapDoubts(site *machine.Site, r Request, all map[string]*ironic.Node, expectsClass bool) (doubts []expect.Doubt) {
	for _, g := range expect.GapsOf(r.AllocationSpec, all) {
		switch {
		case g.IsNode() && expect.ExpectedOf(site).Host(g.Value), !g.IsNode() && expectsClass:
		default:
			doubts = append(doubts, expect.Doubt{Attribute: g.Attribute, Summary: g.Summary(), Detail: g.String() + " " +
				r.unlessPlanned()})
		}
	}
	return doubts
}

// foreseeGroup is Foresee for a group that is planned. A doubt that no host can remove which others may add is fatal.
func foreseeGroup(ctx context.Context, site *machine.Site, g *Group, vague bool) ([]expect.Doubt, error) {
	g.group = g.Name
	if vague || expect.ExpectedOf(site).Class(g.ResourceClass) || len(g.lacking()) == 0 {
		return nil, nil
	}
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return nil, err
	}
	excluded := unknownExcluded(site, g.Request, all)
	if doubts := gapDoubts(site, g.Request, all, false); len(doubts) > 0 {
		return append(g.beforeMoves(doubts...), excluded...), nil
	}
	if reason := g.cannotHold(all); reason != "" {
		return []expect.Doubt{{Attribute: "max_per_domain", Summary: "Group cannot be spread", Detail: reason +
			" Raise max_per_domain, or make the group smaller.", Fatal: true}}, nil
	}
	need := 0
	for _, m := range g.lacking() {
		if m.isToLeave() || !existsAlready(ctx, site, m.Name) {
			need++
		}
	}
	g.enough = inventoriesOfPlans
	census, free, err := examine(ctx, site, g.Request, all, inventoriesOfPlans)
	usable := len(g.Spread.choose(free, g.used(), need))
	if err != nil || usable+census.Unread >= need {
		return excluded, err
	}
	attribute := expect.AttributeOf(g.AllocationSpec)
	if usable < len(free) {
		attribute = "max_per_domain"
	}
	short := expect.Doubt{Attribute: attribute, Summary: "Too few nodes match now", Detail: fmt.Sprintf("%s, and %d can have one: %s. %s",
		needs(need), usable, census, g.unlessPlanned())}
	return append(g.beforeMoves(short), excluded...), nil
}

// beforeMoves makes doubts fatal if members are to give up their nodes, and the group may not wait for others: the apply would destroy
// deployments for members that cannot move.
func (g *Group) beforeMoves(doubts ...expect.Doubt) []expect.Doubt {
	if g.Wait > 0 || !slices.ContainsFunc(g.Members, (*GroupMember).isToLeave) {
		return doubts
	}
	for i := range doubts {
		doubts[i].Fatal = true
		doubts[i].Detail += " No member moves, and no deployment is destroyed, before nodes match: make some available first, or remove " +
			"members from replace_members."
	}
	return doubts
}

// UnknownNode says that Ironic knows no node of a name or UUID, and names similar ones. It returns "" if Ironic knows the node, or if
// this plan creates or changes a host that may be meant.
func UnknownNode(ctx context.Context, site *machine.Site, ref string) (string, error) {
	if expect.ExpectedOf(site).Host(ref) {
		return "", nil
	}
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return "", err
	}
	for _, g := range expect.GapsOf(ironic.AllocationSpec{Node: ref}, all) {
		return g.String(), nil
	}
	return "", nil
}

// existsAlready reports whether there is an allocation of this name, for example because a run was killed after it had created it. The
// apply takes it over, or explains why not.
func existsAlready(ctx context.Context, site *machine.Site, name string) bool {
	if name == "" {
		return false
	}
	all, err := site.Ironic.AllocationsForPlan(ctx)
	if err != nil { // the apply will tell
		return false
	}
	for _, a := range all {
		if a.Name == name {
			return true
		}
	}
	return false
}

// unlessPlanned ends the description of a doubt.
func (r *Request) unlessPlanned() string {
	what := r.what()
	dependsOn := "If this configuration creates or changes the host that is meant, " +
		"the " + what + " needs depends_on with that metal_host: without it, Terraform may make the " + what + " before the host."
	if r.Wait > 0 {
		return fmt.Sprintf("The apply waits up to %s for such a node (wait_for_capacity), and then fails for this %s. ", r.Wait,
			what) + dependsOn
	}
	return "The apply fails for this " + what + ", unless that changes before. " + dependsOn
}
