package host_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// withBMC is a configuration with the host "h" on a machine with a Redfish BMC, with further settings.
func withBMC(s *acctest.Site, settings ...string) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{
		`bmc = { address = "redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1", username = "root", password = "calvin" }`,
	}, settings...)...)
}

const (
	virtualization = `bios_settings = { ProcVirtualization = "Enabled" }`
	mirror         = `raid = { delete_existing = true, volumes = [{ level = "1", size_gb = "MAX", name = "os", root = true, number_of_physical_disks = 2 }] }`
	newFirmware    = `firmware = { bios = { url = "https://firmware.example.com/bios-2.19.1.bin", version = "2.19.1" } }`
)

// pending checks pending_changes in the state.
func pending(parts ...string) statecheck.StateCheck {
	values := []knownvalue.Check{}
	for _, part := range parts {
		values = append(values, knownvalue.StringExact(part))
	}
	return hostIs("pending_changes", knownvalue.SetExact(values))
}

// biosOf returns the values of a node's BIOS settings.
func biosOf(s *acctest.Site, node string) map[string]string {
	values := map[string]string{}
	list, _ := s.Must(http.MethodGet, "nodes/"+node+"/bios", nil)["bios"].([]any)
	for _, item := range list {
		setting, _ := item.(map[string]any)
		values[acctest.Text(setting["name"])] = acctest.Text(setting["value"])
	}
	return values
}

// wantBIOS fails a test unless the host has BIOS settings in Ironic.
func wantBIOS(t *testing.T, s *acctest.Site, want map[string]string) {
	t.Helper()
	have := biosOf(s, s.Name("h"))
	for name, value := range want {
		if have[name] != value {
			t.Errorf("the BIOS has %v, want %v", have, want)
		}
	}
}

// stepsSent returns the clean and service steps that the fake was sent for a node, in order.
func stepsSent(t *testing.T, s *acctest.Site, node string) []string {
	t.Helper()
	var names []string
	for _, r := range s.Fake.Requests() {
		if r.Method != http.MethodPut || r.Path != "/v1/nodes/"+node+"/states/provision" {
			continue
		}
		var body struct {
			CleanSteps   []struct{ Interface, Step string } `json:"clean_steps"`
			ServiceSteps []struct{ Interface, Step string } `json:"service_steps"`
		}
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
			t.Fatal(err)
		}
		for _, step := range slices.Concat(body.CleanSteps, body.ServiceSteps) {
			names = append(names, step.Interface+"."+step.Step)
		}
	}
	return names
}

func wantSteps(t *testing.T, s *acctest.Site, w *acctest.Workspace, want ...string) {
	t.Helper()
	id := acctest.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"])
	if got := stepsSent(t, s, id); !slices.Equal(got, want) {
		t.Errorf("the node was sent the steps %v, want %v", got, want)
	}
}

func wantPending(t *testing.T, w *acctest.Workspace, want ...any) {
	t.Helper()
	if got, _ := acctest.InState(t, w, acctest.HostAddress).Values["pending_changes"].([]any); !slices.Equal(got, want) {
		t.Errorf("pending_changes is %v, want %v", got, want)
	}
}

// BIOS settings of a new host are on the machine before it is available. A change takes the host out of the pool, and the plan says so.
func TestAccHostBIOS_isSetAndChanged(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	available := acctest.Target("available")
	w := acctest.NewWorkspace(t, hostConfig(s, available, `bios_settings = { ProcVirtualization = "Enabled", BootMode = "Uefi" }`))
	output, _ := w.Plan()
	acctest.NeverMention(t, output, "Warning:")
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled", "BootMode": "Uefi"})
	wantPending(t, w)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	acctest.ForgetVerbs(s)
	w.Configure(hostConfig(s, available, `bios_settings = { ProcVirtualization = "Disabled", BootMode = "Uefi" }`))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Host leaves the pool", "For bios_settings, Ironic takes it out of the pool and restarts it, and cleans it before it is available again")
	acctest.NeverMention(t, output, "Cleaning erases data")
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Disabled", "BootMode": "Uefi"})
	acctest.WantVerbs(t, s, acctest.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]), "manage", "clean", "provide")
	acctest.NoChanges(t, w)

	acctest.ForgetVerbs(s)
	w.Configure(hostConfig(s, available)) // nothing is managed any more, and nothing happens to the machine
	output, _ = w.Plan()
	acctest.NeverMention(t, output, "Warning:")
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Disabled", "BootMode": "Uefi"})
	acctest.WantVerbs(t, s, acctest.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]))
	acctest.NoChanges(t, w)
}

