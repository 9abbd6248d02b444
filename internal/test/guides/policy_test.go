package guides_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// checkPlan is the policy check of the guide "Protect machines".
const checkPlan = examples + "/policy/check-plan.sh"

// policyPlans has plans for the test of both policy checks (tools/policy), each with what the checks find.
const policyPlans = "../../../tools/policy/testdata"

// writePlans makes the tests write the plans anew: METAL_POLICY_PLANS=1 METAL_ACC_CLI=all go test -run Policy ./internal/test/guides. The
// plan with actions needs Terraform 1.14.
var writePlans = os.Getenv("METAL_POLICY_PLANS") != ""

// runCheck runs the policy check, and returns its output and exit status.
func runCheck(t *testing.T, arguments ...string) (output string, status int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), checkPlan, arguments...) //nolint:gosec // ours
	text, _ := command.Output()
	return string(text), command.ProcessState.ExitCode()
}

// wantHarms saves a plan, and fails the test unless the policy check finds in it what the golden file has.
func wantHarms(t *testing.T, w *acctest.Workspace, name string) {
	t.Helper()
	w.Must("plan", "-out=saved")
	text := w.Must("show", "-json", "saved")
	plan, golden := filepath.Join(w.Dir, "plan.json"), filepath.Join(policyPlans, name+".txt")
	write(t, plan, text)
	all, status := runCheck(t, plan)
	wipes, _ := runCheck(t, "--wipes-only", plan)
	found := all + "--wipes-only\n" + wipes
	if writePlans {
		write(t, golden, found)
		write(t, filepath.Join(policyPlans, name+".json"), shortened(t, text))
	}
	if want := read(t, golden); found != want || (status == 1) != (all != "") || status > 1 {
		t.Errorf("status %d, found is\n%swant\n%s", status, found, want)
	}
}

// shortened returns a plan without what a policy check does not read.
func shortened(t *testing.T, text string) string {
	t.Helper()
	var plan map[string]any
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatal(err)
	}
	for _, unread := range []string{"configuration", "prior_state", "relevant_attributes", "timestamp"} {
		delete(plan, unread)
	}
	var short bytes.Buffer
	encoder := json.NewEncoder(&short)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(plan); err != nil {
		t.Fatal(err)
	}
	return short.String()
}

// skipWithout skips a test that runs programs which this machine may lack.
func skipWithout(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
}

// Only a complete plan may pass: one that Terraform could not finish lists only some of the machines that it harms.
func TestPolicy_neverPassesByMistake(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	plan := filepath.Join(t.TempDir(), "plan.json")
	write(t, plan, `{"format_version":"1.2","planned_values":{"root_module":{}},"errored":false}`)
	for name, arguments := range map[string][]string{
		"no plan": {}, "no file": {plan + ".gone"}, "two plans": {plan, plan}, "a wrong option": {"--wipe", plan},
		"no address": {plan, "--allow"},
	} {
		if output, status := runCheck(t, arguments...); status != 2 {
			t.Errorf("%s: status %d\n%s", name, status, output)
		}
	}
	for name, content := range map[string]string{
		"an empty file":          "",
		"a plan that has failed": `{"format_version":"1.2","planned_values":{"root_module":{}},"errored":true}`,
		"a state":                `{"format_version":"1.0","values":{"root_module":{}}}`,
		"half a plan":            `{"format_version":"1.2","planned_values":{`,
		"two plans in a file":    strings.Repeat(`{"planned_values":{}}`, 2),
		"changes that are none":  `{"planned_values":{},"resource_changes":[{"mode":"managed","type":"metal_host","change":{"actions":7}}]}`,
	} {
		broken := filepath.Join(t.TempDir(), "plan.json")
		write(t, broken, content)
		if output, status := runCheck(t, broken); status != 2 {
			t.Errorf("%s: status %d\n%s", name, status, output)
		}
	}
	write(t, plan, `{"planned_values":{},"resource_changes":[{"mode":"managed","type":"metal_host","address":"metal_host.h[\"\u001b[2J\u202e\"]",`+
		`"change":{"actions":["delete"],"before":{}}}]}`)
	if output, status := runCheck(t, plan); status != 1 || output != "metal_host.h[\"\ufffd[2J\ufffd\"]: is removed from Ironic\n" {
		t.Errorf("a key that a terminal would obey: status %d\n%q", status, output)
	}
	write(t, plan, `{"format_version":"1.2","planned_values":{"root_module":{}},"errored":false}`)
	if output, status := runCheck(t, "--allow", "metal_host.x", plan, "--wipes-only"); status != 0 || output != "" {
		t.Errorf("a plan without changes: status %d\n%s", status, output)
	}
	command := exec.CommandContext(t.Context(), checkPlan, plan)
	command.Env = []string{"PATH=" + t.TempDir()}
	command.Path, command.Args = "/bin/sh", []string{"sh", checkPlan, plan}
	if output, _ := command.CombinedOutput(); command.ProcessState.ExitCode() != 2 {
		t.Errorf("without jq: status %d\n%s", command.ProcessState.ExitCode(), output)
	}
}

