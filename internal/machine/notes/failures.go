package notes

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// KeyFailures is the key of the note which says how often operations on the node have failed since the last success. Such nodes wait longer
// for a slot.
const KeyFailures = "terraform_metal_failures"

// Failures returns how often operations on a node have failed since the last success. A node with more failures waits longer for a
// slot, also in later runs. Another client may have written any number: as many count as the queue tells apart.
func Failures(node *ironic.Node) int {
	n, _ := document.Number(node.Extra[KeyFailures])
	return int(max(0, min(n, throttle.MaxFailures)))
}
