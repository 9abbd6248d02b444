package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// withBMC is a configuration with the host "h" on a machine with a Redfish BMC, with further settings.
func withBMC(s *site.Site, settings ...string) string {
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
func biosOf(s *site.Site, node string) map[string]string {
	values := map[string]string{}
	list, _ := s.Must(http.MethodGet, "nodes/"+node+"/bios", nil)["bios"].([]any)
	for _, item := range list {
		setting, _ := item.(map[string]any)
		values[site.Text(setting["name"])] = site.Text(setting["value"])
	}
	return values
}

// wantBIOS fails a test unless the host has BIOS settings in Ironic.
func wantBIOS(t *testing.T, s *site.Site, want map[string]string) {
	t.Helper()
	have := biosOf(s, s.Name("h"))
	for name, value := range want {
		if have[name] != value {
			t.Errorf("the BIOS has %v, want %v", have, want)
		}
	}
}

// stepsSent returns the clean and service steps that the fake was sent for a node, in order.
func stepsSent(t *testing.T, s *site.Site, node string) []string {
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

func wantSteps(t *testing.T, s *site.Site, w *acctest.Workspace, want ...string) {
	t.Helper()
	id := site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"])
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
	s := site.Start(t, nil)
	available := acctest.Target("available")
	w := acctest.NewWorkspace(t, hostConfig(s, available, `bios_settings = { ProcVirtualization = "Enabled", BootMode = "Uefi" }`))
	output, _ := w.Plan()
	acctest.NeverMention(t, strings.ReplaceAll(output, "Warning: New host is cleaned", ""), "Warning:")
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled", "BootMode": "Uefi"})
	wantPending(t, w)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)

	site.ForgetVerbs(s)
	w.Configure(hostConfig(s, available, `bios_settings = { ProcVirtualization = "Disabled", BootMode = "Uefi" }`))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Host leaves the pool", "For bios_settings, Ironic takes it out of the pool and restarts it, and cleans "+
		"it before it is available again")
	acctest.NeverMention(t, output, "Cleaning erases data")
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Disabled", "BootMode": "Uefi"})
	site.WantVerbs(t, s, site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]), "manage", "clean", "provide")
	acctest.NoChanges(t, w)

	site.ForgetVerbs(s)
	w.Configure(hostConfig(s, available)) // nothing is managed any more, and nothing happens to the machine
	output, _ = w.Plan()
	acctest.NeverMention(t, output, "Warning:")
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Disabled", "BootMode": "Uefi"})
	site.WantVerbs(t, s, site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]))
	acctest.NoChanges(t, w)
}

func TestAccHostBIOS_changesOnManageable(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(hostConfig(s, virtualization))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Hardware change restarts the machine", "Ironic changes bios_settings of host "+s.Name("h")+
		" in a manual cleaning")
	w.Must("plan", "-out=saved")
	if shown := w.Must("show", "-json", "saved"); !strings.Contains(shown, `"pending_changes":true`) {
		t.Errorf("the plan in JSON does not show that pending_changes changes:\n%s", shown)
	}
	w.Must("apply", "saved")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	acctest.NoChanges(t, w)
	if state := s.Node(s.Name("h"))["provision_state"]; state != "manageable" {
		t.Errorf("the node is %v", state)
	}
}

// Ironic runs no steps in maintenance. The plan says so, and does not speak of deployed machines.
func TestAccHostBIOS_waitsForMaintenance(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(hostConfig(s, "maintenance = true", virtualization))
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Hardware change waits", "is in state manageable and in maintenance, so bios_settings does not change now")
	acctest.NeverMention(t, output, "on_active")
	wantPending(t, w, "bios_settings")
	w.Configure(hostConfig(s, "maintenance = false", virtualization))
	w.Must("apply", "-auto-approve")
	wantPending(t, w)
	acctest.NoChanges(t, w)
}

// On a deployed machine the change waits, the state says so, and the plan after the deployment applies it.
func TestAccHostBIOS_waitsForDeployment(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
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
	s := site.StartFake(t, nil)
	refused := func(settings, text string) resource.TestStep {
		return resource.TestStep{
			Config: withBMC(s, `bios_settings = { `+settings+` }`), PlanOnly: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(text)),
		}
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
		resource.TestStep{
			Config:   withBMC(s, `bios_settings = { NumberOfCores = 8, AssetTag = "rack-2", BootMode = "Uefi" }`),
			PlanOnly: true,
		},
	)
}