// The commands of the guide "Terraform in CI" let pass what a file names, and nothing else.
func TestPolicy_guideAllowsByFile(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	_, commands, _ := strings.Cut(read(t, "../../../templates/guides/ci.md.tmpl"), "```shell\nmapfile")
	commands, _, found := strings.Cut("mapfile"+commands, "```")
	if !found {
		t.Fatal("ci.md has no commands with mapfile")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plan.json"), read(t, policyPlans+"/deployments.json"))
	script, err := filepath.Abs(checkPlan)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(script, filepath.Join(dir, "check-plan.sh")); err != nil {
		t.Fatal(err)
	}
	lines, _, _ := strings.Cut(read(t, policyPlans+"/deployments.txt"), "--wipes-only\n")
	var addresses []string
	for line := range strings.Lines(lines) {
		addresses = append(addresses, line[:strings.LastIndex(line, ": ")])
	}
	for allowed, want := range map[string]string{"": lines, strings.Join(addresses, "\n") + "\n": "", strings.Join(addresses[1:], "\n") +
		"\n": strings.SplitAfter(lines, "\n")[0]} {
		write(t, filepath.Join(dir, "allowed-harm"), allowed)
		command := exec.CommandContext(t.Context(), "bash", "-c", commands) //nolint:gosec // ours
		command.Dir = dir
		if output, _ := command.Output(); string(output) != want || (command.ProcessState.ExitCode() == 0) != (want == "") {
			t.Errorf("with %q allowed: status %d\n%s", allowed, command.ProcessState.ExitCode(), output)
		}
	}
}

// later declares a value that is known only during the apply.
const later = "resource \"terraform_data\" \"later\" {\n  input = \"b\"\n}\n"

func TestFakePolicy_findsHarmOfDeployments(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	s := site.StartFake(t, nil)
	v1, v2, replace := acctest.Image("v1"), acctest.Image("v2"), `on_change = "replace"`
	stories := []struct{ name, before, after string }{ // "": there is no such deployment
		{"rebuilt", v1, v2},
		{"rebuilt_perhaps", v1, v1 + "\n  config_drive = { user_data = terraform_data.later.output }"},
		{"restarted", v1 + "\n  restart_triggers = { a = \"1\" }", v1 + "\n  restart_triggers = { a = \"2\" }"},
		{
			"restarted_perhaps", v1 + "\n  restart_triggers = { a = \"1\" }",
			v1 + "\n  restart_triggers = { a = terraform_data.later.output }",
		},
		{"rescued", v1, v1 + "\n  rescue = {\n    password_wo = \"secret of the rescue\"\n    password_wo_version = 1\n  }"},
		{"switched_off", v1 + "\n  power_state = \"on\"", v1 + "\n  power_state = \"off\""},
		{"switched_on", v1 + "\n  power_state = \"off\"", v1 + "\n  power_state = \"on\""},
		{"switched_perhaps", v1 + "\n  power_state = \"on\"", v1 + "\n  power_state = terraform_data.later.output == \"b\" ? " +
			"\"off\" : \"on\""},
		{"replaced", v1 + "\n  " + replace, v2 + "\n  " + replace},
		{"destroyed", v1, ""},
		{"forgotten", v1 + "\n  on_destroy = \"forget\"", ""},
		{"adopted", "adopt = true\n  on_destroy = \"forget\"", ""},
		{"harmless", v1, v1 + "\n  max_attempts = 2"},
		{"ignored", v1, v2 + "\n  on_change = \"ignore\""},
		{"new", "", v1},
	}
	before, after := s.Provider(), s.Provider()+later
	for i, story := range stories {
		node := site.AddNode(t, s, fmt.Sprintf("n%d", i), nil)
		switch story.name {
		case "adopted":
			s.Verb(node, "manage", "manageable")
			defer s.Verb(node, "deleted", "available")
		case "forgotten":
			defer s.Verb(node, "deleted", "available")
		}
		block := func(settings string) string {
			if settings == "" {
				return ""
			}
			return fmt.Sprintf("resource \"metal_deployment\" %q {\n  for_each = { \"a \\\"b\\\"\" = %q }\n  node_id = "+
				"each.value\n  %s\n}\n", story.name, node, settings)
		}
		before, after = before+block(story.before), after+block(story.after)
	}
	w := acctest.NewWorkspace(t, before)
	w.Must(acctest.Apply()...)
	defer w.Must("destroy", "-auto-approve")
	w.Configure(after)
	wantHarms(t, w, "deployments")
}

func TestFakePolicy_findsHarmOfHosts(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	s := site.StartFake(t, nil)
	available, manageable, class := acctest.Target("available"), acctest.Target("manageable"), `resource_class = "baremetal"`
	raid := func(level string, disks int) string {
		return fmt.Sprintf("raid = { delete_existing = true, volumes = [{ level = %q, size_gb = \"MAX\", number_of_physical_disks "+
			"= %d }] }", level, disks)
	}
	const bios = "bios_settings = { ProcVirtualization = \"Enabled\" }"
	stories := []struct{ name, before, after string }{ // with the scheme of the BMC address if it is another one
		{"cleaned", manageable, available},
		{"cleaned_perhaps", manageable, "target_state = terraform_data.later.output == \"b\" ? \"available\" : \"manageable\""},
		{"not_cleaned", manageable + "\n  automated_clean = false", available + "\n  automated_clean = false"},
		{"in_use_again", available + "\n  retired = true", available + "\n  retired = false"},
		{"volumes", raid("1", 2), raid("1+0", 4)},
		{"bios", manageable, bios},
		{"bios_available", available, available + "\n  " + bios},
		{"serviced", available + "\n  " + class, available + "\n  " + class + "\n  " + bios +
			"\n  hardware_changes = { on_active = \"service\" }"},
		{"waits", available + "\n  " + class, available + "\n  " + class + "\n  " + bios},
		{"boots_otherwise", available + "\n  " + class, available + "\n  " + class + "\n  hardware_interfaces = { boot = \"ipxe\" }"},
		{"boots_otherwise_perhaps", available + "\n  " + class, available + "\n  " + class +
			"\n  hardware_interfaces = { boot = terraform_data.later.output == \"b\" ? \"ipxe\" : \"pxe\" }"},
		{"boots_otherwise_free", available, available + "\n  hardware_interfaces = { boot = \"ipxe\" }"},
		{"other_driver", available + "\n  " + class, "idrac-virtualmedia://" + available + "\n  " + class},
		{"other_interface", available + "\n  " + class, available + "\n  " + class + "\n  hardware_interfaces = { rescue = \"agent\" }"},
		{"inspected", `inspect_triggers = { a = "1" }`, `inspect_triggers = { a = "2" }`},
		{"inspected_perhaps", `inspect_triggers = { a = "1" }`, `inspect_triggers = { a = terraform_data.later.output }`},
		{"inspected_available", available + "\n  inspect_triggers = { a = \"1\" }", available + "\n  inspect_triggers = { a = \"2\" }"},
		{"boot_mode", `boot_mode = "bios"`, `boot_mode = "uefi"`},
		{"switched_off", `power_state = "on"`, `power_state = "off"`},
		{"switched_on", `power_state = "off"`, `power_state = "on"`},
		{"removed", manageable, ""},
		{"forgotten", `on_destroy = "forget"`, ""},
		{"renamed", available, available + "\n  description = \"renamed\"\n  traits = [\"CUSTOM_A\"]"},
		{"new", "", available + "\n  inspect = true\n  power_state = \"off\""},
	}
	before, after := s.Provider(), s.Provider()+later
	for i, story := range stories {
		block := func(settings string) string {
			if settings == "" {
				return ""
			}
			scheme, rest, other := strings.Cut(settings, "://")
			if !other {
				scheme, rest = "redfish-virtualmedia", settings
			}
			return fmt.Sprintf("resource \"metal_host\" %q {\n  name = %q\n  bmc = { address = \"%s://192.0.2.%d/redfish/v1/Systems/1\", "+
				"username = \"root\", password = \"calvin\" }\n  %s\n}\n",
				story.name, strings.ReplaceAll(story.name, "_", "-"), scheme, i+1, rest)
		}
		before, after = before+block(story.before), after+block(story.after)
	}
	for _, name := range []string{"serviced", "waits", "boots_otherwise", "boots_otherwise_perhaps", "other_driver", "other_interface"} {
		deployment := strings.Replace(acctest.Deployment("metal_host."+name+".id", acctest.Image("v1")), `"d"`, acctest.Quoted(name), 1)
		before, after = before+deployment, after+deployment
	}
	w := acctest.NewWorkspace(t, before)
	w.Must(acctest.Apply()...)
	defer w.Must("destroy", "-auto-approve")
	w.Configure(after)
	wantHarms(t, w, "hosts")
}

func TestFakePolicy_findsHarmOfReservations(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	s := site.StartFake(t, nil)
	for i := range 5 {
		site.AddNode(t, s, fmt.Sprintf("n%d", i), nil)
	}
	allocation := func(name, settings string) string {
		return fmt.Sprintf("resource \"metal_allocation\" %q {\n  name = %q\n  resource_class = %q\n  %s\n}\n", name, name,
			s.Class(), settings)
	}
	group := func(size int) string {
		return fmt.Sprintf("resource \"metal_allocation_group\" \"web\" {\n  name = \"web\"\n  size = %d\n  resource_class = %q\n}\n",
			size, s.Class())
	}
	w := acctest.NewWorkspace(t, s.Provider()+allocation("released", "")+allocation("labelled", "")+group(3))
	w.Must(acctest.Apply()...)
	defer w.Must("destroy", "-auto-approve")
	w.Configure(s.Provider() + allocation("labelled", `extra = { team = "web" }`) + group(1))
	wantHarms(t, w, "reservations")
}

// Imports, new hosts and first deployments pass.
func TestFakePolicy_passesWhatIsNew(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	s := site.StartFake(t, nil)
	s.Must(http.MethodPost, "nodes", map[string]any{"name": "imported", "driver": "fake-hardware"})
	s.Verb("imported", "manage", "manageable")
	w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_host.imported\n  id = \"imported\"\n}\n"+
		"resource \"metal_host\" \"imported\" {\n  name = \"imported\"\n  driver = \"fake-hardware\"\n  inspect_triggers = { a = \"1\" "+
		"}\n  description = \"imported\"\n}\n"+
		acctest.Host(s, 1, "inspect = true", `power_state = "off"`)+acctest.Allocation(s, "depends_on = [metal_host.h1]")+
		acctest.Allocated(acctest.Image("v1")))
	wantHarms(t, w, "new")
}

