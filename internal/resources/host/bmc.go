package host

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type bmcModel struct {
	Address           types.String `tfsdk:"address"`
	Username          types.String `tfsdk:"username"`
	Password          types.String `tfsdk:"password"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.Int64  `tfsdk:"password_wo_version"`
	VerifyCA          types.Bool   `tfsdk:"verify_ca"`
}

// bmcAttribute makes the bmc block, from which the driver, its driver_info and its interfaces follow.
func bmcAttribute() attribute {
	return attribute{
		name: "bmc", schema: bmcSchema(),
		encode: func(ctx context.Context, config *model, s ironic.Settings) { config.encodeBMC(ctx, s) },
		// An import leaves it null, and fills driver and driver_info: a configuration without bmc then plans nothing.
		read: func(ctx context.Context, m *model, node *ironic.Node, _ bool) { m.fromBMC(ctx, node) },
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.BMC, planned.BMC) },
	}
}

func bmcSchema() schema.Attribute {
	password := path.MatchRelative().AtParent()
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Required unless `driver` or `power_control` is set. The BMC of the machine. The driver follows from its address.",
		Attributes: map[string]schema.Attribute{
			"address": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Address of the BMC: `SCHEME://HOST[:PORT]/SYSTEM` or `ipmi://HOST[:PORT]`, with a scheme from [BMC addresses](#bmc-addresses). Omit `SYSTEM`, such as `/redfish/v1/Systems/1`, if the BMC has only one. " +
					"Redfish uses HTTPS; for HTTP, append `+http` to the scheme. Without a scheme: IPMI. After `ipmi://HOST[:PORT]`, `?privilegelevel=OPERATOR` lets Ironic log in with less than `ADMINISTRATOR`.",
				Validators: []validator.String{framework.BMCAddress},
			},
			"username": schema.StringAttribute{Optional: true, MarkdownDescription: "User name for the BMC."},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Password for the BMC, **stored in state**. Prefer `password_wo`, unless your CLI is older than 1.11.",
				Validators:          []validator.String{stringvalidator.ConflictsWith(password.AtName("password_wo"))},
			},
			"password_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "Password for the BMC, never stored in a plan or in state. Needs `password_wo_version`.",
				Validators:          []validator.String{stringvalidator.AlsoRequires(password.AtName("password_wo_version"))},
			},
			"password_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Number of your choice. Change it to send `password_wo` again.",
				Validators: []validator.Int64{int64validator.AlsoRequires(password.AtName("password_wo"))},
			},
			"verify_ca": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether Ironic verifies the certificate of the BMC. Not allowed with IPMI. Default: `true` for Redfish.",
			},
		},
	}
}

// bmc returns the bmc block; nil if it is null or unknown.
func (m *model) bmc(ctx context.Context) *bmcModel {
	if !framework.IsSet(m.BMC) {
		return nil
	}
	var bmc bmcModel
	if m.BMC.As(ctx, &bmc, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &bmc
}

// encodeBMC adds the settings that follow from the bmc block. Configured interfaces take precedence over those of its scheme.
func (m *model) encodeBMC(ctx context.Context, s ironic.Settings) {
	block := m.bmc(ctx)
	if block == nil {
		return
	}
	bmc, err := ironic.ParseBMC(block.Address.ValueString())
	if err != nil {
		return // the validator refuses it
	}
	s["driver"] = bmc.Driver
	for key, value := range bmc.Info {
		s.SetKey("driver_info", key, value)
	}
	for name, value := range bmc.Interfaces {
		if attribute := name + "_interface"; s[attribute] == nil {
			s[attribute] = value
		}
	}
	if framework.IsSet(block.Username) {
		s.SetKey("driver_info", bmc.UsernameKey, block.Username.ValueString())
	}
	if framework.IsSet(block.VerifyCA) && bmc.VerifyCAKey != "" {
		s.SetKey("driver_info", bmc.VerifyCAKey, block.VerifyCA.ValueBool())
	}
	if framework.IsSet(block.Password) {
		s.SetKey("driver_info", bmc.PasswordKey, block.Password.ValueString())
	}
}

// fromBMC copies the BMC address and user name of the node into the model if another client of Ironic has changed them. It also
// replaces the address if the node's interfaces no longer follow from it.
func (m *model) fromBMC(ctx context.Context, node *ironic.Node) {
	block := m.bmc(ctx)
	if block == nil || node.Hidden.DriverInfo {
		return
	}
	bmc, err := ironic.ParseBMC(block.Address.ValueString())
	if err != nil {
		return
	}
	actual := framework.Scalars(node.DriverInfo)
	if !m.leadsTo(bmc, node) {
		address := ironic.DescribeBMC(node)
		if kind := m.otherInterface(bmc, node); kind != "" && address == block.Address.ValueString() {
			address += fmt.Sprintf(" (%s interface %s)", kind, ironic.InterfacesOf(node)[kind])
		}
		block.Address = types.StringValue(address)
	} else {
		block.losePassword(node, bmc.PasswordKey)
	}
	if framework.IsSet(block.Username) {
		block.Username = framework.OrNull(actual[bmc.UsernameKey])
	}
	m.BMC, _ = types.ObjectValueFrom(ctx, m.BMC.AttributeTypes(ctx), block)
}

// leadsTo reports whether a node has the settings that follow from a BMC address.
func (m *model) leadsTo(bmc *ironic.BMC, node *ironic.Node) bool {
	actual := framework.Scalars(node.DriverInfo)
	for key, value := range framework.Scalars(bmc.Info) {
		if actual[key] != value {
			return false
		}
	}
	return m.otherInterface(bmc, node) == ""
}

// otherInterface returns the kind of an interface that does not follow from a BMC address, and that the configuration does not set; "" if
// there is none.
func (m *model) otherInterface(bmc *ironic.BMC, node *ironic.Node) string {
	configured, interfaces := m.interfaces(), ironic.InterfacesOf(node)
	for _, kind := range slices.Sorted(maps.Keys(bmc.Interfaces)) {
		if configured[kind] == "" && interfaces[kind] != bmc.Interfaces[kind] {
			return kind
		}
	}
	return ""
}
