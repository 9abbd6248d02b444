package guides_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest/site"
)

// These tests follow what guides say about fleets, renaming and machines that Ironic has already.

func TestFakeGuide_rowsOfTheCSVConcernOnlyTheirMachines(t *testing.T) {
	t.Parallel()
	w, _ := guideWorkspace(t, site.StartFake(t, nil), "fleet-from-csv")
	w.Setenv("TF_VAR_bmc_passwords", guideVariables["bmc_passwords"])
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	rows := filepath.Join(w.Dir, "hosts.csv")

	write(t, rows, read(t, rows)+"rack1-03,192.0.2.13,52:54:00:01:00:03,rack1,baremetal,web,web-3\n")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "2 added, 0 changed, 0 destroyed")

	write(t, rows, strings.Replace(read(t, rows), "rack1-02,192.0.2.12,52:54:00:01:00:02,rack1,baremetal,web,web-2\n", "", 1))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 2 destroyed")

	write(t, rows, strings.Replace(read(t, rows), "rack1,baremetal,web", "rack1,baremetal,db", 1))
	for address, change := range w.Save() {
		switch rebuilds := change.After["rebuilds"]; {
		case address == `metal_deployment.server["rack1-01"]` && rebuilds != 1.0:
			t.Errorf("the plan rebuilds the machine with another role %v times", rebuilds)
		case address != `metal_deployment.server["rack1-01"]` && change.Actions[0] != "no-op":
			t.Errorf("%s: %v", address, change.Actions)
		}
	}
}

func TestFakeGuide_renamedRowOfTheCSVKeepsItsMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w, main := guideWorkspace(t, s, "fleet-from-csv")
	w.Setenv("TF_VAR_bmc_passwords", guideVariables["bmc_passwords"])
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	touched := s.Node("rack1-01")["provision_updated_at"]
	rows := filepath.Join(w.Dir, "hosts.csv")

	write(t, rows, strings.Replace(read(t, rows), "rack1-01,", "rack1-09,", 1))
	moves := ""
	for _, resource := range []string{"metal_host.fleet", "metal_deployment.server"} {
		moves += fmt.Sprintf("\nmoved {\n  from = %[1]s[\"rack1-01\"]\n  to   = %[1]s[\"rack1-09\"]\n}\n", resource)
	}
	write(t, main, read(t, main)+moves)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	if now := s.Node("rack1-09")["provision_updated_at"]; now != touched {
		t.Errorf("the machine was touched: provision_updated_at was %v and is %v", touched, now)
	}
	acctest.NoChanges(t, w)
}

// The guide protects the machines of one role with a line in the only deployment.
func TestFakeGuide_protectedRoleIsNotWiped(t *testing.T) {
	t.Parallel()
	w, main := guideWorkspace(t, site.StartFake(t, nil), "fleet-from-csv")
	w.Setenv("TF_VAR_bmc_passwords", guideVariables["bmc_passwords"])
	defer destroy(t, w)
	open := read(t, main)
	closed := strings.Replace(open, "  config_drive = {\n", "  protected = each.value.role == \"db\"\n  config_drive = {\n", 1)
	defer func() {
		write(t, main, strings.Replace(closed, `each.value.role == "db"`, "false", 1))
		w.Must("apply", "-auto-approve")
	}()
	write(t, main, closed)
	w.Must("apply", "-auto-approve")

	write(t, main, strings.Replace(closed, "debian-12-db", "debian-13-db", 1))
	acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "Node rack2-01")
	write(t, main, closed)
	rows := filepath.Join(w.Dir, "hosts.csv")
	before := read(t, rows)
	write(t, rows, strings.Replace(before, "storage,db,db-1", "storage,,", 1))
	acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "Node rack2-01")
	write(t, rows, strings.Replace(before, "storage,db,db-1", "storage,web,db-1", 1)) // another role lifts the protection
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Rebuild wipes the root disk", "0 added, 1 changed, 0 destroyed")
	write(t, rows, before)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
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
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "5 imported, 0 added, 4 changed, 0 destroyed", "Imported deployment is recorded only")
	if now := s.Node("rack1-03")["provision_updated_at"]; now != touched {
		t.Errorf("the machine was touched: provision_updated_at was %v and is %v", touched, now)
	}
	if rebuilds := w.Save()[`metal_deployment.server["web-1"]`].After["rebuilds"]; rebuilds != 1.0 {
		t.Errorf("the next plan shows rebuilds = %v, want 1", rebuilds)
	}
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
		if group, _ := groups["bond0"].(map[string]any); strings.HasPrefix(address, "metal_host.") && (group["mode"] != "balance-xor" || change.After["cleanings"] != 0.0) {
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
		"from-terraform-provider-ironic": "3 to import, 0 to add, 0 to change, 0 to destroy",
		"brownfield":                     "5 to import, 0 to add, 4 to change, 0 to destroy",
		"take-over":                      "2 to import, 4 to add, 2 to change, 0 to destroy",
	} {
		s := site.StartFake(t, nil)
		guideSites[guide](t, s)
		w, main := guideWorkspace(t, s, guide)
		write(t, main, exampleEndpoint.ReplaceAllString(read(t, main), s.Endpoint))
		for variable, value := range guideVariables {
			w.Setenv("TF_VAR_"+variable, value)
		}
		acctest.Mention(t, w.Must("plan"), says)
		acctest.Mention(t, read(t, "../../templates/guides/"+guide+".md.tmpl"), says)
	}
}
