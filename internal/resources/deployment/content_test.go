package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// An image that moves to another server keeps its bytes: Ironic gets the new address, and no machine is touched.
func TestAccDeployment_imageMovesToAnotherServer(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(server, checksum string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node),
			fmt.Sprintf("image = { url = %q, checksum = %q, disk_format = \"qcow2\" }", server+"v1.qcow2", checksum))
	}
	sum := acctest.Checksum("v1")
	w := acctest.NewWorkspace(t, config(acctest.Images, sum))
	w.Must("apply", "-auto-approve")
	w.Configure(config(acctest.Images, strings.ToUpper(sum)))
	acctest.NoChanges(t, w)

	mirror := strings.Replace(acctest.Images, "://", "://mirror.", 1)
	w.Configure(config(mirror, sum))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
	acctest.Mention(t, w.Must("apply", "saved"), "Image has another address", "0 added, 1 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	if got := site.InstanceInfo(s, node)["image_source"]; got != mirror+"v1.qcow2" {
		t.Errorf("Ironic has the address %v", got)
	}
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
}

// Content that is only spelled otherwise, and what is empty in the place of nothing, changes no machine and no counter.
func TestAccDeployment_spellingIsNoChange(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	spelled := func(meta, vendor, args string) string {
		return config(fmt.Sprintf("config_drive = { meta_data = %q, vendor_data = %q }", meta, vendor), fmt.Sprintf("deploy_steps = [{ "+
			"interface = \"deploy\", step = \"erase_devices_metadata\", priority = 90, args = %q }]", args))
	}
	w := acctest.NewWorkspace(t, spelled(`{"a":1,"b":"<x>"}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`))
	w.Must("apply", "-auto-approve")
	w.Configure(spelled(`{ "b": "\u003cx\u003e", "a": 1 }`, `{"b":2,"a":1}`, `{"b": 2, "a": 1}`))
	acctest.NoChanges(t, w)
	w.Configure(spelled(`{"a":2,"b":"<x>"}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`))
	acctest.Mention(t, w.Must("plan"), "changes (config_drive.meta_data): Ironic rebuilds it in place")
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")

	w.Configure(config(`config_drive = {}`, `instance_info = {}`))
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "rebuild", "rebuild")
	for _, settings := range [][]string{{`config_drive = { user_data = "", meta_data = "{}" }`}, {}, {`config_drive = { vendor_data = "{}" }`}} {
		w.Configure(config(settings...))
		wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
		w.Must("apply", "saved")
		acctest.NoChanges(t, w)
	}
	site.WantVerbs(t, s, node, "active", "rebuild", "rebuild")
	w.Must("destroy", "-auto-approve")
}

// A run that is killed after it has told Ironic the new address leaves an image that the next plan knows, also if Ironic has converted it and
// tells no checksum any more. An image of another client is still noticed.
func TestFakeDeployment_addressOfAKilledRun(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	s.Patch(node, "add", "/deploy_interface", "direct")
	config := func(folder string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), fmt.Sprintf("image = { url = %q, checksum = "+
			"\"d41d8cd98f00b204e9800998ecf8427e\", disk_format = \"qcow2\" }", "file:///"+folder+"/v1.qcow2"))
	}
	w := acctest.NewWorkspace(t, config("images"))
	w.Must("apply", "-auto-approve")
	before := w.State()
	w.Configure(config("mirror"))
	w.Must("apply", "-auto-approve")
	if info := site.InstanceInfo(s, node); info["image_checksum"] != nil || info["image_source"] != "file:///mirror/v1.qcow2" {
		t.Fatalf("Ironic has not converted the image, or not got the address: %v", info)
	}
	w.SetState(before)
	acctest.NoChanges(t, w)
	acctest.RunImage(s, node, "other")
	acctest.Mention(t, w.Must("plan"), "Rebuild wipes the root disk", "other.qcow2")
	w.Must("destroy", "-auto-approve")
}

// What the configuration of a deployment cannot see, the properties of the node, Ironic refuses before it touches the machine.
func TestAccDeployment_propertiesThatIronicRefuses(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", map[string]any{"deploy_interface": "direct", "automated_clean": false})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	for _, tt := range []struct {
		properties map[string]any
		says       string
	}{
		{map[string]any{"capabilities": "boot_mode:UEFI"}, "has an invalid value: 'UEFI'. Acceptable values are:"},
		{map[string]any{"root_device": map[string]any{"deviceName": "sda"}}, "deviceName"},
		{map[string]any{"root_device": map[string]any{"size": "500GB"}}, "500GB"},
	} {
		s.Patch(node, "replace", "/properties", tt.properties)
		acctest.Fails(t, w, acctest.Apply(), "failed validation", tt.says)
		w.Must("destroy", "-auto-approve")
	}
	site.WantVerbs(t, s, node)
	if site.InstanceInfo(s, node)["image_type"] != nil { // Ironic leaves it
		s.Patch(node, "remove", "/instance_info/image_type", nil)
	}
}
