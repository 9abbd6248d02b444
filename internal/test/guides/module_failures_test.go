package guides_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// One machine of the rack cannot be cleaned: the others are deployed in the same apply, and the next apply tries again.
func TestFakeModules_rackDeploysTheHealthyMachines(t *testing.T) {
	t.Parallel()
	m := startModule(t, "rack-discovery")
	const sick = "r12-RK000002"
	repaired := false
	m.site.Fake.Fail = func(node fakeironic.Node, verb string) string {
		if node.Name == sick && verb == "provide" && !repaired {
			return "the agent does not answer"
		}
		return ""
	}
	w := m.open(t, "examples/rack")
	output := acctest.Fails(t, w, acctest.Apply(), "Warning: Could not prepare node "+sick, "the agent does not answer",
		`on_failure = "warn"`, "Error: Could not deploy node", "Node "+sick+" (")
	if strings.Count(output, "Error:") != 1 {
		t.Errorf("more than the deployment of the machine fails:\n%s", output)
	}
	for n := range 4 {
		name, want := fmt.Sprintf("r12-RK%06d", n), "active"
		if name == sick {
			want = "clean failed"
		}
		if state := m.site.Node(name)["provision_state"]; state != want {
			t.Errorf("%s is %v, want %s", name, state, want)
		}
	}
	repaired = true
	wantChanges(t, w, map[string]string{ // the host is not tainted
		`module.rack12.metal_host.rack["` + sick + `"]`: "update", `metal_deployment.rack12["` + sick + `"]`: "create",
	})
	w.Must("apply", "saved")
	if state := m.site.Node(sick)["provision_state"]; state != "active" {
		t.Errorf("%s is %v after the repair", sick, state)
	}
	acctest.NoChanges(t, w)
	destroy(t, w)
}

// OneView users have two of the servers, one iLO has no address, and one has an IPv6 address.
func TestFakeModules_poolWithTakenServers(t *testing.T) {
	t.Parallel()
	m := startModule(t, "oneview-pool")
	w := m.open(t, "examples/pool")
	o := m.appliance
	more := o.Fake.AddBlades(3)
	o.Fake.EditHardware(more.Hardware[0], func(h *fakeoneview.Hardware) { h.ILOAddress = "" })
	o.Fake.EditHardware(more.Hardware[1], func(h *fakeoneview.Hardware) { h.ILOAddress = "2001:db8::5" })
	o.Take(1)
	o.Fake.TakeHardware(more.Hardware[2])
	nameOf := func(uri string) string { return "pool-" + strings.ToLower(o.Fake.HardwareAt(uri).SerialNumber) }
	taken := nameOf(o.Blades.Hardware[0])
	output := w.Must(acctest.Apply()...)
	acctest.Mention(t, output, "Host is used by OneView", "and one more similar warning elsewhere", "Resources: ")
	if deployed := strings.Count(w.Must("output", "deployments"), "/rest/server-profiles/"); deployed != 2 {
		t.Errorf("%d deployments, want 2", deployed)
	}
	node := m.site.Node(taken)
	if node["provision_state"] != "manageable" || node["maintenance_reason"] != "node in use by OneView" {
		t.Errorf("the host of a taken server is %v", node)
	}
	info, _ := m.site.Node(nameOf(more.Hardware[1]))["driver_info"].(map[string]any)
	if address := info["redfish_address"]; address != "https://[2001:db8::5]" {
		t.Errorf("the address of the iLO is %v", address)
	}
	if _, exists := m.site.Fake.Node(nameOf(more.Hardware[0])); exists {
		t.Error("a server without an address of its iLO has become a host")
	}
	w.Must(acctest.Apply()...)
	if again := m.site.Node(taken); again["uuid"] != node["uuid"] {
		t.Errorf("the host of a taken server was replaced: %v", again)
	}
	destroy(t, w)
	wantEmpty(t, m.site)
}

// A OneView user takes a reserved server: the apply fails until a pass of sync has taken its host out of service. Then another host is
// reserved.
func TestFakeModules_poolReservesAnotherServer(t *testing.T) {
	t.Parallel()
	m := startModule(t, "oneview-pool")
	w := m.open(t, "examples/pool")
	w.Must(append(acctest.Apply(), "-target=module.pool.metal_allocation.pool")...)
	before := site.AllocationNamed(m.site, "app-0")["node_uuid"]
	info, _ := m.site.Node(site.Text(before))["driver_info"].(map[string]any)
	m.appliance.Fake.TakeHardware(site.Text(info["server_hardware_uri"]))
	for range 2 {
		acctest.Fails(t, w, acctest.Apply(), "Could not give node")
	}
	if now := site.AllocationNamed(m.site, "app-0")["node_uuid"]; now != before {
		t.Errorf("app-0 has got node %v before the pass", now)
	}
	syncPass(t, m.site, m.appliance)
	w.Must(acctest.Apply()...)
	if now := site.AllocationNamed(m.site, "app-0")["node_uuid"]; now == before {
		t.Error("app-0 has kept the server that a user has taken")
	}
	destroy(t, w)
	wantEmpty(t, m.site)
}
