package host

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
)

// planGrace is how long a plan waits for the plan of the host that has what another host is to get, counted from the last time that the
// run planned a host. Terraform plans hosts in any order.
const planGrace = 3 * time.Second

// Intent is what a run makes of a host that Terraform has in state, as far as no other node may have it too.
type Intent struct {
	Candidate          // what the host will have; an empty name and driver_info without a BMC stay as they are
	Drops     []string // names and MAC addresses that the node gives up
	Open      bool     // not all of it is known yet
	Moves     bool     // it differs from what the host has
	Ends      bool     // the node is deleted
	Replaced  bool     // people have replaced the machine, or its mainboard
}

// IdentityChange is how a configuration changes what no other node may have too.
type IdentityChange struct {
	Was, Becomes Candidate // without a tenant; Was has what Terraform has in state
	OpenName     bool      // the name is not known yet
	Open         bool      // not all of it is known yet

	WithoutPorts []string // MAC addresses that the configuration does not contain any more
	KeptBonds    []string // MAC addresses of port groups that the plan has, with those that the configuration omits
}

// Intent returns what the run makes of the host.
func (c IdentityChange) Intent() Intent {
	who := Intent{Candidate: c.Becomes, Open: c.Open}
	if c.Becomes.Name == "" && !c.OpenName && c.Was.Name != "" {
		who.Drops = append(who.Drops, c.Was.Name)
	}
	who.Drops = append(who.Drops, c.WithoutPorts...)
	for _, mac := range c.Was.Bonds {
		if !slices.Contains(c.KeptBonds, mac) {
			who.Drops = append(who.Drops, mac)
		}
	}
	who.Moves = c.OpenName || c.Becomes.Name != c.Was.Name || len(who.Drops) > 0 || c.Becomes.Identity().BMC != c.Was.Identity().BMC ||
		!containsAll(c.Was.Addresses, c.Becomes.Addresses) || !containsAll(c.Was.Bonds, c.Becomes.Bonds)
	return who
}

func containsAll(list, values []string) bool {
	return !slices.ContainsFunc(values, func(value string) bool { return !slices.Contains(list, value) })
}

// intent is an Intent in the catalog.
type intent struct {
	Intent
	wants *entry
}

// Release is what a node must give up before its change, because another host of the run gets it.
type Release struct {
	Name             bool
	Addresses, Bonds []string
}

// PlanMove records what the run makes of a host.
func PlanMove(site *machine.Site, who Intent) {
	known := catalogOf(site)
	known.mu.Lock()
	defer known.mu.Unlock()
	known.planned[who.UUID] = intent{who, entryOf(who.Candidate)}
	known.signal()
}

// Moved records that the change of a host has ended, with or without success.
func Moved(site *machine.Site, id string) {
	known := catalogOf(site)
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.planned[id].Moves {
		delete(known.made, id)
		known.oldest = known.begun + 1
	}
	delete(known.planned, id)
	known.signal()
}

// CheckMove returns an error of KindTaken if another node has what a host is to get, and the run does not take it away from that node. It
// waits for the plans of other hosts, which may do so. It returns nil if Ironic does not answer.
func CheckMove(ctx context.Context, site *machine.Site, who Intent) error {
	known := catalogOf(site)
	grace := time.NewTimer(planGrace)
	defer grace.Stop()
	oldest, fresh, waits := 0, false, true
	for {
		l, err := known.get(ctx, oldest, len(who.Bonds) > 0)
		if err != nil {
			return nil //nolint:nilerr // the apply asks again
		}
		found, changed := known.contested(l, who.Candidate, false)
		stays, undecided := known.judge(found)
		if stays == nil && !waits {
			stays = undecided
		}
		switch {
		case stays != nil && !fresh:
			oldest, fresh = known.number()+1, true
			continue
		case stays != nil:
			return stays.errFor(who)
		case undecided == nil:
			return known.exchange(l, found, who)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			grace.Reset(planGrace)
		case <-grace.C:
			waits = false
		}
	}
}

// Move waits until no other node has what a host gets by a change that follows at once; then the host owns it until Moved. It waits for
// nodes that the run changes or deletes, and first calls release if such a node, in turn, waits for what the host gives up. Any other node
// that has it is an error of KindTaken. The change must not follow an error.
func Move(ctx context.Context, site *machine.Site, who Intent, release func(context.Context, Release) error, deadline time.Time) error {
	known := catalogOf(site)
	grace, limit := time.NewTimer(deletionGrace), time.NewTimer(time.Until(deadline))
	defer grace.Stop()
	defer limit.Stop()
	oldest, waits := known.number()+1, true
	var released Release
	for {
		l, err := known.get(ctx, oldest, len(who.Bonds) > 0)
		if err == nil {
			err = known.refuseHandover(l, who, who.UUID)
		}
		if err != nil {
			return err
		}
		found, changed := known.contested(l, who.Candidate, true)
		if len(found) == 0 {
			return nil
		}
		if err := known.exchange(l, found, who); err != nil {
			return err
		}
		stays, undecided := known.judge(found)
		switch {
		case stays != nil:
			return stays.errFor(who)
		case undecided != nil && !waits:
			return undecided.errFor(who)
		}
		if gives := known.demanded(l, who.UUID); !reflect.DeepEqual(gives, Release{}) && !reflect.DeepEqual(gives, released) {
			if err := release(ctx, gives); err != nil {
				return err
			}
			released = gives
			Refused(site)
			known.wake()
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return found[0].errFor(who)
		case <-changed:
			waits = true
			grace.Reset(deletionGrace)
		case <-grace.C:
			waits, oldest = false, known.number()+1
		}
	}
}

