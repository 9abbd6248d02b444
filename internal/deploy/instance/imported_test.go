package instance_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/images"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/instance"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestImage_differsOnlyIfThatIsCertain(t *testing.T) {
	t.Parallel()
	md5, sha, sums := strings.Repeat("d4", 16), strings.Repeat("ab", 32), "http://images/SHA256SUMS"
	runs := images.Image{URL: "http://images/v1.qcow2", Checksum: md5, Type: images.ImagePartition, RootGB: 10, Kernel: "http://images/k1"}
	with := func(change func(*images.Image)) images.Image {
		i := runs
		change(&i)
		return i
	}
	for name, tt := range map[string]struct {
		image images.Image
		want  bool
	}{
		"the same":                        {runs, false},
		"nothing but the URL":             {images.Image{URL: runs.URL}, false},
		"another URL":                     {with(func(i *images.Image) { i.URL = "http://images/v2.qcow2" }), true},
		"another checksum of that kind":   {with(func(i *images.Image) { i.Checksum = strings.Repeat("00", 16) }), true},
		"the checksum in capitals":        {with(func(i *images.Image) { i.Checksum = strings.ToUpper(md5) }), false},
		"a checksum of another kind":      {with(func(i *images.Image) { i.Checksum = sha }), false},
		"a file of checksums":             {with(func(i *images.Image) { i.Checksum = sums }), false},
		"a converted image":               {with(func(i *images.Image) { i.Checksum, i.DiskFormat = strings.Repeat("00", 16), "qcow2" }), false},
		"another format":                  {with(func(i *images.Image) { i.DiskFormat = "raw" }), false},
		"a type that Ironic does not say": {with(func(i *images.Image) { i.Type = "" }), false},
		"another type":                    {with(func(i *images.Image) { i.Type = images.ImageWholeDisk }), true},
		"another kernel":                  {with(func(i *images.Image) { i.Kernel = "http://images/k2" }), true},
		"no kernel":                       {with(func(i *images.Image) { i.Kernel = "" }), false},
		"another size":                    {with(func(i *images.Image) { i.RootGB = 20 }), true},
		"swap that Ironic does not say":   {with(func(i *images.Image) { i.SwapMB = 20 }), false},
		"a secret for the registry":       {with(func(i *images.Image) { i.PullSecretVersion = "2" }), false},
	} {
		if got := tt.image.Differs(runs); got != tt.want {
			t.Errorf("%s: differs = %v, want %v", name, got, tt.want)
		}
	}
}

func TestSettings_contradictOnlyWhatIronicTells(t *testing.T) {
	t.Parallel()
	node := func(info map[string]any) *ironic.Node { return &ironic.Node{InstanceInfo: info} }
	for name, tt := range map[string]struct {
		info map[string]any
		key  string
		what instance.Deployment
		want bool
	}{
		"the same traits":            {map[string]any{"traits": []any{"CUSTOM_B", "CUSTOM_A"}}, "traits", instance.Deployment{Traits: []string{"CUSTOM_A", "CUSTOM_B"}}, false},
		"another trait":              {map[string]any{"traits": []any{"CUSTOM_A"}}, "traits", instance.Deployment{Traits: []string{"CUSTOM_B"}}, true},
		"traits of none":             {nil, "traits", instance.Deployment{Traits: []string{"CUSTOM_B"}}, true},
		"the same capabilities":      {map[string]any{"capabilities": map[string]any{"a": "b"}}, "capabilities", instance.Deployment{Capabilities: map[string]string{"a": "b"}}, false},
		"capabilities as a text":     {map[string]any{"capabilities": `{"a": "b"}`}, "capabilities", instance.Deployment{Capabilities: map[string]string{"a": "b"}}, false},
		"other capabilities":         {map[string]any{"capabilities": map[string]any{"a": "b"}}, "capabilities", instance.Deployment{Capabilities: map[string]string{"a": "c"}}, true},
		"the same root device":       {map[string]any{"root_device": map[string]any{"size": "100"}}, "root_device", instance.Deployment{RootDevice: map[string]any{"size": "100"}}, false},
		"a drive, which is not told": {nil, "config_drive", instance.Deployment{ConfigDrive: "x"}, false},
	} {
		if got := instance.SettingsOf(node(tt.info)).Contradict(tt.key, tt.what); got != tt.want {
			t.Errorf("%s: contradicts = %v, want %v", name, got, tt.want)
		}
	}
}
