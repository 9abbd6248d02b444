package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	acc "github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// metal runs a command on a site, and returns its exit code and what it writes.
func metal(t *testing.T, s *acc.Site, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log written
	env := map[string]string{"METAL_ENDPOINT": s.Endpoint}
	code = run(t.Context(), append(args, "--poll-interval", "200ms"), func(key string) string { return env[key] }, &out, &log)
	return code, out.String(), log.String()
}

// wantExit runs commands, each a line, and checks their exit codes. node replaces NODE.
func wantExit(t *testing.T, s *acc.Site, node string, commands map[int][]string) {
	t.Helper()
	for want, lines := range commands {
		for _, line := range lines {
			if code, out, log := metal(t, s, strings.Fields(strings.ReplaceAll(line, "NODE", node))...); code != want {
				t.Errorf("metal %s: exit code %d, want %d\n%s%s", line, code, want, out, log)
			}
		}
	}
}

func TestAccMetal_operatesAMachine(t *testing.T) {
	t.Parallel()
	s := acc.Start(t, nil)
	node := acc.AddNode(t, s, "n", nil)
	is := func(field string, want any) {
		t.Helper()
		if got := s.Node(node)[field]; got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	wantExit(t, s, node, map[int][]string{cli.ExitWouldChange: {"power on NODE --dry-run"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"power on NODE", "power on NODE"}})
	is("power_state", "power on")
	wantExit(t, s, node, map[int][]string{cli.ExitUnconfirmed: {"power off NODE", "inspect NODE"}})
	is("power_state", "power on")
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {
		"power reboot NODE --soft --yes", "power off NODE --yes",
		"inspect NODE --yes-erase NODE",
	}})
	is("provision_state", "available")
	wantExit(t, s, node, map[int][]string{cli.ExitNodesFailed: {"clean NODE --steps deploy.erase_devices", "abort NODE"}})
	if service := "service NODE --steps bios.factory_reset --yes-erase NODE"; s.Newest() < 87 {
		wantExit(t, s, node, map[int][]string{cli.ExitError: {service}})
	} else {
		wantExit(t, s, node, map[int][]string{cli.ExitNodesFailed: {service}})
	}
	if s.Newest() < 85 {
		wantExit(t, s, node, map[int][]string{cli.ExitError: {"unhold NODE"}})
	} else {
		wantExit(t, s, node, map[int][]string{cli.ExitNodesFailed: {"unhold NODE"}})
	}
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"indicator NODE"}, cli.ExitNodesFailed: {"indicator NODE blink"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"maintenance on NODE --reason broken"}})
	is("maintenance_reason", "broken")
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"maintenance off NODE"}})
	is("maintenance", false)
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"retire NODE --reason old --yes"}})
	is("retired_reason", "old")
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"unretire NODE"}})
	is("retired", false)
	is("provision_state", "manageable")
	wantExit(t, s, node, map[int][]string{cli.ExitUnconfirmed: {"provide NODE --yes"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"provide NODE --yes-erase NODE"}})
	is("provision_state", "available")
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"manage NODE"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"clean NODE --steps bios.factory_reset --yes"}})
	wantExit(t, s, node, map[int][]string{cli.ExitUnconfirmed: {"clean NODE --steps bios.factory_reset --erase --yes"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"clean NODE --steps bios.factory_reset --erase --yes-erase NODE"}})
	is("provision_state", "manageable")
	if extra := acc.Part[map[string]any](t, s.Node(node), "extra"); extra["terraform_metal_operation"] != nil {
		t.Errorf("a note is left: %v", extra)
	}
	var shown []map[string]any
	if _, out, _ := metal(t, s, "power", "off", node, "--output", "json"); json.Unmarshal([]byte(out), &shown) != nil || len(shown) != 1 ||
		shown[0]["outcome"] != "unchanged" || shown[0]["node_id"] != node {
		t.Errorf("metal power off writes %s", out)
	}
	s.Verb(node, "provide", "available") // as the site expects it
}

