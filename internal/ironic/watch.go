package ironic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// fewWaiters is up to how many waiting objects are cheaper to read singly than by a list of everything.
const fewWaiters = 3

// watch is the one way to wait for objects to change. All waiters of a process share its looks: one look an interval,
// one list of everything for it when more than a few wait. It works only while somebody waits.
type watch[T any] struct {
	one      func(ctx context.Context, id string) (*T, error)
	all      func(ctx context.Context) (map[string]*T, error)
	interval time.Duration

	mu      sync.Mutex
	waiters map[*waiter[T]]struct{}
	fans    map[chan everything[T]]struct{} // who waits for a list of everything
	running bool
}

type waiter[T any] struct {
	id  string
	got chan result[T]
}

// everything is what a list showed, or why there is none.
type everything[T any] struct {
	all map[string]*T
	err error
}

func newWatch[T any](interval time.Duration, one func(context.Context, string) (*T, error), all func(context.Context) (map[string]*T, error)) *watch[T] {
	return &watch[T]{one: one, all: all, interval: interval, waiters: map[*waiter[T]]struct{}{}, fans: map[chan everything[T]]struct{}{}}
}

// errLimit says that next's time ran out.
var errLimit = errors.New("time limit")

// next waits for the next look at an object and returns what it showed. It returns errLimit when no look came within
// limit, ctx's error when that ended, and an error for which IsNotFound holds when the object is gone. Looks that fail
// for a passing reason are repeated.
func (w *watch[T]) next(ctx context.Context, id string, limit time.Duration) (*T, error) {
	me := &waiter[T]{id: id, got: make(chan result[T], 1)}
	w.mu.Lock()
	w.waiters[me] = struct{}{}
	w.start(ctx)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiters, me)
		w.mu.Unlock()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-me.got:
		return r.value, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, errLimit
	}
}

// start looks for those who wait, if nobody does yet. The caller holds mu.
func (w *watch[T]) start(ctx context.Context) {
	if !w.running {
		w.running = true
		go w.run(context.WithoutCancel(ctx))
	}
}

// nextAll waits for the next look at everything, and fails as next does. While somebody waits for it, every look is a list.
func (w *watch[T]) nextAll(ctx context.Context) (map[string]*T, error) {
	me := make(chan everything[T], 1)
	w.mu.Lock()
	w.fans[me] = struct{}{}
	w.start(ctx)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.fans, me)
		w.mu.Unlock()
	}()
	select {
	case seen := <-me:
		return seen.all, seen.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run looks once an interval until nobody waits any more. ctx carries the logger of whoever came first.
func (w *watch[T]) run(ctx context.Context) {
	defer func() {
		if r := recover(); r != nil {
			w.stop(fmt.Errorf("looking at Ironic: %w: %v", errPanic, r))
		}
	}()
	for {
		if err := sleep(ctx, w.interval); err != nil {
			w.stop(err)
			return
		}
		waiters, fans := w.waiting()
		if waiters == nil && fans == nil {
			return
		}
		results, seen := w.look(ctx, waiters, len(fans) > 0)
		w.deliver(waiters, results)
		if seen != nil {
			w.spread(fans, *seen)
		}
	}
}

// waiting returns who waits now, for one object or for everything, and so is answered by a look that begins now; nil, and
// the watch has stopped, if nobody does.
func (w *watch[T]) waiting() ([]*waiter[T], []chan everything[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiters) == 0 && len(w.fans) == 0 {
		w.running = false
		return nil, nil
	}
	return slices.Collect(maps.Keys(w.waiters)), slices.Collect(maps.Keys(w.fans))
}

// look reads what is waited for, and the list of everything if that is wanted or cheaper. What failed for a passing reason
// is left out.
func (w *watch[T]) look(ctx context.Context, waiters []*waiter[T], whole bool) (map[string]result[T], *everything[T]) {
	ids := map[string]bool{}
	for _, waiter := range waiters {
		ids[waiter.id] = true
	}
	results := map[string]result[T]{}
	single := func(id string) {
		if value, err := w.one(ctx, id); err == nil || !isTransient(err) {
			results[id] = result[T]{value: value, err: err}
		}
	}
	if len(ids) <= fewWaiters && !whole {
		for id := range ids {
			single(id)
		}
		return results, nil
	}
	list, err := w.all(ctx)
	if err != nil && isTransient(err) {
		return nil, nil
	}
	for id := range ids {
		if value := list[id]; value != nil || err != nil {
			results[id] = result[T]{value: value, err: err}
		} else {
			single(id) // gone, or moved between two pages
		}
	}
	return results, &everything[T]{list, err}
}

func (w *watch[T]) deliver(waiters []*waiter[T], results map[string]result[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiter := range waiters {
		if r, ok := results[waiter.id]; ok {
			waiter.got <- r
			delete(w.waiters, waiter)
		}
	}
}

// spread gives what a list showed to those who waited for everything.
func (w *watch[T]) spread(fans []chan everything[T], seen everything[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fan := range fans {
		fan <- seen
		delete(w.fans, fan)
	}
}

// stop ends the watch and tells all who wait why.
func (w *watch[T]) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	for waiter := range w.waiters {
		waiter.got <- result[T]{err: err}
		delete(w.waiters, waiter)
	}
	for fan := range w.fans {
		fan <- everything[T]{err: err}
		delete(w.fans, fan)
	}
}

// pollFields is what waiting for a node needs to know (reference ironic-facts.md 9: a third of the bytes of a full list).
const pollFields = "uuid,name,provision_state,target_provision_state,power_state,target_power_state,maintenance,fault," +
	"last_error,reservation,instance_uuid,provision_updated_at,boot_interface,conductor_group"

// censusFields are what counting for the limit needs beyond that, each where the limit and the API have it.
func (c *Client) censusFields(ctx context.Context) (string, error) {
	var fields string
	if c.gate.limit.Max == 0 {
		return "", nil
	}
	if c.gate.limit.Count == CountAgent {
		fields += ",driver_internal_info"
	}
	if c.gate.limit.Scope == ScopeShard {
		version, err := c.Microversion(ctx)
		if err != nil {
			return "", err
		}
		if version >= versionShard {
			fields += ",shard"
		}
	}
	return fields, nil
}

// pollNodes lists all nodes with what waiting needs.
func (c *Client) pollNodes(ctx context.Context) (map[string]*Node, error) {
	query, err := c.nodeQuery(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	census, err := c.censusFields(ctx)
	if err != nil {
		return nil, err
	}
	query.Set("fields", pollFields+census)
	all, err := c.listNodes(ctx, query)
	if err != nil {
		return nil, err
	}
	return byUUID(all, func(n *Node) string { return n.UUID }), nil
}

// pollNode reads one node with what waiting needs, the queue for a slot included.
func (c *Client) pollNode(ctx context.Context, id string) (*Node, error) {
	census, err := c.censusFields(ctx)
	if err != nil {
		return nil, err
	}
	var node Node
	if err := c.do(ctx, http.MethodGet, "nodes/"+id+"?fields="+pollFields+census, nil, &node); err != nil {
		return nil, err
	}
	return c.hushed(&node), nil
}

func byUUID[T any](all []T, id func(*T) string) map[string]*T {
	m := make(map[string]*T, len(all))
	for i := range all {
		m[id(&all[i])] = &all[i]
	}
	return m
}
