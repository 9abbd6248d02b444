package machinetest_test

import (
	"fmt"
	"strings"
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

// TestMetal_aMachineIsBurnedInOnceItsDiskIsRepaired qualifies a machine whose second disk is bad, which keeps it out of the pool, and again
// with a good one. The burn-in of disks is refused while the node keeps one: it writes to all.
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

	qualified := c.host(acctest.Target("available"), `skip_block_devices = []`, `qualification = {
    steps = [for step in ["burnin_cpu", "burnin_memory", "burnin_disk"] : { interface = "deploy", step = step }]
    parameters = jsonencode({
      agent_burnin_cpu_timeout      = 20
      agent_burnin_vm_timeout       = "20"
      "agent_burnin_vm_vm-bytes"    = "50%"
      agent_burnin_fio_disk_runtime = 15
    })
    valid_for = "30d"
  }`)
	w.Configure(qualified)
	r.step("burn in with a bad disk", func() {
		acctest.Mention(t, w.Must(acctest.Apply()...), "Machine has failed its qualification", reason.ByID("burnin").Meaning,
			"fio (disk) failed", "put/output error", "The machine is in quarantine")
	})
	c.wantQualified("manageable", true)
	acctest.NoChanges(t, w)

	c.SpoilData(false)
	c.Command("ForceOff")
	c.awaitEndOfFastTrack()
	w.Configure(strings.Replace(qualified, "skip_block_devices = []", "skip_block_devices = []\n  retired = false", 1))
	r.step("burn in with a good disk", func() { w.Must(acctest.Apply()...) })
	c.wantQualified("available", false)
	if c.sumData() == sum {
		t.Error("the burn-in of disks has not written to the second one")
	}
	acctest.NoChanges(t, w)
}

// wantQualified fails the test unless the machine is in a state, has passed its qualification or has failed it and is retired, and its
// parameters are gone.
func (c *computer) wantQualified(state string, failed bool) {
	r := c.rack
	r.t.Helper()
	node := r.Node(r.Name("host"))
	note, _ := node["extra"].(map[string]any)["terraform_metal_qualification"].(map[string]any)
	info, _ := node["driver_info"].(map[string]any)
	r.t.Logf("the node is %v, and its note is %v", node["provision_state"], note)
	if node["provision_state"] != state || node["retired"] != failed || (note["failed"] != nil) != failed || (note["passed"] == nil) != failed {
		r.t.Errorf("the node is %v, retired %v: %v", node["provision_state"], node["retired"], note)
	}
	for key := range info {
		if strings.HasPrefix(key, "agent_burnin_") {
			r.t.Errorf("driver_info still has %s", key)
		}
	}
}
