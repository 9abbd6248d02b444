package deployment_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_readyConfigDrive(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config(`config_drive = { url = "http://images.example.com/drive?token=s3cret" }`))
	acctest.NeverMention(t, w.Must("plan"), "s3cret")
	w.Must("apply", "-auto-approve")
	if got := site.InstanceInfo(s, node)["configdrive"]; got == nil {
		t.Error("the node has no config drive")
	}
	acctest.NoChanges(t, w)

	w.Configure(config(`config_drive = { content_base64 = base64gzip("an ISO") }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	acctest.Mention(t, w.Must("plan"), "Rebuild wipes the root disk")
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "rebuild")

	w.Configure(config())
	w.Must("apply", "-auto-approve") // a rebuild without it
	if got := site.InstanceInfo(s, node)["configdrive"]; got != nil {
		t.Errorf("the node still has the config drive %v", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// The plan that renames a host cannot show that its new name reaches a config drive through an allocation. So no later plan wipes the
// machine for it.
func TestAccDeployment_renameRebuildsNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(name, image string) string {
		return s.Provider() + strings.Replace(acctest.Host(s, 1), s.Name("h1"), s.Name(name), 1) +
			acctest.Allocation(s, `depends_on = [metal_host.h1]`) +
			acctest.Allocated(acctest.Image(image),
				`config_drive = { hostname = metal_allocation.a.node_name, user_data = "I am ${metal_allocation.a.node_name}\n" }`)
	}
	w := acctest.NewWorkspace(t, config("h1", "v1"))
	w.Must("apply", "-auto-approve")
	node := site.Text(acctest.Deployed(t, w).Values["id"])
	w.Configure(config("h2", "v1"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan after a rename changes something:\n%s", output)
	} else {
		acctest.Mention(t, output, "Machine keeps its former name", acctest.Quoted(s.Name("h1")),
			"set rebuild_triggers to a first value, which is only recorded")
	}
	site.WantVerbs(t, s, node, "manage", "provide", "active")
	w.Configure(config("h2", "v2"))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	acctest.NeverMention(t, w.Must("plan"), "former name")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