// Terraform 1.14 lists the actions that a plan triggers apart from the changes of resources.
func TestFakePolicy_findsHarmOfActions(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	if !acctest.HasQuery(t) {
		t.Skip("actions need Terraform 1.14")
	}
	s := site.StartFake(t, nil)
	text, names := s.Provider()+later, []string{}
	for i, action := range []struct{ kind, settings string }{
		{"abort", ""},
		{"unhold", ""},
		{"clean", "steps = [{ interface = \"deploy\", step = \"burnin_cpu\" }]"},
		{"clean", "erase = true\n    steps = [{ interface = \"deploy\", step = \"erase_devices_metadata\" }]"},
		{"clean", "erase = terraform_data.later.output == \"b\"\n    steps = [{ interface = \"deploy\", step = \"burnin_cpu\" }]"},
		{"inspect", ""},
		{"nmi", ""},
		{"power", `action = "on"`},
		{"power", `action = "off"`},
		{"power", `action = "soft_off"`},
		{"power", `action = "reboot"`},
		{"power", `action = "soft_reboot"`},
		{"power", `action = terraform_data.later.output == "b" ? "on" : "off"`},
		{"service", "steps = [{ interface = \"bios\", step = \"factory_reset\" }]"},
		{"virtual_media", ""},
	} {
		name := fmt.Sprintf("metal_%s.n%02d", action.kind, i)
		names = append(names, "action."+name)
		text += fmt.Sprintf("action %q %q {\n  config {\n    node_id = \"rack1-01\"\n    %s\n  }\n}\n", "metal_"+action.kind,
			fmt.Sprintf("n%02d", i), action.settings)
	}
	text += "action \"metal_power\" \"later\" {\n  config {\n    node_id = terraform_data.later.id\n    action = \"reboot\"\n  }\n}\n" +
		"resource \"terraform_data\" \"trigger\" {\n  lifecycle {\n    action_trigger {\n      events  = [after_create]\n      actions " +
		"= [action.metal_power.later, " + strings.Join(names, ", ") + "]\n    }\n  }\n}\n"
	wantHarms(t, acctest.NewWorkspace(t, text), "actions")
}
