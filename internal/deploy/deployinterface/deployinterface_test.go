package deployinterface_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/deployinterface"
)

// infos are deployments by the words of the tables.
func info(words string) map[string]any {
	all := map[string]any{}
	for word := range strings.SplitSeq(words, " ") {
		maps.Copy(all, map[string]map[string]any{
			"disk":     {"image_source": "http://images/d.qcow2"},
			"file":     {"image_source": "file:///srv/d.qcow2"},
			"tree":     {"image_source": "http://images/tree/"},
			"glance":   {"image_source": "glance://7a9a2e5c"},
			"uuid":     {"image_source": "0c4f5e7e-2a38-4a5e-9d3a-7d2a5a4b4c11"},
			"registry": {"image_source": "oci://registry/app:1"},
			"sum":      {"image_checksum": "c"},
			"hash":     {"image_os_hash_algo": "sha256", "image_os_hash_value": "c"},
			"half":     {"image_os_hash_value": "c"},
			"boots":    {"kernel": "k", "ramdisk": "r"},
			"kernel":   {"kernel": "k"},
			"stage2":   {"stage2": "s"},
			"iso":      {"boot_iso": "http://images/l.iso"},
			"asked":    {"ironic_ramdisk_deploy": true},
			"refused":  {"ironic_ramdisk_deploy": false},
			"override": {"deploy_interface": "direct"},
		}[word])
	}
	return all
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const table = `
direct | ipxe | disk | Image needs a checksum
direct | ipxe | disk half | Image needs a checksum
direct | ipxe | disk sum | -
direct | fake | disk hash | -
direct | ipxe | file | -
direct | ipxe | registry | -
direct | ipxe | uuid | -
ramdisk | ipxe | iso | -
ramdisk | redfish-virtual-media | boots | -
ramdisk | redfish-https | iso | -
ramdisk | | iso | -
ramdisk | fake | iso | Boot interface boots no ramdisk
ramdisk | ipxe | disk sum | Image is not written
ramdisk | ipxe | disk sum kernel | Image is not written
ramdisk | ipxe | disk sum boots | -
ramdisk | ipxe | registry | Image is not written
ramdisk | ipxe | glance | -
ramdisk | ipxe | uuid | -
anaconda | ipxe | disk boots stage2 | -
anaconda | pxe | tree boots | -
anaconda | http | glance | -
anaconda | http-ipxe | uuid | -
anaconda | | tree boots | -
anaconda | redfish-virtual-media | tree boots | Boot interface boots no installer
anaconda | ipxe | disk boots | Installer is not complete: stage2.
anaconda | ipxe | disk | Installer is not complete: kernel, ramdisk, stage2.
anaconda | ipxe | tree kernel | Installer is not complete: ramdisk.
anaconda | fake | disk sum | Boot interface boots no installer, Installer is not complete: kernel, ramdisk, stage2.
bootc | ipxe | registry | -
bootc | ipxe | disk sum | Image is not in a registry
custom-agent | ipxe | disk | No step writes the disk
custom-agent | ipxe | disk, steps | -
noop | | disk | Image has no effect
noop | | | -
autodetect | ipxe | disk | Image needs a checksum
autodetect | ipxe | disk sum | -
autodetect | ipxe | registry | -
autodetect | fake | asked iso | Boot interface boots no ramdisk
ansible | ipxe | disk | -
`
	for line := range strings.Lines(strings.TrimSpace(table)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		words, steps := strings.CutSuffix(cells[2], ", steps")
		var got []string
		for _, p := range deployinterface.Problems(deployinterface.Name(cells[0]), deployinterface.Deployment{
			Info: info(words),
			Boot: cells[1], Steps: steps,
		}) {
			if _, lacks, found := strings.Cut(p.Detail, "instance_info lacks "); found {
				p.Summary += ": " + lacks[:strings.Index(lacks, ".")+1]
			}
			got = append(got, p.Summary)
		}
		if all := strings.Join(got, ", "); all != strings.Trim(cells[3], "-") {
			t.Errorf("%s: got %q", strings.TrimSpace(line), all)
		}
	}
}

func TestDeployment_chosen(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"disk sum":           "direct",
		"file":               "direct",
		"iso":                "direct?",
		"iso asked":          "ramdisk",
		"iso refused":        "direct?",
		"boots asked":        "ramdisk",
		"disk sum boots":     "direct",
		"disk boots asked":   "ramdisk",
		"disk kernel asked":  "direct",
		"registry":           "bootc?",
		"registry iso asked": "ramdisk",
		"glance":             "direct?",
		"uuid":               "direct?",
		"":                   "direct?",
	} {
		name, certain := deployinterface.Deployment{Info: info(words)}.Chosen()
		if got := string(name); got+map[bool]string{false: "?"}[certain] != want {
			t.Errorf("%s: %s, certain %v; want %s", words, got, certain, want)
		}
	}
}

func TestOutlives(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ acting, words, want string }{
		{"direct", "disk sum", ""},
		{"direct", "registry", "bootc?"},
		{"direct", "iso asked", "ramdisk"},
		{"bootc", "disk sum", "direct"},
		{"bootc", "disk sum override", ""},
		{"bootc", "registry", "bootc?"},
		{"bootc", "uuid", ""},
		{"ramdisk", "disk sum", "direct"},
		{"ramdisk", "boots asked", ""},
		{"ramdisk", "registry", "bootc"},
		{"ansible", "disk sum", ""},
		{"", "disk sum", ""},
	} {
		needs, maybe := deployinterface.Outlives(deployinterface.Name(tt.acting), deployinterface.Deployment{Info: info(tt.words)})
		if got := string(needs) + map[bool]string{true: "?"}[maybe]; got != tt.want {
			t.Errorf("%s, then %s: %q, want %q", tt.acting, tt.words, got, tt.want)
		}
	}
}
