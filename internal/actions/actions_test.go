package actions_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// on returns an action for a node. settings are pairs of names and values.
func on(node, kind string, settings ...any) acctest.Action {
	a := acctest.Action{Type: "metal_" + kind, Config: map[string]any{"node_id": node}}
	for i := 0; i+1 < len(settings); i += 2 {
		name, _ := settings[i].(string)
		a.Config[name] = settings[i+1]
	}
	return a
}

// steps are steps with names such as "bios.factory_reset".
func steps(names ...string) (list []any) {
	for _, name := range names {
		kind, step, _ := strings.Cut(name, ".")
		list = append(list, map[string]any{"interface": kind, "step": step})
	}
	return list
}

func wantState(t *testing.T, s *site.Site, node, want string) {
	t.Helper()
	if got := s.Node(node)["provision_state"]; got != want {
		t.Errorf("the node is %v, want %s", got, want)
	}
}

func TestAccPower_switchesAndRestarts(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n", nil)
	for _, step := range []struct{ action, want, says string }{
		{"on", "power on", "available, power on"},
		{"on", "power on", "available, power on"},
		{"reboot", "power on", "power on"},
		{"soft_reboot", "power on", "power on"},
		{"soft_off", "power off", "available, power off"},
		{"reboot", "power on", "available, power on"},
		{"off", "power off", "available, power off"},
	} {
		acctest.Works(t, s, on(s.Name("n"), "power", "action", step.action), "node "+s.Name("n"), step.says)
		if got := s.Node(node)["power_state"]; got != step.want {
			t.Errorf("after %s: %v, want %s", step.action, got, step.want)
		}
	}
}

func TestFakePower_explainsFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fake   *fakeironic.Server
		fields map[string]any
		action string
		says   []string
	}{
		"no soft power": {
			&fakeironic.Server{NoSoftPower: true},
			map[string]any{"power_state": "power on"},
			"soft_off",
			[]string{
				"Could not shut down node",
				`cannot ask an operating system to shut down. Cut its power instead: "off" or "reboot", without soft`,
			},
		},
		"never off": {
			&fakeironic.Server{},
			map[string]any{"power_state": "power on", "disable_power_off": true},
			"off",
			[]string{"disable_power_off is set", `Use "reboot" without soft`},
		},
		"in progress": {
			&fakeironic.Server{},
			map[string]any{"provision_state": "clean wait"},
			"on",
			[]string{"an operation on it is in progress"},
		},
		"BMC": {&fakeironic.Server{Fail: func(fakeironic.Node, string) string {
			return "BMC is sulking"
		}}, map[string]any{"power_state": "power on"}, "reboot", []string{"Could not restart node", "BMC is sulking"}},
		"no such node": {&fakeironic.Server{}, nil, "", []string{"Could not switch on node nowhere", "Ironic has no such node"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, tt.fake)
			node := site.AddNode(t, s, "n", nil)
			for field, value := range tt.fields {
				tt.fake.Set(node, field, value)
			}
			action := on(node, "power", "action", tt.action)
			if tt.action == "" {
				action = on("nowhere", "power", "action", "on")
			}
			acctest.Refuses(t, s, action, tt.says...)
			tt.fake.Set(node, "provision_state", "available")
		})
	}
}

func TestAccInspect_leavesAnAvailableMachineAvailable(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n", nil)
	before := s.Node(node)["inspection_finished_at"]
	site.ForgetVerbs(s)
	acctest.Works(t, s, on(node, "inspect"), "available", "manageable")
	if now := s.Node(node)["inspection_finished_at"]; now == nil || now == before {
		t.Errorf("inspected at %v, before at %v", now, before)
	}
	wantState(t, s, node, "available")
	site.WantVerbs(t, s, node, "manage", "inspect", "provide")
}

func TestAccActions_refuseWhatOthersUse(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n", nil)
	instance := site.ForeignInstance(s)
	s.Patch(node, "add", "/instance_uuid", instance)
	wipe := on(node, "clean", "steps", steps("deploy.erase_devices"), "erase", true)
	for _, a := range []acctest.Action{on(node, "inspect"), wipe} {
		acctest.Refuses(t, s, a, "it is reserved by "+instance)
	}
	s.Verb(node, "active", "active")
	site.ForgetVerbs(s)
	for _, a := range []acctest.Action{on(node, "inspect"), wipe} {
		acctest.Refuses(t, s, a, `is in state "active": something is deployed on it`)
	}
	acctest.Refuses(t, s, on(node, "abort"), "there is none")
	if s.Newest() >= 87 {
		acctest.Refuses(t, s, on(node, "service", "steps", steps("deploy.erase_devices")), "Service would erase a deployed machine",
			"deploy.erase_devices")
	}
	site.WantVerbs(t, s, node)
	s.Verb(node, "deleted", "available")
}

