package host_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// expects is expect_hardware with a memory.
func expects(memory string) string {
	return "expect_hardware = { memory_mb = " + memory + ", cpu_arch = \"x86_64\", nics = [{ count = 2 }] }"
}

// delivered is a host whose machine is to enter the pool, and an allocation that reserves only machines with the right hardware.
func delivered(s *site.Site, class string, settings ...string) string {
	return hostConfig(s, append(settings, acctest.Target("available"), "resource_class = "+acctest.Quoted(class), inspects,
		`hardware_interfaces = { inspect = "agent" }`,
		`ports = { "52:54:00:aa:bb:01" = {}, "52:54:00:aa:bb:02" = { pxe_enabled = false } }`)...)
}

func allocationOf(class string) string {
	return "resource \"metal_allocation\" \"a\" {\n  resource_class = " + acctest.Quoted(class) +
		"\n  require = { hardware_as_expected = true }\n  depends_on = [metal_host.h]\n}\n"
}

// repaired gives a machine of the fake memory, as a technician does: the next inspection finds it.
func repaired(s *site.Site, node string, memory float64) {
	inventory, _ := fakeironic.SampleInventory(1)["inventory"].(map[string]any)
	inventory["memory"] = map[string]any{"physical_mb": memory}
	s.Fake.SetInventory(node, inventory, nil)
}

// A new machine without a DIMM stays out of the pool: the creation ends with a warning, later plans warn and do nothing, and no allocation
// reserves it. When the DIMM is there, another inspection lets it in. None of it asks twice for an inventory.
func TestFakeHostExpect_keepsNewMachineOut(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, delivered(s, "gpu", expects("147456")))
	output := w.Must(acctest.Apply()...)
	acctest.Mention(t, output, "Hardware is not as expected", "128 of 144 GiB of memory: a DIMM is missing", "stays out of the pool")
	node := s.Name("h")
	if state := s.Node(node)["provision_state"]; state != "manageable" {
		t.Fatalf("the machine is %v", state)
	}
	if n := inventories(s); n != 1 {
		t.Errorf("the apply has asked %d times for the inventory", n)
	}
	site.ForgetVerbs(s)
	acctest.Mention(t, w.Must("plan", "-detailed-exitcode"), "Hardware is not as expected", "128 of 144 GiB", "No changes")
	if n := inventories(s); n != 0 {
		t.Errorf("a plan has asked %d times for the inventory", n)
	}
	w.Configure(delivered(s, "gpu", expects("147456")) + allocationOf("gpu"))
	acctest.Fails(t, w, acctest.Apply(), "1 not available (1 manageable)")
	site.WantVerbs(t, s, node)

	repaired(s, node, 147456)
	w.Configure(delivered(s, "gpu", expects("147456"), recabled("1")))
	acctest.Mention(t, w.Must(acctest.Apply()...), "The apply inspects it again")
	if state := s.Node(node)["provision_state"]; state != "available" {
		t.Errorf("the repaired machine is %v", state)
	}
	acctest.NoChanges(t, w)
	w.Configure(delivered(s, "gpu", expects("147456"), recabled("1")) + allocationOf("gpu"))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

// Another wish lets a machine in without an inspection; nothing is done to one that is in the pool and does not fit a new wish, but
// allocations that ask for it do not reserve it.
func TestFakeHostExpect_leavesThePoolAlone(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, delivered(s, "gpu", expects("147456")))
	w.Must(acctest.Apply()...)
	node := s.Name("h")
	w.Configure(delivered(s, "gpu", expects("131072")))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "not as expected")
	if state := s.Node(node)["provision_state"]; state != "available" {
		t.Errorf("the machine is %v", state)
	}
	acctest.NoChanges(t, w)
	site.ForgetVerbs(s)
	w.Configure(delivered(s, "gpu", expects("262144")))
	acctest.Mention(t, w.Must(acctest.Apply()...), "128 of 256 GiB of memory: a DIMM is missing", "Nothing is done to the machine")
	site.WantVerbs(t, s, node)
	w.Configure(delivered(s, "gpu", expects("262144")) + allocationOf("gpu"))
	acctest.Fails(t, w, acctest.Apply(), "1 other hardware than expected")
	w.Configure(delivered(s, "gpu"))
	w.Must(acctest.Apply()...)
	if extra, _ := s.Node(node)["extra"].(map[string]any); extra["terraform_metal_hardware"] != nil {
		t.Errorf("the note of the hardware has stayed: %v", extra)
	}
	w.Configure(delivered(s, "gpu") + allocationOf("gpu"))
	acctest.Fails(t, w, acctest.Apply(), "1 without expect_hardware or inventory")
}

// What Ironic does not know of a machine keeps it from nothing, and the plan says so.
func TestAccHostExpect_hardwareWithoutInventory(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available"), expects("131072")))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Hardware is not known", "Set inspect = true")
	defer acctest.Destroy(t, s, w)
	if state := s.Node(s.Name("h"))["provision_state"]; state != "available" {
		t.Errorf("the machine is %v", state)
	}
	acctest.Mention(t, w.Must("plan", "-detailed-exitcode"), "Hardware is not known", "No changes")
}

// A key that does not exist is an error while nothing is planned yet.
func TestAccHostExpect_hardwareKeys(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	for value, want := range map[string]string{
		"{ memroy_mb = 131072 }":                `unknown key "memroy_mb"`,
		"{ \"Rack One\" = { cpus = 32 } }":      `unknown key "Rack One"`,
		"{ cpus = \"32\" }":                     "cpus is a JSON string",
		"{ disks = [{ count = 1, size = 1 }] }": `unknown key "size"`,
	} {
		w := acctest.NewWorkspace(t, hostConfig(s, "expect_hardware = "+value))
		if output := acctest.Fails(t, w, []string{"validate"}, want); !strings.Contains(output, "expect_hardware") {
			t.Errorf("%s: %s", value, output)
		}
	}
}
