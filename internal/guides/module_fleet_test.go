package guides_test

import (
	"path/filepath"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// These tests change what the examples of the module fleet ask for.

func TestFakeModules_fleetPlansOnlyTheMachineThatChanges(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/csv")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)

	replaceIn(t, w, "machines.csv", "unit 2", "unit 22")
	host := `module.fleet.metal_host.machine["rack1-02"]`
	wantChanges(t, w, map[string]string{host: "update"})

	replaceIn(t, w, "machines.csv", "rack1-04,", "rack1-05,ipmi://192.0.2.15,52:54:00:0f:00:05,compute,,,,\nrack1-04,")
	added := `module.fleet.metal_host.machine["rack1-05"]`
	wantChanges(t, w, map[string]string{host: "update", added: "create"})
	w.Must(acctest.Apply()...)

	// A machine gets a role: only it is deployed.
	replaceIn(t, w, "machines.csv", "52:54:00:0f:00:05,compute,,", "52:54:00:0f:00:05,compute,,web")
	wantChanges(t, w, map[string]string{`module.fleet.metal_deployment.machine["rack1-05"]`: "create"})
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

func TestFakeModules_fleetGrowsByOneMachine(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/roles")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	replaceIn(t, w, "main.tf", "range(1, 5)", "range(1, 6)")
	wantChanges(t, w, map[string]string{`module.fleet.metal_host.machine["rack7-05"]`: "create"})
	replaceIn(t, w, "main.tf", "count = 2", "count = 3")
	wantChanges(t, w, map[string]string{
		`module.fleet.metal_host.machine["rack7-05"]`:      "create",
		`module.fleet.metal_allocation.member["worker-2"]`: "create",
		`module.fleet.metal_deployment.member["worker-2"]`: "create",
	})
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

func TestFakeModules_fleetRenamesAMachine(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/csv")
	defer destroy(t, w)
	machine := func(name, hostname string) {
		write(t, filepath.Join(w.Dir, "machines.csv"), "name,driver,role,hostname\n"+name+",fake-hardware,web,"+hostname+"\n")
	}
	machine("rack1-01", "")
	w.Must(acctest.Apply()...)
	machine("slot-1", "rack1-01")
	moved := ""
	for _, kind := range []string{"metal_host", "metal_deployment"} {
		moved += "moved {\n  from = module.fleet." + kind + ".machine[\"rack1-01\"]\n  to = module.fleet." + kind + ".machine[\"slot-1\"]\n}\n"
	}
	write(t, filepath.Join(w.Dir, "moved.tf"), moved)
	wantChanges(t, w, map[string]string{`module.fleet.metal_host.machine["slot-1"]`: "update"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
}
