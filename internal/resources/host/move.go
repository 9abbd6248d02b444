package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

var _ resource.ResourceWithMoveState = (*host)(nil)

// MoveState takes over nodes of terraform-provider-ironic and its fork.
func (h *host) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_node_v1", "ironic_node")}
}
