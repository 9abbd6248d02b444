package deployment_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// deployByHand deploys a node without this provider.
func deployByHand(s *site.Site, node, instance string) {
	if instance != "" {
		s.Patch(node, "add", "/instance_uuid", instance)
	}
	s.Patch(node, "add", "/instance_info/image_source", acctest.Images+"v1.qcow2")
	s.Patch(node, "add", "/instance_info/image_checksum", "d41d8cd98f00b204e9800998ecf8427e")
	s.Verb(node, "active", "active")
}

// importing adds the import block of a deployment to a workspace.
func importing(t *testing.T, w *acctest.Workspace, node string) {
	t.Helper()
	block := "import {\n  to = " + acctest.DeploymentAddress + "\n  id = " + acctest.Quoted(node) + "\n}\n"
	if err := os.WriteFile(filepath.Join(w.Dir, "import.tf"), []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAccDeployment_import(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	deployByHand(s, node, site.ForeignInstance(s))
	before := s.Node(node)["updated_at"]
	config := s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n1")), `image = { url = "`+acctest.Images+`v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`, `config_drive = { user_data_wo = "x", user_data_wo_version = 1 }`)
	w := acctest.NewWorkspace(t, config)
	w.Must("import", acctest.DeploymentAddress, s.Name("n1"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Imported deployment is recorded only", "deploys nothing for them", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the import changed the node")
	}
	site.WantVerbs(t, s, node, "active")
	if d := acctest.Deployed(t, w); d.Values["instance_id"] != site.ForeignInstance(s) || d.Values["id"] != node {
		t.Errorf("in state is %v", d.Values)
	}
	acctest.NoChanges(t, w)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v2")))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Rebuild wipes the root disk")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "rebuild")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_importWithOtherImage(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	deployByHand(s, node, site.ForeignInstance(s))
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v9")))
	importing(t, w, node)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Imported deployment is recorded only", "1 imported, 0 added, 1 changed")
	site.WantVerbs(t, s, node, "active")
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Rebuild wipes the root disk", acctest.Images+"v1.qcow2")
	w.Must("destroy", "-auto-approve")
}

// TestAccDeployment_changeAfterImport changes a deployment whose import had an empty plan. The first change is not different from any later
// one.
func TestAccDeployment_changeAfterImport(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]func(w *acctest.Workspace, node string){
		"by a block": func(w *acctest.Workspace, node string) {
			importing(t, w, node)
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
		},
		"by the command": func(w *acctest.Workspace, node string) {
			w.Must("import", acctest.DeploymentAddress, node)
			acctest.NoChanges(t, w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			node := site.AddNode(t, s, "n1", nil)
			deployByHand(s, node, site.ForeignInstance(s))
			config := func(image string, settings ...string) string {
				return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, `image = { url = "`+acctest.Images+image+`.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`)...)
			}
			w := acctest.NewWorkspace(t, config("v1"))
			bring(w, node)
			w.Configure(config("v1", `config_drive = { hostname = "web-1" }`)) // Ironic does not tell what the machine has
			wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
			acctest.Mention(t, w.Must("apply", "saved"), "0 added, 1 changed, 0 destroyed")
			site.WantVerbs(t, s, node, "active")
			acctest.NoChanges(t, w)

			w.Configure(config("v1", `config_drive = { hostname = "web-2" }`))
			wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
			w.Must("apply", "saved")
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, node, "active", "rebuild")
			w.Must("state", "rm", acctest.DeploymentAddress)
			w.Configure(config("v1"))
			bring(w, node)
			w.Configure(config("v2", `config_drive = { hostname = "web-2" }`))
			wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
			w.Must("apply", "saved")
			acctest.NoChanges(t, w)
			site.WantVerbs(t, s, node, "active", "rebuild", "rebuild")
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccDeployment_importWithAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	first := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+acctest.Allocated(acctest.Image("v1")))
	first.Must("apply", "-auto-approve")
	reserved := site.AllocationNamed(s, s.Name("web"))
	before := s.Node(node)["updated_at"]

	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+acctest.Allocated(acctest.Image("v1"))+
		"import {\n  to = metal_allocation.a\n  id = "+acctest.Quoted(s.Name("web"))+"\n}\n"+
		"import {\n  to = metal_deployment.d\n  id = "+acctest.Quoted(node)+"\n}\n")
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "2 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	if s.Node(node)["updated_at"] != before {
		t.Error("the import changed the node")
	}
	acctest.WantKept(t, s, w, node, reserved)
	w.Must("destroy", "-auto-approve")
	output, _ = first.Plan() // the node's deployment and allocation are gone now
	acctest.Mention(t, output, "2 to add, 0 to change, 0 to destroy")
}

