package deployment_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// deploymentIs checks an attribute of the deployment in state.
func deploymentIs(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(acctest.DeploymentAddress, tfjsonpath.New(attribute), value)
}

func TestAccDeployment_lifecycle(t *testing.T) {
	s := site.Start(t, nil)
	reserved := s.Provider() + acctest.Host(s, 1) + acctest.Allocation(s, `depends_on = [metal_host.h1]`, `name = `+
		acctest.Quoted(s.Name("web")))
	stays := statecheck.CompareValue(compare.ValuesSame())
	sameAllocation := func() statecheck.StateCheck {
		return stays.AddStateValue(acctest.AllocationAddress, tfjsonpath.New("id"))
	}
	acctest.Test(t,
		resource.TestStep{
			Config: reserved + acctest.Allocated(acctest.Image("v1"),
				`config_drive = { hostname = "web-0", user_data = "#cloud-config\n" }`),
			ConfigStateChecks: []statecheck.StateCheck{
				sameAllocation(),
				statecheck.CompareValuePairs(acctest.DeploymentAddress, tfjsonpath.New("id"), "metal_host.h1", tfjsonpath.New("id"),
					compare.ValuesSame()),
				statecheck.CompareValuePairs(acctest.DeploymentAddress, tfjsonpath.New("instance_id"), acctest.AllocationAddress,
					tfjsonpath.New("id"), compare.ValuesSame()),
				deploymentIs("provision_state", knownvalue.StringExact("active")),
				deploymentIs("last_error", knownvalue.Null()),
				deploymentIs("attempts", knownvalue.Int64Exact(1)),
			},
		},
		resource.TestStep{
			ResourceName: acctest.DeploymentAddress, ImportState: true, ImportStateId: s.Name("h1"), ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"config_drive", "attempts"}, // what cannot be read back
		},
		resource.TestStep{
			Config: reserved,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(acctest.DeploymentAddress, plancheck.ResourceActionDestroy),
			}},
			ConfigStateChecks: []statecheck.StateCheck{sameAllocation()},
			Check: func(*terraform.State) error {
				node, kept := s.Node(s.Name("h1")), site.AllocationNamed(s, s.Name("web"))
				if node["provision_state"] != "available" || node["instance_uuid"] != kept["uuid"] || kept["node_uuid"] != node["uuid"] {
					return fmt.Errorf("node is %v and reserved by %v; the allocation is %v", node["provision_state"],
						node["instance_uuid"], kept)
				}
				extra := node["extra"].(map[string]any)
				delete(extra, string(notes.MarkCreation)) // of the host, which stays
				delete(extra, notes.KeyErasure)           // of the cleaning, if a poll has seen a step of it
				if info := site.InstanceInfo(s, s.Name("h1")); len(info) > 1 || len(extra) > 0 {
					return fmt.Errorf("left on the node: instance_info %v, extra %v", info, node["extra"])
				}
				return nil
			},
		},
	)
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left in Ironic: %v", left)
	}
}

