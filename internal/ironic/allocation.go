package ironic

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// AllocationState is the state of an allocation.
type AllocationState string

// The states of an allocation. allocating changes to active or error, which are final.
const (
	AllocationAllocating AllocationState = "allocating"
	AllocationActive     AllocationState = "active"
	AllocationError      AllocationState = "error"
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

// RecordClass is the resource class of the allocations that are records of this provider and reserve nothing. No list shows them.
const RecordClass = "terraform-provider-metal-lock"

func (a *Allocation) isRecord() bool { return a.ResourceClass == RecordClass && a.NodeUUID == "" }

// AllocationSpec is the request for an allocation. Empty values are not sent.
type AllocationSpec struct {
	UUID           string         `json:"uuid"` // required; chosen by the caller, so that it can find the allocation if the answer is lost
	Name           string         `json:"name,omitempty"`
	ResourceClass  string         `json:"resource_class,omitempty"` // required unless Node is given
	Traits         []string       `json:"traits,omitempty"`
	CandidateNodes []string       `json:"candidate_nodes,omitempty"` // names or UUIDs
	Owner          string         `json:"owner,omitempty"`           // API 1.60
	Extra          map[string]any `json:"extra,omitempty"`
	Node           string         `json:"node,omitempty"` // backfill: reserve this active node (API 1.58)
}

// CreateAllocation creates an allocation. Unless it is a backfill, the allocation is still allocating when CreateAllocation
// returns; the caller must record it and then wait for it. If the answer is lost, CreateAllocation checks whether the allocation
// exists before it sends the request again.
func (c *Client) CreateAllocation(ctx context.Context, spec AllocationSpec) (*Allocation, error) {
	a, err := create[Allocation](ctx, c, "allocations", spec.UUID, spec)
	if err != nil {
		return nil, errors.Join(err, c.sweepBackfill(ctx, spec))
	}
	a.LastError = c.words(a.LastError)
	c.pending.Restart(spec.UUID) // the allocation may replace a lost one with the same UUID
	return a, nil
}

// sweepBackfill deletes what remains of a backfill that Ironic has refused: an allocation without a node, which keeps its name
// (reference/ironic.md#refused-backfills).
func (c *Client) sweepBackfill(ctx context.Context, spec AllocationSpec) error {
	if spec.Node == "" {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	left, err := c.Allocation(ctx, spec.UUID)
	if err != nil || left.State == AllocationActive {
		return nil //nolint:nilerr // nothing is left to delete, or Ironic does not answer
	}
	return c.DeleteAllocation(ctx, left.UUID)
}

// Allocation reads an allocation by UUID or name now.
func (c *Client) Allocation(ctx context.Context, ref string) (*Allocation, error) {
	return c.allocationAt(ctx, ref, "allocations/"+url.PathEscape(ref))
}

// AllocationForRefresh returns an allocation by UUID; see NodeForRefresh.
func (c *Client) AllocationForRefresh(ctx context.Context, id string) (*Allocation, error) {
	a, err := c.allocs.Get(ctx, id)
	if err == nil {
		err = c.lackAllocation(a)
	}
	return a, err
}

// AllocationOf reads the allocation of a node, which is named by its name or UUID. Without an allocation it returns an error that
// api.IsNotFound recognises.
func (c *Client) AllocationOf(ctx context.Context, node string) (*Allocation, error) {
	return c.allocationAt(ctx, node, "nodes/"+url.PathEscape(node)+"/allocation")
}

// allocationAt reads an allocation. ref is the name or UUID in its path.
func (c *Client) allocationAt(ctx context.Context, ref, path string) (*Allocation, error) {
	if err := mayExist(ref); err != nil {
		return nil, err
	}
	a := &Allocation{}
	if err := c.Request(ctx, http.MethodGet, path, nil, a); err != nil {
		return nil, err
	}
	a.LastError = c.words(a.LastError)
	return a, nil
}

// ListAllocations lists the allocations that Ironic selects by a query: state, resource_class, node, owner.
func (c *Client) ListAllocations(ctx context.Context, query url.Values) ([]Allocation, error) {
	all, err := api.List[Allocation](ctx, c.Conn, "allocations", "allocations", query)
	all = slices.DeleteFunc(all, func(a Allocation) bool { return a.isRecord() })
	for i := range all {
		all[i].LastError = c.words(all[i].LastError)
	}
	return all, err
}

// StreamAllocations yields the allocations that Ironic selects by a query, while it reads the pages of their list. limit is the most
// allocations that the reader wants; 0: all.
func (c *Client) StreamAllocations(ctx context.Context, query url.Values, limit int64) iter.Seq2[*Allocation, error] {
	return func(yield func(*Allocation, error) bool) {
		for a, err := range api.Stream(ctx, c.Conn, "allocations", "allocations", limited(query, limit), func(a *Allocation) string {
			return a.UUID
		}) {
			if a != nil && a.isRecord() {
				continue
			}
			if a != nil {
				a.LastError = c.words(a.LastError)
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

func (c *Client) listAllocationsByID(ctx context.Context) (map[string]*Allocation, error) {
	all, err := c.ListAllocations(ctx, nil)
	if err != nil {
		return nil, err
	}
	return ByUUID(all, func(a *Allocation) string { return a.UUID }), nil
}

// UpdateAllocation changes the name and extra, which Ironic allows since API 1.57. It leaves keys of extra that are neither in set
// nor in remove as they are.
func (c *Client) UpdateAllocation(ctx context.Context, id string, name *string, set map[string]any, remove []string) error {
	var patch Patch
	if name != nil && *name == "" {
		patch.Remove("/name")
	} else if name != nil {
		patch.Set("/name", *name)
	}
	if hasList(set) {
		// Ironic 39 accepts no list as the value of one key of an allocation's extra, but accepts it in extra as a whole.
		a, err := c.Allocation(ctx, id)
		if err != nil {
			return err
		}
		patch.Set("/extra", extraAfter(a.Extra, set, remove))
		set, remove = nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		patch.Set("/extra/"+key, set[key])
	}
	for _, key := range remove {
		patch.Remove("/extra/" + key)
	}
	return c.PatchAllocation(ctx, id, patch)
}

// PatchAllocation applies edits of the name or of extra to an allocation; an empty patch sends nothing.
func (c *Client) PatchAllocation(ctx context.Context, id string, patch Patch) error {
	if len(patch) == 0 {
		return nil
	}
	defer c.allocs.Invalidate(id)
	return c.Request(ctx, http.MethodPatch, "allocations/"+id, patch.body(), nil)
}

func hasList(m map[string]any) bool {
	for _, value := range m {
		if _, ok := value.([]any); ok {
			return true
		}
	}
	return false
}

// DeleteAllocation deletes an allocation, which releases its node. It succeeds if the allocation does not exist.
func (c *Client) DeleteAllocation(ctx context.Context, id string) error {
	defer c.allocs.Invalidate(id)
	return c.remove(ctx, "allocations/"+id)
}
