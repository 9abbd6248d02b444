package guides_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// modules are the HCL modules. Each is tested through its examples, which call it as a child.
const modules = "../../../modules"

// module is a copy of all modules with an Ironic for one of them.
type module struct {
	root string // of the copy
	name string
	site *site.Site
	env  func(w *acctest.Workspace)

	appliance *site.OneView // of oneview-pool
}

// startModule copies the modules and starts what a module needs: discovered machines, or an appliance with blades.
func startModule(t *testing.T, name string) *module {
	t.Helper()
	m := &module{root: t.TempDir(), name: name, env: func(*acctest.Workspace) {}}
	fake := &fakeironic.Server{Discovery: name == "rack-discovery"}
	m.site = site.StartFake(t, fake)
	if err := os.CopyFS(m.root, os.DirFS(modules)); err != nil {
		t.Fatal(err)
	}
	switch name {
	case "rack-discovery":
		for n := range 4 {
			fake.Set(fake.Discover(fakeironic.SampleInventory(n)), "created_at", "2026-01-01T12:00:00Z") // before discovered_before
		}
	case "oneview-pool":
		appliance := site.StartOneView(t, nil, 3)
		appliance.Fake.AddTemplate(fakeoneview.Template{
			Name: "Ironic BL460c Gen10", TypeURI: appliance.Blades.TypeURI, GroupURI: appliance.Blades.GroupURI,
		})
		m.env, m.appliance = func(w *acctest.Workspace) { appliance.Setenv(w.Setenv) }, appliance
	}
	return m
}

// open returns a workspace in a directory below the module, such as "examples/csv", with the modules that it calls.
func (m *module) open(t *testing.T, dir string) *acctest.Workspace {
	t.Helper()
	w := acctest.OpenWorkspace(t, filepath.Join(m.root, m.name, dir))
	m.env(w)
	w.Setenv("METAL_ENDPOINT", m.site.Endpoint)
	w.Setenv("METAL_POLL_INTERVAL", "1s")
	for _, secret := range []string{"bmc_password", "join_token"} {
		w.Setenv("TF_VAR_"+secret, "the "+secret)
	}
	w.Must("get")
	return w
}

// moduleNames are the directories of the modules.
func moduleNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range glob(t, modules, "*/main.tf") {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names
}

// TestFakeModules_test runs the modules' own tests by the test command of the CLI.
func TestFakeModules_test(t *testing.T) {
	t.Parallel()
	for _, name := range moduleNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startModule(t, name)
			w := m.open(t, ".")
			w.OwnProcess() // a CLI attaches all configurations of a provider to one server, and the test command makes several
			output := w.Must("test")
			if !strings.Contains(output, " passed, 0 failed") {
				t.Errorf("no test ran:\n%s", output)
			}
			wantEmpty(t, m.site)
		})
	}
}

// TestFakeModules_examples applies each example: the second plan is empty, and nothing is left in the end.
func TestFakeModules_examples(t *testing.T) {
	t.Parallel()
	for _, name := range moduleNames(t) {
		for _, dir := range glob(t, modules, name+"/examples/*") {
			example := filepath.Base(dir)
			t.Run(name+"/"+example, func(t *testing.T) {
				t.Parallel()
				m := startModule(t, name)
				w := m.open(t, "examples/"+example)
				output := w.Must(acctest.Apply()...)
				if strings.Contains(output, " 0 added,") && !strings.Contains(output, " imported,") {
					t.Errorf("the example makes nothing:\n%s", output)
				}
				if state := w.State(); strings.Contains(state, "the bmc_password") || strings.Contains(state, "the join_token") {
					t.Error("the state has a secret")
				}
				acctest.NoChanges(t, w)
				destroy(t, w)
				wantEmpty(t, m.site)
			})
		}
	}
}

// wantEmpty fails a test if Ironic has a node or an allocation.
func wantEmpty(t *testing.T, s *site.Site) {
	t.Helper()
	for _, kind := range []string{"nodes", "allocations"} {
		if left, _ := s.Must(http.MethodGet, kind, nil)[kind].([]any); len(left) > 0 {
			t.Errorf("left in Ironic: %v", left)
		}
	}
}

// wantChanges fails a test unless a plan changes exactly these addresses.
func wantChanges(t *testing.T, w *acctest.Workspace, want map[string]string, args ...string) {
	t.Helper()
	changes := w.Save(args...)
	for address, change := range changes {
		action := strings.Join(change.Actions, " ")
		if action != "no-op" && action != "read" && want[address] != action {
			t.Errorf("%s: the plan says %q, want %q", address, action, want[address])
		}
	}
	for address, action := range want {
		if got := strings.Join(changes[address].Actions, " "); got != action {
			t.Errorf("%s: the plan says %q, want %q", address, got, action)
		}
	}
}

// replaceIn replaces text in a file of a workspace, once.
func replaceIn(t *testing.T, w *acctest.Workspace, file, old, changed string) {
	t.Helper()
	name := filepath.Join(w.Dir, file)
	text := read(t, name)
	if !strings.Contains(text, old) {
		t.Fatalf("%s lacks %q", file, old)
	}
	write(t, name, strings.Replace(text, old, changed, 1))
}

