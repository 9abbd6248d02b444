package actions

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var (
	_ action.ActionWithModifyPlan     = (*service)(nil)
	_ action.ActionWithValidateConfig = (*service)(nil)
)

// NewService returns metal_service.
func NewService() action.Action { return &service{operator{name: "metal_service"}} }

type service struct{ operator }

type serviceModel struct {
	target
	order
}

const serviceLimit = 60 * time.Minute

// Schema describes the action.
func (a *service) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Services a deployed machine: Ironic runs steps on it and brings it back to `active`. **The machine "+
		"restarts**, unless Ironic's ramdisk is disabled. Steps that erase disks are refused. Needs API 1.87.", serviceLimit,
		orderAttributes(api.VersionServiceRamdisk))
}

// ValidateConfig refuses steps that erase disks.
func (a *service) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	var m serviceModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if erasing := machine.Erasing(framework.OrderSteps(m.Steps)); len(erasing) > 0 {
		resp.Diagnostics.AddAttributeError(path.Root("steps"), "Service would erase a deployed machine",
			"These steps erase disks, or replace volumes: "+strings.Join(erasing, ", ")+".")
	}
}

// ModifyPlan refuses what the API version does not support.
func (a *service) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m serviceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !a.Known() || resp.Diagnostics.HasError() || !a.Offers(ctx, &resp.Diagnostics, api.VersionService, "metal_service") {
		return
	}
	a.requireOrder(ctx, &resp.Diagnostics, m.order, api.VersionServiceRamdisk)
}

// Invoke services the machine.
func (a *service) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m serviceModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, m.target, "service", serviceLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		return machine.Service(ctx, m.order.order(), limit)
	})
}