func TestAccClean_runsStepsAndErasesOnlyIfAllowed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n", nil)
	reset := on(node, "clean", "steps", steps("bios.factory_reset"))
	acctest.Refuses(t, s, reset, `is in state "available"`, `set target_state = "manageable" on its metal_host`)
	s.Verb(node, "manage", "manageable")
	site.ForgetVerbs(s)
	acctest.Refuses(t, s, on(node, "clean", "steps", steps("bios.factory_reset", "deploy.erase_devices_metadata",
		"raid.delete_configuration")),
		"Cleaning would erase disks", "deploy.erase_devices_metadata, raid.delete_configuration", "erase = true")
	acctest.Refuses(t, s, on(node, "clean"), "runbook")
	site.WantVerbs(t, s, node)
	acctest.Works(t, s, reset, "manageable")
	site.WantVerbs(t, s, node, "clean")
	wantState(t, s, node, "manageable")
	s.Verb(node, "provide", "available")
}

func TestFakeClean_erasesIfAllowed(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", map[string]any{
		"driver": "redfish", "raid_interface": "redfish",
		"driver_info": map[string]any{"redfish_address": "https://192.0.2.1"},
	})
	s.Fake.Set(node, "provision_state", "manageable")
	s.Fake.Set(node, "raid_config", map[string]any{"logical_disks": []any{map[string]any{"raid_level": "1"}}})
	acctest.Works(t, s, on(node, "clean", "steps", steps("raid.delete_configuration"), "erase", true))
	config, _ := s.Node(node)["raid_config"].(map[string]any)
	if disks, _ := config["logical_disks"].([]any); len(disks) > 0 {
		t.Errorf("the volumes are %v", disks)
	}
	s.Fake.Set(node, "provision_state", "available")
}

func TestAccClean_explainsFailureAndRepeatsIt(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n", nil)
	s.Verb(node, "manage", "manageable")
	broken := map[string]any{"interface": "bios", "step": "apply_configuration", "args": `{"settings": [{"bad": 1}]}`}
	acctest.Refuses(t, s, on(node, "clean", "steps", []any{broken}), "Could not clean node", "clean failed", "try again")
	acctest.Works(t, s, on(node, "clean", "steps", steps("bios.factory_reset")))
	wantState(t, s, node, "manageable")
	s.Verb(node, "provide", "available")
}

// deployed adds a node on which another client has deployed something.
func deployed(t *testing.T, s *site.Site, fields map[string]any) (node string) {
	t.Helper()
	node = site.AddNode(t, s, "n", fields)
	s.Verb(node, "active", "active")
	site.ForgetVerbs(s)
	return node
}

func TestAccService_runsSteps(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 87)
	node := deployed(t, s, nil)
	acctest.Works(t, s, on(node, "service", "steps", steps("vendor.log_passthrough")), "active")
	site.WantVerbs(t, s, node, "service")
	wantState(t, s, node, "active")
	if extra, _ := s.Node(node)["extra"].(map[string]any); extra[notes.KeyService] == nil {
		t.Errorf("the node has no note of the service: %v", extra)
	}
	s.Verb(node, "deleted", "available")
	acctest.Refuses(t, s, on(node, "service", "steps", steps("vendor.log_passthrough")), "services only deployed machines", "metal_clean")
}

func TestAccService_explainsFailure(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 97)
	node := deployed(t, s, nil)
	acctest.Refuses(t, s, on(node, "service", "steps", steps("vendor.nostep")), "Could not service node", "vendor.nostep",
		`in state "active" now`, "try again")
	wantState(t, s, node, "active")
	acctest.Works(t, s, on(node, "service", "steps", steps("vendor.log_passthrough")))
	s.Verb(node, "deleted", "available")
}

