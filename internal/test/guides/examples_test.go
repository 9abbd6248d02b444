package guides_test

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// These tests apply every file below examples unchanged. Examples of resources, data sources and functions use the hosts of
// examples/fleet, examples of discovery use discovered machines, and examples of OneView use an appliance with free blades.
const examples = "../../../examples"

func TestAccExamples_quickstart(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := workspace(t, s, examples+"/quickstart")
	defer destroy(t, w)
	output := w.Must("apply", "-auto-approve")
	for _, expected := range []string{"Provider development overrides", "New host is cleaned"} {
		output = strings.ReplaceAll(output, "Warning: "+expected, "")
	}
	acctest.NeverMention(t, output, "Warning:")
	for _, want := range []string{"quickstart-web-0", "quickstart-web-1", "quickstart-1", "quickstart-2", `"active"`} {
		if !strings.Contains(output, want) {
			t.Errorf("the outputs lack %s:\n%s", want, output)
		}
	}
	acctest.NoChanges(t, w)
}

// TestFakeReadme applies the example of README.md, which has a BMC.
func TestFakeExamples_readme(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	_, text, _ := strings.Cut(read(t, "../../../README.md"), "```terraform\n")
	text, _, found := strings.Cut(text, "```")
	if !found {
		t.Fatal("README.md has no example")
	}
	w := exampleWorkspace(t, s, "")
	write(t, filepath.Join(w.Dir, "main.tf"), exampleEndpoint.ReplaceAllString(text, s.Endpoint))
	write(t, filepath.Join(w.Dir, "web.cloud-config"), "#cloud-config\npackages: [nginx]\n")
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
}

func TestAccExamples_each(t *testing.T) {
	t.Parallel()
	testExamples(t, site.Start(t, nil), func(text string) bool { return !needsBMC(text) && !needsDiscovery(text) && !needsOneView(text) })
}

// TestFakeExamples_each applies examples with BMCs, which a real Ironic would contact.
func TestFakeExamples_each(t *testing.T) {
	t.Parallel()
	testExamples(t, site.StartFake(t, nil), func(text string) bool {
		return needsBMC(text) && !needsDiscovery(text) && !needsOneView(text)
	})
}

// TestFakeExamples_discovery applies examples that take all discovered machines; on a real Ironic these may be other users'.
func TestFakeExamples_discovery(t *testing.T) {
	t.Parallel()
	for _, file := range exampleFiles(t) {
		text := read(t, file)
		if !needsDiscovery(text) {
			continue
		}
		t.Run(strings.TrimPrefix(file, examples+"/"), func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{Discovery: true}
			s := site.StartFake(t, fake)
			for n := range 4 {
				fake.Set(fake.Discover(fakeironic.SampleInventory(n)), "created_at", "2026-01-01T12:00:00Z") // before discovered_before
			}
			testExample(t, s, file)
			left, _ := s.Must(http.MethodGet, "nodes", nil)["nodes"].([]any) // destroying a host deletes its node
			if strings.Contains(file, "/resources/") && len(left) == 4 {
				t.Error("the example has taken none of the machines")
			}
		})
	}
}

// TestFakeExamples_oneView applies examples that need an appliance.
func TestFakeExamples_oneView(t *testing.T) {
	t.Parallel()
	for _, file := range exampleFiles(t) {
		if !needsOneView(read(t, file)) {
			continue
		}
		t.Run(strings.TrimPrefix(file, examples+"/"), func(t *testing.T) {
			t.Parallel()
			appliance := site.StartOneView(t, nil, 3)
			appliance.Fake.AddTemplate(fakeoneview.Template{
				Name: "Ironic BL460c Gen10", TypeURI: appliance.Blades.TypeURI, GroupURI: appliance.Blades.GroupURI,
			})
			s := site.StartFake(t, nil)
			testExample(t, s, file, func(w *acctest.Workspace) { appliance.Setenv(w.Setenv) })
			if left := s.Left(); len(left) > 0 {
				t.Errorf("left in Ironic: %v", left)
			}
		})
	}
}

func needsBMC(text string) bool { return strings.Contains(text, "bmc = ") }

func needsDiscovery(text string) bool { return strings.Contains(text, "discover") }

func needsOneView(text string) bool { return strings.Contains(text, "metal_oneview_") }

// exampleFiles are the examples of resources, data sources and functions.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"resources/*/resource*.tf", "data-sources/*/data-source*.tf", "functions/*/function*.tf"} {
		files = append(files, glob(t, examples, pattern)...)
	}
	return files
}

// testExamples applies examples of resources, data sources and functions one after the other on a site with the fleet, and runs the imports
// of each.
func testExamples(t *testing.T, s *site.Site, chosen func(text string) bool) {
	fleet := workspace(t, s, examples+"/fleet")
	defer destroy(t, fleet)
	fleet.Must("apply", "-auto-approve")
	acctest.NoChanges(t, fleet)
	for _, file := range exampleFiles(t) {
		if chosen(read(t, file)) {
			t.Run(strings.TrimPrefix(file, examples+"/"), func(t *testing.T) { testExample(t, s, file) })
		}
	}
}

