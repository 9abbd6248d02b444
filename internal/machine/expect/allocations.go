package expect

import (
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// reservations are the allocations that the resources of a run have in state, and those that its plan ends and reserves anew.
type reservations struct {
	mu     sync.Mutex
	owners map[string]string // the name of the resource that has an allocation, by the ID of the allocation; "": it has none
	anew   map[string]bool   // names that this plan creates
	ends   map[string]bool   // IDs
}

func reservationsOf(site *machine.Site) *reservations {
	return machine.Kept(site, func(*machine.Site) *reservations {
		return &reservations{owners: map[string]string{}, anew: map[string]bool{}, ends: map[string]bool{}}
	})
}

// KeepAllocation records that a resource with a name has an allocation in state.
func KeepAllocation(site *machine.Site, owner, id string) {
	r := reservationsOf(site)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[id] = owner
}

// EndAllocation records that this plan deletes an allocation, and reserves another one in its place.
func EndAllocation(site *machine.Site, id string) {
	r := reservationsOf(site)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[id] = true
}

// CreateAllocation records that this plan creates the allocation or group of a name. Names are unique, so it replaces one that it has in
// state: Terraform shows a replacement that the user has ordered as a creation.
func CreateAllocation(site *machine.Site, owner string) {
	r := reservationsOf(site)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.anew[owner] = true
}

// EndsAllocation reports whether this plan deletes an allocation and reserves another one in its place, if Terraform has planned that
// before. It does not know that of an allocation without a name that the user has ordered to be replaced.
func EndsAllocation(site *machine.Site, id string) bool {
	r := reservationsOf(site)
	r.mu.Lock()
	defer r.mu.Unlock()
	owner := r.owners[id]
	return r.ends[id] || owner != "" && r.anew[owner]
}
