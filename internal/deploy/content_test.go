package deploy_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// full returns a deployment that has all kinds of content.
func full() deploy.Deployment {
	return deploy.Deployment{
		Image: &deploy.Image{
			URL: "http://images.test/a.img", Checksum: strings.Repeat("ab", 32), DiskFormat: "raw", Type: deploy.ImageWholeDisk,
		},
		Capabilities: map[string]string{"boot_mode": "uefi"}, Traits: []string{"CUSTOM_A"}, RootDevice: map[string]any{"serial": "1"},
		InstanceInfo: map[string]any{"a": map[string]any{"b": "c"}},
		ConfigDrive:  map[string]any{"user_data": "u", "meta_data": map[string]any{"hostname": "h"}},
		DeploySteps:  []ironic.DeployStep{{Interface: "bios", Step: "s", Priority: 90}},
	}
}

// deployed returns what is seen of a machine that runs a deployment.
func deployed(d deploy.Deployment) deploy.Seen {
	s := runningMachine("image=a")
	s.Was = wishFor(s.Was, d)
	s.Sight.Content = d.Digest()
	s.Runs = deploy.Footprint{Mark: d.Digest(), Image: d.Image.URL}
	return s
}

func wishFor(w deploy.Wish, d deploy.Deployment) deploy.Wish {
	w.Deployment, w.Content, w.Address = d, d.Texts(), d.Image.Address()
	return w
}

// What Ironic writes alike is the same content: no step, no counter, and the digest on the node stays true.
func TestDecide_sameContentIsNoChange(t *testing.T) {
	t.Parallel()
	for name, respell := range map[string]func(d *deploy.Deployment){
		"the default type omitted":      func(d *deploy.Deployment) { d.Image.Type = "" },
		"the checksum in capitals":      func(d *deploy.Deployment) { d.Image.Checksum = strings.Repeat("AB", 32) },
		"settings that are empty":       func(d *deploy.Deployment) { d.Triggers = map[string]string{} },
		"the image on another server":   func(d *deploy.Deployment) { d.Image.URL = "https://mirror.test/b.img?signature=c" },
		"the image in a file":           func(d *deploy.Deployment) { d.Image.URL = "file:///images/a.img" },
		"another secret for the server": func(d *deploy.Deployment) { d.Image.PullSecret, d.Image.PullSecretVersion = "s", "2" },
	} {
		was, wish := full(), full()
		respell(&wish)
		p := deploy.Decide(wishFor(deployed(was).Was, wish), deployed(was))
		if got := steps(p); got != "-" && got != "address" || counters(p) != "0/0" || wish.Digest() != was.Digest() {
			t.Errorf("%s: the plan is %s | %s | %s", name, got, notices(p), counters(p))
		}
	}
}

// Empty content is none.
func TestDecide_emptyContentIsNone(t *testing.T) {
	t.Parallel()
	was := deploy.Deployment{Image: full().Image}
	wish := was
	wish.InstanceInfo, wish.ConfigDrive, wish.DeploySteps = map[string]any{}, map[string]any{}, []ironic.DeployStep{}
	wish.Capabilities, wish.RootDevice = map[string]string{}, map[string]any{}
	p := deploy.Decide(wishFor(deployed(was).Was, wish), deployed(was))
	if steps(p) != "-" || counters(p) != "0/0" || wish.Digest() != was.Digest() {
		t.Errorf("the plan is %s | %s | %s", steps(p), notices(p), counters(p))
	}
}

// A change of any other attribute is a rebuild, which names that attribute and no other.
func TestDecide_rebuildNamesWhatChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(d *deploy.Deployment){
		"image.checksum":    func(d *deploy.Deployment) { d.Image.Checksum = strings.Repeat("cd", 32) },
		"image.disk_format": func(d *deploy.Deployment) { d.Image.DiskFormat = "qcow2" },
		"image.type":        func(d *deploy.Deployment) { d.Image.Type = deploy.ImagePartition },
		"image.kernel":      func(d *deploy.Deployment) { d.Image.Kernel = "http://images.test/k" },
		"image.root_gb":     func(d *deploy.Deployment) { d.Image.RootGB = 10 },
		"capabilities":      func(d *deploy.Deployment) { d.Capabilities = map[string]string{"boot_mode": "bios"} },
		"traits":            func(d *deploy.Deployment) { d.Traits = []string{} },
		"root_device":       func(d *deploy.Deployment) { d.RootDevice = map[string]any{"serial": "2"} },
		"instance_info":     func(d *deploy.Deployment) { d.InstanceInfo = nil },
		"config_drive":      func(d *deploy.Deployment) { d.ConfigDrive = map[string]any{"user_data": "v"} },
		"deploy_steps":      func(d *deploy.Deployment) { d.DeploySteps[0].Priority = 80 },
	} {
		was, wish := full(), full()
		change(&wish)
		p := deploy.Decide(wishFor(deployed(was).Was, wish), deployed(was))
		if steps(p) != "rebuild (wipe)" || counters(p) != "1/0" || !strings.Contains(p.Notices[0].Detail, " changes ("+name+"): ") {
			t.Errorf("%s: the plan is %s | %+v | %s", name, steps(p), p.Notices, counters(p))
		}
	}
}

// What identifies an image is its checksum only where Ironic compares that with what it has fetched.
func TestImage_isKnownByWhatIronicChecks(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	for _, tt := range []struct {
		was, wish deploy.Image
		same      bool
	}{
		{deploy.Image{URL: "http://a/i", Checksum: sum}, deploy.Image{URL: "https://b/j", Checksum: strings.ToUpper(sum)}, true},
		{deploy.Image{URL: "http://a/i", Checksum: "http://a/SUMS"}, deploy.Image{URL: "http://b/i", Checksum: "http://a/SUMS"}, false},
		{deploy.Image{URL: "http://a/i"}, deploy.Image{URL: "http://b/i"}, false},
		{deploy.Image{URL: "oci://a/i@sha256:" + sum}, deploy.Image{URL: "oci://b/j@sha256:" + sum}, true},
		{deploy.Image{URL: "oci://a/i:1", Checksum: sum}, deploy.Image{URL: "oci://a/i:2", Checksum: sum}, false},
		{deploy.Image{URL: "glance://1", Checksum: sum}, deploy.Image{URL: "glance://2", Checksum: sum}, false},
		{deploy.Image{URL: "http://a/i", Checksum: sum}, deploy.Image{URL: "glance://1", Checksum: sum}, false},
	} {
		was, wish := deploy.Deployment{Image: &tt.was}, deploy.Deployment{Image: &tt.wish}
		if got := was.Texts()["image"] == wish.Texts()["image"]; got != tt.same || (was.Digest() == wish.Digest()) != tt.same {
			t.Errorf("%+v and %+v: the same image = %v, want %v", tt.was, tt.wish, got, tt.same)
		}
	}
}

// A plan that cannot know the address yet says that the apply may have to tell Ironic.
func TestDecide_addressThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	s := deployed(full())
	w := wishFor(s.Was, full())
	w.Address = decide.Unknown[string]()
	if p := deploy.Decide(w, s); steps(p) != "address?" {
		t.Errorf("the plan is %s | %s", steps(p), notices(p))
	}
}