// testExample applies an example, runs its imports and destroys it. further adds to its workspace.
func testExample(t *testing.T, s *site.Site, file string, further ...func(*acctest.Workspace)) {
	t.Helper()
	text := read(t, file)
	for resource, minor := range map[string]int{`"firmware"`: 86, `"metal_inspection_rule"`: 96, `"metal_runbook"`: 112} {
		if strings.Contains(text, resource) {
			s.SkipBefore(t, minor)
		}
	}
	w := exampleWorkspace(t, s, text)
	for _, add := range further {
		add(w)
	}
	defer destroy(t, w)
	if strings.Contains(text, `variable "protected"`) {
		defer unprotect(t, w)
	}
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	for _, example := range importsInto(t, text, filepath.Dir(file)) {
		testImport(t, s, w, example)
	}
}

// unprotect ends the protection of an example's machines. Until then destroying them must be refused.
func unprotect(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	acctest.Fails(t, w, []string{"destroy", "-auto-approve"}, "Machine is protected")
	w.Must("apply", "-auto-approve", "-var=protected=false")
}

// exampleWorkspace returns a workspace with one file and a provider block for the site.
func exampleWorkspace(t *testing.T, s *site.Site, text string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, s.Provider())
	write(t, filepath.Join(w.Dir, "example.tf"), text)
	for _, secret := range []string{"bmc_password", "console_password", "join_token"} {
		w.Setenv("TF_VAR_"+secret, "the "+secret)
	}
	w.Setenv("TF_VAR_db_address", answering(t))
	return w
}

// answering returns an address that accepts connections.
func answering(t *testing.T) string {
	t.Helper()
	p := acctest.NewPort(t)
	p.Open()
	return p.Address
}

// workspace returns a workspace with a directory of examples that has its own provider block.
func workspace(t *testing.T, s *site.Site, dir string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, "")
	for _, file := range glob(t, dir, "*") {
		write(t, filepath.Join(w.Dir, filepath.Base(file)), read(t, file))
	}
	w.Setenv("METAL_ENDPOINT", s.Endpoint)
	return w
}

// importExample is one way to import the resource of an example: arguments of "terraform import", or an import block.
type importExample struct {
	name, address, id, block string
}

