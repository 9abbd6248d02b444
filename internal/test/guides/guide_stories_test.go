package guides_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests follow what guides say about changes of their configurations.

func TestFakeGuide_switchingDiscoveryOffKeepsTheHosts(t *testing.T) {
	t.Parallel()
	w, main := guideWorkspace(t, rackOfThree(t), "discovery")
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	write(t, filepath.Join(w.Dir, "rack12.json"), w.Must("output", "-json", "rack12"))

	text := read(t, main)
	for _, block := range []string{"resource \"metal_discovery_import\"", "locals", "import", "output"} {
		text = withoutBlock(t, text, block)
	}
	text = strings.ReplaceAll(text, "each.value.bmc_address", "each.value") +
		"locals {\n  rack12 = jsondecode(file(\"${path.module}/rack12.json\"))\n}\n"
	write(t, main, text)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 1 destroyed")
	acctest.NoChanges(t, w)
}

func TestFakeGuide_removedMachineLeavesAndStaysOut(t *testing.T) {
	t.Parallel()
	s := rackOfThree(t)
	w, main := guideWorkspace(t, s, "discovery")
	defer destroy(t, w)
	write(t, main, strings.Replace(read(t, main), `target_state   = "manageable"`, `target_state   = "available"`, 1)+`
resource "metal_deployment" "rack12" {
  for_each = metal_host.rack12

  node_id = each.value.id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}
`)
	w.Must("apply", "-auto-approve")
	w.Setenv("TF_VAR_removed", `["RK000001"]`)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 2 destroyed",
		`metal_host.rack12["r12-RK000001"]: Destruction complete`)

	s.Fake.Set(s.Fake.Discover(fakeironic.SampleInventory(1)), "created_at", longAgo)
	acctest.NoChanges(t, w)
}

func TestFakeGuide_removedMachineThatAnAllocationHasChosen(t *testing.T) {
	t.Parallel()
	w, main := guideWorkspace(t, rackOfThree(t), "discovery")
	defer destroy(t, w)
	write(t, main, strings.Replace(read(t, main), `target_state   = "manageable"`, `target_state   = "available"`, 1)+`
resource "metal_allocation" "web" {
  count = 1

  name           = "web"
  resource_class = "baremetal"
  depends_on     = [metal_host.rack12]
}

resource "metal_deployment" "web" {
  count = 1

  node_id       = metal_allocation.web[count.index].node_id
  allocation_id = metal_allocation.web[count.index].id
  image = {
    url      = "http://images.example.com/debian-12.qcow2"
    checksum = "http://images.example.com/SHA256SUMS"
  }
}

output "web" {
  value = metal_allocation.web[0].node_name
}
`)
	w.Must("apply", "-auto-approve")
	chosen := strings.TrimSpace(w.Must("output", "-raw", "web"))
	w.Setenv("TF_VAR_removed", `["`+strings.TrimPrefix(chosen, "r12-")+`"]`)
	acctest.Fails(t, w, []string{"plan"}, "Deployed host is destroyed", "metal_host of node "+chosen, "-replace")
	acctest.Mention(t, w.Must("apply", "-auto-approve", "-replace=metal_allocation.web[0]"), "2 added, 1 changed, 3 destroyed")
	if now := strings.TrimSpace(w.Must("output", "-raw", "web")); now == chosen || now == "" {
		t.Errorf("the allocation has %q, before %q", now, chosen)
	}
	acctest.NoChanges(t, w)
}

// longAgo is a time before each discovered_before.
const longAgo = "2026-01-01T12:00:00Z"

// rackOfThree starts a fake that has discovered three machines.
func rackOfThree(t *testing.T) *site.Site {
	t.Helper()
	s := site.StartFake(t, &fakeironic.Server{Discovery: true})
	for n := range 3 {
		s.Fake.Set(s.Fake.Discover(fakeironic.SampleInventory(n)), "created_at", longAgo)
	}
	return s
}

func TestFakeGuide_liveISORestartsOnlyTheMachineWhoseNetworkChanges(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w, main := guideWorkspace(t, s, "live-iso")
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")

	write(t, main, strings.ReplaceAll(read(t, main), "[e1, e2]", "[e3, e4]"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), `metal_deployment.rack3["rack3-02"]: Modifications complete`,
		"1 added, 1 changed, 1 destroyed", `older = { "rack3-01" = toset([]) }`)

	rack, before := []string{"rack3-01", "rack3-02"}, map[string]int{}
	for _, node := range rack {
		before[node] = s.Fake.PowerCycles(node)
	}
	write(t, main, strings.ReplaceAll(read(t, main), ":3128", ":3129")) // the proxy of all machines
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 2 changed, 1 destroyed", "Host runs an older live ISO", `"shared.proxy"`)
	for _, node := range rack {
		if starts := s.Fake.PowerCycles(node); starts != before[node] { // the changes are those of boot_status
			t.Errorf("%s was started %d times, want %d", node, starts, before[node])
		}
	}
}

