package allocate

import (
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Question is something that a decision depends on, and that only Ironic knows.
type Question string

// The questions.
const (
	AskBegun   Question = "what a killed run has created of a reservation"
	AskNodes   Question = "what speaks against a reservation"
	AskMatches Question = "which nodes match"
	AskRelease Question = "what the release of a node finishes"
	AskMembers Question = "which nodes the members have"
)

// Answers are what Ironic has said. The zero value of an answer means that Ironic was not asked: during an apply, which reports what
// happens itself, or while the configuration of the provider is not known.
type Answers struct {
	Asked       []Question
	Begun       *Begun
	Doubts      []expect.Doubt
	Matches     *Census
	Quarantined string // names the node if its release finishes a quarantine
}

// Look decides, asks Ironic what that depends on, and decides again. site is nil if Ironic cannot be asked. The error says which answer is
// missing.
func Look(ctx context.Context, site *machine.Site, w Wish, seen Seen) (plan Plan, failed error) {
	for plan = Decide(w, seen); len(plan.Asks) > 0; plan = Decide(w, seen) {
		for _, q := range plan.Asks {
			if err := seen.ask(ctx, site, w, q); err != nil {
				failed = err
			}
		}
	}
	return plan, failed
}

func (s *Seen) ask(ctx context.Context, site *machine.Site, w Wish, q Question) (err error) {
	s.Asked = append(s.Asked, q)
	if site == nil {
		return nil
	}
	if q == AskRelease {
		s.Quarantined = quarantined(ctx, site, s.ID, s.NodeID)
		return nil
	}
	if site.Ironic.HasWritten() {
		return nil
	}
	if q == AskBegun {
		r := w.Request("")
		s.Begun = findBegun(ctx, site, &r)
		return nil
	}
	if q == AskNodes {
		s.Doubts, err = Foresee(ctx, site, w.Request(""), w.isVague())
		return err
	}
	matches, err := TakeCensus(ctx, site, w.Request(s.ID))
	switch {
	case err == nil:
		s.Matches = &matches
	case s.Node.Unusable != "" && w.OnUnusable.V == UnusableIsReplaced:
		return nil // the node is released in any case
	}
	return err
}

// quarantined names the node of an allocation if its release finishes a quarantine.
func quarantined(ctx context.Context, site *machine.Site, allocation, node string) string {
	if n, err := site.Ironic.NodeForRefresh(ctx, node); err == nil && notes.InQuarantineFor(n, allocation) {
		return ironic.NodeLabel(n)
	}
	return ""
}

// LookGroup is Look for a group.
func LookGroup(ctx context.Context, site *machine.Site, w GroupWish, seen GroupSeen) (plan GroupPlan, failed error) {
	for plan = DecideGroup(w, seen); len(plan.Asks) > 0; plan = DecideGroup(w, seen) {
		for _, q := range plan.Asks {
			seen.Asked = append(seen.Asked, q)
			switch {
			case site == nil:
			case q == AskRelease:
				seen.Quarantined = map[string]string{}
				for key, m := range seen.Members {
					if m.NodeID.Set {
						seen.Quarantined[key] = quarantined(ctx, site, m.ID.V, m.NodeID.V)
					}
				}
			case site.Ironic.HasWritten(): // an apply, which says itself what happens
			case q == AskMembers:
				seen.Nodes = nodesOfMembers(ctx, site, w, seen.Members)
			default:
				wanted, byKey := w.Group(KeyPrefix(seen.Members, w.Name.V), plan.Forecast.Members, w.Size.V)
				w.Move(plan.Steps, byKey)
				if err := seen.ask(ctx, site, wanted, q, w.isVague()); err != nil {
					failed = err
				}
			}
		}
	}
	return plan, failed
}

// ask answers a question about the members that a group lacks.
func (s *GroupSeen) ask(ctx context.Context, site *machine.Site, wanted *Group, q Question, vague bool) (err error) {
	if q == AskBegun {
		s.Begun = findBegunMembers(ctx, site, wanted)
		return nil
	}
	s.Doubts, err = foreseeGroup(ctx, site, wanted, vague)
	return err
}

// nodesOfMembers reads the nodes of members, by key. It leaves out those that it cannot read.
func nodesOfMembers(ctx context.Context, site *machine.Site, w GroupWish, members map[string]Member) map[string]MemberNode {
	all := map[string]MemberNode{}
	for key, m := range members {
		if !m.NodeID.Set {
			continue
		}
		if node, err := site.Ironic.NodeForRefresh(ctx, m.NodeID.V); err == nil {
			all[key] = MemberNode{
				ReservedNode: ReservedBy(m.ID.V, m.NodeID.V, node), Protected: node.Protected,
				Domain: Spread{By: w.SpreadBy.V}.Domain(node),
			}
		}
	}
	return all
}
