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
		`skip_block_devices = [{ seriall = "D2" }]`:                             `knows no hint "seriall"`,
		`skip_block_devices = [{ serial = "" }]`:                                "serial is empty",
		`skip_block_devices = [{}]`:                                             "an entry has no hint",
		`skip_block_devices = [{ volume_name = "osd", serial = "D2" }]`:         "ignores all other hints",
	} {
		w := acctest.NewWorkspace(t, hostConfig(s, setting))
		acctest.Fails(t, w, []string{"plan"}, says)
	}
}

// Undeploying says which disks the cleaning keeps.
func TestFakeHost_undeployingSaysWhatIsKept(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	s.Patch(node, "add", "/properties/skip_block_devices", []any{map[string]any{"serial": "D2"}})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	acctest.Mention(t, w.Must("plan", "-destroy"), `except on those that skip_block_devices keeps: serial = "D2"`)
	w.Must("destroy", "-auto-approve")
}