// RAID, BIOS and firmware change in one cleaning, in this order.
func TestFakeHostHardware_changesTogetherInOrder(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, withBMC(s, acctest.Target("available"), newFirmware, virtualization, mirror))
	output, _ := w.Plan()
	acctest.Mention(t, output, "All RAID volumes are deleted", "Ironic deletes every RAID volume of host "+s.Name("h"),
		"All data on the disks of these volumes is lost")
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	wantSteps(t, s, w, "raid.delete_configuration", "raid.create_configuration", "bios.apply_configuration", "firmware.update")
	site.WantVerbs(t, s, site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]), "manage", "clean", "provide")
	wantPending(t, w)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	volumes, _ := s.Node(s.Name("h"))["raid_config"].(map[string]any)["logical_disks"].([]any)
	if volume, _ := volumes[0].(map[string]any); len(volumes) != 1 || volume["volume_name"] != "os" || volume["raid_level"] != "1" ||
		volume["is_root_volume"] != true {
		t.Errorf("raid_config has %v", volumes)
	}

	site.ForgetVerbs(s)
	w.Configure(withBMC(s, acctest.Target("available"), newFirmware, virtualization, strings.Replace(mirror, `"MAX"`, "400", 1)))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Host leaves the pool", "For raid, Ironic takes it out", "All RAID volumes are deleted")
	w.Must("apply", "-auto-approve")
	wantSteps(t, s, w, "raid.delete_configuration", "raid.create_configuration")
	acctest.NoChanges(t, w)

	site.ForgetVerbs(s)
	w.Configure(withBMC(s, acctest.Target("available"), `raid = { delete_existing = true, volumes = [] }`))
	w.Must("apply", "-auto-approve")
	wantSteps(t, s, w, "raid.delete_configuration")
	acctest.NoChanges(t, w)
}

