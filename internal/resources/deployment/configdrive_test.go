package deployment_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
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

func TestAccDeployment_importWithReadyConfigDrive(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	deployByHand(s, node, site.ForeignInstance(s))
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), `image = { url = "`+acctest.Images+`v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`,
		`config_drive = { content_base64 = base64gzip("an ISO") }`))
	w.Must("import", acctest.DeploymentAddress, node)
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_readyConfigDriveIsWhole(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, "")
	for settings, want := range map[string]string{
		`url = "file:///drive"`:                                               "must begin with http:// or https://",
		`content_base64 = "s3cret"`:                                           "must be an image that is compressed with gzip",
		`content_base64 = base64encode("s3cret")`:                             "run gzip first",
		`url = "http://x/drive", user_data = "a"`:                             "config_drive.url is a ready-made config drive",
		`content_base64 = base64gzip("a"), hostname = "a"`:                    "Remove it or config_drive.hostname",
		`url = "http://x/drive", content_base64 = base64gzip("s3cret")`:       "config_drive.content_base64",
		`content_base64 = base64gzip("a"), meta_data = jsonencode({ a = 1 })`: "to which nothing can be added",
	} {
		w.Configure(s.Provider() + acctest.Deployment(`"n1"`, acctest.Image("v1"), "config_drive = { "+settings+" }"))
		acctest.Fails(t, w, []string{"validate"}, want)
	}
}

// A ready-made config drive needs no Ironic that builds one.
func TestFakeDeployment_readyConfigDriveOnOldServer(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	node := site.AddNode(t, s, "n1", nil)
	for version, refused := range map[string]bool{"1.34": true, "1.55": false} {
		w := acctest.NewWorkspace(t, s.Provider("microversion = "+acctest.Quoted(version), "provisioning_limit = { max_concurrent = 0 }")+
			acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `config_drive = { url = "http://x/drive" }`))
		if refused {
			acctest.Fails(t, w, []string{"plan"}, "config_drive")
			continue
		}
		w.Must("apply", "-auto-approve")
		w.Must("destroy", "-auto-approve")
	}
}

// The plan that renames a host cannot show that its new name reaches a config drive through an allocation. So no later plan wipes the
// machine for it.
func TestAccDeployment_renameRebuildsNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(name, image string) string {
		return s.Provider() + strings.Replace(acctest.Host(s, 1), s.Name("h1"), s.Name(name), 1) + acctest.Allocation(s, `depends_on = [metal_host.h1]`) +
			acctest.Allocated(acctest.Image(image), `config_drive = { hostname = metal_allocation.a.node_name, user_data = "I am ${metal_allocation.a.node_name}\n" }`)
	}
	w := acctest.NewWorkspace(t, config("h1", "v1"))
	w.Must("apply", "-auto-approve")
	node := site.Text(acctest.Deployed(t, w).Values["id"])
	w.Configure(config("h2", "v1"))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan after a rename changes something:\n%s", output)
	} else {
		acctest.Mention(t, output, "Machine keeps its former name", acctest.Quoted(s.Name("h1")), "set rebuild_triggers to a first value, which is only recorded")
	}
	site.WantVerbs(t, s, node, "manage", "provide", "active")
	w.Configure(config("h2", "v2"))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	acctest.NeverMention(t, w.Must("plan"), "former name")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
