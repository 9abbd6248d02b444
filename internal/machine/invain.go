package machine

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// stopsAfter is how many machines fail for one reason that is not theirs before the run starts no other one in vain.
const stopsAfter = 2

// maxNamed is how many machines a fact names.
const maxNamed = 5

// failings are what has failed in a run.
type failings struct {
	mu   sync.Mutex
	all  []*failing       // for reasons that are no fault of the machines
	last map[move]outcome // of each operation on a machine
}

// move is an operation of the run on a machine.
type move struct {
	id   string // UUID of the node
	goal states.Goal
}

// outcome is what became last of an operation.
type outcome struct {
	node *ironic.Node
	end  ending
}

// ending says how an operation has ended: with a reason of the table, or as follows.
type ending string

const (
	succeeded ending = "succeeded"
	unknown   ending = "unknown" // it has failed, and nothing tells why; or it has not ended in time
)

// failing is a reason, what it speaks against, and the machines that have failed for it, by UUID, with their names.
type failing struct {
	why     *reason.Reason
	against string
	ids     []string
	names   []string
}

func failingsOf(site *Site) *failings {
	return Kept(site, func(*Site) *failings { return &failings{last: map[move]outcome{}} })
}

// ended records how an operation of the run on a machine has ended. Of one that has failed for a reason, it says which other machines have
// failed for it in the same operation, and what they have in common that those which succeeded have not; nil if no other one has.
func (f *failings) ended(n *ironic.Node, goal states.Goal, end ending) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[move{n.UUID, goal}] = outcome{new(*n), end}
	if end == succeeded || end == unknown {
		return nil
	}
	var failed, others []*ironic.Node
	var names []string
	for m, o := range f.last {
		switch {
		case m.goal != goal:
		case o.end == succeeded:
			others = append(others, o.node)
		case o.end == end:
			failed = append(failed, o.node)
			if m.id != n.UUID {
				names = append(names, cmp.Or(o.node.Name, m.id))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	fact := "Machines of this run that have failed for this reason, too: " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		fact += fmt.Sprintf(" and %d more", more)
	}
	return []string{strings.TrimSpace(fact + ". " + evidence.Common(failed, others))}
}

// Gets says what the machine is about to get: the address of an image, with what else identifies it, or something else that only equal
// texts identify. Machines that get the same fail for the same mistake in what was asked for: see InVain.
func (m *Machine) Gets(what string) { m.gets = what }

// against returns what a failure of an operation on the machine speaks against, such as a conductor; "" if only against the machine, or if
// that is not known.
func (m *Machine) against(why *reason.Reason, goal states.Goal, network string) string {
	n := m.node
	info := func(keys ...string) string {
		values := make([]string, len(keys))
		for i, key := range keys {
			if value := n.DriverInfo[key]; value != nil {
				values[i] = fmt.Sprint(value)
			}
		}
		return strings.Join(values, " ")
	}
	what := ""
	switch why.Shared {
	case reason.Image:
		what = m.gets
	case reason.Settings:
		if goal == states.GoalServiced {
			what = fmt.Sprintf("%s %s %v", m.gets, n.Driver, n.Properties["vendor"])
		}
	case reason.Conductor:
		what = n.Conductor
	case reason.Driver:
		what = fmt.Sprintf("%s %s %v", n.ConductorGroup, n.Driver, ironic.InterfacesOf(n))
	case reason.Server:
		address, _, _ := strings.Cut(m.gets, " ")
		if at, err := url.Parse(address); err == nil {
			what = at.Host
		}
	case reason.Ramdisk:
		what = "deploy " + info("deploy_kernel", "deploy_ramdisk", "deploy_iso")
		if goal == states.GoalRescued || goal == states.GoalUnrescued {
			what = "rescue " + info("rescue_kernel", "rescue_ramdisk")
		}
	case reason.Network:
		what = fmt.Sprintf("%s %s %s", network, n.NetworkInterface, info(network+"_network"))
	}
	return what
}

// networkOf returns the network of Ironic that an operation uses.
func networkOf(goal states.Goal) string {
	switch goal {
	case states.GoalDeployed, states.GoalRebuilt, states.GoalAdopted, states.GoalUndeployed: // to be deployed anew: see InVain
		return "provisioning"
	case states.GoalRescued, states.GoalUnrescued:
		return "rescuing"
	case states.GoalInspected:
		return "inspection"
	case states.GoalServiced:
		return "servicing"
	case states.GoalManageable, states.GoalAvailable, states.GoalConfigured:
	}
	return "cleaning"
}

var namedNetwork = regexp.MustCompile(`(provisioning|rescuing|inspection|servicing|cleaning)[ _]network`)

// note records that an operation on the machine has failed for a reason; nil: it is not known.
func (f *failings) note(m *Machine, why *reason.Reason, goal states.Goal) {
	if why == nil {
		return
	}
	network := networkOf(goal)
	if named := namedNetwork.FindStringSubmatch(m.node.LastError); named != nil {
		network = named[1]
	}
	against := m.against(why, goal, network)
	if against == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(known *failing) bool { return known.why.ID == why.ID && known.against == against })
	if i < 0 {
		i, f.all = len(f.all), append(f.all, &failing{why: reason.ByID(why.ID), against: against})
	}
	if known := f.all[i]; !slices.Contains(known.ids, m.node.UUID) {
		known.ids, known.names = append(known.ids, m.node.UUID), append(known.names, cmp.Or(m.node.Name, m.node.UUID))
	}
}

// KindInVain is the kind of an error which says that nothing was sent to a machine, because the same has failed on others for a reason that
// is not theirs.
const KindInVain failure.Kind = "in vain"

// InVain returns an error of KindInVain if two machines of this run have failed for a reason that holds for an operation on this one, too:
// for what it is to get, or for the place where it is. It returns nil if this call has moved the machine already, if Ironic works on it, if
// its quarantine is finished, or if Gets has not said what it gets. A machine that is undeployed gets something if it is deployed anew.
func (m *Machine) InVain(goal states.Goal) error {
	if m.acted || m.gets == "" || m.quarantine != nil || states.IsInProgress(m.node) {
		return nil
	}
	f := failingsOf(m.site)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.all {
		if len(known.ids) < stopsAfter || known.against != m.against(known.why, goal, networkOf(goal)) {
			continue
		}
		return &failure.Error{
			Kind: KindInVain, Node: m.node, Title: "Machine was not started", Why: known.why,
			Fact: fmt.Sprintf("node %s was not started: %s, %s, failed with %s", ironic.NodeLabel(m.node),
				strings.Join(known.names[:stopsAfter], " and "), shares(known.why), known.why.ID),
			Advice: "Nothing was sent to it. Apply again once that is mended.",
			Action: "Nothing was sent to it. Run the command again once that is mended.",
		}
	}
	return nil
}

// shares says what machines that fail for a reason share.
func shares(why *reason.Reason) string {
	return map[reason.Shared]string{
		reason.Image: "which were to get the same", reason.Settings: "which were to get the same",
		reason.Conductor: "of the same conductor", reason.Server: "with the same image server", reason.Ramdisk: "with the same ramdisk",
		reason.Network: "with the same networks", reason.Driver: "with the same driver",
	}[why.Shared]
}
