package guides_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests follow what guides say about fleets, renaming and machines that Ironic has already.

// fleetGuide applies the guide about a CSV. The test destroys it.
func fleetGuide(t *testing.T) (w *acctest.Workspace, s *site.Site) {
	t.Helper()
	s = site.StartFake(t, nil)
	w, _ = guideWorkspace(t, s, "fleet-from-csv")
	w.Setenv("TF_VAR_bmc_passwords", guideVariables["bmc_passwords"])
	w.Must("apply", "-auto-approve")
	return w, s
}

func TestFakeGuide_rowsOfTheCSVConcernOnlyTheirMachines(t *testing.T) {
	t.Parallel()
	w, _ := fleetGuide(t)
	defer destroy(t, w)
	rows := filepath.Join(w.Dir, "machines.csv")
	const row = "rack1-03,redfish-virtualmedia://192.0.2.13,rack1,52:54:00:01:00:03,plain,storage,db,db-3,FALSE,rack1\n"
	write(t, rows, read(t, rows)+row)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "2 added, 0 changed, 0 destroyed")

	write(t, rows, strings.Replace(read(t, rows), row, "", 1))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 2 destroyed")

	main := filepath.Join(w.Dir, "main.tf")
	write(t, main, strings.Replace(read(t, main), "  roles = {\n", "  roles = {\n    cache = { image = { url = "+
		"\"http://images.example.com/cache.qcow2\", checksum = \"http://images.example.com/SHA256SUMS\" } }\n", 1))
	replaceIn(t, w, "machines.csv", "storage,db", "storage,cache")
	for address, change := range w.Save() {
		switch rebuilds := change.After["rebuilds"]; {
		case address == `module.fleet.metal_deployment.machine["rack1-01"]` && rebuilds != 1.0:
			t.Errorf("the plan rebuilds the machine with another role %v times", rebuilds)
		case address != `module.fleet.metal_deployment.machine["rack1-01"]` && change.Actions[0] != "no-op":
			t.Errorf("%s: %v", address, change.Actions)
		}
	}
}

func TestFakeGuide_renamedRowOfTheCSVKeepsItsMachine(t *testing.T) {
	t.Parallel()
	w, s := fleetGuide(t)
	defer destroy(t, w)
	touched := s.Node("rack1-01")["provision_updated_at"]
	replaceIn(t, w, "machines.csv", "rack1-01,", "rack1-09,")
	moves := ""
	for _, resource := range []string{"metal_host", "metal_deployment"} {
		moves += fmt.Sprintf("\nmoved {\n  from = module.fleet.%[1]s.machine[\"rack1-01\"]\n  to   = "+
			"module.fleet.%[1]s.machine[\"rack1-09\"]\n}\n", resource)
	}
	write(t, filepath.Join(w.Dir, "moved.tf"), moves)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	if now := s.Node("rack1-09")["provision_updated_at"]; now != touched {
		t.Errorf("the machine was touched: provision_updated_at was %v and is %v", touched, now)
	}
	acctest.NoChanges(t, w)
}

