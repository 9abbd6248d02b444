package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestRun_servesAFleetUntilStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-nodes", "3", "-class", "gold", "-discover", "2"}, writer, io.Discard)
		_ = writer.CloseWithError(io.EOF) // ends the test's read if the run ends early
		ended <- err
	}()
	url, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatalf("first line of output: %v", err)
	}

	nodes := fetchNodes(t, strings.TrimSpace(url)+"/v1/nodes?resource_class=gold")
	if len(nodes) != 3 {
		t.Errorf("%d nodes, want 3", len(nodes))
	}
	if discovered := fetchNodes(t, strings.TrimSpace(url)+"/v1/nodes?provision_state=enroll"); len(discovered) != 2 {
		t.Errorf("%d discovered machines, want 2", len(discovered))
	}

	stop()
	if err := <-ended; err != nil {
		t.Errorf("run ended with %v, want nil", err)
	}
}

func TestRun_endsAfterServeFor(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	if err := run(t.Context(), []string{"-serve-for", "1ms"}, io.Discard, &stderr); err != nil {
		t.Fatal(err)
	}
	if want := "fakeironic: ended after 1ms, as -serve-for says; its machines are gone\n"; stderr.String() != want {
		t.Errorf("stderr is %q, want %q", stderr.String(), want)
	}
}

func fetchNodes(t *testing.T, url string) []any {
	t.Helper()
	var body struct{ Nodes []any }
	send(t, http.MethodGet, url, "", &body)
	return body.Nodes
}

func TestExplanation_makesADiscoveredMachine(t *testing.T) {
	t.Parallel()
	_, body, _ := strings.Cut(explanation, "-d '")
	body, _, _ = strings.Cut(body, "'")
	url := serve(t, &fakeironic.Server{Discovery: true})
	send(t, http.MethodPost, url+"/v1/continue_inspection", body, nil)
	nodes := fetchNodes(t, url+"/v1/nodes/detail")
	if len(nodes) != 1 {
		t.Fatalf("the nodes are %v", nodes)
	}
	if node, _ := nodes[0].(map[string]any); node["last_error"] != nil {
		t.Errorf("last_error is %v", node["last_error"])
	}
}

// serve serves a fake until the test ends, and returns its URL.
func serve(t *testing.T, fake *fakeironic.Server) string {
	t.Helper()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return server.URL
}

// send sends a request, and returns the answer, which it decodes into a value unless that is nil.
func send(t *testing.T, method, url, body string, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-OpenStack-Ironic-API-Version", "1.115")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s %s, %v", method, url, response.Status, text, err)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, url, body string) {
	t.Helper()
	send(t, http.MethodPut, url, body, nil)
}

// powerOf reports whether Ironic can use the power interface of a node.
func powerOf(t *testing.T, url, node string) bool {
	t.Helper()
	var answer struct{ Power struct{ Result bool } }
	send(t, http.MethodGet, url+"/v1/nodes/"+node+"/validate", "", &answer)
	return answer.Power.Result
}
