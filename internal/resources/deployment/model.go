package deployment

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

// Values of attributes of metal_deployment.
const (
	onChangeRebuild = string(deploy.ChangeRebuilds)
	onChangeReplace = string(deploy.ChangeReplaces)
	onChangeIgnore  = string(deploy.ChangeIgnored)
	destroyUndeploy = string(deploy.DestroyUndeploys)
	destroyForget   = string(deploy.DestroyForgets)
)

type model struct {
	ID              types.String   `tfsdk:"id"`
	NodeID          types.String   `tfsdk:"node_id"`
	AllocationID    types.String   `tfsdk:"allocation_id"`
	Image           types.Object   `tfsdk:"image"`
	LiveISO         types.Object   `tfsdk:"live_iso"`
	Adopt           types.Bool     `tfsdk:"adopt"`
	ConfigDrive     types.Object   `tfsdk:"config_drive"`
	DeploySteps     types.List     `tfsdk:"deploy_steps"`
	Capabilities    types.Map      `tfsdk:"capabilities"`
	Traits          types.Set      `tfsdk:"traits"`
	RootDevice      types.Map      `tfsdk:"root_device"`
	InstanceInfo    types.Dynamic  `tfsdk:"instance_info"`
	InstanceName    types.String   `tfsdk:"instance_name"`
	VIFs            types.List     `tfsdk:"vifs"`
	OnChange        types.String   `tfsdk:"on_change"`
	RebuildTriggers types.Map      `tfsdk:"rebuild_triggers"`
	RestartTriggers types.Map      `tfsdk:"restart_triggers"`
	Rescue          types.Object   `tfsdk:"rescue"`
	Protected       types.Bool     `tfsdk:"protected"`
	PowerState      types.String   `tfsdk:"power_state"`
	PowerOffMode    types.String   `tfsdk:"power_off_mode"`
	MaxAttempts     types.Int64    `tfsdk:"max_attempts"`
	OnFailure       types.String   `tfsdk:"on_failure"`
	Rollout         types.Object   `tfsdk:"rollout"`
	MaxNodes        types.Int64    `tfsdk:"max_nodes"`
	OnDestroy       types.String   `tfsdk:"on_destroy"`
	Timeouts        timeouts.Value `tfsdk:"timeouts"`
	NodeName        types.String   `tfsdk:"node_name"`
	InstanceID      types.String   `tfsdk:"instance_id"`
	ProvisionState  types.String   `tfsdk:"provision_state"`
	LastError       types.String   `tfsdk:"last_error"`
	Failure         types.Object   `tfsdk:"failure"`
	Attempts        types.Int64    `tfsdk:"attempts"`
	Rebuilds        types.Int64    `tfsdk:"rebuilds"`
	Restarts        types.Int64    `tfsdk:"restarts"`
	Restores        types.Int64    `tfsdk:"restores"`
	BootStatus      types.Object   `tfsdk:"boot_status"`
	ReadyCheck      types.Object   `tfsdk:"ready_check"`
	Ready           types.Bool     `tfsdk:"ready"`
}

type imageModel struct {
	URL        types.String `tfsdk:"url"`
	Checksum   types.String `tfsdk:"checksum"`
	DiskFormat types.String `tfsdk:"disk_format"`
	Type       types.String `tfsdk:"type"`
	Kernel     types.String `tfsdk:"kernel"`
	Ramdisk    types.String `tfsdk:"ramdisk"`
	RootGB     types.Int64  `tfsdk:"root_gb"`
	SwapMB     types.Int64  `tfsdk:"swap_mb"`

	PullSecretWO        types.String `tfsdk:"pull_secret_wo"`
	PullSecretWOVersion types.String `tfsdk:"pull_secret_wo_version"`
}

