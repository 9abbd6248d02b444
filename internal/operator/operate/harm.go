package operate

import "github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"

// Harm is the worst that an operation does to a machine. What a command asks before it begins follows from it alone.
type Harm int

// The harms, from the least to the worst.
const (
	Harmless Harm = iota // nothing that a user would notice
	Restarts             // a free machine restarts, or something else that is worth a question
	Cuts                 // the power of a deployed or reserved machine is cut, or its system is disturbed
	Erases               // data on its disks may be erased
)

// harmOfCleaning returns the harm of the way to the pool, on which Ironic cleans a machine. Whether it does so at this site is not known.
func harmOfCleaning(node *ironic.Node) Harm {
	if node.AutomatedClean != nil && !*node.AutomatedClean {
		return Harmless
	}
	return Erases
}
