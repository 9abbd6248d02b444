package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ValidateConfig checks what attributes cannot check alone.
func (d *deployment) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m deploymentModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	_, problems := m.deployment(ctx)
	resp.Diagnostics.Append(problems...)
	validateLiveISO(&m, &resp.Diagnostics)
	if drive := m.configDrive(ctx); drive != nil {
		drive.validate(&resp.Diagnostics)
	}
	if image := m.image(ctx); image != nil && !resp.Diagnostics.HasError() {
		image.validateChecksum(&m, &resp.Diagnostics)
		image.validatePullSecret(&resp.Diagnostics)
		image.validateType(&resp.Diagnostics)
	}
}

// validate refuses a name that is given twice.
func (m *configDriveModel) validate(diags *diag.Diagnostics) {
	var meta map[string]any
	if m.Hostname.IsNull() || !isSet(m.MetaData) || json.Unmarshal([]byte(m.MetaData.ValueString()), &meta) != nil {
		return
	}
	for _, key := range hostnameKeys() {
		if _, given := meta[key]; given {
			diags.AddAttributeError(path.Root("config_drive").AtName("hostname"), "Setting given twice",
				fmt.Sprintf("config_drive.hostname and %q in config_drive.meta_data are the same setting: remove one of them.", key))
		}
	}
}

// validateChecksum refuses what Ironic would refuse during apply.
func (m *imageModel) validateChecksum(d *deploymentModel, diags *diag.Diagnostics) {
	scheme, _, _ := strings.Cut(m.URL.ValueString(), "://")
	if !isSet(m.URL) || !m.Checksum.IsNull() || (scheme != "http" && scheme != "https" && scheme != "file") || d.InstanceInfo.IsUnknown() || d.InstanceInfo.IsUnderlyingValueUnknown() {
		return
	}
	info := jsonObject(d.InstanceInfo)
	for _, key := range []string{"image_checksum", "image_os_hash_value", "deploy_interface"} {
		if _, given := info[key]; given {
			return
		}
	}
	diags.AddAttributeError(path.Root("image").AtName("checksum"), "Setting missing", fmt.Sprintf("Ironic demands a checksum for %s images: set checksum to the image's SHA-256, or to the URL of a file of checksums. "+
		"Only deploy interfaces such as anaconda do without; if the node has one of those, name it: instance_info = { deploy_interface = \"anaconda\" }.", scheme))
}

// validatePullSecret refuses a secret that no registry asks for.
func (m *imageModel) validatePullSecret(diags *diag.Diagnostics) {
	if isSet(m.URL) && !m.PullSecretWOVersion.IsNull() && !strings.HasPrefix(m.URL.ValueString(), "oci://") {
		diags.AddAttributeError(path.Root("image").AtName("pull_secret_wo"), "Setting without use", "image.pull_secret_wo belongs to oci:// images: remove it.")
	}
}

// validateType refuses settings that do not belong to the type of the image.
func (m *imageModel) validateType(diags *diag.Diagnostics) {
	if m.Type.IsUnknown() {
		return
	}
	at := path.Root("image")
	if ironic.ImageType(m.Type.ValueString()) == ironic.ImagePartition {
		if m.RootGB.IsNull() {
			diags.AddAttributeError(at.AtName("root_gb"), "Setting missing", "A partition image needs root_gb, the size of the root partition in GiB.")
		}
		return
	}
	for name, set := range map[string]bool{
		"kernel": !m.Kernel.IsNull(), "ramdisk": !m.Ramdisk.IsNull(), "root_gb": !m.RootGB.IsNull(), "swap_mb": !m.SwapMB.IsNull(),
	} {
		if set {
			diags.AddAttributeError(at.AtName(name), "Setting without use", name+" belongs to partition images: set type = \"partition\", or remove it.")
		}
	}
}
