package datasources

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func number(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

func byName(description string, attributes map[string]schema.Attribute) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Computed: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

func objects(attributes map[string]schema.Attribute, values map[string]map[string]attr.Value) types.Map {
	kinds := typesOf(attributes)
	elements := map[string]attr.Value{}
	for name, value := range values {
		elements[name] = types.ObjectValueMust(kinds, value)
	}
	return types.MapValueMust(types.ObjectType{AttrTypes: kinds}, elements)
}

func biosAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"value": text("Current value as text, as `bios_settings` of `metal_host` takes it. Null if the BMC does not tell it, " +
			"as with passwords."),
		"type": text("`Enumeration`, `String`, `Integer`, `Boolean` or `Password`. Null, like all that follows, if Ironic " +
			"has not read it from the BMC, and below API 1.74."),
		"allowable_values": list("Values of an `Enumeration`."),
		"lower_bound":      number("Least value of an `Integer`."), "upper_bound": number("Greatest value of an `Integer`."),
		"min_length": number("Least length of a `String`."), "max_length": number("Greatest length of a `String`."),
		"read_only": flag("Whether the setting cannot be changed."), "reset_required": flag("Whether a change needs a restart."),
		"unique": flag("Whether the value is unique to the machine."),
	}
}

func biosSchema() schema.Attribute {
	return byName("BIOS settings by name (`include = [\"bios_settings\"]`), as Ironic has read them when it last verified, cleaned or "+
		"serviced the machine. Empty if Ironic has read none.", biosAttributes())
}

func readBIOS(ctx context.Context, r *reader) (attr.Value, error) {
	settings, err := r.client.BIOS(ctx, r.node.UUID)
	values := map[string]map[string]attr.Value{}
	for name, s := range settings {
		allowed := types.ListNull(types.StringType)
		if len(s.Allowed) > 0 {
			allowed = stringsValue(s.Allowed)
		}
		value, readOnly := types.StringNull(), types.BoolNull()
		if s.Value != nil {
			value = types.StringValue(s.Written())
		}
		if s.Type != "" {
			readOnly = types.BoolValue(s.ReadOnly)
		}
		values[name] = map[string]attr.Value{
			"value": value, "type": orNull(s.Type), "allowable_values": allowed,
			"lower_bound": types.Int64PointerValue(s.Lower), "upper_bound": types.Int64PointerValue(s.Upper),
			"min_length": types.Int64PointerValue(s.MinLength), "max_length": types.Int64PointerValue(s.MaxLength),
			"read_only": readOnly, "reset_required": types.BoolPointerValue(s.ResetRequired), "unique": types.BoolPointerValue(s.Unique),
		}
	}
	return objects(biosAttributes(), values), err
}

func firmwareAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"current_version": text("Version, as the BMC writes it."), "initial_version": text("Version that Ironic read first."),
		"last_version_flashed": text("Version since the last change that Ironic noticed, also of one that Ironic did not make. Null if " +
			"there was none."),
		"vendor": text("Vendor; null below API 1.114."), "model": text("Model; null below API 1.114."),
		"serial_number": text("Serial number; null below API 1.114."),
		"updated_at":    text("When Ironic noticed the last change; null if there was none."),
	}
}

func firmwareSchema() schema.Attribute {
	return byName("Firmware by component, such as `bios`, `bmc` or `nic:NAME` (`include = [\"firmware\"]`, API 1.86), as Ironic has read "+
		"it when it last verified, cleaned, serviced or inspected the machine. Components that were removed stay listed.",
		firmwareAttributes())
}

func readFirmware(ctx context.Context, r *reader) (attr.Value, error) {
	components, err := r.client.Components(ctx, r.node.UUID)
	values := map[string]map[string]attr.Value{}
	for name, c := range components {
		values[name] = map[string]attr.Value{
			"current_version": orNull(c.Version), "initial_version": orNull(c.Initial), "last_version_flashed": orNull(c.LastFlashed),
			"vendor": orNull(c.Vendor), "model": orNull(c.Model), "serial_number": orNull(c.Serial), "updated_at": orNull(c.UpdatedAt),
		}
	}
	return objects(firmwareAttributes(), values), err
}

func volumeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": text("Identifier."), "name": text("Name."), "level": text("RAID level, such as `1` or `1+0`."),
		"size_gb": text("Size in GiB, or `MAX`."), "controller": text("Controller."),
		"root":           flag("Whether images are deployed on the volume."),
		"physical_disks": schema.SetAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: "Names of its disks."},
	}
}

func raidAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"volumes": schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: "Volumes. Which of their attributes are known depends on the RAID interface: over " +
				"Redfish `name`, `level`, `size_gb` and `controller`.",
			NestedObject: schema.NestedAttributeObject{Attributes: volumeAttributes()},
		},
		"updated_at": text("When Ironic read them."),
	}
}

func raidSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed:   true,
		Attributes: raidAttributes(),
		MarkdownDescription: "RAID volumes as Ironic saw them when it last changed them itself. Ironic reads them at no other time, so " +
			"a change at the console of the machine is not here. Null if Ironic has never changed them.",
	}
}