func TestAccHostBIOS_changesOnManageable(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(hostConfig(s, virtualization))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Hardware change restarts the machine", "Ironic changes bios_settings of host "+s.Name("h")+" in a manual cleaning")
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	acctest.NoChanges(t, w)
	if state := s.Node(s.Name("h"))["provision_state"]; state != "manageable" {
		t.Errorf("the node is %v", state)
	}
}

// On a deployed machine the change waits, the state says so, and the plan after the deployment applies it.
func TestAccHostBIOS_waitsForDeployment(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	class := `resource_class = ` + acctest.Quoted(s.Class())
	deployed := acctest.Deployment("metal_host.h.id", acctest.Image("a"))
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available"), class)+deployed)
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	changed := hostConfig(s, acctest.Target("available"), class, virtualization)
	w.Configure(changed + deployed)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Hardware change waits", "so bios_settings does not change now", `"bios_settings"`, `on_active = "service"`)
	w.Must("apply", "-auto-approve")
	wantPending(t, w, "bios_settings")
	if have := biosOf(s, s.Name("h")); have["ProcVirtualization"] != "" {
		t.Errorf("the BIOS of the deployed machine has %v", have)
	}
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	w.Configure(changed)
	w.Must("apply", "-auto-approve") // destroys the deployment
	output, changes := w.Plan()
	if !changes {
		t.Fatal("the plan after the deployment is empty")
	}
	acctest.Mention(t, output, "Host leaves the pool", "pending_changes")
	w.Must("apply", "-auto-approve")
	wantPending(t, w)
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	acctest.NoChanges(t, w)
}

// A plan refuses what the BIOS does not accept, at the setting.
func TestFakeHostBIOS_planChecksRegistry(t *testing.T) {
	s := acctest.StartFake(t, nil)
	refused := func(settings, text string) resource.TestStep {
		return resource.TestStep{Config: withBMC(s, `bios_settings = { `+settings+` }`), PlanOnly: true, ExpectError: regexp.MustCompile(acctest.Wrapped(text))}
	}
	acctest.Test(t,
		resource.TestStep{Config: withBMC(s)},
		refused(`ProcVirtualisation = "Enabled"`, `The machine has no BIOS setting ProcVirtualisation; similar: ProcVirtualization\.`),
		refused(`BootMode = "uefi"`, `BootMode cannot be "uefi"\. It can be Bios, Uefi\.`),
		refused(`NumberOfCores = 65`, `NumberOfCores cannot be 65\. It must be 0 to 64\.`),
		refused(`NumberOfCores = "all"`, `NumberOfCores must be a whole number, not "all"\.`),
		refused(`SystemServiceTag = "MINE"`, `SystemServiceTag is read-only; its value is "TAG0001"\.`),
		refused(`AssetTag = "`+strings.Repeat("x", 64)+`"`, `AssetTag has 64 characters\. It must have 0 to 63\.`),
		resource.TestStep{
			Config:            withBMC(s, `bios_settings = { NumberOfCores = 8, AssetTag = "rack-2", BootMode = "Uefi" }`),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{pending()},
		},
		resource.TestStep{Config: withBMC(s, `bios_settings = { NumberOfCores = 8, AssetTag = "rack-2", BootMode = "Uefi" }`), PlanOnly: true},
	)
}
