package expect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Doubt is a reason why the apply of an allocation will probably fail.
type Doubt struct {
	Attribute       string // the attribute of metal_allocation that demands it
	Summary, Detail string
	Fatal           bool // the apply fails certainly
}

// RuleProvision is the rule of all verbs that change the provision state of a node.
const RuleProvision = "node:set_provision_state"

// refusalLimit is how long a plan asks Ironic for what a user may do.
const refusalLimit = 30 * time.Second

// relation is how a user is related to an object of Ironic.
type relation int

const (
	ofSystem relation = iota // by the scope of the token
	ofOwner                  // the project of the token owns the object
	ofLessee                 // the project of the token leases the node
)

// roleOrder are Keystone's roles. Each has the rights of those before it.
var roleOrder = []string{"reader", "member", "manager", "admin"}

// Answer says whether a machine meets a demand.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// refusals is what the plans of a run have learned about the rights of the user.
type refusals struct {
	turn    chan struct{}     // has room for one, who may use the rest
	refused map[relation]bool // whether Ironic refuses to validate a node
}

func refusalsOf(site *machine.Site) *refusals {
	return machine.Kept(site, func(*machine.Site) *refusals {
		return &refusals{turn: make(chan struct{}, 1), refused: make(map[relation]bool)}
	})
}

// to says whether a rule grants something by default to a user: unknown if that depends on the relation.
func to(g failure.Granted, who *api.Rights, related []relation) Answer {
	reaches := func(least string) bool {
		return least != "" && slices.ContainsFunc(who.Roles, func(role string) bool {
			return slices.Index(roleOrder, strings.ToLower(role)) >= slices.Index(roleOrder, least)
		})
	}
	count := 0
	for _, by := range related {
		if reaches(g.Any) || reaches(map[relation]string{ofSystem: g.System, ofOwner: g.Owner, ofLessee: g.Lessee}[by]) {
			count++
		}
	}
	switch {
	case slices.Contains(who.Roles, "service") || len(related) == 0 || count > 0 && count < len(related):
		return Unknown
	case count == 0:
		return No
	}
	return Yes
}

// relationsOf returns how a user may be related to the object of a rule, as far as the token tells; none if the token has another scope
// than the system or a project.
func relationsOf(who *api.Rights, rule string) []relation {
	switch kind, _, _ := strings.Cut(rule, ":"); {
	case who.System:
		return []relation{ofSystem}
	case who.Project == "":
		return nil
	case kind == "node" || kind == "port" || kind == "portgroup":
		return []relation{ofOwner, ofLessee}
	}
	return []relation{ofOwner} // Ironic shows a project no others
}

func relationsTo(project string, node *ironic.Node) (related []relation) {
	if node.Owner == project {
		related = append(related, ofOwner)
	}
	if node.Lessee == project {
		related = append(related, ofLessee)
	}
	return related
}

// FindNode reads the node of a plan; nil if the plan does not know yet which one that is.
type FindNode func(context.Context) (*ironic.Node, error)

// ForeseeRefusal returns what speaks against an apply that needs the right that a rule of Ironic's policy grants; nil if nothing does, or
// if that is not known. It makes requests only if the default policy does not grant the right to all users with the roles of this one.
func ForeseeRefusal(ctx context.Context, site *machine.Site, rule string, find FindNode) *Doubt {
	who := site.Ironic.Rights()
	of, known := failure.GrantOf(rule)
	if who == nil || !known {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, refusalLimit)
	defer stop()
	related := relationsOf(who, rule)
	if len(related) > 1 && to(of, who, related) != Yes {
		related = relationsNow(ctx, site, who, find)
	}
	if to(of, who, related) != No || !hasDefaultPolicy(ctx, site, who) {
		return nil
	}
	needs := fmt.Sprintf("By default, the rule baremetal:%s of Ironic's policy needs the role %s. This user has %s.", rule,
		of.Of(failure.ObjectOf(rule)), who)
	if rule == RuleProvision && find != nil {
		if refused, asked := refusesToValidate(ctx, site, related[0], find); asked && refused {
			return &Doubt{Fatal: true, Summary: "The user lacks the right to provision", Detail: needs + " Ironic refuses this user to " +
				"validate the node, too, for which it needs the same role, so the apply fails here. " + failure.GetRight +
				" If the policy of this site grants the rule already, let it grant baremetal:node:validate, too."}
		} else if asked {
			return nil
		}
	}
	return &Doubt{Summary: "The user may lack the right baremetal:" + rule, Detail: needs + " The apply fails here, unless the policy " +
		"of this site grants more. " + failure.GetRight}
}

// relationsNow returns how a project is related to the node of a plan or, if the plan does not know the node yet, to the nodes that it may
// be. It returns none if Ironic does not tell.
func relationsNow(ctx context.Context, site *machine.Site, who *api.Rights, find FindNode) (related []relation) {
	if find != nil {
		if node, err := find(ctx); err == nil {
			related = relationsTo(who.Project, node)
		}
		return related
	}
	if ExpectedOf(site).any(func(ExpectedHost) bool { return true }) {
		return []relation{ofOwner, ofLessee} // it may be the node of a host of this plan
	}
	all, err := site.Ironic.NodesForPlan(ctx)
	if err != nil {
		return nil
	}
	for _, node := range all {
		related = append(related, relationsTo(who.Project, node)...)
	}
	return related
}

// hasDefaultPolicy reports whether nothing speaks for a policy that grants more than the default one: that shows a project neither drivers
// nor the nodes of others.
func hasDefaultPolicy(ctx context.Context, site *machine.Site, who *api.Rights) bool {
	if who.System {
		return true
	}
	if len(driversForPlan(ctx, site)) > 0 {
		return false
	}
	all, err := site.Ironic.NodesForPlan(ctx)
	for _, node := range all {
		if len(relationsTo(who.Project, node)) == 0 {
			return false
		}
	}
	return err == nil
}

// refusesToValidate reports whether Ironic refuses to validate a node. That changes nothing, and the default policy grants it to those who
// may change the provision state. asked is false if the answer says nothing about rights. It asks once for each relation.
func refusesToValidate(ctx context.Context, site *machine.Site, as relation, find FindNode) (refused, asked bool) {
	learned := refusalsOf(site)
	select {
	case learned.turn <- struct{}{}:
		defer func() { <-learned.turn }()
	case <-ctx.Done():
		return false, false
	}
	if refused, asked = learned.refused[as]; asked {
		return refused, true
	}
	node, err := find(ctx)
	if err != nil {
		return false, false
	}
	_, err = site.Ironic.Validate(ctx, node.UUID)
	if refused = api.IsForbidden(err); err == nil || refused {
		learned.refused[as] = refused
		return refused, true
	}
	return false, false
}
