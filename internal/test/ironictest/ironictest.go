// Package ironictest has what the tests of Ironic's client and of the domain above it share: a fake Ironic in the test process, time that
// passes at once, and requests that fail. It is imported by tests only.
package ironictest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// Poll is the polling interval of the clients under test: hours of waiting take few polls.
const Poll = time.Minute

// InVirtualTime runs a test in which hours pass in no time. It fails if the client leaves a goroutine behind after an hour: one that
// waits for the next poll may need an interval to see that its answer is not needed.
func InVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Hour) }()
		test(t)
	})
}

// Transport is a function as an http.RoundTripper.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Fleet returns a fake Ironic with n available nodes of the class "baremetal".
func Fleet(n int) *fakeironic.Server {
	fake := &fakeironic.Server{}
	fake.AddFleet(n, "baremetal")
	return fake
}

// NodeOf returns a node as the fake's database has it, without the records of its last cleaning and service, which outlive what they are
// about.
func NodeOf(t *testing.T, fake *fakeironic.Server, ref string) fakeironic.Node {
	t.Helper()
	node, ok := fake.Node(ref)
	if !ok {
		t.Fatalf("there is no node %s", ref)
	}
	if extra, is := node.Raw["extra"].(map[string]any); is {
		node.Raw, extra = maps.Clone(node.Raw), maps.Clone(extra)
		delete(extra, "terraform_metal_erasure")
		delete(extra, "terraform_metal_service")
		node.Raw["extra"] = extra
	}
	return node
}

// AsOther sends a request of another user to the fake and returns the answer. The request is not in the fake's log.
func AsOther(t *testing.T, fake *fakeironic.Server, method, path string, body any) map[string]any {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://ironic.test/v1/"+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	resp, err := fake.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	var answer map[string]any
	_ = json.Unmarshal(text, &answer) // some have no body
	return answer
}

// Count returns how many logged requests have a method and a path that begins with the given one.
func Count(fake *fakeironic.Server, method, path string) int {
	n := 0
	for _, r := range fake.Requests() {
		if r.Method == method && strings.HasPrefix(r.Path, path) {
			n++
		}
	}
	return n
}

// Verbs returns the verbs that were asked of a node, whether they were accepted or not.
func Verbs(t *testing.T, fake *fakeironic.Server, id string) []string {
	t.Helper()
	var all []string
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut && r.Path == ProvisionPath(id) {
			var body struct{ Target string }
			if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
				t.Fatal(err)
			}
			all = append(all, body.Target)
		}
	}
	return all
}

// ProvisionPath is the path of the requests that send a verb to a node.
func ProvisionPath(id string) string { return "/v1/nodes/" + id + "/states/provision" }

// Once returns a Reject that treats the first request of a kind as given.
func Once(method, path string, rejection *fakeironic.Rejection) func(*http.Request) *fakeironic.Rejection {
	return Times(1, method, path, rejection)
}

// Times returns a Reject that treats the first n requests of a kind as given. Requests of one client are not concurrent
// where it is used.
func Times(n int, method, path string, rejection *fakeironic.Rejection) func(*http.Request) *fakeironic.Rejection {
	return func(r *http.Request) *fakeironic.Rejection {
		if n > 0 && r.Method == method && strings.HasPrefix(r.URL.Path, path) {
			n--
			return rejection
		}
		return nil
	}
}

// Lost is an answer that does not arrive, though the request took effect.
func Lost() *fakeironic.Rejection { return &fakeironic.Rejection{After: true} }

// Fault is an answer in Ironic's shape.
func Fault(status int, text string) *fakeironic.Rejection {
	inner, _ := json.Marshal(map[string]any{"faultcode": "Client", "faultstring": text, "debuginfo": nil}) // strings always marshal
	outer, _ := json.Marshal(map[string]any{"error_message": string(inner)})
	return &fakeironic.Rejection{Status: status, Body: string(outer)}
}

// WantNear fails the test unless a duration is as expected, except for polling intervals and jitter.
func WantNear(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+3*Poll {
		t.Errorf("%s took %s, want about %s", what, got, want)
	}
}
