package ironic

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
)

// DeployStep is a step that runs while a node is deployed (API 1.69). All four are required by Ironic.
type DeployStep struct {
	Interface string `json:"interface"`
	Step      string `json:"step"`
	Args      any    `json:"args"`
	Priority  int64  `json:"priority"`
}

// ImageType says what an image holds.
type ImageType string

// The image types of Ironic (instance_info.image_type).
const (
	ImageWholeDisk ImageType = "whole-disk"
	ImagePartition ImageType = "partition"
)

// Image is what a node's disk is written with. Empty values are not sent.
type Image struct {
	URL        string
	Checksum   string // MD5, SHA-256 or SHA-512 in hexadecimal, or the URL of a file of checksums
	DiskFormat string // qcow2 or raw
	Type       ImageType
	Kernel     string // of a partition image, like the next three
	Ramdisk    string
	RootGB     int64
	SwapMB     int64
	// PullSecret is what an oci:// registry demands. PullSecretVersion stands for it in Digest, so that nothing about it can be guessed.
	PullSecret        string
	PullSecretVersion string
}

// Deployment is an instance: what a node is deployed with.
type Deployment struct {
	Image        *Image
	LiveISO      *bootiso.Artifacts // booted instead of writing an Image; its record goes into extra
	Capabilities map[string]string
	Traits       []string // nil: those of the allocation
	RootDevice   map[string]any
	InstanceInfo map[string]any // further keys
	ConfigDrive  map[string]any // user_data, meta_data, network_data, vendor_data; nil: none
	DeploySteps  []DeployStep
	// SecretVersion stands for the secret parts of ConfigDrive in Digest, so that nothing about them can be guessed from it.
	SecretVersion string
}

// Keys of instance_info. Ironic clears instance_info when the node is undeployed, our marker with it.
const (
	keyImageSource = "image_source"
	keyMarker      = "terraform_metal"
	keyConfigDrive = "configdrive"
	keyTraits      = "traits"
	keyBootISO     = "boot_iso"
	keyPullSecret  = "image_pull_secret"
	keyDeploy      = "deploy_interface" // wins over the node's own for as long as the instance is there
)

// deployRamdisk is the deploy interface that boots something and writes nothing.
const deployRamdisk = "ramdisk"

// imageKeys are the keys of instance_info that an Image sets.
var imageKeys = []string{
	keyImageSource, "image_checksum", "image_os_hash_algo", "image_os_hash_value", "image_disk_format", "image_type",
	"kernel", "ramdisk", "root_gb", "swap_mb", keyPullSecret,
}

// instanceInfo is the deployment as instance_info.
func (d Deployment) instanceInfo() map[string]any {
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
			info["image_os_hash_algo"], info["image_os_hash_value"] = algo, i.Checksum
		} else {
			set("image_checksum", i.Checksum)
		}
		if i.RootGB > 0 {
			info["root_gb"] = i.RootGB
		}
		if i.SwapMB > 0 {
			info["swap_mb"] = i.SwapMB
		}
	}
	if d.LiveISO != nil {
		info[keyDeploy], info[keyBootISO] = deployRamdisk, d.LiveISO.URL
	}
	if len(d.Capabilities) > 0 {
		info["capabilities"] = d.Capabilities
	}
	if d.Traits != nil {
		info[keyTraits] = d.Traits
	}
	if len(d.RootDevice) > 0 {
		info["root_device"] = d.RootDevice
	}
	return info
}

// hashAlgorithm tells by its length what a checksum is; "" for MD5 and URLs, which go to image_checksum.
func hashAlgorithm(checksum string) string {
	if _, err := hex.DecodeString(checksum); err != nil {
		return ""
	}
	return map[int]string{64: "sha256", 128: "sha512"}[len(checksum)]
}

// ImageSource is the URL of the image that a node was deployed with, as Ironic has it: a redirection changes it.
func ImageSource(n *Node) string {
	url, _ := n.InstanceInfo[keyImageSource].(string)
	return url
}

// ImageOf reads an Image back from a node; nil if it has none.
func ImageOf(n *Node) *Image {
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
	if i.Checksum == "" {
		i.Checksum = text("image_checksum")
	}
	return i
}

// Digest identifies a deployment: two that would write the same have the same.
func (d Deployment) Digest() string {
	config := d.ConfigDrive
	if d.SecretVersion != "" {
		config = map[string]any{}
		for key, value := range d.ConfigDrive {
			config[key] = value
		}
		config["user_data"] = d.SecretVersion
	}
	info := d.instanceInfo()
	if d.Image != nil && d.Image.PullSecretVersion != "" {
		info[keyPullSecret] = d.Image.PullSecretVersion
	}
	if d.LiveISO != nil {
		info[keyBootISO] = d.LiveISO.Digest() // the URL may carry a token
	}
	text, err := json.Marshal([]any{info, config, d.DeploySteps})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// marker remembers on the node, before the verb is sent, what it is about to be deployed with. Since then something was
// deployed if the node has changed its provision state since: an interrupted run can tell whether its verb was taken.
type marker struct {
	Digest string   `json:"digest"`
	State  State    `json:"state"`           // in which the verb was about to be sent
	Since  string   `json:"since"`           // when the node came into it
	Power  string   `json:"power,omitempty"` // of a boot without a verb: when the node's power was last changed
	Keys   []string `json:"keys,omitempty"`  // of instance_info that were written for this deployment
}

func markerOf(n *Node) (m marker) {
	text, err := json.Marshal(n.InstanceInfo[keyMarker])
	if err == nil {
		_ = json.Unmarshal(text, &m) // not ours if it does not parse
	}
	return m
}

// taken reports whether what a node was prepared for was started since.
func (m marker) taken(n *Node) bool {
	if m.Power != "" {
		return m.Power != lastPowerChange(n)
	}
	return m.State != State(n.ProvisionState) || m.Since != since(n)
}

func since(n *Node) string { return n.ProvisionUpdatedAt.UTC().Format(time.RFC3339Nano) }

// Mark is what this provider has last marked a node with, to tell its own deployments apart; "none" if with nothing.
func Mark(n *Node) string { return cmp.Or(markerOf(n).Digest, "none") }

// DeployedWith reports whether what a node runs, or is being deployed with, is this deployment.
func (d Deployment) DeployedWith(n *Node) bool {
	m := markerOf(n)
	return m.Digest == d.Digest() && m.taken(n)
}

// RunsInstance reports whether a node is active with what its instance_info says. It may say something else between the
// preparation of a rebuild that never started and the next try.
func RunsInstance(n *Node) bool {
	return State(n.ProvisionState) == nodes.Active && markerOf(n).taken(n)
}

// Lost says why a node does not belong to an instance any more; "" if it does. A node that is being undeployed to get its
// allocation back, or to be deployed again, still does.
func Lost(n *Node, instance, allocation string) string {
	if n.InstanceUUID == instance && instance != "" {
		return ""
	}
	spec := SuspendedAllocation(n)
	if n.InstanceUUID == "" && (spec != nil && spec.UUID == allocation || deployedAgain(n, instance)) {
		return ""
	}
	switch {
	case n.InstanceUUID != "":
		return fmt.Sprintf("is reserved by %s now: somebody else has deployed it, or is about to", n.InstanceUUID)
	case State(n.ProvisionState) == nodes.Active:
		return "still runs, but its reservation was removed: it is not ours to touch. Import it to take it back"
	}
	return fmt.Sprintf("was undeployed by somebody else, and is in state %q", n.ProvisionState)
}
