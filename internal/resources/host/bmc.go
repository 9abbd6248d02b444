package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

type bmcModel struct {
	Address           types.String `tfsdk:"address"`
	Username          types.String `tfsdk:"username"`
	Password          types.String `tfsdk:"password"`
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.String `tfsdk:"password_wo_version"`
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
		Optional: true,
		MarkdownDescription: "Required unless `driver` or `power_control` is set. The BMC of the machine. The driver follows " +
			"from its address.",
		Attributes: map[string]schema.Attribute{
			"address": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Address of the BMC: `SCHEME://HOST[:PORT]/SYSTEM` or `ipmi://HOST[:PORT]`, with a scheme from [BMC " +
					"addresses](#bmc-addresses). Omit `SYSTEM`, such as `/redfish/v1/Systems/1`, if the BMC has only one. Redfish uses " +
					"HTTPS; for HTTP, append `+http` to the scheme. Without a scheme: IPMI. After `ipmi://HOST[:PORT]`, " +
					"`?privilegelevel=OPERATOR` lets Ironic log in with less than `ADMINISTRATOR`.",
				Validators: []validator.String{framework.BMCAddress},
			},
			"username": schema.StringAttribute{
				Optional: true, MarkdownDescription: "User name for the BMC.", Validators: []validator.String{framework.Trimmed},
			},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Password for the BMC, **stored in state**. Prefer `password_wo`, unless your CLI is older than 1.11.",
				Validators:          []validator.String{framework.Trimmed, stringvalidator.ConflictsWith(password.AtName("password_wo"))},
			},
			"password_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "Password for the BMC. Not stored.",
				Validators: []validator.String{
					framework.Trimmed, stringvalidator.AlsoRequires(password.AtName("password_wo_version")),
				},
			},
			"password_wo_version": framework.SecretVersion("password_wo", ""),
			"verify_ca": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether Ironic verifies the certificate of the BMC. Not allowed with IPMI. " +
					"Default: `true` for Redfish.",
			},
		},
	}
}

func (m *model) bmc(ctx context.Context) *bmcModel {
	return framework.Decoded[bmcModel](ctx, m.BMC)
}

// encodeBMC adds the settings that follow from the bmc block. Configured interfaces take precedence over those of its scheme.
func (m *model) encodeBMC(ctx context.Context, s ironic.Settings) {
	block := m.bmc(ctx)
	if block == nil {
		return
	}
	bmc, err := driverinfo.ParseBMC(block.Address.ValueString())
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
	bmc, err := driverinfo.ParseBMC(block.Address.ValueString())
	if err != nil {
		return
	}
	actual := framework.Scalars(node.DriverInfo)
	if !m.leadsTo(bmc, node) {
		address := driverinfo.DescribeBMC(node.Driver, node.BootInterface, node.DriverInfo)
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
func (m *model) leadsTo(bmc *driverinfo.BMC, node *ironic.Node) bool {
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
func (m *model) otherInterface(bmc *driverinfo.BMC, node *ironic.Node) string {
	configured, interfaces := m.interfaces(), ironic.InterfacesOf(node)
	for _, kind := range slices.Sorted(maps.Keys(bmc.Interfaces)) {
		if configured[kind] == "" && interfaces[kind] != bmc.Interfaces[kind] {
			return kind
		}
	}
	return ""
}

// powerByAgent is the value of power_control.
const powerByAgent = "agent"

// powerControlAttribute makes power_control, from which driver, power and network interface follow.
func powerControlAttribute() attribute {
	return attribute{
		name: "power_control",
		schema: schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Required unless `bmc` or `driver` is set. The only value is `agent`: Ironic has no BMC credentials, " +
				"and prepares the machine through the Ironic agent on it. Needs `[deploy]fast_track`. See " +
				"[Discovery](../guides/discovery.md).",
			Validators: []validator.String{stringvalidator.OneOf(powerByAgent), stringvalidator.ConflictsWith(path.MatchRoot("bmc"))},
		},
		encode: func(_ context.Context, config *model, s ironic.Settings) {
			if config.byAgent() {
				maps.Copy(s, machine.AgentSettings())
			}
		},
		read: func(_ context.Context, m *model, node *ironic.Node, everything bool) {
			switch agent := node.Driver == machine.AgentDriver && machine.ByAgent(node); {
			case everything && agent:
				m.PowerControl = types.StringValue(powerByAgent)
			case !agent:
				m.PowerControl = types.StringNull()
			}
		},
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.PowerControl, planned.PowerControl) },
	}
}

// byAgent reports whether Ironic prepares the machine through its agent.
func (m *model) byAgent() bool { return m.PowerControl.ValueString() == powerByAgent }

