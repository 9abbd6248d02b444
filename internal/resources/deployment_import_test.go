package resources_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// foreignInstance is the reservation of somebody else, unique to the test.
func foreignInstance(s *acctest.Site) string {
	return "cccccccc-1111-4111-8111-0000" + strings.TrimPrefix(s.Class(), "class-")
}

// deployByHand deploys a node as somebody without this provider does.
func deployByHand(s *acctest.Site, node, instance string) {
	if instance != "" {
		s.Patch(node, "add", "/instance_uuid", instance)
	}
	s.Patch(node, "add", "/instance_info/image_source", images+"v1.qcow2")
	s.Patch(node, "add", "/instance_info/image_checksum", "d41d8cd98f00b204e9800998ecf8427e")
	s.Verb(node, "active", "active")
}

func TestAccDeployment_importTouchesNothingAndShowsDriftLater(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	deployByHand(s, node, foreignInstance(s))
	before := s.Node(node)["updated_at"]
	config := s.Provider() + deployment(quoted(s.Name("n1")), `image = { url = "`+images+`v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`, `config_drive = { user_data_wo = "x", user_data_wo_version = 1 }`)
	w := acctest.NewWorkspace(t, config)
	w.Must("import", deploymentAddress, s.Name("n1"))
	output, _ := w.Plan()
	mention(t, output, "Imported deployment is left as it is", "the machine is not touched", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the import changed the node")
	}
	wantVerbs(t, s, node, "active")
	if d := deployed(t, w); d.Values["instance_uuid"] != foreignInstance(s) || d.Values["id"] != node {
		t.Errorf("in state is %v", d.Values)
	}
	noChanges(t, w)

	w.Configure(s.Provider() + deployment(quoted(s.Name("n1")), image("v2")))
	output, _ = w.Plan()
	mention(t, output, "Rebuild wipes the root disk")
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	wantVerbs(t, s, node, "active", "rebuild")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_importOfAnotherImageShowsItInThePlanAfter(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	deployByHand(s, node, foreignInstance(s))
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v9")))
	w.Must("import", deploymentAddress, node)
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, node, "active")
	output, changes := w.Plan()
	if !changes {
		t.Errorf("the plan does not show that another image runs:\n%s", output)
	}
	mention(t, output, "Rebuild wipes the root disk", images+"v1.qcow2")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_importWithAnAllocation(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	first := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1")))
	first.Must("apply", "-auto-approve")
	reserved := allocationNamed(s, s.Name("web"))
	before := s.Node(node)["updated_at"]

	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1"))+
		"import {\n  to = metal_allocation.a\n  id = "+quoted(s.Name("web"))+"\n}\n"+
		"import {\n  to = metal_deployment.d\n  id = "+quoted(node)+"\n}\n")
	output := w.Must("apply", "-auto-approve")
	mention(t, output, "2 imported, 0 added, 0 changed, 0 destroyed")
	noChanges(t, w)
	if s.Node(node)["updated_at"] != before {
		t.Error("the import changed the node")
	}
	wantKept(t, s, w, node, reserved)
	w.Must("destroy", "-auto-approve")
	output, _ = first.Plan() // whose objects are gone now
	mention(t, output, "2 to add, 0 to change, 0 to destroy")
}

func TestAccDeployment_nothingToImport(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	output, code := w.Run("import", deploymentAddress, s.Name("n1"))
	if code == 0 {
		t.Errorf("a node without a deployment was imported:\n%s", output)
	}
	mention(t, output, `is in state "available" and reserved by nobody: there is no deployment to import`)
	output, code = w.Run("import", deploymentAddress, "nobody-"+s.Class())
	if code == 0 {
		t.Errorf("nobody was imported:\n%s", output)
	}
	mention(t, output, "Node nobody-"+s.Class()+" could not be found")
}

