package deploy

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
)

// ImageType is the kind of an image.
type ImageType string

// The image types of Ironic (instance_info.image_type).
const (
	ImageWholeDisk ImageType = "whole-disk"
	ImagePartition ImageType = "partition"
)

// Image is what Ironic writes to a node's disk. Empty values are not sent.
type Image struct {
	URL        string
	Checksum   string // MD5, SHA-256 or SHA-512 in hexadecimal, or the URL of a checksum file
	DiskFormat string // qcow2 or raw
	Type       ImageType
	Kernel     string // for a partition image, like the next three
	Ramdisk    string
	RootGB     int64
	SwapMB     int64
	// PullSecret is the secret for an oci:// registry. PullSecretVersion tells a wish whether it changes.
	PullSecret        string
	PullSecretVersion string
}

// checksum returns the checksum as the agent compares it: with lower-case digits. The URL of a checksum file stays as it is.
func (i Image) checksum() string {
	if isHash(i.Checksum) {
		return strings.ToLower(i.Checksum)
	}
	return i.Checksum
}

func isHash(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && text != ""
}

// source says which bytes Ironic writes: by the checksum with which it compares them, by the digest in the address of a registry, or by the
// address, if nothing else tells. Ironic takes the checksum of an image in Glance or in a registry from there.
func (i Image) source() string {
	scheme, at, _ := strings.Cut(i.URL, "://")
	_, digest, _ := strings.Cut(at, "@")
	switch {
	case scheme == "oci" && digest != "":
		return digest
	case isHash(i.Checksum) && slices.Contains([]string{"http", "https", "file"}, scheme):
		return i.checksum()
	}
	return strings.TrimSpace(i.URL + " " + i.checksum())
}

// content returns what of the image reaches the disk, by attribute: the address does not, unless it is all that tells what is there.
func (i Image) content() map[string]any {
	content := map[string]any{"type": cmp.Or(i.Type, ImageWholeDisk)}
	for name, value := range map[string]string{"disk_format": i.DiskFormat, "kernel": i.Kernel, "ramdisk": i.Ramdisk} {
		if value != "" {
			content[name] = value
		}
	}
	for name, size := range map[string]int64{"root_gb": i.RootGB, "swap_mb": i.SwapMB} {
		if size > 0 {
			content[name] = size
		}
	}
	source := "url"
	if i.source() == i.checksum() {
		source = "checksum"
	}
	content[source] = i.source()
	return content
}

// Address is where Ironic gets the image, and which secret it needs there.
func (i *Image) Address() Text {
	if i == nil {
		return Text{}
	}
	return decide.Known(i.URL + "\n" + i.PullSecretVersion)
}

// hashAlgorithm returns the algorithm of a checksum by its length; "" for MD5 and for URLs, which are sent as image_checksum.
func hashAlgorithm(checksum string) string {
	if _, err := hex.DecodeString(checksum); err != nil {
		return ""
	}
	return map[int]string{64: "sha256", 128: "sha512"}[len(checksum)]
}

// Differs reports whether another client has certainly deployed another image on a node. A value that only one of the two images has does
// not count, and neither does the address of an image with the same checksum. Checksums count only if the disk formats are equal, because
// Ironic converts images, and then changes format and checksum.
func (i Image) Differs(runs Image) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	numbers := func(a, b int64) bool { return a > 0 && b > 0 && a != b }
	return differ(i.URL, runs.URL) && i.source() != runs.source() ||
		differ(string(i.Type), string(runs.Type)) || differ(i.Kernel, runs.Kernel) ||
		differ(i.Ramdisk, runs.Ramdisk) ||
		numbers(i.RootGB, runs.RootGB) || numbers(i.SwapMB, runs.SwapMB) ||
		(i.DiskFormat == runs.DiskFormat && otherHash(i.Checksum, runs.Checksum))
}

// otherHash reports whether two hexadecimal checksums have the same length and differ. For the URL of a checksum file it returns false.
func otherHash(a, b string) bool {
	return isHash(a) && isHash(b) && len(a) == len(b) && !strings.EqualFold(a, b)
}
