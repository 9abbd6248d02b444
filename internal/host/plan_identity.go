package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// inUseSummary is the title of a refusal to let a machine in use change hands.
const inUseSummary = "Machine in use would change hands"

// Neighbour is a node of the site with what names its machine.
type Neighbour struct {
	identity.Identity
	Node *ironic.Node
	Use  string // see UseOf
}

// Neighbours are the nodes of the site at the time of a plan.
type Neighbours struct {
	Own    *Neighbour // the node that the host has or takes over; nil: it gets a new one
	All    []Neighbour
	Hidden string // why the user may not see all of them; "": the user may, or the run has said so
}

// Identified is what names the machine of a host after the apply.
type Identified struct {
	identity.Identity
	Moves bool              // it is new, or differs from what the host has
	ByBMC bool              // the bmc block says which BMC the host has
	Bonds map[string]string // MAC addresses of the port groups by key
}

// guardIdentity refuses a plan by which a machine in use would change hands, whatever the same run does with the other node.
func (p *plan) guardIdentity() {
	site := p.seen.Neighbours
	switch {
	case !p.Identity.Moves:
		return
	case site == nil:
		p.ask(AskNeighbours)
		return
	case site.Hidden != "":
		p.warn(nil, "Not all machines are compared", fmt.Sprintf("%s The provider cannot tell whether another node has the BMC, a MAC "+
			"address or the name that a host of this plan gets. Ironic itself refuses only names and MAC addresses.", site.Hidden))
	}
	if p.seen.Missing != "" {
		p.refuseRemade(site)
	}
	if taken := handsOver(p.Identity.Identity, site.Own, site.All, p.replaces() != ""); taken != nil {
		p.refuse(taken.At(p.Identity.ByBMC, p.Identity.Bonds), inUseSummary, capital(taken.fact())+". "+taken.advice())
	}
}

// refuseRemade refuses to make a lost record anew while another node has its machine.
func (p *plan) refuseRemade(site *Neighbours) {
	for _, other := range site.All {
		if shared := p.Identity.Shared(other.Identity); other.Use == "" && len(shared) > 0 {
			p.refuse(nil, "Another record of the machine exists", fmt.Sprintf("Ironic has lost the record of host %s, and node %s has "+
				"the %s %s now. Take the host out of the state (terraform state rm), and import that node, or delete it.", p.Label,
				ironic.NodeLabel(other.Node), shared[0].Kind, shared[0].Value))
			return
		}
	}
}

// handsOver returns why a host must not get an identity; nil if it may. A node in use never gets what another node has now, and no other
// node gets what it has. own is the node that the host has now; nil for a new one.
// replaced: people have replaced the machine, or its mainboard.
func handsOver(gets identity.Identity, own *Neighbour, all []Neighbour, replaced bool) (worst *Taken) {
	var before identity.Identity
	var owner *ironic.Node
	used := ""
	if own != nil {
		before, owner, used = own.Identity, own.Node, own.Use
	}
	for i, other := range all {
		if owner != nil && other.Node.UUID == owner.UUID || used == "" && other.Use == "" {
			continue
		}
		for _, t := range gets.NewlyShared(before, other.Identity) {
			if worst == nil || harm(t.Kind) > harm(worst.What) {
				worst = &Taken{What: t.Kind, Value: t.Value, Node: all[i].Node, For: owner, InUse: true}
			}
		}
	}
	if worst == nil && used != "" && !replaced {
		if worst = another(gets, before); worst != nil {
			worst.Node, worst.For, worst.InUse = owner, owner, true
		}
	}
	return worst
}

// another returns what a machine would get at once that makes it another one; nil if a change of what names it lets it be the same. It is
// the only place which decides that: a new BMC address alone is a renumbering, new MAC addresses alone are a new network card, and another
// name is a renaming. It is another machine with a new BMC and new MAC addresses, and where nothing stays by which it was known.
func another(gets, before identity.Identity) *Taken {
	moves, adds := gets.MovesBMC(before), gets.AddsAddress(before)
	renamed := gets.Name != "" && before.Name != "" && len(gets.Shared(before)) == 0
	switch {
	case moves && adds:
		return &Taken{What: identity.BMC, Value: gets.BMC.String(), With: "other MAC addresses"}
	case moves && renamed:
		return &Taken{What: identity.BMC, Value: gets.BMC.String(), With: "another name"}
	case adds && renamed && len(before.Addresses) > 0:
		return &Taken{What: identity.Address, Value: gets.Addresses[0], With: "another name"}
	}
	return nil
}

// harm ranks what two nodes may share: the BMC controls the machine, a MAC address boots it.
func harm(what identity.Kind) int {
	return map[identity.Kind]int{identity.BMC: 3, identity.Address: 2, identity.Bond: 1, identity.Name: 0}[what]
}

// UseOf is states.UseOf of a node. A discovery reserves a node for a moment to name it, which is no use.
func UseOf(n *ironic.Node) string {
	if found.IsClaim(n.InstanceUUID, n.UUID) {
		free := *n
		free.InstanceUUID, n = "", &free
	}
	return states.UseOf(n)
}

// Occupant says how a node is used, and by which instance.
func Occupant(n *ironic.Node) string {
	use := cmp.Or(UseOf(n), "free")
	if n.InstanceUUID == "" {
		return use
	}
	return fmt.Sprintf("%s, by instance %s", use, strings.TrimSpace(n.InstanceName+" "+n.InstanceUUID))
}

// factInUse says how a machine in use would change hands.
func (e *Taken) factInUse() string {
	own := ""
	if e.For != nil {
		own = "node " + cmp.Or(e.For.Name, e.For.UUID)
	}
	other := "node " + cmp.Or(e.Node.Name, e.Node.UUID)
	has := fmt.Sprintf("which has the %s %s", e.What, e.Value)
	switch {
	case e.For == nil && e.What == identity.Name:
		return fmt.Sprintf("%s is %s; this plan would create another node with its name", other, UseOf(e.Node))
	case e.For == nil:
		return fmt.Sprintf("%s is %s; this plan would create another node for its machine, %s", other, UseOf(e.Node), has)
	case e.Node.UUID == e.For.UUID:
		return fmt.Sprintf("%s is %s; this change would give it the %s %s and %s at once, as another machine has", own, UseOf(e.For),
			e.What, e.Value, e.With)
	case UseOf(e.For) == "" && e.What == identity.Name:
		return fmt.Sprintf("%s is %s; this change would give its name to %s", other, UseOf(e.Node), own)
	case UseOf(e.For) == "":
		return fmt.Sprintf("%s is %s; this change would make %s control its machine, %s", other, UseOf(e.Node), own, has)
	case e.What == identity.Name:
		return fmt.Sprintf("%s is %s; this change would give it the name of %s", own, UseOf(e.For), other)
	}
	return fmt.Sprintf("%s is %s; this change would make it control the machine of %s, %s", own, UseOf(e.For), other, has)
}

// adviceInUse says how a machine in use keeps its node.
func (e *Taken) adviceInUse() string {
	switch {
	case e.For == nil:
		return "A list with count has shifted, or a key was renamed: use for_each, or moved blocks. If the state has lost the host, " +
			"import it; if it is tainted, run terraform untaint. To replace it, first destroy what runs on it."
	case e.Node.UUID == e.For.UUID:
		return "A list with count has shifted: use for_each, or moved blocks. If people have replaced the machine or its mainboard, say " +
			"so with replaced."
	}
	return "A list with count has shifted: use for_each, or moved blocks. Otherwise correct the value, or free the machine first, in an " +
		"apply of its own."
}
