package deployment_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

func TestAccLiveISO_imageWithoutWantedContentWaits(t *testing.T) {
	t.Parallel()
	s, iso := acctest.Start(t, nil), acctest.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(version, own, contains string) string {
		live := fmt.Sprintf("url = %q\n host_content = { nmstate = %q }\n contains = { nmstate = %q }", iso.URL(version), own, contains)
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), "live_iso = {\n"+live+"\n}") + fmt.Sprintf(`
data "metal_boot_status" "all" { live_iso = { %q = { %s } } }
output "action" { value = one(values(data.metal_boot_status.all.hosts)).action }
`, node, live)
	}
	w := acctest.NewWorkspace(t, config("v1", "uid/1", "uid/0"))
	acctest.Fails(t, w, []string{"plan"}, "Live ISO lacks wanted content", "the image was built without host.nmstate")
	w.Configure(config("v1", "uid/1", "uid/1"))
	w.Must("apply", "-auto-approve")

	watch := watchPower(t, s)
	w.Configure(config("v2", "uid/2", "uid/1")) // v2 was built before the configuration changed
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "0 added, 1 changed, 0 destroyed", "Host waits for a newer live ISO",
		"its own configuration changed, and the image does not contain host.nmstate yet (obsolete: host.nmstate)", `action = "wait"`)
	acctest.NoChanges(t, w)
	watch.wantStarts(t, s, map[string]int{node: 0})

	watch = watchPower(t, s)
	w.Configure(config("v3", "uid/2", "uid/2"))
	w.Must("apply", "-auto-approve")
	watch.wantStarts(t, s, map[string]int{node: 1})
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 0 destroyed", `action = "none"`)
	w.Must("destroy", "-auto-approve")
}
