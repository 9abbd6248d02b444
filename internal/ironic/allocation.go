package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/allocations"
)

// AllocationState is the state of an allocation.
type AllocationState string

// The states of an allocation: allocating becomes active or error, and stays.
const (
	AllocationAllocating AllocationState = "allocating"
	AllocationActive     AllocationState = "active"
	AllocationError      AllocationState = "error"
)

// Waiting for allocations. Ironic settles one in well under a second when idle and in seconds under load; one that is
// still allocating after a minute was lost by a conductor and has to be made anew (reference ironic-facts.md 5.5, 10).
const (
	allocationInterval = time.Second
	allocationLost     = time.Minute
)

// Allocation is Ironic's reservation of a node.
type Allocation struct {
	UUID           string          `json:"uuid"`
	Name           string          `json:"name"`
	State          AllocationState `json:"state"`
	NodeUUID       string          `json:"node_uuid"`
	ResourceClass  string          `json:"resource_class"`
	Traits         []string        `json:"traits"`
	CandidateNodes []string        `json:"candidate_nodes"`
	Owner          string          `json:"owner"`
	Extra          map[string]any  `json:"extra"`
	LastError      string          `json:"last_error"`
	CreatedAt      string          `json:"created_at"`
}

// AllocationSpec is what an allocation is created with. Empty values are not sent.
type AllocationSpec struct {
	UUID           string         `json:"uuid"` // chosen by the caller, so that a lost answer does no harm; required
	Name           string         `json:"name,omitempty"`
	ResourceClass  string         `json:"resource_class,omitempty"` // required unless Node is given
	Traits         []string       `json:"traits,omitempty"`
	CandidateNodes []string       `json:"candidate_nodes,omitempty"` // names or UUIDs
	Owner          string         `json:"owner,omitempty"`           // API 1.60
	Extra          map[string]any `json:"extra,omitempty"`
	Node           string         `json:"node,omitempty"` // backfill: reserve this active node (API 1.58)
}

// ToAllocationCreateMap makes the request's body; gophercloud's own lacks owner and node.
func (s AllocationSpec) ToAllocationCreateMap() (map[string]any, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	err = json.Unmarshal(text, &body)
	return body, err
}

// CreateAllocation asks Ironic for a node. The allocation is still allocating when it returns, unless it is a backfill:
// record it, then AwaitAllocation. If the answer is lost it finds out whether the allocation exists before it asks again.
func (c *Client) CreateAllocation(ctx context.Context, spec AllocationSpec) (*Allocation, error) {
	var a *Allocation
	err := c.create(ctx, func(ctx context.Context) error {
		api, err := c.api(ctx)
		if err != nil {
			return err
		}
		a = &Allocation{}
		return c.wrap(allocations.Create(ctx, api, spec).ExtractInto(a))
	}, func(ctx context.Context) error {
		var err error
		a, err = c.getAllocation(ctx, spec.UUID)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.sweepBackfill(ctx, spec))
	}
	return a, nil
}

// sweepBackfill deletes what Ironic leaves of a backfill that it refuses: an allocation without a node, which keeps its
// name (reference ironic-facts.md 5.2).
func (c *Client) sweepBackfill(ctx context.Context, spec AllocationSpec) error {
	if spec.Node == "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	left, err := c.getAllocation(ctx, spec.UUID)
	if err != nil || left.State == AllocationActive {
		return nil //nolint:nilerr // nothing is left that could be seen
	}
	return c.DeleteAllocation(ctx, left.UUID)
}

// AwaitAllocation waits until an allocation is active. One that ends in state error is deleted, because it keeps its
// name and is never tried again, and the error is a NoMatchError. On interruption and timeout the allocation stays.
func (c *Client) AwaitAllocation(ctx context.Context, spec AllocationSpec, limit time.Duration) (*Allocation, error) {
	deadline, renewed := time.Now().Add(limit), time.Now()
	look := c.getAllocation
	for {
		a, err := look(ctx, spec.UUID)
		if errors.Is(err, errLimit) {
			return nil, fmt.Errorf("allocation %s is still allocating after %s", spec.UUID, limit)
		}
		if err != nil {
			return nil, err
		}
		switch a.State {
		case AllocationActive:
			c.nodes.invalidate(a.NodeUUID)
			c.allocs.invalidate(a.UUID)
			return a, nil
		case AllocationError:
			return a, c.abandon(ctx, spec, a)
		case AllocationAllocating:
		}
		if time.Since(renewed) > allocationLost {
			renewed = time.Now()
			if err := c.renew(ctx, spec); err != nil {
				return a, err
			}
		}
		look = func(ctx context.Context, id string) (*Allocation, error) {
			return c.pending.next(ctx, id, time.Until(deadline))
		}
	}
}

