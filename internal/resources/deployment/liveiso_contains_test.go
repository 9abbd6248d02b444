package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Without contains, content counts as in an image that changed after it, as far as an apply has seen: here with another shared content.
func TestAccLiveISO_contentYoungerThanItsImageWaits(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(version, shared, own string) string {
		live := fmt.Sprintf("url = %q\n shared_content = { proxy = %q }\n host_content = { nmstate = %q }", iso.URL(version), shared, own)
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), "live_iso = {\n"+live+"\n}") + fmt.Sprintf(`
data "metal_boot_status" "all" { live_iso = { %q = { %s } } }
output "data" { value = { for k in ["action", "obsolete", "stale"] : k => one(values(data.metal_boot_status.all.hosts))[k] } }
output "resource" { value = %s.boot_status }
`, node, live, acctest.DeploymentAddress)
	}
	w := acctest.NewWorkspace(t, config("v1", "1", "1"))
	w.Must("apply", "-auto-approve")
	for _, step := range []struct {
		version, shared, own, says, status string
		starts                             int
	}{
		{"v2", "2", "1", "only what all machines share has changed", `{"action":"none","obsolete":["shared.proxy"],"stale":true}`, 0},
		{
			"v2", "2", "2", "its own configuration changed after the image did",
			`{"action":"wait","obsolete":["host.nmstate","shared.proxy"],"stale":true}`, 0,
		},
		{"v3", "2", "2", "Machine is restarted with a new live ISO", `{"action":"none","obsolete":[],"stale":false}`, 1},
	} {
		watch := watchPower(t, s)
		w.Configure(config(step.version, step.shared, step.own))
		acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed", step.says)
		watch.wantStarts(t, s, map[string]int{node: step.starts})
		w.Must("apply", "-refresh-only", "-auto-approve")
		acctest.NoChanges(t, w)
		for _, name := range []string{"resource", "data"} {
			if got := strings.Join(strings.Fields(w.Must("output", "-json", name)), ""); !strings.HasSuffix(got, step.status) {
				t.Errorf("%s: the %s says %s, want %s", step.says, name, got, step.status)
			}
		}
	}
	w.Must("destroy", "-auto-approve")
}