// guideWorkspace returns a workspace with the configuration of a guide, and the path of its main.tf.
func guideWorkspace(t *testing.T, s *site.Site, guide string) (w *acctest.Workspace, main string) {
	t.Helper()
	w = workspace(t, s, examples+"/guides/"+guide)
	w.Setenv("TF_VAR_bmc_password", "the password")
	main = filepath.Join(w.Dir, "main.tf")
	if text := read(t, main); moduleSource.MatchString(text) {
		write(t, main, localModules(t, text))
		w.Must("get")
	}
	return w, main
}

// withoutBlock removes the block with a header from a configuration.
func withoutBlock(t *testing.T, text, header string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, "\n"+header)
	_, after, closed := strings.Cut(rest, "\n}\n")
	if !found || !closed {
		t.Fatalf("no block %s", header)
	}
	return before + "\n" + after
}

func TestFakeGuide_dhcpKnowsTheMachinesBeforeTheyBoot(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	enrollRack(t, s)
	w, main := guideWorkspace(t, s, "reach-the-machine/dhcp")
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	macs := map[string]string{"rack1-01": "52:54:00:01:00:01", "rack1-02": "52:54:00:01:00:02"}
	var outputs map[string]struct{ Address, Node string }
	if err := json.Unmarshal([]byte(w.Must("output", "-json", "app")), &outputs); err != nil {
		t.Fatal(err)
	}
	for name, machine := range outputs {
		want := fmt.Sprintf("%s,%s,%s\n", macs[machine.Node], machine.Address, name)
		if got := read(t, filepath.Join(w.Dir, "dhcp-hosts", name)); got != want {
			t.Errorf("dnsmasq is told %q of %s, want %q", got, name, want)
		}
	}
	if len(outputs) != 2 {
		t.Errorf("the outputs are %v", outputs)
	}

	write(t, main, strings.Replace(read(t, main), "203.0.113.22", "203.0.113.32", 1)) // touches no machine
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 0 changed, 1 destroyed", `terraform_data.reservation["app-2"]`)
	acctest.NoChanges(t, w)

	// concerns no other machine
	write(t, main, strings.Replace(read(t, main), "addresses = { ", `addresses = { app-3 = "203.0.113.33", `, 1))
	output, _ := w.Plan()
	acctest.Mention(t, output, "3 to add, 0 to change, 0 to destroy")
}

// The page about hardware settings lists the names of the BIOS before a configuration sets any.
func TestFakeGuide_biosNamesAreListedOfAVerifiedHost(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	enrollRunning(t, s)
	w := exampleWorkspace(t, s, strings.Replace(read(t, examples+"/data-sources/metal_host/data-source_bios.tf"), "rack1-01", "db-01", 1))
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	var settings map[string]string
	var names []string
	for output, into := range map[string]any{"bios_settings": &settings, "hyper_threading": &names} {
		if err := json.Unmarshal([]byte(w.Must("output", "-json", output)), into); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"AssetTag": "? (String)", "BootMode": "Uefi (Bios, Uefi)",
		"LogicalProc": "Enabled (Enabled, Disabled)", "NumberOfCores": "0 (Integer)",
	} {
		if settings[name] != want {
			t.Errorf("%s is listed as %q, want %q", name, settings[name], want)
		}
	}
	if !slices.Equal(names, []string{"LogicalProc"}) {
		t.Errorf("hyper-threading is called %q", names)
	}
}

func TestFakeGuide_dayTwo(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w, _ := guideWorkspace(t, s, "day-two")
	defer destroy(t, w)
	w.Setenv("TF_VAR_rescue_password", "a password")
	w.Must("apply", "-auto-approve")
	for _, task := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"-var", "kernel=6.12.9"}, "Machine is restarted"},
		{[]string{"-var", "kernel=6.12.9", "-var", "rescue=1"}, `"active" -> "rescue"`},
		{[]string{"-var", "kernel=6.12.9"}, "Machine leaves rescue mode"},
		{[]string{"-var", "kernel=6.12.9", "-var", "month=2026-12"}, "Rebuild wipes the root disk"},
	} {
		output := w.Must(append([]string{"apply", "-auto-approve"}, task.arguments...)...)
		acctest.Mention(t, output, task.want, "0 added, 1 changed, 0 destroyed")
	}

	dead := site.Text(s.Must(http.MethodGet, "allocations/web", nil)["node_uuid"])
	hosts := `{ rack1-01 = "192.0.2.11" }`
	if s.Node(dead)["name"] == "rack1-01" {
		hosts = `{ rack1-02 = "192.0.2.12" }`
	}
	s.Must(http.MethodPut, "nodes/"+dead+"/maintenance", map[string]any{"reason": "dead"})
	s.Must(http.MethodDelete, "nodes/"+dead, nil)
	w.Setenv("TF_VAR_hosts", hosts)
	w.Setenv("TF_VAR_kernel", "6.12.9")
	w.Setenv("TF_VAR_month", "2026-12")
	acctest.Mention(t, acctest.Fails(t, w, []string{"plan"}), "Ironic has lost the record of a machine")
	lost := filepath.Join(w.Dir, "lost.tf")
	write(t, lost, `provider "metal" { lost_records = "recreate" }`)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "2 added, 0 changed, 0 destroyed")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	if now := s.Must(http.MethodGet, "allocations/web", nil)["node_uuid"]; now == dead || now == nil {
		t.Errorf("the allocation has node %v", now)
	}
	acctest.NoChanges(t, w)
}
