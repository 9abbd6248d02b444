package allocate

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

const (
	stockAge       = time.Minute // how old a list may be that only proposes candidates: Ironic decides
	pauseAfterList = 20          // the pause after a list, as a multiple of its duration

	inventoriesOfPlans = 100  // how many inventories the plans of a run read
	inventoriesOfRun   = 1000 // how many inventories a run reads

	// Once enoughNodes free nodes fit, no more inventories are read. Ironic still has a choice if other runs take some of them.
	enoughNodes = 10
	// mostCandidates is the largest number of candidates of an allocation: Ironic stores all of them.
	mostCandidates = 100
)

// stockFields are the fields that decide whether an allocation can have a node.
var stockFields = []string{
	"uuid", "name", "resource_class", "traits", "owner", "provision_state", "power_state", "maintenance", "instance_uuid",
	"conductor_group", "properties",
}

// stock is what all allocations of a run know of the nodes that they could have.
type stock struct {
	turn        chan struct{}                // holds a value while a list or an inventory is read, so that the others wait for it
	inventories map[string]*ironic.Inventory // by UUID; nil: the node has none. Only for the holder of the turn

	mu      sync.Mutex
	nodes   map[string]*ironic.Node
	asked   time.Time            // when the list was requested
	whole   bool                 // lists have all fields: a group spreads its members by one of them, or an allocation compares notes
	next    time.Time            // when an allocation that waits may request the next one
	claimed map[string]bool      // nodes that a creation in progress of this run counts on
	taken   map[string]time.Time // nodes that this run has reserved, and when

	retired   []ironic.Node // with the notes of quarantines. Only for the holder of the turn
	retiredAt time.Time     // when the list was requested
}

func stockOf(site *machine.Site) *stock { return machine.Kept(site, newStock) }

func newStock(*machine.Site) *stock {
	return &stock{
		turn: make(chan struct{}, 1), inventories: map[string]*ironic.Inventory{}, claimed: map[string]bool{},
		taken: map[string]time.Time{},
	}
}

// begin waits for the turn to read.
func (s *stock) begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stock) end() { <-s.turn }

// stockSince returns a list of all nodes that was requested at a time or later, and when it was requested.
func stockSince(ctx context.Context, site *machine.Site, oldest time.Time) (map[string]*ironic.Node, time.Time, error) {
	stock := stockOf(site)
	if err := stock.begin(ctx); err != nil {
		return nil, time.Time{}, err
	}
	defer stock.end()
	if all, asked := stock.list(); all != nil && !asked.Before(oldest) {
		return all, asked, nil
	}
	version, err := site.Ironic.Microversion(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	fields := stockFields
	if version >= api.VersionLessee {
		fields = append(slices.Clone(fields), "lessee")
	}
	list := func() ([]ironic.Node, error) { return site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, fields) }
	if stock.whole {
		list = func() ([]ironic.Node, error) { return site.Ironic.ListNodes(ctx, ironic.NodeFilter{}) }
	}
	asked := time.Now()
	all, err := list()
	if err != nil {
		return nil, time.Time{}, err
	}
	pause := max(site.Ironic.PollInterval(), pauseAfterList*time.Since(asked))
	return stock.keep(all, asked, time.Now().Add(pause)), asked, nil
}

// nextStock waits until there is a newer list than one, or an allocation that waits may request it. It returns the oldest time of that
// list. All allocations that wait share it.
func nextStock(ctx context.Context, site *machine.Site, seen time.Time) (oldest time.Time, err error) {
	for {
		asked, next := stockOf(site).times()
		wait := time.Until(next)
		if asked.After(seen) || wait <= 0 {
			return seen.Add(1), nil
		}
		if err := rest.Sleep(ctx, wait); err != nil {
			return time.Time{}, err
		}
	}
}

func (s *stock) list() (map[string]*ironic.Node, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes, s.asked
}

func (s *stock) times() (asked, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.next
}

// keep stores a list, and when the next one may be requested.
func (s *stock) keep(all []ironic.Node, asked, next time.Time) map[string]*ironic.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes, s.asked, s.next = ironic.ByUUID(all, func(n *ironic.Node) string { return n.UUID }), asked, next
	return s.nodes
}

