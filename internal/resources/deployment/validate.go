package deployment

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// ValidateConfig checks rules that concern more than one attribute.
func (d *deployment) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	_, problems := m.deployment(ctx)
	resp.Diagnostics.Append(problems...)
	m.validateKind(&resp.Diagnostics)
	validateLiveISO(&m, &resp.Diagnostics)
	m.validateQuarantine(&resp.Diagnostics)
	framework.ValidateRollout(ctx, path.Root("rollout"), m.Rollout, &resp.Diagnostics)
	if !m.Rescue.IsNull() && m.PowerState.ValueString() == framework.PowerOff {
		resp.Diagnostics.AddAttributeError(path.Root("rescue"), "Settings exclude each other",
			"A rescue system runs only on a machine that is on. Remove rescue or power_state = \"off\".")
	}
	if drive := m.configDrive(ctx); drive != nil {
		drive.validate(&resp.Diagnostics)
	}
	if ready := m.ready(ctx); ready != nil {
		ready.validate(ctx, &resp.Diagnostics)
	}
	m.validateVIFs(&resp.Diagnostics)
	m.validateReferences(d.Site != nil, &resp.Diagnostics)
	m.validateKeys(&resp.Diagnostics)
	if image := m.image(ctx); image != nil && !resp.Diagnostics.HasError() {
		image.validateChecksum(&m, &resp.Diagnostics)
		image.validatePullSecret(&resp.Diagnostics)
		image.validateType(&resp.Diagnostics)
	}
}

// mocked are the texts that a mocked provider makes for what Ironic computes.
var mocked = regexp.MustCompile(`^[a-z0-9]{8}$`)

// validateReferences refuses texts that are no UUIDs. A mocked provider is never configured: then its texts pass.
func (m *model) validateReferences(configured bool, diags *diag.Diagnostics) {
	check := func(at path.Path, id types.String, of string) {
		text := id.ValueString()
		if framework.IsSet(id) && !framework.UUIDPattern.MatchString(text) && (configured || !mocked.MatchString(text)) {
			diags.AddAttributeError(at, "Not a UUID", fmt.Sprintf("%s must be the UUID of %s, and is %q.", at, of, text))
		}
	}
	check(path.Root("allocation_id"), m.AllocationID, "an allocation")
	for i, vif := range m.VIFs.Elements() {
		check(path.Root("vifs").AtListIndex(i).AtName("id"), vifAttribute(vif, "id"), "a Neutron port")
	}
}

// ownKeys are keys of instance_info with attributes of their own. Where nothing is deployed, with adopt, instance_info alone has them.
var ownKeys = map[string]string{
	"capabilities": "capabilities", "configdrive": "config_drive", "root_device": "root_device", "traits": "traits",
}

// imageKeys are keys of instance_info with images.
var imageKeys = []string{"boot_iso", "image_source", "kernel", "ramdisk"}

// validateKeys refuses keys of instance_info that are attributes of their own: Ironic or its agent reads more than a text there, and the
// plan checks the value.
func (m *model) validateKeys(diags *diag.Diagnostics) {
	if m.adopted() || m.Adopt.IsUnknown() {
		return
	}
	for key, value := range framework.JSONObject(m.InstanceInfo) {
		if text, is := value.(string); is && slices.Contains(imageKeys, key) {
			framework.ImageReference.Check(path.Root("instance_info").AtMapKey(key), text, diags)
		}
		if name := ownKeys[key]; name != "" {
			diags.AddAttributeError(path.Root("instance_info"), "Setting has an attribute of its own",
				fmt.Sprintf("Set %s of the deployment instead of %q: the plan checks it.", name, key))
		}
	}
}

// validateKind refuses a configuration that does not have exactly one of image, live_iso and adopt, and settings without effect beside
// adopt.
func (m *model) validateKind(diags *diag.Diagnostics) {
	var set []path.Path
	unknown := false
	for _, kind := range []struct {
		name  string
		value attr.Value
	}{{"image", m.Image}, {"live_iso", m.LiveISO}, {"adopt", m.Adopt}} {
		unknown = unknown || kind.value.IsUnknown()
		if framework.IsSet(kind.value) {
			set = append(set, path.Root(kind.name))
		}
	}
	if len(set) == 0 && !unknown {
		diags.AddError("Missing setting", "A deployment needs one of image (writes an image to the disk), live_iso (boots an ISO), and "+
			"adopt = true (leaves the machine as it runs).")
	}
	if len(set) > 1 {
		diags.AddAttributeError(set[1], "Settings exclude each other",
			fmt.Sprintf("Exactly one of image, live_iso and adopt must be set. Remove %s or %s.", set[0], set[1]))
	}
	if !m.adopted() {
		return
	}
	unused := m.content()
	unused["rebuild_triggers"] = m.RebuildTriggers
	delete(unused, "image") // excluded above
	delete(unused, "instance_info")
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		if !unused[name].IsNull() {
			diags.AddAttributeError(path.Root(name), "Unused setting", name+" has no effect with adopt = true: there is nothing to "+
				"deploy. Remove it, or set image.")
		}
	}
	if m.OnDestroy.IsNull() {
		diags.AddAttributeError(path.Root("on_destroy"), "Missing setting", "An adopted machine needs on_destroy: \"forget\" leaves it "+
			"running when the resource is destroyed, \"undeploy\" undeploys and cleans it, which erases its data.")
	}
}