type configDriveModel struct {
	Hostname          types.String   `tfsdk:"hostname"`
	UserData          types.String   `tfsdk:"user_data"`
	UserDataWO        types.String   `tfsdk:"user_data_wo"`
	UserDataWOVersion types.String   `tfsdk:"user_data_wo_version"`
	MetaData          framework.JSON `tfsdk:"meta_data"`
	MetaDataWO        framework.JSON `tfsdk:"meta_data_wo"`
	MetaDataWOVersion types.String   `tfsdk:"meta_data_wo_version"`
	NetworkData       framework.JSON `tfsdk:"network_data"`
	VendorData        framework.JSON `tfsdk:"vendor_data"`
	URL               types.String   `tfsdk:"url"`
	ContentBase64     types.String   `tfsdk:"content_base64"`
}

func (m *model) image(ctx context.Context) *imageModel {
	return framework.Decoded[imageModel](ctx, m.Image)
}

func (m *model) configDrive(ctx context.Context) *configDriveModel {
	return framework.Decoded[configDriveModel](ctx, m.ConfigDrive)
}

// deployment converts a configuration to a deployment of Ironic. It needs the configuration rather than the plan, because only
// the configuration has the write-only values.
func (m *model) deployment(ctx context.Context) (d deploy.Deployment, diags diag.Diagnostics) {
	if image := m.image(ctx); image != nil {
		d.Image = &deploy.Image{
			URL: image.URL.ValueString(), Checksum: image.Checksum.ValueString(), DiskFormat: image.DiskFormat.ValueString(),
			Type: deploy.ImageType(image.Type.ValueString()), Kernel: image.Kernel.ValueString(), Ramdisk: image.Ramdisk.ValueString(),
			RootGB: image.RootGB.ValueInt64(), SwapMB: image.SwapMB.ValueInt64(), PullSecret: image.PullSecretWO.ValueString(),
			PullSecretVersion: image.PullSecretWOVersion.ValueString(),
		}
	}
	if iso := m.liveISO(ctx); iso != nil {
		want := iso.Want()
		d.LiveISO = &want
	}
	d.Triggers, d.Restart = framework.StringMap(m.RebuildTriggers), deploy.TriggersDigest(text(ctx, m.RestartTriggers))
	d.Capabilities = framework.StringMap(m.Capabilities)
	d.Traits = framework.StringSet(m.Traits)
	slices.Sort(d.Traits)
	if hints := framework.StringMap(m.RootDevice); hints != nil {
		d.RootDevice = map[string]any{}
		for key, value := range hints {
			d.RootDevice[key] = value
		}
	}
	d.InstanceInfo, d.Name = framework.JSONObject(m.InstanceInfo), m.InstanceName.ValueString()
	d.DeploySteps = framework.DeploySteps(m.DeploySteps)
	if drive := m.configDrive(ctx); drive != nil {
		d.ConfigDrive, d.SecretVersion = drive.content(&diags), drive.UserDataWOVersion.ValueString()
		d.SecretMeta = slices.Collect(maps.Keys(members(drive.MetaDataWO)))
		d.SecretMetaVersion = drive.MetaDataWOVersion.ValueString()
	}
	return d, diags
}

// hostnameKeys are the keys of meta_data in which cloud-init and similar tools look for the host name.
func hostnameKeys() []string { return []string{"hostname", "local-hostname", "name"} }

// members returns the members of a JSON object; none if it is not known.
func members(text framework.JSON) (object map[string]any) {
	_ = document.Decode([]byte(text.ValueString()), &object) // content reports an error
	return object
}

// isReady reports whether the config drive is ready-made.
func (m *configDriveModel) isReady() bool { return !m.URL.IsNull() || !m.ContentBase64.IsNull() }

