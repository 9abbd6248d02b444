package discoveryimport

import "github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"

// private is what private state keeps of a discovery: see framework.KeepPrivate.
type private struct {
	// Survey has the new machines that the last refresh or apply has found. Plan and apply use the same list, though more machines may
	// appear in between.
	Survey *found.Survey `json:"survey,omitzero"`
}
