package deploy_test

import (
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
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

// A plan warns of a config drive that the node's boot interface cannot pass with a live ISO.
func TestObstacles_configDriveOfALiveISO(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	network, media := sitetest.AddBootable(t, fake, "network", sitetest.OverNetwork),
		sitetest.AddBootable(t, fake, "media", sitetest.FromMedia)
	site := sitetest.NewClient(fake).Site
	for _, tt := range []struct {
		node, wish string
		warns      bool
	}{
		{network, "live_iso=a, config_drive=d", true},
		{network, "live_iso=a", false},
		{network, "image=a, config_drive=d", false},
		{media, "live_iso=a, config_drive=d", false},
	} {
		wish := changed(deploy.Wish{Content: map[string]deploy.Text{}}, "node="+tt.node+", "+tt.wish)
		look := deploy.Look{Site: site, Wish: wish, Seen: deploy.Seen{New: true}}
		look.Plan.Forecast.Fresh = true
		look.Obstacles(t.Context())
		warns := slices.ContainsFunc(look.Notices(), func(n decide.Notice) bool { return n.Summary == "Node cannot use the config drive" })
		if warns != tt.warns {
			t.Errorf("%s: the notices are %v", tt.wish, look.Notices())
		}
	}
}

// The plan that destroys a deployment says what becomes of the machine, and nothing of one that another user has now.
func TestLook_endOfADeployment(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Set("node-000", "provision_state", "active")
	node := ironictest.NodeOf(t, fake, "node-000")
	for instance, says := range map[string]string{"ours": "Destroying undeploys the machine", "theirs": "-"} {
		fake.Set("node-000", "instance_uuid", instance)
		look := deploy.Look{
			Site: sitetest.NewClient(fake).Site, Wish: deploy.Wish{Destroy: true},
			Seen: deploy.Seen{ID: node.UUID, Instance: "ours"},
		}
		look.End(t.Context())
		if got := notices(deploy.Plan{Notices: look.Notices()}); got != says {
			t.Errorf("reserved by %s: the plan says %q, want %q", instance, got, says)
		}
	}
}

// Steps of an interface that does nothing are refused, unless the plan may give the node another one.
func TestObstacles_deploySteps(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	node, _ := fake.Node("node-000")
	for name, tt := range map[string]struct {
		has   string
		host  bool // that this plan changes
		wants bool
	}{
		"lacks it": {"no-bios", false, true}, "has it": {"fake", false, false}, "may get it": {"no-bios", true, false},
	} {
		fake.Set(node.UUID, "bios_interface", tt.has)
		site := sitetest.NewClient(fake).Site
		if tt.host {
			expect.ExpectHost(site, expect.ExpectedHost{ID: node.UUID})
		}
		look := deploy.Look{Site: site, Wish: deploy.Wish{Node: decide.Known(node.UUID)}, Seen: deploy.Seen{New: true}}
		look.Wish.Deployment.DeploySteps = []ironic.DeployStep{{Interface: "bios", Step: "factory_reset"}}
		look.Plan.Forecast.Fresh, look.Plan.Steps = true, []deploy.Step{{Do: deploy.DoDeploy}}
		look.Obstacles(t.Context())
		refused := slices.ContainsFunc(look.Notices(), func(n decide.Notice) bool {
			return n.Severity == decide.Refusal && n.Summary == "Hardware interface lacks the function"
		})
		if refused != tt.wants {
			t.Errorf("%s: %v", name, look.Notices())
		}
	}
}
