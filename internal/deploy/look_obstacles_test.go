package deploy_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A plan that deploys a node in maintenance warns of it, and one that leaves such a node does not.
func TestObstacles_maintenance(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(2)
	fake.Set("node-000", "maintenance", true)
	site := sitetest.NewClient(fake).Site
	broken, _ := fake.Node("node-000")
	sound, _ := fake.Node("node-001")
	for name, tt := range map[string]struct {
		isNew, fresh bool
		node         decide.Value[string]
		step         deploy.Kind
		warns        bool
	}{
		"new, by UUID":                             {true, true, decide.Known(broken.UUID), deploy.DoDeploy, true},
		"new, by name":                             {true, true, decide.Known(broken.Name), deploy.DoDeploy, true},
		"new, on another node":                     {true, true, decide.Known(sound.UUID), deploy.DoDeploy, false},
		"new, on a node that is not known yet":     {true, true, decide.Unknown[string](), deploy.DoDeploy, false},
		"rebuilt":                                  {false, false, decide.Known(broken.UUID), deploy.DoRebuild, true},
		"restarted by power":                       {false, false, decide.Known(broken.UUID), deploy.DoRestart, false},
		"replaced by one that is not known yet":    {false, true, decide.Unknown[string](), deploy.DoDeploy, false},
		"replaced by another, for the maintenance": {false, true, decide.Known(sound.UUID), deploy.DoDeploy, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := deploy.Look{Site: site, Wish: deploy.Wish{Node: tt.node}, Seen: deploy.Seen{New: tt.isNew}}
			if look.Plan.Forecast.Fresh = tt.fresh; !tt.isNew {
				look.Seen.ID = broken.UUID
			}
			look.Plan.Steps = []deploy.Step{{Do: tt.step}}
			look.Obstacles(t.Context())
			if warned := len(look.Notices()) > 0; warned != tt.warns {
				t.Errorf("the notices are %v", look.Notices())
			}
		})
	}
}