func (m *model) validateAgent(diags *diag.Diagnostics) {
	if !m.byAgent() {
		return
	}
	if !m.PowerState.IsNull() {
		diags.AddAttributeError(path.Root("power_state"), "Power needs BMC credentials",
			"With power_control = \"agent\", Ironic can neither switch the machine on nor off. Remove power_state, or give the host a "+
				"bmc with address, username and password_wo in place of power_control.")
	}
	settings := machine.AgentSettings()
	for kind, chosen := range m.interfaces() {
		if value := settings.Text(kind + "_interface"); value != "" && chosen != value {
			at := interfacesPath(kind)
			diags.AddAttributeError(at, "Interface does not fit power_control", "power_control = \"agent\" needs the "+kind+" interface "+
				value+". Remove it here.")
		}
	}
}

func interfacesPath(kind string) path.Path { return path.Root("hardware_interfaces").AtName(kind) }

// interfaces returns the known hardware interfaces of the model.
func (m *model) interfaces() map[string]string {
	known := map[string]string{}
	if !framework.IsSet(m.Interfaces) {
		return known
	}
	for kind, value := range m.Interfaces.Attributes() {
		if text, ok := value.(types.String); ok && framework.IsSet(text) {
			known[kind] = text.ValueString()
		}
	}
	return known
}

// secrets returns the write-only values by key of driver_info. Only a configuration has them.
func (m *model) secrets(ctx context.Context) map[string]any {
	secrets := map[string]any{}
	maps.Copy(secrets, objectOf(m.DriverInfoWO))
	if block := m.bmc(ctx); block != nil && framework.IsSet(block.PasswordWO) {
		if bmc, err := driverinfo.ParseBMC(block.Address.ValueString()); err == nil {
			secrets[bmc.PasswordKey] = block.PasswordWO.ValueString()
		}
	}
	return secrets
}

// secretsVersion returns a value that changes when the write-only values must be sent again.
func (m *model) secretsVersion(ctx context.Context) [2]types.String {
	v := [2]types.String{m.DriverInfoWOVersion, types.StringNull()}
	if block := m.bmc(ctx); block != nil {
		v[1] = block.PasswordWOVersion
	}
	return v
}

// newSecrets returns the keys of secrets that the configuration which was applied last did not have.
func (m *model) newSecrets(ctx context.Context, before managed) (keys []string) {
	for key := range m.secrets(ctx) {
		if !slices.Contains(before, "/driver_info/"+key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// refuseUnsent refuses new keys of driver_info_wo that an empty plan would never send.
func (m *model) refuseUnsent(ctx context.Context, before managed, diags *diag.Diagnostics) {
	if before == nil || m.DriverInfoWO.IsUnknown() || m.BMC.IsUnknown() {
		return
	}
	if keys := m.newSecrets(ctx, before); len(keys) > 0 {
		diags.AddAttributeError(path.Root("driver_info_wo_version"), "Secrets without a new version",
			fmt.Sprintf("driver_info_wo has new keys (%s), and driver_info_wo_version has not changed, so the provider would not send "+
				"them. Change driver_info_wo_version.", strings.Join(keys, ", ")))
	}
}

// lostSecret reports whether a node lacks a secret of driver_info_wo that was applied.
func (m *model) lostSecret(node *ironic.Node, before managed) bool {
	if m.DriverInfoWOVersion.IsNull() || driverinfo.AddressKey(node.DriverInfo) == "" {
		return false
	}
	return slices.ContainsFunc(before.below("/driver_info"), func(key string) bool {
		_, has := node.DriverInfo[key]
		return ironic.IsSecretKey(key) && !has
	})
}

// losePassword removes from the block what shows that Ironic has the password, so that the next plan sends it.
func (b *bmcModel) losePassword(node *ironic.Node, key string) {
	if _, has := node.DriverInfo[key]; has {
		return
	}
	b.PasswordWOVersion = types.StringNull()
	if framework.IsSet(b.Password) {
		b.Password = types.StringNull()
	}
}

// scheme returns the BMC address of a model, and what it means; "" and nil if it has none.
func (m *model) scheme(ctx context.Context) (string, *driverinfo.BMC) { return schemeOf(m.bmc(ctx)) }

func schemeOf(block *bmcModel) (string, *driverinfo.BMC) {
	if block == nil || !framework.IsSet(block.Address) {
		return "", nil
	}
	bmc, err := driverinfo.ParseBMC(block.Address.ValueString())
	if err != nil {
		return "", nil
	}
	return block.Address.ValueString(), bmc
}
