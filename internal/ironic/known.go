package ironic

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// known are the nodes that this process knows to exist. A list that lacks one of them, or shows it as it was before, is no answer: it may
// come from a database that has failed over, or have lost a page. Only a single GET says that a node is gone.
type known struct {
	mu  sync.Mutex
	all map[string]*fact // by UUID
}

type fact struct {
	node   *Node     // has the fields by which lists are filtered, and those of its state; nil: it is gone
	at     time.Time // when this was known; zero: a state of Terraform says so
	since  time.Time // when it was known first
	whole  bool      // node has the fields by which lists are filtered
	listed bool      // a list had it
	moved  bool      // Ironic has accepted a verb since: its state is another one by now
	hidden bool      // it exists, but no list shows it to this user

	wrote map[string]any // extra, as an edit by this process has left it; nil: an answer has shown it since
}

// relists is how often an incomplete list is requested, and relistAfter the first pause, which doubles.
const (
	relists     = 4
	relistAfter = 500 * time.Millisecond
)

// KindIncomplete is the kind of an error which says that lists of nodes lack, or show as it was, a node that this process knows better.
const KindIncomplete fault.Kind = "incomplete list"

// Expect says that nodes with these UUIDs should exist: a list that lacks one of them is an answer only if a GET says that it is gone. It
// reports whether it is news that one of them exists.
func (c *Client) Expect(ids ...string) (news bool) {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	for _, id := range ids {
		if c.known.all[id] == nil {
			c.known.all[id], news = &fact{node: &Node{UUID: id}}, true
		}
	}
	return news
}

// saw notes a node that a request for it alone has returned.
func (k *known) saw(n *Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(n, time.Now(), false)
}

// sawAll notes the nodes of a list that was requested at a time.
func (k *known) sawAll(all []Node, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range all {
		if f := k.all[all[i].UUID]; f == nil || f.at.Before(asked) {
			k.note(&all[i], asked, true)
		}
	}
}

// note notes a node; k.mu is held. An answer with few fields leaves what is known of the others.
func (k *known) note(n *Node, at time.Time, listed bool) {
	f := k.all[n.UUID]
	if f == nil || f.node == nil {
		f = &fact{node: &Node{UUID: n.UUID}, since: at}
		k.all[n.UUID] = f
	}
	f.at, f.listed = at, f.listed || listed
	if n.Extra != nil {
		f.wrote = nil
	}
	if !n.CreatedAt.IsZero() {
		f.whole, f.moved, f.node = true, false, n.brief()
		return
	}
	if n.ProvisionState != "" {
		f.node.ProvisionState = n.ProvisionState
	}
	if !n.ProvisionUpdatedAt.IsZero() {
		f.moved, f.node.ProvisionUpdatedAt = false, n.ProvisionUpdatedAt
	}
}

func (k *known) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[id] != nil {
		k.all[id] = &fact{at: time.Now()}
	}
}

// move notes that Ironic has accepted a verb for a node.
func (k *known) move(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.all[id]; f != nil && f.node != nil {
		f.moved, f.at = true, time.Now()
	}
}

// edited notes the answer to an edit of a node.
func (k *known) edited(n *Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(n, time.Now(), false)
	k.all[n.UUID].wrote = n.Extra
}

// ChangedAt returns when a node has changed last, by the server's clock.
func (n *Node) ChangedAt() time.Time {
	return slices.MaxFunc([]time.Time{n.CreatedAt, n.UpdatedAt, n.ProvisionUpdatedAt}, time.Time.Compare)
}

// brief returns a node with the fields that known needs.
func (n *Node) brief() *Node {
	return &Node{
		UUID: n.UUID, Name: n.Name, ProvisionState: n.ProvisionState, ProvisionUpdatedAt: n.ProvisionUpdatedAt,
		ResourceClass: n.ResourceClass, ConductorGroup: n.ConductorGroup, Owner: n.Owner, Lessee: n.Lessee, Driver: n.Driver,
		Fault: n.Fault, Shard: n.Shard, InstanceUUID: n.InstanceUUID, Description: n.Description, ChassisUUID: n.ChassisUUID,
		Maintenance: n.Maintenance, Retired: n.Retired, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt,
	}
}

