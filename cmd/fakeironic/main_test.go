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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestRun_servesAFleetUntilStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"-nodes", "3", "-class", "gold", "-discover", "2"}, writer)
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

func TestRun_refusesAnUnknownFlag(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"-no-such-flag"}, io.Discard); err == nil {
		t.Error("run accepted -no-such-flag")
	}
}

func fetchNodes(t *testing.T, url string) []any {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct{ Nodes []any }
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body.Nodes
}

func TestPosting_makesADiscoveredMachine(t *testing.T) {
	t.Parallel()
	_, body, _ := strings.Cut(posting, "-d '")
	body, _, _ = strings.Cut(body, "'")
	server := httptest.NewServer(&fakeironic.Server{Discovery: true})
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/continue_inspection", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Openstack-Ironic-Api-Version", "1.90")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	nodes := fetchNodes(t, server.URL+"/v1/nodes/detail")
	if len(nodes) != 1 {
		t.Fatalf("status %s, nodes %v", response.Status, nodes)
	}
	if node, _ := nodes[0].(map[string]any); node["last_error"] != nil {
		t.Errorf("last_error is %v", node["last_error"])
	}
}