// TestAccDeployment_importSwitchesNoPower imports machines that run, with a power_state that says "off".
func TestAccDeployment_importSwitchesNoPower(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		live    bool
		content []string
		warned  []string
	}{
		"with other content":      {content: []string{image("v1"), `config_drive = { hostname = "web" }`}, warned: []string{"Imported deployment is left as it is", "Power is not switched yet"}},
		"with nothing else":       {content: []string{`image = { url = "` + images + `v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`}, warned: []string{"Power is not switched yet"}},
		"with a live ISO":         {live: true, warned: []string{"Live ISO is taken as booted", "Power is not switched yet"}},
		"with the ISO as it runs": {live: true, content: []string{}, warned: []string{"Power is not switched yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			var node string
			if tc.live {
				iso := acctest.ServeISO(t)
				node = addLiveNode(t, s, 1, nil)
				liveByHand(s, node, iso.URL("v1"))
				if tc.content == nil {
					tc.content = []string{liveISO(iso.URL("v2"))}
				} else {
					tc.content = []string{`live_iso = { url = ` + quoted(iso.URL("v1")) + ` }`}
				}
			} else {
				node = addNode(t, s, "n1", nil)
				deployByHand(s, node, foreignInstance(s))
			}
			s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
			s.Await(node, "power_state", "power on")
			w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), append(tc.content, `power_state = "off"`)...))
			w.Must("import", deploymentAddress, node)
			output, _ := w.Plan()
			wantWarned(t, output, tc.warned...)
			mention(t, output, "Node "+s.Name("n1")+" ("+node+") was imported, which touches no machine")
			watch := watchPower(t, s)
			w.Must("apply", "-auto-approve")
			if power := s.Node(node)["power_state"]; power != "power on" {
				t.Errorf("after the import the machine is %v", power)
			}
			watch.wantStarts(t, s, map[string]int{node: 0})

			output, _ = w.Plan()
			wantWarned(t, output, "Power is switched")
			mention(t, output, "is switched off", "0 to add, 1 to change, 0 to destroy")
			w.Must("apply", "-auto-approve")
			if power := s.Node(node)["power_state"]; power != "power off" {
				t.Errorf("after the apply that announces it the machine is %v", power)
			}
			noChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// TestAccDeployment_importNeverReplaces imports machines that run something under a configuration that would have them undeployed.
func TestAccDeployment_importNeverReplaces(t *testing.T) {
	t.Parallel()
	iso := acctest.ServeISO(t).URL("v1") // real Ironic looks at it
	runsImage := func(s *acctest.Site, node string) { deployByHand(s, node, foreignInstance(s)) }
	runsISO := func(s *acctest.Site, node string) { liveByHand(s, node, iso) }
	runsRamdisk := func(s *acctest.Site, node string) {
		s.Patch(node, "add", "/instance_uuid", foreignInstance(s))
		s.Verb(node, "active", "active")
	}
	live := `live_iso = { url = "` + iso + `" }`
	for name, tc := range map[string]struct {
		runs     func(*acctest.Site, string)
		settings []string
		refused  string
	}{
		"an image, under live_iso":              {runsImage, []string{live}, "it runs the image " + images + "v1.qcow2, and the configuration says a live ISO"},
		"neither, under live_iso":               {runsRamdisk, []string{live}, "it runs neither an image nor a live ISO, and the configuration says a live ISO"},
		"a live ISO, under image":               {runsISO, []string{image("v1")}, "it runs a live ISO, and the configuration says the image " + images + "v1.qcow2"},
		"a live ISO, under neither":             {runsISO, nil, "it runs a live ISO, and the configuration says neither an image nor a live ISO"},
		"an image, under an unknown allocation": {runsImage, []string{image("v1"), `allocation_id = terraform_data.later.id`}, "and the configuration names allocation that is not known yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			node := addLiveNode(t, s, 1, nil)
			tc.runs(s, node)
			before := s.Node(node)["updated_at"]
			w := acctest.NewWorkspace(t, s.Provider()+"resource \"terraform_data\" \"later\" {}\n"+deployment(quoted(node), tc.settings...))
			w.Must("import", deploymentAddress, node)
			for range 2 { // that it was planned changes nothing
				output, code := w.Run("apply", "-auto-approve")
				if code == 0 {
					t.Errorf("the apply worked:\n%s", output)
				}
				mention(t, output, "Imported deployment is not replaced", "Node "+s.Name("n1")+" ("+node+") was imported: ", tc.refused)
			}
			if s.Node(node)["updated_at"] != before {
				t.Error("the import changed the node")
			}
			w.Configure(s.Provider())
			w.Must("apply", "-auto-approve")
			wantVerbs(t, s, node, "active", "deleted") // that is asked for
		})
	}
}

// TestAccDeployment_importThatIsAppliedIsReplacedLikeAnyOther goes the way that the refusal describes.
func TestAccDeployment_importThatIsAppliedIsReplacedLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addLiveNode(t, s, 1, nil)
	deployByHand(s, node, foreignInstance(s))
	before := s.Node(node)["updated_at"]
	runs := `image = { url = "` + images + `v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), runs))
	w.Must("import", deploymentAddress, node)
	noChanges(t, w) // nothing is applied, and it is still an import
	live := `live_iso = { url = "` + acctest.ServeISO(t).URL("v1") + `" }`
	w.Configure(s.Provider() + deployment(quoted(node), live))
	output, _ := w.Run("plan")
	mention(t, output, "Imported deployment is not replaced", `apply that with on_destroy = "undeploy", which touches nothing`)
	w.Configure(s.Provider() + deployment(quoted(node), runs, `on_destroy = "undeploy"`))
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was changed")
	}
	w.Configure(s.Provider() + deployment(quoted(node), live, `on_destroy = "undeploy"`))
	output = w.Must("apply", "-auto-approve")
	mention(t, output, "Destroying undeploys the machine", "1 added, 0 changed, 1 destroyed")
	wantVerbs(t, s, node, "active", "deleted", "active")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