// content returns a ready-made config drive, or the parts from which Ironic builds one.
func (m *configDriveModel) content(diags *diag.Diagnostics) any {
	for _, whole := range []types.String{m.URL, m.ContentBase64} {
		if framework.IsSet(whole) {
			return whole.ValueString()
		}
	}
	drive := map[string]any{}
	meta := map[string]any{}
	if framework.IsSet(m.Hostname) {
		for _, key := range hostnameKeys() {
			meta[key] = m.Hostname.ValueString()
		}
	}
	documents := map[string]framework.JSON{
		"meta_data": m.MetaData, "meta_data_wo": m.MetaDataWO, "network_data": m.NetworkData, "vendor_data": m.VendorData,
	}
	for _, name := range slices.Sorted(maps.Keys(documents)) { // a key of both is that of meta_data_wo
		text := documents[name]
		if !framework.IsSet(text) {
			continue
		}
		content := map[string]any{}
		if document.Decode([]byte(text.ValueString()), &content) != nil {
			diags.AddAttributeError(path.Root("config_drive").AtName(name), "Not a JSON object",
				name+" must be a JSON object, such as jsonencode({...}).")
			continue
		}
		if name == "meta_data" || name == "meta_data_wo" {
			maps.Copy(meta, content)
		} else if len(content) > 0 {
			drive[name] = content
		}
	}
	if len(meta) > 0 {
		drive["meta_data"] = meta
	}
	for _, data := range []types.String{m.UserData, m.UserDataWO} {
		if data.ValueString() != "" {
			drive["user_data"] = data.ValueString()
		}
	}
	if len(drive) == 0 {
		return nil
	}
	return drive
}

// volatile copies the values of the node that may change without this resource.
func (m *model) volatile(node *ironic.Node) {
	m.ProvisionState, m.LastError = types.StringValue(node.ProvisionState), framework.OrNull(node.LastError)
	m.Failure = framework.FailureValue(node)
	m.PowerState, m.NodeName, m.InstanceName = framework.OrNull(machine.Power(node)), framework.OrNull(node.Name),
		framework.OrNull(node.InstanceName)
}

// record completes a planned state with the node's values, so that all values are known.
func (m *model) record(node *ironic.Node, instance string, attempts int) {
	wanted := *m
	m.ID, m.InstanceID, m.Attempts = types.StringValue(node.UUID), types.StringValue(instance), types.Int64Value(int64(attempts))
	if m.volatile(node); m.Restores.IsUnknown() {
		m.Restores = types.Int64Null()
	}
	framework.Keep(&m.NodeName, wanted.NodeName)
	framework.Keep(&m.InstanceName, wanted.InstanceName)
	framework.Keep(&m.PowerState, wanted.PowerState)
	framework.Keep(&m.LastError, wanted.LastError)
	framework.Keep(&m.Failure, wanted.Failure)
	if m.Protected.IsUnknown() {
		m.Protected = framework.QuietFlag(m.Protected, node.Protected)
	}
}

// machine names the machine of the deployment in messages.
func (m *model) machine() string { return cmp.Or(m.NodeName.ValueString(), m.ID.ValueString()) }

// lostRecord is the deployment as it is if Ironic has lost the record of its node.
func (m *model) lostRecord() lost.Record {
	node := &ironic.Node{ProvisionState: m.ProvisionState.ValueString(), InstanceUUID: m.InstanceID.ValueString()}
	r := lost.Record{
		Kind: kindDeployment, ID: m.ID.ValueString(), Machine: m.machine(),
	}.Of(node)
	r.Use = cmp.Or(r.Use, "deployed")
	return r
}

const kindDeployment = "metal_deployment"

// isImported reports whether a state is that of a new import: it has the id only.
func (m *model) isImported() bool { return m.InstanceID.IsNull() }

func (m *model) importNode(node *ironic.Node) {
	m.InstanceID, m.AllocationID = framework.OrNull(node.InstanceUUID), framework.OrNull(node.AllocationUUID)
	m.NodeID, m.Attempts = types.StringValue(node.UUID), types.Int64Value(0)
	m.Rebuilds, m.Restarts = types.Int64Value(0), types.Int64Value(0)
}

