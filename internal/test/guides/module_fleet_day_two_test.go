package guides_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// These tests do to single machines of the module fleet what its pages say.

// With -target, one member loses its protection, and then moves. The others keep both, and so does the configuration.
func TestFakeModules_fleetMovesAProtectedMember(t *testing.T) {
	t.Parallel()
	w, s := openSpread(t)
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", `on_failure = "quarantine"`, "protected  = true\n      on_failure = \"quarantine\"")
	w.Must(acctest.Apply()...)
	closed := read(t, filepath.Join(w.Dir, "main.tf"))
	replaceIn(t, w, "main.tf", "protected  = true", "protected  = false")
	const member = `module.fleet.metal_deployment.member["web-1"]`
	wantChanges(t, w, map[string]string{member: "update"}, "-target="+member)
	w.Must("apply", "saved")
	write(t, filepath.Join(w.Dir, "main.tf"), closed)
	replaceIn(t, w, "main.tf", "max_per_domain = 1", "max_per_domain = 2\n        replace_members = { \"web-1\" = \"2026-11-27\" }")
	wantChanges(t, w, map[string]string{`module.fleet.metal_allocation_group.role["web"]`: "update", member: "delete create"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		if node := nodeOf(t, s, name); node["protected"] != true || node["provision_state"] != "active" {
			t.Errorf("%s is on %v: protected is %v, and its state %v", name, node["name"], node["protected"], node["provision_state"])
		}
	}
	replaceIn(t, w, "main.tf", "protected  = true", "protected  = false")
	w.Must(acctest.Apply()...)
}

// A member in rescue mode stays there: the module has no attribute for it, and metal begins and ends the rescue.
func TestFakeModules_fleetLeavesARescueToMetal(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/spread")
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", `resource_class = "compute"`, "resource_class = \"compute\"\n    driver_info = { rescue_kernel = "+
		"\"http://images.example.com/ipa.kernel\", rescue_ramdisk = \"http://images.example.com/ipa.initramfs\" }")
	replaceIn(t, w, "main.tf", "pxe_cards     = [1]", "pxe_cards     = [1]\n      hardware_interfaces = { rescue = \"agent\" }")
	w.Must(acctest.Apply()...)
	do(t, m.site, operate.Rescue("correct horse"), "rack1-01")
	acctest.Mention(t, w.Must("plan"), "Machine is in rescue mode", "No changes.")
	do(t, m.site, operate.Unrescue(), "rack1-01")
	acctest.NoChanges(t, w)
}

// A change that waits for the end of a deployment is in the output hosts, and the check of the example reports it.
func TestFakeModules_fleetReportsWaitingSettings(t *testing.T) {
	t.Parallel()
	w, _ := openSpread(t)
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", `LogicalProc = "Disabled"`, `LogicalProc = "Enabled"`)
	acctest.Mention(t, w.Must(acctest.Apply()...), "These machines wait: rack1-01 for bios_settings;")
	acctest.Mention(t, w.Must("plan"), "These machines wait: rack1-01 for bios_settings;")
}

// A second kind with on_active = "service" takes one line after the other, and -target chooses one machine of a kind.
func TestFakeModules_fleetServicesOneMachineAtATime(t *testing.T) {
	t.Parallel()
	w, s := openSpread(t)
	defer destroy(t, w)
	main := read(t, filepath.Join(w.Dir, "main.tf"))
	_, kind, _ := strings.Cut(main, "    r650 = {")
	kind, _, _ = strings.Cut(kind, "    r650-1g =")
	changed := strings.Replace(kind, "= local.bios", "= merge(local.bios, { LogicalProc = \"Enabled\" })\n      hardware_changes = "+
		"{ on_active = \"service\" }", 1)
	replaceIn(t, w, "main.tf", "    r650-1g =", "    r650-smt = {"+changed+"    r650-1g =")
	acctest.NoChanges(t, w)
	const first, second = `module.fleet.metal_host.machine["rack1-01"]`, `module.fleet.metal_host.machine["rack2-01"]`
	inService := func(host string, args ...string) {
		t.Helper()
		wantChanges(t, w, map[string]string{host: "update"}, args...)
		acctest.Mention(t, w.Must("show", "saved"), "cleanings", "1 -> 2")
		w.Must("apply", "saved")
	}
	replaceIn(t, w, "machines.csv", "01:81,r650,", "01:81,r650-smt,")
	inService(first)
	replaceIn(t, w, "machines.csv", "02:81,r650,", "02:81,r650-smt,")
	replaceIn(t, w, "machines.csv", "02:82,r650,", "02:82,r650-smt,")
	inService(second, "-target="+second)
	for name, want := range map[string]string{"rack1-01": "Enabled", "rack2-01": "Enabled", "rack2-02": "Disabled"} {
		settings, _ := s.Must(http.MethodGet, "nodes/"+name+"/bios", nil)["bios"].([]any)
		if !slices.ContainsFunc(settings, func(item any) bool {
			setting, _ := item.(map[string]any)
			return setting["name"] == "LogicalProc" && setting["value"] == want
		}) {
			t.Errorf("LogicalProc of %s is not %s: %v", name, want, settings)
		}
	}
}
