package host

import (
	"context"
	"regexp"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Values of hardware_changes.on_active.
const (
	onActiveWait    = "wait"
	onActiveService = "service"
)

type raidModel struct {
	DeleteExisting types.Bool `tfsdk:"delete_existing"`
	Volumes        types.List `tfsdk:"volumes"`
}

type volumeModel struct {
	Level                 types.String `tfsdk:"level"`
	SizeGB                types.String `tfsdk:"size_gb"`
	Name                  types.String `tfsdk:"name"`
	Root                  types.Bool   `tfsdk:"root"`
	NumberOfPhysicalDisks types.Int64  `tfsdk:"number_of_physical_disks"`
	DiskType              types.String `tfsdk:"disk_type"`
	InterfaceType         types.String `tfsdk:"interface_type"`
	Controller            types.String `tfsdk:"controller"`
	PhysicalDisks         types.Set    `tfsdk:"physical_disks"`
	SharePhysicalDisks    types.Bool   `tfsdk:"share_physical_disks"`
}

type firmwareModel struct {
	URL     types.String `tfsdk:"url"`
	Version types.String `tfsdk:"version"`
}

// hardwareAttributes makes the attributes of BIOS, RAID and firmware. Ironic stores none of them as a setting of the node, and a refresh
// reads none.
func hardwareAttributes() []attribute {
	return []attribute{
		expectHardwareAttribute(), qualificationAttribute(),
		{
			name: "bios_settings",
			schema: schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "BIOS settings, by name. **A change restarts the machine.**",
				Validators:          []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.KeysAre(stringvalidator.LengthAtLeast(1))},
			},
			feature: func(config *model) framework.Feature {
				return framework.Feature{Used: !config.BIOSSettings.IsNull(), Since: api.VersionBIOS, Name: path.Root("bios_settings")}
			},
			keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.BIOSSettings, planned.BIOSSettings) },
		},
		{
			name: "raid", schema: raidSchema(),
			keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.RAID, planned.RAID) },
		},
		{
			name: "firmware", schema: firmwareSchema(),
			feature: func(config *model) framework.Feature {
				return framework.Feature{Used: !config.Firmware.IsNull(), Since: api.VersionFirmware, Name: path.Root("firmware")}
			},
			keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.Firmware, planned.Firmware) },
		},
		{
			name: "hardware_changes", schema: hardwareChangesSchema(), feature: hardwareChangesFeature,
			keep: func(_ context.Context, m, planned *model) {
				framework.Keep(&m.HardwareChanges, planned.HardwareChanges)
			},
		},
		{
			name: "hardware_drift",
			schema: schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(hosts.DriftIgnore), string(hosts.DriftWarn),
					string(hosts.DriftPlan))},
				MarkdownDescription: "What a plan does about settings that the machine has lost: `ignore`, `warn`, or `plan`, which " +
					"**restarts the machine**. Default: the provider's. See [Hardware settings](../guides/hardware-settings.md#drift).",
			},
			keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.HardwareDrift, planned.HardwareDrift) },
		},
		{
			name: "pending_changes",
			schema: schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "Which of `bios_settings`, `raid` and `firmware` are not on the machine yet; null if none is set.",
			},
			read: func(ctx context.Context, m *model, _ *ironic.Node, _ bool) {
				if !framework.IsSet(m.PendingChanges) {
					wanted, _ := m.hardware(ctx)
					m.PendingChanges = m.pendingValue(wanted.Parts())
				}
			},
			keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.PendingChanges, planned.PendingChanges) },
		},
	}
}