// renew makes a lost allocation anew, with the same UUID.
func (c *Client) renew(ctx context.Context, spec AllocationSpec) error {
	if err := c.DeleteAllocation(ctx, spec.UUID); err != nil {
		return err
	}
	_, err := c.CreateAllocation(ctx, spec)
	return err
}

// abandon deletes an allocation that failed and explains why no node matched.
func (c *Client) abandon(ctx context.Context, spec AllocationSpec, a *Allocation) error {
	all, err := c.listNodesByID(ctx)
	if err != nil {
		all = nil
	}
	none := &NoMatchError{Spec: spec, LastError: firstLine(a.LastError), Census: countMismatches(spec, all)}
	if err := c.DeleteAllocation(context.WithoutCancel(ctx), a.UUID); err != nil {
		return errors.Join(none, fmt.Errorf("delete the failed allocation %s: %w", a.UUID, err))
	}
	return none
}

// Allocation returns an allocation by UUID or name as Ironic knows it now.
func (c *Client) Allocation(ctx context.Context, ref string) (*Allocation, error) {
	return c.getAllocation(ctx, ref)
}

// AllocationForRefresh returns an allocation by UUID; see NodeForRefresh.
func (c *Client) AllocationForRefresh(ctx context.Context, id string) (*Allocation, error) {
	return c.allocs.get(ctx, id)
}

func (c *Client) getAllocation(ctx context.Context, ref string) (*Allocation, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	a := &Allocation{}
	if err := c.wrap(allocations.Get(ctx, api, url.PathEscape(ref)).ExtractInto(a)); err != nil {
		return nil, err
	}
	a.LastError = c.secrets.redact(a.LastError)
	return a, nil
}

func (c *Client) listAllocationsByID(ctx context.Context) (map[string]*Allocation, error) {
	all, err := list[Allocation](ctx, c, "allocations", "allocations", nil)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].LastError = c.secrets.redact(all[i].LastError)
	}
	return byUUID(all, func(a *Allocation) string { return a.UUID }), nil
}

// UpdateAllocation changes what Ironic lets one change: the name and extra (API 1.57). Keys of extra that are in neither
// set nor remove stay.
func (c *Client) UpdateAllocation(ctx context.Context, id string, name *string, set map[string]any, remove []string) error {
	var patch Patch
	if name != nil && *name == "" {
		patch.Remove("/name")
	} else if name != nil {
		patch.Set("/name", *name)
	}
	if hasList(set) {
		// Ironic 39 takes no list as the value of an edit of an allocation, but lists inside of extra as a whole.
		a, err := c.getAllocation(ctx, id)
		if err != nil {
			return err
		}
		extra := maps.Clone(a.Extra)
		if extra == nil {
			extra = map[string]any{}
		}
		maps.Copy(extra, set)
		for _, key := range remove {
			delete(extra, key)
		}
		patch.Set("/extra", extra)
		set, remove = nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		patch.Set("/extra/"+key, set[key])
	}
	for _, key := range remove {
		patch.Remove("/extra/" + key)
	}
	if len(patch) == 0 {
		return nil
	}
	defer c.allocs.invalidate(id)
	return c.do(ctx, http.MethodPatch, "allocations/"+id, patch.body(), nil)
}

func hasList(m map[string]any) bool {
	for _, value := range m {
		if _, ok := value.([]any); ok {
			return true
		}
	}
	return false
}

// DeleteAllocation releases a node. That the allocation is gone already is no error.
func (c *Client) DeleteAllocation(ctx context.Context, id string) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	defer c.allocs.invalidate(id)
	err = c.wrap(allocations.Delete(ctx, api, id).ExtractErr())
	if IsNotFound(err) {
		return nil
	}
	return err
}

// NoMatchError says that no node satisfies an allocation, and why each one does not.
type NoMatchError struct {
	Spec      AllocationSpec
	LastError string // Ironic's own words
	Census    Census
}

// Error counts the nodes by what each lacks first.
func (e *NoMatchError) Error() string {
	return fmt.Sprintf("no node matches: %s. Ironic says: %s", e.Census, e.LastError)
}

// Advice says what to do about it.
func (e *NoMatchError) Advice() string {
	if e.Census.Matching > 0 {
		return "Other requests took the nodes at the same moment. Apply again."
	}
	if e.Census.NoPower > 0 {
		return "Ironic hands out only nodes whose power state it knows: set power_state on their metal_host, or check their BMC."
	}
	return "Make more nodes available in this class (metal_host target_state = \"available\"), or ask for less."
}
