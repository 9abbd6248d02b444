package deploy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Names of the attributes of metal_deployment that are content.
const (
	attrImage        = "image"
	attrConfigDrive  = "config_drive"
	attrDeploySteps  = "deploy_steps"
	attrCapabilities = "capabilities"
	attrTraits       = "traits"
	attrRootDevice   = "root_device"
	attrInstanceInfo = "instance_info"

	attrRebuildTriggers = "rebuild_triggers" // no content, but deploys it again
)

// told says what a node tells of an attribute with which it was deployed.
type told int

const (
	toldNothing told = iota // Ironic does not return it
	toldMixed               // instance_info has it, but Ironic changes it, or it stands among what others have written
	toldByKey               // instance_info has a key of the same name
)

// contents lists the content of a deployment, sorted: the attributes whose change deploys the machine anew. The model of metal_deployment,
// what an import reads, and the keys that a deployment replaces follow from this list.
var contents = []struct {
	name string
	told told
}{
	{attrCapabilities, toldByKey},
	{attrConfigDrive, toldNothing},
	{attrDeploySteps, toldNothing},
	{attrImage, toldMixed},
	{attrInstanceInfo, toldMixed},
	{attrRootDevice, toldByKey},
	{attrTraits, toldByKey},
}

// ContentNames returns the names of the attributes that are content, sorted.
func ContentNames() []string { return contentTold(toldNothing, toldMixed, toldByKey) }

// contentTold returns the names of the attributes of which a node tells as much as one of these says.
func contentTold(much ...told) (names []string) {
	for _, content := range contents {
		if slices.Contains(much, content.told) {
			names = append(names, content.name)
		}
	}
	return names
}

// ownKeys returns the keys of instance_info that a deployment replaces, even if another client has written them. Traits are not among them:
// the allocation sets them, too.
func ownKeys() []string {
	return slices.DeleteFunc(slices.Concat(imageKeys, contentTold(toldByKey)), func(key string) bool { return key == KeyTraits })
}

// Deployment is what a node is deployed with.
type Deployment struct {
	Image        *Image
	LiveISO      *bootiso.Want // boots an ISO instead of writing an Image; recorded in extra
	Capabilities map[string]string
	Traits       []string // nil: the traits of the allocation
	RootDevice   map[string]any
	InstanceInfo map[string]any // additional keys
	// a map of user_data, meta_data, network_data and vendor_data; a string: a URL, or a drive in base64; nil: none
	ConfigDrive any
	DeploySteps []ironic.DeployStep
	Name        string // of the instance, in Ironic only; "": it stays as it is. Not a part of Digest
	// Triggers are part of Digest only: with other triggers the same content is deployed again.
	Triggers map[string]string
	Restart  string // TriggersDigest of restart_triggers. Not a part of Digest: a start with the same content is enough
	// SecretVersion stands in Digest for the secret parts of ConfigDrive, so that the digest reveals nothing about them.
	SecretVersion string
	// SecretMeta are the keys of secrets in meta_data of ConfigDrive. SecretMetaVersion stands in Digest for them.
	SecretMeta        []string
	SecretMetaVersion string
}

// Keys of instance_info. Ironic clears instance_info, including the marker, when it undeploys the node.
const (
	keyImageSource = "image_source"
	KeyConfigDrive = "configdrive"
	KeyTraits      = attrTraits
	keyPullSecret  = "image_pull_secret"
	keyDeploy      = "deploy_interface" // overrides the node's own interface while the instance exists
)

// deployRamdisk is the deploy interface that boots a ramdisk or ISO and writes no disk.
const deployRamdisk = "ramdisk"

// imageKeys are the keys of instance_info that belong to an Image.
var imageKeys = []string{
	keyImageSource, "image_checksum", "image_os_hash_algo", "image_os_hash_value", "image_disk_format", "image_type",
	"kernel", "ramdisk", "root_gb", "swap_mb", keyPullSecret,
}

// AsInstanceInfo returns the deployment as instance_info.
func (d Deployment) AsInstanceInfo() map[string]any {
	info := map[string]any{}
	for key, value := range d.InstanceInfo {
		info[key] = value
	}
	set := func(key, value string) {
		if value != "" {
			info[key] = value
		}
	}
	if i := d.Image; i != nil {
		set(keyImageSource, i.URL)
		set("image_disk_format", i.DiskFormat)
		set("image_type", string(i.Type))
		set("kernel", i.Kernel)
		set("ramdisk", i.Ramdisk)
		set(keyPullSecret, i.PullSecret)
		if algo := hashAlgorithm(i.Checksum); algo != "" {
			info["image_os_hash_algo"], info["image_os_hash_value"] = algo, i.checksum()
		} else {
			set("image_checksum", i.checksum())
		}
		if i.RootGB > 0 {
			info["root_gb"] = i.RootGB
		}
		if i.SwapMB > 0 {
			info["swap_mb"] = i.SwapMB
		}
	}
	if d.LiveISO != nil {
		info[keyDeploy], info[machine.KeyBootISO] = deployRamdisk, d.LiveISO.URL
	}
	if len(d.Capabilities) > 0 {
		info[attrCapabilities] = d.Capabilities
	}
	if d.Traits != nil {
		info[KeyTraits] = d.Traits
	}
	if len(d.RootDevice) > 0 {
		info[attrRootDevice] = d.RootDevice
	}
	return info
}