func raidSchema() schema.Attribute {
	optional := func(description string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "RAID volumes, made before BIOS settings and firmware. **A change restarts the machine, and creating and " +
			"deleting volumes destroys data.** It waits while the node is reserved or deployed.",
		Attributes: map[string]schema.Attribute{
			"delete_existing": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether to delete all volumes of the machine " +
				"first, **with their data**. Default: `false`."},
			"volumes": schema.ListNestedAttribute{
				Required: true, MarkdownDescription: "The volumes to create. Any change creates all of them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"level": schema.StringAttribute{
						Required: true, MarkdownDescription: "`JBOD`, `0`, `1`, `2`, `5`, `6`, `1+0`, `5+0` or `6+0`.",
						Validators: []validator.String{framework.RAIDLevel},
					},
					"size_gb": schema.StringAttribute{
						Required: true, MarkdownDescription: "Size in GiB, or `MAX` for the rest of the space.",
						Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^(MAX|[1-9][0-9]{0,14})$`),
							"must be a whole number of GiB, or MAX")},
					},
					"name": optional("Name of the volume.", stringvalidator.LengthAtLeast(1)),
					"root": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Whether images are deployed on this volume. Only one may have `true`. Default: `false`.",
					},
					"number_of_physical_disks": schema.Int64Attribute{Optional: true, MarkdownDescription: "Default: the fewest that the " +
						"level needs.", Validators: []validator.Int64{int64validator.AtLeast(1)}},
					"disk_type":      optional("`hdd` or `ssd`.", stringvalidator.OneOf("hdd", "ssd")),
					"interface_type": optional("`sata`, `scsi` or `sas`.", stringvalidator.OneOf("sata", "scsi", "sas")),
					"controller": optional("Name of the controller, or `software`: at most two volumes, the first with level `1`.",
						stringvalidator.LengthAtLeast(1)),
					"physical_disks": schema.SetAttribute{
						ElementType: types.StringType, Optional: true, MarkdownDescription: "Names of the disks, or hints as in " +
							"`root_device`, each as JSON: `[jsonencode({ serial = \"A\" }), jsonencode({ serial = \"B\" })]`. " +
							"`software` needs hints. Needs `controller`.",
						Validators: []validator.Set{
							setvalidator.SizeAtLeast(1),
							setvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("controller")),
						},
					},
					"share_physical_disks": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether others may use the same " +
						"disks. Default: `false`."},
				}},
			},
		},
	}
}

func firmwareSchema() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Firmware, by component: `bios`, `bmc` or `nic:NAME`. **An update restarts the machine.** Needs API 1.86.",
		Validators: []validator.Map{
			mapvalidator.SizeAtLeast(1),
			mapvalidator.KeysAre(stringvalidator.RegexMatches(regexp.MustCompile(`^(bios|bmc|nic:.+)$`), "must be bios, bmc or nic:NAME")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, MarkdownDescription: "URL of the image. Without `version`, a change of it updates the firmware.",
				Validators: []validator.String{framework.FirmwareURL},
			},
			"version": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Version of the image, as the machine reports it. A machine that has it " +
					"is not updated.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		}},
	}
}

func hardwareChangesSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "How Ironic changes `bios_settings`, `raid` and `firmware`.",
		Attributes: map[string]schema.Attribute{
			"on_active": schema.StringAttribute{
				Optional: true, MarkdownDescription: "What happens on a deployed machine: `wait` (the default) leaves the change in " +
					"`pending_changes` until Ironic may clean the machine; `service` changes BIOS and firmware now and **restarts the " +
					"machine** (API 1.87); `raid` waits all the same.",
				Validators: []validator.String{stringvalidator.OneOf(onActiveWait, onActiveService)},
			},
			"disable_ramdisk": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "`true`: Ironic does not boot its ramdisk for the steps. Needs API 1.70, and API " +
					"1.108 together with `on_active = \"service\"`. Default: `false`.",
			},
			"rollout": framework.RolloutAttribute("The order of services. See [Hardware " +
				"settings](../guides/hardware-settings.md#change-a-deployed-machine)."),
		},
	}
}

// hardwareChangesFeature returns the newest API version that hardware_changes needs.
func hardwareChangesFeature(config *model) framework.Feature {
	at := path.Root("hardware_changes")
	live, noRamdisk := config.hardwareChanges()
	switch {
	case live.V && noRamdisk:
		return framework.Feature{Used: true, Since: api.VersionServiceRamdisk, Name: at.AtName("disable_ramdisk")}
	case live.V:
		return framework.Feature{Used: true, Since: api.VersionService, Name: at.AtName("on_active")}
	}
	return framework.Feature{Used: noRamdisk, Since: api.VersionNoRamdisk, Name: at.AtName("disable_ramdisk")}
}

