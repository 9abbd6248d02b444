package doctor

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

func checkRights(s *sight) []Check {
	const name = "rights"
	switch {
	case s.connect != nil:
		return []Check{s.unknown(name, errNoIronic)}
	case s.who == nil && s.nodes.err != nil:
		return []Check{s.unknown(name, s.nodes.err)}
	case s.who == nil:
		return []Check{{Name: name, Result: OK, Fact: "Ironic asks no Keystone, so there are no roles: its users may do everything."}}
	}
	var checks []Check
	for _, scope := range s.rights {
		checks = append(checks, scope.check())
	}
	if len(s.rights) == 1 {
		checks = append(checks, Check{
			Name: "rights on machines", Result: Unknown, Fact: "Ironic shows this user no machine to ask about.",
			Next: "If there are machines, an operator has to make the project of the user their owner or lessee.",
		})
	}
	return checks
}

func (a scope) check() Check {
	c := Check{Name: a.name, Result: OK}
	var yes, no, open []string
	for _, r := range a.rights {
		switch r.may {
		case allowed:
			yes = append(yes, r.feature)
		case refused:
			no = append(no, r.feature)
			c.Details = append(c.Details, r.refusal())
		case notKnown:
			open = append(open, r.feature)
			c.Details = append(c.Details, fmt.Sprintf("%s: not known: %v", r.feature, r.err))
		}
	}
	var parts []string
	for _, part := range []struct {
		says     string
		features []string
	}{{"Allowed", yes}, {"Refused", no}, {"Not known", open}} {
		if len(part.features) > 0 {
			parts = append(parts, part.says+": "+strings.Join(part.features, "; ")+".")
		}
	}
	c.Fact = strings.Join(parts, " ")
	if a.node != "" {
		c.Fact += " Asked about " + a.node + "."
	}
	switch {
	case len(no) > 0:
		c.Result = Warning
		c.Next = "If you need what is refused, ask for such a role, or ask an operator of Ironic to grant the rules in policy.yaml: see " +
			"the guide \"What a user may do\"."
	case len(open) > 0:
		c.Result = Unknown
	}
	return c
}

// refusal says which rule refuses a right, and who has it.
func (r right) refusal() string {
	if r.rule == "" {
		return r.feature + ": Ironic names no rule"
	}
	said := fmt.Sprintf("%s: rule %s", r.feature, r.rule)
	if of, known := failure.GrantOf(r.rule); known {
		said += ", by default for " + of.Of(failure.ObjectOf(r.rule))
	}
	return said
}

// checkDefect says whether this Ironic makes nodes their own parents (reference/ironic.md#a-node-that-is-its-own-parent).
func checkDefect(s *sight) []Check {
	const name = "defect parent_node"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	var harmed []string
	for i := range s.nodes.value {
		if n := &s.nodes.value[i]; n.ParentNode != "" && n.ParentNode == n.UUID {
			harmed = append(harmed, label(n))
		}
	}
	switch {
	case len(harmed) > 0:
		return []Check{{Name: name, Result: Problem, Fact: fmt.Sprintf("%s their own parents: this Ironic has a defect, by which a "+
			"change of any node makes the node its own parent. Such a node can be neither allocated, deployed nor powered.",
			are(len(harmed), "node")), Details: fold(harmed), Next: "Upgrade Ironic, or ask your distribution for the corrected package. " +
			"Ironic's API cannot repair the nodes: set parent_node to null in its database, or delete and enrol them."}}
	case !ironic.MayHaveParentDefect(s.server):
		return []Check{{Name: name, Result: OK, Fact: "This version of Ironic does not have the defect."}}
	}
	return []Check{{Name: name, Result: OK, Fact: "No node is its own parent. A certain test needs a new node: the provider makes it " +
		"before its first change, and deletes the node."}}
}