// inRunOrder sorts nodes in an order of this run, so that its allocations read the same inventories, and other runs read others.
func inRunOrder(site *machine.Site, all []*ironic.Node) []*ironic.Node {
	slices.SortFunc(all, func(a, b *ironic.Node) int {
		if before := a.UUID < site.Run.ID; before != (b.UUID < site.Run.ID) {
			if before {
				return 1
			}
			return -1
		}
		return strings.Compare(a.UUID, b.UUID)
	})
	return all
}

// inventoryOf returns the inventory of a node, which this run reads once; nil if it has none. isRead is false if the run may not read any
// more. An inventory that Ironic does not return counts as none.
func inventoryOf(
	ctx context.Context, site *machine.Site, node *ironic.Node, most int,
) (inventory *ironic.Inventory, isRead bool, err error) {
	stock := stockOf(site)
	if err := stock.begin(ctx); err != nil {
		return nil, false, err
	}
	defer stock.end()
	if inventory, isRead = stock.inventories[node.UUID]; isRead || len(stock.inventories) >= most {
		return inventory, isRead, nil
	}
	inventory, err = site.Ironic.Inventory(ctx, node.UUID)
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if err != nil {
		site.Ironic.Logger().WarnContext(ctx, "could not read the inventory of a node",
			append(machine.NodeAttributes(node), "error", err)...)
	}
	stock.inventories[node.UUID] = inventory
	return inventory, true, nil
}

// readWhole makes lists that begin from now on have all fields.
func (s *stock) readWhole(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if !s.whole {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.whole, s.nodes = true, nil
	}
	return nil
}

// claimOne claims a node for a request, as its only candidate. It returns false if another creation counts on the node.
func (s *stock) claimOne(r *Request, node *ironic.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unclaimed([]*ironic.Node{node})) == 0 {
		return false
	}
	r.claimed, r.chosen = node.UUID, []string{node.UUID}
	s.claimed[node.UUID] = true
	return true
}

// free returns the nodes that no creation of this run counts on or has reserved since the list.
func (s *stock) free(all []*ironic.Node) []*ironic.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unclaimed(all)
}

// unclaimed is free; s.mu is held.
func (s *stock) unclaimed(all []*ironic.Node) []*ironic.Node {
	return slices.DeleteFunc(slices.Clone(all), func(n *ironic.Node) bool { return s.claimed[n.UUID] || s.taken[n.UUID].After(s.asked) })
}

// claim chooses the candidates of a request from nodes that fit. The first one is the node with the name of the allocation, if there is
// one, because Ironic prefers it. Until release, other creations of this run do not count on the first candidate. While others are in
// progress, it is the only candidate. claim returns false if other creations count on all of the nodes.
func (s *stock) claim(r *Request, fit []*ironic.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	fit = s.unclaimed(fit)
	if len(fit) == 0 {
		return false
	}
	rand.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	for i, node := range fit {
		if node.Name != "" && node.Name == r.Name {
			fit[0], fit[i] = fit[i], fit[0]
		}
	}
	r.claimed, r.chosen = fit[0].UUID, nil
	s.claimed[r.claimed] = true
	most := mostCandidates
	if len(s.claimed) > 1 {
		most = 1 // Ironic would give this allocation a node that another one counts on
	}
	for _, node := range fit[:min(len(fit), most)] {
		r.chosen = append(r.chosen, node.UUID)
	}
	return true
}

// release ends the claim of a request. node is what its allocation has reserved; "" if nothing.
func (s *stock) release(r *Request, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.claimed != "" {
		delete(s.claimed, r.claimed)
		r.claimed = ""
	}
	if node != "" {
		s.taken[node] = time.Now()
	}
}

// RetiredNodes returns the retired nodes with their notes. The deployments of a run share a list that is at most a minute old.
func RetiredNodes(ctx context.Context, site *machine.Site) ([]ironic.Node, error) {
	stock := stockOf(site)
	if err := stock.begin(ctx); err != nil {
		return nil, err
	}
	defer stock.end()
	if !stock.retiredAt.IsZero() && time.Since(stock.retiredAt) < stockAge {
		return stock.retired, nil
	}
	asked, yes := time.Now(), true
	all, err := site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{Retired: &yes},
		[]string{"uuid", "name", "retired", "retired_reason", "extra"})
	if err != nil {
		return nil, err
	}
	stock.retired, stock.retiredAt = all, asked
	return all, nil
}