// hardwareChanges returns whether deployed machines are serviced, and whether steps run without a ramdisk.
func (m *model) hardwareChanges() (live decide.Value[bool], noRamdisk bool) {
	changes := m.HardwareChanges.Attributes()
	onActive, _ := changes["on_active"].(types.String)
	disabled, _ := changes["disable_ramdisk"].(types.Bool)
	live = decide.Value[bool]{V: onActive.ValueString() == onActiveService, Set: framework.IsSet(onActive), Unknown: onActive.IsUnknown() ||
		m.HardwareChanges.IsUnknown()}
	return live, disabled.ValueBool()
}

func (m *model) rollout() types.Object {
	value, _ := m.HardwareChanges.Attributes()["rollout"].(types.Object)
	return value
}

// rolloutAt is its path.
var rolloutAt = path.Root("hardware_changes").AtName("rollout")

// validateRollout refuses a rollout without effect.
func (m *model) validateRollout(ctx context.Context, diags *diag.Diagnostics) {
	if live, _ := m.hardwareChanges(); framework.IsSet(m.rollout()) && !live.V && !live.Unknown {
		diags.AddAttributeError(rolloutAt, "Unused setting", "hardware_changes.rollout orders services of deployed machines. Set "+
			"on_active = \"service\", or remove rollout.")
	}
	framework.ValidateRollout(ctx, rolloutAt, m.rollout(), diags)
}

// drift returns hardware_drift, or else the default of the provider.
func (m *model) drift(otherwise types.String) decide.Value[hosts.HardwareDrift] {
	value := m.HardwareDrift
	if value.IsNull() {
		value = otherwise
	}
	return decide.Value[hosts.HardwareDrift]{
		V: hosts.HardwareDrift(value.ValueString()), Set: framework.IsSet(value),
		Unknown: value.IsUnknown(),
	}
}

// onMachine returns the hardware settings of a state that are known to be on the machine.
func (m *model) onMachine(ctx context.Context, notes hosts.Notes) hosts.Hardware {
	wanted, _ := m.hardware(ctx)
	return wanted.Both(notes.OnMachine)
}

// Stand-ins for parts that are not known yet. No machine has them, so that the part counts as not applied.
var (
	unknownSettings = map[string]string{"": "unknown"}
	unknownVolume   = ironic.LogicalDisk{Name: "unknown"}
	unknownImages   = map[string]hosts.Firmware{"": {URL: "unknown"}}
)

// hardware returns the hardware configuration. known is false if parts of it are not known yet.
func (m *model) hardware(ctx context.Context) (h hosts.Hardware, known bool) {
	if m.BIOSSettings.IsNull() && m.RAID.IsNull() && m.Firmware.IsNull() {
		return h, true
	}
	known = framework.FullyKnown(ctx, m.BIOSSettings, m.RAID, m.Firmware)
	if !m.BIOSSettings.IsNull() {
		h.BIOS = unknownSettings
		if framework.FullyKnown(ctx, m.BIOSSettings) {
			h.BIOS = framework.StringMap(m.BIOSSettings)
		}
	}
	if !m.RAID.IsNull() {
		h.RAID = m.raid(ctx)
	}
	if !m.Firmware.IsNull() {
		h.Firmware = m.firmware(ctx)
	}
	return h, known
}