// raidValue returns the volumes of a node's raid_config. Each driver writes its own attributes.
func raidValue(node *ironic.Node) types.Object {
	var config struct {
		Disks []struct {
			ID         string `json:"id"`
			Name       string `json:"name"`
			VolumeName string `json:"volume_name"`
			Level      string `json:"raid_level"`
			Size       any    `json:"size_gb"`
			Controller string `json:"controller"`
			Root       *bool  `json:"is_root_volume"`
			Physical   []any  `json:"physical_disks"`
		} `json:"logical_disks"`
		Updated string `json:"last_updated"`
	}
	kinds := typesOf(raidAttributes())
	content, err := json.Marshal(node.RAIDConfig)
	if err != nil || len(node.RAIDConfig) == 0 {
		return types.ObjectNull(kinds)
	}
	_ = document.Decode(content, &config) // what has another type stays unknown
	volume := types.ObjectType{AttrTypes: typesOf(volumeAttributes())}
	volumes := []attr.Value{}
	for _, d := range config.Disks {
		disks := types.SetNull(types.StringType)
		if names := textsOf(d.Physical); len(names) > 0 {
			disks = setValue(names)
		}
		volumes = append(volumes, types.ObjectValueMust(volume.AttrTypes, map[string]attr.Value{
			"id": orNull(d.ID), "name": orNull(cmp.Or(d.VolumeName, d.Name)), "level": orNull(d.Level),
			"size_gb":    orNull(ironic.BIOSSetting{Value: d.Size}.Text()),
			"controller": orNull(d.Controller), "root": types.BoolPointerValue(d.Root), "physical_disks": disks,
		}))
	}
	return types.ObjectValueMust(kinds, map[string]attr.Value{
		"volumes":    types.ListValueMust(volume, volumes),
		"updated_at": orNull(config.Updated),
	})
}

func textsOf(items []any) (texts []string) {
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

func neighbourAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"interface":   text("Device name of the card, such as `eno1`; null if Ironic does not relate the announcement to a card."),
		"switch_id":   text("Switch: usually its MAC address. Null, like all that follows, if the card has heard nothing."),
		"switch_name": text("Name of the switch."), "port_id": text("Port of the switch, such as `Ethernet1/18`."),
		"port_description": text("Description of that port."),
	}
}

func neighboursSchema() schema.Attribute {
	return byName("Switch port that each network card is connected to, by MAC address of the card (`include = [\"neighbors\"]`, API "+
		"1.81), as the last inspection heard it by LLDP. A card without an entry did not listen: the ramdisk listens only with the "+
		"kernel parameter `ipa-collect-lldp=1`. What a BMC heard is by the BMC's name of the port, if Ironic does not know the card. "+
		"Null if the machine was never inspected.", neighbourAttributes())
}

func readNeighbours(_ context.Context, r *reader) (attr.Value, error) {
	inventory, err := r.inventory()
	if inventory == nil {
		return types.MapNull(types.ObjectType{AttrTypes: typesOf(neighbourAttributes())}), err
	}
	values := map[string]map[string]attr.Value{}
	add := func(key, card string, n ironic.Neighbour) {
		values[key] = map[string]attr.Value{
			"interface": orNull(card), "switch_id": orNull(n.SwitchID), "switch_name": orNull(n.SwitchName), "port_id": orNull(n.PortID),
			"port_description": orNull(n.PortDescription),
		}
	}
	for _, card := range inventory.Interfaces {
		mac := card.MAC
		n, listened := inventory.Neighbours[card.Name]
		repeats := n == (ironic.Neighbour{}) && values[mac] != nil // such as a VLAN with the MAC address of its card
		if listened && mac != "" && !repeats {
			add(mac, card.Name, n)
		}
	}
	for port, n := range inventory.Unrelated {
		add(port, "", n)
	}
	return objects(neighbourAttributes(), values), err
}

func validationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"ok": flag("Whether Ironic could use the interface."), "reason": text("Why it could not; null if it could."),
	}
}

func validationSchema() schema.Attribute {
	return byName("Whether Ironic could use the hardware interfaces of the node, such as `power` or `deploy` (`include "+
		"= [\"validation\"]`). Interfaces without a function, such as `no-raid`, are left out: they are not a problem. Without an image "+
		"to deploy, `boot` and `deploy` are often not OK. Ironic checks settings and asks no BMC, but it may ask the image server.",
		validationAttributes())
}

func readValidation(ctx context.Context, r *reader) (attr.Value, error) {
	results, err := r.client.Validate(ctx, r.node.UUID)
	interfaces := ironic.InterfacesOf(r.node)
	values := map[string]map[string]attr.Value{}
	for kind, result := range results {
		if !strings.HasPrefix(interfaces[kind], "no-") {
			values[kind] = map[string]attr.Value{"ok": types.BoolValue(result.OK), "reason": orNull(result.Reason)}
		}
	}
	return objects(validationAttributes(), values), err
}

func consoleSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "How to reach the console of the machine (`include = [\"console\"]`). **Reading it is not always " +
			"harmless:** with the console interface `ipmitool-socat`, Ironic 39.0 ends the session of the user who is connected. The URL " +
			"of a graphical console contains a secret, and ends with the console, 10 minutes after its start.",
		Attributes: consoleAttributes(),
	}
}

func consoleAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"enabled": flag("Whether the console is enabled."), "type": text("`socat`, `shellinabox` or `vnc`; null if Ironic does not tell."),
		"url": schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "Address of the console; null if it " +
			"is not enabled."},
	}
}

func readConsole(ctx context.Context, r *reader) (attr.Value, error) {
	console, err := r.client.Console(ctx, r.node.UUID)
	return types.ObjectValueMust(typesOf(consoleAttributes()), map[string]attr.Value{
		"enabled": types.BoolValue(console.Enabled), "type": orNull(console.Type), "url": orNull(console.URL),
	}), err
}
