package deploy

import (
	"encoding/hex"
	"strings"
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
	// PullSecret is the secret for an oci:// registry. Digest uses PullSecretVersion instead, so that it reveals nothing about the
	// secret.
	PullSecret        string
	PullSecretVersion string
}

// hashAlgorithm returns the algorithm of a checksum by its length; "" for MD5 and for URLs, which are sent as image_checksum.
func hashAlgorithm(checksum string) string {
	if _, err := hex.DecodeString(checksum); err != nil {
		return ""
	}
	return map[int]string{64: "sha256", 128: "sha512"}[len(checksum)]
}

// Differs reports whether another client has certainly deployed another image on a node. A value that only one of the two images has does
// not count. Checksums count only if the disk formats are equal, because Ironic converts images, and then changes format and checksum.
func (i Image) Differs(runs Image) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	numbers := func(a, b int64) bool { return a > 0 && b > 0 && a != b }
	return differ(i.URL, runs.URL) || differ(string(i.Type), string(runs.Type)) || differ(i.Kernel, runs.Kernel) ||
		differ(i.Ramdisk, runs.Ramdisk) ||
		numbers(i.RootGB, runs.RootGB) || numbers(i.SwapMB, runs.SwapMB) ||
		(i.DiskFormat == runs.DiskFormat && otherHash(i.Checksum, runs.Checksum))
}

// otherHash reports whether two hexadecimal checksums have the same length and differ. For the URL of a checksum file it returns false.
func otherHash(a, b string) bool {
	_, first := hex.DecodeString(a)
	_, second := hex.DecodeString(b)
	return first == nil && second == nil && len(a) == len(b) && !strings.EqualFold(a, b)
}
