package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Values of attributes of metal_deployment.
const (
	onChangeRebuild = "rebuild"
	onChangeIgnore  = "ignore"
	destroyUndeploy = "undeploy"
	destroyDetach   = "detach"
)

type deploymentModel struct {
	ID             types.String   `tfsdk:"id"`
	NodeID         types.String   `tfsdk:"node_id"`
	AllocationID   types.String   `tfsdk:"allocation_id"`
	Image          types.Object   `tfsdk:"image"`
	LiveISO        types.Object   `tfsdk:"live_iso"`
	ConfigDrive    types.Object   `tfsdk:"config_drive"`
	DeploySteps    types.List     `tfsdk:"deploy_steps"`
	Capabilities   types.Map      `tfsdk:"capabilities"`
	Traits         types.Set      `tfsdk:"traits"`
	RootDevice     types.Map      `tfsdk:"root_device"`
	InstanceInfo   types.Dynamic  `tfsdk:"instance_info"`
	OnChange       types.String   `tfsdk:"on_change"`
	PowerState     types.String   `tfsdk:"power_state"`
	MaxAttempts    types.Int64    `tfsdk:"max_attempts"`
	OnDestroy      types.String   `tfsdk:"on_destroy"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	InstanceUUID   types.String   `tfsdk:"instance_uuid"`
	ProvisionState types.String   `tfsdk:"provision_state"`
	LastError      types.String   `tfsdk:"last_error"`
	Attempts       types.Int64    `tfsdk:"attempts"`
	BootStatus     types.Object   `tfsdk:"boot_status"`
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
	PullSecretWOVersion types.Int64  `tfsdk:"pull_secret_wo_version"`
}

type configDriveModel struct {
	Hostname          types.String         `tfsdk:"hostname"`
	UserData          types.String         `tfsdk:"user_data"`
	UserDataWO        types.String         `tfsdk:"user_data_wo"`
	UserDataWOVersion types.Int64          `tfsdk:"user_data_wo_version"`
	MetaData          jsontypes.Normalized `tfsdk:"meta_data"`
	NetworkData       jsontypes.Normalized `tfsdk:"network_data"`
	VendorData        jsontypes.Normalized `tfsdk:"vendor_data"`
}

type deployStepModel struct {
	Interface types.String         `tfsdk:"interface"`
	Step      types.String         `tfsdk:"step"`
	Args      jsontypes.Normalized `tfsdk:"args"`
	Priority  types.Int64          `tfsdk:"priority"`
}

// image is the image; nil if it is null or unknown.
func (m *deploymentModel) image(ctx context.Context) *imageModel {
	var image imageModel
	if !isSet(m.Image) || m.Image.As(ctx, &image, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &image
}

// what says in words what a model runs.
func (m *deploymentModel) what(ctx context.Context) string {
	image := m.image(ctx)
	switch {
	case !m.LiveISO.IsNull():
		return "a live ISO"
	case image != nil && isSet(image.URL):
		return "the image " + image.URL.ValueString()
	case !m.Image.IsNull():
		return "an image"
	}
	return "neither an image nor a live ISO"
}

// occupied reports whether something is, or may be, running on the node.
func (m *deploymentModel) occupied() bool {
	return ironic.Occupied(&ironic.Node{ProvisionState: m.ProvisionState.ValueString()})
}

func (m *deploymentModel) configDrive(ctx context.Context) *configDriveModel {
	var drive configDriveModel
	if !isSet(m.ConfigDrive) || m.ConfigDrive.As(ctx, &drive, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &drive
}

// content is what, if it changes, rebuilds the node.
func (m *deploymentModel) content() []attr.Value {
	return []attr.Value{m.Image, m.ConfigDrive, m.DeploySteps, m.Capabilities, m.Traits, m.RootDevice, m.InstanceInfo}
}

// sameContent reports whether two models would deploy the same. An unknown part may be different.
func (m *deploymentModel) sameContent(other *deploymentModel) bool {
	return slices.EqualFunc(m.content(), other.content(), func(a, b attr.Value) bool { return a.Equal(b) })
}

// deployment is the configuration in Ironic's terms. It needs the configuration rather than the plan, because
// write-only values are in nothing else.
func (m *deploymentModel) deployment(ctx context.Context) (d ironic.Deployment, diags diag.Diagnostics) {
	if image := m.image(ctx); image != nil {
		d.Image = &ironic.Image{
			URL: image.URL.ValueString(), Checksum: image.Checksum.ValueString(), DiskFormat: image.DiskFormat.ValueString(),
			Type: ironic.ImageType(image.Type.ValueString()), Kernel: image.Kernel.ValueString(), Ramdisk: image.Ramdisk.ValueString(),
			RootGB: image.RootGB.ValueInt64(), SwapMB: image.SwapMB.ValueInt64(), PullSecret: image.PullSecretWO.ValueString(),
		}
		if isSet(image.PullSecretWOVersion) {
			d.Image.PullSecretVersion = fmt.Sprint(image.PullSecretWOVersion.ValueInt64())
		}
	}
	if iso := m.liveISO(ctx); iso != nil {
		artifacts := iso.artifacts()
		d.LiveISO = &artifacts
	}
	d.Capabilities = stringMap(m.Capabilities)
	d.Traits = stringSet(m.Traits)
	slices.Sort(d.Traits)
	if hints := stringMap(m.RootDevice); hints != nil {
		d.RootDevice = map[string]any{}
		for key, value := range hints {
			d.RootDevice[key] = value
		}
	}
	d.InstanceInfo = jsonObject(m.InstanceInfo)
	var steps []deployStepModel
	if isSet(m.DeploySteps) {
		diags.Append(m.DeploySteps.ElementsAs(ctx, &steps, false)...)
	}
	for i, step := range steps {
		args := map[string]any{}
		if isSet(step.Args) && json.Unmarshal([]byte(step.Args.ValueString()), &args) != nil {
			diags.AddAttributeError(path.Root("deploy_steps").AtListIndex(i).AtName("args"), "Not a JSON object", "The arguments of a step must be a JSON object.")
		}
		d.DeploySteps = append(d.DeploySteps, ironic.DeployStep{
			Interface: step.Interface.ValueString(), Step: step.Step.ValueString(), Args: args, Priority: step.Priority.ValueInt64(),
		})
	}
	if drive := m.configDrive(ctx); drive != nil {
		d.ConfigDrive = drive.content(&diags)
		if isSet(drive.UserDataWOVersion) {
			d.SecretVersion = fmt.Sprint(drive.UserDataWOVersion.ValueInt64())
		}
	}
	return d, diags
}

// hostnameKeys are where cloud-init and its like look for the host name in meta_data.
func hostnameKeys() []string { return []string{"hostname", "local-hostname", "name"} }

// content is the config drive as Ironic builds it from.
func (m *configDriveModel) content(diags *diag.Diagnostics) map[string]any {
	drive := map[string]any{}
	meta := map[string]any{}
	if isSet(m.Hostname) {
		for _, key := range hostnameKeys() {
			meta[key] = m.Hostname.ValueString()
		}
	}
	for name, document := range map[string]jsontypes.Normalized{"meta_data": m.MetaData, "network_data": m.NetworkData, "vendor_data": m.VendorData} {
		if !isSet(document) {
			continue
		}
		content := map[string]any{}
		if json.Unmarshal([]byte(document.ValueString()), &content) != nil {
			diags.AddAttributeError(path.Root("config_drive").AtName(name), "Not a JSON object", name+" must be a JSON object, such as jsonencode({...}).")
			continue
		}
		if name == "meta_data" {
			for key, value := range content {
				meta[key] = value
			}
			continue
		}
		drive[name] = content
	}
	if len(meta) > 0 {
		drive["meta_data"] = meta
	}
	for _, data := range []types.String{m.UserData, m.UserDataWO} {
		if isSet(data) {
			drive["user_data"] = data.ValueString()
		}
	}
	return drive
}

// volatile takes over what changes as Ironic works.
func (m *deploymentModel) volatile(node *ironic.Node) {
	m.ProvisionState, m.LastError = types.StringValue(node.ProvisionState), orNull(node.LastError)
	m.PowerState = orNull(ironic.Power(node))
}

// record puts a node into a planned state, with everything known.
func (m *deploymentModel) record(node *ironic.Node, instance string, attempts int) {
	wanted := *m
	m.ID, m.InstanceUUID, m.Attempts = types.StringValue(node.UUID), types.StringValue(instance), types.Int64Value(int64(attempts))
	m.volatile(node)
	keep(&m.PowerState, wanted.PowerState)
}

// importImage takes over the image that a node runs. That it is the default type, which Ironic notes, is left unsaid.
func (m *deploymentModel) importImage(ctx context.Context, node *ironic.Node) {
	actual := ironic.ImageOf(node)
	if actual == nil {
		return
	}
	image := imageModel{
		URL: orNull(actual.URL), Checksum: orNull(actual.Checksum), DiskFormat: orNull(actual.DiskFormat), Type: orNull(string(actual.Type)),
		Kernel: orNull(actual.Kernel), Ramdisk: orNull(actual.Ramdisk), RootGB: positive(actual.RootGB), SwapMB: positive(actual.SwapMB),
	}
	if actual.Type == ironic.ImageWholeDisk {
		image.Type = types.StringNull()
	}
	m.Image, _ = types.ObjectValueFrom(ctx, m.Image.AttributeTypes(ctx), image)
}

// showImage shows that a node runs another image than the state says. Only the URL counts: Ironic itself changes
// checksum and format where it converts an image.
func (m *deploymentModel) showImage(ctx context.Context, node *ironic.Node) {
	image := m.image(ctx)
	if image == nil || ironic.ImageSource(node) == "" {
		return
	}
	image.URL = types.StringValue(ironic.ImageSource(node))
	m.Image, _ = types.ObjectValueFrom(ctx, m.Image.AttributeTypes(ctx), image)
}