func TestAccService_runsRunbook(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 112)
	trait := s.Trait("BMC")
	node := deployed(t, s, nil)
	site.AddTrait(s, node, trait)
	for name, step := range map[string]string{"harmless": "log_passthrough", "wiping": "erase_devices"} {
		kind := map[string]string{"harmless": "vendor", "wiping": "deploy"}[name]
		s.CallAt("1.112", http.MethodPost, "runbooks", map[string]any{
			"name":  s.Name(name),
			"steps": []any{map[string]any{"interface": kind, "step": step, "args": map[string]any{}, "order": 1}},
		})
		s.CallAt("1.112", http.MethodPut, "runbooks/"+s.Name(name)+"/traits", map[string]any{"traits": []any{trait}})
		defer s.CallAt("1.112", http.MethodDelete, "runbooks/"+s.Name(name), nil)
	}
	site.ForgetVerbs(s)
	acctest.Refuses(t, s, on(node, "service", "runbook", s.Name("wiping")), "deploy.erase_devices would erase its disks")
	acctest.Refuses(t, s, on(node, "service", "runbook", s.Name("none")), "could not be found")
	acctest.Refuses(t, s, on(node, "service", "runbook", s.Name("harmless"), "steps", steps("vendor.log_passthrough")), "runbook")
	site.WantVerbs(t, s, node)
	acctest.Works(t, s, on(node, "service", "runbook", s.Name("harmless")), "active")
	site.WantVerbs(t, s, node, "service")
	s.Verb(node, "deleted", "available")
	s.Verb(node, "manage", "manageable")
	acctest.Refuses(t, s, on(node, "clean", "runbook", s.Name("wiping")), "deploy.erase_devices would erase its disks", "erase = true")
	s.Verb(node, "provide", "available")
}

func TestAccBMC_abortEndsWhatWaitsForTheMachine(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil) // the other real Ironics cannot clean with an agent
	node := site.AddNode(t, s, "n", map[string]any{"deploy_interface": "direct", "boot_interface": "fake", "automated_clean": false})
	s.Verb(node, "manage", "manageable")
	if s.Fake != nil {
		s.Fake.Set(node, "provision_state", "clean wait")
		s.Fake.Set(node, "target_provision_state", "manageable")
	} else { // no ramdisk ever boots
		s.Must(http.MethodPut, "nodes/"+node+"/states/provision",
			map[string]any{"target": "clean", "clean_steps": steps("bios.factory_reset")})
		s.Await(node, "provision_state", "clean wait")
	}
	acctest.Works(t, s, on(node, "abort"), "clean wait", "clean failed")
	wantState(t, s, node, "clean failed")
	acctest.Refuses(t, s, on(node, "abort"), `is in state "clean failed"`, "there is none")
	if s.Newest() >= 85 {
		acctest.Refuses(t, s, on(node, "unhold"), "no step holds it")
	}
	s.Verb(node, "manage", "manageable")
	s.Verb(node, "provide", "available")
}

func TestFakeUnhold_continues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ held, target, then string }{
		{"clean hold", "manageable", "manageable"}, {"deploy hold", "active", "active"}, {"service hold", "active", "active"},
	} {
		s := site.StartFake(t, nil)
		node := site.AddNode(t, s, "n", nil)
		s.Fake.Set(node, "provision_state", tt.held)
		s.Fake.Set(node, "target_provision_state", tt.target)
		acctest.Works(t, s, on(node, "unhold"), tt.held, tt.then)
		wantState(t, s, node, tt.then)
		s.Fake.Set(node, "provision_state", "available")
	}
}

func TestAccBMC_nmiAndVirtualMediaReachTheMachine(t *testing.T) {
	t.Parallel()
	s, iso := site.StartWithBMCs(t, nil), bmc.ServeISO(t)
	b := bmc.Start(t, s, "b", fakebmc.Config{})
	node := site.AddNode(t, s, "n", b.Node("redfish-virtual-media"))
	acctest.Refuses(t, s, on(node, "nmi"), "it is switched off")
	acctest.Works(t, s, on(node, "power", "action", "on"), "power on")
	acctest.Works(t, s, on(node, "nmi"))
	if !slices.ContainsFunc(b.History(fakebmc.Commanded), func(e fakebmc.Event) bool { return e.Detail == "Nmi" }) {
		t.Errorf("the BMC has got no NMI: %v", b.History())
	}
	acctest.Works(t, s, on(node, "power", "action", "off"), "power off")
	if s.Newest() < 89 {
		acctest.Refuses(t, s, on(node, "virtual_media", "image_url", iso.URL("tools")), "metal_virtual_media", "1.89")
		return
	}
	holds := func() bool {
		if s.Fake == nil {
			return b.Medium() != ""
		}
		return s.Fake.Drive(node) != ""
	}
	for range 2 { // the second replaces the first
		acctest.Works(t, s, on(node, "virtual_media", "image_url", iso.URL("tools")))
		if !holds() {
			t.Error("the drive is empty")
		}
	}
	acctest.Works(t, s, on(node, "virtual_media", "image_url", nil))
	if holds() {
		t.Error("the drive is not empty")
	}
}

