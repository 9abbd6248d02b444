package allocation_test

import (
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

// hardware are properties of a node.
func hardware(cpus, memoryMB, localGB int) map[string]any {
	return map[string]any{"properties": map[string]any{
		"cpus": cpus, "memory_mb": memoryMB, "local_gb": localGB, "cpu_arch": "x86_64", "vendor": "Dell Inc.",
		"capabilities": "boot_mode:uefi",
	}}
}

// require returns the HCL of the attribute.
func require(settings ...string) string { return "require = { " + strings.Join(settings, ", ") + " }" }

func TestAccAllocation_requireLimitsTheSearchOnly(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "small", hardware(8, 16384, 100))
	big := site.AddNode(t, s, "big", hardware(32, 131072, 900))
	site.AddNode(t, s, "out", hardware(32, 131072, 900))
	all := []string{
		"min_cpus = 16", "min_memory_mb = 65536", "min_disk_gb = 400", `cpu_arch = "x86_64"`, `manufacturer = "^Dell"`, "product = null",
		`capabilities = { boot_mode = "uefi" }`, `conductor_group = ""`, "exclude = [" + acctest.Quoted(s.Name("out")) + "]",
	}
	config := func(settings ...string) string {
		return s.Provider() + acctest.Allocation(s, settings...) + acctest.Allocated(acctest.Image("v1"))
	}
	w := acctest.NewWorkspace(t, config(require(all...), `name = `+acctest.Quoted(s.Name("web"))))
	w.Must("apply", "-auto-approve")
	if node := acctest.InState(t, w, acctest.AllocationAddress).Values["node_id"]; node != big {
		t.Fatalf("node %v is reserved, want %s", node, big)
	}
	acctest.NoChanges(t, w)
	site.ForgetVerbs(s)

	for name, step := range map[string]struct {
		setting  string
		mentions []string
		never    string
	}{
		"still met": {require("min_cpus = 32"), []string{"No changes."}, "Warning:"},
		"not met": {require("min_cpus = 64"), []string{
			"No changes.", "Reserved node does not meet require", "(below min_cpus)",
			"Without -replace, it stays reserved",
		}, "must be replaced"},
		"in exclude": {
			require("exclude = [" + acctest.Quoted(s.Name("big")) + "]"),
			[]string{"No changes.", "(in exclude)"},
			"must be replaced",
		},
		"not known yet": {
			require("min_cpus = length(terraform_data.a.id)") + "\n}\nresource \"terraform_data\" \"a\" {",
			[]string{"1 to add, 0 to change, 0 to destroy"},
			"Warning:",
		},
		"removed": {"", []string{"0 to add, 1 to change, 0 to destroy"}, "Warning:"},
	} {
		w.Configure(config(`name = `+acctest.Quoted(s.Name("web")), step.setting))
		output, _ := w.Plan()
		acctest.Mention(t, output, step.mentions...)
		acctest.NeverMention(t, output, step.never)
		if t.Failed() {
			t.Fatalf("%s:\n%s", name, output)
		}
	}
	w.Configure(config(`name = ` + acctest.Quoted(s.Name("web"))))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(config(`name = `+acctest.Quoted(s.Name("web")), require("min_cpus = 64")))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	acctest.NoDrift(t, w)
	wantUntouched(t, s, big)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_requireIsExplained(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", hardware(8, 16384, 100))
	site.AddNode(t, s, "n2", hardware(16, 16384, 100))
	dark := site.AddNode(t, s, "n3", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, require("min_cpus = 16", "min_memory_mb = 65536")))
	output, _ := w.Plan()
	reasons := []string{"0 of ", "1 below min_cpus", "1 below min_memory_mb", "1 without data for min_cpus"}
	if s.Fake != nil { // it answers that the node has an inventory
		s.Fake.SetInventory(dark, map[string]any{}, nil)
		output, _ = w.Plan()
	}
	acctest.Mention(t, output, append(reasons, "Warning: No node matches now")...)
	acctest.Fails(t, w, acctest.Apply(), append(reasons, "Could not allocate a node", "or require less")...)
	if status, answer := s.Call(http.MethodGet, "allocations?resource_class="+s.Class(), nil); status != http.StatusOK ||
		len(answer["allocations"].([]any)) > 0 {
		t.Errorf("left in Ironic: %v", answer)
	}
	s.Patch(dark, "add", "/properties/cpus", 64)
	s.Patch(dark, "add", "/properties/memory_mb", 65536)
	output = w.Must("apply", "-auto-approve")
	acctest.NeverMention(t, output, "Warning: No node")
	w.Must("destroy", "-auto-approve")
}

