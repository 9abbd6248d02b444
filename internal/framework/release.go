package framework

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// WarnRelease warns if releasing an allocation also undeploys its node, because a killed run has put the node into quarantine and did not
// finish that.
func (c *WithClient) WarnRelease(ctx context.Context, diags *diag.Diagnostics, allocation, node string) {
	if !c.Known() || node == "" {
		return
	}
	if n, err := c.Site.Ironic.NodeForRefresh(ctx, node); err == nil && marks.InQuarantineFor(n, allocation) {
		diags.AddWarning("Quarantine is finished", fmt.Sprintf("A deployment has failed on node %s, and an earlier run was interrupted while it put the node into quarantine. "+
			"Releasing allocation %s finishes that: the node is undeployed and cleaned, and stays retired. If another client deploys the node first, the provider leaves it alone, and the release fails.",
			ironic.NodeLabel(n), allocation))
	}
}
