package naming

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Named is a host of the discovery and its name.
type Named struct {
	Host Host
	Name string
	New  bool // the node has no marker yet
}

// MaxHostsReached is the reason in Plan.Pending for a host that would exceed MaxHosts of the rules.
const MaxHostsReached = "max_hosts reached"

// Plan lists the hosts that a discovery has and will have.
type Plan struct {
	Hosts   []Named           // hosts with its marker and hosts to name, sorted by name
	Pending map[string]string // why the discovery does not take a node, by the node's UUID
	Err     error             // collisions with CollisionError; the rest of the plan is valid
}

// Decide plans for all nodes of Ironic, in any order. Hosts with the marker of the discovery keep their names even if the rules
// have changed. Pending does not depend on Before: it has late machines too, except those that a later plan takes. The rules must be
// valid.
func (r Rules) Decide(all []Host) Plan {
	early := slices.DeleteFunc(slices.Clone(all), r.isLate)
	plan := r.decide(early)
	if len(early) == len(all) {
		return plan
	}
	plan.Pending = r.decide(all).Pending
	for _, named := range plan.Hosts {
		delete(plan.Pending, named.Host.ID)
	}
	return plan
}

// decide is Decide without regard to Before.
func (r Rules) decide(all []Host) Plan {
	hosts := slices.SortedFunc(slices.Values(all), byAge)
	hosts = slices.CompactFunc(hosts, func(a, b Host) bool { return a.ID == b.ID })
	d := decision{rules: r, plan: Plan{Pending: map[string]string{}}, taken: map[string]string{}, keys: map[string][]Host{}}
	for _, h := range hosts {
		for _, name := range []string{h.Name, h.OwnerName} {
			if _, isTaken := d.taken[lower(name)]; name != "" && !isTaken {
				d.taken[lower(name)] = h.ID
			}
		}
	}
	d.keep(hosts)
	d.settle(d.proposals(hosts))
	slices.SortFunc(d.plan.Hosts, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	return d.plan
}

type decision struct {
	rules Rules
	plan  Plan
	taken map[string]string // UUID of the node with a name, by the name in lower case
	keys  map[string][]Host // the nodes that a proposal's key fits
}

type proposal struct {
	host  Host
	name  string
	given bool   // names has it, so that it is not changed
	key   string // source of the name, which must fit only one host; empty: it may fit several
	what  string // the key for a message
}

// keep takes the hosts with our marker. If two markers have the same name, the host with that name in Ironic keeps it.
func (d *decision) keep(hosts []Host) {
	ours := slices.DeleteFunc(slices.Clone(hosts), func(h Host) bool { return h.Owner == "" || h.Owner != d.rules.Owner })
	slices.SortStableFunc(ours, func(a, b Host) int { return last(a.Name != a.OwnerName, b.Name != b.OwnerName) })
	kept := map[string]string{}
	for _, h := range ours {
		name := cmp.Or(h.OwnerName, h.Name)
		holder, isTaken := kept[lower(name)]
		switch {
		case name == "":
			d.plan.Pending[h.ID] = "its marker has no name"
		case isTaken:
			d.plan.Pending[h.ID] = fmt.Sprintf("its marker has the name %s, like that of node %s", show(name), holder)
		default:
			kept[lower(name)] = h.ID
			d.plan.Hosts = append(d.plan.Hosts, Named{Host: h, Name: name})
		}
	}
}

// proposals returns the new hosts that the rules give a name, and adds the others to Pending.
func (d *decision) proposals(hosts []Host) []proposal {
	twins := twins(hosts)
	var proposals []proposal
	for _, h := range hosts {
		isOurs := h.Owner != "" && h.Owner == d.rules.Owner
		t, isTwin := twins[h.ID]
		p, err := d.rules.propose(h)
		// Machines that have a name already count, too. A serial number that two machines have names neither of them.
		if err == nil && p.key != "" && (isOurs || !isTwin && !p.given) {
			d.keys[p.key] = append(d.keys[p.key], h)
		}
		if !isOurs {
			reason, concerns := d.rules.obstacle(h)
			if !concerns {
				continue
			}
			if reason == "" && isTwin {
				reason = t.reason(h)
			}
			if reason = cmp.Or(reason, d.rules.missing(h)); reason != "" {
				d.plan.Pending[h.ID] = reason
				continue
			}
		}
		if err == nil && p.given && !isOurs {
			d.keys[p.key] = append(d.keys[p.key], h)
		}
		switch {
		case isOurs:
		case err != nil:
			d.plan.Pending[h.ID] = err.Error()
		default:
			proposals = append(proposals, p)
		}
	}
	return proposals
}

// obstacle returns why a host gets no name, "" if it may get one. concerns is false if Pending leaves the host out; it is true for
// every host in Include.
func (r Rules) obstacle(h Host) (reason string, concerns bool) {
	if !settled(h) && lostInventory(h) && matches(r.Driver, h.Driver) && !matchesAny(h, r.Exclude) {
		return "Ironic has lost its inventory, because it could not power the machine off without credentials: set " +
			"[inspector]power_off = false or [auto_discovery]driver = fake-hardware, delete the node and boot the machine again", true
	}
	asked := matchesAny(h, r.Include)
	refusal := r.refuses(h)
	switch {
	case refusal != "":
		return refusal, asked
	case h.Owner != "":
		return "owned by " + show(h.Owner), asked || r.missing(h) == ""
	case h.Name != "":
		return "it already has the name " + show(h.Name), asked
	case h.State != StateEnroll:
		return fmt.Sprintf("it is in state %s, not %s", show(h.State), StateEnroll), asked
	case h.ByHand:
		return "it was enrolled, not discovered", asked
	case h.Reserved:
		return "being claimed by another run", true
	case h.Locked:
		return "busy: its inspection has not ended", true
	}
	return "", true
}

// lostInventory reports whether a host lost its inventory because Ironic could not power the discovered machine off.
func lostInventory(h Host) bool {
	return !h.HasInventory && (strings.Contains(h.LastError, "unable to power off") || // Ironic 39
		strings.Contains(h.LastError, "Failed to change power state to 'power off'")) // Ironic 29
}

// propose returns the name that the rules give a host, without regard to other hosts.
func (r Rules) propose(h Host) (proposal, error) {
	own := hostIdentities(h)
	var named []proposal
	for key, name := range r.Names {
		if own[identity(key)] {
			named = append(named, proposal{host: h, name: name, given: true, key: "names " + identity(key), what: quote(key) + " in names"})
		}
	}
	slices.SortFunc(named, func(a, b proposal) int { return cmp.Compare(a.name, b.name) })
	switch {
	case len(named) > 1:
		return proposal{}, &NoValueError{Reason: fmt.Sprintf("names has two names for it, %s and %s", show(named[0].name),
			show(named[1].name))}
	case len(named) == 1:
		return named[0], nil
	}
	name, err := r.Template.Name(h)
	var none *NoValueError
	// without an owner, the rules only report, and have no names
	if errors.As(err, &none) && r.Owner != "" && h.HasInventory && h.BootMAC() != "" {
		err = &NoValueError{Reason: none.Reason + "; name it in names by its MAC address"}
	}
	if err != nil {
		return proposal{}, err
	}
	p := proposal{host: h, name: name}
	if r.Template.Detail == DetailSerialNumber {
		p.key, p.what = "template "+lower(name), "serial number "+quote(h.Serial)
	}
	return p, nil
}

// settle assigns the names. Proposals are sorted by age: the oldest host gets a name that two hosts propose. A name in Ironic
// stays with its node.
func (d *decision) settle(proposals []proposal) {
	var won, lost []proposal
	var errs []error
	for _, p := range proposals {
		reason := d.collision(p)
		if reason == "" {
			d.taken[lower(p.name)] = p.host.ID
			won = append(won, p)
			continue
		}
		reason += d.rules.remedy(p)
		d.plan.Pending[p.host.ID] = reason
		errs = append(errs, fmt.Errorf("node %s: %s", p.host.ID, reason))
		lost = append(lost, p)
	}
	switch d.rules.OnCollision {
	case CollisionAppendMAC:
		won = append(won, d.appendMACs(lost)...)
	case CollisionError:
		d.plan.Err = errors.Join(errs...)
	case CollisionSkip:
	}
	slices.SortFunc(won, func(a, b proposal) int { return byAge(a.host, b.host) })
	for _, p := range won {
		if d.rules.MaxHosts > 0 && len(d.plan.Hosts) >= d.rules.MaxHosts {
			d.plan.Pending[p.host.ID] = MaxHostsReached
			continue
		}
		d.plan.Hosts = append(d.plan.Hosts, Named{Host: p.host, Name: p.name, New: true})
	}
}

func (d *decision) collision(p proposal) string {
	if others := d.keys[p.key]; p.key != "" && len(others) > 1 {
		others = slices.DeleteFunc(slices.Clone(others), func(h Host) bool { return h.ID == p.host.ID })
		return fmt.Sprintf("%s is also that of node %s", p.what, list(others))
	}
	if holder, isTaken := d.taken[lower(p.name)]; isTaken {
		return fmt.Sprintf("name %s is taken by node %s", show(p.name), holder)
	}
	return ""
}

// remedy says how to end a collision; "" if on_collision ends it, or the rules only report.
func (r Rules) remedy(p proposal) string {
	const own = "; give it a name of its own in names, by its MAC address"
	switch {
	case r.Owner == "":
		return ""
	case p.given:
		return own
	case r.OnCollision == CollisionAppendMAC:
		return ""
	}
	return own + ", or set on_collision = \"append-mac\""
}

// appendMACs gives hosts that lost a collision another name with their MAC address, if they have one and names does not name them.
func (d *decision) appendMACs(lost []proposal) []proposal {
	var won []proposal
	for _, p := range lost {
		mac := strings.ReplaceAll(p.host.BootMAC(), ":", "")
		if p.given {
			continue
		}
		if mac == "" {
			d.plan.Pending[p.host.ID] += ", and it has no MAC address to append"
			continue
		}
		p.name += "-" + mac[len(mac)-6:]
		p.key = ""
		reason := cmp.Or(d.rules.Template.Style.fault(p.name), d.collision(p))
		if reason != "" {
			d.plan.Pending[p.host.ID] += "; with its MAC address: " + reason
			continue
		}
		delete(d.plan.Pending, p.host.ID)
		d.taken[lower(p.name)] = p.host.ID
		won = append(won, p)
	}
	return won
}

func list(hosts []Host) string {
	const most = 3
	var labels []string
	for _, h := range hosts[:min(most, len(hosts))] {
		labels = append(labels, h.label())
	}
	text := strings.Join(labels, ", ")
	if len(hosts) > most {
		text += fmt.Sprintf(" and %d more", len(hosts)-most)
	}
	return text
}
