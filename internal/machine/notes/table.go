package notes

import "strings"

// The notes that this provider keeps on a node besides those of the other files, in extra unless stated otherwise. Ironic keeps extra and clears
// instance_info when it undeploys a node.
const (
	// KeyBoot: the live ISO that the node was booted with, and what deploying it again must restore.
	KeyBoot = "terraform_metal_boot"
	// KeyCabling: what the metal_host of the node expects of its cables, by MAC address.
	KeyCabling = "terraform_metal_cabling"
	// KeyInspection: the inspection that triggers have requested last.
	KeyInspection = "terraform_metal_inspection"
	// KeyMarker, in instance_info: what the node was deployed with.
	KeyMarker = "terraform_metal"
)

// OwnKey reports whether a key of extra or instance_info is a note of any package of this provider. Users cannot set such a key,
// and neither an import nor a data source shows it.
func OwnKey(key string) bool {
	return key == KeyMarker || strings.HasPrefix(key, "terraform_metal_") || strings.HasPrefix(key, "metal_oneview_")
}
