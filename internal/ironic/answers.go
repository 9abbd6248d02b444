package ironic

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"
)

// answers are lists whose values a configuration uses. If one lacks an object that a resource has, the plan would give up what depends on
// it.
type answers[T any] struct {
	mu   sync.Mutex
	all  []*answer[T]
	read map[string]*object[T] // by id: read alone, on behalf of a resource
}

// object is an object that exists.
type object[T any] struct {
	id, label string
	is        *T
	changed   time.Time
}

// answer is a list that the server has answered at a time by its own clock.
type answer[T any] struct {
	at      time.Time
	ids     map[string]bool // that it has shown, or does not show to this user
	selects func(*T) bool
	list    func() (map[string]*T, error) // requests it again
}

// unsettled is how long before a list an object must have changed, so that the list had to show the change.
const unsettled = 2 * time.Second

// ask requests a list and keeps it.
func (a *answers[T]) ask(c *Client, id func(*T) string, selects func(*T) bool, list func() ([]T, error)) ([]T, error) {
	begun := time.Now()
	all, err := list()
	if err != nil {
		return nil, err
	}
	now := &answer[T]{at: c.ServerNow().Add(-time.Since(begun)), ids: map[string]bool{}, selects: selects}
	now.list = func() (map[string]*T, error) {
		again, err := list()
		return ByUUID(again, id), err
	}
	for i := range all {
		now.ids[id(&all[i])] = true
	}
	a.mu.Lock()
	a.all = append(a.all, now)
	read := slices.Collect(maps.Values(a.read))
	a.mu.Unlock()
	for _, o := range read {
		if err := a.lackIn([]*answer[T]{now}, o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lack returns an error if a list lacked an object that has not changed since, and shows it now. Lists that are requested later are
// compared with the object, too.
func (a *answers[T]) lack(o *object[T]) error {
	a.mu.Lock()
	if a.read == nil {
		a.read = map[string]*object[T]{}
	}
	a.read[o.id] = o
	lists := slices.Clone(a.all)
	a.mu.Unlock()
	return a.lackIn(lists, o)
}

// lackIn is lack for some lists.
func (a *answers[T]) lackIn(lists []*answer[T], o *object[T]) error {
	for _, was := range lists {
		if !a.lacks(was, o) {
			continue
		}
		again, err := was.list()
		if err != nil {
			return err
		}
		if again[o.id] != nil {
			return incomplete(o.label)
		}
		a.mu.Lock()
		for id := range a.read {
			was.ids[id] = was.ids[id] || again[id] == nil
		}
		a.mu.Unlock()
	}
	return nil
}

// lacks reports whether a list lacked an object although it selects it.
func (a *answers[T]) lacks(was *answer[T], o *object[T]) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !was.ids[o.id] && was.selects(o.is) && !o.changed.After(was.at.Add(-unsettled))
}

// allocating is how long after its creation an allocation may get its node, which changes the lists that select it.
const allocating = time.Minute

func (c *Client) lackAllocation(a *Allocation) error {
	created, err := time.Parse(time.RFC3339, a.CreatedAt)
	if err != nil { // this user does not see it
		return nil //nolint:nilerr // nothing is known
	}
	own := *a // the caller may change its own
	return c.usedAllocations.lack(&object[Allocation]{a.UUID, "allocation " + cmp.Or(a.Name, a.UUID), &own, created.Add(allocating)})
}

func (c *Client) lackNode(n *Node) error {
	if n.CreatedAt.IsZero() { // this user does not see it
		return nil
	}
	return c.usedNodes.lack(&object[Node]{n.UUID, "node " + NodeLabel(n), n.brief(), n.ChangedAt()})
}

// NodesForConfiguration lists nodes whose values a configuration uses.
func (c *Client) NodesForConfiguration(ctx context.Context, filter NodeFilter) ([]Node, error) {
	return c.usedNodes.ask(c, func(n *Node) string {
		return n.UUID
	}, filter.selects, func() ([]Node, error) { return c.ListNodes(ctx, filter) })
}

// AllocationsForConfiguration is NodesForConfiguration for allocations.
func (c *Client) AllocationsForConfiguration(ctx context.Context, query url.Values) ([]Allocation, error) {
	selects := func(a *Allocation) bool {
		has := map[string]string{"state": string(a.State), "resource_class": a.ResourceClass, "node": a.NodeUUID, "owner": a.Owner}
		for key := range query {
			if query.Get(key) != has[key] {
				return false
			}
		}
		return true
	}
	return c.usedAllocations.ask(c, func(a *Allocation) string { return a.UUID }, selects, func() ([]Allocation, error) {
		return c.ListAllocations(ctx, query)
	})
}
