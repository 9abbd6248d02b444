package allocation

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

var _ resource.ResourceWithMoveState = (*allocation)(nil)

// MoveState takes over allocations of terraform-provider-ironic and its fork.
func (a *allocation) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_allocation_v1", "ironic_allocation")}
}