func TestFakeAllocation_requireReadsInventories(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	s := site.StartFake(t, fake)
	inspected := site.AddNode(t, s, "n1", nil)
	site.AddNode(t, s, "n2", nil)
	fake.SetInventory(inspected, map[string]any{
		"system_vendor": map[string]any{"manufacturer": "HPE", "product_name": "ProLiant DL380"},
		"disks":         []any{map[string]any{"name": "/dev/nvme0n1", "size": 960e9, "rotational": false}},
		"interfaces":    []any{map[string]any{"name": "eno1", "mac_address": s.MAC(1), "speed_mbps": 25000}},
	}, nil)
	w := acctest.NewWorkspace(t, s.Provider()+
		acctest.Allocation(s, require(`disk_type = "nvme"`, "min_disk_gb = 894", "min_nic_mbps = 25000", `product = "DL3[68]0"`)))
	w.Must("apply", "-auto-approve")
	if node := acctest.InState(t, w, acctest.AllocationAddress).Values["node_id"]; node != inspected {
		t.Errorf("node %v is reserved, want %s", node, inspected)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A node is reserved only if its cables are as its host expects.
func TestFakeAllocation_requireDemandsCabling(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{LLDP: func(mac string) []any {
		return fakeironic.Announcement("52:54:00:ee:00:01", "leaf-1", "swp"+mac[len(mac)-1:])
	}})
	host := func(name string, n int, port string) string {
		return fmt.Sprintf(`
resource "metal_host" %q {
  name           = %q
  bmc            = { address = "redfish-virtualmedia://192.0.2.%d/redfish/v1/Systems/1", username = "root", password = "calvin" }
  resource_class = %q
  inspect        = true
  target_state   = "available"
  ports          = { %q = { expect_neighbor = { switch = "leaf-1", port = %q } } }
}
`, name, s.Name(name), n, s.Class(), s.MAC(n), port)
	}
	w := acctest.NewWorkspace(t, s.Provider()+host("wrong", 1, "swp7")+host("right", 2, "swp2"))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + host("wrong", 1, "swp7") + host("right", 2, "swp2") + acctest.Allocation(s, require("cabling = true"),
		"depends_on = [metal_host.right, metal_host.wrong]"))
	w.Must("apply", "-auto-approve")
	if node, right := acctest.InState(t, w, acctest.AllocationAddress).Values["node_id"],
		acctest.InState(t, w, "metal_host.right").Values["id"]; node != right {
		t.Errorf("node %v is reserved, want %v", node, right)
	}
	output, changes := w.Plan()
	acctest.Mention(t, output, "Cables of host "+s.Name("wrong")+" are not as expected")
	if changes {
		t.Errorf("the plan has changes:\n%s", output)
	}
	acctest.Destroy(t, s, w)
}

func TestAccAllocation_requireIsValidated(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	for setting, want := range map[string][]string{
		require("min_cpus = 0"):                                 {"must be at least 1"},
		require(`disk_type = "tape"`):                           {"value must be one of"},
		require(`manufacturer = "("`):                           {"Not a regular expression"},
		require(`capabilities = { "a:b" = "c" }`):               {"Not a capability"},
		require(`exclude = [""]`):                               {"string length must be at least 1"},
		`wait_for_capacity = "soon"`:                            {"Not a duration"},
		`backfill_node = "n1"` + "\n" + require("min_cpus = 1"): {"cannot be specified when"},
		`backfill_node = "n1"` + "\nwait_for_capacity = \"1m\"": {"cannot be specified when"},
	} {
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, setting))
		acctest.Fails(t, w, []string{"validate"}, want...)
	}
	for _, setting := range []string{"min_nic_mbps = 1000", `disk_type = "ssd"`} {
		w := acctest.NewWorkspace(t, s.Provider(`microversion = "1.80"`)+acctest.Allocation(s, require(setting)))
		name, _, _ := strings.Cut(setting, " ")
		acctest.Fails(t, w, []string{"plan"}, "equire."+name+" needs API 1.81 of Ironic, but 1.80 is in use")
	}
}

