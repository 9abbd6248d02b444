package framework

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
)

// LiveISO is the attribute live_iso of metal_deployment and metal_boot_status.
type LiveISO struct {
	URL           types.String `tfsdk:"url"`
	Version       types.String `tfsdk:"version"`
	SharedContent types.Map    `tfsdk:"shared_content"`
	HostContent   types.Map    `tfsdk:"host_content"`
	Contains      types.Map    `tfsdk:"contains"`
	Installing    types.Bool   `tfsdk:"installing"`
	Registered    types.Bool   `tfsdk:"registered"`
	QuietPeriod   types.String `tfsdk:"quiet_period"`
	BuiltAt       types.String `tfsdk:"built_at"`
	RebootPolicy  types.String `tfsdk:"reboot_policy"`
}

// Want returns the attribute as the input of the decision about a machine. Settings that are null or unknown have their defaults.
func (l LiveISO) Want() bootiso.Want {
	want := bootiso.NewWant(bootiso.Artifacts{
		URL: l.URL.ValueString(), Version: l.Version.ValueString(), SharedContent: StringMap(l.SharedContent), HostContent: StringMap(l.HostContent),
	})
	if IsSet(l.Contains) {
		want.Contains = StringMap(l.Contains)
	}
	want.Installing = l.Installing.ValueBool()
	if IsSet(l.Registered) {
		want.Registered = l.Registered.ValueBool()
	}
	if IsSet(l.RebootPolicy) {
		want.Policy = bootiso.Policy(l.RebootPolicy.ValueString())
	}
	if quiet, err := time.ParseDuration(l.QuietPeriod.ValueString()); err == nil {
		want.Quiet = quiet
	}
	if at, err := time.Parse(time.RFC3339, l.BuiltAt.ValueString()); err == nil {
		want.BuiltAt = at
	}
	return want
}
