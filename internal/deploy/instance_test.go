package deploy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

const (
	md5Sum    = "d41d8cd98f00b204e9800998ecf8427e"
	sha256Sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

var sha512Sum = strings.Repeat("0123456789abcdef", 8)

func TestInstance_infoOfDeployment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		deployment Deployment
		want       map[string]any
	}{
		"nothing": {Deployment{}, map[string]any{}},
		"whole disk": {
			Deployment{Image: &Image{URL: "http://i/d.qcow2", Checksum: "http://i/SUMS", DiskFormat: "qcow2", Type: ImageWholeDisk}},
			map[string]any{
				"image_source": "http://i/d.qcow2", "image_checksum": "http://i/SUMS", "image_disk_format": "qcow2",
				"image_type": "whole-disk",
			},
		},
		"partition": {
			Deployment{Image: &Image{
				URL: "http://i/p", Checksum: md5Sum, Type: ImagePartition, Kernel: "http://i/k", Ramdisk: "http://i/r",
				RootGB: 20, SwapMB: 512,
			}},
			map[string]any{
				"image_source": "http://i/p", "image_checksum": md5Sum, "image_type": "partition", "kernel": "http://i/k",
				"ramdisk": "http://i/r",
				"root_gb": int64(20), "swap_mb": int64(512),
			},
		},
		"SHA-256": {
			Deployment{Image: &Image{URL: "u", Checksum: sha256Sum}},
			map[string]any{"image_source": "u", "image_os_hash_algo": "sha256", "image_os_hash_value": sha256Sum},
		},
		"SHA-512": {
			Deployment{Image: &Image{URL: "u", Checksum: sha512Sum}},
			map[string]any{"image_source": "u", "image_os_hash_algo": "sha512", "image_os_hash_value": sha512Sum},
		},
		"64 letters that are no checksum": {
			Deployment{Image: &Image{URL: "u", Checksum: "http://" + strings.Repeat("x", 57)}},
			map[string]any{"image_source": "u", "image_checksum": "http://" + strings.Repeat("x", 57)},
		},
		"all else": {
			Deployment{
				Capabilities: map[string]string{"boot_mode": "uefi"}, Traits: []string{"CUSTOM_RT"},
				RootDevice:   map[string]any{"serial": "S1"},
				InstanceInfo: map[string]any{"kernel_append_params": "quiet"},
			},
			map[string]any{
				"capabilities": map[string]string{"boot_mode": "uefi"}, "traits": []string{"CUSTOM_RT"},
				"root_device":          map[string]any{"serial": "S1"},
				"kernel_append_params": "quiet",
			},
		},
		"no traits at all": {Deployment{Traits: []string{}}, map[string]any{"traits": []string{}}},
		"what has a place of its own wins": {
			Deployment{Image: &Image{URL: "u"}, InstanceInfo: map[string]any{"image_source": "other"}}, map[string]any{"image_source": "u"},
		},
	} {
		if got := tc.deployment.AsInstanceInfo(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v\nwant %v", name, got, tc.want)
		}
	}
}

func TestInstance_imageIsReadBack(t *testing.T) {
	t.Parallel()
	for _, image := range []*Image{
		nil,
		{URL: "http://i/d.qcow2", Checksum: "http://i/SUMS", DiskFormat: "qcow2", Type: ImageWholeDisk},
		{URL: "u", Checksum: md5Sum},
		{URL: "u", Checksum: sha256Sum},
		{URL: "u", Checksum: sha512Sum},
		{URL: "u", Type: ImagePartition, Kernel: "k", Ramdisk: "r", RootGB: 20, SwapMB: 512},
	} {
		var info any
		if document.Decode([]byte(ironic.Spelling(Deployment{Image: image}.AsInstanceInfo())), &info) != nil {
			t.Fatal("instance_info is no JSON")
		}
		if got := ImageOf(&ironic.Node{InstanceInfo: info.(map[string]any)}); !reflect.DeepEqual(got,
			image) {
			t.Errorf("%+v is read back as %+v", image, got)
		}
	}
}

// base is a deployment with all parts.
func base() Deployment {
	return Deployment{
		Image:        &Image{URL: "u", Checksum: md5Sum},
		Capabilities: map[string]string{"a": "1", "b": "2", "c": "3"},
		ConfigDrive:  map[string]any{"user_data": "#cloud-config", "meta_data": map[string]any{"name": "web", "id": 1}},
		DeploySteps:  []ironic.DeployStep{{Interface: "deploy", Step: "erase", Args: map[string]any{"x": 1}, Priority: 50}},
	}
}

// drive returns the parts of the config drive of base.
func drive(d *Deployment) map[string]any {
	parts, _ := d.ConfigDrive.(map[string]any)
	return parts
}

