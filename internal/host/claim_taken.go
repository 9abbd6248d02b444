package host

import (
	"errors"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// KindTaken is the kind of an error which says that another node already has the name, BMC or MAC address of a new one.
const KindTaken failure.Kind = "taken"

// Taken is what an error of KindTaken knows.
type Taken struct {
	What  identity.Kind
	Value string
	Node  *ironic.Node // the node that has it
	// Making is the mark of another run that creates the node at the same time; nil if there is none.
	Making *notes.Creation
	// Obstacle says why the node, which a killed run has begun to create or which was discovered, is not taken over; "" if it is another
	// node.
	Obstacle string
	// For is the node that was to get it by a change; nil for a new one.
	For *ironic.Node
	// Exchanged: the run gives the node, in turn, what the changed node has.
	Exchanged bool
	// InUse: a machine in use would change hands. Node is For if For would become another machine, and With is what it would get besides.
	InUse bool
	With  string
}

// TakenOf returns what an error of KindTaken knows; nil for other errors.
func TakenOf(err error) *Taken { return failure.AboutOf[*Taken](err, KindTaken) }

// Err returns the error, which names the node.
func (e *Taken) Err() error {
	return &failure.Error{Kind: KindTaken, About: e, Fact: e.fact(), Advice: e.advice()}
}

// At returns the attribute of a host whose value belongs to the other node. bonds are the MAC addresses of its port groups by key; with
// byBMC, the bmc block says which BMC it has.
func (e *Taken) At(byBMC bool, bonds map[string]string) decide.Path {
	switch e.What {
	case identity.BMC:
		if byBMC {
			return decide.At("bmc", "address")
		}
		return decide.At("driver_info")
	case identity.Address:
		return decide.At("ports", decide.Key(e.Value))
	case identity.Bond:
		for key, mac := range bonds {
			if mac == e.Value {
				return decide.At("port_groups", decide.Key(key), "mac")
			}
		}
	case identity.Name:
	}
	return decide.At("name")
}

func (e *Taken) fact() string {
	if e.InUse {
		return e.factInUse()
	}
	label := ironic.NodeLabel(e.Node)
	switch e.What {
	case identity.Name:
		return fmt.Sprintf("a node with name %s already exists: %s", e.Value, e.Node.UUID)
	case identity.BMC:
		return fmt.Sprintf("node %s has the BMC %s already", label, e.Value)
	case identity.Bond:
		return fmt.Sprintf("a port group with MAC address %s already exists, on node %s", e.Value, label)
	case identity.Address:
	}
	return fmt.Sprintf("a port with MAC address %s already exists, on node %s", e.Value, label)
}

func (e *Taken) advice() string {
	if e.InUse {
		return e.adviceInUse()
	}
	if e.Making != nil {
		return fmt.Sprintf("%s is creating it. If two configurations create the same machine, remove it from one of them.", e.Making)
	}
	if e.For != nil {
		return e.adviceForChange()
	}
	return failure.AdviseCreateFirst("a host of the same machine") + "\n\n" + e.adviceForNew()
}

// adviceForNew says what to do about a new host that needs what another node has.
func (e *Taken) adviceForNew() string {
	switch {
	case e.Obstacle != "":
		return fmt.Sprintf("The node looks like one that discovery has found, or that an earlier run has begun to create, but the "+
			"provider does not take it over, because %s. If the machine is yours, import it:\n\n  terraform import <address of the "+
			"metal_host> %s\n\nOtherwise, describe another machine.", e.Obstacle, ironic.NodeArgument(e.Node))
	case e.What == identity.BMC:
		return "Two nodes on one BMC are one machine: every operation on one affects the other. Correct the address, or import the node " +
			"that has it:\n\n" +
			"  terraform import <address of the metal_host> " + ironic.NodeArgument(e.Node)
	case e.What == identity.Bond:
		return "A MAC address belongs to one port group only. Correct the mac of the group, or import the node that has it:\n\n " +
			" terraform import <address of the metal_host> " + ironic.NodeArgument(e.Node)
	}
	return failure.AdviseConflict(failure.Sentence(errors.New(e.fact())))
}

// adviceForChange says what to do about a change that gives a host what another node has.
func (e *Taken) adviceForChange() string {
	other := ironic.NodeLabel(e.Node)
	switch {
	case e.Exchanged:
		return fmt.Sprintf("This run gives node %s, in turn, the BMC that this host has now. Two nodes on one BMC are one machine, and "+
			"an interrupted apply would leave them so. Give one of them an address that no machine has, and apply; then give both their "+
			"new addresses.", other)
	case e.What == identity.BMC:
		return "Two nodes on one BMC are one machine: every operation on one affects the other. Correct the address. If the machine now " +
			"belongs to this host, give node " + other + " another address first, or delete it."
	}
	unique := "A MAC address belongs to one node only. Correct it"
	if e.What == identity.Name {
		unique = "Names are unique in Ironic. Choose another name"
	}
	return fmt.Sprintf("%s, or change node %s first. If this configuration changes that node, too, apply that change alone first "+
		"(-target).", unique, other)
}

// Twin refuses a second host of a node.
func Twin(node string) decide.Notice {
	return decide.Refuse(nil, "Two hosts for one node", fmt.Sprintf("Node %s has two metal_host resources. They would undo the changes of "+
		"each other, and destroying one of them may delete the node. Take one of them out of the state (terraform state rm) and out of "+
		"the configuration, with its import block.", node))
}

// AnnounceTakeOver warns of a node that a new host takes over, once in a run. It reports whether discovery has created the node, and there
// is more to say: see TakeOver.
func AnnounceTakeOver(site *machine.Site, host string, found *Found) (notices []decide.Notice, discovered bool) {
	switch label := ironic.NodeLabel(found.Node); {
	case found.Obstacle != "":
		notices = append(notices, decide.Warn(nil, "Node is not taken over",
			fmt.Sprintf("The apply for host %s fails if Ironic still has node %s then: the provider does not take that node over, "+
				"because %s. If the machine is yours, import it: terraform import <address of the metal_host> %s", host, label,
				found.Obstacle, found.Node.UUID)))
	case !site.Run.Announce(notes.MarkCreation, found.Node.UUID):
	case found.By != nil:
		notices = append(notices, machine.TakenOver(found.By, "node "+label, site.AlsoBegun(found.Node)...))
	default:
		return nil, true
	}
	return notices, false
}
