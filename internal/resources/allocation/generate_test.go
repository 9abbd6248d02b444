package allocation_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The configuration that the CLI generates for an imported allocation plans nothing.
func TestAccAllocation_generatedConfigurationPlansNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := s.Provider() + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("available"), `resource_class = `+
		acctest.Quoted(s.Class()), `traits = ["CUSTOM_NVME"]`)
	made := acctest.NewWorkspace(t, config+"resource \"metal_allocation\" \"a\" {\n  name = "+acctest.Quoted(s.Name("a"))+
		"\n  resource_class = metal_host.h.resource_class\n"+
		"  traits = [\"CUSTOM_NVME\"]\n  extra = { team = \"web\", size = 3 }\n  depends_on = [metal_host.h]\n}\n")
	made.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, made)
	w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_allocation.a\n  id = "+acctest.Quoted(s.Name("a"))+"\n}\n")
	acctest.GenerateConfig(t, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
}
