package guides_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// guides has the complete configurations of the guides: in the directory of a guide, or in several directories below it. What is
// beside or below a configuration, such as a CSV or a module, belongs to it.
const guides = examples + "/guides"

// guideSites prepares what a guide assumes to be in Ironic already, by its directory below guides.
var guideSites = map[string]func(t *testing.T, s *site.Site){
	"brownfield":                     enrollRack,
	"cabling":                        cableRack,
	"from-maas/equinix":              enrollPlans,
	"from-metal3/bifrost":            leaveBifrost,
	"from-metalsmith":                leaveMetalsmith,
	"from-terraform-provider-ironic": enrollRack,
	"reach-the-machine/dhcp":         enrollRack,
	"roll-out/databases":             enrollAvailable("db-1", "db-2", "db-3"),
	"roll-out/halves":                enrollAvailable("rack1-01", "rack1-02", "rack1-03", "rack1-04"),
	"roll-out/web":                   enrollAvailable("rack1-01", "rack1-02", "rack1-03", "rack1-04", "rack1-05", "rack1-06"),
	"switch-ports":                   func(_ *testing.T, s *site.Site) { s.Fake.SwitchPorts = true },
	"take-over":                      enrollRunning,
	"try-it/agents":                  runAgents,
	"try-it/rack":                    seedRack,
}

// cableRack connects the cards 0a and 0b of each machine to the port of its unit on two switches.
func cableRack(_ *testing.T, s *site.Site) {
	s.Fake.LLDP = func(mac string) []any {
		unit := strings.TrimLeft(mac[len(mac)-5:len(mac)-3], "0")
		return fakeironic.Announcement("52:54:00:ee:00:01", "tor-12"+mac[len(mac)-1:]+".example.com", "Eth1/"+unit)
	}
}

// enrollAvailable enrolls machines as another client, and makes them available.
func enrollAvailable(names ...string) func(t *testing.T, s *site.Site) {
	return func(_ *testing.T, s *site.Site) {
		for _, name := range names {
			s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "fake-hardware", "resource_class": "baremetal"})
			s.Fake.Set(name, "power_state", "power off") // Ironic allocates only nodes with a power state
			s.Fake.Set(name, "provision_state", "available")
		}
	}
}

// enrollRunning enrolls two machines that run without Ironic's knowledge, as another client.
func enrollRunning(t *testing.T, s *site.Site) {
	t.Helper()
	for n := 1; n <= 2; n++ {
		name := fmt.Sprintf("db-%02d", n)
		s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "redfish", "driver_info": map[string]any{
			"redfish_address": fmt.Sprintf("https://192.0.2.1%d", n), "redfish_system_id": "/redfish/v1/Systems/1",
			"redfish_username": "root", "redfish_password": "the BMC's password",
		}})
		s.Verb(name, "manage", "manageable")
	}
}

// enrollRack enrolls three machines as another client, and deploys an image on the last one for the allocation web-1.
func enrollRack(t *testing.T, s *site.Site) {
	t.Helper()
	for n := 1; n <= 3; n++ {
		id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{
			"name": fmt.Sprintf("rack1-%02d", n), "driver": "redfish", "resource_class": "baremetal", "driver_info": map[string]any{
				"redfish_address": fmt.Sprintf("https://192.0.2.1%d", n), "redfish_system_id": "/redfish/v1/Systems/1",
				"redfish_username": "root", "redfish_password": "the BMC's password",
			},
		})["uuid"])
		s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": fmt.Sprintf("52:54:00:01:00:%02x", n)})
		s.Verb(id, "manage", "manageable")
		s.Verb(id, "provide", "available")
	}
	s.Must(http.MethodPost, "allocations", map[string]any{
		"name": "web-1", "resource_class": "baremetal",
		"candidate_nodes": []any{"rack1-03"},
	})
	s.Await("rack1-03", "allocation_uuid", site.AllocationNamed(s, "web-1")["uuid"])
	s.Must(http.MethodPatch, "nodes/rack1-03", []any{map[string]any{"op": "add", "path": "/instance_info", "value": map[string]any{
		"image_source": "http://images.example.com/debian-12.qcow2", "image_checksum": "http://images.example.com/SHA256SUMS",
	}}})
	s.Verb("rack1-03", "active", "active")
}

// TestFakeExamples_guides applies each configuration of the guides, and finds the second plan empty.
func TestFakeExamples_guides(t *testing.T) {
	t.Parallel()
	for _, dir := range guideDirectories(t) {
		name := strings.TrimPrefix(dir, guides+"/")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testGuide(t, name, dir)
		})
	}
}

// guideDirectories lists the root configurations below guides.
func guideDirectories(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(guides, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		configuration, err := filepath.Glob(filepath.Join(path, "*.tf"))
		if len(configuration) == 0 {
			return err
		}
		found = append(found, path)
		return fs.SkipDir
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("no configuration below %s (%v)", guides, err)
	}
	return found
}

var (
	callsFunction    = regexp.MustCompile(`provider::metal::`)
	requiresFunction = regexp.MustCompile(`(?m)^ *required_version += ">= 1\.([89]|[1-9][0-9])`)
)

