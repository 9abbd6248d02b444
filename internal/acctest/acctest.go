// Package acctest starts an Ironic for an acceptance test: a fake of its own, or a place of its own on a real one. It is
// imported by tests only.
package acctest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// Variables that point the suite at a real Ironic. Tests named TestAcc… run there too; those named TestFake… need a
// fault that only the fake can be made to have.
const (
	endpointVariable          = "METAL_ACC_ENDPOINT"
	slowEndpointVariable      = "METAL_ACC_SLOW_ENDPOINT"      // one whose deployments and cleanings take seconds
	discoveryEndpointVariable = "METAL_ACC_DISCOVERY_ENDPOINT" // one that makes nodes of unknown machines
)

// Factories serve the provider to the plugin testing framework.
func Factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"metal": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test"), nil },
	}
}

// Site is an Ironic, and names on it that no other test has.
type Site struct {
	Endpoint string
	// Fake is the fake behind it; nil when the Ironic is real.
	Fake *fakeironic.Server

	t          testing.TB
	unique     string
	discovered []string // UUIDs of the nodes that Discover has made
}

// Start gives a test an Ironic: the real one if the environment names one, else the given fake (nil: an ordinary one).
// When the test ends, nothing that carries its names may be left.
func Start(t testing.TB, fake *fakeironic.Server) *Site {
	t.Helper()
	return start(t, os.Getenv(endpointVariable), fake)
}

// StartSlow is Start with an Ironic on which deploying and cleaning take some seconds.
func StartSlow(t testing.TB) *Site {
	t.Helper()
	if os.Getenv(endpointVariable) != "" && os.Getenv(slowEndpointVariable) == "" {
		t.Fatalf("%s is set, so %s must be too", endpointVariable, slowEndpointVariable)
	}
	return start(t, os.Getenv(slowEndpointVariable), &fakeironic.Server{StepTime: 2 * time.Second})
}

// StartFake is Start for tests that need the fake.
func StartFake(t testing.TB, fake *fakeironic.Server) *Site {
	t.Helper()
	return start(t, "", fake)
}

func start(t testing.TB, endpoint string, fake *fakeironic.Server) *Site {
	t.Helper()
	skipUnlessAsked(t)
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	s := &Site{Endpoint: endpoint, t: t, unique: fmt.Sprintf("%x", id)}
	if endpoint == "" {
		if fake == nil {
			fake = &fakeironic.Server{}
		}
		server := httptest.NewServer(fake)
		t.Cleanup(server.Close)
		s.Fake, s.Endpoint = fake, server.URL
	}
	t.Cleanup(s.sweep)
	return s
}

// skipUnlessAsked skips a test where nobody has asked for acceptance tests.
func skipUnlessAsked(t testing.TB) {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
}

// Provider is a provider block for the site, with further settings.
func (s *Site) Provider(settings ...string) string {
	return fmt.Sprintf("provider \"metal\" {\n  endpoint = %q\n  auth_type = \"none\"\n  poll_interval = \"200ms\"\n  %s\n}\n", s.Endpoint, strings.Join(settings, "\n  "))
}

// Until waits until something is done, and fails the test if that takes more than a minute.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !inTime(done) {
		t.Fatalf("waited a minute for %s", what)
	}
}

