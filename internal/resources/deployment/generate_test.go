package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The configuration that the CLI generates for an imported deployment plans nothing.
func TestAccDeployment_generatedConfigurationPlansNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	host := s.Name("h")
	config := s.Provider() + acctest.HostBlock(host, `driver = "fake-hardware"`, acctest.Target("available"))
	made := acctest.NewWorkspace(t, config+acctest.Deployment("metal_host.h.id", acctest.Image("v1"),
		`config_drive = { hostname = "web-0" }`))
	made.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, made)
	w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_deployment.d\n  id = "+acctest.Quoted(host)+"\n}\n")
	acctest.GenerateConfig(t, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
}