func TestInstance_digest(t *testing.T) {
	t.Parallel()
	want := base().Digest()
	for range 100 { // maps have no order
		if got := base().Digest(); got != want {
			t.Fatalf("%s, then %s", want, got)
		}
	}
	for name, change := range map[string]func(*Deployment){
		"image":         func(d *Deployment) { d.Image.URL = "v" },
		"checksum":      func(d *Deployment) { d.Image.Checksum = sha256Sum },
		"no image":      func(d *Deployment) { d.Image = nil },
		"user data":     func(d *Deployment) { drive(d)["user_data"] = "#cloud-config\n" },
		"meta data":     func(d *Deployment) { drive(d)["meta_data"] = map[string]any{} },
		"vendor data":   func(d *Deployment) { drive(d)["vendor_data"] = map[string]any{} },
		"ready drive":   func(d *Deployment) { d.ConfigDrive = "http://x/drive" },
		"no drive":      func(d *Deployment) { d.ConfigDrive = nil },
		"capability":    func(d *Deployment) { d.Capabilities["a"] = "4" },
		"trait":         func(d *Deployment) { d.Traits = []string{"CUSTOM_RT"} },
		"root device":   func(d *Deployment) { d.RootDevice = map[string]any{"serial": "S1"} },
		"instance info": func(d *Deployment) { d.InstanceInfo = map[string]any{"x": 1} },
		"step":          func(d *Deployment) { d.DeploySteps[0].Priority = 60 },
		"secret":        func(d *Deployment) { d.SecretVersion = "1" },
	} {
		changed := base()
		change(&changed)
		if changed.Digest() == want {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

func TestInstance_digestHidesSecrets(t *testing.T) {
	t.Parallel()
	secret := func(content, version string) string {
		d := base()
		drive(&d)["user_data"], d.SecretVersion = content, version
		return d.Digest()
	}
	if secret("tiger", "1") != secret("lion", "1") {
		t.Error("the digest depends on write-only content: it could be guessed from it")
	}
	if secret("tiger", "1") == secret("tiger", "2") {
		t.Error("a new version of write-only content makes no difference")
	}
	meta := func(content, version string) string {
		d := base()
		drive(&d)["meta_data"] = map[string]any{"a": "b", "admin_pass": content}
		d.SecretMeta, d.SecretMetaVersion = []string{"admin_pass"}, version
		return d.Digest()
	}
	if meta("tiger", "1") != meta("lion", "1") || meta("tiger", "1") == meta("tiger", "2") {
		t.Error("the digest depends on write-only meta data, or not on its version")
	}
	d := base()
	d.SecretVersion = "1"
	if d.Digest(); drive(&d)["user_data"] != "#cloud-config" {
		t.Error("computing the digest has changed the config drive")
	}
}

func TestInstance_markerTellsAcceptedVerb(t *testing.T) {
	t.Parallel()
	before, after := time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	marked := func(state ironic.State, at time.Time, d Deployment) map[string]any {
		return map[string]any{notes.KeyMarker: map[string]any{
			"digest": d.Digest(), "state": string(state), "since": deployedSince(&ironic.Node{ProvisionUpdatedAt: at}),
		}}
	}
	other := base()
	other.Image.URL = "v"
	for name, tc := range map[string]struct {
		info       map[string]any
		state      ironic.State
		changed    time.Time
		ours, runs bool
	}{
		"reserved, not sent":            {marked("available", before, base()), "available", before, false, false},
		"being deployed":                {marked("available", before, base()), "deploying", after, true, false},
		"deployed":                      {marked("available", before, base()), "active", after, true, true},
		"failed":                        {marked("available", before, base()), "deploy failed", after, true, false},
		"a rebuild prepared, not sent":  {marked("active", before, base()), "active", before, false, false},
		"rebuilt":                       {marked("active", before, base()), "active", after, true, true},
		"deployed with something else":  {marked("available", before, other), "active", after, false, true},
		"deployed by another client":    {nil, "active", after, false, true},
		"a marker that is none of ours": {map[string]any{notes.KeyMarker: "hello"}, "active", after, false, true},
		"retried, and not sent again":   {marked("deploy failed", after, base()), "deploy failed", after, false, false},
		"retried, and deployed at last": {marked("deploy failed", before, base()), "active", after, true, true},
	} {
		node := &ironic.Node{InstanceInfo: tc.info, ProvisionState: string(tc.state), ProvisionUpdatedAt: tc.changed}
		if got := base().DeployedWith(node); got != tc.ours {
			t.Errorf("%s: DeployedWith = %t", name, got)
		}
		if got := RunsInstance(node); got != tc.runs {
			t.Errorf("%s: RunsInstance = %t", name, got)
		}
	}
}

func TestInstance_whyNodeIsLost(t *testing.T) {
	t.Parallel()
	suspended := map[string]any{notes.KeyAllocation: map[string]any{"uuid": "alloc"}}
	for name, tc := range map[string]struct {
		node                 ironic.Node
		instance, allocation string
		want                 string // "" is not lost
	}{
		"ours":                   {ironic.Node{InstanceUUID: "i", ProvisionState: "active"}, "i", "", ""},
		"allocated":              {ironic.Node{InstanceUUID: "alloc", ProvisionState: "available"}, "alloc", "alloc", ""},
		"being undeployed by us": {ironic.Node{ProvisionState: "cleaning", Extra: suspended}, "alloc", "alloc", ""},
		"undeployed for another": {
			ironic.Node{ProvisionState: "cleaning", Extra: suspended},
			"i", "other",
			"undeployed, not by this resource",
		},
		"taken": {ironic.Node{InstanceUUID: "j", ProvisionState: "active"}, "i", "", "is reserved by j now"},
		"taken though suspended": {
			ironic.Node{InstanceUUID: "j", ProvisionState: "active", Extra: suspended},
			"alloc", "alloc",
			"is reserved by j now",
		},
		"released in maintenance": {ironic.Node{ProvisionState: "active"}, "i", "", "still runs, but its reservation was removed"},
		"undeployed": {
			ironic.Node{ProvisionState: "available"},
			"i", "",
			`undeployed, not by this resource, and is in state "available"`,
		},
		"undeploying has failed":   {ironic.Node{ProvisionState: "error"}, "i", "", ""},
		"never recorded: not ours": {ironic.Node{ProvisionState: "available"}, "", "", "undeployed, not by this resource"},
	} {
		got := LossReason(&tc.node, tc.instance, tc.allocation)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
