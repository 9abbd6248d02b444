package fakeironic_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestServer_logsRequests(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	a.do(http.MethodGet, "/v1/nodes/nope?fields=uuid", nil)
	log := a.fake.Requests()
	if len(log) != 2 || log[0].Status != http.StatusCreated || !strings.Contains(log[0].Body, `"name":"n1"`) {
		t.Errorf("log = %+v", log)
	}
	if last := log[1]; last.Method != http.MethodGet || last.Path != "/v1/nodes/nope" || last.Query != "fields=uuid" ||
		last.Status != http.StatusNotFound {
		t.Errorf("last request = %+v", last)
	}
	a.fake.ResetRequests()
	if got := len(a.fake.Requests()); got != 0 {
		t.Errorf("%d requests after the reset, want 0", got)
	}
}

func TestServer_rejectReplacesTheAnswer(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.Method != http.MethodPost {
			return nil
		}
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "n1") {
			return nil
		}
		return &fakeironic.Rejection{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}, Body: "later"}
	}}
	a := newAPI(t, fake)
	got := a.do(http.MethodPost, "/v1/nodes", map[string]any{"driver": "fake-hardware", "name": "n1"})
	if got.status != http.StatusServiceUnavailable || got.text != "later" || got.header.Get("Retry-After") != "1" {
		t.Errorf("answer = %d %s %v", got.status, got.text, got.header)
	}
	if len(fake.Nodes()) != 0 {
		t.Error("the rejected request took effect")
	}
	a.node("n2", nil)
}

func TestServer_lostAnswerKeepsTheEffect(t *testing.T) {
	t.Parallel()
	lose := true
	fake := &fakeironic.Server{Reject: func(*http.Request) *fakeironic.Rejection {
		if !lose {
			return nil
		}
		return &fakeironic.Rejection{After: true}
	}}
	a := newAPI(t, fake)
	response, err := fake.RoundTrip(a.request(http.MethodPost, "/v1/nodes", map[string]any{"driver": "fake-hardware", "name": "n1"}))
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error = %v, want a reset connection", err)
	}
	lose = false
	a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1", nil)
}

func TestServer_dropBreaksASocket(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&fakeironic.Server{Reject: func(*http.Request) *fakeironic.Rejection {
		return &fakeironic.Rejection{Drop: true}
	}})
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Errorf("got an answer: %s", response.Status)
	}
}

func TestServer_parallelRequests(t *testing.T) {
	t.Parallel()
	const clients = 100
	fake := &fakeironic.Server{}
	fake.AddFleet(clients, "baremetal")
	a := newAPI(t, fake)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			name := fmt.Sprintf("a-%d", i)
			for _, request := range []*http.Request{
				a.request(http.MethodPost, "/v1/allocations", map[string]any{"name": name, "resource_class": "baremetal"}),
				a.request(http.MethodGet, "/v1/nodes/detail", nil),
				a.request(http.MethodPatch, fmt.Sprintf("/v1/nodes/node-%03d", i), patch("add", "/extra/x", i)),
				a.request(http.MethodPut, provisionPath(fmt.Sprintf("node-%03d", i)), map[string]any{"target": "active"}),
				a.request(http.MethodGet, "/v1/allocations/"+name, nil),
			} {
				response, err := fake.RoundTrip(request)
				if err != nil || response.StatusCode >= http.StatusBadRequest {
					t.Errorf("%s %s = %v, %v", request.Method, request.URL, response, err)
					return
				}
			}
		})
	}
	group.Wait()
	nodes := map[any]bool{}
	for i := range clients {
		got := a.must(http.StatusOK, http.MethodGet, fmt.Sprintf("/v1/allocations/a-%d", i), nil)
		if got["state"] == "active" {
			nodes[got["node_uuid"]] = true
		}
	}
	held := 0
	for _, n := range fake.Nodes() {
		if n.AllocationUUID != "" {
			held++
		}
	}
	if len(nodes) != held {
		t.Errorf("%d nodes in active allocations, %d nodes held; want the same", len(nodes), held)
	}
}

func TestServer_addFleet(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(2, "gold")
	fake.AddFleet(1, "silver")
	nodes := fake.Nodes()
	if len(nodes) != 3 || nodes[2].Name != "node-002" || nodes[2].ResourceClass != "silver" {
		t.Fatalf("nodes = %+v", nodes)
	}
	for _, n := range nodes[:2] {
		if n.ProvisionState != "available" || n.PowerState != "power off" || n.ResourceClass != "gold" {
			t.Errorf("%s is %s, %s, %s", n.Name, n.ProvisionState, n.PowerState, n.ResourceClass)
		}
	}
	if fmt.Sprint(nodes[0].Traits, nodes[1].Traits) != "[] [CUSTOM_NVME]" {
		t.Errorf("traits = %v, %v", nodes[0].Traits, nodes[1].Traits)
	}
	newAPI(t, fake).must(http.StatusOK, http.MethodGet, "/v1/nodes/node-000/inventory", nil)
}
