package host

import (
	"context"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

func (p *plan) destroy() {
	switch s := p.seen; {
	case p.OnDestroy == DestroyForget:
		p.warn(nil, staysSummary, fmt.Sprintf("on_destroy is \"forget\": node %s stays in Ironic as it is. Terraform does not manage it "+
			"any more.", p.Label))
	case s.Foreign:
		p.warn(nil, staysSummary, fmt.Sprintf("Node %s was discovered, and no configuration was applied to it, so it stays in Ironic. "+
			"Terraform does not manage it any more.", p.Label))
	case p.ByAgent && s.occupied():
		p.refuse(decide.At("on_destroy"), "Deployed host cannot be removed",
			fmt.Sprintf("Host %s is in state %q. Ironic removes no deployed node, and cannot undeploy this one without BMC credentials. "+
				"To leave it in Ironic, set on_destroy = \"forget\" on the metal_host, too, and apply; then destroy. Or give the host "+
				"a bmc in place of power_control.", p.Label, s.State))
	default:
		p.add(Step{Do: DoRemove})
		p.warn(nil, removesSummary, fmt.Sprintf("Node %s is removed from Ironic, which does nothing more to the machine. The value of "+
			"on_destroy that was applied last counts (here: delete). To leave the node in Ironic, set on_destroy = \"forget\" and apply "+
			"before you destroy.", p.Label))
	}
}

// Values of on_destroy.
const (
	DestroyDelete = "delete"
	DestroyForget = "forget"
)

// All hosts have the same summaries, so that Terraform folds their warnings into one of each.
const (
	removesSummary = "Destroying removes the host from Ironic"
	staysSummary   = "Destroying leaves the host in Ironic"
)

// MayBeForeign reports whether a node to which no configuration was ever applied was discovered. Another discovery may own such a node,
// because Terraform imports it even if metal_discovery_import has lost the machine to another one.
func MayBeForeign(ctx context.Context, site *machine.Site, id string) (bool, error) {
	node, err := site.Ironic.Node(ctx, id)
	if api.IsNotFound(err) {
		return false, nil
	}
	return err == nil && found.Likely(node), err
}

// KeepForeign says that the deletion of a host leaves its node, because that may be foreign.
func KeepForeign(host string) decide.Notice {
	return decide.Warn(nil, "Discovered node is not deleted", "Discovery has created the node of host "+host+
		", and the provider has no record that a configuration was applied to it: the host was only imported, or it is tainted and "+
		"replaced. Another discovery may own the node, so it stays in Ironic, and Terraform forgets the host. If this configuration has "+
		"a host of the same name, that host takes the node over again.")
}
