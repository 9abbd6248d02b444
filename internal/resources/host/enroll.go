package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// takesOver returns the node that a new host would take over now; nil if there is none, or it is not known yet. A node that discovery names
// in this run is known by its name alone.
func (h *host) takesOver(ctx context.Context, config *model) *enroll.Found {
	if !h.Known() || !framework.FullyKnown(ctx, config.Name, config.Owner, config.Lessee) {
		return nil
	}
	who := enroll.Candidate{Name: config.Name.ValueString(), Tenant: machine.Tenant{Owner: config.Owner.ValueString(), Lessee: config.Lessee.ValueString()}}
	if framework.FullyKnown(ctx, config.BMC, config.Driver, config.DriverInfo, config.PowerControl, config.Ports) {
		who = enroll.CandidateOf(config.hostSettings(ctx, nil).Enrollment(), config.cablingOf(ctx, nil))
	}
	return enroll.WouldTakeOver(ctx, h.Site, who)
}

// announces warns of a node that a new host takes over, once in a run. It reports whether discovery has created the node, and there is more
// to say.
func (h *host) announces(diags *diag.Diagnostics, host string, found *enroll.Found) (discovered bool) {
	notices, discovered := enroll.Announce(h.Site, host, found)
	framework.Show(diags, notices...)
	return discovered
}