// TestFakeModules_rackNeedsNoImportBlock switches a machine on after the first apply: its host takes the discovered node over.
func TestFakeModules_rackNeedsNoImportBlock(t *testing.T) {
	t.Parallel()
	m := startModule(t, "rack-discovery")
	w := m.open(t, "examples/rack")
	defer destroy(t, w)
	var before []string
	for _, node := range nodes(m.site) {
		before = append(before, site.Text(node["uuid"]))
	}
	w.Must(acctest.Apply()...)
	for _, node := range nodes(m.site) {
		if !slices.Contains(before, site.Text(node["uuid"])) || node["provision_state"] != "active" {
			t.Errorf("node %v (%v) is in state %v, want the discovered node, active", node["name"], node["uuid"], node["provision_state"])
		}
	}
	late := m.site.Fake.Discover(fakeironic.SampleInventory(9))
	m.site.Fake.Set(late, "created_at", "2026-01-01T12:00:00Z")
	host := `module.rack12.metal_host.rack["r12-RK000009"]`
	wantChanges(t, w, map[string]string{
		`module.rack12.metal_discovery_import.rack`: "update", host: "create", `metal_deployment.rack12["r12-RK000009"]`: "create",
	})
	w.Must("apply", "saved")
	if node := m.site.Node("r12-RK000009"); node["uuid"] != late || node["provision_state"] != "active" {
		t.Errorf("the late machine is node %v in state %v, want %v, active", node["uuid"], node["provision_state"], late)
	}
	acctest.NoChanges(t, w)

	// A machine leaves the rack for good.
	replaceIn(t, w, "main.tf", "max_hosts = 40", "exclude   = [\"RK000009\"]")
	wantChanges(t, w, map[string]string{
		`module.rack12.metal_discovery_import.rack`: "update", host: "delete", `metal_deployment.rack12["r12-RK000009"]`: "delete",
	})
}

func TestFakeModules_rackListsMachinesWithoutBMC(t *testing.T) {
	t.Parallel()
	m := startModule(t, "rack-discovery")
	data := fakeironic.SampleInventory(7)
	inventory, _ := data["inventory"].(map[string]any)
	delete(inventory, "bmc_address")
	uuid := m.site.Fake.Discover(data)
	m.site.Fake.Set(uuid, "created_at", "2026-01-01T12:00:00Z")
	w := m.open(t, "examples/rack")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	acctest.Mention(t, w.Must("output", "pending"), uuid, "filter: the inventory has no BMC address, and filter.bmc_cidr is 198.18.0.0/24")
	replaceIn(t, w, "main.tf", `, bmc_cidr = "198.18.0.0/24"`, "")
	w.Must(acctest.Apply()...)
	acctest.Mention(t, w.Must("output", "without_bmc"), "r12-RK000007", uuid)
	replaceIn(t, w, "main.tf", "max_hosts = 40", `power_control = "agent"`)
	created := map[string]string{
		`module.rack12.metal_host.rack["r12-RK000007"]`: "create",
		`metal_deployment.rack12["r12-RK000007"]`:       "create",
	}
	created[`module.rack12.metal_discovery_import.rack`] = "update" // of max_hosts
	wantChanges(t, w, created)
}

// nodes returns all nodes of a site.
func nodes(s *site.Site) []map[string]any {
	var all []map[string]any
	list, _ := s.Must(http.MethodGet, "nodes", nil)["nodes"].([]any)
	for _, item := range list {
		node, _ := item.(map[string]any)
		all = append(all, node)
	}
	return all
}

func TestFakeModules_isoSiteRestartsOnlyTheMachineThatAChangeConcerns(t *testing.T) {
	t.Parallel()
	m := startModule(t, "iso-site")
	w := m.open(t, "examples/site")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	write(t, filepath.Join(w.Dir, "networks", "site-03.yaml"), "bond0: [eno1, eno2]\n")
	machine := `module.site.metal_deployment.machine["site-03"]`
	wantChanges(t, w, map[string]string{machine: "update"})
	if restarts := w.Save()[machine].After["restarts"]; restarts != 1.0 {
		t.Errorf("the plan says %v restarts of site-03, want 1", restarts)
	}
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	if output := w.Must("output", "older"); !strings.Contains(output, "site-01") || !strings.Contains(output, "site-02") ||
		strings.Contains(output, "site-03") {
		t.Errorf("older must name the machines that the ISO did not concern:\n%s", output)
	}
	if output := w.Must("output", "stale"); strings.TrimSpace(output) != "{}" {
		t.Errorf("a machine is stale that has all content:\n%s", output)
	}
	for _, name := range []string{"site-01", "site-02", "site-03"} {
		if node := m.site.Node(name); node["automated_clean"] != false {
			t.Errorf("%s has automated_clean %v", name, node["automated_clean"])
		}
	}
	for address, change := range w.Save("-var=proxy=http://other.example.com:3128") { // all become stale
		if change.After["restarts"] != change.Before["restarts"] {
			t.Errorf("%s: another proxy restarts it", address)
		}
	}
}
