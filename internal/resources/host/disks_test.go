package host_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const keepsOne = `skip_block_devices = [{ serial = "D2" }]`

// The node has the list from its creation on, so that no cleaning comes before it. What others remove is said, and set again.
func TestFakeHost_keepsDisksFromItsCreation(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, keepsOne))
	defer acctest.Destroy(t, s, w)
	w.Must("apply", "-auto-approve")
	for _, r := range s.Fake.Requests() {
		if r.Method == http.MethodPost && r.Path == "/v1/nodes" && !strings.Contains(r.Body, `"skip_block_devices":[{"serial":"D2"}]`) {
			t.Errorf("the node is created with %s", r.Body)
		}
	}
	acctest.NoChanges(t, w)
	s.Patch(s.Name("h"), "remove", "/properties/skip_block_devices", nil)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Disks are not kept any more", `serial = "D2"`, "skip_block_devices")
	w.Must("apply", "-auto-approve")
	properties, _ := s.Node(s.Name("h"))["properties"].(map[string]any)
	if want := []any{map[string]any{"serial": "D2"}}; !reflect.DeepEqual(properties["skip_block_devices"], want) {
		t.Errorf("after the next apply, properties are %v", properties)
	}
	w.Configure(hostConfig(s))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Disks are given up", "the next cleaning, such as that after an undeployment, wipes them")
}

func TestAccHost_keysWithAttributesAreRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	for setting, says := range map[string]string{
		`properties = { skip_block_devices = jsonencode([{ serial = "D2" }]) }`: "Set skip_block_devices of the host instead",
		`properties = { root_device = "D2" }`:                                   "Set root_device of the host instead",
		`properties = { capabilities = "a:b" }`:                                 "Set capabilities of the host instead",
		`driver_info = { cleaning_runbook = "r" }`:                              "Set cleaning_runbook of the host instead",
		`properties = { inject_files = jsonencode([]) }`:                        "reads a list of files there",
		`driver_info = { agent_burnin_fio_network_config = "{}" }`:              "reads an object there",
		`driver_info = { config_via_removable = "false" }`:                      `takes every text in config_via_removable for true`,
		`skip_block_devices = [{ seriall = "D2" }]`:                             `knows no hint "seriall"`,
		`skip_block_devices = [{ serial = "" }]`:                                "serial is empty",
		`skip_block_devices = [{}]`:                                             "an entry has no hint",
		`skip_block_devices = [{ volume_name = "osd", serial = "D2" }]`:         "ignores all other hints",
	} {
		w := acctest.NewWorkspace(t, hostConfig(s, setting))
		acctest.Fails(t, w, []string{"plan"}, says)
	}
}

// Undeploying and rebuilding say which disks are kept. A plan that replaces a deployment before its host keeps a disk is refused, also with
// -replace and after a taint, where the provider sees a creation alone.
func TestFakeHost_deploymentsSayWhatIsKept(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	disks := func(image, settings string) string {
		return hostConfig(s, acctest.Target("available"), "inspect = true", settings) + acctest.Deployment("metal_host.h.id",
			acctest.Image(image))
	}
	const data = `skip_block_devices = [{ size = "> 800" }]`
	w := acctest.NewWorkspace(t, disks("v1", data))
	w.Must("apply", "-auto-approve")
	const none = `skip_block_devices keeps: size = "> 800"`
	acctest.Mention(t, w.Must("plan", "-destroy"), "except on those that "+none)
	w.Configure(disks("v2", data))
	acctest.Mention(t, w.Must("plan"), "Rebuild keeps some disks", `names: size = "> 800"`)
	w.Configure(disks("v1", `skip_block_devices = [{ size = "> 800" }, { serial = "more" }]`))
	acctest.Fails(t, w, []string{"plan", "-replace=" + acctest.DeploymentAddress}, "Disks would be kept too late")
	w.Must("taint", acctest.DeploymentAddress)
	acctest.Fails(t, w, []string{"plan"}, "Disks would be kept too late")
	w.Must("untaint", acctest.DeploymentAddress)
	w.Must("apply", "-auto-approve")
	acctest.NeverMention(t, w.Must("plan", "-replace="+acctest.DeploymentAddress), "too late")
	w.Must("destroy", "-auto-approve")
}
