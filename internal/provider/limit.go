package provider

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	tfpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Defaults of provisioning_limit.
const (
	defaultMaxHosts   = 20
	defaultStuckAfter = 45 * time.Minute
	defaultExempt     = "*virtual-media"
	maxHostsVariable  = "MAX_CONCURRENT_PROVISIONING_HOSTS"
)

type limitModel struct {
	MaxHosts             types.Int64  `tfsdk:"max_hosts"`
	Scope                types.String `tfsdk:"scope"`
	Coordination         types.String `tfsdk:"coordination"`
	Count                types.String `tfsdk:"count"`
	StuckAfter           types.String `tfsdk:"stuck_after"`
	ExemptBootInterfaces types.List   `tfsdk:"exempt_boot_interfaces"`
}

// limitSchema describes provisioning_limit.
func limitSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How many hosts are in work at once: cleaning, inspecting, deploying, undeploying, rescuing, in service. The others wait their turn; " +
			"time limits of resources do not run meanwhile. See the guide [Large applies](guides/large-applies.md).",
		Attributes: map[string]schema.Attribute{
			"max_hosts": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "Hosts in work at once, those that others have put to work included. `0`: no limit. Default: `20`. Environment: `" + maxHostsVariable + "`. " +
					"Terraform itself works on 10 resources at once unless told otherwise (`-parallelism`).",
			},
			"scope": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Which hosts share the limit: `all` (the default), or those of one `conductor_group` or `shard` (needs API 1.82).",
				Validators:          []validator.String{stringvalidator.OneOf(string(ironic.ScopeAll), string(ironic.ScopeConductorGroup), string(ironic.ScopeShard))},
			},
			"coordination": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "`ironic` (the default): the limit is exact over all runs that share this Ironic, by a lock record in it that is held for seconds. " +
					"`process`: exact within this run; two runs that start hosts in the same moment may exceed it.",
				Validators: []validator.String{stringvalidator.OneOf(string(ironic.CoordinationIronic), string(ironic.CoordinationProcess))},
			},
			"count": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Which hosts count: `busy` (the default), every host in work; or `agent`, only those whose agent has reported. " +
					"The latter leaves out the hosts that are just booting, which load DHCP and the image server most: prefer the default.",
				Validators: []validator.String{stringvalidator.OneOf(string(ironic.CountBusy), string(ironic.CountAgent))},
			},
			"stuck_after": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "After how long in one state a host hangs and does not count any more, which a warning says. Never more than `max_hosts` hosts at once are left out so. " +
					"`0s`: never. Default: `45m`.",
				Validators: []validator.String{durationAtLeast(0)},
			},
			"exempt_boot_interfaces": schema.ListAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Patterns (`*`, `?`, `[a-z]`) of boot interfaces whose hosts need no slot and take none. Default: `[\"" + defaultExempt + "\"]`, " +
					"because virtual media uses neither DHCP nor TFTP.",
				Validators: []validator.List{listvalidator.ValueStringsAre(pattern)},
			},
		},
	}
}

// limit is the provisioning limit: the configured one, with the environment's number of hosts, and the defaults.
func limit(ctx context.Context, m model, diags *diag.Diagnostics) ironic.Limit {
	var block limitModel
	if !m.ProvisioningLimit.IsNull() && !m.ProvisioningLimit.IsUnknown() {
		diags.Append(m.ProvisioningLimit.As(ctx, &block, objectAsOptions)...)
	}
	l := ironic.Limit{
		Limit: throttle.Limit{Max: maxHosts(block, diags), StuckAfter: defaultStuckAfter},
		Scope: ironic.ScopeAll, Coordination: ironic.CoordinationIronic, Count: ironic.CountBusy, Exempt: []string{defaultExempt},
	}
	if v := block.StuckAfter; !v.IsNull() && !v.IsUnknown() {
		l.StuckAfter = duration(v)
	}
	if v := block.Scope.ValueString(); v != "" {
		l.Scope = ironic.Scope(v)
	}
	if v := block.Coordination.ValueString(); v != "" {
		l.Coordination = ironic.Coordination(v)
	}
	if v := block.Count.ValueString(); v != "" {
		l.Count = ironic.Count(v)
	}
	if v := block.ExemptBootInterfaces; !v.IsNull() && !v.IsUnknown() {
		diags.Append(v.ElementsAs(ctx, &l.Exempt, false)...)
	}
	return l
}

// maxHosts is max_hosts, else the environment's number, else the default.
func maxHosts(block limitModel, diags *diag.Diagnostics) int {
	if !block.MaxHosts.IsNull() && !block.MaxHosts.IsUnknown() {
		return int(block.MaxHosts.ValueInt64())
	}
	text := os.Getenv(maxHostsVariable)
	if text == "" {
		return defaultMaxHosts
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		diags.AddAttributeError(tfpath.Root("provisioning_limit").AtName("max_hosts"), "Not a number of hosts",
			fmt.Sprintf("The environment variable %s is %q. It must be a whole number, 0 for no limit.", maxHostsVariable, text))
	}
	return max(n, 0)
}
