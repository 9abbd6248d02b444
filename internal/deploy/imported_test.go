package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestImage_differsOnlyIfThatIsCertain(t *testing.T) {
	t.Parallel()
	md5, sha, sums := strings.Repeat("d4", 16), strings.Repeat("ab", 32), "http://images/SHA256SUMS"
	runs := deploy.Image{URL: "http://images/v1.qcow2", Checksum: md5, Type: deploy.ImagePartition, RootGB: 10, Kernel: "http://images/k1"}
	with := func(change func(*deploy.Image)) deploy.Image {
		i := runs
		change(&i)
		return i
	}
	for name, tt := range map[string]struct {
		image deploy.Image
		want  bool
	}{
		"the same":                              {runs, false},
		"nothing but the URL":                   {deploy.Image{URL: runs.URL}, false},
		"another URL, the same checksum":        {with(func(i *deploy.Image) { i.URL = "http://images/v2.qcow2" }), false},
		"another URL, another kind of checksum": {with(func(i *deploy.Image) { i.URL, i.Checksum = "http://images/v2.qcow2", sha }), true},
		"another checksum of that kind":         {with(func(i *deploy.Image) { i.Checksum = strings.Repeat("00", 16) }), true},
		"the checksum in capitals":              {with(func(i *deploy.Image) { i.Checksum = strings.ToUpper(md5) }), false},
		"a checksum of another kind":            {with(func(i *deploy.Image) { i.Checksum = sha }), false},
		"a file of checksums":                   {with(func(i *deploy.Image) { i.Checksum = sums }), false},
		"a converted image": {with(func(i *deploy.Image) {
			i.Checksum, i.DiskFormat = strings.Repeat("00", 16), "qcow2"
		}), false},
		"another format":                  {with(func(i *deploy.Image) { i.DiskFormat = "raw" }), false},
		"a type that Ironic does not say": {with(func(i *deploy.Image) { i.Type = "" }), false},
		"another type":                    {with(func(i *deploy.Image) { i.Type = deploy.ImageWholeDisk }), true},
		"another kernel":                  {with(func(i *deploy.Image) { i.Kernel = "http://images/k2" }), true},
		"no kernel":                       {with(func(i *deploy.Image) { i.Kernel = "" }), false},
		"another size":                    {with(func(i *deploy.Image) { i.RootGB = 20 }), true},
		"swap that Ironic does not say":   {with(func(i *deploy.Image) { i.SwapMB = 20 }), false},
		"a secret for the registry":       {with(func(i *deploy.Image) { i.PullSecretVersion = "2" }), false},
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
		what deploy.Deployment
		want bool
	}{
		"the same traits": {
			map[string]any{"traits": []any{"CUSTOM_B", "CUSTOM_A"}},
			"traits",
			deploy.Deployment{Traits: []string{"CUSTOM_A", "CUSTOM_B"}},
			false,
		},
		"another trait": {
			map[string]any{"traits": []any{"CUSTOM_A"}},
			"traits",
			deploy.Deployment{Traits: []string{"CUSTOM_B"}},
			true,
		},
		"traits of none": {nil, "traits", deploy.Deployment{Traits: []string{"CUSTOM_B"}}, true},
		"the same capabilities": {
			map[string]any{"capabilities": map[string]any{"a": "b"}},
			"capabilities",
			deploy.Deployment{Capabilities: map[string]string{"a": "b"}},
			false,
		},
		"capabilities as a text": {
			map[string]any{"capabilities": `{"a": "b"}`},
			"capabilities",
			deploy.Deployment{Capabilities: map[string]string{"a": "b"}},
			false,
		},
		"other capabilities": {
			map[string]any{"capabilities": map[string]any{"a": "b"}},
			"capabilities",
			deploy.Deployment{Capabilities: map[string]string{"a": "c"}},
			true,
		},
		"the same root device": {
			map[string]any{"root_device": map[string]any{"size": "100"}},
			"root_device",
			deploy.Deployment{RootDevice: map[string]any{"size": "100"}},
			false,
		},
		"a number of another size, in a text": {
			map[string]any{"root_device": `{"size": 9007199254740993}`},
			"root_device",
			deploy.Deployment{RootDevice: map[string]any{"size": json.Number("9007199254740992")}},
			true,
		},
		"a drive, which is not told": {nil, "config_drive", deploy.Deployment{ConfigDrive: "x"}, false},
	} {
		if got := deploy.SettingsOf(node(tt.info)).Contradict(tt.key, tt.what); got != tt.want {
			t.Errorf("%s: contradicts = %v, want %v", name, got, tt.want)
		}
	}
}