// doubts returns the UUIDs of the nodes that a list lacks or shows as they were before it was requested, sorted. Another answer may be
// newer than the list: settled is a time of the server before the list was requested. That answer shows later changes, too.
func (k *known) doubts(all map[string]*Node, filter NodeFilter, asked, settled time.Time) (ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, f := range k.all {
		if f.node == nil || f.since.After(asked) && (!f.whole || !f.node.CreatedAt.Before(settled)) {
			continue
		}
		n, byState, overtaken := all[id], filter == NodeFilter{ProvisionState: filter.ProvisionState}, f.at.After(asked)
		doubt := false
		switch {
		case n == nil && overtaken:
			doubt = filter == NodeFilter{} || f.whole && f.node.ChangedAt().Before(settled) && filter.selects(f.node)
		case n == nil:
			doubt = (f.whole || byState) && filter.selects(f.node)
		case overtaken:
			doubt = f.node.ProvisionUpdatedAt.Before(settled) && n.isBefore(f.node)
		default:
			doubt = f.isLaterThan(n)
		}
		if doubt {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// isLaterThan reports whether a list shows a node as it was before.
func (f *fact) isLaterThan(n *Node) bool {
	if f.wrote != nil && n.Extra != nil && !SameJSON(f.wrote, n.Extra) {
		return true
	}
	return n.isBefore(f.node) || f.moved && !n.ProvisionUpdatedAt.IsZero() && n.isIn(f.node)
}

// isBefore reports whether a list shows a node in an earlier state than another answer does. The list may have no times, or hide them.
func (n *Node) isBefore(other *Node) bool {
	return !n.ProvisionUpdatedAt.IsZero() && n.ProvisionUpdatedAt.Before(other.ProvisionUpdatedAt)
}

// agrees reports whether a list shows a node as another answer does. The list may have neither times nor extra.
func (n *Node) agrees(other *Node) bool {
	return (n.ProvisionUpdatedAt.IsZero() || n.isIn(other)) && (n.Extra == nil || SameJSON(n.Extra, other.Extra))
}

// isIn reports whether a node is in its state since the same time as another answer says.
func (n *Node) isIn(other *Node) bool {
	return n.ProvisionState == other.ProvisionState && n.ProvisionUpdatedAt.Equal(other.ProvisionUpdatedAt)
}

// isHidden reports whether no list shows a node that exists. If never is true, none has shown it so far, and it is taken for hidden from
// now on.
func (k *known) isHidden(id string, never bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.all[id]
	if f == nil {
		return false
	}
	f.hidden = f.hidden || never && !f.listed
	return f.hidden
}

func (f NodeFilter) selects(n *Node) bool {
	for _, pair := range [][2]string{
		{f.ProvisionState, n.ProvisionState},
		{f.ResourceClass, n.ResourceClass},
		{f.ConductorGroup, n.ConductorGroup},
		{f.Owner, n.Owner},
		{f.Lessee, n.Lessee},
		{f.Driver, n.Driver},
		{f.Fault, n.Fault},
		{f.Shard, n.Shard},
		{f.InstanceUUID, n.InstanceUUID},
		{f.ChassisUUID, n.ChassisUUID},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	is := func(want *bool, has bool) bool { return want == nil || *want == has }
	return strings.Contains(n.Description, f.DescriptionContains) && (f.Project == "" || f.Project == n.Owner || f.Project == n.Lessee) &&
		is(f.Maintenance, n.Maintenance) && is(f.Associated, n.InstanceUUID != "") && is(f.Retired, n.Retired)
}
