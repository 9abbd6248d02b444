package machinetest_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// burnIn returns a manual cleaning with burn-in steps of the agent, such as burnin_cpu. They need stress-ng and fio in the ramdisk.
func (c *computer) burnIn(steps ...string) acctest.Action {
	var all []any
	for _, step := range steps {
		all = append(all, map[string]any{"interface": "deploy", "step": step})
	}
	return acctest.Action{Type: "metal_clean", Config: map[string]any{
		"node_id": site.Text(c.rack.Node(c.rack.Name("host"))["uuid"]), "erase": true, "steps": all,
	}}
}

// TestMetal_aMachineIsBurnedInOnceItsDiskIsRepaired burns a machine in whose second disk is bad, and again with a good one. The burn-in of
// disks is refused while the node keeps one: it writes to all.
func TestMetal_aMachineIsBurnedInOnceItsDiskIsRepaired(t *testing.T) {
	t.Parallel()
	r := startRack(t, provisioning)
	c := r.machineWith(1, diskBytes, dataBytes)
	sum := c.fillData()
	c.SpoilData(true)
	host := func(kept string) string {
		return c.host("skip_block_devices = ["+kept+"]", `driver_info = {
    agent_burnin_cpu_timeout      = "10"
    agent_burnin_vm_timeout       = "10"
    agent_burnin_vm_vm-bytes      = "50%"
    agent_burnin_fio_disk_runtime = "15"
  }`)
	}
	w := r.workspace(host(fmt.Sprintf("{ wwn = %q }", c.DataWWN())))
	defer acctest.Destroy(t, r.Site, w)
	r.step("enroll", func() { w.Must(acctest.Apply()...) })
	acctest.Refuses(t, r.Site, c.burnIn("burnin_cpu", "burnin_disk"), "skip_block_devices keeps", c.DataWWN())
	r.step("burn in the processor and the memory", func() { acctest.Works(t, r.Site, c.burnIn("burnin_cpu", "burnin_memory")) })
	if c.sumData() != sum {
		t.Error("the burn-in of the processor and the memory has written to the disk")
	}

	w.Configure(host(""))
	w.Must(acctest.Apply()...)
	r.step("burn in with a bad disk", func() {
		acctest.Refuses(t, r.Site, c.burnIn("burnin_disk"), reason.ByID("burnin").Meaning, "fio (disk) failed", "put/output error")
	})
	node := r.Node(r.Name("host"))
	t.Logf("Ironic says %q", node["last_error"])
	if node["provision_state"] != "clean failed" || node["fault"] != "clean failure" {
		t.Errorf("the node is in state %v with the fault %v", node["provision_state"], node["fault"])
	}

	c.SpoilData(false)
	c.Command("ForceOff")
	c.awaitEndOfFastTrack()
	w.Must(acctest.Apply()...)
	r.step("burn in with a good disk", func() { acctest.Works(t, r.Site, c.burnIn("burnin_disk")) })
	if c.sumData() == sum {
		t.Error("the burn-in of disks has not written to the second one")
	}
}
