package released_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

var update = flag.Bool("update", false, "write the state of the version that is not released yet")

// record is what a release leaves beside its state: what there was before it, and its requests that changed something.
type record struct {
	Discovered string    `json:"discovered"` // the UUID of the discovered machine
	OneView    []string  `json:"oneview"`    // the URIs of the server hardware type, the enclosure group and the profile
	Requests   []request `json:"requests"`

	Times map[string]map[string]any `json:"times"` // of nodes, by UUID and attribute
}

type request struct {
	Server  string          `json:"server"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Version string          `json:"version"`
	Body    json.RawMessage `json:"body,omitempty"`
}

const (
	toIronic  = "ironic"
	toOneView = "oneview"

	ironicVersion  = "X-Openstack-Ironic-Api-Version"
	oneviewVersion = "X-Api-Version"

	template = "/rest/server-profile-templates/11111111-2222-4333-8444-555555555555"
)

// world is an Ironic and an appliance before a release has done anything there.
type world struct {
	*site.Site

	appliance  *site.OneView
	discovered string
}

func start(t *testing.T) world {
	t.Helper()
	w := world{Site: site.StartFake(t, &fakeironic.Server{Discovery: true}), appliance: site.StartOneView(t, nil, 1)}
	w.appliance.Fake.AddTemplate(fakeoneview.Template{
		URI: template, Name: "Ironic", TypeURI: w.appliance.Blades.TypeURI, GroupURI: w.appliance.Blades.GroupURI,
	})
	w.appliance.Fake.EditTemplate(template, func(document map[string]any) { // else it has a network with another name in each test
		document["connectionSettings"] = map[string]any{"manageConnections": true, "complianceControl": "Checked", "connections": []any{}}
	})
	w.discovered = w.Fake.Discover(fakeironic.SampleInventory(0))
	return w
}

// oneview are the URIs of a record.
func (w world) oneview() []string {
	uris := []string{w.appliance.Blades.TypeURI, w.appliance.Blades.GroupURI}
	for _, p := range w.appliance.Profiles() {
		uris = append(uris, p.URI)
	}
	return uris
}

// workspace returns one in a world with the configuration of a release.
func (w world) workspace(t *testing.T, dir string) *acctest.Workspace {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(dir, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, "main.tf"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	made := acctest.OpenWorkspace(t, to)
	made.Setenv("METAL_ENDPOINT", w.Endpoint)
	w.appliance.Setenv(made.Setenv)
	made.Setenv("TF_VAR_secret", "a secret")
	return made
}

// A state that a release has written, and what it has made in Ironic and OneView, need no change by any later version.
func TestFakeReleased_statePlansNoChange(t *testing.T) {
	t.Parallel()
	releases, err := filepath.Glob("testdata/*")
	if err != nil || len(releases) == 0 {
		t.Fatalf("there is no state: %v", err)
	}
	for _, dir := range releases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			if *update && dir == filepath.Join("testdata", unreleased(t)) {
				write(t, dir)
			}
			w := start(t)
			made, state := w.workspace(t, dir), w.replay(t, dir)
			made.SetState(state)
			if output, code := made.Run("plan", "-detailed-exitcode"); code != 0 {
				t.Errorf("%s: the plan of a state that release %s has written exits with %d. docs/guides/stability.md promises that a "+
					"new version plans no change of it:\n%s", dir, filepath.Base(dir), code, output)
			}
		})
	}
}

// unreleased is the version that CHANGELOG.md does not call released; "" if there is none.
func unreleased(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`^## (\S+) \(Unreleased\)`).FindSubmatch(log)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// write applies the configuration of a version, and keeps what is left.
func write(t *testing.T, dir string) {
	t.Helper()
	w := start(t)
	made := w.workspace(t, dir)
	kept := record{Discovered: w.discovered}
	var mu sync.Mutex
	keep := func(server, version string, to http.Handler) string {
		recorder := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			answer := httptest.NewRecorder()
			mu.Lock()
			to.ServeHTTP(answer, r)
			if isChange(r) && answer.Code/100 == 2 {
				kept.Requests = append(kept.Requests, request{
					server, r.Method, r.URL.RequestURI(), r.Header.Get(version), named(r, body, answer.Body.Bytes()),
				})
			}
			mu.Unlock()
			for key, values := range answer.Header() {
				rw.Header()[key] = values
			}
			rw.WriteHeader(answer.Code)
			_, _ = rw.Write(answer.Body.Bytes())
		}))
		t.Cleanup(recorder.Close)
		return recorder.URL
	}
	made.Setenv("METAL_ENDPOINT", keep(toIronic, ironicVersion, w.Fake))
	made.Setenv("ONEVIEW_ENDPOINT", keep(toOneView, oneviewVersion, w.appliance.Fake))
	made.Must("apply", "-auto-approve", "-var=first=true")
	made.Must("apply", "-auto-approve")
	acctest.NoChanges(t, made)
	kept.OneView = w.oneview()
	kept.Times = w.times()
	text, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile(filepath.Join(made.Dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"requests.json": append(text, '\n'), "terraform.tfstate": state} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.appliance.Profiles() {
		w.appliance.Fake.MarkOthers(p.URI) // nothing else removes it
	}
}

// times are the times of all nodes.
func (w world) times() map[string]map[string]any {
	times := map[string]map[string]any{}
	for _, n := range w.Fake.Nodes() {
		times[n.UUID] = map[string]any{}
		for attribute, value := range n.Raw {
			if strings.HasSuffix(attribute, "_at") {
				times[n.UUID][attribute] = value
			}
		}
	}
	return times
}

