package provision

import (
	"context"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// The notes that this provider keeps on a node besides the marks of creation, in extra unless stated otherwise. Ironic keeps extra and clears instance_info when
// it undeploys a node.
const (
	// keyAllocation: the allocation that Ironic deletes with the instance. It is set before the node is undeployed, until the
	// allocation exists again (reference/ironic.md#undeploying-deletes-the-allocation).
	keyAllocation = "terraform_metal_allocation"
	// keyBoot: the live ISO that the node was booted with, and what deploying it again must restore.
	keyBoot = "terraform_metal_boot"
	// keyDiscovery: which metal_discovery_import has claimed and named the node.
	keyDiscovery = "terraform_metal_discovery"
	// keyEnrolled: a metal_host manages this unnamed node, so discovery ignores it.
	keyEnrolled = "terraform_metal_enrolled"
	// keyFailures: how often operations on the node have failed since the last success. Such nodes wait longer for a slot.
	keyFailures = "terraform_metal_failures"
	// keyInspection: the inspection that triggers have requested last.
	keyInspection = "terraform_metal_inspection"
	// keyQuarantine: which allocation's deployment failed on the node, so that the provider has retired it.
	keyQuarantine = "terraform_metal_quarantine"
	// keyMarker, in instance_info: what the node was deployed with.
	keyMarker = "terraform_metal"
)

// OwnKey reports whether a key of extra or instance_info is a note of any package of this provider. Users cannot set such a key,
// and neither an import nor a data source shows it.
func OwnKey(key string) bool {
	return key == keyMarker || strings.HasPrefix(key, "terraform_metal_") || strings.HasPrefix(key, "metal_oneview_")
}

// failures returns how often operations on a node have failed since the last success. A node with more failures waits longer for a
// slot, also in later runs. Another client may have written any number: as many count as the queue tells apart.
func failures(node *ironic.Node) int {
	n, _ := node.Extra[keyFailures].(float64)
	return int(max(0, min(n, throttle.MaxFailures)))
}

// countFailures records a failed walk on the node, or resets the count after a success. Only the order of the queue depends on the
// count, so the walk goes on if the note cannot be written because the node is locked or gone.
func (m *Machine) countFailures(ctx context.Context, err error) {
	var patch ironic.Patch
	switch {
	case m.site.cfg.Limit.Max == 0:
	case As(err, KindFailed, KindTimeout) != nil:
		patch.Set("/extra/"+keyFailures, failures(m.node)+1)
	case err == nil && m.node.Extra[keyFailures] != nil:
		patch.Remove("/extra/" + keyFailures)
	}
	if len(patch) == 0 || has(m.state(), busy) {
		return
	}
	if err := m.Patch(ctx, patch); err != nil {
		m.site.Logger().DebugContext(ctx, "could not record the failures of the node", append(nodeAttributes(m.node), "error", err)...)
	}
}