// inTime waits until something is done, and reports whether that took less than a minute.
func inTime(done func() bool) bool {
	for end := time.Now().Add(time.Minute); !done(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Name makes a name unique to the test.
func (s *Site) Name(base string) string { return base + "-" + s.unique }

// Class is a resource class unique to the test.
func (s *Site) Class() string { return "class-" + s.unique }

// MAC is the nth MAC address of the test.
func (s *Site) MAC(n int) string {
	return fmt.Sprintf("52:%s:%s:%s:%s:%02x", s.unique[:2], s.unique[2:4], s.unique[4:6], s.unique[6:8], n)
}

// Call is the hand of somebody else: it sends a request to Ironic, behind Terraform's back, and returns the answer.
// Retries cover that the node is locked for a moment.
func (s *Site) Call(method, path string, body any) (status int, answer map[string]any) {
	s.t.Helper()
	return s.callAt("1.82", method, path, body)
}

// callAt is Call in a version of the API.
func (s *Site) callAt(version, method, path string, body any) (status int, answer map[string]any) {
	s.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	Until(s.t, "the end of the lock that refuses "+method+" "+path, func() bool {
		var text []byte
		status, text = s.send(version, method, path, content)
		answer = nil
		_ = json.Unmarshal(text, &answer) // an empty answer is fine
		return status != http.StatusConflict || !bytes.Contains(text, []byte("locked"))
	})
	return status, answer
}

// send sends one request.
func (s *Site) send(version, method, path string, body []byte) (status int, answer []byte) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.Endpoint+"/v1/"+path, bytes.NewReader(body)) //nolint:noctx // ends with the test
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-OpenStack-Ironic-API-Version", version)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// Must is Call that fails the test on any status but 2xx.
func (s *Site) Must(method, path string, body any) map[string]any {
	s.t.Helper()
	status, answer := s.Call(method, path, body)
	if status/100 != 2 {
		s.t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// Patch changes one attribute of a node behind Terraform's back.
func (s *Site) Patch(node, op, path string, value any) {
	s.t.Helper()
	edit := map[string]any{"op": op, "path": path}
	if op != "remove" {
		edit["value"] = value
	}
	s.Must(http.MethodPatch, "nodes/"+node, []any{edit})
}

// Verb asks a node to do something behind Terraform's back, and waits until it is in a state.
func (s *Site) Verb(node, verb, until string) {
	s.t.Helper()
	s.Must(http.MethodPut, "nodes/"+node+"/states/provision", map[string]any{"target": verb})
	s.Await(node, "provision_state", until)
}

// Await waits until an attribute of a node has a value and the node is not locked.
func (s *Site) Await(node, attribute string, value any) map[string]any {
	s.t.Helper()
	var answer map[string]any
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s of node %s is %v; it is locked by %v", attribute, node, answer[attribute], answer["reservation"])
		}
	}()
	Until(s.t, fmt.Sprintf("%s of node %s to be %v", attribute, node, value), func() bool {
		answer = s.Must(http.MethodGet, "nodes/"+node, nil)
		return answer[attribute] == value && answer["reservation"] == nil
	})
	return answer
}

// Node returns a node; nil if there is none.
func (s *Site) Node(ref string) map[string]any {
	s.t.Helper()
	status, answer := s.Call(http.MethodGet, "nodes/"+ref, nil)
	if status == http.StatusNotFound {
		return nil
	}
	return answer
}

// Left lists what of the test's names is still in Ironic.
func (s *Site) Left() []string {
	var left []string
	for _, kind := range []string{"nodes", "allocations"} {
		items, _ := s.Must(http.MethodGet, kind, nil)[kind].([]any)
		for _, item := range items {
			object, _ := item.(map[string]any)
			if name, _ := object["name"].(string); strings.Contains(name, s.unique) {
				left = append(left, kind+"/"+name)
			}
		}
	}
	return left
}

// sweep removes what a failed test has left on a real Ironic, and fails a test that passed but left something.
func (s *Site) sweep() {
	if s.Fake != nil {
		return // ends with the test
	}
	for _, uuid := range s.discovered { // they have no name of the test's until it gives them one
		s.Call(http.MethodPut, "nodes/"+uuid+"/maintenance", map[string]any{})
		s.Call(http.MethodDelete, "nodes/"+uuid, nil)
	}
	left := s.Left()
	if len(left) > 0 && !s.t.Failed() {
		s.t.Errorf("left in Ironic: %v", left)
	}
	for _, object := range left {
		if strings.HasPrefix(object, "nodes/") {
			s.Call(http.MethodPut, object+"/maintenance", map[string]any{})
		}
		s.Call(http.MethodDelete, object, nil)
	}
}
