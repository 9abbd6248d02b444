package deploy_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A deployment that gets another address on its node is refused in whichever order Terraform plans the two. One that is only forgotten is
// not.
func TestLook_otherAddressIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		destroyedFirst bool
		onDestroy      deploy.OnDestroy
		refused        bool
	}{
		"destroyed first": {true, deploy.DestroyUndeploys, true}, "created first": {false, deploy.DestroyUndeploys, true},
		"forgotten first": {true, deploy.DestroyForgets, false}, "forgotten after it": {false, deploy.DestroyForgets, false},
	} {
		fake := ironictest.Fleet(1)
		site := sitetest.NewClient(fake).Site
		node, err := site.Ironic.Node(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		destroys := func() bool {
			look := deploy.Look{Site: site, Seen: deploy.Seen{
				ID: node.UUID, State: "active", Was: deploy.Wish{OnDestroy: decide.Known(tt.onDestroy)},
			}}
			look.Plan = deploy.Decide(deploy.Wish{Destroy: true}, look.Seen)
			look.Undeploys()
			return look.Refused()
		}
		creates := func() bool {
			look := deploy.Look{Site: site, Wish: deploy.Wish{Node: decide.Known(node.UUID)}, Seen: deploy.Seen{New: true}}
			look.Place(t.Context())
			return look.Refused()
		}
		plans := []func() bool{creates, destroys}
		if tt.destroyedFirst {
			plans = []func() bool{destroys, creates}
		}
		if plans[0]() || plans[1]() != tt.refused {
			t.Errorf("%s: want refused: %t", name, tt.refused)
		}
	}
}