// wake wakes those who wait for a change.
func (c *catalog) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signal()
}

// contested returns the nodes that have what a host is to get. If there are none and claims is true, the host owns that from now on, beside
// what it has.
func (c *catalog) contested(l *lists, who Candidate, claims bool) (found []conflict, changed <-chan struct{}) {
	wanted := entryOf(who)
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.present(l, who.UUID); before != nil {
		copied := *before
		copied.isOurs, wanted.before = true, &copied
	}
	if found = c.sharedBy(l, wanted); len(found) == 0 && claims {
		c.made[who.UUID] = wanted
	}
	return found, c.changed
}

// judge returns a conflict with a node that keeps what it has, and a conflict with a node whose host the run has not planned yet.
func (c *catalog) judge(found []conflict) (stays, undecided *conflict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range found {
		switch decided, leaves := c.leaves(&found[i]); {
		case leaves:
		case decided:
			return &found[i], undecided
		case undecided == nil:
			undecided = &found[i]
		}
	}
	return nil, undecided
}

// leaves reports whether the run takes from a node what it has in conflict with another, and whether that is decided. c.mu is held.
func (c *catalog) leaves(x *conflict) (decided, leaves bool) {
	p, planned := c.planned[x.node.UUID]
	switch {
	case c.deleting[x.node.UUID]:
		return true, true
	case !planned:
		return x.isOurs, false
	case p.Open || p.Ends:
		return true, true
	}
	switch x.what {
	case identity.Name:
		return true, p.Name != "" && p.Name != x.value || slices.Contains(p.Drops, x.value)
	case identity.BMC:
		return true, p.wants.MovesBMC(x.by.Identity)
	case identity.Address, identity.Bond:
	}
	return true, slices.Contains(p.Drops, x.value)
}

// isLeaving reports whether the run takes from a node what it has in conflict with another.
func (c *catalog) isLeaving(x *conflict) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, leaves := c.leaves(x)
	return leaves
}

// exchange returns an error if the run gives the BMC that a host has to the node that has the BMC which the host gets, perhaps over others:
// two nodes would be on one BMC for a moment, and for long if the run is killed then.
func (c *catalog) exchange(l *lists, found []conflict, who Intent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range found {
		if found[i].what == identity.BMC && c.leadsBack(l, found[i].node.UUID, who.UUID) {
			return (&Taken{
				What: identity.BMC, Value: found[i].value, Node: found[i].node, For: &ironic.Node{UUID: who.UUID, Name: who.Name},
				Exchanged: true,
			}).Err()
		}
	}
	return nil
}

// leadsBack reports whether a chain of planned changes leads from a node back to a host: the node gets the BMC of the host, or the BMC of
// another node that such a chain leads back from. c.mu is held.
func (c *catalog) leadsBack(l *lists, node, host string) bool {
	for range c.planned {
		p, planned := c.planned[node]
		if !planned || node == host {
			return planned
		}
		next := ""
		for _, e := range l.entries {
			if e.node.UUID != node && p.wants.BMC.Same(e.BMC) {
				next = e.node.UUID
			}
		}
		node = next
	}
	return node == host
}

// demanded returns what a node has, and gives up, and other hosts of the run are to get.
func (c *catalog) demanded(l *lists, id string) (r Release) {
	c.mu.Lock()
	defer c.mu.Unlock()
	has := c.present(l, id)
	if has == nil {
		return r
	}
	for other, p := range c.planned {
		if other == id {
			continue
		}
		for _, x := range p.wants.newlySharedWith(has) {
			if _, gives := c.leaves(&x); !gives {
				continue
			}
			switch x.what {
			case identity.Name:
				r.Name = true
			case identity.Address:
				r.Addresses = append(r.Addresses, x.value)
			case identity.Bond:
				r.Bonds = append(r.Bonds, x.value)
			case identity.BMC: // see exchange
			}
		}
	}
	slices.Sort(r.Addresses)
	slices.Sort(r.Bonds)
	return r
}

func (x *conflict) errFor(who Intent) error {
	return (&Taken{What: x.what, Value: x.value, Node: x.node, For: &ironic.Node{UUID: who.UUID, Name: who.Name}}).Err()
}

// GiveUp gives up what the change of a host takes away from the node anyway, because another host of the run gets it. If the run is killed
// afterwards, the next plan shows the difference.
func GiveUp(ctx context.Context, m *machine.Machine, r Release) error {
	if r.Name {
		if err := m.Patch(ctx, ironic.Patch{}.With("/name", TemporaryName(m.Node().UUID))); err != nil {
			return err
		}
	}
	if len(r.Addresses) > 0 {
		if err := removePorts(ctx, m, r.Addresses); err != nil {
			return err
		}
	}
	if len(r.Bonds) == 0 {
		return nil
	}
	return removeGroupAddresses(ctx, m, r.Bonds)
}

// TemporaryName is the name of a node while another host of the run gets its former one.
func TemporaryName(id string) string { return "renaming-" + id }