// The guide protects the machines of one role with a line in it.
func TestFakeGuide_protectedRoleIsNotWiped(t *testing.T) {
	t.Parallel()
	w, _ := fleetGuide(t)
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", "    db = {\n", "    db = {\n      protected = true\n")
	main, rows := filepath.Join(w.Dir, "main.tf"), filepath.Join(w.Dir, "machines.csv")
	closed, before := read(t, main), read(t, rows)
	defer func() {
		write(t, main, strings.Replace(closed, "protected = true", "protected = false", 1))
		w.Must("apply", "-auto-approve")
	}()
	w.Must("apply", "-auto-approve")

	replaceIn(t, w, "main.tf", "debian-12-db", "debian-13-db")
	acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "Node rack1-01")
	write(t, main, closed)
	replaceIn(t, w, "machines.csv", "storage,db,db-1", "storage,,")
	acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "Node rack1-01")
	write(t, rows, before)

	// FALSE in the column of one line ends the protection of that machine only.
	unprotected := strings.NewReplacer("extra.rack", "extra.rack,protected", "db-1,FALSE,rack1", "db-1,FALSE,rack1,FALSE", ",rack1\n",
		",rack1,\n", ",rack2\n", ",rack2,\n").Replace(before)
	write(t, rows, unprotected)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	replaceIn(t, w, "machines.csv", "storage,db,db-1,FALSE,rack1,FALSE", "storage,,,FALSE,rack1,")
	acctest.Mention(t, w.Must("plan"), "Destroying undeploys the machine", "0 to add, 0 to change, 1 to destroy")
	write(t, rows, unprotected)
	replaceIn(t, w, "machines.csv", "storage,db,db-2,FALSE,rack2,", "storage,,,FALSE,rack2,")
	acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "Node rack2-01")
	write(t, rows, before)
	w.Must("apply", "-auto-approve")

	// Another role wipes the machine only if that role says protected = false.
	cache := "  roles = {\n    cache = { image = { url = \"http://images.example.com/cache.qcow2\", checksum = " +
		"\"http://images.example.com/SHA256SUMS\" } }\n"
	replaceIn(t, w, "main.tf", "  roles = {\n", cache)
	replaceIn(t, w, "machines.csv", "storage,db,db-1", "storage,cache,db-1")
	acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "Node rack1-01")
	replaceIn(t, w, "main.tf", "cache = { ", "cache = { protected = false, ")
	acctest.Mention(t, w.Must("plan"), "Rebuild wipes the root disk", "0 to add, 1 to change, 0 to destroy")
	write(t, rows, before)
}

func TestFakeGuide_movedBlocksRenameWithoutTouchingAMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w, main := guideWorkspace(t, s, "rename-and-reorganise")
	defer destroy(t, w)
	renamed := read(t, main)
	before := strings.Replace(renamed, "rack1-01 = ", "r1 = ", 1)
	for strings.Contains(before, "\nmoved {") {
		before = withoutBlock(t, before, "moved {")
	}
	write(t, main, before)
	w.Must("apply", "-auto-approve")
	touched := s.Node("r1")["provision_updated_at"]

	write(t, main, renamed)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 2 changed, 0 destroyed")
	if now := s.Node("rack1-01")["provision_updated_at"]; now != touched {
		t.Errorf("the machine was touched: provision_updated_at was %v and is %v", touched, now)
	}
	acctest.NoChanges(t, w)
}

func TestFakeGuide_splitStateNeedsNoChange(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	first, main := guideWorkspace(t, s, "rename-and-reorganise")
	text := read(t, main)
	for strings.Contains(text, "\nmoved {") {
		text = withoutBlock(t, text, "moved {")
	}
	write(t, main, text)
	defer destroy(t, first)
	first.Must("apply", "-auto-approve")
	second, other := guideWorkspace(t, s, "rename-and-reorganise")
	defer destroy(t, second)

	from, to := filepath.Join(first.Dir, "terraform.tfstate"), filepath.Join(second.Dir, "terraform.tfstate")
	for _, resource := range []string{"metal_host.rack", "metal_allocation.server", "metal_deployment.server"} {
		address := resource + `["rack1-02"]`
		first.Must("state", "mv", "-state="+from, "-state-out="+to, address, address)
	}
	write(t, main, strings.Replace(text, `    rack1-02 = "52:54:00:01:00:02"`, "", 1))
	write(t, other, strings.Replace(text, `    rack1-01 = "52:54:00:01:00:01"`, "    #", 1))
	acctest.NoChanges(t, first)
	acctest.NoChanges(t, second)
}