// isChange reports whether a request changes what lasts: a session does not.
func isChange(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.HasPrefix(r.URL.Path, "/rest/login-sessions")
}

// named is the body of a request, with the UUID that Ironic has chosen for what the request creates.
func named(r *http.Request, body, answer []byte) json.RawMessage {
	var asked, made map[string]any
	if r.Method != http.MethodPost || json.Unmarshal(body, &asked) != nil || json.Unmarshal(answer, &made) != nil || made["uuid"] == nil {
		return body
	}
	asked["uuid"] = made["uuid"]
	text, err := json.Marshal(asked)
	if err != nil {
		return body
	}
	return text
}

// replay sends the requests of a release, and returns its state. What the fakes name themselves has other names now.
func (w world) replay(t *testing.T, dir string) (state string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "requests.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept record
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	pairs := []string{kept.Discovered, w.discovered}
	is := func(name, now string) { pairs = append(pairs, name, now) }
	for i, uri := range w.oneview() {
		is(kept.OneView[i], uri)
	}
	token := w.login(t)
	for _, r := range kept.Requests {
		names := strings.NewReplacer(pairs...)
		var to http.Handler = w.Fake
		header := http.Header{"Content-Type": {"application/json"}, ironicVersion: {r.Version}}
		if r.Server == toOneView {
			to, header = w.appliance.Fake, http.Header{"Content-Type": {"application/json"}, oneviewVersion: {r.Version}, "Auth": {token}}
		}
		status, answer := send(t, to, r.Method, names.Replace(r.Path), names.Replace(string(r.Body)), header)
		if status/100 != 2 {
			t.Fatalf("%s %s: %d %s", r.Method, r.Path, status, answer)
		}
		w.settle(t)
		if now := w.oneview(); r.Server == toOneView && len(now) == len(kept.OneView) {
			is(kept.OneView[len(now)-1], now[len(now)-1])
		}
	}
	for _, p := range w.appliance.Profiles() {
		w.appliance.Fake.MarkOthers(p.URI) // the test leaves it
	}
	for node, times := range kept.Times {
		for attribute, value := range times {
			w.Fake.Set(strings.NewReplacer(pairs...).Replace(node), attribute, value)
		}
	}
	file, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(pairs...).Replace(string(file))
}

// login returns a session of the appliance.
func (w world) login(t *testing.T) string {
	t.Helper()
	user := fmt.Sprintf(`{"userName": %q, "password": %q, "loginMsgAck": true}`, w.appliance.Username, w.appliance.Password)
	_, answer := send(t, w.appliance.Fake, http.MethodPost, "/rest/login-sessions", user,
		http.Header{"Content-Type": {"application/json"}, oneviewVersion: {"800"}})
	var session struct{ SessionID string }
	if err := json.Unmarshal(answer, &session); err != nil || session.SessionID == "" {
		t.Fatalf("no session: %v %s", err, answer)
	}
	return session.SessionID
}

func send(t *testing.T, to http.Handler, method, path, body string, header http.Header) (status int, answer []byte) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header = header
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.Bytes()
}

// settle lets Ironic finish its work.
func (w world) settle(t *testing.T) {
	t.Helper()
	site.Until(t, "Ironic to finish its work", func() bool {
		w.Must(http.MethodGet, "nodes", nil) // the time of the fake goes on with each request
		return !slices.ContainsFunc(w.Fake.Nodes(), func(n fakeironic.Node) bool {
			return n.Reservation != "" || n.TargetPowerState != "" || n.Raw["target_provision_state"] != nil
		})
	})
}

// unset are the attributes that no state has yet: what a fake does not have, and what ends with an apply.
var unset = map[string][]string{
	"metal_allocation":       {"backfill_node", "last_error"},
	"metal_allocation_group": {"leftovers", "owner", "wait_for_capacity"},
	"metal_deployment":       {"failure", "last_error", "ready", "ready_check", "restores"},
	"metal_host": {
		"cleaning_runbook", "conductor_group", "expect_hardware", "fault", "last_error", "pending_changes", "power_control", "restores",
	},
}

// The state of the next release has each resource, and each attribute that it can have.
func TestReleased_stateHasAllThereIs(t *testing.T) {
	t.Parallel()
	version := unreleased(t)
	if version == "" {
		t.Skip("each version is released")
	}
	text, err := os.ReadFile(filepath.Join("testdata", version, "terraform.tfstate"))
	if err != nil {
		t.Fatalf("add a main.tf for the next release, and run the test with -update: %v", err)
	}
	var state struct {
		Resources []struct {
			Mode, Type string
			Instances  []struct{ Attributes map[string]any }
		}
	}
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, r := range state.Resources {
		for _, instance := range r.Instances {
			for attribute, value := range instance.Attributes {
				if list, isList := value.([]any); value != nil && (!isList || len(list) > 0) {
					has[r.Type+"."+attribute] = true
				}
			}
		}
	}
	schemas, err := provider.NewServer("test").GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, schema := range schemas.ResourceSchemas {
		for _, attribute := range schema.Block.Attributes {
			if attribute.WriteOnly || attribute.Name == "timeouts" {
				continue
			}
			name := kind + "." + attribute.Name
			if listed := slices.Contains(unset[kind], attribute.Name); has[name] == listed {
				t.Errorf("%s: in the state: %t; in the list of those that are not: %t", name, has[name], listed)
			}
		}
	}
}