// validate refuses settings beside a ready-made config drive, one that is too large, and a host name that is set twice.
func (m *configDriveModel) validate(diags *diag.Diagnostics) {
	at, size := path.Root("config_drive"), 0
	parts := map[string]attr.Value{
		"hostname": m.Hostname, "user_data": m.UserData, "user_data_wo": m.UserDataWO, "meta_data": m.MetaData,
		"meta_data_wo": m.MetaDataWO, "network_data": m.NetworkData, "vendor_data": m.VendorData, "content_base64": m.ContentBase64,
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		ready := "url"
		if m.URL.IsNull() {
			ready = "content_base64"
		}
		if m.isReady() && name != ready && !parts[name].IsNull() {
			diags.AddAttributeError(at.AtName(name), "Settings exclude each other", fmt.Sprintf("config_drive.%s is a ready-made config "+
				"drive, to which nothing can be added. Remove it or config_drive.%s.", ready, name))
		}
		size += len(parts[name].String())
	}
	if !m.isReady() && size > framework.MaxConfigDrive {
		diags.AddAttributeError(at, "Config drive too large", fmt.Sprintf("The config drive has %d MiB, and Ironic takes at most %d MiB.",
			size>>20, framework.MaxConfigDrive>>20))
	}
	meta, secret := members(m.MetaData), members(m.MetaDataWO)
	for _, key := range slices.Sorted(maps.Keys(secret)) {
		if _, given := meta[key]; given {
			diags.AddAttributeError(at.AtName("meta_data_wo"), "Setting configured twice",
				fmt.Sprintf("config_drive.meta_data and config_drive.meta_data_wo have %q: remove one of them.", key))
		}
	}
	for _, key := range hostnameKeys() {
		for name, document := range map[string]map[string]any{"meta_data": meta, "meta_data_wo": secret} {
			if _, given := document[key]; given && !m.Hostname.IsNull() {
				diags.AddAttributeError(at.AtName("hostname"), "Setting configured twice",
					fmt.Sprintf("config_drive.hostname and %q in config_drive.%s are the same setting: remove one of them.", key, name))
			}
		}
	}
}

// validateChecksum refuses a missing checksum, which Ironic would refuse during the apply.
func (m *imageModel) validateChecksum(d *model, diags *diag.Diagnostics) {
	scheme, _, _ := strings.Cut(m.URL.ValueString(), "://")
	if !framework.IsSet(m.URL) || !m.Checksum.IsNull() || (scheme != "http" && scheme != "https" && scheme != "file") ||
		d.InstanceInfo.IsUnknown() || d.InstanceInfo.IsUnderlyingValueUnknown() {
		return
	}
	info := framework.JSONObject(d.InstanceInfo)
	for _, key := range []string{"image_checksum", "image_os_hash_value", "deploy_interface"} {
		if _, given := info[key]; given {
			return
		}
	}
	diags.AddAttributeError(path.Root("image").AtName("checksum"), "Missing setting",
		fmt.Sprintf("Ironic demands a checksum for %s images: set checksum to the image's SHA-256, or to the URL of a file of checksums. "+
			"Only deploy interfaces such as anaconda need none. If the node has one of those, name it: instance_info = "+
			"{ deploy_interface = \"anaconda\" }.", scheme))
}

// validatePullSecret refuses a pull secret for an image that is not in a registry.
func (m *imageModel) validatePullSecret(diags *diag.Diagnostics) {
	if framework.IsSet(m.URL) && !m.PullSecretWOVersion.IsNull() && !strings.HasPrefix(m.URL.ValueString(), "oci://") {
		diags.AddAttributeError(path.Root("image").AtName("pull_secret_wo"), "Unused setting",
			"image.pull_secret_wo belongs to oci:// images. Remove it.")
	}
}

func (m *imageModel) validateType(diags *diag.Diagnostics) {
	if m.Type.IsUnknown() {
		return
	}
	at := path.Root("image")
	if deploy.ImageType(m.Type.ValueString()) == deploy.ImagePartition {
		if m.RootGB.IsNull() {
			diags.AddAttributeError(at.AtName("root_gb"), "Missing setting", "A partition image needs root_gb, the size of the root "+
				"partition in GiB.")
		}
		return
	}
	for name, set := range map[string]bool{
		"kernel": !m.Kernel.IsNull(), "ramdisk": !m.Ramdisk.IsNull(), "root_gb": !m.RootGB.IsNull(), "swap_mb": !m.SwapMB.IsNull(),
	} {
		if set {
			diags.AddAttributeError(at.AtName(name), "Unused setting",
				name+" belongs to partition images: set type = \"partition\", or remove it.")
		}
	}
}

// validateQuarantine refuses a quarantine without an allocation, which would have no other node, and settings without effect.
func (m *model) validateQuarantine(diags *diag.Diagnostics) {
	if !m.MaxNodes.IsNull() && !m.OnFailure.IsUnknown() && !m.quarantines() {
		diags.AddAttributeError(path.Root("max_nodes"), "Unused setting",
			"max_nodes has an effect only with on_failure = \"quarantine\". Set that, or remove max_nodes.")
	}
	switch {
	case !m.quarantines():
	case m.adopted():
		diags.AddAttributeError(path.Root("on_failure"), "Unused setting", "on_failure has no effect with adopt = true: there is nothing "+
			"to deploy. Remove it, or set image.")
	case m.AllocationID.IsNull():
		diags.AddAttributeError(path.Root("on_failure"), "Missing setting", "With on_failure = \"quarantine\", the next apply deploys "+
			"another node, which only an allocation can choose: set allocation_id to the id of a metal_allocation with a name.")
	}
}