// An allocation that does not wait for the hosts of its configuration fails, and says what is missing.
func TestAccAllocation_raceWithItsHostsIsExplained(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{
		"driver": "fake-hardware", "name": s.Name("n1"),
		"resource_class": s.Class(),
	})["uuid"])
	t.Cleanup(func() { s.Must(http.MethodDelete, "nodes/"+id, nil) })
	for _, setting := range []string{"", require("min_cpus = 1")} {
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, setting))
		acctest.Fails(t, w, acctest.Apply(), "1 not available (1 enroll)", "Nodes of this class may become available soon (1 enroll)",
			"add depends_on with those metal_host resources", "set wait_for_capacity")
	}
	w := acctest.NewWorkspace(t, s.Provider()+`resource "metal_allocation" "a" { resource_class = `+acctest.Quoted(s.Name("none"))+` }`)
	acctest.Fails(t, w, acctest.Apply(), `No node has the class "`+s.Name("none")+`"`, "add depends_on with those metal_host resources")
}

func TestAccAllocation_waitsForCapacity(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string]string{"what Ironic matches": "", "require": require("min_cpus = 16")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			node := site.AddNode(t, s, "n1", hardware(32, 131072, 900))
			s.Verb(node, "manage", "manageable")
			s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
			config := s.Provider() + acctest.Allocation(s, `wait_for_capacity = "10m"`, setting, "name = "+acctest.Quoted(s.Name("web")))
			w := acctest.NewWorkspace(t, config)
			output, _ := w.Plan()
			acctest.Mention(t, output, "No node matches now", "The apply waits up to 10m0s for such a node (wait_for_capacity)")

			w.Setenv("TF_LOG_PROVIDER", "INFO")
			waits := func() *acctest.Running {
				log := filepath.Join(t.TempDir(), "log")
				w.Setenv("TF_LOG_PATH", log)
				running := w.Start("apply", "-auto-approve")
				site.Until(t, "the apply to wait", func() bool {
					text, _ := os.ReadFile(log) // it does not exist at once
					return strings.Contains(string(text), "allocation waits for a node")
				})
				return running
			}
			output = acctest.Interrupt(t, waits())
			acctest.Mention(t, output, "Error: ", "allocate a node for "+s.Name("web"))
			if acctest.InState(t, w, acctest.AllocationAddress) != nil || site.AllocationNamed(s, s.Name("web")) != nil {
				t.Errorf("an interrupted wait has left something:\n%s", w.State())
			}

			running := waits()
			s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
			s.Verb(node, "provide", "available")
			if output, code := running.Wait(); code != 0 {
				t.Fatalf("the apply failed:\n%s", output)
			}
			acctest.NoChanges(t, w)
			w.Configure(strings.Replace(config, `wait_for_capacity = "10m"`, "", 1))
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// addFleet makes available nodes with 32 CPUs, all at once.
func addFleet(t *testing.T, s *site.Site, n int) {
	t.Helper()
	if s.Fake != nil {
		s.Fake.AddFleet(n, s.Class())
		return
	}
	var ids []string
	for i := range n {
		id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{
			"driver": "fake-hardware", "name": s.Name(fmt.Sprintf("f%d", i)), "resource_class": s.Class(), "automated_clean": false,
			"properties": map[string]any{"cpus": 32},
		})["uuid"])
		t.Cleanup(func() { site.RemoveNode(t, s, id) })
		ids = append(ids, id)
		s.Must(http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "power off"})
	}
	for _, id := range ids {
		s.Await(id, "power_state", "power off")
		s.Verb(id, "manage", "manageable")
		s.Verb(id, "provide", "available")
	}
}

// As many allocations as nodes, all at once. Half of them have requirements.
func TestAccAllocation_asManyAsNodes(t *testing.T) {
	t.Parallel()
	s, nodes := site.Start(t, nil), 50
	if s.Fake == nil {
		nodes = 10 // a real Ironic needs seconds for each
	}
	addFleet(t, s, nodes)
	w := acctest.NewWorkspace(t, s.Provider()+fmt.Sprintf(`
resource "metal_allocation" "a" {
  count          = %[2]d
  resource_class = %[1]q
}
resource "metal_allocation" "b" {
  count          = %[2]d
  resource_class = %[1]q
  require        = { min_cpus = 16 }
}
output "nodes" { value = concat(metal_allocation.a[*].node_id, metal_allocation.b[*].node_id) }
`, s.Class(), nodes/2))
	w.Must("apply", "-auto-approve", "-parallelism=50")
	var reserved []string
	for line := range strings.SplitSeq(w.Must("output", "-json", "nodes"), ",") {
		reserved = append(reserved, strings.Trim(line, "[]\" \n"))
	}
	slices.Sort(reserved)
	if got := slices.Compact(reserved); len(got) != nodes {
		t.Errorf("%d nodes are reserved, want %d", len(got), nodes)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve", "-parallelism=50")
}