func TestFakeGuide_importTouchesNoMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	enrollRack(t, s)
	w, main := guideWorkspace(t, s, "brownfield")
	defer destroy(t, w)
	touched := s.Node("rack1-03")["provision_updated_at"]
	write(t, main, strings.Replace(read(t, main), "debian-12", "debian-13", 1)) // not what the machine runs
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "5 imported, 0 added, 5 changed, 0 destroyed",
		"Imported deployment is recorded only")
	if now := s.Node("rack1-03")["provision_updated_at"]; now != touched {
		t.Errorf("the machine was touched: provision_updated_at was %v and is %v", touched, now)
	}
	if rebuilds := w.Save()[`metal_deployment.server["web-1"]`].After["rebuilds"]; rebuilds != 1.0 {
		t.Errorf("the next plan shows rebuilds = %v, want 1", rebuilds)
	}
}

// If another client ends a deployment that was taken over, the next apply takes no other machine, even while its own cannot be reserved.
func TestFakeGuide_lostDeploymentTakesNoOtherMachine(t *testing.T) {
	t.Parallel()
	for _, guide := range []string{"brownfield", "from-terraform-provider-ironic"} {
		s := site.StartFake(t, nil)
		enrollRack(t, s)
		w, main := guideWorkspace(t, s, guide)
		defer destroy(t, w)
		write(t, main, exampleEndpoint.ReplaceAllString(read(t, main), s.Endpoint))
		w.Must("apply", "-auto-approve")
		write(t, main, withoutImports(t, read(t, main)))
		s.Verb("rack1-03", "deleted", "available") // with its allocation
		s.Must(http.MethodPut, "nodes/rack1-03/maintenance", map[string]any{})
		acctest.Fails(t, w, []string{"apply", "-auto-approve"}, "0 of 1 candidate")
		for _, other := range []string{"rack1-01", "rack1-02"} {
			if instance := s.Node(other)["instance_uuid"]; instance != nil {
				t.Errorf("%s: %s is reserved by %v", guide, other, instance)
			}
		}
	}
}

// withoutImports returns a configuration without its import blocks.
func withoutImports(t *testing.T, text string) string {
	t.Helper()
	for strings.Contains(text, "\nimport {") {
		text = withoutBlock(t, text, "import {")
	}
	return text
}

func TestFakeGuide_generatedConfigurationHasAnEmptyPlan(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	enrollRack(t, s)
	w := acctest.NewWorkspace(t, "")
	targets := map[string]string{"metal_host.r": "rack1-03", "metal_allocation.r": "web-1", "metal_deployment.r": "rack1-03"}
	if strings.Contains(w.Must("version"), "OpenTofu") {
		delete(targets, "metal_host.r") // OpenTofu 1.12 does not quote MAC addresses, the keys of ports
	}
	config := s.Provider()
	for target, id := range targets {
		config += fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", target, id)
	}
	w.Configure(config)
	acctest.GenerateConfig(t, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), fmt.Sprintf("%d imported, 0 added, 0 changed, 0 destroyed", len(targets)))
}

// The guide about bonds writes the mode once, for the port group and for the bond of the operating system.
func TestFakeGuide_bondsModeIsTheSameInIronicAndInTheSystem(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w, main := guideWorkspace(t, s, "bonds")
	w.Setenv("TF_VAR_bmc_password", guideVariables["bmc_password"])
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	touched := s.Node("db-1")["provision_updated_at"]

	write(t, main, strings.Replace(read(t, main), `mode = "802.3ad", lacp_rate = "fast"`, `mode = "balance-xor"`, 1))
	for address, change := range w.Save() {
		groups, _ := change.After["port_groups"].(map[string]any)
		if group, _ := groups["bond0"].(map[string]any); strings.HasPrefix(address, "metal_host.") &&
			(group["mode"] != "balance-xor" || change.After["cleanings"] != 1.0) {
			t.Errorf("%s has the group %v, and %v cleanings", address, group, change.After["cleanings"])
		}
		if strings.HasPrefix(address, "metal_deployment.") && change.After["rebuilds"] != 1.0 {
			t.Errorf("%s is rebuilt %v times", address, change.After["rebuilds"])
		}
	}
	w.Must("apply", "-auto-approve", "-target=metal_host.db")
	groups, _ := s.Must(http.MethodGet, "portgroups?detail=true", nil)["portgroups"].([]any)
	for _, group := range groups {
		if group, _ := group.(map[string]any); group["mode"] != "balance-xor" {
			t.Errorf("a port group has the mode %v", group["mode"])
		}
	}
	if now := s.Node("db-1")["provision_updated_at"]; len(groups) != 2 || now != touched {
		t.Errorf("%d port groups; the machine was at rest since %v and is since %v", len(groups), touched, now)
	}
}

