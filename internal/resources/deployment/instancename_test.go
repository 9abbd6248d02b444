package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantInstanceName fails a test unless Ironic has that name of the instance.
func wantInstanceName(t *testing.T, s *site.Site, node string, want any) {
	t.Helper()
	if got := s.NodeAt("1.104", node)["instance_name"]; got != want {
		t.Errorf("the instance is called %v, want %v", got, want)
	}
}

// The name of an instance is written with what is deployed, changes without touching the machine, stays over a rebuild, and is gone after
// an undeployment.
func TestAccDeployment_instanceName(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 104)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), settings...)
	}
	w := acctest.NewWorkspace(t, config(acctest.Image("v1"), `instance_name = "web-0"`))
	w.Must("apply", "-auto-approve")
	wantInstanceName(t, s, node, "web-0")
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	w.Configure(config(acctest.Image("v1"), `instance_name = "web-1"`))
	w.Must("apply", "-auto-approve")
	wantInstanceName(t, s, node, "web-1")
	site.WantVerbs(t, s, node, "active")
	s.PatchAt("1.104", node, "/instance_name", "other")
	output, _ := w.Plan()
	acctest.Mention(t, output, "other", "web-1")
	w.Configure(config(acctest.Image("v2"), `instance_name = "web-1"`))
	w.Must("apply", "-auto-approve")
	wantInstanceName(t, s, node, "web-1")
	site.WantVerbs(t, s, node, "active", "rebuild")

	s.Verb(node, "deleted", "available") // by another client
	wantInstanceName(t, s, node, nil)
	w.Must("apply", "-auto-approve")
	wantInstanceName(t, s, node, "web-1")
	w.Configure(config(acctest.Image("v2"))) // not managed any more
	w.Must("apply", "-auto-approve")
	wantInstanceName(t, s, node, "web-1")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantInstanceName(t, s, node, nil)
}

// Ironic takes the name of an instance from instance_info.display_name. A configuration without instance_name shows that, and no change.
func TestAccDeployment_instanceNameFromDisplayName(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 104)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"),
		`instance_info = { display_name = "shown" }`))
	w.Must("apply", "-auto-approve")
	wantInstanceName(t, s, node, "shown")
	acctest.NoChanges(t, w)
	if name := acctest.Deployed(t, w).Values["instance_name"]; name != "shown" {
		t.Errorf("the state has the name %v", name)
	}
	w.Must("destroy", "-auto-approve")
}
