package guides_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests change what the examples of the module fleet ask for.

func TestFakeModules_fleetPlansOnlyTheMachineThatChanges(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/csv")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)

	replaceIn(t, w, "machines.csv", "unit 2", "unit 22")
	host := `module.fleet.metal_host.machine["rack1-02"]`
	wantChanges(t, w, map[string]string{host: "update"})

	replaceIn(t, w, "machines.csv", "rack1-04,", "rack1-05,ipmi://192.0.2.15,52:54:00:0f:00:05,compute,,,,\nrack1-04,")
	added := `module.fleet.metal_host.machine["rack1-05"]`
	wantChanges(t, w, map[string]string{host: "update", added: "create"})
	w.Must(acctest.Apply()...)

	// A machine gets a role: only it is deployed.
	replaceIn(t, w, "machines.csv", "52:54:00:0f:00:05,compute,,", "52:54:00:0f:00:05,compute,,web")
	wantChanges(t, w, map[string]string{`module.fleet.metal_deployment.machine["rack1-05"]`: "create"})
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

func TestFakeModules_fleetGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/groups")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	replaceIn(t, w, "main.tf", "range(1, 5)", "range(1, 6)")
	host := `module.fleet.metal_host.machine["rack7-05"]`
	wantChanges(t, w, map[string]string{host: "create"})
	replaceIn(t, w, "main.tf", "size = 2", "size = 3")
	group, third := `module.fleet.metal_allocation_group.role["worker"]`, `module.fleet.metal_deployment.member["worker-2"]`
	wantChanges(t, w, map[string]string{host: "create", group: "update", third: "create"})
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)

	replaceIn(t, w, "main.tf", "size = 3", "size = 2")
	wantChanges(t, w, map[string]string{group: "update", third: "delete"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
}

func TestFakeModules_fleetRenamesAMachine(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/csv")
	defer destroy(t, w)
	machine := func(name, hostname string) {
		write(t, filepath.Join(w.Dir, "machines.csv"), "name,driver,role,hostname\n"+name+",fake-hardware,web,"+hostname+"\n")
	}
	machine("rack1-01", "")
	w.Must(acctest.Apply()...)
	machine("slot-1", "rack1-01")
	moved := ""
	for _, kind := range []string{"metal_host", "metal_deployment"} {
		moved += "moved {\n  from = module.fleet." + kind + ".machine[\"rack1-01\"]\n  to = module.fleet." + kind +
			".machine[\"slot-1\"]\n}\n"
	}
	write(t, filepath.Join(w.Dir, "moved.tf"), moved)
	wantChanges(t, w, map[string]string{`module.fleet.metal_host.machine["slot-1"]`: "update"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
}

// openSpread applies the example whose group is spread over racks. The test destroys it.
func openSpread(t *testing.T) (*acctest.Workspace, *site.Site) {
	t.Helper()
	m := startModule(t, "fleet")
	w := m.open(t, "examples/spread")
	w.Must(acctest.Apply()...)
	return w, m.site
}

// nodeOf returns the node that Ironic has reserved for a member.
func nodeOf(t *testing.T, s *site.Site, member string) map[string]any {
	t.Helper()
	for _, node := range nodes(s) {
		if full := s.Node(site.Text(node["uuid"])); site.Text(full["allocation_uuid"]) == site.Text(site.AllocationNamed(s,
			member)["uuid"]) {
			return full
		}
	}
	t.Fatalf("no node has the allocation %s", member)
	return nil
}

func extraOf(node map[string]any, key string) string {
	extra, _ := node["extra"].(map[string]any)
	return site.Text(extra[key])
}

func TestFakeModules_fleetSpreadsBondedMachines(t *testing.T) {
	t.Parallel()
	w, s := openSpread(t)
	defer destroy(t, w)
	defer destroy(t, w)
	for _, rack := range []string{"rack1", "rack2", "rack3"} { // one member in each
		if state := w.State(); strings.Count(state, `"domain": "`+rack+`"`) != 1 {
			t.Errorf("not one member is in %s:\n%s", rack, state)
		}
	}
	node := s.Node("rack2-01")
	if extraOf(node, "site") != "north" || extraOf(node, "unit") != "1" {
		t.Errorf("extra is %v", node["extra"])
	}
	groups, _ := s.Must(http.MethodGet, "nodes/rack2-01/portgroups?detail=true", nil)["portgroups"].([]any)
	if group, _ := groups[0].(map[string]any); len(groups) != 1 || group["mode"] != "802.3ad" {
		t.Errorf("the port groups are %v", groups)
	}
	ports, _ := s.Must(http.MethodGet, "nodes/rack2-01/ports?detail=true", nil)["ports"].([]any)
	for _, item := range ports {
		port, _ := item.(map[string]any)
		if first := strings.HasSuffix(site.Text(port["address"]), ":02:01"); port["portgroup_uuid"] == nil || port["pxe_enabled"] != first {
			t.Errorf("a port is %v", port)
		}
	}
}

func TestFakeModules_fleetRenamesARole(t *testing.T) {
	t.Parallel()
	w, _ := openSpread(t)
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", "    web = {", "    www = {")
	moved := "\nmoved {\n  from = module.fleet.metal_allocation_group.role[\"web\"]\n  to   = " +
		"module.fleet.metal_allocation_group.role[\"www\"]\n}\n"
	write(t, filepath.Join(w.Dir, "moved.tf"), moved)
	group := `module.fleet.metal_allocation_group.role["www"]`
	wantChanges(t, w, map[string]string{group: "update"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)

	// A member that comes later has the old name, too, and a machine for it.
	replaceIn(t, w, "main.tf", "max_per_domain = 1", "max_per_domain = 2")
	replaceIn(t, w, "main.tf", "size           = 3", "size           = 4")
	wantChanges(t, w, map[string]string{group: "update", `module.fleet.metal_deployment.member["web-3"]`: "create"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
}

func TestFakeModules_fleetMovesAMember(t *testing.T) {
	t.Parallel()
	w, s := openSpread(t)
	defer destroy(t, w)
	old := nodeOf(t, s, "web-1")
	replaceIn(t, w, "main.tf", "max_per_domain = 1", "max_per_domain = 2\n        replace_members = { \"web-1\" = \"2026-11-27\" }")
	wantChanges(t, w, map[string]string{
		`module.fleet.metal_allocation_group.role["web"]`: "update", `module.fleet.metal_deployment.member["web-1"]`: "delete create",
	})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	if now := nodeOf(t, s, "web-1"); now["uuid"] == old["uuid"] || s.Node(site.Text(old["uuid"]))["retired"] != true {
		t.Errorf("web-1 is on %v, and retired of its old node is %v", now["name"], s.Node(site.Text(old["uuid"]))["retired"])
	}

	// Then its line may go.
	csv := read(t, filepath.Join(w.Dir, "machines.csv"))
	write(t, filepath.Join(w.Dir, "machines.csv"), withoutMachine(csv, site.Text(old["name"])))
	wantChanges(t, w, map[string]string{`module.fleet.metal_host.machine["` + site.Text(old["name"]) + `"]`: "delete"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
}

// withoutMachine removes the line of a machine from a CSV.
func withoutMachine(csv, name string) string {
	return regexp.MustCompile(`(?m)^`+name+`,.*\n`).ReplaceAllString(csv, "")
}

// A member whose machine fails gets another one. The machine returns through the column "retired".
func TestFakeModules_fleetReplacesTheMachineOfAMember(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	m.site.Fake.Fail = func(node fakeironic.Node, verb string) string {
		if node.Name == "rack3-01" && verb == "active" {
			return "Deploy step deploy.write_image failed: No space left on device"
		}
		return ""
	}
	w := m.open(t, "examples/spread")
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", "max_per_domain = 1", "max_per_domain = 2")
	acctest.Fails(t, w, acctest.Apply(), "No space left on device", "rack3-01")
	acctest.Mention(t, w.Must(acctest.Apply()...), "rack3-01")
	acctest.NoChanges(t, w)
	if node := m.site.Node("rack3-01"); node["retired"] != true || node["provision_state"] != "manageable" {
		t.Errorf("the machine that failed is %v, retired: %v", node["provision_state"], node["retired"])
	}

	m.site.Fake.Fail = nil
	csv := strings.ReplaceAll(read(t, filepath.Join(w.Dir, "machines.csv")), ",,rack", ",,,rack")
	write(t, filepath.Join(w.Dir, "machines.csv"), strings.NewReplacer("maintenance,extra", "maintenance,retired,extra", "FALSE,rack1",
		"FALSE,,rack1", "FALSE,rack3", "FALSE,False,rack3").Replace(csv))
	host := `module.fleet.metal_host.machine["rack3-01"]`
	wantChanges(t, w, map[string]string{host: "update"})
	w.Must("apply", "saved")
	if state := m.site.Node("rack3-01")["provision_state"]; state != "available" {
		t.Errorf("the machine that returns is %v", state)
	}
	acctest.NoChanges(t, w)
}

func TestFakeModules_fleetProtectsMembers(t *testing.T) {
	t.Parallel()
	w, _ := openSpread(t)
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", `on_failure = "quarantine"`, "protected  = true\n      on_failure = \"quarantine\"")
	w.Must(acctest.Apply()...)
	closed := read(t, filepath.Join(w.Dir, "main.tf"))
	for what, change := range map[string][2]string{
		"smaller group": {"size           = 3", "size           = 2"},
		"new image":     {"debian-12", "debian-13"},
		"moved member":  {"max_per_domain = 1", "max_per_domain = 2\nreplace_members = { web-1 = \"now\" }"},
		"role away":     {"    web = {", "    www = {"},
	} {
		replaceIn(t, w, "main.tf", change[0], change[1])
		if output, code := w.Run("plan"); code == 0 || !strings.Contains(output, "protected") {
			t.Errorf("%s: exit code %d\n%s", what, code, output)
		}
		write(t, filepath.Join(w.Dir, "main.tf"), closed)
	}
	replaceIn(t, w, "main.tf", "protected  = true", "protected  = false")
	w.Must(acctest.Apply()...)
}

// Ironic chooses the machine of a member, and the ready check goes to the address of this machine.
func TestFakeModules_fleetChecksMembersAtTheirAddress(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	_, port, _ := strings.Cut(answering(t), ":")
	w := m.open(t, "examples/spread")
	defer destroy(t, w)
	replaceIn(t, w, "main.tf", "max_unavailable = 1 }", "max_unavailable = 1 }\n      ready_check = { port = "+port+", timeout = \"5s\" }")
	csv := read(t, filepath.Join(w.Dir, "machines.csv"))
	reachable := regexp.MustCompile(`198\.51\.100\.\d+`).ReplaceAllString(csv, "127.0.0.1")
	write(t, filepath.Join(w.Dir, "machines.csv"), strings.Replace(reachable, "r650-1g,,127.0.0.1", "r650-1g,,", 1))
	acctest.Fails(t, w, []string{"plan"}, "csv, line 7 (rack3-01): address is empty", "Ironic may choose the machine for web")
	write(t, filepath.Join(w.Dir, "machines.csv"), reachable)
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	ready := 0
	for address, change := range w.Save() {
		if strings.Contains(address, "metal_deployment.member") && change.After["ready"] == true {
			ready++
		}
	}
	if ready != 3 {
		t.Errorf("%d members are ready, want 3", ready)
	}

	// Now the machines are those of members, which are checked whatever else their lines say.
	file := filepath.Join(w.Dir, "machines.csv")
	write(t, file, strings.Replace(reachable, "r650-1g,,127.0.0.1,FALSE", "r650-1g,,,TRUE", 1))
	acctest.Fails(t, w, []string{"plan"}, "Ironic has reserved rack3-01 for web-", "the address of rack3-01 is empty")
	write(t, file, reachable)
	replaceIn(t, w, "main.tf", "extra          = {", "on_destroy     = \"forget\"\n    extra          = {")
	w.Must(acctest.Apply()...)
	write(t, file, withoutMachine(reachable, "rack3-01")) // its host leaves the state, and the node stays
	output := acctest.Fails(t, w, []string{"plan"}, "rack3-01 is not in csv or machines", "Add a line with its address")
	acctest.NeverMention(t, output, "is empty")
	write(t, file, reachable)
}

// A machine of a group cannot leave the CSV, also while the member moves to another machine or the group shrinks.
func TestFakeModules_fleetKeepsTheMachineOfAMember(t *testing.T) {
	t.Parallel()
	w, s := openSpread(t)
	defer destroy(t, w)
	name := site.Text(nodeOf(t, s, "web-2")["name"])
	file := filepath.Join(w.Dir, "machines.csv")
	csv := read(t, file)
	write(t, file, withoutMachine(csv, name))
	refused := []string{"Host of a member is destroyed", "In the group web, this plan destroys the metal_host of these members: " +
		"web-2 (node " + name + ")", `replace_members = { "web-2" =`}
	main := read(t, filepath.Join(w.Dir, "main.tf"))
	for what, change := range map[string][2]string{
		"it stays": {"", ""}, "it moves": {"max_per_domain = 1", "max_per_domain = 2\n        replace_members = { web-2 = \"now\" }"},
		"it leaves": {"size           = 3", "size           = 2"},
	} {
		t.Log(what)
		replaceIn(t, w, "main.tf", change[0], change[1])
		acctest.Fails(t, w, []string{"plan"}, refused...)
		write(t, filepath.Join(w.Dir, "main.tf"), main)
	}
	write(t, file, csv)
	acctest.NoChanges(t, w)
	if state := s.Node(name)["provision_state"]; state != "active" {
		t.Errorf("%s is %v", name, state)
	}
}

// A value that is known after apply only, in the kind of a machine, leaves the other settings of the machine known.
func TestFakeModules_fleetKeepsUnknownValuesApart(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	dir := filepath.Join(m.root, "fleet", "examples", "unknown")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.tf"), `
resource "terraform_data" "mirror" { input = "http://mirror.example.com" }

module "fleet" {
  source       = "../.."
  machines     = { rack1-01 = { driver = "fake-hardware", hardware = "r650", role = "db", macs = ["52:54:00:0f:00:01"] } }
  hardware     = { r650 = { firmware = { bios = { url = terraform_data.mirror.output } }, port_groups = { bond0 = { cards = [1] } } } }
  roles = {
    db  = { image = { url = terraform_data.mirror.output, checksum = "http://images.example.com/SHA256SUMS" } }
    web = { image = { url = terraform_data.mirror.output, checksum = "http://images.example.com/SHA256SUMS" }, group = { size = 1, resource_class = terraform_data.mirror.output }, ready_check = { port = 22 } }
  }
}
`)
	w := m.open(t, "examples/unknown")
	output := w.Must("plan", "-no-color")
	acctest.Mention(t, output, `= "bond0"`, "5 to add")
	acctest.NeverMention(t, output, "raid ", "secure_boot")

	replaceIn(t, w, "main.tf", `role = "db"`, `role = "dbb"`)
	acctest.Fails(t, w, []string{"plan"}, `role is "dbb"`)
}

// No error of a CSV has a value of the file: one without a header, or with a cell in the wrong column, may have passwords there.
func TestFakeModules_fleetShowsNoValuesOfAnUnfitCSV(t *testing.T) {
	t.Parallel()
	m := startModule(t, "fleet")
	dir := filepath.Join(m.root, "fleet", "examples", "unfit")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.tf"), `
module "fleet" {
  source = "../.."
  csv    = file("${path.module}/machines.csv")
}
`)
	file := filepath.Join(dir, "machines.csv")
	write(t, file, "52:54:00:00:00:01,admin,hunter2,192.0.2.91,,,,rack1-01,8192,8,500,Virtual,\n")
	w := m.open(t, "examples/unfit")
	for csv, want := range map[string]string{
		"52:54:00:00:00:01,admin,hunter2,192.0.2.91,,,,rack1-01,8192,8,500,Virtual,\n": "csv, line 1 must name the columns",
		"name;password\nrack1-01;hunter2\n":                                            "csv, line 1 must name the columns",
		"name,driver,driver,hunter2\nrack1-01,a,b,c\n":                                 "line 1: two columns have the same name, or none: driver",
		"name,driver,maintenance\nrack1-01,fake-hardware,hunter2\n":                    "line 2: maintenance must be TRUE, FALSE or empty",
		"name,driver\nrack1-01,fake-hardware,hunter2\n":                                "have more or fewer cells than line 1: 2",
	} {
		write(t, file, csv)
		acctest.NeverMention(t, acctest.Fails(t, w, []string{"plan"}, want), "hunter2")
	}
}