// The guides about machines that Ironic has say what their first plan counts.
func TestFakeGuide_firstPlanOfImportsIsWhatTheGuideSays(t *testing.T) {
	t.Parallel()
	for guide, says := range map[string]string{
		"from-terraform-provider-ironic": "3 to import, 0 to add, 1 to change, 0 to destroy",
		"brownfield":                     "5 to import, 0 to add, 5 to change, 0 to destroy",
		"take-over":                      "2 to import, 4 to add, 2 to change, 0 to destroy",
		"from-metalsmith":                "3 to import, 3 to add, 1 to change, 0 to destroy",
	} {
		s := site.StartFake(t, nil)
		guideSites[guide](t, s)
		w, main := guideWorkspace(t, s, guide)
		write(t, main, exampleEndpoint.ReplaceAllString(read(t, main), s.Endpoint))
		for variable, value := range guideVariables {
			w.Setenv("TF_VAR_"+variable, value)
		}
		acctest.Mention(t, w.Must("plan"), says)
		acctest.Mention(t, read(t, "../../../templates/guides/"+guide+".md.tmpl"), says)
	}
}

// TestFakeGuide_forgottenMachinesAreTakenBack: a new deployment of a machine that on_destroy = "forget" has left fails, and with the import
// block of the guide Discovery the machine is managed again as it runs.
func TestFakeGuide_forgottenMachinesAreTakenBack(t *testing.T) {
	t.Parallel()
	s := rackOfThree(t)
	runAgents(t, s)
	w, main := guideWorkspace(t, s, "try-it/agents")
	w.Must("apply", "-auto-approve")
	destroy(t, w)
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, "Could not deploy node", "is reserved by")
	page := read(t, root+"/templates/guides/discovery.md.tmpl")
	_, block, found := strings.Cut(page, "To manage such machines again")
	block, _, closed := strings.Cut(strings.TrimPrefix(block[strings.Index(block, "```terraform\n"):], "```terraform\n"), "```")
	if !found || !closed {
		t.Fatal("the guide has no import block for forgotten machines")
	}
	write(t, main, read(t, main)+block)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "3 imported, 0 added, 3 changed, 0 destroyed")
	acctest.NoChanges(t, w)
}

// The guide keeps a new machine without a DIMM out of the pool, and lets it in after its repair and another inspection.
func TestFakeGuide_deliveryIsAccepted(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := workspace(t, s, examples+"/guides/accept-a-delivery")
	w.Setenv("TF_VAR_bmc_password", "the password")
	defer destroy(t, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Hardware is not as expected", "128 of 144 GiB of memory: a DIMM is missing",
		"stays out of the pool")
	if state := s.Node("rack1-12")["provision_state"]; state != "manageable" {
		t.Fatalf("the machine is %v", state)
	}
	inventory, _ := s.Must(http.MethodGet, "nodes/rack1-12/inventory", nil)["inventory"].(map[string]any)
	inventory["memory"] = map[string]any{"physical_mb": 147456.0}
	s.Fake.SetInventory("rack1-12", inventory, nil)
	replaceIn(t, w, "main.tf", "inspect         = true", "inspect         = true\n  inspect_triggers = { repaired = \"2026-11-29\" }")
	w.Must("apply", "-auto-approve")
	node := s.Node("rack1-12")
	if _, qualified := node["extra"].(map[string]any)["terraform_metal_qualification"]; node["provision_state"] != "available" || !qualified {
		t.Errorf("the machine is %v, qualified %t", node["provision_state"], qualified)
	}
}