// An equal version sends nothing. Without a version, only another URL does.
func TestFakeHostFirmware_isUpdatedIfVersionDiffers(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	image := func(settings string) string { return withBMC(s, `firmware = { bios = { `+settings+` } }`) }
	w := acctest.NewWorkspace(t, withBMC(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	for _, step := range []struct {
		settings string
		sends    []string
		warns    bool
	}{
		{`url = "https://a.example.com/bios-2.18.0.bin", version = "2.18.0"`, nil, false}, // the machine has it
		{`url = "https://b.example.com/bios-2.18.0.bin", version = "2.18.0"`, nil, false},
		{`url = "https://b.example.com/bios-2.19.1.bin", version = "2.19.1"`, []string{"firmware.update"}, true},
		{`url = "https://b.example.com/bios-2.19.1.bin"`, nil, false},
		{`url = "https://b.example.com/bios-2.20.0.bin"`, []string{"firmware.update"}, true},
	} {
		site.ForgetVerbs(s)
		w.Configure(image(step.settings))
		output := w.Must("apply", "-auto-approve")
		if warned := strings.Contains(output, "Warning: Hardware change restarts"); warned != step.warns {
			t.Errorf("%s: the plan warns: %t\n%s", step.settings, warned, output)
		}
		wantSteps(t, s, w, step.sends...)
		wantPending(t, w)
		acctest.NoChanges(t, w)
	}
}

// What the machine has already is recorded and not sent, for example after an import.
func TestFakeHostHardware_importFindsWhatTheMachineHas(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	all := withBMC(s, acctest.Target("available"), mirror, virtualization, newFirmware)
	first := acctest.NewWorkspace(t, all)
	first.Must("apply", "-auto-approve")
	id := site.Text(acctest.InState(t, first, acctest.HostAddress).Values["id"])
	site.ForgetVerbs(s)

	second := acctest.NewWorkspace(t, all)
	second.Must("import", acctest.HostAddress, id)
	output, _ := second.Plan()
	acctest.NeverMention(t, output, "Warning: H", "Warning: All RAID")
	second.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, id)
	wantPending(t, second)
	acctest.NoChanges(t, second)
	acctest.Destroy(t, s, second)
}

// Ironic skips steps without a word. The provider reads back, and reports what is missing.
func TestFakeHostHardware_skippedStepsAreErrors(t *testing.T) {
	t.Parallel()
	skips := true
	s := site.StartFake(t, &fakeironic.Server{Skips: func(string) bool { return skips }})
	w := acctest.NewWorkspace(t, withBMC(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(withBMC(s, mirror, virtualization, newFirmware))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "Ironic reported success, but raid_config is empty",
		`the BIOS setting ProcVirtualization is "Disabled", not "Enabled"`,
		`the firmware of bios has version "2.18.0", not "2.19.1"`, `raid = "redfish"`)
	wantPending(t, w, "bios_settings", "firmware", "raid")

	skips = false
	w.Must("apply", "-auto-approve")
	wantPending(t, w)
	acctest.NoChanges(t, w)
}

// fake-hardware has no step that creates volumes: the cleaning fails. The next apply repeats it, or goes on without it.
func TestAccHostRAID_failedCleaning(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	available := acctest.Target("available")
	w := acctest.NewWorkspace(t, hostConfig(s, available))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(hostConfig(s, available, mirror))
	for range 2 {
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Fatalf("the apply succeeded:\n%s", output)
		}
		acctest.Mention(t, output, "Could not prepare node "+s.Name("h"), `is in state "clean failed"`,
			"A hardware setting could not be changed", "delete_configuration")
		wantPending(t, w, "raid")
	}
	w.Configure(hostConfig(s, available))
	w.Must("apply", "-auto-approve")
	wantPending(t, w)
	acctest.NoChanges(t, w)
}

// A failed step that has begun leaves a fault, which the next apply ends before it repeats the cleaning.
func TestFakeHostBIOS_nextApplyRepeatsFailedStep(t *testing.T) {
	t.Parallel()
	broken := true
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if broken && verb == "clean" {
			return "Node failed step bios.apply_configuration: the BMC does not answer"
		}
		return ""
	}})
	w := acctest.NewWorkspace(t, withBMC(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(withBMC(s, virtualization))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "the BMC does not answer")
	wantPending(t, w, "bios_settings")
	s.Fake.Set(s.Name("h"), "maintenance", true)
	s.Fake.Set(s.Name("h"), "fault", "clean failure")
	broken = false
	w.Must("apply", "-auto-approve")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	wantPending(t, w)
	if s.Node(s.Name("h"))["maintenance"] != false {
		t.Error("the node is still in maintenance")
	}
	acctest.NoChanges(t, w)
}

// With on_active = "service", a deployed machine is changed at once, except its volumes.
func TestFakeHostHardware_servicesDeployedMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	id := deployedWithBMC(t, s)
	config := func(settings ...string) string {
		return withBMC(s, append([]string{acctest.Target("available")}, settings...)...)
	}
	w := acctest.NewWorkspace(t, config(virtualization, newFirmware, mirror))
	w.Must("import", acctest.HostAddress, id)
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Hardware change waits")
	wantPending(t, w, "bios_settings", "firmware", "raid")
	wantSteps(t, s, w)

	const service = `hardware_changes = { on_active = "service" }`
	w.Configure(config(virtualization, newFirmware, mirror, service))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Deployed machine restarts", "unless hardware_changes.rollout lets them take turns",
		"Ironic changes bios_settings, firmware in a service")
	w.Must("apply", "-auto-approve")
	wantSteps(t, s, w, "bios.apply_configuration", "firmware.update")
	site.WantVerbs(t, s, id, "service")
	wantPending(t, w, "raid")
	wantBIOS(t, s, map[string]string{"ProcVirtualization": "Enabled"})
	acctest.NoChanges(t, w)
	node := s.Node(id)
	if state := node["provision_state"]; state != "active" {
		t.Errorf("the node is %v", state)
	}
	if extra, _ := node["extra"].(map[string]any); extra[notes.KeyService] == nil {
		t.Errorf("the node has no note of the service: %v", extra)
	}
}

