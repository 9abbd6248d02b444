package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// qualifiedBy is a host that enters the pool after a step, and an allocation that asks for that.
func qualifiedBy(s *site.Site, step string) string {
	class := acctest.Quoted(s.Name("qualified"))
	return hostConfig(s, acctest.Target("available"), "resource_class = "+class, `qualification = {
    steps      = [{ interface = "bios", step = "`+step+`" }]
    parameters = jsonencode({ agent_burnin_cpu_timeout = 60 })
    valid_for  = "90d"
    timeout    = "1h"
  }`) + "resource \"metal_allocation\" \"a\" {\n  resource_class = " + class + "\n  name = " + acctest.Quoted(s.Name("a")) +
		"\n  require = { qualified_within = \"30d\" }\n  depends_on = [metal_host.h]\n}\n"
}

// A machine enters the pool when its steps have run, and no step that Ironic does not know keeps it out for good: that speaks against the
// request. The parameters of the steps are on the node for that time only.
func TestAccHostQualification_entersThePoolByIt(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, qualifiedBy(s, "no_such_step"))
	defer acctest.Destroy(t, s, w)
	acctest.Fails(t, w, acctest.Apply(), "Machine has failed its qualification", "reason step-invalid", "The next apply qualifies it again",
		"not available")
	if node := s.Node(s.Name("h")); node["provision_state"] != "clean failed" || node["retired"] != false {
		t.Errorf("the machine is %v, retired %v", node["provision_state"], node["retired"])
	}
	w.Configure(qualifiedBy(s, "factory_reset"))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	node := s.Node(s.Name("h"))
	note, _ := node["extra"].(map[string]any)["terraform_metal_qualification"].(map[string]any)
	if note["passed"] == nil || note["begun"] != nil || node["instance_uuid"] == nil {
		t.Errorf("the machine is reserved by %v: %v", node["instance_uuid"], note)
	}
	for key := range node["driver_info"].(map[string]any) {
		if strings.HasPrefix(key, "agent_burnin_") {
			t.Errorf("driver_info still has %s", key)
		}
	}
}

// What the plan can know of a qualification, it says before anything happens: a runbook has to exist, and a parameter stands in one place.
func TestFakeHostQualification_planKnowsIt(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	host := func(qualification string, more ...string) string {
		return hostConfig(s, append(more, acctest.Target("available"), "qualification = { "+qualification+" }")...)
	}
	w := acctest.NewWorkspace(t, host(`runbook = "burn-in"`))
	acctest.Fails(t, w, []string{"plan"}, "Runbook does not exist", "Ironic has no runbook burn-in")
	w.Configure(host(`steps = [{ interface = "bios", step = "factory_reset" }], parameters = jsonencode({ agent_burnin_cpu_timeout = 60 })`,
		`driver_info = { agent_burnin_cpu_timeout = "5" }`))
	acctest.Fails(t, w, []string{"plan"}, "Setting has an attribute of its own", "qualification.parameters sets agent_burnin_cpu_timeout")
}

// A qualification that the configuration adds or changes holds for a saved plan of many idle hosts: each run qualifies a share of them, and
// what is due is what the refresh has noted.
func TestFakeHostQualification_changesOfManyHold(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	hosts := func(qualification string) string {
		all := s.Provider()
		for i := range 6 {
			all += acctest.Host(s, i+1, qualification)
		}
		return all
	}
	steps := `qualification = { steps = [{ interface = "bios", step = "factory_reset" }], valid_for = `
	w := acctest.NewWorkspace(t, hosts(""))
	w.RealCLI() // it plans each host again in the apply, in another process
	w.Must("apply", "-auto-approve")
	for _, changed := range []string{steps + `"90d" }`, steps + `"1d" }`} {
		w.Configure(hosts(changed))
		for range 2 { // the change, and what the next refresh finds due
			w.Must("plan", "-out=saved")
			w.Must("apply", "saved")
		}
		ago := time.Now().Add(-48 * time.Hour).UTC().Format(time.RFC3339)
		for i := range 6 {
			extra, _ := s.Node(s.Name(fmt.Sprintf("h%d", i+1)))["extra"].(map[string]any)
			if note, _ := extra["terraform_metal_qualification"].(map[string]any); note["passed"] != nil {
				note["passed"] = ago
				s.Fake.Set(s.Name(fmt.Sprintf("h%d", i+1)), "extra", extra)
			}
		}
	}
}
