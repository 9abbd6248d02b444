package deploy_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
)

// A plan that replaces the host of a deployment that stays says so: it is refused if an allocation reserves the node all the same.
func TestDecide_hostIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		allocation deploy.Text
		refused    bool
	}{"with an allocation": {decide.Known("a1"), true}, "without": {deploy.Text{}, false}} {
		was := deploy.Wish{Node: decide.Known("n1"), Allocation: tt.allocation}
		p := deploy.Decide(was, deploy.Seen{Was: was, ID: "n1", Instance: "a1", State: "active", HostLeaves: true, Label: "n1"})
		if len(p.Notices) != 1 || p.Notices[0].Summary != "Deployed host is replaced" || p.Refused() != tt.refused {
			t.Errorf("%s: %+v", name, p.Notices)
		}
	}
}

// A plan that undeploys a node before its host keeps more disks is refused; one that leaves the machine alone is not.
func TestDecide_disksAreNotKeptTooLate(t *testing.T) {
	t.Parallel()
	kept := deploy.Wish{Node: decide.Known("n1")}
	forgotten := deploy.Wish{Node: decide.Known("n1"), OnDestroy: decide.Known(deploy.DestroyForgets)}
	for name, tt := range map[string]struct {
		was     deploy.Wish
		refused bool
	}{"undeployed": {kept, true}, "forgotten": {forgotten, false}} {
		p := deploy.Decide(deploy.Wish{Destroy: true}, deploy.Seen{Was: tt.was, ID: "n1", State: "active", KeepsDisks: true, Label: "n1"})
		if p.Refused() != tt.refused {
			t.Errorf("%s: %+v", name, p.Notices)
		}
	}
}