// A CLI that knows no functions of providers should say so, not report a syntax error.
func TestExamples_functionsNeedANewCLI(t *testing.T) {
	t.Parallel()
	calling := 0
	for _, root := range []string{examples, modules} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".tf" || !callsFunction.MatchString(read(t, path)) {
				return err
			}
			calling++
			for _, file := range append(glob(t, filepath.Dir(path), "*.tf"), path) {
				alone := strings.Contains(path, "/functions/") && file != path // each file there is an example of its own
				if !alone && requiresFunction.MatchString(read(t, file)) {
					return nil
				}
			}
			t.Errorf("%s calls a function; its terraform block needs required_version = \">= 1.8\"", path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if calling < 4 {
		t.Errorf("%d examples call a function", calling)
	}
}

// testGuide applies a configuration on fakes. Guides that speak of discovered machines find four, guides with resources of
// OneView an appliance with free blades.
func testGuide(t *testing.T, name, dir string) {
	t.Helper()
	w := acctest.NewWorkspace(t, "")
	if err := os.Remove(filepath.Join(w.Dir, "main.tf")); err != nil { // the guide has its own terraform block
		t.Fatal(err)
	}
	ironics := fakeIronics{}
	var text strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content := localModules(t, answer(t, ironics.serve(t, read(t, filepath.Join(dir, path)))))
		text.WriteString(content)
		copied := filepath.Join(w.Dir, path)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		write(t, copied, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := ironics.site(t, defaultEndpoint)
	w.Setenv("METAL_ENDPOINT", s.Endpoint)
	if strings.Contains(text.String(), "\n  alias ") {
		w.OwnProcess() // a CLI attaches all configurations of a provider to one server
	}
	for variable, value := range guideVariables {
		w.Setenv("TF_VAR_"+variable, value)
	}
	if needsDiscovery(text.String()) {
		s.Fake.Discovery = true
		for n := range 4 {
			s.Fake.Set(s.Fake.Discover(fakeironic.SampleInventory(n)), "created_at", "2026-01-01T12:00:00Z") // before discovered_before
		}
	}
	if needsOneView(text.String()) {
		appliance := site.StartOneView(t, nil, 3)
		appliance.Fake.AddTemplate(fakeoneview.Template{
			Name: "Ironic BL460c Gen10", TypeURI: appliance.Blades.TypeURI, GroupURI: appliance.Blades.GroupURI,
		})
		appliance.Setenv(w.Setenv)
	}
	if prepare := guideSites[name]; prepare != nil {
		prepare(t, s)
	}
	defer destroy(t, w)
	if strings.Contains(text.String(), `variable "protected"`) {
		defer unprotect(t, w)
	}
	if strings.Contains(text.String(), "\nmodule ") {
		w.Must("get")
	}
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	output, _ := w.Plan()
	acctest.NeverMention(t, output, "Cables") // those of the guide are right
}

// moduleSource matches where users get a module of the repository.
var moduleSource = regexp.MustCompile(`github\.com/terraform-provider-metal/terraform-provider-metal//modules/([a-z0-9-]+)\?ref=v[0-9.]+`)

// localModules replaces each source of a module in a text by the module as it is now.
func localModules(t *testing.T, text string) string {
	t.Helper()
	dir, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	return moduleSource.ReplaceAllString(text, filepath.ToSlash(dir)+"/$1")
}

// serviceAddress is where a machine of a guide answers its ready check.
var serviceAddress = regexp.MustCompile(`(198\.51\.100\.\d+|\$\{each\.key}\.example\.com):\d+`)

// answer replaces each address of a service in a text by one that accepts connections.
func answer(t *testing.T, text string) string {
	t.Helper()
	return serviceAddress.ReplaceAllStringFunc(text, func(string) string { return answering(t) })
}

// guideVariables are values for variables of the guides that have no default.
var guideVariables = map[string]string{
	"bmc_password":  "the BMC's password",
	"bmc_passwords": `{ "rack1" = "password of rack 1", "rack2" = "password of rack 2", "north" = "password in the north", "south" = "password in the south" }`,
	"join_token":    "the token",
}

// defaultEndpoint is the endpoint of Ironic in most guides. A guide about several sites has more, such as
// http://ironic.north.example.com:6385.
const defaultEndpoint = "http://ironic.example.com:6385"

var guideEndpoint = regexp.MustCompile(`https?://ironic[a-z.-]*\.example\.com:6385`)

// fakeIronics are the fakes of a guide, by the endpoint in its text.
type fakeIronics map[string]*site.Site

// serve replaces each endpoint in a text by that of a fake.
func (f fakeIronics) serve(t *testing.T, text string) string {
	t.Helper()
	return guideEndpoint.ReplaceAllStringFunc(text, func(endpoint string) string { return f.site(t, endpoint).Endpoint })
}

// site returns the fake for an endpoint, and starts it at the first call.
func (f fakeIronics) site(t *testing.T, endpoint string) *site.Site {
	t.Helper()
	if f[endpoint] == nil {
		f[endpoint] = site.StartFake(t, nil)
	}
	return f[endpoint]
}
