package provider

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	tfpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

type limitModel struct {
	MaxConcurrent        types.Int64  `tfsdk:"max_concurrent"`
	Scope                types.String `tfsdk:"scope"`
	Coordination         types.String `tfsdk:"coordination"`
	StuckAfter           types.String `tfsdk:"stuck_after"`
	ExemptBootInterfaces types.Set    `tfsdk:"exempt_boot_interfaces"`
}

func limitSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Limits how many machines have an operation in progress at once, such as an inspection, cleaning, " +
			"deployment, undeployment or start. Further machines wait for a slot; `timeouts` do not include that time. See [Large " +
			"applies](guides/large-applies.md).",
		Attributes: map[string]schema.Attribute{
			"max_concurrent": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "Largest number of machines with an operation in progress, including those of other clients of " +
					"Ironic, as far as the user can see them. `0` means no limit. Terraform itself works on 10 resources at once, unless " +
					"you raise `-parallelism`. Default: `20`. Environment: `" + throttle.MaxVariable + "`.",
			},
			"scope": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Which machines share the limit: `all` (the default), those of a `conductor_group`, or those of a " +
					"`shard` (needs API 1.82).",
				Validators: []validator.String{stringvalidator.OneOf(string(throttle.ScopeAll),
					string(throttle.ScopeConductorGroup), string(throttle.ScopeShard))},
			},
			"coordination": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "`ironic` (the default): runs that use this Ironic share the limit, through a lock that a run holds " +
					"for seconds. Users of a project share it with runs of their project: see [Tenants](guides/tenants.md#the-limit). " +
					"`process`: two runs that start machines at the same moment may exceed the limit.",
				Validators: []validator.String{stringvalidator.OneOf(string(throttle.CoordinationIronic),
					string(throttle.CoordinationProcess))},
			},
			"stuck_after": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Time after which a machine in one state is considered stuck: it takes no slot any more, and a " +
					"warning names it. At most `max_concurrent` machines can be stuck. `0s` means never. Default: `45m`.",
				Validators: []validator.String{durationAtLeast(0)},
			},
			"exempt_boot_interfaces": schema.SetAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Boot interfaces whose machines need no slot, as patterns with `*`, `?` and `[a-z]`. Use " +
					"`[\"*virtual-media\"]` if the limit protects DHCP and TFTP. Default: `[]`, so that every machine needs a slot.",
				Validators: []validator.Set{setvalidator.ValueStringsAre(pattern)},
			},
		},
	}
}

// limit returns the configured provisioning limit. The environment may set the number of hosts; unset values have defaults.
func (p *metal) limit(ctx context.Context, m model, diags *diag.Diagnostics) throttle.Limit {
	var block limitModel
	if !m.ProvisioningLimit.IsNull() && !m.ProvisioningLimit.IsUnknown() {
		diags.Append(m.ProvisioningLimit.As(ctx, &block, objectAsOptions)...)
	}
	l := throttle.Limit{
		Max: p.maxConcurrent(block, diags), StuckAfter: throttle.DefaultStuckAfter,
		Scope: throttle.ScopeAll, Coordination: throttle.CoordinationIronic,
	}
	if v := block.StuckAfter; !v.IsNull() && !v.IsUnknown() {
		l.StuckAfter = duration(v)
	}
	if v := block.Scope.ValueString(); v != "" {
		l.Scope = throttle.Scope(v)
	}
	if v := block.Coordination.ValueString(); v != "" {
		l.Coordination = throttle.Coordination(v)
	}
	if v := block.ExemptBootInterfaces; !v.IsNull() && !v.IsUnknown() {
		diags.Append(v.ElementsAs(ctx, &l.Exempt, false)...)
	}
	return l
}

// maxConcurrent returns max_concurrent, else the environment's number, else the default.
func (p *metal) maxConcurrent(block limitModel, diags *diag.Diagnostics) int {
	if !block.MaxConcurrent.IsNull() && !block.MaxConcurrent.IsUnknown() {
		return int(block.MaxConcurrent.ValueInt64())
	}
	text := p.getenv(throttle.MaxVariable)
	if text == "" {
		return throttle.DefaultMax
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		diags.AddAttributeError(tfpath.Root("provisioning_limit").AtName("max_concurrent"), "Not a number of hosts",
			fmt.Sprintf("The environment variable %s is %q. It must be a whole number, 0 for no limit.", throttle.MaxVariable, text))
	}
	return max(n, 0)
}