func (m *model) raid(ctx context.Context) *hosts.RAID {
	raid := &hosts.RAID{Volumes: []ironic.LogicalDisk{}}
	var volumes []volumeModel
	deletes, _ := m.RAID.Attributes()["delete_existing"].(types.Bool)
	raid.DeleteExisting = m.RAID.IsUnknown() || deletes.IsUnknown() || deletes.ValueBool()
	block := framework.Decoded[raidModel](ctx, m.RAID)
	if !framework.FullyKnown(ctx, m.RAID) || block == nil || block.Volumes.ElementsAs(ctx, &volumes, false).HasError() {
		raid.Volumes = []ironic.LogicalDisk{unknownVolume}
		return raid
	}
	for _, v := range volumes {
		disk := ironic.LogicalDisk{
			Level: v.Level.ValueString(), SizeGB: v.SizeGB.ValueString(), Name: v.Name.ValueString(), Root: v.Root.ValueBool(),
			DiskCount: v.NumberOfPhysicalDisks.ValueInt64(), DiskType: v.DiskType.ValueString(),
			InterfaceType: v.InterfaceType.ValueString(),
			Controller:    v.Controller.ValueString(), PhysicalDisks: physicalDisks(v.PhysicalDisks),
			Shared: v.SharePhysicalDisks.ValueBool(),
		}
		if size, err := strconv.ParseInt(v.SizeGB.ValueString(), 10, 64); err == nil {
			disk.SizeGB = size
		}
		raid.Volumes = append(raid.Volumes, disk)
	}
	return raid
}

func (m *model) firmware(ctx context.Context) map[string]hosts.Firmware {
	images := map[string]hosts.Firmware{}
	var components map[string]firmwareModel
	if !framework.FullyKnown(ctx, m.Firmware) || m.Firmware.ElementsAs(ctx, &components, false).HasError() {
		return unknownImages
	}
	for name, image := range components {
		images[name] = hosts.Firmware{URL: image.URL.ValueString(), Version: image.Version.ValueString()}
	}
	return images
}

// pendingValue returns what the machine lacks of its hardware settings; null if the host has none.
func (m *model) pendingValue(parts []hosts.HardwarePart) types.Set {
	if len(parts) == 0 && m.BIOSSettings.IsNull() && m.RAID.IsNull() && m.Firmware.IsNull() {
		return types.SetNull(types.StringType)
	}
	values := []attr.Value{}
	for _, name := range hosts.HardwarePartNames(parts) {
		values = append(values, types.StringValue(name))
	}
	return types.SetValueMust(types.StringType, values)
}

// fewestDisks is how many physical disks a RAID level needs.
var fewestDisks = map[string]int64{"1": 2, "5": 3, "6": 4, "1+0": 4, "5+0": 6, "6+0": 8}

// validateRAID checks rules that concern more than one attribute of raid.
func (m *model) validateRAID(ctx context.Context, diags *diag.Diagnostics) {
	var volumes []volumeModel
	block := framework.Decoded[raidModel](ctx, m.RAID)
	if block == nil || !framework.IsSet(block.Volumes) || block.Volumes.ElementsAs(ctx, &volumes, false).HasError() {
		return
	}
	at := path.Root("raid")
	if len(volumes) == 0 && !block.DeleteExisting.IsUnknown() && !block.DeleteExisting.ValueBool() {
		diags.AddAttributeError(at.AtName("volumes"), "No volumes", "Without volumes, raid does nothing. Add a volume, or set "+
			"delete_existing = true to delete all volumes, or remove raid.")
	}
	by, _ := m.Interfaces.Attributes()["raid"].(types.String)
	validateSoftwareRAID(by.ValueString() == "agent", volumes, diags)
	root := -1
	for i, v := range volumes {
		if v.Root.ValueBool() && root >= 0 {
			diags.AddAttributeError(at.AtName("volumes").AtListIndex(i).AtName("root"), "Second root volume",
				"Images are deployed on one volume. Set root = true for one volume only.")
		}
		if v.Root.ValueBool() {
			root = i
		}
		least := fewestDisks[v.Level.ValueString()]
		if given := v.NumberOfPhysicalDisks; framework.IsSet(given) && given.ValueInt64() < least {
			diags.AddAttributeError(at.AtName("volumes").AtListIndex(i).AtName("number_of_physical_disks"), "Too few disks",
				"RAID level "+v.Level.ValueString()+" needs at least "+strconv.FormatInt(least, 10)+" disks.")
		}
	}
}