// deployedWithBMC adds a node with a BMC that another client has deployed.
func deployedWithBMC(t *testing.T, s *site.Site) string {
	t.Helper()
	id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{
		"name": s.Name("h"), "driver": "redfish", "boot_interface": "redfish-virtual-media", "driver_info": map[string]any{
			"redfish_address": "https://192.0.2.11", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
			"redfish_password": "calvin",
		},
	})["uuid"])
	s.Fake.Set(id, "provision_state", "active")
	s.Fake.Set(id, "instance_uuid", site.ForeignInstance(s))
	s.Fake.Set(id, "power_state", "power on")
	return id
}

func newFirmwareOf(component string) string {
	return fmt.Sprintf(`firmware = { %q = { url = "https://firmware.example.com/nic-3.1.bin", version = "3.1" } }`, component)
}

// A policy that forbids steps is an error that names them.
func TestFakeHostHardware_forbiddenSteps(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/states/provision") {
			return nil
		}
		var body struct {
			Steps []any `json:"clean_steps"`
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Steps == nil {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusForbidden,
			Body:   `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Access was denied to the following resource: baremetal:node:set_provision_state:clean_steps\", \"debuginfo\": null}"}`,
		}
	}})
	w := acctest.NewWorkspace(t, withBMC(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(withBMC(s, virtualization))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "Ironic's policy does not allow bios.apply_configuration on node",
		"The rule baremetal:node:set_provision_state:clean_steps of Ironic's policy does not allow this to the user")
	wantPending(t, w, "bios_settings")
}

// Attributes that the server is too old for are refused by name, before anything is done.
func TestFakeHostHardware_tooOldServer(t *testing.T) {
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	refused := func(text string, settings ...string) resource.TestStep {
		return resource.TestStep{Config: withBMC(s, settings...), PlanOnly: true, ExpectError: regexp.MustCompile(acctest.Wrapped(text))}
	}
	acctest.Test(t,
		refused("firmware needs API 1.86", newFirmware),
		refused("hardware_changes.on_active needs API 1.87", virtualization, `hardware_changes = { on_active = "service" }`),
		refused("hardware_changes.disable_ramdisk needs API 1.108", virtualization,
			`hardware_changes = { on_active = "service", disable_ramdisk = true }`),
		resource.TestStep{
			Config:            withBMC(s, virtualization, `hardware_changes = { disable_ramdisk = true }`),
			ConfigStateChecks: []statecheck.StateCheck{pending()},
		},
	)
}

func TestFakeHostHardware_invalidConfiguration(t *testing.T) {
	s := site.StartFake(t, nil)
	volume := func(settings string) string {
		return `raid = { volumes = [{ level = "1", size_gb = 100, root = true }, { ` + settings + ` }] }`
	}
	var steps []resource.TestStep
	for text, setting := range map[string]string{
		"Without volumes, raid does nothing":         `raid = { volumes = [] }`,
		"Images are deployed on one volume":          volume(`level = "0", size_gb = "MAX", root = true`),
		"RAID level 5 needs at least 3 disks":        volume(`level = "5", size_gb = "MAX", number_of_physical_disks = 2`),
		"must be a whole number of GiB, or MAX":      volume(`level = "0", size_gb = "100G"`),
		"must be specified when":                     volume(`level = "0", size_gb = 1, physical_disks = ["a"]`),
		"must be bios, bmc or nic:NAME":              newFirmwareOf("disk"),
		"must be a URL":                              `firmware = { bios = { url = "bios.bin" } }`,
		`value must be one of: \["wait" "service"\]`: `hardware_changes = { on_active = "now" }`,
	} {
		steps = append(steps, resource.TestStep{
			Config: withBMC(s, setting), PlanOnly: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(text)),
		})
	}
	acctest.Test(t, steps...)
}

// A value that is known only during the apply is planned as a change that may restart the machine.
func TestFakeHostBIOS_unknownValue(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, withBMC(s))
	w.Must("apply", "-auto-approve")
	defer acctest.Destroy(t, s, w)
	w.Configure(withBMC(s, `bios_settings = { AssetTag = terraform_data.tag.output }`) + "resource \"terraform_data\" \"tag\" {\n  input " +
		"= \"rack-2\"\n}\n")
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Hardware change restarts the machine")
	wantBIOS(t, s, map[string]string{"AssetTag": "rack-2"})
	wantPending(t, w)
	acctest.NoChanges(t, w)
}
