package fakeironic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// api sends requests to a fake without a socket.
type api struct {
	t       *testing.T
	fake    *fakeironic.Server
	version string
	token   string // of the user; empty without Keystone
}

type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func newAPI(t *testing.T, fake *fakeironic.Server) *api {
	t.Helper()
	version := fake.MaxMicroversion
	if version == "" {
		version = "1.115"
	}
	return &api{t: t, fake: fake, version: version}
}

// at returns a with another API version.
func (a *api) at(version string) *api { return &api{t: a.t, fake: a.fake, version: version} }

// do sends a request; body is a Go value to encode, or a string with JSON.
func (a *api) do(method, path string, body any) answer {
	a.t.Helper()
	return a.send(a.request(method, path, body))
}

func (a *api) send(request *http.Request) answer {
	a.t.Helper()
	response, err := a.fake.RoundTrip(request)
	if err != nil {
		a.t.Fatalf("%s %s: %v", request.Method, request.URL, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatalf("%s %s: %v", request.Method, request.URL, err)
	}
	got := answer{status: response.StatusCode, header: response.Header, text: string(raw)}
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &got.body); err != nil {
			a.t.Fatalf("%s %s answered %q: %v", request.Method, request.URL, raw, err)
		}
	}
	return got
}

func (a *api) request(method, path string, body any) *http.Request {
	a.t.Helper()
	text, isText := body.(string)
	if body != nil && !isText {
		raw, err := json.Marshal(body)
		if err != nil {
			a.t.Fatal(err)
		}
		text = string(raw)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, "http://ironic"+path, strings.NewReader(text))
	if err != nil {
		a.t.Fatal(err)
	}
	if a.token != "" {
		request.Header.Set("X-Auth-Token", a.token)
	}
	if a.version != "" {
		request.Header.Set("X-OpenStack-Ironic-API-Version", a.version)
	}
	return request
}

// must sends a request and fails the test on another status.
func (a *api) must(status int, method, path string, body any) map[string]any {
	a.t.Helper()
	got := a.do(method, path, body)
	if got.status != status {
		a.t.Fatalf("%s %s = %d %s, want %d", method, path, got.status, got.text, status)
	}
	return got.body
}

// refused sends a request and fails the test on another status or a faultstring without the text.
func (a *api) refused(status int, text, method, path string, body any) {
	a.t.Helper()
	got := a.do(method, path, body)
	if got.status != status || !strings.Contains(got.fault(), text) {
		a.t.Errorf("%s %s %v = %d %q, want %d with %q", method, path, body, got.status, got.fault(), status, text)
	}
}

// fault returns the message of an error in any format.
func (g answer) fault() string {
	inner, isText := g.body["error_message"].(string)
	if !isText {
		return g.text
	}
	var message struct {
		Faultstring, Description string
	}
	if err := json.Unmarshal([]byte(inner), &message); err != nil {
		return inner
	}
	return message.Faultstring + message.Description
}

// node creates a node with the driver fake-hardware and returns its UUID.
func (a *api) node(name string, more map[string]any) string {
	a.t.Helper()
	body := map[string]any{"driver": "fake-hardware", "name": name, "resource_class": "baremetal"}
	for key, value := range more {
		body[key] = value
	}
	uuid, isText := a.must(http.StatusCreated, http.MethodPost, "/v1/nodes", body)["uuid"].(string)
	if !isText {
		a.t.Fatalf("node %s has no UUID", name)
	}
	return uuid
}

// available creates an available node and returns its UUID.
func (a *api) available(name string, more map[string]any) string {
	a.t.Helper()
	uuid := a.node(name, more)
	a.provision(uuid, "manage")
	a.provision(uuid, "provide")
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/"+uuid+"/states/power", map[string]any{"target": "power off"})
	a.state(uuid, "available")
	return uuid
}

// active creates a deployed node and returns its UUID.
func (a *api) active(name string, more map[string]any) string {
	a.t.Helper()
	uuid := a.available(name, more)
	a.provision(uuid, "active")
	a.state(uuid, "active")
	return uuid
}

func (a *api) provision(uuid, target string) {
	a.t.Helper()
	a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), map[string]any{"target": target})
}

func provisionPath(uuid string) string { return "/v1/nodes/" + uuid + "/states/provision" }

// state fails the test if the node is in another state, and returns the node.
func (a *api) state(ref, want string) map[string]any {
	a.t.Helper()
	got := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+ref, nil)
	if got["provision_state"] != want {
		a.t.Fatalf("node %s is %v (%v), want %s", ref, got["provision_state"], got["last_error"], want)
	}
	return got
}

func patch(op, path string, value any) []map[string]any {
	operation := map[string]any{"op": op, "path": path}
	if op != "remove" {
		operation["value"] = value
	}
	return []map[string]any{operation}
}

func list(t *testing.T, body map[string]any, key string) []any {
	t.Helper()
	items, isList := body[key].([]any)
	if !isList {
		t.Fatalf("no list %s in %v", key, body)
	}
	return items
}

func uuidOf(t *testing.T, body map[string]any) string {
	t.Helper()
	uuid, isText := body["uuid"].(string)
	if !isText {
		t.Fatalf("no uuid in %v", body)
	}
	return uuid
}

func TestServer_zeroValueIsAnEmptyIronic(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	for _, kind := range []string{"nodes", "ports", "allocations", "portgroups", "chassis"} {
		if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/"+kind, nil), kind); len(got) != 0 {
			t.Errorf("GET /v1/%s = %v, want none", kind, got)
		}
	}
}

func TestNode_lifeCycle(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.active("n1", nil)
	a.provision(uuid, "deleted")
	a.state(uuid, "available")
	want := "[enroll verifying manageable cleaning available deploying active deleting cleaning available]"
	if got := fmt.Sprint(fake.Walk("n1")); got != want {
		t.Errorf("Walk = %s, want %s", got, want)
	}
}
