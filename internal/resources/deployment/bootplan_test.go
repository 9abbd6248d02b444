package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// bootsISOs are the fields of a node of the fake that can boot live ISOs.
func bootsISOs() map[string]any {
	return map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media",
		"driver_info": map[string]any{"redfish_address": "https://192.0.2.1"},
	}
}

// unbuilt is the HCL of two deployments whose live ISO is built in the same apply, so that a plan does not know its URL.
// The proxy is shared; the network is only the second one's.
func unbuilt(s *site.Site, nodes [2]string, proxy, network string) string {
	return s.Provider() + fmt.Sprintf(`
locals { network = %[2]q }
resource "terraform_data" "iso" { triggers_replace = [%[1]q, local.network] }
resource "metal_deployment" "d" {
  count   = 2
  node_id = [%[3]q, %[4]q][count.index]
  live_iso = {
    url            = "http://images.invalid/${terraform_data.iso.id}.iso"
    quiet_period   = "0s"
    shared_content = { infra_env = %[1]q }
    host_content   = count.index == 1 && local.network != "" ? { nmstate = local.network } : null
  }
}
`, proxy, network, nodes[0], nodes[1])
}

func TestFakeLiveISO_unbuiltImageChangesItsMachineOnly(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	nodes := [2]string{site.AddNode(t, s, "n0", bootsISOs()), site.AddNode(t, s, "n1", bootsISOs())}
	w := acctest.NewWorkspace(t, unbuilt(s, nodes, "1", ""))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	wantCycles := func(first, second int) {
		t.Helper()
		if a, b := s.Fake.PowerCycles(nodes[0]), s.Fake.PowerCycles(nodes[1]); a != first || b != second {
			t.Errorf("the machines were started %d and %d times, want %d and %d", a, b, first, second)
		}
	}
	wantCycles(1, 1)

	// Known and shared changes with a URL that is not known: the plan during apply may not take back what was planned.
	w.Configure(unbuilt(s, nodes, "2", ""))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Plan: 1 to add, 2 to change, 1 to destroy", "keeps running, whatever the new image will be: only what "+
		"all machines share has changed")
	w.Must("apply", "-auto-approve")
	wantCycles(1, 1)
	acctest.NoChanges(t, w)

	w.Configure(unbuilt(s, nodes, "3", "a"))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Plan: 1 to add, 1 to change, 1 to destroy", "Machine is restarted with a new live ISO",
		"is restarted, if the image that is not known yet turns out to be another one: it got a configuration of its own")
	w.Must("apply", "-auto-approve")
	wantCycles(1, 2)
	acctest.NoChanges(t, w)
}

func TestFakeLiveISO_addedImageDetailsRestartNothing(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", bootsISOs())
	config := func(settings string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), `config_drive = { hostname = "n" }`, `live_iso = {`+
			"\n    url = \"http://images.invalid/a.iso\"\n    quiet_period = \"0s\"\n"+settings+"}")
	}
	w := acctest.NewWorkspace(t, config(""))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	for _, settings := range []string{
		"version = \"1\"\n built_at = \"2026-05-01T12:00:00Z\"\n shared_content = { infra_env = \"1\" }",
		`host_content = { nmstate = "1" }`, // waits for another image
		``,
	} {
		w.Configure(config(settings))
		w.Must("apply", "-auto-approve")
		acctest.NoChanges(t, w)
	}
	w.Configure(config(`shared_content = { infra_env = "1" }`))
	w.Must("state", "rm", acctest.DeploymentAddress)
	w.Must("import", acctest.DeploymentAddress, node)
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	if cycles := s.Fake.PowerCycles(node); cycles != 1 {
		t.Errorf("the machine was started %d times", cycles)
	}
}

// TestFakeLiveISO_bootStatusSaysWhatTheDataSourceSays compares boot_status of a deployment with what the data source says of the same
// live_iso.
func TestFakeLiveISO_bootStatusSaysWhatTheDataSourceSays(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", bootsISOs())
	config := func(image, settings string) string {
		live := fmt.Sprintf("{\n    url = \"http://images.invalid/%s.iso\"\n    quiet_period = \"0s\"\n%s\n}", image, settings)
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), "live_iso = "+live) + fmt.Sprintf(`
data "metal_boot_status" "all" { live_iso = { %[1]q = %[2]s } }
output "resource" { value = %[3]s.boot_status }
output "data" { value = { for k in ["action", "obsolete", "stale"] : k => data.metal_boot_status.all.hosts[%[1]q][k] } }
`, node, live, acctest.DeploymentAddress)
	}
	w := acctest.NewWorkspace(t, config("a", ""))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	wantBoth := func(when, want string) {
		t.Helper()
		w.Must("apply", "-refresh-only", "-auto-approve")
		for _, name := range []string{"resource", "data"} {
			if got := strings.Join(strings.Fields(w.Must("output", "-json", name)), ""); !strings.HasSuffix(got, want) {
				t.Errorf("%s: the %s says %s, want %s", when, name, got, want)
			}
		}
	}
	wantBothAfter := func(when, want string) { // the state says it without a refresh, too
		t.Helper()
		w.Must("apply", "-auto-approve")
		if got := strings.Join(strings.Fields(w.Must("output", "-json", "resource")), ""); !strings.HasSuffix(got, want) {
			t.Errorf("%s: the state says %s before a refresh, want %s", when, got, want)
		}
		wantBoth(when, want)
	}
	wantBoth("after the first boot", `{"action":"none","obsolete":[],"stale":false}`)
	own := func(version string) string { return fmt.Sprintf("host_content = { nmstate = %q }", version) }
	w.Configure(config("a", own("1")))
	wantBothAfter("while it waits for another image", `{"action":"wait","obsolete":["host.nmstate"],"stale":true}`)
	w.Configure(config("b", own("1")))
	wantBothAfter("after the restart", `{"action":"none","obsolete":[],"stale":false}`)
	s.Fake.Set(node, "driver_info", map[string]any{}) // Ironic cannot switch its power
	w.Configure(config("c", own("2")))
	wantBothAfter("until a person restarts it", `{"action":"manual","obsolete":["host.nmstate"],"stale":true}`)
	s.Fake.Set(node, "driver_info", bootsISOs()["driver_info"])
	s.Fake.Set(node, "extra", map[string]any{})
	wantBoth("without a record", `{"action":"none","obsolete":["unknown"],"stale":false}`)
}
