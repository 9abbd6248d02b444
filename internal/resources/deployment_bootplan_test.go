package resources_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// bootsISOs are the fields of a node of the fake that can boot live ISOs.
func bootsISOs() map[string]any {
	return map[string]any{"driver": "redfish", "boot_interface": "redfish-virtual-media", "driver_info": map[string]any{"redfish_address": "https://192.0.2.1"}}
}

// unbuilt is the HCL of two deployments whose live ISO is built in the same apply, so that a plan does not know its URL.
// The proxy is shared; the network is only the second one's.
func unbuilt(s *acctest.Site, nodes [2]string, proxy, network string) string {
	return s.Provider() + fmt.Sprintf(`
locals { network = %[2]q }
resource "terraform_data" "iso" { triggers_replace = [%[1]q, local.network] }
resource "metal_deployment" "d" {
  count   = 2
  node_id = [%[3]q, %[4]q][count.index]
  live_iso = {
    url    = "http://images.invalid/${terraform_data.iso.id}.iso"
    shared = { infra_env = %[1]q }
    own    = count.index == 1 && local.network != "" ? { nmstate = local.network } : null
  }
}
`, proxy, network, nodes[0], nodes[1])
}

func TestFakeLiveISO_imageThatIsNotBuiltYetChangesOnlyTheMachineItConcerns(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	nodes := [2]string{addNode(t, s, "n0", bootsISOs()), addNode(t, s, "n1", bootsISOs())}
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
	mention(t, output, "Plan: 1 to add, 0 to change, 1 to destroy", "runs on, whatever the new image will be: only what all machines share has changed")
	w.Must("apply", "-auto-approve")
	wantCycles(1, 1)
	noChanges(t, w)

	w.Configure(unbuilt(s, nodes, "3", "a"))
	output, _ = w.Plan()
	mention(t, output, "Plan: 1 to add, 1 to change, 1 to destroy", "Machine is restarted with a new live ISO",
		"is restarted, if the image that is not known yet turns out to be another one: it got a configuration of its own")
	w.Must("apply", "-auto-approve")
	wantCycles(1, 2)
	noChanges(t, w)
}

func TestFakeLiveISO_whatIsSaidOfTheImageLaterOrNoMoreRestartsNothing(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	node := addNode(t, s, "n", bootsISOs())
	config := func(settings string) string {
		return s.Provider() + deployment(quoted(node), `config_drive = { hostname = "n" }`, `live_iso = {`+"\n    url = \"http://images.invalid/a.iso\"\n"+settings+"}")
	}
	w := acctest.NewWorkspace(t, config(""))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	for _, settings := range []string{
		"version = \"1\"\n built_at = \"2026-05-01T12:00:00Z\"\n shared = { infra_env = \"1\" }",
		`own = { nmstate = "1" }`, // waits for another image
		``,
	} {
		w.Configure(config(settings))
		w.Must("apply", "-auto-approve")
		noChanges(t, w)
	}
	w.Configure(config(`shared = { infra_env = "1" }`))
	w.Must("state", "rm", deploymentAddress)
	w.Must("import", deploymentAddress, node)
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	if cycles := s.Fake.PowerCycles(node); cycles != 1 {
		t.Errorf("the machine was started %d times", cycles)
	}
}