// importImage copies the image that a node runs into the model. It omits the type if that is the default.
func (m *model) importImage(ctx context.Context, node *ironic.Node) {
	actual := deploy.ImageOf(node)
	if actual == nil {
		return
	}
	image := imageModel{
		URL: framework.OrNull(actual.URL), Checksum: framework.OrNull(actual.Checksum), DiskFormat: framework.OrNull(actual.DiskFormat),
		Type:   framework.OrNull(string(actual.Type)),
		Kernel: framework.OrNull(actual.Kernel), Ramdisk: framework.OrNull(actual.Ramdisk), RootGB: framework.Positive(actual.RootGB),
		SwapMB: framework.Positive(actual.SwapMB),
	}
	if actual.Type == deploy.ImageWholeDisk {
		image.Type = types.StringNull()
	}
	m.Image, _ = types.ObjectValueFrom(ctx, m.Image.AttributeTypes(ctx), image)
}

// showImage shows in the state that a node was deployed with another address, and its checksum, if that is another one, too. Ironic
// removes the checksum of an image that it converts: it tells nothing of an image that only has another address.
func (m *model) showImage(ctx context.Context, node *ironic.Node) {
	image := m.image(ctx)
	if image == nil || deploy.ImageSource(node) == "" {
		return
	}
	image.URL = types.StringValue(deploy.ImageSource(node))
	if runs := deploy.ImageOf(node).Checksum; !deploy.Readdressed(node) && !strings.EqualFold(runs, image.Checksum.ValueString()) {
		image.Checksum = framework.OrNull(runs)
	}
	m.Image, _ = types.ObjectValueFrom(ctx, m.Image.AttributeTypes(ctx), image)
}

func (m *model) field(attribute string) reflect.Value {
	fields := reflect.ValueOf(m).Elem()
	i := 0
	for fields.Type().Field(i).Tag.Get("tfsdk") != attribute {
		i++
	}
	return fields.Field(i)
}

// content returns the attributes whose change deploys the machine anew, by name.
func (m *model) content() map[string]attr.Value {
	values := map[string]attr.Value{}
	for _, name := range deploy.ContentNames() {
		values[name], _ = m.field(name).Interface().(attr.Value)
	}
	return values
}

func (m *model) takeContent(other *model, names []string) {
	for _, name := range names {
		m.field(name).Set(other.field(name))
	}
}

// recordsContent reports whether a planned state has other content than the state, or another trigger that deploys it again. The first
// trigger deploys nothing: what was known of the machine stays true.
func (m *model) recordsContent(state *model) bool {
	was := state.content()
	for name, value := range m.content() {
		if !value.Equal(was[name]) {
			return true
		}
	}
	return !m.RebuildTriggers.IsNull() && !state.RebuildTriggers.IsNull() && !m.RebuildTriggers.Equal(state.RebuildTriggers)
}

// Values of on_failure, and the default of max_nodes.
const (
	failureKeep       = "keep"
	failureQuarantine = "quarantine"
	defaultMaxNodes   = 3
)

func (m *model) quarantines() bool { return m.OnFailure.ValueString() == failureQuarantine }

// mostNodes returns max_nodes, or its default.
func (m *model) mostNodes() int {
	if !framework.IsSet(m.MaxNodes) {
		return defaultMaxNodes
	}
	return int(m.MaxNodes.ValueInt64())
}

// tries returns max_attempts, or its default.
func (m *model) tries() int { return int(max(m.MaxAttempts.ValueInt64(), 1)) }

func (m *model) switchPower(ctx context.Context, on *machine.Machine, limit time.Duration) error {
	switch m.PowerState.ValueString() {
	case framework.PowerOn:
		return on.SetPower(ctx, true, limit)
	case framework.PowerOff:
		return on.SwitchOff(ctx, m.offMode(), limit)
	}
	return nil
}

func (m *model) offMode() machine.OffMode { return machine.OffMode(m.PowerOffMode.ValueString()) }

// adopted reports whether the machine runs what others have deployed on it.
func (m *model) adopted() bool { return m.Adopt.ValueBool() }