var (
	importCommand = regexp.MustCompile(`(?m)^terraform import (\S+) (\S+)$`)
	importTarget  = regexp.MustCompile(`(?m)^ *to *= *(\S+)$`)
	stateID       = regexp.MustCompile(`(?m)^    id += "(.+)"$`)
	anyUUID       = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// importsInto returns the import examples of a directory with targets in a text.
func importsInto(t *testing.T, text, dir string) []importExample {
	t.Helper()
	if !strings.Contains(dir, "/resources/") {
		return nil
	}
	var found []importExample
	for _, file := range glob(t, dir, "import*") {
		content := read(t, file)
		if target := importTarget.FindStringSubmatch(content); target != nil {
			found = append(found, importExample{name: filepath.Base(file), address: target[1], block: content})
		}
		for _, command := range importCommand.FindAllStringSubmatch(content, -1) {
			found = append(found, importExample{name: command[0], address: command[1], id: command[2]})
		}
	}
	var matching []importExample
	for _, example := range found {
		kind, name, _ := strings.Cut(example.address, ".")
		if strings.Contains(text, fmt.Sprintf("resource %q %q {", kind, name)) {
			matching = append(matching, example)
		}
	}
	return matching
}

// testImport removes a resource from the state and imports it again. The import must create and destroy nothing, change no
// machine, and leave an empty plan. It replaces a UUID in an example by the one in the real ID.
func testImport(t *testing.T, s *site.Site, w *acctest.Workspace, example importExample) {
	t.Helper()
	if strings.Contains(example.block, "identity =") && !hasIdentity(t, w) {
		t.Logf("%s is left out: this CLI imports by id only", example.name)
		return
	}
	found := stateID.FindStringSubmatch(w.Must("state", "show", example.address))
	if found == nil {
		t.Fatalf("%s has no id", example.address)
	}
	uuid := anyUUID.FindString(found[1])            // the ID may also be a name or a URI
	touched := s.Node(uuid)["provision_updated_at"] // null if it is not a node
	w.Must("state", "rm", example.address)
	if example.block == "" {
		w.Must("import", example.address, anyUUID.ReplaceAllString(example.id, uuid))
	} else {
		file := filepath.Join(w.Dir, "import.tf")
		write(t, file, anyUUID.ReplaceAllString(example.block, uuid))
		defer os.Remove(file)
	}
	output := w.Must("apply", "-auto-approve")
	if !strings.Contains(output, " 0 added,") || !strings.Contains(output, " 0 destroyed.") {
		t.Errorf("%s: the apply made or destroyed something:\n%s", example.name, output)
	}
	if now := s.Node(uuid)["provision_updated_at"]; now != touched {
		t.Errorf("%s: the machine was touched: provision_updated_at was %v and is %v", example.name, touched, now)
	}
	if example.block != "" && !strings.Contains(output, " 1 imported,") {
		t.Errorf("%s: nothing was imported:\n%s", example.name, output)
	}
	acctest.NoChanges(t, w)
}

// hasIdentity reports whether the CLI supports resource identities, as Terraform and OpenTofu do from 1.12.
func hasIdentity(t *testing.T, w *acctest.Workspace) bool {
	t.Helper()
	var version struct {
		Version string `json:"terraform_version"`
	}
	if err := json.Unmarshal([]byte(w.Must("version", "-json")), &version); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(version.Version, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("version %q: %v", version.Version, err)
	}
	return major > 1 || minor >= 12
}

// exampleEndpoint matches the endpoint of Ironic in the examples of the provider block.
var exampleEndpoint = regexp.MustCompile(`https?://ironic\.example\.com:6385`)

// exampleAppliance is the endpoint of OneView in these examples.
const exampleAppliance = "https://oneview.example.com"

func TestFakeExamples_provider(t *testing.T) {
	t.Parallel()
	tested := map[string]func(t *testing.T, w *acctest.Workspace) (ironic, oneview string){
		"provider_http_basic.tf": func(t *testing.T, w *acctest.Workspace) (ironic, oneview string) {
			server := httptest.NewTLSServer(&fakeironic.Server{Username: "terraform", Password: "s3cret-pa55"})
			t.Cleanup(server.Close)
			writeCertificate(t, filepath.Join(w.Dir, "ironic-ca.pem"), server.TLS)
			w.OwnProcess() // the provider looks for the certificate in its working directory
			w.Setenv("TF_VAR_ironic_password", "s3cret-pa55")
			return server.URL, ""
		},
		"provider_keystone.tf": func(t *testing.T, w *acctest.Workspace) (ironic, oneview string) {
			endpoint := site.StartFake(t, nil).Endpoint
			w.OwnProcess() // the provider looks for clouds.yaml in its working directory
			write(t, filepath.Join(w.Dir, "clouds.yaml"),
				fmt.Sprintf("clouds:\n  site-a:\n    region_name: north\n    auth:\n      auth_url: %s/v3\n"+
					"      username: terraform\n      password: s3cret-pa55\n      project_name: metal\n      user_domain_name: Default\n"+
					"      project_domain_name: Default\n", startKeystone(t, endpoint)))
			return endpoint, ""
		},
		"provider_oneview.tf": func(t *testing.T, w *acctest.Workspace) (ironic, oneview string) {
			appliance := site.StartOneView(t, nil, 1)
			write(t, filepath.Join(w.Dir, "oneview-ca.pem"), read(t, appliance.CACertFile))
			w.OwnProcess()
			w.Setenv("TF_VAR_oneview_password", appliance.Password)
			return site.StartFake(t, nil).Endpoint, appliance.Endpoint
		},
	}
	files := glob(t, examples, "provider/*.tf")
	if len(files) != len(tested) {
		t.Errorf("%d examples of the provider block, of which %d are tested", len(files), len(tested))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			start := tested[filepath.Base(file)]
			if start == nil {
				t.Fatal("not tested")
			}
			w := acctest.NewWorkspace(t, "")
			ironic, oneview := start(t, w)
			text := exampleEndpoint.ReplaceAllString(read(t, file), ironic)
			if oneview != "" {
				text = strings.ReplaceAll(text, exampleAppliance, oneview) + "\ndata \"metal_oneview_server_hardware\" \"all\" {}\n"
			}
			write(t, filepath.Join(w.Dir, "example.tf"), text+"\ndata \"metal_hosts\" \"all\" {}\n")
			w.Must("apply", "-auto-approve")
		})
	}
}

// startKeystone starts a minimal Keystone with a catalog that has Ironic in the region "north".
func startKeystone(t *testing.T, ironic string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v3/auth/tokens" {
			http.NotFound(w, r)
			return
		}
		endpoint := func(region, url string) map[string]any {
			return map[string]any{"id": region, "interface": "public", "region": region, "region_id": region, "url": url}
		}
		w.Header().Set("X-Subject-Token", "a token")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
			"expires_at": "2100-01-01T00:00:00.000000Z",
			"catalog": []any{map[string]any{"type": "baremetal", "name": "ironic", "endpoints": []any{
				endpoint("south", "http://127.0.0.1:9"), endpoint("north", ironic),
			}}},
		}})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func writeCertificate(t *testing.T, name string, config *tls.Config) {
	t.Helper()
	write(t, name, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: config.Certificates[0].Certificate[0]})))
}

func TestFakeExamples_formatted(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, "")
	for _, relative := range []string{examples, modules} {
		dir, err := filepath.Abs(relative)
		if err != nil {
			t.Fatal(err)
		}
		if output, code := w.Run("fmt", "-check", "-recursive", dir); code != 0 {
			t.Errorf("run make fmt for\n%s", output)
		}
	}
}

func destroy(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	if output, code := w.Run("destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy: exit code %d\n%s", code, output)
	}
}

// glob lists the files of a directory that match a pattern. It fails the test if there are none.
func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s in %s (%v)", pattern, dir, err)
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
