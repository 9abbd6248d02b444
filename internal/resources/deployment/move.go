package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

var _ resource.ResourceWithMoveState = (*deployment)(nil)

// MoveState takes over deployments of terraform-provider-ironic and its fork. As after an import, the first apply deploys nothing.
func (d *deployment) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_deployment")}
}
