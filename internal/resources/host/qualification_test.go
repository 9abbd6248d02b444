package host_test

import (
	"strings"
	"testing"

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