func TestAccMetal_servicesADeployedMachine(t *testing.T) {
	t.Parallel()
	s := acc.Start(t, nil)
	s.SkipBefore(t, 87)
	node := acc.AddNode(t, s, "n", nil)
	s.Verb(node, "active", "active")
	wantExit(t, s, node, map[int][]string{cli.ExitUnconfirmed: {"service NODE --steps vendor.log_passthrough --yes"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"service NODE --steps vendor.log_passthrough --yes-erase NODE"}})
	if is := s.Node(node)["provision_state"]; is != "active" {
		t.Errorf("after the service, the machine is in state %v", is)
	}
	s.Verb(node, "deleted", "available")
}

// No real Ironic can be made to hold a machine (reference/ironic.md#skipped-steps).
func TestHeld_isContinuedOrEnded(t *testing.T) {
	t.Parallel()
	s := acc.StartFake(t, nil)
	node := acc.AddNode(t, s, "n", nil)
	for command, ends := range map[string]string{
		"unhold NODE --yes-erase NODE": "manageable",
		"abort NODE --yes-erase NODE":  "clean failed",
	} {
		s.Fake.Set(node, "provision_state", "clean hold")
		s.Fake.Set(node, "target_provision_state", "manageable")
		wantExit(t, s, node, map[int][]string{cli.ExitDone: {command}})
		if is := s.Node(node)["provision_state"]; is != ends {
			t.Errorf("after metal %s, the machine is in state %v", command, is)
		}
	}
	s.Fake.Set(node, "provision_state", "available")
}

func TestAccBMC_metalAbortsWhatWaitsForTheMachine(t *testing.T) {
	t.Parallel()
	s := acc.StartWithBMCs(t, nil) // the other real Ironics cannot clean with an agent
	node := acc.AddNode(t, s, "n", map[string]any{"deploy_interface": "direct", "boot_interface": "fake", "automated_clean": false})
	s.Verb(node, "manage", "manageable")
	if s.Fake != nil {
		s.Fake.Set(node, "provision_state", "clean wait")
		s.Fake.Set(node, "target_provision_state", "manageable")
	} else { // no ramdisk ever boots
		s.Must(http.MethodPut, "nodes/"+node+"/states/provision",
			map[string]any{"target": "clean", "clean_steps": []any{map[string]any{"interface": "bios", "step": "factory_reset"}}})
		s.Await(node, "provision_state", "clean wait")
	}
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"abort NODE --yes"}})
	if is := s.Node(node)["provision_state"]; is != "clean failed" {
		t.Errorf("after the abort, the machine is in state %v", is)
	}
	wantExit(t, s, node, map[int][]string{cli.ExitNodesFailed: {"abort NODE --yes"}})
	s.Verb(node, "manage", "manageable")
	s.Verb(node, "provide", "available")
}

func TestAccBMC_metalReachesTheMachine(t *testing.T) {
	t.Parallel()
	s, iso := acc.StartWithBMCs(t, nil), bmc.ServeISO(t)
	b := bmc.Start(t, s, "b", fakebmc.Config{})
	node := acc.AddNode(t, s, "n", b.Node("redfish-virtual-media"))
	wantExit(t, s, node, map[int][]string{cli.ExitNodesFailed: {"nmi NODE"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"power on NODE"}})
	wantExit(t, s, node, map[int][]string{cli.ExitUnconfirmed: {"nmi NODE"}})
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"nmi NODE --yes", "boot-device set pxe NODE --persistent"}})
	if code, out, log := metal(t, s, "boot-device", "show", node); code != cli.ExitDone || !strings.Contains(out, "pxe") {
		t.Errorf("metal boot-device show: exit code %d, writes %s%s", code, out, log)
	}
	if code, out, log := metal(t, s, "indicator", node); code != cli.ExitDone || !strings.Contains(out, "@system") {
		t.Errorf("metal indicator: exit code %d, writes %s%s", code, out, log)
	}
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"indicator NODE blink", "indicator NODE on --component chassis"}})
	attach := "virtual-media attach NODE --image-url " + iso.URL("tools")
	if s.Newest() < 89 {
		wantExit(t, s, node, map[int][]string{cli.ExitError: {attach}})
	} else {
		wantExit(t, s, node, map[int][]string{cli.ExitDone: {attach, attach}})
		wantExit(t, s, node, map[int][]string{cli.ExitDone: {"virtual-media detach NODE"}})
	}
	wantExit(t, s, node, map[int][]string{cli.ExitDone: {"power off NODE --yes"}})
}