func TestAccBMC_nmiOverIPMI(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "b", fakebmc.Config{})
	b.StartIPMI("127.1.0.3:0")
	node := site.AddNode(t, s, "n", b.IPMINode("ipxe"))
	acctest.Works(t, s, on(node, "power", "action", "on"), "power on")
	acctest.Works(t, s, on(node, "nmi"))
	if sent := b.History(fakebmc.Commanded); len(sent) != 2 || sent[1].Detail != "Nmi" {
		t.Errorf("the BMC was told %v", sent)
	}
	acctest.Works(t, s, on(node, "power", "action", "off"), "power off")
}

func TestAccActions_sayWhatTheDriverLacks(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n", nil)
	acctest.Works(t, s, on(node, "power", "action", "on"))
	acctest.Refuses(t, s, on(node, "nmi"), "Could not send an NMI to node", "its management interface, fake, cannot send an NMI")
	acctest.Works(t, s, on(node, "power", "action", "off"))
	if s.Newest() >= 89 {
		acctest.Refuses(t, s, on(node, "virtual_media"), "Could not detach virtual media from node",
			"does not support detach_virtual_media")
	} else {
		acctest.Refuses(t, s, on(node, "virtual_media"), "metal_virtual_media", "1.89")
		acctest.Refuses(t, s, on(node, "service", "steps", steps("bios.factory_reset")), "metal_service", "1.87")
		acctest.Refuses(t, s, on(node, "clean", "runbook", "a"), "runbook", "1.92")
		acctest.Refuses(t, s, on(node, "unhold"), "metal_unhold", "1.85")
	}
}

func TestFakeVirtualMedia_leavesALiveISOAlone(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", map[string]any{
		"driver":      "redfish",
		"driver_info": map[string]any{"redfish_address": "https://192.0.2.1"},
	})
	s.Fake.Set(node, "provision_state", "active")
	s.Fake.Set(node, "instance_info", map[string]any{"boot_iso": "http://images.example.com/a.iso"})
	acctest.Refuses(t, s, on(node, "virtual_media"), "it runs a live ISO")
	s.Fake.Set(node, "provision_state", "available")
	s.Fake.Set(node, "instance_info", map[string]any{})
}

// The messages come while Ironic works, not at the end. After Ctrl-C, Ironic goes on.
func TestFakeActions_streamProgressUntilInterrupted(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{StepTime: time.Hour})
	node := site.AddNode(t, s, "n", nil)
	s.Fake.Set(node, "provision_state", "active")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	got := acctest.StartActions(t, s).Invoke(ctx, on(node, "service", "steps", steps("vendor.log_passthrough")), func(text string) {
		if strings.Contains(text, "servicing") {
			interrupt()
		}
	})
	if !got.Failed {
		t.Error("an interrupted action has succeeded")
	}
	acctest.Mention(t, got.Text, "Could not service node", "The run was interrupted. Ironic goes on with what was started", "servicing",
		"No apply repeats the operation")
	wantState(t, s, node, "servicing")
	s.Fake.Set(node, "provision_state", "available")
}

// Terraform invokes an action twice at the same time if two triggers name it.
func TestFakeActions_operateAMachineOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", nil)
	s.Fake.Set(node, "provision_state", "manageable")
	server := acctest.StartActions(t, s)
	release := s.Hold("inspecting")
	var both sync.WaitGroup
	for _, ref := range []string{node, s.Name("n")} {
		both.Go(func() {
			if got := server.Invoke(t.Context(), on(ref, "inspect"), func(string) {}); got.Failed {
				t.Error(got.Text)
			}
		})
	}
	site.AwaitState(t, s, node, "inspecting")
	release()
	both.Wait()
	site.WantVerbs(t, s, node, "inspect", "inspect")
	s.Fake.Set(node, "provision_state", "available")
}

// Older CLIs and OpenTofu do not know actions. The provider works there as if it had none.
func TestAccActions_changeNothingOnOtherCLIs(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Host(s, 1))
	defer acctest.Destroy(t, s, w)
	acctest.NeverMention(t, strings.ReplaceAll(w.Must("apply", "-auto-approve"), "Warning: New host is cleaned", ""), "Warning:")
	acctest.NoChanges(t, w)
}