func TestAccDeployment_importOfNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	output, code := w.Run("import", acctest.DeploymentAddress, s.Name("n1"))
	if code == 0 {
		t.Errorf("a node without a deployment was imported:\n%s", output)
	}
	acctest.Mention(t, output, `is in state "available" and not reserved: there is no deployment to import`)
	output, code = w.Run("import", acctest.DeploymentAddress, "unknown-"+s.Class())
	if code == 0 {
		t.Errorf("an unknown node was imported:\n%s", output)
	}
	acctest.Mention(t, output, "Node unknown-"+s.Class()+" could not be found")
}

// TestAccDeployment_importDeploysNothing imports a node that is reserved and was never deployed: the import leaves it alone, and the next
// apply deploys it, as its plan says.
func TestAccDeployment_importDeploysNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	s.Patch(node, "add", "/instance_uuid", site.ForeignInstance(s))
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	importing(t, w, node)
	output, _ := w.Plan()
	wantWarned(t, output, "Imported deployment does not run")
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node)

	output, _ = w.Plan()
	wantWarned(t, output, "Undeployed node is deployed again")
	acctest.Mention(t, output, `is in state "available": it was imported so`)
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// TestAccDeployment_importSwitchesNoPower imports machines that run, with a power_state that says "off".
func TestAccDeployment_importSwitchesNoPower(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		live    bool
		content []string
		warned  []string
	}{
		"with other content":      {content: []string{acctest.Image("v1"), `config_drive = { hostname = "web" }`}, warned: []string{"Imported deployment is recorded only", "Power is not switched yet"}},
		"with nothing else":       {content: []string{`image = { url = "` + acctest.Images + `v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`}, warned: []string{"Power is not switched yet"}},
		"with a live ISO":         {live: true, warned: []string{"Live ISO is taken as booted", "Power is not switched yet"}},
		"with the ISO as it runs": {live: true, content: []string{}, warned: []string{"Power is not switched yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			var node string
			if tc.live {
				iso := bmc.ServeISO(t)
				node = addLiveNode(t, s, 1, nil)
				liveByHand(s, node, iso.URL("v1"))
				if tc.content == nil {
					tc.content = []string{liveISO(iso.URL("v2"))}
				} else {
					tc.content = []string{`live_iso = { url = ` + acctest.Quoted(iso.URL("v1")) + ` }`}
				}
			} else {
				node = site.AddNode(t, s, "n1", nil)
				deployByHand(s, node, site.ForeignInstance(s))
			}
			s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
			s.Await(node, "power_state", "power on")
			w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), append(tc.content, `power_state = "off"`)...))
			importing(t, w, node)
			output, _ := w.Plan()
			wantWarned(t, output, tc.warned...)
			acctest.Mention(t, output, "Node "+s.Name("n1")+" ("+node+") was imported, so this apply does not touch the machine")
			watch := watchPower(t, s)
			w.Must("apply", "-auto-approve")
			if power := s.Node(node)["power_state"]; power != "power on" {
				t.Errorf("after the import the machine is %v", power)
			}
			watch.wantStarts(t, s, map[string]int{node: 0})

			output, _ = w.Plan()
			wantWarned(t, output, "Power is switched")
			acctest.Mention(t, output, "is switched off", "0 to add, 1 to change, 0 to destroy")
			w.Must("apply", "-auto-approve")
			if power := s.Node(node)["power_state"]; power != "power off" {
				t.Errorf("after the apply that announces it the machine is %v", power)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// TestAccDeployment_importNeverReplaces imports machines that run something under a configuration that would have them undeployed.
func TestAccDeployment_importNeverReplaces(t *testing.T) {
	t.Parallel()
	iso := bmc.ServeISO(t).URL("v1") // a real Ironic reads it
	runsImage := func(s *site.Site, node string) { deployByHand(s, node, site.ForeignInstance(s)) }
	runsISO := func(s *site.Site, node string) { liveByHand(s, node, iso) }
	runsRamdisk := func(s *site.Site, node string) {
		s.Patch(node, "add", "/instance_uuid", site.ForeignInstance(s))
		s.Verb(node, "active", "active")
	}
	live := `live_iso = { url = "` + iso + `" }`
	for name, tc := range map[string]struct {
		runs     func(*site.Site, string)
		settings []string
		refused  string
	}{
		"an image, under live_iso":              {runsImage, []string{live}, "it runs the image " + acctest.Images + "v1.qcow2, and the configuration says a live ISO"},
		"neither, under live_iso":               {runsRamdisk, []string{live}, "it runs neither an image nor a live ISO, and the configuration says a live ISO"},
		"a live ISO, under image":               {runsISO, []string{acctest.Image("v1")}, "it runs a live ISO, and the configuration says the image " + acctest.Images + "v1.qcow2"},
		"an image, under an unknown allocation": {runsImage, []string{acctest.Image("v1"), `allocation_id = terraform_data.later.id`}, "and the configuration names allocation (known after apply)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			node := addLiveNode(t, s, 1, nil)
			tc.runs(s, node)
			before := s.Node(node)["updated_at"]
			w := acctest.NewWorkspace(t, s.Provider()+"resource \"terraform_data\" \"later\" {}\n"+acctest.Deployment(acctest.Quoted(node), tc.settings...))
			w.Must("import", acctest.DeploymentAddress, node)
			for range 2 { // a second plan is refused too
				output, code := w.Run("apply", "-auto-approve")
				if code == 0 {
					t.Errorf("the apply worked:\n%s", output)
				}
				acctest.Mention(t, output, "Imported deployment is not replaced", "Node "+s.Name("n1")+" ("+node+") was imported: ", tc.refused)
			}
			if s.Node(node)["updated_at"] != before {
				t.Error("the import changed the node")
			}
			w.Configure(s.Provider())
			w.Must("apply", "-auto-approve")
			site.WantVerbs(t, s, node, "active", "deleted") // that is asked for
		})
	}
}

// TestAccDeployment_appliedImportIsReplaced goes the way that the refusal describes.
func TestAccDeployment_appliedImportIsReplaced(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := addLiveNode(t, s, 1, nil)
	deployByHand(s, node, site.ForeignInstance(s))
	before := s.Node(node)["updated_at"]
	runs := `image = { url = "` + acctest.Images + `v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), runs))
	w.Must("import", acctest.DeploymentAddress, node)
	acctest.NoChanges(t, w) // nothing is applied, and it is still an import
	live := `live_iso = { url = "` + bmc.ServeISO(t).URL("v1") + `" }`
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), live))
	output, _ := w.Run("plan")
	acctest.Mention(t, output, "Imported deployment is not replaced", `first apply those values with on_destroy = "undeploy"`)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), runs, `on_destroy = "undeploy"`))
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was changed")
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), live, `on_destroy = "undeploy"`))
	output = w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Destroying undeploys the machine", "1 added, 0 changed, 1 destroyed")
	site.WantVerbs(t, s, node, "active", "deleted", "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