func TestAccDeployment_reservesWithoutAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	d := acctest.InState(t, w, acctest.DeploymentAddress)
	if d.Values["id"] != node || d.Values["node_id"] != s.Name("n1") || d.Values["instance_id"] != s.Node(node)["instance_uuid"] {
		t.Errorf("in state is %v; in Ironic, %v", d.Values, s.Node(node))
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	if output := w.Must("apply", "-auto-approve"); !strings.Contains(output, "0 added, 1 changed, 0 destroyed") {
		t.Errorf("the node by its UUID is not the node by its name:\n%s", output)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted")
}

func TestAccDeployment_contentArrives(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", map[string]any{"properties": map[string]any{"capabilities": "boot_mode:uefi"}})
	site.AddTrait(s, node, "CUSTOM_A")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), `image = {
    url = "`+acctest.Images+`root.raw"
    checksum = "d41d8cd98f00b204e9800998ecf8427e"
    disk_format = "raw"
    type = "partition"
    kernel = "`+acctest.Images+`vmlinuz"
    ramdisk = "`+acctest.Images+`initrd"
    root_gb = 20
    swap_mb = 512
  }
  capabilities = { boot_mode = "uefi" }
  traits = ["CUSTOM_A"]
  root_device = { serial = "S1" }
  instance_info = { ramdisk_params = { a = 1 } }`))
	w.Must("apply", "-auto-approve")
	info := site.InstanceInfo(s, node)
	for key, want := range map[string]any{
		"image_source": acctest.Images + "root.raw", "image_checksum": "d41d8cd98f00b204e9800998ecf8427e", "image_disk_format": "raw",
		"image_type": "partition", "kernel": acctest.Images + "vmlinuz", "ramdisk": acctest.Images + "initrd",
		"root_gb": 20.0, "swap_mb": 512.0, "capabilities": map[string]any{"boot_mode": "uefi"}, "traits": []any{"CUSTOM_A"},
		"root_device": map[string]any{"serial": "S1"}, "ramdisk_params": map[string]any{"a": 1.0},
	} {
		if !reflect.DeepEqual(info[key], want) {
			t.Errorf("instance_info.%s is %v, want %v", key, info[key], want)
		}
	}
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("whole")))
	w.Must("apply", "-auto-approve")
	if info := site.InstanceInfo(s, node); info["image_os_hash_algo"] != "sha256" || info["image_checksum"] != nil ||
		info["kernel"] != nil ||
		info["root_gb"] != nil || info["capabilities"] != nil || info["root_device"] != nil || info["ramdisk_params"] != nil ||
		info["traits"] != nil {
		t.Errorf("instance_info after another image is %v", info)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_numbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `config_drive = {
    meta_data = jsonencode({ serial = 12345678901234567890 })
    vendor_data = jsonencode({ asset = 9007199254740993 })
  }
  instance_info = { root_gb = 1048576 }
  deploy_steps = [{ interface = "bios", step = "factory_reset", priority = 60, args = jsonencode({ id = 9007199254740993 }) }]`))
	w.Must("apply", "-auto-approve")
	var sent string
	for _, r := range s.Fake.Requests() {
		sent += r.Body
	}
	for _, want := range []string{
		`"serial":12345678901234567890`, `"asset":9007199254740993`, `1048576`, `"id":9007199254740993`,
	} {
		if !strings.Contains(sent, want) || strings.Contains(sent, "e+") {
			t.Errorf("%s was not sent: %s", want, sent)
		}
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_verbCarriesStepsAndConfigDrive(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `config_drive = {
    hostname = "web-0"
    user_data = "#cloud-config\n"
    meta_data = jsonencode({ rack = 7 })
    network_data = jsonencode({ links = [], networks = [], services = [] })
    vendor_data = jsonencode({ v = true })
  }
  deploy_steps = [{ interface = "bios", step = "factory_reset", priority = 60 }]`))
	w.Must("apply", "-auto-approve")
	var sent map[string]any
	for _, r := range s.Fake.Requests() {
		if strings.Contains(r.Body, `"active"`) && r.Method == http.MethodPut {
			if err := json.Unmarshal([]byte(r.Body), &sent); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string]any{
		"target": "active",
		"configdrive": map[string]any{
			"user_data":    "#cloud-config\n",
			"meta_data":    map[string]any{"hostname": "web-0", "local-hostname": "web-0", "name": "web-0", "rack": 7.0},
			"network_data": map[string]any{"links": []any{}, "networks": []any{}, "services": []any{}},
			"vendor_data":  map[string]any{"v": true},
		},
		"deploy_steps": []any{map[string]any{"interface": "bios", "step": "factory_reset", "args": map[string]any{}, "priority": 60.0}},
	}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("sent with the verb:\n%v, want\n%v", sent, want)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_powerChangesInPlace(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(power string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = `+acctest.Quoted(power))
	}
	w := acctest.NewWorkspace(t, config("on"))
	w.Must("apply", "-auto-approve")
	if power := s.Node(node)["power_state"]; power != "power on" {
		t.Errorf("the node is %v after the deployment", power)
	}
	acctest.NoChanges(t, w)
	w.Configure(config("off"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Power is switched", "Node "+s.Name("n1")+" ("+node+") is switched off", "will be updated in-place")
	w.Must("apply", "-auto-approve")
	if power := s.Node(node)["power_state"]; power != "power off" {
		t.Errorf("the node is %v after the change", power)
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_forgetLeavesTheMachineRunning(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	instance := s.Node(node)["instance_uuid"]
	w.Must("destroy", "-auto-approve")
	if now := s.Node(node); now["provision_state"] != "active" || now["instance_uuid"] != instance {
		t.Errorf("the node is %v, reserved by %v", now["provision_state"], now["instance_uuid"])
	}
	w.Must("import", acctest.DeploymentAddress, node) // it can be taken back
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted")
}

func TestAccDeployment_forgottenMachineKeepsItsAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	output, code := w.Run("destroy", "-auto-approve")
	if code == 0 {
		t.Errorf("the allocation of a running machine was deleted:\n%s", output)
	}
	acctest.Mention(t, output, "something is deployed on it", "To leave the machine running with its reservation", "terraform state rm")
	w.Must("state", "rm", acctest.AllocationAddress)
	w.Must("destroy", "-auto-approve")
	if now := s.Node(node); now["provision_state"] != "active" || site.AllocationNamed(s, s.Name("web"))["uuid"] != now["instance_uuid"] {
		t.Errorf("the node is %v, reserved by %v", now["provision_state"], now["instance_uuid"])
	}
	s.Verb(node, "deleted", "available")
}

// Ironic writes any object into the config drive, so unusual network data is only a warning.
func TestAccDeployment_unusualNetworkDataIsAWarning(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(`"n1"`, acctest.Image("v1"),
		`config_drive = { network_data = jsonencode({ links = [{ id = "eth0", type = "ethernet" }], networks = [], services = [] }) }`))
	acctest.Mention(t, w.Must("validate"), "Network data may be ignored", `links[0].type: "ethernet" must be one of`)

	// cloud-init ignores what names no link.
	w.Configure(s.Provider() + acctest.Deployment(`"n1"`, acctest.Image("v1"),
		`config_drive = { network_data = jsonencode({ links = [], networks = [{ id = "a", network_id = "a", link = "eth0", type = "ipv4_dhcp" }], services = [] }) }`))
	acctest.Mention(t, w.Must("validate"), "Network data may be ignored", `networks[0].link: "eth0" is not the id of a link`,
		"provider::metal::network_data")

	w.Configure(s.Provider() + acctest.Deployment(`"n1"`, acctest.Image("v1"),
		`config_drive = { network_data = provider::metal::network_data({ interfaces = { nic0 = { mac = "52:54:00:00:00:01", addresses = ["192.0.2.5/32"] } } }) }`))
	acctest.NeverMention(t, w.Must("validate"), "Network data may be ignored")
}

func TestAccDeployment_unfitNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	other := site.ForeignInstance(s)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1")))
	refused := func(want ...string) {
		t.Helper()
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Errorf("the apply worked, want %v", want)
		}
		acctest.Mention(t, output, append(want, "Could not deploy node "+s.Name("n1"))...)
		if acctest.InState(t, w, acctest.DeploymentAddress) != nil {
			t.Errorf("a deployment that never began is in state:\n%s", w.State())
		}
		if now := s.Node(node); now["instance_uuid"] != nil && now["instance_uuid"] != other {
			t.Errorf("the node is reserved by %v", now["instance_uuid"])
		}
	}
	s.Verb(node, "manage", "manageable")
	refused(`is in state "manageable"`, `Make it available first: apply its metal_host with target_state = "available"`)
	s.Verb(node, "provide", "available")

	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{"reason": "fan broken"})
	refused("it is in maintenance (fan broken)")
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)

	s.Patch(node, "add", "/instance_uuid", other)
	refused("is reserved by "+other, "A metal_deployment of this or another configuration, or another client, has this node",
		"terraform state list -id="+node, "terraform import <address of the metal_deployment> "+node)
	s.Patch(node, "remove", "/instance_uuid", nil)

	s.Verb(node, "active", "active")
	refused(`is in state "active"`, "something is deployed on it")
	s.Verb(node, "deleted", "available")

	w.Configure(s.Provider() + acctest.Deployment(`"unknown-`+s.Class()+`"`, acctest.Image("v1")))
	plan, _ := w.Plan()
	acctest.Mention(t, plan, "Ironic does not know this node", "Ironic knows no node unknown-"+s.Class(), "write the id of the metal_host")
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Error("a node that does not exist was deployed")
	}
	acctest.Mention(t, output, "Node unknown-"+s.Class()+" could not be found", "Check the name or UUID")
}

func TestAccDeployment_twoOnOneNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	first := acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1"))
	second := strings.Replace(acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")), `"d"`, `"e"`, 1)
	w := acctest.NewWorkspace(t, s.Provider()+first+second)
	acctest.Mention(t, w.Must("plan"), "Two deployments for one node", "This plan creates two deployments on the node")
	acctest.Fails(t, w, acctest.Apply(), "Two deployments for one node", "is reserved by",
		"Another metal_deployment of this apply has this node", "terraform state list -id="+node, "Do not import the node a second time")

	missing, other := acctest.DeploymentAddress, "metal_deployment.e"
	if acctest.InState(t, w, missing) != nil {
		missing, other = other, missing
	}
	_, name, _ := strings.Cut(missing, ".")
	header := acctest.Quoted(name) + " {"
	// Terraform refreshes the other one first.
	w.Configure(s.Provider() + strings.Replace(first+second, header, header+"\n  depends_on = ["+other+"]", 1))
	acctest.Mention(t, w.Must("plan"), "and the state has that deployment", "give one of them another node_id",
		"terraform state list -id="+node)
	w.Must("import", missing, node)
	acctest.Mention(t, w.Must("plan"), "Two deployments for one node", "Destroying either of them undeploys the machine")
	w.Must("state", "rm", missing)
	w.Configure(s.Provider() + first)
	if missing == acctest.DeploymentAddress {
		w.Configure(s.Provider() + second)
	}
	site.WantVerbs(t, s, node, "active")
	acctest.NeverMention(t, w.Must("destroy", "-auto-approve"), "Two deployments")
}
