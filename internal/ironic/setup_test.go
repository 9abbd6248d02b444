package ironic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// inVirtualTime runs a test in which hours pass in no time. It fails if the client leaves a goroutine behind: one that
// waits for the next look at Ironic may need a polling interval to see that nobody is interested any more.
func inVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Hour) }()
		test(t)
	})
}

// poll is how often the clients of newClient look at waiting nodes: hours of waiting are a few looks then.
const poll = time.Minute

// newClient returns a client of a fake Ironic in this process.
func newClient(fake *fakeironic.Server, configure ...func(*ironic.Config)) *ironic.Client {
	cfg := ironic.Config{Endpoint: "http://ironic.test", Auth: ironic.AuthNone, Transport: fake, PollInterval: poll}
	for _, c := range configure {
		c(&cfg)
	}
	return ironic.New(cfg)
}

// fleet returns a fake Ironic with n available nodes of the class "baremetal".
func fleet(n int) *fakeironic.Server {
	fake := &fakeironic.Server{}
	fake.AddFleet(n, "baremetal")
	return fake
}

// nodeOf returns a node as the fake's database has it.
func nodeOf(t *testing.T, fake *fakeironic.Server, ref string) fakeironic.Node {
	t.Helper()
	node, ok := fake.Node(ref)
	if !ok {
		t.Fatalf("there is no node %s", ref)
	}
	return node
}

// enrolled creates a node in state enroll and returns its UUID.
func enrolled(t *testing.T, client *ironic.Client, name string) string {
	t.Helper()
	node, err := client.Enroll(t.Context(), ironic.Enrollment{UUID: ironic.NewUUID(), Name: name, Driver: "fake-hardware", ResourceClass: "baremetal"})
	if err != nil {
		t.Fatalf("enroll %s: %v", name, err)
	}
	return node.UUID
}

// rest is the hand of somebody else: a request to the fake that is not the client's, and not in the fake's log afterwards.
func rest(t *testing.T, fake *fakeironic.Server, method, path string, body any) map[string]any {
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

// count returns how many logged requests have a method and a path that begins with the given one.
func count(fake *fakeironic.Server, method, path string) int {
	n := 0
	for _, r := range fake.Requests() {
		if r.Method == method && strings.HasPrefix(r.Path, path) {
			n++
		}
	}
	return n
}

// verbs returns the verbs that were asked of a node, whether they were accepted or not.
func verbs(t *testing.T, fake *fakeironic.Server, id string) []string {
	t.Helper()
	var all []string
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut && r.Path == provisionPath(id) {
			var body struct{ Target string }
			if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
				t.Fatal(err)
			}
			all = append(all, body.Target)
		}
	}
	return all
}

func provisionPath(id string) string { return "/v1/nodes/" + id + "/states/provision" }

// once returns a Reject that treats the first request of a kind as given.
func once(method, path string, rejection *fakeironic.Rejection) func(*http.Request) *fakeironic.Rejection {
	return times(1, method, path, rejection)
}

// times returns a Reject that treats the first n requests of a kind as given. Requests of one client are not concurrent
// where it is used.
func times(n int, method, path string, rejection *fakeironic.Rejection) func(*http.Request) *fakeironic.Rejection {
	return func(r *http.Request) *fakeironic.Rejection {
		if n > 0 && r.Method == method && strings.HasPrefix(r.URL.Path, path) {
			n--
			return rejection
		}
		return nil
	}
}

// lost is an answer that does not arrive, though the request took effect.
func lost() *fakeironic.Rejection { return &fakeironic.Rejection{After: true} }

// fault is an answer in Ironic's shape.
func fault(status int, text string) *fakeironic.Rejection {
	inner, _ := json.Marshal(map[string]any{"faultcode": "Client", "faultstring": text, "debuginfo": nil}) // strings always marshal
	outer, _ := json.Marshal(map[string]any{"error_message": string(inner)})
	return &fakeironic.Rejection{Status: status, Body: string(outer)}
}

// wantNear fails the test unless a duration is what was expected, but for polling intervals and jitter.
func wantNear(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+3*poll {
		t.Errorf("%s took %s, want about %s", what, got, want)
	}
}
