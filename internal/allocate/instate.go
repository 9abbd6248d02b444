package allocate

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// inState are the allocations that Terraform has in state, as far as it has refreshed them in this run. None of them is one that a killed
// run has begun: a tainted one is replaced, which the plan shows as a creation.
type inState struct{ ids notes.Set[string] }

// InState records that Terraform has an allocation in state, because it has asked this run to refresh it.
func InState(site *machine.Site, id string) {
	machine.Kept(site, func(*machine.Site) *inState { return &inState{} }).ids.Add(id)
}

func isInState(site *machine.Site, id string) bool {
	return machine.Kept(site, func(*machine.Site) *inState { return &inState{} }).ids.Has(id)
}