// ImageOf returns the Image of a node's instance_info; nil if it has none.
func ImageOf(n *ironic.Node) *Image {
	text := func(key string) string { s, _ := n.InstanceInfo[key].(string); return s }
	number := func(key string) int64 {
		var i int64
		_, _ = fmt.Sscan(fmt.Sprint(n.InstanceInfo[key]), &i)
		return i
	}
	if text(keyImageSource) == "" {
		return nil
	}
	i := &Image{
		URL: text(keyImageSource), Checksum: text("image_os_hash_value"), DiskFormat: text("image_disk_format"),
		Type: ImageType(text("image_type")), Kernel: text("kernel"), Ramdisk: text("ramdisk"),
		RootGB: number("root_gb"), SwapMB: number("swap_mb"),
	}
	i.Checksum = cmp.Or(i.Checksum, text("image_checksum"))
	return i
}

// Source identifies the image or live ISO, which many machines may get; "" if it is not known.
func (d Deployment) Source() string {
	switch {
	case d.Image != nil && d.Image.URL != "":
		return d.Image.source()
	case d.LiveISO != nil:
		return d.LiveISO.Identity()
	}
	return ""
}

// Asked returns what the image or ISO of the deployment is asked for by, with its address: a mistake in it lets all machines fail that get
// the same. It is "" if there is neither.
func (d Deployment) Asked() string {
	if d.Image != nil && d.Image.URL != "" {
		return strings.TrimSpace(d.Image.URL + " " + d.Image.checksum())
	}
	return d.Source()
}

// content returns what reaches the machine, by ContentNames, in one spelling: defaults are written out, and what is empty is absent where
// neither Ironic nor cloud-init tells that apart. Two deployments with the same content write the same disk.
func (d Deployment) content() map[string]any {
	content := map[string]any{}
	if d.Image != nil {
		content[attrImage] = d.Image.content()
	}
	if drive := d.drive(); drive != nil {
		content[attrConfigDrive] = drive
	}
	if len(d.DeploySteps) > 0 {
		content[attrDeploySteps] = d.DeploySteps
	}
	if len(d.Capabilities) > 0 {
		content[attrCapabilities] = d.Capabilities
	}
	if d.Traits != nil {
		content[attrTraits] = d.Traits
	}
	if len(d.RootDevice) > 0 {
		content[attrRootDevice] = d.RootDevice
	}
	if len(d.InstanceInfo) > 0 {
		content[attrInstanceInfo] = d.InstanceInfo
	}
	return content
}

// drive returns the content of the config drive, with the versions of its secrets in the place of those; nil if there is none.
func (d Deployment) drive() any {
	given, are := d.ConfigDrive.(map[string]any)
	if d.ConfigDrive != nil && !are {
		return d.ConfigDrive
	}
	parts := map[string]any{}
	maps.Copy(parts, given)
	if d.SecretVersion != "" {
		parts["user_data"] = d.SecretVersion
	}
	if d.SecretMetaVersion != "" {
		parts["meta_data_wo"] = d.SecretMetaVersion
	}
	if meta, is := parts["meta_data"].(map[string]any); is && len(d.SecretMeta) > 0 {
		meta = maps.Clone(meta)
		maps.DeleteFunc(meta, func(key string, _ any) bool { return slices.Contains(d.SecretMeta, key) })
		if parts["meta_data"] = meta; len(meta) == 0 {
			delete(parts, "meta_data")
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return parts
}

// Texts returns the content as values of a wish. Content that the deployment lacks is missing.
func (d Deployment) Texts() map[string]Text {
	texts := map[string]Text{}
	for name, value := range d.content() {
		texts[name] = decide.Known(ironic.Spelling(value))
	}
	return texts
}

// Alike returns the names of the content that two deployments have, and that Ironic gets alike of both.
func (d Deployment) Alike(other Deployment) (names []string) {
	texts := other.Texts()
	for name, text := range d.Texts() {
		if text == texts[name] && (name != attrImage || d.Image.Address() == other.Image.Address()) {
			names = append(names, name)
		}
	}
	return names
}

// Digest identifies a deployment: deployments with the same content and triggers have the same digest.
func (d Deployment) Digest() string {
	parts := []any{d.content()}
	if d.LiveISO != nil {
		parts = append(parts, d.LiveISO.Digest()) // the URL may contain a token
	}
	if len(d.Triggers) > 0 {
		parts = append(parts, d.Triggers)
	}
	sum := sha256.Sum256([]byte(ironic.Spelling(parts)))
	return hex.EncodeToString(sum[:])
}

// editsOf returns the edits that give instance_info the wanted values and remove stale keys that are not wanted.
func editsOf(info, want map[string]any, stale []string) (patch ironic.Patch) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !ironic.SameJSON(info[key], want[key]) {
			patch.Set("/instance_info/"+key, want[key])
		}
	}
	slices.Sort(stale)
	for _, key := range slices.Compact(stale) {
		_, wanted := want[key]
		if _, exists := info[key]; exists && !wanted {
			patch.Remove("/instance_info/" + key)
		}
	}
	return patch
}
