package machine

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
)

// stopsAfter is how many machines fail for one reason that is not theirs before the run starts no other one in vain.
const stopsAfter = 2

// maxNamed is how many machines a fact names.
const maxNamed = 5

// failings are what has failed in a run.
type failings struct {
	mu   sync.Mutex
	all  []*failing         // for reasons that are no fault of the machines
	last map[string]outcome // of each machine that the run has moved, by UUID
}

// outcome is what became last of a machine: it has failed for a reason, or succeeded ("").
type outcome struct {
	node   *ironic.Node
	reason string
}

// failing is a reason, what it speaks against, and the machines that have failed for it, by UUID, with their names.
type failing struct {
	why     *reason.Reason
	against string
	ids     []string
	names   []string
}

func failingsOf(site *Site) *failings {
	return Kept(site, func(*Site) *failings { return &failings{last: map[string]outcome{}} })
}

// succeeded records that the run has moved a machine to where it was to be.
func (f *failings) succeeded(m *Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[m.node.UUID] = outcome{node: new(*m.node)}
}

// alike records that the machine has failed for a reason, and says which others of the run have failed for it, and what they have in common
// that the others have not; nil if no other one has.
func (f *failings) alike(m *Machine, why *reason.Reason) []string {
	if why == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[m.node.UUID] = outcome{new(*m.node), why.ID}
	var failed, others []*ironic.Node
	var names []string
	for id, o := range f.last {
		switch {
		case o.reason == "":
			others = append(others, o.node)
		case o.reason == why.ID:
			failed = append(failed, o.node)
			if id != m.node.UUID {
				names = append(names, cmp.Or(o.node.Name, id))
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

// against returns what a failure of the machine for a reason speaks against, such as a conductor; "" if only against the machine.
func (m *Machine) against(why *reason.Reason) string {
	info := func(keys ...string) string {
		values := make([]string, len(keys))
		for i, key := range keys {
			if value := m.node.DriverInfo[key]; value != nil {
				values[i] = fmt.Sprint(value)
			}
		}
		return strings.Join(values, " ")
	}
	switch {
	case why.Blame == reason.Request:
		return m.gets
	case why.Place == reason.Conductor:
		return "conductor " + m.node.Conductor
	case why.Place == reason.Server:
		address, _, _ := strings.Cut(m.gets, " ")
		if at, err := url.Parse(address); err == nil && at.Host != "" {
			return "server " + at.Host
		}
	case why.Place == reason.Ramdisk:
		return "ramdisk " + info("deploy_kernel", "deploy_ramdisk", "deploy_iso")
	case why.Place == reason.Network:
		return "networks " + info("provisioning_network", "cleaning_network", "inspection_network")
	}
	return ""
}

// note records that the machine has failed for a reason; nil: it is not known.
func (f *failings) note(m *Machine, why *reason.Reason) {
	if why == nil || m.against(why) == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(known *failing) bool { return known.why.ID == why.ID && known.against == m.against(why) })
	if i < 0 {
		i, f.all = len(f.all), append(f.all, &failing{why: why, against: m.against(why)})
	}
	if known := f.all[i]; !slices.Contains(known.ids, m.node.UUID) {
		known.ids, known.names = append(known.ids, m.node.UUID), append(known.names, cmp.Or(m.node.Name, m.node.UUID))
	}
}

// KindInVain is the kind of an error which says that nothing was sent to a machine, because the same has failed on others for a reason that
// is not theirs.
const KindInVain failure.Kind = "in vain"

// InVain returns an error of KindInVain if two machines of this run have failed for a reason that holds for this one, too: for what it is
// to get, or for the place where it is. It returns nil if this call has moved the machine already, or if Gets has not said what it gets.
func (m *Machine) InVain() error {
	if m.acted || m.gets == "" {
		return nil
	}
	f := failingsOf(m.site)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.all {
		if len(known.ids) < stopsAfter || known.against != m.against(known.why) {
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
	if why.Blame == reason.Request {
		return "which were to get the same"
	}
	return map[reason.Place]string{
		reason.Conductor: "of the same conductor", reason.Server: "with the same image server", reason.Ramdisk: "with the same ramdisk",
		reason.Network: "with the same networks",
	}[why.Place]
}
